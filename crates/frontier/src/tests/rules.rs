//! The small rules, one by one.

use std::collections::BTreeMap;

use telusur_model::{
    CrawlNo, Fairness, FetchOutcome, Fetched, FinishReason, Host, Lane, Moment, NetworkSign,
    PageUrl, Politeness, Retry, RobotsRules, Visit,
};

use super::sim::{Rng, Sim, Web, chain_link, failed, network_sign, page, url};
use crate::{CrawlStart, Disposition, Frontier, HostStart, Next};

/// One answer for every host, and a fixed number of links.
#[derive(Clone)]
pub(super) struct Plain {
    pub(super) response_ms: u64,
    pub(super) status: u16,
    pub(super) retry_after_ms: Option<u64>,
    pub(super) links: u64,
    pub(super) pages: u64,
    /// Hosts that cannot be reached before this moment (counted in requests).
    pub(super) unreachable_for: BTreeMap<String, u32>,
}

impl Default for Plain {
    fn default() -> Self {
        Self {
            response_ms: 10,
            status: 200,
            retry_after_ms: None,
            links: 4,
            pages: u64::MAX,
            unreachable_for: BTreeMap::new(),
        }
    }
}

impl Web for Plain {
    fn response_ms(&mut self, _visit: &Visit, _rng: &mut Rng) -> u64 {
        self.response_ms
    }

    fn outcome(&mut self, visit: &Visit, _rng: &mut Rng) -> FetchOutcome {
        if let Some(left) = self.unreachable_for.get_mut(visit.url.host_str())
            && *left > 0
        {
            *left -= 1;
            return failed(Retry::Later);
        }
        page(visit, self.status)
    }

    fn retry_after_ms(&self) -> Option<u64> {
        self.retry_after_ms
    }

    fn links(&mut self, visit: &Visit) -> Vec<PageUrl> {
        let number: u64 = visit.url.path()[1..].parse().unwrap();
        let links = (1..=self.links).map(|link| number * self.links + link);
        links
            .filter(|link| *link < self.pages)
            .map(|link| url(visit.url.host_str(), link))
            .collect()
    }

    fn is_hot(&self, url: &PageUrl) -> bool {
        url.as_str().ends_with('7')
    }
}

pub(super) fn no_delay() -> Politeness {
    Politeness { delay_ms: 0, ..Politeness::default() }
}

fn crawl(web: Plain, politeness: Politeness, hosts: u64) -> Sim<Plain> {
    let mut sim = Sim::new(web);
    sim.start(1, politeness, None);
    for host in 0..hosts {
        sim.seed(1, url(&format!("h{host}.com"), 0));
    }
    sim
}

// ---- ends ----

#[test]
fn a_crawl_without_urls_is_drained_at_once() {
    let sim = {
        let mut sim = crawl(Plain::default(), no_delay(), 0);
        sim.run_to_end();
        sim
    };
    assert_eq!(sim.ends, [(CrawlNo(1), FinishReason::Drained, Moment(0))]);
}

#[test]
fn a_crawl_is_drained_when_all_is_committed() {
    let mut sim = crawl(Plain { pages: 300, ..Plain::default() }, no_delay(), 3);
    sim.run_to_end();
    assert_eq!(sim.pages_of(1), 900);
    assert_eq!(sim.ends.len(), 1);
    assert_eq!(sim.ends[0].1, FinishReason::Drained);
    assert_eq!(sim.frontier.in_flight(CrawlNo(1)), 0);
}

#[test]
fn the_page_limit_is_exact() {
    let politeness = Politeness { workers: 64, per_host: 4, ..no_delay() };
    let mut sim = Sim::new(Plain::default());
    sim.start(1, politeness, Some(500));
    for host in 0..40 {
        sim.seed(1, url(&format!("h{host}.com"), 0));
    }
    sim.run_to_end();
    assert_eq!(sim.pages_of(1), 500);
    assert_eq!(sim.requests, 500, "no page was fetched in vain");
    assert_eq!(sim.ends[0].1, FinishReason::MaxPages);
    assert_eq!(sim.ends.len(), 1);
}

#[test]
fn visits_without_a_page_do_not_count_to_the_limit() {
    let mut sim = Sim::new(Plain { status: 404, ..Plain::default() });
    sim.start(1, no_delay(), Some(2));
    for number in 0..10 {
        sim.seed(1, url("a.com", number));
    }
    sim.run_to_end();
    assert_eq!(sim.requests, 10);
    assert_eq!(sim.ends[0].1, FinishReason::Drained);
}

#[test]
fn a_raised_limit_goes_on() {
    let mut sim = Sim::new(Plain::default());
    sim.start(1, no_delay(), Some(5));
    sim.seed(1, url("a.com", 0));
    sim.run_to_end();
    sim.frontier.set_pages_max(CrawlNo(1), Some(8));
    sim.run_to_end();
    assert_eq!(sim.pages_of(1), 8);
    assert_eq!(sim.ends.len(), 2);
}

// ---- order ----

#[test]
fn the_hot_lane_goes_first_then_breadth_first() {
    let mut sim = Sim::new(Plain { links: 0, ..Plain::default() });
    sim.start(1, no_delay(), None);
    for number in 0..200 {
        sim.seed(1, url("a.com", number));
    }
    sim.run_to_end();
    assert_eq!(sim.log.len(), 200);
    assert!(sim.log.is_sorted_by_key(|asked| asked.place));
    assert_eq!(sim.log[19].place.lane, Lane::Hot);
    assert_eq!(sim.log[20].place.lane, Lane::Plain);
}

#[test]
fn a_queue_left_by_an_earlier_run_is_read_to_its_end() {
    let mut sim = Sim::new(Plain { links: 0, ..Plain::default() });
    sim.start(1, no_delay(), None);
    for number in 0..1000 {
        sim.store_quietly(1, url("a.com", number));
    }
    sim.restart(0);
    sim.run_to_end();
    assert_eq!(sim.settled.len(), 1000);
    assert!(sim.log.is_sorted_by_key(|asked| asked.place));
    assert_eq!(sim.ends[0].1, FinishReason::Drained);
}

// ---- caps ----

#[test]
fn workers_and_per_host_are_kept() {
    let mut sim = crawl(Plain::default(), Politeness { workers: 7, ..no_delay() }, 30);
    sim.run_until(Moment(5_000));
    assert_eq!(sim.in_flight_most, 7);

    let mut sim = crawl(Plain::default(), Politeness { per_host: 3, ..no_delay() }, 2);
    sim.run_until(Moment(5_000));
    assert_eq!(sim.in_flight_most, 6);
}

#[test]
fn the_rate_is_kept() {
    for (rate, seconds) in [(0.5, 60), (7.0, 60), (300.0, 5), (1500.0, 2)] {
        let politeness = Politeness { rate_per_second: Some(rate), workers: 300, ..no_delay() };
        let mut sim = crawl(Plain::default(), politeness, 100);
        sim.run_until(Moment(seconds * 1000));
        let expect = rate * seconds as f64;
        let count = sim.requests as f64;
        assert!(count <= expect + 2.0, "{count} at {rate}/s");
        assert!(count >= expect * 0.97 - 1.0, "{count} at {rate}/s");
    }
}

#[test]
fn a_paused_crawl_hands_out_nothing() {
    let mut sim = crawl(Plain::default(), no_delay(), 3);
    sim.run_until(Moment(1_000));
    sim.frontier.pause(CrawlNo(1));
    sim.run_until(Moment(2_000));
    let before = sim.requests;
    assert_eq!(sim.frontier.in_flight(CrawlNo(1)), 0);
    sim.run_until(Moment(10_000));
    assert_eq!(sim.requests, before);
    assert!(sim.ends.is_empty());
    sim.frontier.resume(CrawlNo(1));
    sim.run_until(Moment(11_000));
    assert!(sim.requests > before);
}

#[test]
fn addresses_written_as_hosts_need_no_lookup_and_share_their_gate() {
    struct AllOnOne;
    impl Web for AllOnOne {
        fn address(&self, _host: &Host) -> Option<std::net::IpAddr> {
            Some("127.0.0.1".parse().unwrap())
        }
        fn links(&mut self, visit: &Visit) -> Vec<PageUrl> {
            chain_link(visit, 1)
        }
    }
    let mut sim = Sim::new(AllOnOne);
    sim.spacing_ms = 1000;
    sim.start(1, Politeness::default(), None);
    for host in ["127.0.0.1", "[::ffff:127.0.0.1]", "localhost", "a.test"] {
        sim.seed(1, url(host, 0));
    }
    sim.run_until(Moment(100_500));
    assert!((99..=101).contains(&sim.requests), "{}", sim.requests);
    for (host, pages) in &sim.pages {
        assert!((24..=26).contains(pages), "{host:?} {pages}");
    }
}

#[test]
fn crawls_share_an_address() {
    struct AllOnOne;
    impl Web for AllOnOne {
        fn address(&self, _host: &Host) -> Option<std::net::IpAddr> {
            Some("10.0.0.1".parse().unwrap())
        }
        fn links(&mut self, visit: &Visit) -> Vec<PageUrl> {
            chain_link(visit, 1)
        }
    }
    let mut sim = Sim::new(AllOnOne);
    sim.spacing_ms = 100;
    for no in 1..=4 {
        sim.start(no, Politeness { delay_ms: 100, ..Politeness::default() }, None);
        sim.seed(no, url(&format!("h{no}.com"), 0));
        sim.seed(no, url(&format!("g{no}.com"), 0));
    }
    sim.run_until(Moment(80_000));
    assert!(sim.requests >= 790, "{}", sim.requests);
    for (host, pages) in &sim.pages {
        assert!((90..=110).contains(pages), "{host:?} {pages}");
    }
}

#[test]
fn a_changed_delay_holds_at_once() {
    let mut sim = crawl(Plain::default(), Politeness::default(), 1);
    sim.run_until(Moment(10_500));
    assert_eq!(sim.requests, 11);
    sim.frontier.set_politeness(CrawlNo(1), no_delay());
    sim.run_until(Moment(11_500));
    assert!(sim.requests > 50);
    let before = sim.requests;
    let slow = Politeness { delay_ms: 500, fairness: Fairness::None, ..no_delay() };
    sim.frontier.set_politeness(CrawlNo(1), slow);
    sim.run_until(Moment(21_500));
    assert!((19..=22).contains(&(sim.requests - before)));
}

#[test]
fn the_larger_delay_of_two_crawls_rules() {
    let mut sim = Sim::new(Plain::default());
    sim.start(1, no_delay(), None);
    sim.start(2, Politeness { delay_ms: 200, ..no_delay() }, None);
    for no in 1..=2 {
        sim.seed(no, url("a.com", 0));
    }
    sim.spacing_ms = 200;
    sim.run_until(Moment(10_000));
    assert!((48..=51).contains(&sim.requests), "{}", sim.requests);
    sim.spacing_ms = 0;
    sim.frontier.remove(CrawlNo(2));
    sim.run_until(Moment(11_000));
    assert!(sim.requests > 90, "the delay left with its crawl: {}", sim.requests);
}

#[test]
fn a_removed_crawl_leaves_its_host_polite() {
    let mut sim = Sim::new(Plain { response_ms: 50, ..Plain::default() });
    sim.spacing_ms = 1000;
    sim.start(1, Politeness::default(), None);
    sim.seed(1, url("a.com", 0));
    sim.run_until(Moment(20));
    sim.frontier.remove(CrawlNo(1));
    sim.start(2, Politeness::default(), None);
    sim.seed(2, url("a.com", 0));
    sim.run_until(Moment(5_500));
    assert_eq!(sim.requests, 6);
}

// ---- retries, slowing down, resting ----

fn attempts_at(sim: &Sim<Plain>) -> Vec<Moment> {
    sim.log.iter().map(|asked| asked.at).collect()
}

#[test]
fn a_page_that_fails_is_tried_three_times_with_back_off() {
    let web =
        Plain { unreachable_for: BTreeMap::from([("h0.com".to_owned(), 99)]), ..Plain::default() };
    let mut sim = crawl(web, no_delay(), 1);
    sim.run_to_end();
    let at = attempts_at(&sim);
    assert_eq!(sim.log.iter().map(|asked| asked.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    assert!((2_000..2_600).contains(&at[1].ms_since(at[0])), "{at:?}");
    assert!((8_000..10_100).contains(&at[2].ms_since(at[1])), "{at:?}");
    assert_eq!(sim.settled.values().sum::<u32>(), 1);
    assert_eq!(sim.ends[0].1, FinishReason::Drained);
}

#[test]
fn two_errors_and_then_a_page() {
    let web = Plain {
        unreachable_for: BTreeMap::from([("h0.com".to_owned(), 2)]),
        links: 0,
        ..Plain::default()
    };
    let mut sim = crawl(web, no_delay(), 1);
    sim.run_to_end();
    assert_eq!((sim.requests, sim.pages_of(1)), (3, 1));
}

/// The disposition of the first visit to a host.
fn verdict(outcome: impl Fn(&Visit) -> FetchOutcome, politeness: Politeness) -> Disposition {
    let mut sim = Sim::new(Plain::default());
    sim.start(1, Politeness { robots: RobotsRules::Ignore, ..politeness }, None);
    sim.seed(1, url("a.com", 0));
    sim.frontier.address(&Host::new("a.com"), None, Moment(0));
    let Next::Visit(visit) = sim.frontier.next(Moment(0)) else { panic!("a visit is ready") };
    let fetched = Fetched {
        outcome: outcome(&visit),
        requested_at: Some(Moment(0)),
        took_ms: 10,
        address: None,
        retry_after_ms: None,
        network: network_sign(&outcome(&visit)),
    };
    sim.frontier.finished(&visit, &fetched, Moment(10))
}

#[test]
fn which_outcomes_are_final() {
    for status in [200, 204, 301, 400, 403, 404, 410, 501, 505, 999] {
        assert_eq!(verdict(|visit| page(visit, status), no_delay()), Disposition::Settle);
    }
    for status in [408, 425, 500, 502, 503, 504] {
        let verdict = verdict(|visit| page(visit, status), no_delay());
        assert!(matches!(verdict, Disposition::Retry { counted: true, .. }), "{status}");
    }
    let once = Politeness { attempts_max: 1, ..no_delay() };
    assert_eq!(verdict(|visit| page(visit, 500), once), Disposition::Settle);
    let throttled = verdict(|visit| page(visit, 429), no_delay());
    assert!(matches!(throttled, Disposition::Retry { counted: false, .. }));
    assert_eq!(verdict(|_| failed(Retry::Never), no_delay()), Disposition::Settle);
    let local = verdict(|_| failed(Retry::NotCounted), no_delay());
    assert_eq!(local, Disposition::Retry { after_ms: 1000, counted: false });
}

#[test]
fn a_site_that_says_429_for_ever_comes_to_an_end() {
    let mut sim = Sim::new(Plain { status: 429, ..Plain::default() });
    sim.start(1, no_delay(), None);
    for number in 0..20 {
        sim.seed(1, url("a.com", number));
    }
    sim.run_to_end();
    assert_eq!(sim.settled.len(), 20);
    assert_eq!(sim.ends[0].1, FinishReason::Drained);
    assert!(sim.requests <= 20 * 3 + 15, "{}", sim.requests);
}

#[test]
fn throttling_slows_a_host_down_and_success_speeds_it_up() {
    let mut sim = crawl(Plain { status: 503, ..Plain::default() }, Politeness::default(), 1);
    let host = Host::new("h0.com");
    sim.run(Moment(600_000), |sim| sim.log.len() == 3);
    sim.run_until(Moment(sim.now.0 + 100));
    assert_eq!(sim.frontier.host_delay_ms(CrawlNo(1), &host), Some(8_000));
    sim.web.status = 200;
    sim.seed(1, url("h0.com", 1));
    sim.run(Moment(6_000_000), |sim| sim.log.len() == 150);
    assert_eq!(sim.frontier.host_delay_ms(CrawlNo(1), &host), None);
    let last = attempts_at(&sim);
    assert!(last[149].ms_since(last[148]) <= 1_010);
}

#[test]
fn without_adaptive_nothing_is_learned() {
    let politeness = Politeness { adaptive: false, ..Politeness::default() };
    let web = Plain { status: 503, retry_after_ms: Some(3_600_000), ..Plain::default() };
    let mut sim = crawl(web, politeness, 1);
    sim.run_to_end();
    assert_eq!(sim.frontier.host_delay_ms(CrawlNo(1), &Host::new("h0.com")), None);
    assert!(sim.now < Moment(60_000));
}

#[test]
fn retry_after_silences_the_host() {
    let waited = |retry_after_ms: Option<u64>| {
        let web = Plain { status: 503, retry_after_ms, ..Plain::default() };
        let mut sim = crawl(web, no_delay(), 1);
        sim.seed(1, url("h0.com", 1));
        sim.run(Moment(u64::MAX), |sim| sim.log.len() == 2);
        sim.log[1].at.ms_since(sim.log[0].at)
    };
    assert_eq!(waited(Some(30_000)), 30_010);
    assert_eq!(waited(Some(u64::MAX)), 3_600_010, "an hour at most");
    assert_eq!(waited(None), 1_000, "the slower delay alone");
}

#[test]
fn one_burst_slows_down_once() {
    let politeness = Politeness { per_host: 8, workers: 8, ..no_delay() };
    let mut sim = Sim::new(Plain { status: 429, ..Plain::default() });
    sim.start(1, politeness, None);
    for number in 0..8 {
        sim.seed(1, url("a.com", number));
    }
    sim.run(Moment(100), |_| false);
    assert_eq!(sim.requests, 8);
    assert_eq!(sim.frontier.host_delay_ms(CrawlNo(1), &Host::new("a.com")), Some(1_000));
}

#[test]
fn a_host_that_fails_five_times_rests_and_comes_back() {
    let web = Plain {
        unreachable_for: BTreeMap::from([("h0.com".to_owned(), 7)]),
        links: 0,
        ..Plain::default()
    };
    let mut sim = crawl(web, no_delay(), 1);
    for number in 1..50 {
        sim.seed(1, url("h0.com", number));
    }
    sim.run_to_end();
    let at = attempts_at(&sim);
    assert!(at[4].0 < 1_000, "five failures in a row");
    assert_eq!(at[5].ms_since(at[4]), 10_010, "then a rest");
    assert_eq!(at[6].ms_since(at[5]), 20_010, "and a longer one");
    assert_eq!(at[7].ms_since(at[6]), 40_010);
    assert!(at[8].ms_since(at[7]) < 100, "an answer ends it");
    assert_eq!(sim.pages_of(1), 50, "no URL was lost to the outage");
}

#[test]
fn a_dead_host_does_not_keep_the_crawl_alive() {
    let web = Plain {
        unreachable_for: BTreeMap::from([("h0.com".to_owned(), u32::MAX)]),
        links: 0,
        ..Plain::default()
    };
    let mut sim = crawl(web, no_delay(), 1);
    for number in 1..500 {
        sim.seed(1, url("h0.com", number));
    }
    sim.run_to_end();
    assert_eq!(sim.settled.len(), 500);
    assert!(sim.now < Moment(3_600_000), "{:?}", sim.now);
    assert!(sim.now > Moment(1_800_000), "{:?}", sim.now);
}

#[test]
fn what_was_learned_is_taken_up_again() {
    let mut frontier = Frontier::new();
    let host = Host::new("a.com");
    frontier.start(CrawlStart {
        crawl: CrawlNo(1),
        politeness: Politeness::default(),
        pages_max: None,
        pages_done: 0,
        hosts: vec![HostStart {
            host: host.clone(),
            queued: 0,
            pages: 3,
            delay_ms: Some(5_000),
            next_at: Moment(700),
        }],
        linear: None,
        quiet_until: Moment(0),
    });
    assert_eq!(frontier.host_delay_ms(CrawlNo(1), &host), Some(5_000));
    assert_eq!(frontier.sites(CrawlNo(1)).map(|(_, pages)| pages).collect::<Vec<_>>(), [3]);
}

// ---- odd events ----

fn without_robots() -> Politeness {
    Politeness { robots: RobotsRules::Ignore, ..Politeness::default() }
}

#[test]
fn a_skipped_visit_frees_its_host_without_delay() {
    let mut sim = Sim::new(Plain::default());
    sim.start(1, without_robots(), None);
    sim.seed(1, url("127.0.0.1", 0));
    sim.seed(1, url("127.0.0.1", 1));
    let Next::Visit(first) = sim.frontier.next(Moment(0)) else { panic!("a visit is ready") };
    assert_eq!(sim.frontier.next(Moment(5_000)), Next::Wait(None));
    sim.frontier.skipped(&first, Moment(5_000));
    assert!(matches!(sim.frontier.next(Moment(5_000)), Next::Visit(_)));
}

#[test]
fn a_fetch_to_another_address_than_announced_counts_there() {
    let mut sim = Sim::new(Plain::default());
    sim.start(1, without_robots(), None);
    sim.seed(1, url("a.com", 0));
    sim.seed(1, url("127.0.0.9", 0));
    sim.frontier.pause(CrawlNo(1));
    sim.frontier.address(&Host::new("a.com"), Some("127.0.0.8".parse().unwrap()), Moment(0));
    sim.frontier.resume(CrawlNo(1));
    let mut visits = Vec::new();
    while let Next::Visit(visit) = sim.frontier.next(Moment(0)) {
        visits.push(visit);
    }
    assert_eq!(visits.len(), 2, "two addresses");
    let fetched = |visit: &Visit, at| Fetched {
        outcome: page(visit, 200),
        requested_at: Some(Moment(at)),
        took_ms: 10,
        address: Some("127.0.0.9".parse().unwrap()),
        retry_after_ms: None,
        network: NetworkSign::Alive,
    };
    for (visit, at) in visits.iter().zip([100, 900]) {
        sim.frontier.finished(visit, &fetched(visit, at), Moment(910));
    }
    sim.seed(1, url("a.com", 1));
    sim.seed(1, url("127.0.0.9", 1));
    assert_eq!(sim.frontier.next(Moment(1_200)), Next::Wait(Some(Moment(1_900))));
    assert!(matches!(sim.frontier.next(Moment(1_900)), Next::Visit(_)));
    assert!(matches!(sim.frontier.next(Moment(1_900)), Next::Wait(_)), "one address");
}

/// With several visits in flight the next one does not wait for the end of this one.
#[test]
fn the_delay_counts_from_the_last_request_of_a_visit() {
    let mut sim = Sim::new(Plain::default());
    sim.start(1, Politeness { per_host: 3, ..without_robots() }, None);
    for number in 0..3 {
        sim.seed(1, url("127.0.0.9", number));
    }
    let host = Host::new("127.0.0.9");
    assert!(matches!(sim.frontier.next(Moment(0)), Next::Visit(_)));
    sim.frontier.requested(&host, Moment(10));
    assert_eq!(sim.frontier.next(Moment(20)), Next::Wait(Some(Moment(1_010))));
    sim.frontier.requested_again(&host, Moment(30));
    assert_eq!(sim.frontier.next(Moment(30)), Next::Wait(Some(Moment(1_030))));
    assert!(matches!(sim.frontier.next(Moment(1_030)), Next::Visit(_)));
}

#[test]
fn events_of_a_removed_crawl_are_ignored() {
    let mut sim = crawl(Plain::default(), no_delay(), 5);
    sim.run_until(Moment(500));
    sim.frontier.remove(CrawlNo(1));
    let before = sim.requests;
    sim.run_to_end();
    assert!(sim.requests <= before + 5);
    assert_eq!(sim.frontier.in_flight(CrawlNo(1)), 0);
    assert_eq!(sim.frontier.sites(CrawlNo(1)).count(), 0);
}
