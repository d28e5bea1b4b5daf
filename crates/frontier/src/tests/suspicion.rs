//! Whether the web is at fault, or we are.

use telusur_model::{FetchOutcome, Moment, Politeness, Retry, Visit};

use super::rules::{Plain, no_delay};
use super::sim::{Rng, Sim, Web, failed, page, url};

/// A web in which everybody answers until some moment, and from another one on again.
#[derive(Clone)]
struct Outage {
    now: std::rc::Rc<std::cell::Cell<u64>>,
    from_ms: u64,
    to_ms: u64,
}

impl Web for Outage {
    fn outcome(&mut self, visit: &Visit, _rng: &mut Rng) -> FetchOutcome {
        if (self.from_ms..self.to_ms).contains(&self.now.get()) {
            failed(Retry::Later)
        } else {
            page(visit, 200)
        }
    }

    fn response_ms(&mut self, _visit: &Visit, _rng: &mut Rng) -> u64 {
        10
    }
}

#[test]
fn an_outage_of_the_network_burns_no_attempts() {
    let now = std::rc::Rc::new(std::cell::Cell::new(0));
    let web = Outage { now: now.clone(), from_ms: 3_000, to_ms: 1_800_000 };
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
    // Half an hour of silence is bridged with a trial a minute, not with thousands of requests.
    assert!(sim.requests < 200 + 80, "{}", sim.requests);
    assert!(sim.frontier.suspects_network_since().is_none());
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
            sim.errand(1, url("good.com", number));
        }
    }
    assert_eq!(sim.settled.len() as u64, 12 + number, "everything is settled");
    assert!(number < 6, "a wrong suspicion makes the next one less likely: {number}");
}
