//! What good hosts lose when three in ten of their neighbours say nothing.

use telusur_model::{FetchOutcome, Moment, PageUrl, Politeness, Purpose, Retry, Visit};

use super::sim::{Rng, Sim, Web, chain_link, failed, page, url};

/// A fifth of a thousand hosts, and a fifth of the usual workers: it shows the same in less time.
const HOSTS: usize = 200;
const HOSTS_BAD: usize = 60;
const WORKERS: u16 = 6;
const SILENT_MAX: u16 = 96;

/// Hosts below `bad.` accept a connection and stay silent for ten seconds.
struct Crowd {
    answer_ms: std::ops::Range<u64>,
}

fn is_bad(url: &PageUrl) -> bool {
    url.host_str().starts_with("bad")
}

impl Web for Crowd {
    fn response_ms(&mut self, visit: &Visit, rng: &mut Rng) -> u64 {
        let span = self.answer_ms.end - self.answer_ms.start;
        if is_bad(&visit.url) { 10_000 } else { self.answer_ms.start + rng.below(span) }
    }

    fn outcome(&mut self, visit: &Visit, _rng: &mut Rng) -> FetchOutcome {
        if is_bad(&visit.url) { failed(Retry::Later) } else { page(visit, 200) }
    }

    fn links(&mut self, visit: &Visit) -> Vec<PageUrl> {
        if visit.purpose == Purpose::Page { chain_link(visit, 1) } else { Vec::new() }
    }
}

/// Pages per minute of the hosts that are always good, and of them alone.
fn pages_of_good(bad: usize, answer_ms: std::ops::Range<u64>, delay_ms: u64) -> usize {
    let mut sim = Sim::new(Crowd { answer_ms });
    let politeness =
        Politeness { delay_ms, workers: WORKERS, silent_max: SILENT_MAX, ..Politeness::default() };
    sim.start(1, politeness, None);
    for host in 0..HOSTS {
        let kind = if host < bad { "bad" } else { "good" };
        sim.seed(1, url(&format!("{kind}{host}.com"), 0));
    }
    sim.run_until(Moment(60_000));
    let of_good = |url: &PageUrl| {
        let number = url.host_str().trim_start_matches(|letter: char| letter.is_alphabetic());
        number.trim_end_matches(".com").parse::<usize>().is_ok_and(|host| host >= HOSTS_BAD)
    };
    let pages = sim.log.iter().filter(|asked| asked.url.path() != "/robots.txt");
    pages.filter(|asked| of_good(&asked.url)).count()
}

#[track_caller]
fn check(answer_ms: std::ops::Range<u64>, delay_ms: u64) {
    let alone = pages_of_good(0, answer_ms.clone(), delay_ms);
    let among_bad = pages_of_good(HOSTS_BAD, answer_ms, delay_ms);
    assert!(10 * among_bad >= 8 * alone, "{among_bad} of {alone} pages");
}

// B14, T12, L9.

#[test]
fn good_hosts_keep_their_rate_where_the_delay_limits_it() {
    check(20..100, 6_000);
}

#[test]
fn good_hosts_keep_their_rate_where_the_workers_limit_it() {
    check(100..300, 1_000);
}
