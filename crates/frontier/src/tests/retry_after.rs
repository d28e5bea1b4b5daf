//! What a crawl waits for when hosts said `Retry-After`.

use telusur_model::{CrawlNo, Host, Moment};

use super::rules::{Plain, no_delay};
use super::sim::{Sim, url};

const CRAWL: CrawlNo = CrawlNo(1);
const ASKED_MS: u64 = 60_000;

/// A crawl of some hosts that all say 503 and `Retry-After`.
fn refused(hosts: u64) -> Sim<Plain> {
    let web = Plain { status: 503, retry_after_ms: Some(ASKED_MS), ..Plain::default() };
    let mut sim = Sim::new(web);
    sim.start(1, no_delay(), None);
    for host in 0..hosts {
        sim.seed(1, url(&format!("h{host}.com"), 0));
    }
    sim
}

/// The hosts that are waited for, and until when.
fn waited_for(sim: &Sim<Plain>) -> Option<(Vec<String>, Moment)> {
    let wait = sim.frontier.waits_for_retry_after(CRAWL)?;
    let mut hosts: Vec<String> = wait.hosts.iter().map(Host::to_string).collect();
    hosts.sort();
    Some((hosts, wait.until))
}

#[test]
fn a_crawl_waits_if_all_hosts_asked_for_it_and_nothing_is_under_way() {
    let mut sim = refused(2);
    assert_eq!(waited_for(&sim), None, "nothing was asked");
    sim.run(Moment(1_000), |sim| sim.log.len() == 2);
    assert_eq!(waited_for(&sim), None, "requests are under way");
    sim.run_until(Moment(1_000));
    let (hosts, until) = waited_for(&sim).unwrap();
    assert_eq!(hosts, ["h0.com", "h1.com"]);
    let first = sim.log.iter().map(|asked| asked.at).min().unwrap();
    assert_eq!(until.ms_since(first), ASKED_MS + 10, "the first of them, after its answer");
    assert!(sim.frontier.waits_for_retry_after(CrawlNo(2)).is_none());
}

#[test]
fn a_host_that_did_not_ask_is_not_waited_for() {
    let mut sim = refused(1);
    sim.run_until(Moment(1_000));
    assert!(waited_for(&sim).is_some());
    (sim.web.status, sim.web.response_ms) = (200, 500);
    sim.seed(1, url("other.com", 0));
    sim.run_until(Moment(1_100));
    assert_eq!(waited_for(&sim), None);
}

#[test]
fn a_paused_crawl_waits_for_nothing() {
    let mut sim = refused(1);
    sim.run_until(Moment(1_000));
    sim.frontier.pause(CRAWL);
    assert_eq!(waited_for(&sim), None);
}

#[test]
fn a_host_that_asked_an_earlier_process_is_left_alone() {
    let mut sim = Sim::new(Plain { pages: 1, ..Plain::default() });
    sim.start(1, no_delay(), None);
    sim.seed(1, url("h0.com", 0));
    sim.frontier.asked_to_wait(&Host::new("h0.com"), Moment(5_000));
    sim.run_to_end();
    assert_eq!(sim.log.iter().map(|asked| asked.at).collect::<Vec<_>>(), [Moment(5_000)]);
}
