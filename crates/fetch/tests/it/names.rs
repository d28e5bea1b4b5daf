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
    let bench = Bench::new();
    bench.names.add("cname.test", &["169.254.169.254"]);
    for host in ["169.254.169.254", "metadata.google.internal", "[fd00:ec2::254]", "cname.test"] {
        let fetched = bench.fetch(&format!("http://{host}/latest/meta-data/")).await;
        assert_eq!(reason(&fetched.outcome), Reason::BlockedAddress, "{host}");
    }
}

#[tokio::test]
async fn ports_of_other_services_are_refused() {
    let bench = Bench::new();
    for port in [0, 22, 25, 6379, 6667] {
        let fetched = bench.fetch(&format!("http://127.0.0.1:{port}/")).await;
        assert_eq!(reason(&fetched.outcome), Reason::BlockedPort, "{port}");
    }
}

#[tokio::test]
async fn one_port_of_one_name_can_be_opened() {
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
