//! What pages cost to parse, as the queues of their hosts feel it; and visits that come back.

use std::net::{IpAddr, Ipv4Addr};

use telusur_model::{
    CrawlNo, FetchOutcome, Fetched, FinishReason, Host, Lane, Moment, NetworkSign, PageUrl,
    Politeness, Purpose, QueuePlace, RawPage, RobotsRules, Timestamp, UrlKey, Via, Visit,
};

use crate::{CrawlStart, Frontier, Next, PageCost};

const CRAWL: CrawlNo = CrawlNo(1);

/// A crawl with `urls` queued URLs of one host, which may be asked without pause.
fn frontier(urls: u64, head_max: usize) -> Frontier {
    let mut frontier = Frontier::with_head_max(head_max);
    let politeness = Politeness {
        delay_ms: 0,
        per_host: 8,
        robots: RobotsRules::Ignore,
        ..Politeness::default()
    };
    frontier.start(CrawlStart {
        crawl: CRAWL,
        politeness,
        pages_max: None,
        pages_done: 0,
        hosts: Vec::new(),
        linear: None,
        quiet_until: Moment(0),
    });
    for seq in 1..=urls {
        frontier.discovered(queued(seq), None);
    }
    frontier.address(&host(), Some(ADDRESS), Moment(0));
    frontier
}

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn host() -> Host {
    Host::new("a.com")
}

fn queued(seq: u64) -> Visit {
    Visit {
        crawl: CRAWL,
        purpose: Purpose::Page,
        url: PageUrl::parse(&format!("http://a.com/{seq}")).unwrap(),
        key: UrlKey(seq.into()),
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

fn next(frontier: &mut Frontier, now: u64) -> Option<Visit> {
    match frontier.next(Moment(now)) {
        Next::Visit(visit) => Some(visit),
        _ => None,
    }
}

fn fetch(frontier: &mut Frontier, visit: &Visit, now: u64) {
    let outcome = FetchOutcome::Page(RawPage {
        url: visit.url.clone(),
        status: 200,
        headers: Vec::new(),
        body: Default::default(),
        truncated: false,
        wire_bytes: 0,
    });
    let requested_at = Some(Moment(now));
    let address = Some(ADDRESS);
    let network = NetworkSign::Alive;
    let fetched =
        Fetched { outcome, requested_at, took_ms: 0, address, retry_after_ms: None, network };
    frontier.finished(visit, &fetched, Moment(now));
}

fn commit(frontier: &mut Frontier, visit: &Visit) {
    frontier.committed(CRAWL, &host(), visit.place, true);
}

#[test]
fn a_costly_host_is_asked_for_one_page_at_a_time_and_after_a_pause() {
    let mut frontier = frontier(10, 64);
    let first = next(&mut frontier, 0).unwrap();
    let second = next(&mut frontier, 0).unwrap();
    for visit in [&first, &second] {
        fetch(&mut frontier, visit, 0);
    }
    frontier.parsed(&host(), PageCost { cpu_ms: 100, has_killed: false }, Moment(100));
    commit(&mut frontier, &first);
    assert_eq!(next(&mut frontier, 2_099), None, "it is left alone");
    assert_eq!(next(&mut frontier, 60_000), None, "it is not known yet what the second costs");
    commit(&mut frontier, &second);
    let third = next(&mut frontier, 60_000).unwrap();
    fetch(&mut frontier, &third, 60_000);
    assert_eq!(next(&mut frontier, 70_000), None);
    // A cheap page, and it is a host like any other.
    frontier.parsed(&host(), PageCost { cpu_ms: 1, has_killed: false }, Moment(70_000));
    commit(&mut frontier, &third);
    assert!(next(&mut frontier, 70_000).is_some() && next(&mut frontier, 70_000).is_some());
}

/// All URLs are stored, whichever of them come back once; also where the head holds only some.
#[test]
fn a_visit_that_comes_back_is_handed_out_again() {
    for head_max in [2, 64] {
        let mut frontier = frontier(6, head_max);
        let (mut asked, mut stored) = (Vec::new(), Vec::new());
        loop {
            match frontier.next(Moment(0)) {
                Next::Visit(visit) => {
                    fetch(&mut frontier, &visit, 0);
                    let seq = visit.place.seq;
                    let is_first = !asked.contains(&seq);
                    asked.push(seq);
                    if is_first && seq % 2 == 0 {
                        frontier.returned(visit);
                    } else {
                        commit(&mut frontier, &visit);
                        stored.push(seq);
                    }
                }
                Next::NeedUrls { region, after, max, .. } => {
                    let rows = (1..=6).filter(|seq| !stored.contains(seq)).map(queued);
                    let rows = rows.filter(|visit| {
                        region == crate::Region::Fresh && Some(visit.place) > after
                    });
                    let found: Vec<_> = rows.take(max).map(|visit| (visit, None)).collect();
                    let exhausted = found.len() < max;
                    frontier.refill(CRAWL, &host(), region, found, exhausted);
                }
                Next::Finished { why, .. } => {
                    assert_eq!(why, FinishReason::Drained);
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        stored.sort_unstable();
        assert_eq!((stored, asked.len()), ((1..=6).collect(), 9), "{head_max}");
    }
}
