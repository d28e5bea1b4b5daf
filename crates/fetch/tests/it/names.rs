//! Names and addresses: what may be asked, and that nothing else ever is.

use std::time::Duration;

use telusur_fetch::Fetch;
use telusur_model::{FetchOutcome, FetchRules, PageUrl, Reason, Retry};
use tokio::net::TcpListener;

use crate::bench::{Bench, reason};
use crate::script::{Read, ScriptedServer, page};

fn allowing(entry: &str) -> Bench {
    Bench::with_rules(FetchRules { allow_private: vec![entry.to_owned()], ..Default::default() })
}

/// Two servers on one port of two addresses.
async fn neighbours() -> (ScriptedServer, ScriptedServer) {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = first.local_addr().unwrap().port();
        if let Ok(second) = TcpListener::bind(("127.0.0.2", port)).await {
            let script = |body| vec![vec![Read, page(body)]];
            return (
                ScriptedServer::on(first, script("127.0.0.1")),
                ScriptedServer::on(second, script("127.0.0.2")),
            );
        }
    }
}

#[tokio::test]
async fn private_addresses_are_refused_without_a_packet() {
    // D1, D11.
    let server = ScriptedServer::start(vec![vec![Read, page("canary")]]).await;
    let bench = allowing("10.1.2.0/24");
    bench.names.add("inside.test", &["127.0.0.1"]);
    let port = server.address.port();
    for host in ["127.0.0.1", "inside.test", "[::ffff:127.0.0.1]", "2130706433", "[::1]"] {
        let fetched = bench.fetch(&format!("http://{host}:{port}/")).await;
        let FetchOutcome::Refused { why: Reason::BlockedAddress, .. } = fetched.outcome else {
            panic!("{host}: {fetched:?}");
        };
        assert_eq!((fetched.requested_at, fetched.address), (None, None));
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn metadata_services_are_refused() {
    // D1, D8.
    let bench = Bench::new();
    bench.names.add("cname.test", &["169.254.169.254"]);
    for host in [
        "169.254.169.254",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "[fd00:ec2::254]",
        "metadata.google.internal",
        "metadata.google.internal.",
        "cname.test",
    ] {
        let fetched = bench.fetch(&format!("http://{host}/latest/meta-data/")).await;
        assert_eq!(reason(&fetched.outcome), Reason::BlockedAddress, "{host}");
    }
}

#[tokio::test]
async fn ports_of_other_services_are_refused() {
    // U6.
    let bench = Bench::new();
    for port in [0, 22, 25, 6379, 6667] {
        let fetched = bench.fetch(&format!("http://127.0.0.1:{port}/")).await;
        assert_eq!(reason(&fetched.outcome), Reason::BlockedPort, "{port}");
    }
}

#[tokio::test]
async fn one_port_of_one_name_can_be_opened() {
    // D20.
    let server = ScriptedServer::start(vec![vec![Read, page("inside")]]).await;
    let port = server.address.port();
    let bench = allowing(&format!("inside.test:{port}"));
    bench.names.add("inside.test", &["127.0.0.1"]);
    bench.names.add("other.test", &["127.0.0.1"]);
    assert_eq!(bench.page(&format!("http://inside.test:{port}/")).await.body, "inside");
    let fetched = bench.fetch(&format!("http://other.test:{port}/")).await;
    assert_eq!(reason(&fetched.outcome), Reason::BlockedAddress);
}

#[tokio::test]
async fn a_rebound_name_never_leads_inside() {
    // D5, R11.
    let (canary, open) = neighbours().await;
    let url = open.url("/").replace("127.0.0.2", "rebind.test");
    let bench = allowing("127.0.0.2");
    bench.names.add("rebind.test", &["127.0.0.2"]);
    bench.names.add("rebind.test", &["127.0.0.1"]);
    for _ in 0..2 {
        assert_eq!(bench.page(&url).await.body, "127.0.0.2");
    }
    bench.clock.advance(Duration::from_secs(5));
    assert_eq!(reason(&bench.fetch(&url).await.outcome), Reason::BlockedAddress);
    assert!(canary.requests().is_empty());
}

#[tokio::test]
async fn of_several_addresses_only_the_checked_are_asked() {
    // D5.
    let (canary, open) = neighbours().await;
    let bench = allowing("127.0.0.2");
    bench.names.add("mixed.test", &["127.0.0.1", "127.0.0.2"]);
    let url = open.url("/").replace("127.0.0.2", "mixed.test");
    assert_eq!(bench.page(&url).await.body, "127.0.0.2");
    let resolved = bench.fetcher.resolve(&PageUrl::parse(&url).unwrap(), &bench.profile).await;
    assert_eq!(resolved, Ok(vec!["127.0.0.2".parse().unwrap()]));
    assert!(canary.requests().is_empty());
}

#[tokio::test]
async fn dead_addresses_are_passed_over_but_not_all() {
    // D18.
    let server = ScriptedServer::start(vec![vec![Read, page("alive")]]).await;
    let bench = allowing("127.0.0.0/8");
    bench.names.add("third.test", &["127.0.0.8", "127.0.0.9", "127.0.0.1"]);
    bench.names.add("fourth.test", &["127.0.0.7", "127.0.0.8", "127.0.0.9", "127.0.0.1"]);
    let url = |name| server.url("/").replace("127.0.0.1", name);
    assert_eq!(bench.page(&url("third.test")).await.body, "alive");
    assert_eq!(reason(&bench.fetch(&url("fourth.test")).await.outcome), Reason::Refused);
}

#[tokio::test]
async fn a_name_that_does_not_exist() {
    // D16.
    let fetched = Bench::new().fetch("http://nowhere.test/").await;
    let FetchOutcome::Failed { why, detail, retry } = fetched.outcome else {
        panic!("{fetched:?}");
    };
    assert_eq!((why, retry), (Reason::DnsError, Retry::Later));
    assert_eq!(detail, "nxdomain: look up nowhere.test");
}

#[tokio::test]
async fn resolving_tells_whether_to_try_again() {
    let bench = Bench::new();
    let resolve = async |url: &str| {
        let url = PageUrl::parse(url).unwrap();
        bench.fetcher.resolve(&url, &bench.profile).await.unwrap_err()
    };
    assert!(resolve("http://nowhere.test/").await.may_pass);
    assert!(!resolve("http://10.0.0.1/").await.may_pass);
}

#[tokio::test]
async fn twenty_four_addresses_of_which_one_lives() {
    // D18: three of them are tried, and then it is over.
    let server = ScriptedServer::start(vec![vec![Read, page("alive")]]).await;
    let bench = allowing("127.0.0.0/8");
    let mut addresses: Vec<String> = (10..33).map(|n| format!("127.0.0.{n}")).collect();
    addresses.push("127.0.0.1".to_owned());
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    bench.names.add("many.test", &addresses);
    let url = server.url("/").replace("127.0.0.1", "many.test");
    assert_eq!(reason(&bench.fetch(&url).await.outcome), Reason::Refused);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn every_hop_of_a_redirect_is_judged_anew() {
    // D9, R11: the answer alone opens nothing.
    let canary = ScriptedServer::start(vec![vec![Read, page("canary")]]).await;
    for status in [301, 302, 303, 307, 308] {
        let moved = format!(
            "HTTP/1.1 {status} Moved\r\nLocation: {}\r\nRefresh: 0; url={}\r\n\
             Link: <{}>; rel=preload\r\nAlt-Svc: h2=\"{}\"\r\nContent-Length: 0\r\n\r\n",
            canary.url("/"),
            canary.url("/"),
            canary.url("/"),
            canary.address,
        );
        let open = ScriptedServer::start(vec![vec![Read, crate::script::send(moved)]]).await;
        let bench = allowing(&open.address.to_string());
        let outcome = bench.fetch(&open.url("/")).await.outcome;
        let FetchOutcome::Redirected { to, .. } = outcome else { panic!("{outcome:?}") };
        let hop = bench.fetch(to.as_str()).await.outcome;
        assert_eq!(reason(&hop), Reason::BlockedAddress);
    }
    assert!(canary.requests().is_empty());
}

#[tokio::test]
async fn one_open_range_leaves_all_others_shut() {
    // D20.
    let bench = allowing("127.0.0.1/32");
    for host in ["169.254.169.254", "127.0.0.2", "10.0.0.1", "[::1]"] {
        let fetched = bench.fetch(&format!("http://{host}/")).await;
        assert_eq!(reason(&fetched.outcome), Reason::BlockedAddress, "{host}");
    }
}
