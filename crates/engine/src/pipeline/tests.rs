use std::collections::BTreeSet;

use telusur_model::{Lane, PageUrl, QueuePlace, RawPage, Timestamp, UrlKey, Via};

use super::*;

const MIB: u64 = 1 << 20;

fn visit(crawl: u32, host: &str) -> Visit {
    Visit {
        crawl: CrawlNo(crawl),
        purpose: Purpose::Page,
        url: PageUrl::parse(&format!("http://{host}/")).unwrap(),
        key: UrlKey(0),
        place: QueuePlace { lane: Lane::Plain, order: 0, seq: 0 },
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

fn page(visit: &Visit, bytes: u64) -> Fetched {
    let outcome = FetchOutcome::Page(RawPage {
        url: visit.url.clone(),
        status: 200,
        headers: Vec::new(),
        body: vec![0; usize::try_from(bytes).unwrap()].into(),
        truncated: false,
        wire_bytes: bytes,
    });
    Fetched {
        outcome,
        requested_at: None,
        took_ms: 0,
        address: None,
        retry_after_ms: None,
        network: telusur_model::NetworkSign::Alive,
    }
}

/// A pipeline, and who is blocked by what it said so far.
#[derive(Default)]
struct Watched {
    pipeline: Pipeline,
    running: usize,
    sites: BTreeSet<String>,
    crawls: BTreeSet<CrawlNo>,
}

impl Watched {
    fn of_crawls(running: usize) -> Self {
        Self { running, ..Self::default() }
    }

    fn look(&mut self) {
        for block in self.pipeline.blocks(self.running) {
            let is_news = match block {
                Block::Site(site, true) => self.sites.insert(site.to_string()),
                Block::Site(site, false) => self.sites.remove(&site.to_string()),
                Block::Crawl(crawl, true) => self.crawls.insert(crawl),
                Block::Crawl(crawl, false) => self.crawls.remove(&crawl),
            };
            assert!(is_news, "only changes are told");
        }
    }

    /// Whether this could be handed out, which is then done.
    fn hand_out(&mut self, visit: &Visit) -> bool {
        self.look();
        let is_blocked = self.crawls.contains(&visit.crawl)
            || self.sites.contains(&visit.url.site().to_string());
        if is_blocked || self.pipeline.is_full(self.running) {
            return false;
        }
        self.pipeline.enter(visit);
        self.pipeline.begin_fetch(visit);
        true
    }

    /// Hands out as many as it may, up to so many, of which each is on a host of its own.
    fn fill(&mut self, crawl: u32, site: &str, max: usize) -> Vec<Visit> {
        let visits = (0..max).map(|number| visit(crawl, &format!("h{number}.{site}")));
        visits.take_while(|visit| self.hand_out(visit)).collect()
    }

    fn fetch(&mut self, visits: &[Visit], bytes: u64) {
        for visit in visits {
            self.pipeline.end_fetch(visit, &page(visit, bytes));
        }
    }

    fn store(&mut self, visits: &[Visit], bytes: u64) {
        let mut load = Load::default();
        for visit in visits {
            load.add(visit, bytes);
        }
        self.pipeline.leave(&load);
    }

    #[track_caller]
    fn assert_empty(&mut self) {
        self.look();
        assert!(self.sites.is_empty() && self.crawls.is_empty());
        let Pipeline { visits, bytes, charged_by_site, charged_by_crawl, .. } = self.pipeline;
        assert_eq!((visits, bytes, charged_by_site, charged_by_crawl), (0, 0, 0, 0));
        assert!(self.pipeline.changed.is_empty() && self.pipeline.crawls.is_empty());
    }
}

#[test]
fn a_site_of_unknown_pages_cannot_fill_the_pipeline() {
    let mut watched = Watched::of_crawls(1);
    let visits = watched.fill(1, "wild.test", 1000);
    assert!((12..=16).contains(&visits.len()), "{}", visits.len());
    watched.fetch(&visits, MIB);
    assert!(watched.fill(1, "wild.test", 1000).is_empty());
    assert!(watched.hand_out(&visit(1, "good.test")));
    // It goes on when half of them are stored, not with each of them.
    let (first, rest) = visits.split_at(4);
    watched.store(first, MIB);
    assert!(watched.fill(1, "wild.test", 1000).is_empty());
    watched.store(rest, MIB);
    assert!(watched.fill(1, "wild.test", 1000).len() >= 12);
}

#[test]
fn a_site_of_small_pages_alone_is_hardly_limited() {
    let mut watched = Watched::of_crawls(1);
    let first = watched.fill(1, "big.test", 1);
    watched.fetch(&first, 10_000);
    assert_eq!(watched.fill(1, "big.test", 2000).len(), PIPELINE_VISITS_MAX / 2 - 1);
}

/// Answers that bring nothing to parse are not expected to bring a megabyte each.
#[test]
fn a_site_of_redirects_or_unchanged_pages_is_hardly_limited() {
    for is_redirect in [true, false] {
        let mut watched = Watched::of_crawls(1);
        let first = watched.fill(1, "big.test", 1);
        let outcome = match is_redirect {
            true => FetchOutcome::Redirected { status: 301, to: first[0].url.clone() },
            false => FetchOutcome::NotModified,
        };
        let fetched = Fetched { outcome, ..page(&first[0], 0) };
        watched.pipeline.end_fetch(&first[0], &fetched);
        let more = watched.fill(1, "big.test", 2000).len();
        assert_eq!(more, PIPELINE_VISITS_MAX / 2 - 1, "{is_redirect}");
    }
}

/// However many sites of a crawl bring pages that the parser needs long for: a site of which nothing
/// is here finds room, and so does one whose pages are small.
#[test]
fn many_costly_sites_leave_room_for_others_of_their_crawl() {
    for (running, bytes) in [(1, MIB), (2, MIB), (1, 1000), (2, 1000)] {
        for count in [1, 10, 30, 60] {
            let mut watched = Watched::of_crawls(running);
            let small = watched.fill(1, "small.test", 1);
            watched.fetch(&small, 10_000);
            watched.store(&small, 10_000);
            for number in 0..count {
                let site = format!("costly{number}.test");
                let first = watched.fill(1, &site, 1);
                assert_eq!(first.len(), 1, "{running} {bytes}: {number} of {count}");
                watched.fetch(&first, bytes);
                let visits = watched.fill(1, &site, 1000);
                watched.fetch(&visits, bytes);
            }
            // Costly by their bytes, or by the time that small pages take.
            for _ in 0..if bytes == MIB { 4 } else { 1 } {
                assert!(watched.hand_out(&visit(1, "small.test")), "{running} {bytes}: {count}");
            }
            assert!(watched.hand_out(&visit(1, "new.test")), "{running} {bytes}: {count}");
        }
    }
}

/// Each of many takes less than the one before, and the next always finds room.
#[test]
fn many_sites_leave_room_for_one_more() {
    let mut watched = Watched::of_crawls(1);
    for number in 0..8 {
        let visits = watched.fill(1, &format!("wild{number}.test"), 1000);
        watched.fetch(&visits, MIB);
        assert!(visits.len() >= 2, "{number}: {}", visits.len());
    }
    assert!(watched.hand_out(&visit(1, "good.test")));
}

/// Its pages were small until now: nobody could know.
#[test]
fn bodies_that_nobody_expected_keep_no_other_waiting() {
    let mut watched = Watched::of_crawls(1);
    let first = watched.fill(1, "wild.test", 1);
    watched.fetch(&first, 100);
    let visits = watched.fill(1, "wild.test", 200);
    assert_eq!(visits.len(), 200);
    watched.fetch(&visits, MIB);
    assert!(watched.fill(1, "wild.test", 1).is_empty());
    assert!(watched.hand_out(&visit(1, "good.test")));
    // But memory has an end.
    let mut more = Vec::new();
    for number in 0..2 {
        let site = format!("wild{number}.test");
        let small = watched.fill(1, &site, 1);
        watched.fetch(&small, 100);
        let visits = watched.fill(1, &site, 60);
        watched.fetch(&visits, MIB);
        more.extend(visits);
    }
    assert!(more.len() > 56);
    assert!(!watched.hand_out(&visit(1, "late.test")));
}

#[test]
fn one_of_several_crawls_leaves_room_for_the_others() {
    for (running, is_left) in [(1, false), (2, true)] {
        let mut watched = Watched::of_crawls(running);
        let visits: Vec<Visit> = (0..200)
            .map(|number| visit(1, &format!("bad{number}.test")))
            .filter(|visit| watched.hand_out(visit))
            .collect();
        assert_eq!(visits.len(), 200, "pages are small as a rule");
        watched.fetch(&visits, MIB);
        assert!(!watched.hand_out(&visit(1, "good.test")));
        assert_eq!(watched.hand_out(&visit(2, "good.test")), is_left);
        // The other crawl has ended: what is left is one crawl's again.
        watched.running = 1;
        watched.look();
        assert!(watched.crawls.is_empty());
    }
}

/// In whatever order things happen: when nothing is left in the pipeline, nobody is blocked.
#[test]
fn whoever_is_blocked_is_released() {
    for seed in 1..=200_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut below = |bound: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % bound
        };
        let mut watched = Watched::of_crawls(1);
        let (mut fetching, mut waiting) = (Vec::new(), Vec::new());
        for _ in 0..300 {
            watched.running = usize::try_from(below(4)).unwrap();
            let crawl = u32::try_from(below(3)).unwrap();
            let site = format!("site{}.test", below(4));
            match below(3) {
                0 => fetching.extend(watched.fill(crawl, &site, 40)),
                1 => {
                    let bytes = below(4 * MIB);
                    for visit in fetching.drain(fetching.len() / 2..) {
                        watched.fetch(std::slice::from_ref(&visit), bytes);
                        waiting.push((visit, bytes));
                    }
                }
                _ => {
                    for (visit, bytes) in waiting.drain(waiting.len() / 2..) {
                        watched.store(&[visit], bytes);
                    }
                }
            }
        }
        for visit in fetching {
            watched.fetch(std::slice::from_ref(&visit), MIB);
            waiting.push((visit, MIB));
        }
        for (visit, bytes) in waiting {
            watched.store(&[visit], bytes);
        }
        watched.assert_empty();
    }
}
