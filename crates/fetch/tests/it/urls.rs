//! Addresses that are written to mislead: what is asked is what was judged.

use telusur_fetch::{FetchSettings, OwnAddresses};
use telusur_model::{FetchOutcome, FetchRules, PageUrl, Reason, UrlError};

use crate::bench::{Bench, reason};
use crate::script::{Read, ScriptedServer, page, send};

/// A fetcher that may ask nothing private, with a canary on loopback that it would reach.
struct Canary {
    server: ScriptedServer,
    bench: Bench,
}

impl Canary {
    async fn new() -> Self {
        let server = ScriptedServer::start(vec![vec![Read, page("canary")]]).await;
        let rules = telusur_model::FetchRules {
            allow_private: vec!["10.9.9.9".to_owned()],
            ..Default::default()
        };
        Self { server, bench: Bench::with_rules(rules) }
    }

    async fn check(&self, url: &PageUrl, expect: Reason) {
        assert_eq!(reason(&self.bench.fetch(url.as_str()).await.outcome), expect, "{url}");
        assert!(self.server.requests().is_empty(), "{url}");
    }
}

#[tokio::test]
async fn every_spelling_of_an_address_inside() {
    // U3, D11: no lookup stands between a literal address and the connection.
    let canary = Canary::new().await;
    let port = canary.server.address.port();
    for host in [
        "2130706433",
        "0x7f.1",
        "0x7F000001",
        "017700000001",
        "127.1",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "%31%32%37.0.0.1",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
    ] {
        let url = PageUrl::parse(&format!("http://{host}:{port}/")).unwrap();
        canary.check(&url, Reason::BlockedAddress).await;
    }
}

#[tokio::test]
async fn whoever_stands_behind_the_at_sign_is_asked() {
    // U4: one parser decides, once, for the guard and for the connection.
    let canary = Canary::new().await;
    canary.bench.names.add("good.test", &["10.0.0.1"]);
    let port = canary.server.address.port();
    let base = PageUrl::parse("http://good.test/x").unwrap();
    for href in [
        &format!("http://good.test@127.0.0.1:{port}/"),
        &format!("http://good.test:80@127.0.0.1:{port}/"),
        &format!("//127.0.0.1:{port}"),
        &format!("/\\127.0.0.1:{port}"),
        &format!("\\\\127.0.0.1:{port}"),
        &format!("http:\\\\127.0.0.1:{port}"),
        // The backslash ends the host here: this one is the good host.
        &format!("http://good.test\\@127.0.0.1:{port}/"),
    ] {
        canary.check(&base.join(href).unwrap(), Reason::BlockedAddress).await;
    }
}

#[tokio::test]
async fn names_that_look_like_others() {
    // U7: the soft hyphen is not there for anybody, so this is localhost.
    let canary = Canary::new().await;
    canary.bench.names.add("localhost", &["127.0.0.1"]);
    let port = canary.server.address.port();
    let url = PageUrl::parse(&format!("http://local\u{ad}host:{port}/")).unwrap();
    canary.check(&url, Reason::BlockedAddress).await;
    assert_eq!(
        PageUrl::parse("http://bücher.example/").unwrap().host_str(),
        "xn--bcher-kva.example"
    );
    for text in ["http://xn--a/", "http://xn--/"] {
        assert!(matches!(PageUrl::parse(text), Err(UrlError::Bad(_))), "{text}");
    }
}

#[test]
fn hosts_that_are_none() {
    // U6, D21.
    for text in [
        "http://h:99999/",
        "http://[fe80::1%25lo]/",
        "http://[::1",
        "http://[v1.x]/",
        "http://[::1]x/",
    ] {
        assert!(matches!(PageUrl::parse(text), Err(UrlError::Bad(_))), "{text}");
    }
}

#[tokio::test]
async fn odd_paths_are_asked_for_as_they_are() {
    // U8, U13.
    let server = ScriptedServer::start(vec![vec![Read, page("")]]).await;
    let bench = Bench::new();
    let marks = "\u{301}".repeat(300);
    for (path, expect) in [
        ("/%zz", "/%zz"),
        ("/%00x", "/%00x"),
        ("/%", "/%"),
        ("/..%2f..%2fx", "/..%2f..%2fx"),
        ("/../../etc/passwd", "/etc/passwd"),
        ("/\u{202e}x", "/%E2%80%AEx"),
        (&format!("/{marks}"), &format!("/{}", "%CC%81".repeat(300))),
    ] {
        bench.page(&server.url(path)).await;
        let request = server.requests().pop().unwrap();
        assert!(request.starts_with(&format!("GET {expect} HTTP/1.1\r\n")), "{request}");
        assert!(request.is_ascii());
    }
}

#[tokio::test]
async fn line_breaks_in_a_target_never_reach_the_wire() {
    // U1, G13: raw ones end the header in which they stand, the others stay escaped.
    let moved = |location: &str| {
        send(format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"))
    };
    let script = vec![Read, moved("/a%0d%0aX-Injected:%201"), Read, page("")];
    let server = ScriptedServer::start(vec![script]).await;
    let bench = Bench::new();
    let outcome = bench.fetch(&server.url("/")).await.outcome;
    let FetchOutcome::Redirected { to, .. } = outcome else { panic!("{outcome:?}") };
    bench.page(to.as_str()).await;
    let request = server.requests().pop().unwrap();
    assert!(request.starts_with("GET /a%0d%0aX-Injected:%201 HTTP/1.1\r\n"), "{request}");
    assert!(!request.contains("\nX-Injected"), "{request}");
}

/// Under any name, and although the operator opened the range.
#[tokio::test]
async fn where_we_listen_ourselves_is_never_asked() {
    let server = ScriptedServer::start(vec![vec![Read, page("ours")]]).await;
    let port = server.address.port();
    let any = std::net::SocketAddr::from(([0, 0, 0, 0], port));
    for own in [server.address, any] {
        let own_addresses = OwnAddresses::new([own]);
        let settings = FetchSettings { own_addresses, ..FetchSettings::default() };
        let rules =
            FetchRules { allow_private: vec!["0.0.0.0/0".to_owned()], ..Default::default() };
        let bench = Bench::with(settings, rules);
        bench.names.add("ours.test", &["127.0.0.1"]);
        for host in ["127.0.0.1", "ours.test", "0.0.0.0", "[::ffff:127.0.0.1]"] {
            let outcome = bench.fetch(&format!("http://{host}:{port}/")).await.outcome;
            assert_eq!(reason(&outcome), Reason::BlockedAddress, "{host}: {outcome:?}");
        }
    }
    assert!(server.requests().is_empty());
}
