//! Sites share a crawl, and crawls share the process, as promised.

use std::collections::BTreeMap;

use telusur_model::{CrawlNo, Fairness, Moment, PageUrl, Politeness, Site, Visit, jain_index};

use super::sim::{Rng, Sim, Web, url};

/// Sites with a response time each, and a number of links on every page.
struct Sites(BTreeMap<&'static str, Manner>);

#[derive(Clone, Copy)]
struct Manner {
    response_ms: u64,
    links: u64,
}

impl Sites {
    fn manner(&self, visit: &Visit) -> Manner {
        self.0[visit.url.host_str()]
    }
}

impl Web for Sites {
    fn response_ms(&mut self, visit: &Visit, rng: &mut Rng) -> u64 {
        let ms = self.manner(visit).response_ms;
        ms - ms / 10 + rng.below(ms / 5 + 1)
    }

    fn links(&mut self, visit: &Visit) -> Vec<PageUrl> {
        let number: u64 = visit.url.path()[1..].parse().unwrap();
        let links = self.manner(visit).links;
        (1..=links).map(|link| url(visit.url.host_str(), number * links + link)).collect()
    }
}

fn sites(manners: &[(&'static str, u64, u64)]) -> Sites {
    let manners = manners.iter();
    Sites(
        manners.map(|&(site, response_ms, links)| (site, Manner { response_ms, links })).collect(),
    )
}

fn sim(sites: Sites, fairness: Fairness, workers: u16) -> Sim<Sites> {
    let mut sim = Sim::new(sites);
    let politeness = Politeness { delay_ms: 0, workers, fairness, ..Politeness::default() };
    sim.start(1, politeness, None);
    let names: Vec<_> = sim.web.0.keys().copied().collect();
    for name in names {
        sim.seed(1, url(name, 0));
    }
    sim
}

/// Pages of each site when the crawl has this many.
fn shares(sim: &mut Sim<Sites>, pages: u64) -> Vec<u64> {
    sim.run(Moment(u64::MAX), |sim| sim.pages_of(1) >= pages);
    sim.frontier.sites(CrawlNo(1)).map(|(_, pages)| pages).collect()
}

fn unequal_three() -> Sites {
    sites(&[("quick.example", 10, 3), ("slow.test", 100, 3), ("rich.invalid", 100, 30)])
}

#[test]
fn equal_shares_for_unequal_sites() {
    for workers in [3, 4, 8, 16] {
        let mut sim = sim(unequal_three(), Fairness::Equal, workers);
        let shares = shares(&mut sim, 1000);
        assert_eq!(shares.len(), 3);
        let index = jain_index(shares.iter().copied());
        assert!(index >= 0.99, "{workers} workers: {shares:?} {index}");
    }
}

#[test]
fn equal_shares_with_fewer_workers_than_sites() {
    let mut sim = sim(unequal_three(), Fairness::Equal, 1);
    let shares = shares(&mut sim, 1000);
    assert!(jain_index(shares.iter().copied()) >= 0.999, "{shares:?}");
}

#[test]
fn equal_shares_where_pages_come_one_by_one() {
    let chains =
        sites(&[("quick.example", 10, 1), ("slow.test", 100, 1), ("rich.invalid", 50, 20)]);
    let mut sim = sim(chains, Fairness::Equal, 8);
    let shares = shares(&mut sim, 1000);
    assert!(jain_index(shares.iter().copied()) >= 0.99, "{shares:?}");
}

#[test]
fn weighted_lets_the_quick_site_run_ahead() {
    let mut sim = sim(unequal_three(), Fairness::Weighted, 8);
    let shares = shares(&mut sim, 1000);
    let quick = shares.iter().copied().max().unwrap();
    assert!(quick > 700, "no site waits for the slower ones: {shares:?}");
}

#[test]
fn weighted_serves_the_least_served_first_when_workers_are_short() {
    // One worker, equal response times: sites that may be asked share equally, however many links
    // its pages have.
    let twins = sites(&[("poor.example", 10, 2), ("rich.test", 10, 20)]);
    let mut sim = sim(twins, Fairness::Weighted, 1);
    let shares = shares(&mut sim, 400);
    assert!(shares[0].abs_diff(shares[1]) <= 2, "{shares:?}");
}

#[test]
fn without_fairness_many_links_bring_many_pages() {
    let twins = sites(&[("poor.example", 10, 2), ("rich.test", 10, 20)]);
    let mut sim = sim(twins, Fairness::None, 1);
    let shares = shares(&mut sim, 400);
    assert!(shares[1] > 4 * shares[0], "first come, first served: {shares:?}");
}

#[test]
fn a_very_slow_site_slows_nobody() {
    const NAMES: [&str; 10] = [
        "a.example",
        "b.test",
        "c.invalid",
        "d.com",
        "e.org",
        "f.net",
        "g.id",
        "h.de",
        "i.fr",
        "j.uk",
    ];
    let rate = |with_slow: bool| {
        let mut manners: Vec<_> = NAMES.iter().map(|&name| (name, 50, 3)).collect();
        if with_slow {
            manners.push(("slow.io", 5000, 3));
        }
        let mut sim = sim(sites(&manners), Fairness::Equal, 32);
        sim.run_until(Moment(60_000));
        let others = sim.log.iter().filter(|asked| asked.url.host_str() != "slow.io");
        (others.count(), sim.requests)
    };
    let (solo, _) = rate(false);
    let (beside, all) = rate(true);
    assert!(beside * 10 >= solo * 9, "{beside} of {solo}");
    assert!(all - beside as u64 >= 10, "the slow site is still asked");
}

#[test]
fn nobody_waits_longer_than_two_seconds_for_a_visit_in_flight() {
    let mut sim =
        sim(sites(&[("quick.example", 10, 3), ("stuck.test", 60_000, 3)]), Fairness::Equal, 8);
    sim.run_until(Moment(1_900));
    assert_eq!(sim.requests, 9 + 1, "eight ahead of the one in flight");
    sim.run_until(Moment(4_000));
    assert!(sim.requests > 100, "{}", sim.requests);
}

#[test]
fn a_late_site_takes_its_turn_even_where_all_are_slow() {
    const NAMES: [&str; 7] =
        ["a.example", "b.test", "c.invalid", "d.com", "e.org", "f.net", "late.id"];
    let manners: Vec<_> = NAMES.iter().map(|&name| (name, 1000, 3)).collect();
    let mut sim = Sim::new(sites(&manners));
    // One visit a second for sites that could each be asked every three seconds.
    sim.start(1, Politeness { delay_ms: 3000, workers: 1, ..Politeness::default() }, None);
    for name in &NAMES[..6] {
        sim.seed(1, url(name, 0));
    }
    sim.run_until(Moment(600_000));
    sim.seed(1, url("late.id", 0));
    sim.run_until(Moment(670_000));
    let late = sim.log.iter().filter(|asked| asked.url.host_str() == "late.id").count();
    assert!((8..=12).contains(&late), "a seventh of seventy: {late}");
}

#[test]
fn a_long_delay_of_one_host_slows_nobody() {
    let rate = |delay_ms: Option<u64>| {
        let mut sim = Sim::new(sites(&[("a.example", 50, 3), ("b.test", 50, 3)]));
        let politeness = Politeness { delay_ms: 0, ..Politeness::default() };
        let hosts = delay_ms.map(|ms| crate::HostStart {
            host: url("a.example", 0).host(),
            queued: 0,
            pages: 0,
            delay_ms: Some(ms),
            next_at: Moment(0),
        });
        sim.frontier.start(crate::CrawlStart {
            crawl: CrawlNo(1),
            politeness,
            pages_max: None,
            pages_done: 0,
            hosts: hosts.into_iter().collect(),
            linear: None,
            quiet_until: Moment(0),
        });
        sim.seed(1, url("a.example", 0));
        sim.seed(1, url("b.test", 0));
        sim.run_until(Moment(60_000));
        sim.log.iter().filter(|asked| asked.url.host_str() == "b.test").count()
    };
    let (solo, beside) = (rate(None), rate(Some(60_000)));
    assert!(beside * 10 >= solo * 9, "{beside} of {solo}");
}

#[test]
fn a_site_that_joins_late_is_not_owed_the_past() {
    let three = [("a.example", 20, 3), ("b.test", 20, 3), ("late.invalid", 20, 3)];
    let mut sim = Sim::new(sites(&three));
    sim.start(1, sim_politeness(), None);
    sim.seed(1, url("a.example", 0));
    sim.seed(1, url("b.test", 0));
    sim.run_until(Moment(20_000));
    let before = sim.requests;
    sim.seed(1, url("late.invalid", 0));
    sim.run_until(Moment(22_000));
    let of_late =
        sim.log.iter().filter(|asked| asked.url.host_str() == "late.invalid").count() as u64;
    let of_others = sim.requests - before - of_late;
    assert!(of_others >= of_late, "the others go on: {of_others} beside {of_late}");
    assert!(of_late > 50, "{of_late}");
}

fn sim_politeness() -> Politeness {
    Politeness { delay_ms: 0, workers: 8, ..Politeness::default() }
}

#[test]
fn a_site_of_redirects_holds_up_nobody() {
    struct Redirects(Sites);
    impl Web for Redirects {
        fn response_ms(&mut self, visit: &Visit, rng: &mut Rng) -> u64 {
            self.0.response_ms(visit, rng)
        }
        fn links(&mut self, visit: &Visit) -> Vec<PageUrl> {
            self.0.links(visit)
        }
        fn outcome(&mut self, visit: &Visit, _rng: &mut Rng) -> telusur_model::FetchOutcome {
            if visit.url.host_str() == "maze.example" {
                let to = super::sim::chain_link(visit, 1).remove(0);
                return telusur_model::FetchOutcome::Redirected { status: 302, to };
            }
            super::sim::page(visit, 200)
        }
    }
    let mut sim = Sim::new(Redirects(sites(&[("maze.example", 50, 1), ("good.test", 50, 3)])));
    sim.start(1, sim_politeness(), None);
    sim.seed(1, url("maze.example", 0));
    sim.seed(1, url("good.test", 0));
    sim.run_until(Moment(60_000));
    let good = sim.log.iter().filter(|asked| asked.url.host_str() == "good.test").count();
    assert!(good > 1000, "{good}");
}

#[test]
fn crawls_share_a_host_equally() {
    let mut sim = Sim::new(sites(&[("a.example", 10, 3)]));
    for no in 1..=3 {
        sim.start(no, Politeness { delay_ms: 100, ..Politeness::default() }, None);
        sim.seed(no, url("a.example", 0));
    }
    sim.spacing_ms = 100;
    sim.run_until(Moment(60_000));
    for no in 1..=3 {
        let count = sim.log.iter().filter(|asked| asked.crawl.0 == no).count();
        assert!((180..=220).contains(&count), "crawl {no}: {count}");
    }
}

#[test]
fn a_small_crawl_beside_big_ones_takes_at_most_twice_its_time() {
    const NAMES: [&str; 4] = ["a.example", "b.test", "c.invalid", "d.com"];
    let took = |with_big: bool| {
        let manners: Vec<_> = NAMES.iter().map(|&name| (name, 20, 3)).collect();
        let mut sim = Sim::new(sites(&manners));
        let politeness = Politeness { delay_ms: 100, ..Politeness::default() };
        if with_big {
            sim.start(1, politeness.clone(), None);
            for name in NAMES {
                sim.seed(1, url(name, 0));
            }
            sim.run_until(Moment(10_000));
        }
        let started_at = sim.now;
        sim.start(2, politeness, Some(40));
        for name in NAMES {
            sim.seed(2, url(name, 0));
        }
        sim.run(Moment(1_000_000), |sim| !sim.ends.is_empty());
        sim.ends[0].2.ms_since(started_at)
    };
    let (solo, beside) = (took(false), took(true));
    assert!(beside <= 2 * solo, "{beside} ms beside, {solo} ms alone");
}

#[test]
fn service_survives_a_restart() {
    let mut sim = sim(unequal_three(), Fairness::Equal, 8);
    shares(&mut sim, 500);
    sim.restart(0);
    let shares = shares(&mut sim, 1000);
    assert!(jain_index(shares.iter().copied()) >= 0.99, "{shares:?}");
}

/// What is shown of the sites is kept up to date page by page: never another list than all of them sorted.
#[test]
fn the_sites_with_the_most_pages_are_known_at_every_moment() {
    const NAMES: [&str; 15] = [
        "a.com", "b.com", "c.com", "d.com", "e.com", "f.com", "g.com", "h.com", "i.com", "j.com",
        "k.com", "l.com", "m.com", "n.com", "o.com",
    ];
    let manners: Vec<_> = (0..).zip(NAMES).map(|(at, name)| (name, 150 - 9 * at, 3)).collect();
    let mut sim = sim(sites(&manners), Fairness::None, 8);
    for pages in (0..1_000).step_by(7) {
        sim.run(Moment(u64::MAX), |sim| sim.pages_of(1) >= pages);
        let mut all: Vec<(&Site, u64)> = sim.frontier.sites(CrawlNo(1)).collect();
        all.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(right.0)));
        let shown = sim.frontier.site_shares(CrawlNo(1)).unwrap();
        assert_eq!(shown.sites, all.len() as u64);
        let index = jain_index(all.iter().map(|(_, pages)| *pages));
        assert!((shown.fairness_index - index).abs() < 1e-12, "{pages} pages");
        all.truncate(10);
        assert_eq!(shown.top, all, "{pages} pages");
    }
}
