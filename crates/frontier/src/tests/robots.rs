//! Rules of origins, prerequisites for them, and workers that wait in vain.

use telusur_model::{
    CrawlNo, Door, Fetched, Host, Lane, Moment, NetworkSign, PageUrl, Politeness, Purpose,
    QueuePlace, RobotsRules, Timestamp, UrlKey, Via, Visit,
};

use super::rules::{Plain, no_delay};
use super::sim::{Sim, page, url};
use crate::{Disposition, Next, RobotsKnown};

fn known(until_ms: u64) -> RobotsKnown {
    RobotsKnown { until: Moment(until_ms), crawl_delay_ms: None }
}

#[test]
fn nothing_is_asked_of_an_origin_before_its_rules_are_known() {
    let mut sim = Sim::new(Plain::default());
    sim.start(1, no_delay(), None);
    let page = url("127.0.0.1", 0);
    sim.seed(1, page.clone());
    let need = Next::NeedRobots { crawl: CrawlNo(1), url: page.clone() };
    assert_eq!(sim.frontier.next(Moment(0)), need);
    assert_eq!(sim.frontier.next(Moment(9_000)), Next::Wait(None), "asked once");
    sim.frontier.robots(CrawlNo(1), &page.host(), Door::of(&page), known(10_000));
    let Next::Visit(visit) = sim.frontier.next(Moment(9_000)) else { panic!("it may go out") };
    sim.frontier.skipped(&visit, Moment(9_000));
    sim.seed(1, url("127.0.0.1", 1));
    let need = Next::NeedRobots { crawl: CrawlNo(1), url: url("127.0.0.1", 1) };
    assert_eq!(sim.frontier.next(Moment(10_000)), need, "the rules have expired");
}

#[test]
fn each_origin_of_a_host_has_rules_of_its_own() {
    let mut sim = Sim::new(Plain::default());
    sim.start(1, no_delay(), None);
    let page = |port: u16| PageUrl::parse(&format!("http://127.0.0.1:{port}/")).unwrap();
    sim.seed(1, page(8001));
    sim.frontier.robots(CrawlNo(1), &page(8001).host(), Door::of(&page(8001)), known(1_000));
    assert!(matches!(sim.frontier.next(Moment(0)), Next::Visit(_)));
    sim.seed(1, page(8002));
    let need = Next::NeedRobots { crawl: CrawlNo(1), url: page(8002) };
    let next = std::iter::repeat_with(|| sim.frontier.next(Moment(0)));
    let mut until_wait = next.take_while(|next| !matches!(next, Next::Wait(_)));
    assert!(until_wait.any(|next| next == need), "while the host is busy");
}

#[test]
fn prerequisites_go_first_and_need_no_rules() {
    let mut sim = Sim::new(Plain::default());
    sim.start(1, no_delay(), None);
    sim.seed(1, url("127.0.0.1", 0));
    assert!(matches!(sim.frontier.next(Moment(0)), Next::NeedRobots { .. }));
    let prerequisite = prerequisite("http://127.0.0.1/robots.txt");
    sim.frontier.prerequisite(prerequisite.clone(), Some(Moment(50)));
    assert_eq!(sim.frontier.next(Moment(0)), Next::Wait(Some(Moment(50))));
    assert_eq!(sim.frontier.next(Moment(50)), Next::Visit(prerequisite.clone()));
    let fetched = Fetched {
        outcome: page(&prerequisite, 404),
        requested_at: Some(Moment(50)),
        took_ms: 1,
        address: None,
        retry_after_ms: None,
        network: NetworkSign::Alive,
    };
    assert_eq!(sim.frontier.finished(&prerequisite, &fetched, Moment(51)), Disposition::Settle);
    sim.frontier.committed(CrawlNo(1), &prerequisite.url.host(), prerequisite.place, false);
    assert_eq!(sim.frontier.in_flight(CrawlNo(1)), 0);
    sim.frontier.robots(
        CrawlNo(1),
        &prerequisite.url.host(),
        Door::of(&prerequisite.url),
        known(1_000),
    );
    assert!(matches!(sim.frontier.next(Moment(51)), Next::Visit(visit) if visit.place.seq > 0));
}

fn prerequisite(address: &str) -> Visit {
    let url = PageUrl::parse(address).unwrap();
    Visit {
        crawl: CrawlNo(1),
        purpose: Purpose::Robots,
        key: UrlKey(0),
        place: QueuePlace { lane: Lane::Prerequisite, order: 0, seq: 0 },
        url,
        depth: 0,
        hops_outside: 0,
        via: Via::Link,
        found_at: Timestamp(0),
        referrer: None,
        redirects: Vec::new(),
        lastmod: None,
        attempt: 1,
    }
}

#[test]
fn a_crawl_delay_is_kept_as_far_as_the_crawl_grants_it() {
    for (asked_ms, kept_ms) in [(5_000, 5_000), (90_000, 60_000), (200, 1_000)] {
        let mut sim = Sim::new(Plain { pages: 0, ..Plain::default() });
        sim.spacing_ms = kept_ms;
        sim.crawl_delay_ms = Some(asked_ms);
        sim.start(1, Politeness::default(), None);
        (0..4).for_each(|number| sim.seed(1, url("a.com", number)));
        sim.run_to_end();
        assert_eq!(sim.requests, 4);
        assert!(sim.now.0 >= 3 * kept_ms && sim.now.0 < 4 * kept_ms + 2_000, "{:?}", sim.now);
        let learned = sim.frontier.host_delay_ms(CrawlNo(1), &Host::new("a.com"));
        assert_eq!(learned, (kept_ms > 1_000).then_some(kept_ms));
    }
}

#[test]
fn silent_servers_give_their_workers_back() {
    let politeness = || Politeness {
        workers: 2,
        robots: RobotsRules::Ignore,
        delay_ms: 0,
        ..Default::default()
    };
    let visits_in = |politeness: Politeness, ms: u64| {
        let mut sim = Sim::new(Plain::default());
        sim.start(1, politeness, None);
        (1..=9).for_each(|host| sim.seed(1, url(&format!("127.0.0.{host}"), 0)));
        let mut visits = 0;
        for now in (0..=ms).step_by(500) {
            while matches!(sim.frontier.next(Moment(now)), Next::Visit(_)) {
                visits += 1;
            }
        }
        visits
    };
    assert_eq!(visits_in(politeness(), 0), 2, "two workers");
    assert_eq!(visits_in(politeness(), 500), 4, "the first two have heard nothing");
    // Three are waited for, and one of the two workers is for hosts that answer.
    assert_eq!(visits_in(Politeness { silent_max: 3, ..politeness() }, 60_000), 4);
    assert_eq!(visits_in(Politeness { silent_max: 0, ..politeness() }, 60_000), 2, "a hard limit");
}
