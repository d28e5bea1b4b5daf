//! Any web, any order of events: every URL is settled exactly once, nothing is lost.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use telusur_model::{CrawlNo, Fairness, FetchOutcome, FinishReason, Lane, PageUrl, Politeness};
use telusur_model::{Host, Retry, Visit};

use super::sim::{Rng, Sim, Web, failed, page, url};

/// A graph over a few hosts, some of which share an address; outcomes by the dice.
#[derive(Debug)]
struct RandomWeb {
    hosts: u64,
    pages: u64,
    links: Vec<(u64, u64)>,
    trouble_percent: u64,
    addresses: u64,
    response_ms: u64,
}

impl RandomWeb {
    fn url(&self, number: u64) -> PageUrl {
        let number = number % self.pages;
        url(&format!("h{}.com", number % self.hosts), number)
    }

    fn number(url: &PageUrl) -> u64 {
        url.path()[1..].parse().unwrap()
    }

    /// All that can be reached from page 0, if everything is asked for.
    fn reachable(&self) -> BTreeSet<PageUrl> {
        let mut found = BTreeSet::from([self.url(0)]);
        let mut open = vec![self.url(0)];
        while let Some(url) = open.pop() {
            for link in self.links_of(&url) {
                if found.insert(link.clone()) {
                    open.push(link);
                }
            }
        }
        found
    }

    fn links_of(&self, url: &PageUrl) -> Vec<PageUrl> {
        let number = Self::number(url);
        let links = self.links.iter().filter(|(from, _)| from % self.pages == number);
        links.map(|(_, to)| self.url(*to)).collect()
    }
}

impl Web for RandomWeb {
    fn address(&self, host: &Host) -> Option<std::net::IpAddr> {
        let number: u64 = host.as_str()[1..].trim_end_matches(".com").parse().unwrap();
        let low = u8::try_from(number % self.addresses).unwrap();
        // One of the hosts cannot be resolved.
        (number != 3).then(|| std::net::IpAddr::from([10, 0, 0, low]))
    }

    fn connect_ms(&mut self, _visit: &Visit, rng: &mut Rng) -> u64 {
        rng.below(20)
    }

    fn response_ms(&mut self, _visit: &Visit, rng: &mut Rng) -> u64 {
        rng.below(self.response_ms)
    }

    fn outcome(&mut self, visit: &Visit, rng: &mut Rng) -> FetchOutcome {
        if rng.below(100) >= self.trouble_percent {
            return page(visit, 200);
        }
        match rng.below(6) {
            0 => failed(Retry::NotCounted),
            1 => page(visit, 429),
            2 => page(visit, 503),
            // The last attempt always succeeds, so that every page shows its links.
            _ if visit.attempt >= 3 => page(visit, 200),
            3 => page(visit, 500),
            _ => failed(Retry::Later),
        }
    }

    fn links(&mut self, visit: &Visit) -> Vec<PageUrl> {
        self.links_of(&visit.url)
    }

    fn is_hot(&self, url: &PageUrl) -> bool {
        Self::number(url) % 5 == 4
    }
}

fn random_web() -> impl Strategy<Value = RandomWeb> {
    (
        1_u64..7,
        1_u64..120,
        prop::collection::vec((0_u64..120, 0_u64..120), 0..400),
        0_u64..60,
        1_u64..7,
        1_u64..300,
    )
        .prop_map(|(hosts, pages, links, trouble_percent, addresses, response_ms)| RandomWeb {
            hosts,
            pages,
            links,
            trouble_percent,
            addresses,
            response_ms,
        })
}

fn politeness() -> impl Strategy<Value = Politeness> {
    let fairness =
        prop_oneof![Just(Fairness::Equal), Just(Fairness::Weighted), Just(Fairness::None)];
    let delay_ms = prop_oneof![Just(0), 1_u64..3000];
    (delay_ms, 1_u16..4, 1_u16..9, fairness).prop_map(|(delay_ms, per_host, workers, fairness)| {
        Politeness {
            delay_ms,
            per_host,
            workers,
            fairness,
            attempts_max: 200,
            ..Politeness::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_url_is_settled_exactly_once(
        web in random_web(),
        politeness in politeness(),
        head_max in 1_usize..6,
        read_ms in 0_u64..400,
        commit_ms in 0_u64..400,
        restart_at in prop::option::of(0_u64..5_000),
        seed in 1_u64..u64::MAX,
    ) {
        let expect = web.reachable();
        let start = web.url(0);
        let mut sim = Sim::with_head_max(web, head_max);
        sim.rng = Rng(seed);
        sim.spacing_ms = politeness.delay_ms;
        sim.read_ms = read_ms;
        sim.commit_ms = commit_ms;
        let delay_ms = politeness.delay_ms;
        sim.start(1, politeness, None);
        sim.seed(1, start);
        if let Some(moment) = restart_at {
            sim.run_until(telusur_model::Moment(moment));
            let is_over = !sim.ends.is_empty();
            sim.restart(delay_ms);
            if is_over {
                sim.ends.clear();
            }
        }
        sim.run_to_end();
        let settled: BTreeSet<PageUrl> = sim.settled.keys().map(|(_, url)| url.clone()).collect();
        prop_assert_eq!(settled, expect);
        prop_assert!(sim.settled.values().all(|times| *times == 1));
        let ends: Vec<_> = sim.ends.iter().map(|(crawl, why, _)| (*crawl, *why)).collect();
        prop_assert_eq!(ends, vec![(CrawlNo(1), FinishReason::Drained)]);
    }

    #[test]
    fn a_host_is_asked_breadth_first(
        web in random_web(),
        head_max in 1_usize..6,
        read_ms in 0_u64..50,
        seed in 1_u64..u64::MAX,
    ) {
        let pages = web.pages;
        let web = RandomWeb { trouble_percent: 0, links: Vec::new(), ..web };
        let mut sim = Sim::with_head_max(web, head_max);
        sim.rng = Rng(seed);
        sim.read_ms = read_ms;
        sim.start(1, Politeness { delay_ms: 0, ..Politeness::default() }, None);
        for number in 0..pages {
            let url = sim.web.url(number);
            sim.seed(1, url);
        }
        sim.run_to_end();
        let mut last: BTreeMap<Host, _> = BTreeMap::new();
        for asked in &sim.log {
            prop_assert_ne!(asked.place.lane, Lane::Later);
            let before = last.insert(asked.url.host(), asked.place);
            prop_assert!(before < Some(asked.place), "{:?}", asked);
        }
        prop_assert_eq!(u64::try_from(sim.log.len()).unwrap(), pages);
    }
}
