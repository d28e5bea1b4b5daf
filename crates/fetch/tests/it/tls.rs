//! Servers that speak TLS, or say so.

use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use telusur_fetch::{FetchProfile, FetchSettings};
use telusur_model::{FetchOutcome, FetchRules, Host, Reason, Retry};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::authority::{Authority, certificate_for, server_config};
use crate::bench::{Bench, reason};
use crate::script::{Hold, ScriptedServer, send};

/// Answers every request with the same page; gives the port.
async fn serve(config: ServerConfig) -> u16 {
    serve_connections(config, usize::MAX).await
}

async fn serve_connections(config: ServerConfig, connections_max: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        for _ in 0..connections_max {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut request = [0; 4096];
                while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                    let page = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\naman";
                    stream.write_all(page).await.unwrap();
                }
            });
        }
    });
    port
}

async fn check(config: ServerConfig, authority: &Authority, cause: &str) {
    let port = serve(config).await;
    let fetched = authority.bench().fetch(&format!("https://secure.test:{port}/")).await;
    let FetchOutcome::Failed { why: Reason::TlsError, detail, retry } = fetched.outcome else {
        panic!("{fetched:?}");
    };
    assert_eq!(retry, Retry::Never);
    assert!(detail.starts_with(&format!("{cause}: ")), "{detail}");
    assert_eq!(fetched.requested_at, None);
}

#[tokio::test]
async fn a_page_over_tls() {
    let authority = Authority::trusted();
    let config = authority.sign(&certificate_for("secure.test"));
    let port = serve_connections(config, 1).await;
    let bench = authority.bench();
    for _ in 0..2 {
        // The server takes only one connection: the second visit uses the first one's.
        let page = bench.page(&format!("https://secure.test:{port}/")).await;
        assert_eq!(page.body, "aman");
    }
}

#[tokio::test]
async fn a_certificate_for_an_address() {
    let authority = Authority::trusted();
    let port = serve(authority.sign(&certificate_for("127.0.0.1"))).await;
    let page = authority.bench().page(&format!("https://127.0.0.1:{port}/")).await;
    assert_eq!(page.body, "aman");
}

#[tokio::test]
async fn a_certificate_with_two_thousand_names() {
    // T5.
    let authority = Authority::trusted();
    let names = (0..2000).map(|n| format!("n{n}.test")).chain(["secure.test".to_owned()]);
    let params = CertificateParams::new(names.collect::<Vec<_>>()).unwrap();
    let port = serve(authority.sign(&params)).await;
    authority.bench().page(&format!("https://secure.test:{port}/")).await;
}

#[tokio::test]
async fn an_expired_certificate() {
    // T5.
    let authority = Authority::trusted();
    let mut params = certificate_for("secure.test");
    params.not_after = date_time_ymd(2020, 1, 1);
    check(authority.sign(&params), &authority, "expired").await;
}

#[tokio::test]
async fn a_certificate_of_tomorrow() {
    let authority = Authority::trusted();
    let mut params = certificate_for("secure.test");
    params.not_before = date_time_ymd(4000, 1, 1);
    check(authority.sign(&params), &authority, "not_valid_yet").await;
}

#[tokio::test]
async fn a_certificate_for_another_host() {
    // T5.
    let authority = Authority::trusted();
    check(authority.sign(&certificate_for("other.test")), &authority, "wrong_host").await;
}

#[tokio::test]
async fn an_unknown_authority() {
    // T5.
    let stranger = Authority::named("a stranger");
    let config = stranger.sign(&certificate_for("secure.test"));
    check(config, &Authority::trusted(), "unknown_issuer").await;
}

#[tokio::test]
async fn a_self_signed_certificate() {
    // T5.
    let key = KeyPair::generate().unwrap();
    let certificate = certificate_for("secure.test").self_signed(&key).unwrap().der().clone();
    let config = server_config(certificate, &key, rustls::ALL_VERSIONS);
    check(config, &Authority::trusted(), "unknown_issuer").await;
}

#[tokio::test]
async fn certificates_go_unverified_for_the_named_host_only() {
    let stranger = Authority::named("a stranger");
    let mut params = certificate_for("secure.test");
    params.not_after = date_time_ymd(2020, 1, 1);
    let port = serve(stranger.sign(&params)).await;
    let trusting = FetchRules { insecure_hosts: vec![Host::new("secure.test")], ..rules() };
    let mut bench = Authority::trusted().bench_with(FetchSettings::default(), trusting);
    bench.names.add("other.test", &["127.0.0.1"]);
    let url = format!("https://secure.test:{port}/");
    assert_eq!(bench.page(&url).await.body, "aman");
    let other = bench.fetch(&format!("https://other.test:{port}/")).await;
    assert_eq!(reason(&other.outcome), Reason::TlsError);
    // Neither the kept connection nor the session is there for a crawl that verifies.
    bench.profile = FetchProfile::new(&rules(), 100, Vec::new()).unwrap();
    assert_eq!(reason(&bench.fetch(&url).await.outcome), Reason::TlsError);
}

fn rules() -> FetchRules {
    FetchRules { allow_private: vec!["127.0.0.1".to_owned()], ..FetchRules::default() }
}

async fn over_tls(script: Vec<crate::script::Act>) -> (FetchOutcome, ScriptedServer) {
    let server = ScriptedServer::start(vec![script]).await;
    let bench = Authority::trusted().bench();
    let fetched = bench.fetch(&format!("https://{}/", server.address)).await;
    (fetched.outcome, server)
}

#[tokio::test]
async fn a_handshake_that_stalls() {
    // T6.
    let tls_time_max = Duration::from_millis(50);
    let settings = FetchSettings { tls_time_max, ..FetchSettings::default() };
    let server = ScriptedServer::start(vec![vec![Hold]]).await;
    let fetched =
        Bench::with_settings(settings).fetch(&format!("https://{}/", server.address)).await;
    assert_eq!(reason(&fetched.outcome), Reason::TimeoutConnect);
}

#[tokio::test]
async fn no_tls_at_all() {
    // T6.
    for answer in ["HTTP/1.1 400 Bad Request\r\n\r\n", "\x16\x03\x01garbage", "SSH-2.0-x\r\n"] {
        let (outcome, server) = over_tls(vec![send(answer), Hold]).await;
        assert_eq!(reason(&outcome), Reason::TlsError, "{answer:?}");
        assert!(server.requests().is_empty(), "never in clear");
    }
}

#[tokio::test]
async fn an_old_version() {
    // T8.
    // The alert with which a server of TLS 1.0 turns us away: fatal, protocol_version.
    let (outcome, _server) = over_tls(vec![send(b"\x15\x03\x01\x00\x02\x02\x46"), Hold]).await;
    let FetchOutcome::Failed { why: Reason::TlsError, detail, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(detail.starts_with("version: "), "{detail}");
}

#[tokio::test]
async fn a_connection_cut_within_the_handshake() {
    let (outcome, _server) = over_tls(vec![]).await;
    let FetchOutcome::Failed { why, retry, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!((why, retry), (Reason::TlsError, Retry::Later));
}

#[tokio::test]
async fn a_connection_that_is_cut_does_not_end_a_body_without_length() {
    for (head, expect) in [
        ("HTTP/1.1 200 OK\r\n\r\naman", Some(Reason::Truncated)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\naman", Some(Reason::Truncated)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\naman", None),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\naman\r\n0\r\n\r\n", None),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\naman", Some(Reason::Truncated)),
        // There is no body that could be cut.
        ("HTTP/1.1 204 No Content\r\n\r\n", None),
        ("HTTP/1.1 205 Reset Content\r\n\r\n", None),
    ] {
        let body = if head.contains(" 200 ") { "aman" } else { "" };
        let authority = Authority::trusted();
        let port = serve_and_cut(authority.sign(&certificate_for("secure.test")), head).await;
        let fetched = authority.bench().fetch(&format!("https://secure.test:{port}/")).await;
        match (fetched.outcome, expect) {
            (FetchOutcome::Page(page), None) => assert_eq!(page.body, body),
            (outcome, Some(expect)) => assert_eq!(reason(&outcome), expect),
            (outcome, None) => panic!("{outcome:?}"),
        }
    }
}

/// Answers one request and closes the connection under TLS, without close_notify.
async fn serve_and_cut(config: ServerConfig, answer: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = TlsAcceptor::from(Arc::new(config)).accept(stream).await.unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        let (mut socket, _) = stream.into_inner();
        socket.shutdown().await.unwrap();
    });
    port
}

#[tokio::test]
async fn a_handshake_that_stalls_after_the_server_hello() {
    // T6.
    let authority = Authority::trusted();
    let config = Arc::new(authority.sign(&certificate_for("secure.test")));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut hello = vec![0; 4096];
        let length = stream.read(&mut hello).await.unwrap();
        let mut server = rustls::ServerConnection::new(config).unwrap();
        server.read_tls(&mut &hello[..length]).unwrap();
        server.process_new_packets().unwrap();
        let mut flight = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut flight).unwrap();
        }
        stream.write_all(&flight[..flight.len() / 2]).await.unwrap();
        while stream.read(&mut hello).await.is_ok_and(|read| read > 0) {}
    });
    let settings =
        FetchSettings { tls_time_max: Duration::from_millis(200), ..FetchSettings::default() };
    let bench = authority.bench_with(settings, rules());
    let fetched = bench.fetch(&format!("https://secure.test:{port}/")).await;
    assert_eq!(reason(&fetched.outcome), Reason::TimeoutConnect);
    assert_eq!(fetched.requested_at, None);
}

#[tokio::test]
async fn no_cipher_in_common() {
    // T8: the alert with which a server that knows only RC4 turns us away: fatal, handshake_failure.
    let (outcome, _server) = over_tls(vec![send(b"\x15\x03\x03\x00\x02\x02\x28"), Hold]).await;
    let FetchOutcome::Failed { why: Reason::TlsError, retry: Retry::Never, detail } = outcome
    else {
        panic!("{outcome:?}");
    };
    assert!(detail.starts_with("alert: "), "{detail}");
}

#[tokio::test]
async fn a_server_that_asks_who_we_are() {
    // T9: in TLS 1.3 it says no only after the handshake, in TLS 1.2 within it.
    for version in rustls::ALL_VERSIONS {
        let authority = Authority::trusted();
        let config = authority.sign_for_known_clients(&certificate_for("secure.test"), version);
        let port = serve(config).await;
        let fetched = authority.bench().fetch(&format!("https://secure.test:{port}/")).await;
        assert_eq!(reason(&fetched.outcome), Reason::TlsError, "{version:?}");
    }
}

#[tokio::test]
async fn ten_thousand_session_tickets() {
    // T9: a few are kept and many are read over; at some point it is no longer a conversation.
    for (tickets, expect) in [(100, None), (10_000, Some(Reason::TlsError))] {
        let authority = Authority::trusted();
        let mut config = authority.sign(&certificate_for("secure.test"));
        config.send_tls13_tickets = tickets;
        let port = serve(config).await;
        let outcome =
            authority.bench().fetch(&format!("https://secure.test:{port}/")).await.outcome;
        match expect {
            Some(expect) => assert_eq!(reason(&outcome), expect),
            None => assert!(matches!(outcome, FetchOutcome::Page(page) if page.body == "aman")),
        }
    }
}
