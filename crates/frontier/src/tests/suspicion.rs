//! Whether the web is at fault, or we are.

use std::cell::Cell;
use std::rc::Rc;

use telusur_model::{
    CrawlNo, FetchOutcome, Moment, NetworkSign, PageUrl, Politeness, Retry, Visit,
};

use super::rules::{Plain, no_delay};
use super::sim::{Rng, Sim, Web, chain_link, failed, network_sign, page, url};

/// A web in which everybody answers until some moment, and from another one on again.
#[derive(Clone)]
struct Outage {
    now: Rc<Cell<u64>>,
    from_ms: u64,
    to_ms: u64,
    /// How soon a visit fails in between.
    fails_ms: u64,
    has_links: bool,
}

impl Outage {
    fn is_now(&self) -> bool {
        (self.from_ms..self.to_ms).contains(&self.now.get())
    }
}

impl Web for Outage {
    fn outcome(&mut self, visit: &Visit, _rng: &mut Rng) -> FetchOutcome {
        if self.is_now() { failed(Retry::Later) } else { page(visit, 200) }
    }

    fn response_ms(&mut self, _visit: &Visit, _rng: &mut Rng) -> u64 {
        if self.is_now() { self.fails_ms } else { 10 }
    }

    fn links(&mut self, visit: &Visit) -> Vec<PageUrl> {
        if self.has_links { chain_link(visit, 1) } else { Vec::new() }
    }
}

#[test]
fn an_outage_of_the_network_burns_no_attempts() {
    let now = Rc::new(Cell::new(0));
    let web = Outage {
        now: now.clone(),
        from_ms: 3_000,
        to_ms: 1_800_000,
        fails_ms: 10,
        has_links: false,
    };
    let mut sim = Sim::new(web);
    sim.start(1, Politeness::default(), None);
    for host in 1..=20 {
        (0..10).for_each(|number| sim.seed(1, url(&format!("h{host}.com"), number)));
    }
    sim.run(Moment(4_000_000), |sim| {
        now.set(sim.now.0);
        !sim.ends.is_empty()
    });
    assert_eq!(sim.pages_of(1), 200, "every page came in the end");
    // Half an hour of silence is bridged with two trials a minute, not with thousands of requests;
    // in the seconds before we suspect ourselves each host is asked as usual.
    assert!(sim.requests < 200 + 200, "{}", sim.requests);
    assert!(sim.frontier.suspects_network_since().is_none());
}

/// The only host was once blamed for it: 7 pages in the 200 seconds after the outage.
#[test]
fn after_an_outage_the_only_host_is_asked_as_before() {
    for fails_ms in [1, 5_000] {
        let now = Rc::new(Cell::new(0));
        let web =
            Outage { now: now.clone(), from_ms: 20_000, to_ms: 220_000, fails_ms, has_links: true };
        let mut sim = Sim::new(web);
        sim.start(1, Politeness::default(), None);
        (0..500).for_each(|number| sim.seed(1, url("only.com", 1000 * number)));
        let watch = |sim: &Sim<Outage>| {
            now.set(sim.now.0);
            false
        };
        sim.run(Moment(220_000), watch);
        assert!(sim.frontier.suspects_network_since().is_some(), "{fails_ms}");
        assert!(sim.frontier.cut_off_since(CrawlNo(1)).is_some(), "{fails_ms}");
        let before = sim.pages_of(1);
        sim.run(Moment(420_000), watch);
        // A page a second, after at most half a minute until the next trial.
        let after = sim.pages_of(1) - before;
        assert!(after >= 165, "{after} pages, visits fail within {fails_ms} ms");
        assert_eq!(sim.settled.len() as u64, sim.pages_of(1), "no page was given up");
        assert_eq!(sim.frontier.host_delay_ms(CrawlNo(1), &url("only.com", 0).host()), None);
    }
}

/// Some hosts answer every second, others begin to answer and never end.
struct Drips;

impl Web for Drips {
    fn outcome(&mut self, visit: &Visit, _rng: &mut Rng) -> FetchOutcome {
        let is_first = visit.url.path() == "/0";
        if visit.url.host_str().starts_with("drip") && !is_first {
            return failed(Retry::Later);
        }
        page(visit, 200)
    }

    fn response_ms(&mut self, visit: &Visit, _rng: &mut Rng) -> u64 {
        let is_first = visit.url.path() == "/0";
        if visit.url.host_str().starts_with("drip") && !is_first { 10_000 } else { 20 }
    }

    fn links(&mut self, visit: &Visit) -> Vec<PageUrl> {
        let links: Vec<u64> = if visit.url.path() == "/0" { (1..=300).collect() } else { vec![] };
        links.into_iter().map(|link| visit.url.join(&format!("/{link}")).unwrap()).collect()
    }
}

/// Sixty that fail at the same moment were once taken for a fault of the network.
#[test]
fn as_long_as_anybody_answers_nothing_is_suspected() {
    let mut sim = Sim::new(Drips);
    sim.start(1, Politeness { workers: 128, ..Politeness::default() }, None);
    (0..40).for_each(|host| sim.seed(1, url(&format!("good{host}.com"), 0)));
    (0..60).for_each(|host| sim.seed(1, url(&format!("drip{host}.com"), 0)));
    sim.run(Moment(120_000), |sim| {
        assert_eq!(sim.frontier.suspects_network_since(), None, "at {:?}", sim.now);
        false
    });
    let good: u64 = sim
        .pages
        .iter()
        .filter(|((_, host), _)| host.as_str().starts_with("good"))
        .map(|(_, pages)| pages)
        .sum();
    assert!(good >= 40 * 110, "{good} pages of a possible 4,800");
}

/// Those that came after eight dead crawls were once never asked for anything.
#[test]
fn dead_crawls_hold_up_nobody_who_comes_after_them() {
    let mut web = Plain { links: 1, pages: 20, ..Plain::default() };
    for host in 1..=8 {
        web.unreachable_for.insert(format!("dead{host}.com"), u32::MAX);
    }
    let mut sim = Sim::new(web);
    for no in 1..=8 {
        sim.start(no, no_delay(), None);
        (0..20).for_each(|number| sim.seed(no, url(&format!("dead{no}.com"), number)));
    }
    sim.run_until(Moment(40_000));
    assert!(sim.frontier.suspects_network_since().is_some(), "no host has answered yet");
    assert!((1..=8).all(|no| sim.frontier.cut_off_since(CrawlNo(no)).is_some()));
    sim.start(9, no_delay(), None);
    sim.seed(9, url("good.com", 0));
    assert_eq!(sim.frontier.cut_off_since(CrawlNo(9)), None, "it has not failed");
    sim.run_until(Moment(41_000));
    assert!(sim.pages_of(9) >= 10, "it does not wait for trials: {} pages", sim.pages_of(9));
    assert_eq!(sim.frontier.suspects_network_since(), None, "a host has answered");
    assert_eq!(sim.frontier.cut_off_since(CrawlNo(1)), None);
}

#[test]
fn with_nobody_left_to_ask_there_is_nothing_to_suspect() {
    let mut web = Plain::default();
    for host in 1..=3 {
        web.unreachable_for.insert(format!("dead{host}.com"), u32::MAX);
    }
    let mut sim = Sim::new(web);
    sim.start(1, no_delay(), None);
    for host in 1..=3 {
        (0..20).for_each(|number| sim.seed(1, url(&format!("dead{host}.com"), number)));
    }
    sim.run_until(Moment(40_000));
    assert!(sim.frontier.suspects_network_since().is_some());
    sim.frontier.pause(CrawlNo(1));
    assert_eq!(sim.frontier.suspects_network_since(), None);
}

#[test]
fn a_crawl_that_ends_in_dead_links_ends() {
    let mut web = Plain { pages: 0, ..Plain::default() };
    for host in 1..=12 {
        web.unreachable_for.insert(format!("dead{host}.com"), u32::MAX);
    }
    let mut sim = Sim::new(web);
    sim.start(1, no_delay(), None);
    sim.seed(1, url("good.com", 0));
    sim.run_until(Moment(1_000));
    (1..=12).for_each(|host| sim.seed(1, url(&format!("dead{host}.com"), 0)));
    // The engine asks the host that answered last, whenever there is a suspicion.
    let mut number = 1;
    let mut called_at = None;
    for now in (1_000..4_000_000).step_by(500) {
        sim.run_until(Moment(now));
        let since = sim.frontier.suspects_network_since();
        if since.is_some() && called_at != since {
            called_at = since;
            number += 1;
            sim.prerequisite(1, url("good.com", number));
        }
    }
    assert_eq!(sim.settled.len() as u64, 12 + number, "everything is settled");
    assert!(number < 6, "a wrong suspicion makes the next one less likely: {number}");
}

/// A host that answered once and died, beside one that is done: the witness clears it up.
#[test]
fn a_witness_that_answers_ends_the_suspicion_at_once() {
    let mut sim = Sim::new(Drips);
    sim.start(1, no_delay(), None);
    sim.seed(1, url("drip1.com", 0));
    sim.run_until(Moment(1_000));
    sim.seed(1, url("good.com", 500));
    sim.run(Moment(60_000), |sim| sim.frontier.suspects_network_since().is_some());
    let since = sim.frontier.suspects_network_since().expect("no other host is asked");
    sim.prerequisite(1, url("good.com", 501));
    sim.run_until(since.plus_ms(200));
    assert_eq!(sim.frontier.suspects_network_since(), None, "it was asked without waiting");
}

/// One page never answers, everything else of its host does at once.
struct OneHangs;

impl Web for OneHangs {
    fn outcome(&mut self, visit: &Visit, _rng: &mut Rng) -> FetchOutcome {
        if visit.url.path() == "/7" { failed(Retry::Later) } else { page(visit, 200) }
    }

    fn response_ms(&mut self, visit: &Visit, _rng: &mut Rng) -> u64 {
        if visit.url.path() == "/7" { 10_000 } else { 10 }
    }
}

/// Each time-out raised a suspicion, the host itself cleared it up, and the page was asked for ever.
#[test]
fn a_page_that_always_hangs_is_given_up_on_its_only_host() {
    let mut sim = Sim::new(OneHangs);
    sim.start(1, no_delay(), None);
    sim.seed(1, url("only.com", 0));
    sim.seed(1, url("only.com", 7));
    let mut witnesses = 500;
    while sim.ends.is_empty() && witnesses < 600 {
        let end = sim.now.plus_ms(600_000);
        sim.run(end, |sim| sim.frontier.suspects_network_since().is_some() || !sim.ends.is_empty());
        if sim.frontier.suspects_network_since().is_some() {
            sim.prerequisite(1, url("only.com", witnesses));
            witnesses += 1;
            let soon = sim.now.plus_ms(100);
            sim.run_until(soon);
        }
    }
    assert!(!sim.ends.is_empty(), "it was asked {} times", sim.requests);
    assert!(witnesses < 510, "a wrong suspicion makes the next one less likely: {witnesses}");
}

/// A site whose answers to unknown addresses are bad news.
struct BadProbes {
    probe_status: Option<u16>,
}

impl Web for BadProbes {
    fn outcome(&mut self, visit: &Visit, _rng: &mut Rng) -> FetchOutcome {
        match self.probe_status {
            _ if visit.url.path() != "/999999" => page(visit, 200),
            Some(status) => page(visit, status),
            None => failed(Retry::Later),
        }
    }

    fn response_ms(&mut self, visit: &Visit, _rng: &mut Rng) -> u64 {
        if visit.url.path() == "/999999" { 2_000 } else { 10 }
    }

    fn retry_after_ms(&self) -> Option<u64> {
        Some(3_600_000)
    }

    fn links(&mut self, visit: &Visit) -> Vec<PageUrl> {
        chain_link(visit, 1)
    }
}

/// A 503 with Retry-After to an invented address once silenced the host: 10 pages instead of 283.
#[test]
fn what_a_probe_brings_is_not_held_against_the_host() {
    for probe_status in [Some(503), Some(429), Some(500), None] {
        let mut sim = Sim::new(BadProbes { probe_status });
        sim.start(1, Politeness::default(), None);
        sim.seed(1, url("a.com", 0));
        sim.run_until(Moment(10_000));
        sim.probe(1, url("a.com", 999_999));
        sim.run_until(Moment(300_000));
        let pages = sim.pages_of(1);
        assert!(pages >= 295, "{probe_status:?}: {pages} pages in 300 seconds");
        let delay_ms = sim.frontier.host_delay_ms(CrawlNo(1), &url("a.com", 0).host());
        assert_eq!(delay_ms, None, "{probe_status:?}");
        let probes = sim.log.iter().filter(|asked| asked.url.path() == "/999999").count();
        assert_eq!(probes, 1, "it is not repeated");
    }
}

/// A web that cannot be reached before some moment.
struct Late {
    now: Rc<Cell<u64>>,
    up_at_ms: u64,
    /// What a failure shows.
    sign: NetworkSign,
}

impl Late {
    fn is_up(&self) -> bool {
        self.now.get() >= self.up_at_ms
    }
}

impl Web for Late {
    fn outcome(&mut self, visit: &Visit, _rng: &mut Rng) -> FetchOutcome {
        if self.is_up() { page(visit, 200) } else { failed(Retry::Later) }
    }

    fn response_ms(&mut self, _visit: &Visit, _rng: &mut Rng) -> u64 {
        1
    }

    fn network(&self, outcome: &FetchOutcome) -> NetworkSign {
        match network_sign(outcome) {
            NetworkSign::Alive => NetworkSign::Alive,
            NetworkSign::Unknown | NetworkSign::Down => self.sign,
        }
    }
}

fn late(up_at_ms: u64, sign: NetworkSign) -> (Sim<Late>, impl Fn(&Sim<Late>) -> bool) {
    let now = Rc::new(Cell::new(0));
    let sim = Sim::new(Late { now: now.clone(), up_at_ms, sign });
    let watch = move |sim: &Sim<Late>| {
        now.set(sim.now.0);
        false
    };
    (sim, watch)
}

/// A service that starts before its network once failed everything that was queued: what fails at once
/// has used up its attempts within twelve seconds, before anything is suspected.
#[test]
fn a_network_that_comes_after_the_start_costs_no_attempts() {
    let (mut sim, watch) = late(90_000, NetworkSign::Unknown);
    for no in 1..=4 {
        sim.start(no, no_delay(), None);
        sim.seed(no, url(&format!("h{no}.com"), 0));
    }
    sim.run(Moment(90_000), &watch);
    assert!(sim.settled.is_empty(), "{:?}", sim.settled);
    sim.run(Moment(400_000), &watch);
    for no in 1..=4 {
        assert_eq!(sim.pages_of(no), 1, "crawl {no}");
    }
    let counted = sim.log.iter().map(|asked| asked.attempt).max();
    assert!(counted <= Some(2), "only what failed before the third host: attempt {counted:?}");
}

/// One host is enough if it has brought pages before.
#[test]
fn a_crawl_of_one_host_that_goes_on_before_the_network_loses_nothing() {
    let now = Rc::new(Cell::new(0));
    let web =
        Outage { now: now.clone(), from_ms: 3_500, to_ms: 90_000, fails_ms: 1, has_links: false };
    let mut sim = Sim::new(web);
    sim.start(1, Politeness::default(), None);
    (0..5).for_each(|number| sim.seed(1, url("only.com", number)));
    let watch = |sim: &Sim<Outage>| {
        now.set(sim.now.0);
        false
    };
    sim.run(Moment(3_500), watch);
    assert!((1..5).contains(&sim.pages_of(1)));
    sim.restart(0);
    sim.run(Moment(400_000), watch);
    assert_eq!(sim.pages_of(1), 5);
}

/// Without a route, no second host need fail.
#[test]
fn a_machine_without_a_route_blames_no_host() {
    let (mut sim, watch) = late(90_000, NetworkSign::Down);
    sim.start(1, no_delay(), None);
    sim.seed(1, url("only.com", 0));
    sim.run(Moment(60_000), &watch);
    assert!(sim.settled.is_empty());
    assert!(sim.frontier.cut_off_since(CrawlNo(1)).is_some());
    assert!(sim.frontier.is_outage_likely());
    sim.run(Moment(200_000), &watch);
    assert_eq!(sim.pages_of(1), 1);
}

/// A refused connection is an answer of a machine, an unknown name one of a resolver.
#[test]
fn hosts_that_refuse_are_given_up_and_nothing_is_suspected() {
    for crawls in [1, 8] {
        let (mut sim, watch) = late(u64::MAX, NetworkSign::Alive);
        for no in 1..=crawls {
            sim.start(no, no_delay(), None);
            sim.seed(no, url(&format!("closed{no}.com"), 0));
        }
        sim.run(Moment(60_000), |sim| {
            assert_eq!(sim.frontier.suspects_network_since(), None, "at {:?}", sim.now);
            watch(sim) || sim.ends.len() == crawls as usize
        });
        assert_eq!((sim.settled.len(), sim.ends.len()), (crawls as usize, crawls as usize));
        assert!(sim.now < Moment(20_000), "{:?}", sim.now);
    }
}

/// One silent host that never answered is a wrong address: its crawl ends soon.
#[test]
fn a_crawl_of_one_silent_host_ends() {
    let (mut sim, watch) = late(u64::MAX, NetworkSign::Unknown);
    sim.start(1, no_delay(), None);
    sim.seed(1, url("dead.com", 0));
    sim.run(Moment(60_000), |sim| watch(sim) || !sim.ends.is_empty());
    assert_eq!(sim.settled.len(), 1);
    assert!(sim.now < Moment(20_000), "{:?}", sim.now);
}

/// A connection was refused while we suspected ourselves: the network works.
#[test]
fn a_refused_connection_ends_the_suspicion() {
    let (mut sim, watch) = late(u64::MAX, NetworkSign::Unknown);
    sim.start(1, no_delay(), None);
    for host in 1..=4 {
        (0..20).for_each(|number| sim.seed(1, url(&format!("dead{host}.com"), number)));
    }
    sim.run(Moment(40_000), &watch);
    assert!(sim.frontier.suspects_network_since().is_some());
    sim.web.sign = NetworkSign::Alive;
    sim.run(Moment(80_000), &watch);
    assert_eq!(sim.frontier.suspects_network_since(), None);
    assert_eq!(sim.frontier.cut_off_since(CrawlNo(1)), None);
}
