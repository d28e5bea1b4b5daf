//! Measures what a decision costs: `cargo run --release -p telusur-frontier --example decisions`.
//!
//! Ten thousand hosts with six URLs each. Every visit is told the frontier as the engine does:
//! requested, finished, committed, one new URL discovered.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use telusur_frontier::{CrawlStart, Frontier, Next};
use telusur_model::{
    CrawlNo, FetchOutcome, Fetched, Lane, Moment, NetworkSign, PageUrl, Politeness, Purpose,
    QueuePlace, RawPage, RobotsRules, Timestamp, UrlKey, Via, Visit,
};

const HOSTS: u32 = 10_000;
const URLS_PER_HOST: u64 = 6;
const DECISIONS: u32 = 500_000;

fn main() {
    for delay_ms in [0, 1000] {
        measure(delay_ms);
    }
}

fn measure(delay_ms: u64) {
    let mut frontier = Frontier::new();
    frontier.start(CrawlStart {
        crawl: CrawlNo(1),
        politeness: Politeness {
            delay_ms,
            workers: 1000,
            robots: RobotsRules::Ignore,
            ..Politeness::default()
        },
        pages_max: None,
        pages_done: 0,
        hosts: Vec::new(),
        linear: None,
        quiet_until: Moment(0),
    });
    for host in 0..HOSTS {
        for seq in 0..URLS_PER_HOST {
            frontier.discovered(visit(host, seq), None);
        }
        let url = visit(host, 0).url;
        frontier.address(&url.host(), Some(IpAddr::V4(Ipv4Addr::from(host))), Moment(0));
    }

    let mut now = Moment(0);
    let mut in_flight: VecDeque<Visit> = VecDeque::new();
    let mut decisions = 0;
    let mut calls = 0_u32;
    let started = Instant::now();
    while decisions < DECISIONS {
        calls += 1;
        match frontier.next(now) {
            Next::Visit(visit) => {
                decisions += 1;
                frontier.requested(&visit.url.host(), now);
                in_flight.push_back(visit);
            }
            Next::Wait(_) => {
                now = now.plus_ms(1);
                for visit in in_flight.drain(..) {
                    end(&mut frontier, visit, now);
                }
            }
            other => unreachable!("all is known to the frontier: {other:?}"),
        }
    }
    let ns = started.elapsed().as_nanos() / u128::from(DECISIONS);
    println!(
        "delay {delay_ms} ms: {ns} ns per visit, from decision to commit ({calls} calls of next)"
    );
}

fn end(frontier: &mut Frontier, mut visit: Visit, now: Moment) {
    let host = visit.url.host();
    let page = RawPage {
        url: visit.url.clone(),
        status: 200,
        headers: Vec::new(),
        body: Default::default(),
        truncated: false,
        wire_bytes: 0,
    };
    let fetched = Fetched {
        outcome: FetchOutcome::Page(page),
        requested_at: Some(now),
        took_ms: 1,
        address: None,
        retry_after_ms: None,
        network: NetworkSign::Alive,
    };
    frontier.finished(&visit, &fetched, now);
    let place = visit.place;
    visit.place.seq += URLS_PER_HOST;
    frontier.discovered(visit, None);
    frontier.committed(CrawlNo(1), &host, place, true);
}

fn visit(host: u32, seq: u64) -> Visit {
    let text = format!("http://h{host}.example{}.com/{seq}", host % 5000);
    Visit {
        crawl: CrawlNo(1),
        purpose: Purpose::Page,
        url: PageUrl::parse(&text).expect("a plain URL"),
        key: UrlKey(u128::from(seq)),
        place: QueuePlace { lane: Lane::Plain, order: 0, seq },
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
