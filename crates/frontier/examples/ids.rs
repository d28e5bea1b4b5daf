//! Measures what a visit costs the whole frontier, gates included, along ids and along links:
//! `cargo run --release -p telusur-frontier --example ids [ids|links] [VISITS]`.
//!
//! One host, eight requests at once. Along ids one in a hundred exists; along links every page leads
//! to one more. From the decision to the commit. Instructions: the same under
//! `valgrind --tool=callgrind`, with two numbers of VISITS; the difference has nothing but visits in it.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use telusur_frontier::{CrawlStart, Frontier, IdEnd, Linear, Next, Opening};
use telusur_model::{
    CrawlNo, FetchOutcome, Fetched, IdState, Lane, Moment, NetworkSign, PageUrl, Politeness,
    Purpose, QueuePlace, RawPage, Resume, RobotsRules, Template, Timestamp, UrlKey, Via, Visit,
    Walk, WalkRules,
};

const CRAWL: CrawlNo = CrawlNo(1);
const VISITS: u64 = 10_000_000;
const AT_ONCE: u16 = 8;

fn main() {
    let along = std::env::args().nth(1).unwrap_or_else(|| "ids".to_owned());
    let visits = std::env::args().nth(2).map_or(VISITS, |text| text.parse().expect("a number"));
    let mut frontier = Frontier::new();
    let linear = (along == "ids").then(|| linear(visits));
    frontier.start(CrawlStart {
        crawl: CRAWL,
        politeness: Politeness {
            delay_ms: 0,
            per_host: AT_ONCE,
            robots: RobotsRules::Ignore,
            ..Politeness::default()
        },
        pages_max: None,
        pages_done: 0,
        hosts: Vec::new(),
        linear,
        quiet_until: Moment(0),
    });
    if along != "ids" {
        for seq in 0..u64::from(AT_ONCE) {
            frontier.discovered(link(seq), None);
        }
    }
    frontier.address(&link(0).url.host(), Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), Moment(0));
    let started = Instant::now();
    run(&mut frontier, visits);
    let ns = started.elapsed().as_nanos() / u128::from(visits);
    println!("{visits} visits along {along}: {ns} ns per visit");
    if let Some(linear) = frontier.linear(CRAWL) {
        let walk = &linear.walks()[0];
        println!("{:?}, {} runs", walk.coverage().counts, walk.runs().count());
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("VmHWM")) {
        println!("memory at its peak: {line}");
    }
}

fn linear(ids: u64) -> Linear {
    let template = Template::parse("http://example.org/item/{id}").expect("a good template");
    let rules = WalkRules { min: Some(1), max: Some(ids), ..WalkRules::new(template) };
    let walk = Walk::new(rules).expect("good rules");
    Linear::new(vec![Opening::resume(Resume::All).open(walk, [], Moment(0)).state])
}

fn run(frontier: &mut Frontier, visits: u64) {
    let (mut now, mut made) = (Moment(0), 0);
    let mut in_flight: Vec<Visit> = Vec::with_capacity(usize::from(AT_ONCE));
    loop {
        match frontier.next(now) {
            Next::Visit(visit) => {
                made += 1;
                frontier.requested(&visit.url.host(), now);
                in_flight.push(visit);
            }
            Next::Wait(_) => {
                now = now.plus_ms(1);
                for visit in in_flight.drain(..) {
                    end(frontier, visit, now, made < visits);
                }
                if made >= visits {
                    return;
                }
            }
            Next::Finished { .. } => return,
            other => unreachable!("all is known to the frontier: {other:?}"),
        }
    }
}

fn end(frontier: &mut Frontier, visit: Visit, now: Moment, goes_on: bool) {
    let host = visit.url.host();
    let id = visit.place.id();
    let exists = id.is_none_or(|(_, id)| mix(id).is_multiple_of(100));
    let page = RawPage {
        url: visit.url.clone(),
        status: if exists { 200 } else { 404 },
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
    black_box(frontier.finished(&visit, &fetched, now));
    if id.is_some() {
        let state = if exists { IdState::Content } else { IdState::Missing };
        let end = IdEnd { state, stored_page: exists };
        return frontier.committed_id(CRAWL, &host, visit.place, end);
    }
    if goes_on {
        frontier.discovered(link(visit.place.seq + u64::from(AT_ONCE)), None);
    }
    frontier.committed(CRAWL, &host, visit.place, true);
}

fn link(seq: u64) -> Visit {
    Visit {
        crawl: CRAWL,
        purpose: Purpose::Page,
        url: PageUrl::parse(&format!("http://example.org/item/{seq}")).expect("a plain URL"),
        key: UrlKey(u128::from(seq)),
        place: QueuePlace { lane: Lane::Plain, order: 1, seq },
        depth: 1,
        hops_outside: 0,
        via: Via::Link,
        found_at: Timestamp(0),
        referrer: None,
        redirects: Vec::new(),
        lastmod: None,
        attempt: 1,
    }
}

/// The last step of splitmix64: a hash that is the same everywhere.
fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}
