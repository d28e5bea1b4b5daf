//! Sites and crawls that are blocked because of what their pages do after the fetch.

use std::net::{IpAddr, Ipv4Addr};

use telusur_model::{CrawlNo, Fairness, FinishReason, Host, Moment, Politeness, Site};

use super::sim::{Rng, Sim, Web, own_address, url};
use crate::{PageCost, Parked, ParseCharge};

const KILLED: PageCost = PageCost { cpu_ms: 100, has_killed: true };
const READ: PageCost = PageCost { cpu_ms: 1, has_killed: false };

/// Hosts have addresses of their own, or one together.
struct Plain {
    is_shared: bool,
}

impl Web for Plain {
    fn address(&self, host: &Host) -> Option<IpAddr> {
        Some(if self.is_shared { Ipv4Addr::LOCALHOST.into() } else { own_address(host) })
    }
}

fn politeness(fairness: Fairness) -> Politeness {
    Politeness { delay_ms: 100, fairness, ..Politeness::default() }
}

fn wild() -> Site {
    Host::new("h0.wild.test").site()
}

fn wild_host(number: u64) -> String {
    format!("h{number}.wild.test")
}

fn good_host(number: u64) -> String {
    format!("good{number}.test")
}

/// Crawl 1: a site of ten hosts and three others, with `pages` pages each.
fn sim(fairness: Fairness, is_shared: bool, pages: u64) -> Sim<Plain> {
    let mut sim = Sim::new(Plain { is_shared });
    sim.start(1, politeness(fairness), None);
    let hosts: Vec<String> = (0..10).map(wild_host).chain((0..3).map(good_host)).collect();
    for page in 0..pages {
        for host in &hosts {
            sim.seed(1, url(host, page));
        }
    }
    sim
}

fn asked_of_site<W>(sim: &Sim<W>, site: &Site) -> usize {
    sim.log.iter().filter(|asked| asked.url.site() == *site).count()
}

#[test]
fn others_are_served_while_a_site_is_blocked() {
    for fairness in [Fairness::Equal, Fairness::Weighted, Fairness::None] {
        for is_shared in [false, true] {
            let mut sim = sim(fairness, is_shared, 40);
            // Some hosts of the site have stepped into line by then, and into that of the address.
            sim.run(Moment(u64::MAX), |sim| sim.log.len() >= 20);
            sim.frontier.block_site(&wild(), true);
            let before = asked_of_site(&sim, &wild());
            sim.run_to_end();
            let case = format!("{fairness:?}, shared {is_shared}");
            let after = asked_of_site(&sim, &wild());
            // Those that were handed out before are under way.
            assert!(after <= before + 10, "{case}: {before} {after}");
            let good = (0..3).map(|it| sim.pages[&(CrawlNo(1), Host::new(&good_host(it)))]);
            assert_eq!(good.collect::<Vec<_>>(), [40; 3], "{case}");
            assert!(sim.ends.is_empty(), "{case}: the rest still waits");
            sim.frontier.block_site(&wild(), false);
            sim.run_to_end();
            assert_eq!(sim.pages_of(1), 13 * 40, "{case}");
            assert_eq!(sim.ends[0].1, FinishReason::Drained, "{case}");
        }
    }
}

/// What a site missed while it was blocked is not caught up at the others' expense.
#[test]
fn others_do_not_stand_still_when_a_site_is_released() {
    let mut sim = sim(Fairness::Equal, false, 100);
    sim.frontier.block_site(&wild(), true);
    sim.run_until(Moment(5_000));
    sim.frontier.block_site(&wild(), false);
    let asked = |sim: &Sim<Plain>| {
        sim.log.iter().filter(|asked| asked.url.host_str().starts_with("good")).count()
    };
    let before = asked(&sim);
    sim.run_until(Moment(6_000));
    assert!(asked(&sim) >= before + 15, "{before} {}", asked(&sim));
}

#[test]
fn a_blocked_crawl_makes_no_other_wait_and_goes_on() {
    let mut sim = sim(Fairness::Equal, false, 10);
    sim.start(2, politeness(Fairness::Equal), None);
    for page in 0..10 {
        sim.seed(2, url("other.test", page));
    }
    sim.frontier.block_crawl(CrawlNo(1), true);
    sim.run_to_end();
    assert_eq!((sim.pages_of(1), sim.pages_of(2)), (0, 10));
    sim.frontier.block_crawl(CrawlNo(1), false);
    sim.run_to_end();
    assert_eq!(sim.pages_of(1), 13 * 10);
}

/// A site that is met later, or by another crawl, while it is blocked.
#[test]
fn a_block_holds_for_every_crawl() {
    let mut sim = Sim::new(Plain { is_shared: false });
    sim.frontier.block_site(&wild(), true);
    for crawl in 1..=2 {
        sim.start(crawl, politeness(Fairness::Equal), None);
        sim.seed(crawl, url(&wild_host(u64::from(crawl)), 0));
    }
    sim.run_to_end();
    assert_eq!(sim.log.len(), 0);
    assert_eq!(sim.frontier.backlogged_sites(CrawlNo(2)).collect::<Vec<_>>(), [&wild()]);
    sim.frontier.block_site(&wild(), false);
    sim.run_to_end();
    assert_eq!((sim.pages_of(1), sim.pages_of(2)), (1, 1));
}

/// Sites are blocked and released in any order: once all is released, nothing is left.
#[test]
fn nothing_is_stuck_after_any_blocks() {
    for seed in 1..=40 {
        let mut rng = Rng(seed);
        let mut sim = sim(Fairness::Equal, seed % 2 == 0, 8);
        sim.start(2, politeness(Fairness::Weighted), None);
        for page in 0..8 {
            sim.seed(2, url(&wild_host(20), page));
            sim.seed(2, url(&good_host(0), page));
        }
        let sites = [wild(), Host::new(&good_host(0)).site(), Host::new(&good_host(1)).site()];
        for step in 1..60 {
            let is_blocked = rng.below(2) == 0;
            match rng.below(4) {
                0 => sim.frontier.block_crawl(CrawlNo(1), is_blocked),
                1 if is_blocked => sim.frontier.pause(CrawlNo(2)),
                1 => sim.frontier.resume(CrawlNo(2)),
                _ => {
                    let site = usize::try_from(rng.below(3)).unwrap();
                    sim.frontier.block_site(&sites[site], is_blocked);
                }
            }
            sim.run_until(Moment(step * 50));
        }
        for site in &sites {
            sim.frontier.block_site(site, false);
        }
        sim.frontier.block_crawl(CrawlNo(1), false);
        sim.frontier.resume(CrawlNo(2));
        sim.run_to_end();
        assert_eq!((sim.pages_of(1), sim.pages_of(2)), (13 * 8, 2 * 8), "seed {seed}");
        assert_eq!(sim.ends.len(), 2, "seed {seed}");
    }
}

/// Each host has killed once or twice, which is forgiven to a host; but they are of one site.
#[test]
fn a_site_whose_hosts_kill_the_parser_is_parked_and_given_up() {
    let mut sim = sim(Fairness::Equal, false, 40);
    sim.run_until(Moment(1_000));
    let now = sim.now;
    let mut parsed =
        |number, cost, now| sim.frontier.parsed(&Host::new(&wild_host(number)), cost, now);
    for number in 0..4 {
        assert!(matches!(parsed(number, KILLED, now), ParseCharge::Quiet { .. }));
    }
    assert!(matches!(parsed(3, KILLED, now), ParseCharge::Quiet { .. }), "no fifth host");
    let parked = |ms, kills| ParseCharge::SiteParked { ms, kills };
    assert_eq!(parsed(4, KILLED, now), parked(Some(60_000), 6));
    let is_parked = Some(Parked { left_ms: Some(60_000), kills: 6 });
    assert_eq!(sim.frontier.parked(&Host::new(&wild_host(9))), is_parked);
    assert_eq!(sim.frontier.parked(&Host::new(&good_host(0))), None);
    assert!(sim.frontier.watches_cost(&Host::new(&wild_host(9))));
    assert_eq!(
        sim.frontier.parked_sites(CrawlNo(1)).map(|(site, _)| site.clone()).next(),
        Some(wild())
    );
    let before = asked_of_site(&sim, &wild());
    sim.run_until(Moment(60_500));
    assert!(asked_of_site(&sim, &wild()) <= before + 10, "only what was under way");
    assert_eq!(sim.pages[&(CrawlNo(1), Host::new(&good_host(0)))], 40);
    // It is tried again by itself, for longer each time that it kills.
    sim.run_until(Moment(61_500));
    assert!(asked_of_site(&sim, &wild()) > before + 10);
    let mut now = sim.now;
    for ms in [240_000, 960_000] {
        let charge = sim.frontier.parsed(&Host::new(&wild_host(5)), KILLED, now);
        assert!(matches!(charge, ParseCharge::SiteParked { ms: Some(it), .. } if it == ms));
        now = now.plus_ms(ms);
    }
    let charge = sim.frontier.parsed(&Host::new(&wild_host(6)), KILLED, now);
    assert_eq!(charge, parked(None, 9));
    let given_up = Some(Parked { left_ms: None, kills: 9 });
    assert_eq!(sim.frontier.parked(&Host::new(&wild_host(9))), given_up);
    // The rest is handed out, to be refused.
    sim.now = now;
    sim.run_to_end();
    assert_eq!(sim.ends.len(), 1);
}

#[test]
fn a_page_that_can_be_read_releases_its_site() {
    let mut sim = sim(Fairness::Equal, false, 40);
    sim.run_until(Moment(1_000));
    let now = sim.now;
    for number in 0..5 {
        sim.frontier.parsed(&Host::new(&wild_host(number)), KILLED, now);
    }
    let other = Host::new(&wild_host(9));
    assert!(sim.frontier.parked(&other).is_some());
    sim.frontier.parsed(&other, READ, now);
    assert_eq!(sim.frontier.parked(&other), None);
    assert!(!sim.frontier.watches_cost(&other));
    let before = asked_of_site(&sim, &wild());
    sim.run_until(Moment(2_000));
    assert!(asked_of_site(&sim, &wild()) >= before + 5);
}

/// Wherever the crawl ends, nothing of the park stays behind; and a new one tries the site again.
#[test]
fn a_crawl_that_begins_tries_a_parked_site_again() {
    let mut sim = sim(Fairness::Equal, false, 40);
    sim.run_until(Moment(1_000));
    let now = sim.now;
    for number in 0..5 {
        sim.frontier.parsed(&Host::new(&wild_host(number)), KILLED, now);
    }
    sim.frontier.remove(CrawlNo(1));
    sim.start(2, politeness(Fairness::Equal), None);
    sim.seed(2, url(&wild_host(7), 0));
    sim.run_until(Moment(1_500));
    assert_eq!(sim.pages_of(2), 1);
}
