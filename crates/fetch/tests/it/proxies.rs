//! Asking through a proxy: what it is told, and what it is never asked for.

use std::sync::Arc;

use telusur_fetch::FetchSettings;
use telusur_model::{FetchOutcome, FetchRules, Reason, Retry, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use crate::authority::{Authority, certificate_for};
use crate::bench::{Bench, reason};
use crate::script::{Hold, Read, ScriptedServer, page, send};

/// A fetcher that asks through a proxy and may ask no private address itself.
fn through(proxy: &str) -> Bench {
    let rules = FetchRules {
        proxy: Some(Secret::new(proxy)),
        allow_private: vec!["10.9.9.9".to_owned()],
        ..FetchRules::default()
    };
    Bench::with_rules(rules)
}

#[tokio::test]
async fn a_page_in_clear() {
    let script = vec![Read, page("first"), Read, page("second"), Hold];
    let proxy = ScriptedServer::start(vec![script]).await;
    let bench = through(&format!("http://me:s3cret@{}", proxy.address));
    bench.names.add("public.test", &["8.8.8.8"]);
    let fetched = bench.fetch("http://public.test/a?b").await;
    assert_eq!(fetched.address, Some("8.8.8.8".parse().unwrap()), "the site's, not the proxy's");
    let request = proxy.requests().remove(0);
    assert!(request.starts_with("GET http://public.test/a?b HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nhost: public.test\r\n"), "{request}");
    assert!(request.contains("\r\nproxy-authorization: Basic bWU6czNjcmV0\r\n"), "{request}");
    // The connection to the proxy is kept like any other.
    assert_eq!(bench.page("http://public.test/").await.body, "second");
}

#[tokio::test]
async fn a_target_inside_is_refused_before_the_proxy_hears_of_it() {
    // G1.
    let proxy = ScriptedServer::start(vec![vec![Read, page("canary")]]).await;
    let port = proxy.address.port();
    let bench = through(&format!("http://{}", proxy.address));
    bench.names.add("inside.test", &["192.168.0.1"]);
    bench.names.add("mixed.test", &["8.8.8.8", "192.168.0.1"]);
    for url in [
        "http://169.254.169.254/latest/meta-data/",
        "https://169.254.169.254/",
        "http://metadata.google.internal/",
        "http://inside.test/",
        "https://inside.test/",
        // The proxy would pick an address by itself.
        "http://mixed.test/",
        // That it is our proxy does not make it a site.
        &format!("http://127.0.0.1:{port}/"),
        &format!("https://127.0.0.1:{port}/"),
    ] {
        let outcome = bench.fetch(url).await.outcome;
        assert!(
            matches!(outcome, FetchOutcome::Refused { why: Reason::BlockedAddress, .. }),
            "{url}: {outcome:?}"
        );
    }
    let outcome = bench.fetch("http://only-the-proxy-knows.test/").await.outcome;
    assert_eq!(reason(&outcome), Reason::DnsError);
    assert!(proxy.requests().is_empty());
}

#[tokio::test]
async fn a_proxy_that_wants_a_password() {
    let wants = send("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
    let proxy = ScriptedServer::start(vec![vec![Read, wants, Hold]]).await;
    let bench = through(&format!("http://{}", proxy.address));
    for url in ["http://8.8.8.8/", "https://8.8.8.8/"] {
        let outcome = bench.fetch(url).await.outcome;
        let FetchOutcome::Failed { why: Reason::ProxyError, retry: Retry::Never, .. } = outcome
        else {
            panic!("{outcome:?}");
        };
    }
}

#[tokio::test]
async fn a_proxy_that_cannot_or_will_not() {
    for (answer, expect) in [
        ("HTTP/1.1 502 Bad Gateway\r\n\r\n", Retry::Later),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", Retry::Never),
        ("SSH-2.0-OpenSSH_9.6\r\n\r\n", Retry::Never),
        ("", Retry::Later),
    ] {
        let proxy = ScriptedServer::start(vec![vec![Read, send(answer)]]).await;
        let outcome =
            through(&format!("http://{}", proxy.address)).fetch("https://8.8.8.8/").await.outcome;
        let FetchOutcome::Failed { why: Reason::ProxyError, retry, .. } = outcome else {
            panic!("{answer:?} gives {outcome:?}");
        };
        assert_eq!(retry, expect, "{answer:?}");
    }
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let outcome = through(&format!("http://{closed}")).fetch("http://8.8.8.8/").await.outcome;
    assert_eq!(reason(&outcome), Reason::ProxyError);
}

#[tokio::test]
async fn an_endless_answer_to_connect_is_cut() {
    let endless = crate::script::send_endlessly("HTTP/1.1 200 OK\r\nX-A: 1\r\n");
    let mut proxy = ScriptedServer::start(vec![vec![Read, endless]]).await;
    let bench = through(&format!("http://{}", proxy.address));
    assert_eq!(reason(&bench.fetch("https://8.8.8.8/").await.outcome), Reason::ProxyError);
    proxy.connection_ended().await;
}

/// A TLS server behind a proxy that forwards to any target that it is given. Returns what
/// the proxy was asked for.
async fn tunnel(greet: Greeting) -> (Authority, String, mpsc::UnboundedReceiver<Vec<u8>>) {
    let authority = Authority::trusted();
    let acceptor = TlsAcceptor::from(Arc::new(authority.sign(&certificate_for("secure.test"))));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap().to_string();
    let (tell, asked) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tell.send(greet(&mut stream).await).unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
            let page = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\naman";
            stream.write_all(page).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    (authority, proxy, asked)
}

type Greeting = fn(&mut TcpStream) -> std::pin::Pin<Box<dyn Future<Output = Vec<u8>> + Send + '_>>;

fn http_greeting(
    stream: &mut TcpStream,
) -> std::pin::Pin<Box<dyn Future<Output = Vec<u8>> + Send + '_>> {
    Box::pin(async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
        head
    })
}

fn socks5_greeting(
    stream: &mut TcpStream,
) -> std::pin::Pin<Box<dyn Future<Output = Vec<u8>> + Send + '_>> {
    Box::pin(async {
        let mut asked = vec![0; 3];
        stream.read_exact(&mut asked).await.unwrap();
        stream.write_all(&[5, asked[2]]).await.unwrap();
        let mut login = [0; 1 + 1 + 2 + 1 + 6];
        stream.read_exact(&mut login).await.unwrap();
        stream.write_all(&[1, 0]).await.unwrap();
        let mut request = [0; 10];
        stream.read_exact(&mut request).await.unwrap();
        stream.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 0]).await.unwrap();
        [&asked[..], &login, &request].concat()
    })
}

fn secure_through(authority: &Authority, proxy: String) -> Bench {
    let rules = FetchRules {
        proxy: Some(Secret::new(proxy)),
        allow_private: vec!["10.9.9.9".to_owned()],
        ..FetchRules::default()
    };
    let bench = authority.bench_with(FetchSettings::default(), rules);
    bench.names.add("proxied.test", &["8.8.8.8"]);
    bench
}

#[tokio::test]
async fn a_page_over_tls_in_a_tunnel_to_the_checked_address() {
    let (authority, proxy, mut asked) = tunnel(http_greeting).await;
    let bench = secure_through(&authority, format!("http://me:s3cret@{proxy}"));
    // The certificate is for another name: that is the site's business, and not hidden by the proxy.
    let outcome = bench.fetch("https://proxied.test/").await.outcome;
    assert_eq!(reason(&outcome), Reason::TlsError);
    let head = String::from_utf8(asked.recv().await.unwrap()).unwrap();
    assert_eq!(
        head,
        "CONNECT 8.8.8.8:443 HTTP/1.1\r\nHost: 8.8.8.8:443\r\n\
         Proxy-Authorization: Basic bWU6czNjcmV0\r\n\r\n"
    );
    let rules =
        FetchRules { proxy: Some(Secret::new(format!("http://{proxy}"))), ..FetchRules::default() };
    let bench = authority.bench_with(FetchSettings::default(), rules);
    assert_eq!(bench.page("https://secure.test/").await.body, "aman");
    assert!(asked.recv().await.unwrap().starts_with(b"CONNECT 127.0.0.1:443 "));
}

#[tokio::test]
async fn a_page_through_socks5() {
    let (authority, proxy, mut asked) = tunnel(socks5_greeting).await;
    let rules = FetchRules {
        proxy: Some(Secret::new(format!("socks5://me:s3cret@{proxy}"))),
        ..FetchRules::default()
    };
    let bench = authority.bench_with(FetchSettings::default(), rules);
    assert_eq!(bench.page("https://secure.test/").await.body, "aman");
    let expect =
        [&[5, 1, 2][..], &[1, 2, b'm', b'e', 6], b"s3cret", &[5, 1, 0, 1, 127, 0, 0, 1, 1, 187]];
    assert_eq!(asked.recv().await.unwrap(), expect.concat());
}

#[tokio::test]
async fn two_crawls_do_not_share_each_others_way() {
    let direct = ScriptedServer::start(vec![vec![Read, page("direct"), Hold]]).await;
    let proxy = ScriptedServer::start(vec![vec![Read, page("proxied"), Hold]]).await;
    let mut bench = Bench::new();
    assert_eq!(bench.page(&direct.url("/")).await.body, "direct");
    let rules = FetchRules {
        proxy: Some(Secret::new(format!("http://{}", proxy.address))),
        allow_private: vec!["127.0.0.1".to_owned()],
        ..FetchRules::default()
    };
    bench.profile = telusur_fetch::FetchProfile::new(&rules, 100, Vec::new()).unwrap();
    assert_eq!(bench.page(&direct.url("/")).await.body, "proxied");
}
