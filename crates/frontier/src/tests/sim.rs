//! A little world for the frontier: a store, a network and a clock, all simulated. It plays the
//! engine, and checks at every step what must always hold: no visit is handed out twice, and
//! nothing is decided for a moment that has passed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use telusur_model::{
    CrawlNo, Door, FetchOutcome, Fetched, FinishReason, Host, Lane, Moment, NetworkSign, PageUrl,
    Politeness, Purpose, QueuePlace, RawPage, Reason, Retry, Timestamp, UrlKeyer, Via, Visit,
};

use crate::{CrawlStart, Disposition, Frontier, HostStart, Next, Region, RobotsKnown};

/// How long the rules of an origin are known.
const ROBOTS_MS: u64 = 24 * 3_600_000;

/// Marsaglia's xorshift: small, and the same everywhere.
#[derive(Clone, Debug)]
pub(super) struct Rng(pub(super) u64);

impl Rng {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

/// How the web behaves.
pub(super) trait Web {
    fn address(&self, host: &Host) -> Option<IpAddr> {
        Some(own_address(host))
    }
    /// From hand-out to request.
    fn connect_ms(&mut self, _visit: &Visit, _rng: &mut Rng) -> u64 {
        0
    }
    /// From request to end.
    fn response_ms(&mut self, _visit: &Visit, _rng: &mut Rng) -> u64 {
        10
    }
    fn outcome(&mut self, visit: &Visit, _rng: &mut Rng) -> FetchOutcome {
        page(visit, 200)
    }
    fn retry_after_ms(&self) -> Option<u64> {
        None
    }
    fn links(&mut self, _visit: &Visit) -> Vec<PageUrl> {
        Vec::new()
    }
    /// What an outcome shows about the network.
    fn network(&self, outcome: &FetchOutcome) -> NetworkSign {
        network_sign(outcome)
    }
    fn is_hot(&self, _url: &PageUrl) -> bool {
        false
    }
}

/// An address that no other host has (as long as names differ in their numbers).
pub(super) fn own_address(host: &Host) -> IpAddr {
    let number = host
        .as_str()
        .bytes()
        .fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    IpAddr::V4(Ipv4Addr::from(number))
}

pub(super) fn page(visit: &Visit, status: u16) -> FetchOutcome {
    FetchOutcome::Page(RawPage {
        url: visit.url.clone(),
        status,
        headers: Vec::new(),
        body: Default::default(),
        truncated: false,
        wire_bytes: 0,
    })
}

/// A host that cannot be reached is silent.
pub(super) fn network_sign(outcome: &FetchOutcome) -> NetworkSign {
    match outcome {
        FetchOutcome::Failed { .. } | FetchOutcome::Refused { .. } => NetworkSign::Unknown,
        FetchOutcome::Page(_) | FetchOutcome::Redirected { .. } | FetchOutcome::NotModified => {
            NetworkSign::Alive
        }
    }
}

pub(super) fn failed(retry: Retry) -> FetchOutcome {
    FetchOutcome::Failed { why: Reason::TimeoutConnect, detail: String::new(), retry }
}

/// Pages that never end: `/n` links to `/n+1`, after a start with some width.
pub(super) fn chain_link(visit: &Visit, step: u64) -> Vec<PageUrl> {
    let number: u64 = visit.url.path()[1..].parse().unwrap();
    vec![visit.url.join(&format!("/{}", number + step)).unwrap()]
}

pub(super) fn url(host: &str, number: u64) -> PageUrl {
    PageUrl::parse(&format!("http://{host}/{number}")).unwrap()
}

type Row = (Visit, Option<Moment>);
type Queue = BTreeMap<QueuePlace, Row>;

#[derive(Debug)]
enum Event {
    Requested(Visit),
    Finished(Visit, FetchOutcome, Option<Moment>),
    Committed(Visit, FetchOutcome, Disposition),
    Told,
    Read { crawl: CrawlNo, host: Host, region: Region, after: Option<QueuePlace>, max: usize },
    Answer { crawl: CrawlNo, host: Host, region: Region, rows: Vec<Row>, exhausted: bool },
    Address(Host),
    Robots(CrawlNo, PageUrl),
}

/// A commit that the frontier is yet to be told of.
#[derive(Debug)]
struct Commit {
    visit: Visit,
    stored_page: bool,
    discovered: Vec<Row>,
}

/// One request, as the network saw it.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) at: Moment,
    pub(super) crawl: CrawlNo,
    pub(super) url: PageUrl,
    pub(super) place: QueuePlace,
    pub(super) attempt: u8,
}

pub(super) struct Sim<W> {
    pub(super) frontier: Frontier,
    pub(super) web: W,
    pub(super) now: Moment,
    pub(super) rng: Rng,
    /// Longest that a lookup, a read and a commit take; the real time is random below.
    pub(super) lookup_ms: u64,
    pub(super) read_ms: u64,
    pub(super) commit_ms: u64,
    /// Fail if a host or an address is asked twice within this time.
    pub(super) spacing_ms: u64,
    pub(super) keep_log: bool,
    head_max: usize,

    starts: BTreeMap<CrawlNo, CrawlStart>,
    pub(super) store: BTreeMap<(CrawlNo, Host), Queue>,
    seen: BTreeSet<(CrawlNo, PageUrl)>,
    seq: u64,
    events: BinaryHeap<Reverse<(Moment, u64, usize)>>,
    event_bodies: BTreeMap<usize, Event>,
    events_made: usize,

    /// Commits are told in their order, some time after they were made.
    commits_untold: VecDeque<Commit>,
    handed_out: BTreeSet<(CrawlNo, QueuePlace)>,
    last_asked: BTreeMap<Host, Moment>,
    last_asked_address: BTreeMap<IpAddr, Moment>,
    pub(super) log: Vec<Asked>,
    pub(super) requests: u64,
    pub(super) in_flight_most: u64,
    /// How often each URL was settled.
    pub(super) settled: BTreeMap<(CrawlNo, PageUrl), u32>,
    /// Pages stored, by crawl and host.
    pub(super) pages: BTreeMap<(CrawlNo, Host), u64>,
    pub(super) ends: Vec<(CrawlNo, FinishReason, Moment)>,
    robots_known: BTreeSet<(CrawlNo, Host)>,
    /// What every robots.txt asks for.
    pub(super) crawl_delay_ms: Option<u64>,
    pub(super) events_told: u64,
}

impl<W: Web> Sim<W> {
    pub(super) fn new(web: W) -> Self {
        Self::with_head_max(web, 64)
    }

    pub(super) fn with_head_max(web: W, head_max: usize) -> Self {
        Self {
            frontier: Frontier::with_head_max(head_max),
            web,
            now: Moment(0),
            rng: Rng(0x9e37_79b9_7f4a_7c15),
            lookup_ms: 5,
            read_ms: 2,
            commit_ms: 5,
            spacing_ms: 0,
            keep_log: true,
            head_max,
            starts: BTreeMap::new(),
            store: BTreeMap::new(),
            seen: BTreeSet::new(),
            seq: 0,
            events: BinaryHeap::new(),
            event_bodies: BTreeMap::new(),
            events_made: 0,
            commits_untold: VecDeque::new(),
            handed_out: BTreeSet::new(),
            last_asked: BTreeMap::new(),
            last_asked_address: BTreeMap::new(),
            log: Vec::new(),
            requests: 0,
            in_flight_most: 0,
            settled: BTreeMap::new(),
            pages: BTreeMap::new(),
            ends: Vec::new(),
            robots_known: BTreeSet::new(),
            crawl_delay_ms: None,
            events_told: 0,
        }
    }

    pub(super) fn start(&mut self, no: u32, politeness: Politeness, pages_max: Option<u64>) {
        let start = CrawlStart {
            crawl: CrawlNo(no),
            politeness,
            pages_max,
            pages_done: 0,
            hosts: Vec::new(),
            linear: None,
            quiet_until: Moment(0),
        };
        self.starts.insert(start.crawl, start.clone());
        self.frontier.start(start);
    }

    pub(super) fn seed(&mut self, no: u32, url: PageUrl) {
        if let Some(visit) = self.admit(CrawlNo(no), url, 0) {
            self.frontier.discovered(visit, None);
        }
    }

    /// Puts URLs into the store without an event, as if they were from an earlier run.
    pub(super) fn store_quietly(&mut self, no: u32, url: PageUrl) {
        self.admit(CrawlNo(no), url, 0);
    }

    /// The process dies and starts again, with nothing but the store.
    pub(super) fn restart(&mut self, quiet_ms: u64) {
        self.events.clear();
        self.event_bodies.clear();
        self.commits_untold.clear();
        self.handed_out.clear();
        self.frontier = Frontier::with_head_max(self.head_max);
        for (no, start) in self.starts.clone() {
            let pages_of = |host: &Host| self.pages.get(&(no, host.clone())).copied().unwrap_or(0);
            let hosts = self.store.iter().filter(|((crawl, _), _)| *crawl == no);
            let hosts: Vec<HostStart> = hosts
                .map(|((_, host), queue)| HostStart {
                    host: host.clone(),
                    queued: queue.len() as u64,
                    pages: pages_of(host),
                    delay_ms: None,
                    next_at: Moment(0),
                })
                .collect();
            let pages_done = hosts.iter().map(|host| host.pages).sum();
            let quiet_until = self.now.plus_ms(quiet_ms);
            self.frontier.start(CrawlStart { hosts, pages_done, quiet_until, ..start });
        }
    }

    pub(super) fn run_until(&mut self, end: Moment) {
        self.run(end, |_| false);
    }

    /// Runs until the world is done with, or a condition holds.
    pub(super) fn run(&mut self, end: Moment, enough: impl Fn(&Self) -> bool) {
        loop {
            let wake_at = self.decide();
            if enough(self) {
                return;
            }
            let event_at = self.events.peek().map(|Reverse((at, _, _))| *at);
            let Some(next_at) = [wake_at, event_at].into_iter().flatten().min() else { return };
            if next_at > end {
                self.now = end;
                return;
            }
            self.now = next_at;
            while let Some(&Reverse((at, _, body))) = self.events.peek()
                && at <= self.now
            {
                self.events.pop();
                let event = self.event_bodies.remove(&body).unwrap();
                self.events_told += 1;
                self.tell(event);
            }
        }
    }

    pub(super) fn run_to_end(&mut self) {
        self.run_until(Moment(u64::MAX));
    }

    pub(super) fn pages_of(&self, no: u32) -> u64 {
        self.pages.iter().filter(|((crawl, _), _)| crawl.0 == no).map(|(_, pages)| pages).sum()
    }

    /// A prerequisite, as the engine sends it.
    pub(super) fn prerequisite(&mut self, no: u32, url: PageUrl) {
        self.prerequisite_for(Purpose::Robots, no, url);
    }

    /// A probe, as the engine sends it.
    pub(super) fn probe(&mut self, no: u32, url: PageUrl) {
        self.prerequisite_for(Purpose::Probe, no, url);
    }

    fn prerequisite_for(&mut self, purpose: Purpose, no: u32, url: PageUrl) {
        let Some(visit) = self.admit(CrawlNo(no), url, 0) else { return };
        let rows = self.store.get_mut(&(visit.crawl, visit.url.host())).unwrap();
        rows.remove(&visit.place);
        let place = QueuePlace { lane: Lane::Prerequisite, ..visit.place };
        let prerequisite = Visit { purpose, place, ..visit };
        self.queue(prerequisite.clone(), None);
        self.frontier.prerequisite(prerequisite, None);
    }

    fn admit(&mut self, crawl: CrawlNo, url: PageUrl, depth: u16) -> Option<Visit> {
        if !self.seen.insert((crawl, url.clone())) {
            return None;
        }
        self.seq += 1;
        let lane = if self.web.is_hot(&url) { Lane::Hot } else { Lane::Plain };
        let visit = Visit {
            crawl,
            purpose: Purpose::Page,
            key: UrlKeyer { seed: 1, drop_tracking: true }.key(&url),
            place: QueuePlace { lane, order: u64::from(depth), seq: self.seq },
            url,
            depth,
            hops_outside: 0,
            via: Via::Link,
            found_at: Timestamp(0),
            referrer: None,
            redirects: Vec::new(),
            lastmod: None,
            attempt: 1,
        };
        self.queue(visit.clone(), None);
        Some(visit)
    }

    fn queue(&mut self, visit: Visit, due: Option<Moment>) {
        let queue = self.store.entry((visit.crawl, visit.url.host())).or_default();
        assert!(queue.insert(visit.place, (visit, due)).is_none(), "places are unique");
    }

    fn at(&mut self, ms: u64, event: Event) {
        self.events_made += 1;
        // Events of one moment come in random order.
        let order = self.rng.next();
        self.events.push(Reverse((self.now.plus_ms(ms), order, self.events_made)));
        self.event_bodies.insert(self.events_made, event);
    }

    fn random_ms(&mut self, most: u64) -> u64 {
        self.rng.below(most + 1)
    }

    fn decide(&mut self) -> Option<Moment> {
        loop {
            match self.frontier.next(self.now) {
                Next::Visit(visit) => self.carry_out(visit),
                Next::NeedAddress { url, .. } => {
                    let ms = self.random_ms(self.lookup_ms);
                    self.at(ms, Event::Address(url.host()));
                }
                Next::NeedRobots { crawl, url } => {
                    let ms = self.random_ms(self.lookup_ms);
                    self.at(ms, Event::Robots(crawl, url));
                }
                Next::NeedUrls { crawl, host, region, after, max } => {
                    let ms = self.random_ms(self.read_ms);
                    self.at(ms, Event::Read { crawl, host, region, after, max });
                }
                Next::Finished { crawl, why } => self.ends.push((crawl, why, self.now)),
                Next::Wait(moment) => {
                    assert!(moment.is_none_or(|moment| moment > self.now), "{moment:?}");
                    return moment;
                }
            }
        }
    }

    fn carry_out(&mut self, visit: Visit) {
        assert!(self.handed_out.insert((visit.crawl, visit.place)), "handed out twice: {visit:?}");
        let row = self.store.get(&(visit.crawl, visit.url.host())).unwrap().get(&visit.place);
        assert!(
            row.is_some_and(
                |(stored, due)| *stored == visit && due.is_none_or(|due| due <= self.now)
            )
        );
        let origin = (visit.crawl, visit.url.host());
        assert!(self.robots_known.contains(&origin), "robots.txt was not read: {visit:?}");
        self.in_flight_most = self.in_flight_most.max(self.frontier.in_flight(visit.crawl));
        let ms = self.web.connect_ms(&visit, &mut self.rng);
        self.at(ms, Event::Requested(visit));
    }

    fn tell(&mut self, event: Event) {
        match event {
            Event::Requested(visit) => self.request(visit),
            Event::Finished(visit, outcome, requested_at) => {
                self.finish(visit, outcome, requested_at);
            }
            Event::Committed(visit, outcome, disposition) => {
                self.commit(visit, &outcome, disposition);
            }
            Event::Told => self.tell_commit(),
            Event::Read { crawl, host, region, after, max } => {
                let queue = self.store.entry((crawl, host.clone())).or_default();
                let mut rows = queue
                    .iter()
                    .filter(|(place, _)| place.lane != Lane::Prerequisite)
                    .filter(|(place, _)| Region::of(place.lane) == region && Some(**place) > after)
                    .map(|(_, row)| row.clone());
                let answer: Vec<Row> = rows.by_ref().take(max).collect();
                let exhausted = rows.next().is_none();
                let ms = self.random_ms(self.read_ms);
                self.at(ms, Event::Answer { crawl, host, region, rows: answer, exhausted });
            }
            Event::Answer { crawl, host, region, rows, exhausted } => {
                self.frontier.refill(crawl, &host, region, rows, exhausted);
            }
            Event::Robots(crawl, url) => {
                let known = RobotsKnown {
                    until: self.now.plus_ms(ROBOTS_MS),
                    crawl_delay_ms: self.crawl_delay_ms,
                };
                self.robots_known.insert((crawl, url.host()));
                self.frontier.robots(crawl, &url.host(), Door::of(&url), known);
            }
            Event::Address(host) => {
                let address = self.web.address(&host);
                self.frontier.address(&host, address, self.now);
            }
        }
    }

    fn request(&mut self, visit: Visit) {
        let host = visit.url.host();
        let spaced = |last: Option<Moment>| {
            last.is_none_or(|last| self.now.ms_since(last) >= self.spacing_ms)
        };
        assert!(spaced(self.last_asked.insert(host.clone(), self.now)), "{host} was asked twice");
        if let Some(address) = self.web.address(&host) {
            let last = self.last_asked_address.insert(address, self.now);
            assert!(spaced(last), "{address} was asked twice");
        }
        self.requests += 1;
        if self.keep_log {
            self.log.push(Asked {
                at: self.now,
                crawl: visit.crawl,
                url: visit.url.clone(),
                place: visit.place,
                attempt: visit.attempt,
            });
        }
        self.frontier.requested(&host, self.now);
        let ms = self.web.response_ms(&visit, &mut self.rng);
        let outcome = self.web.outcome(&visit, &mut self.rng);
        self.at(ms, Event::Finished(visit, outcome, Some(self.now)));
    }

    fn finish(&mut self, visit: Visit, outcome: FetchOutcome, requested_at: Option<Moment>) {
        let fetched = Fetched {
            network: self.web.network(&outcome),
            outcome,
            requested_at,
            took_ms: requested_at.map_or(0, |at| self.now.ms_since(at)),
            address: self.web.address(&visit.url.host()),
            retry_after_ms: self.web.retry_after_ms(),
        };
        let disposition = self.frontier.finished(&visit, &fetched, self.now);
        let ms = self.random_ms(self.commit_ms);
        self.at(ms, Event::Committed(visit, fetched.outcome, disposition));
    }

    fn commit(&mut self, visit: Visit, outcome: &FetchOutcome, disposition: Disposition) {
        let (crawl, host) = (visit.crawl, visit.url.host());
        let queue = self.store.get_mut(&(crawl, host.clone())).unwrap();
        assert!(queue.remove(&visit.place).is_some(), "committed twice: {visit:?}");
        let stored_page = disposition == Disposition::Settle
            && matches!(outcome, FetchOutcome::Page(page) if page.status < 400);
        let mut discovered = Vec::new();
        match disposition {
            Disposition::Settle => {
                *self.settled.entry((crawl, visit.url.clone())).or_default() += 1;
                *self.pages.entry((crawl, host.clone())).or_default() += u64::from(stored_page);
                let mut links = if stored_page { self.web.links(&visit) } else { Vec::new() };
                if let FetchOutcome::Redirected { to, .. } = outcome {
                    links.push(to.clone());
                }
                let depth = visit.depth + 1;
                let found = links.into_iter().filter_map(|link| self.admit(crawl, link, depth));
                discovered.extend(found.map(|visit| (visit, None)));
            }
            Disposition::Retry { after_ms, counted } => {
                self.seq += 1;
                let due = self.now.plus_ms(after_ms);
                let place = QueuePlace { lane: Lane::Later, order: due.0, seq: self.seq };
                let attempt = visit.attempt + u8::from(counted);
                let again = Visit { place, attempt, ..visit.clone() };
                self.queue(again.clone(), Some(due));
                discovered.push((again, Some(due)));
            }
        }
        self.commits_untold.push_back(Commit { visit, stored_page, discovered });
        let ms = self.random_ms(self.commit_ms);
        self.at(ms, Event::Told);
    }

    fn tell_commit(&mut self) {
        let commit = self.commits_untold.pop_front().unwrap();
        let Commit { visit, stored_page, discovered } = commit;
        let (crawl, host) = (visit.crawl, visit.url.host());
        self.handed_out.remove(&(crawl, visit.place));
        let committed_first = self.rng.below(2) == 0;
        if committed_first {
            self.frontier.committed(crawl, &host, visit.place, stored_page);
        }
        for (visit, due) in discovered {
            self.frontier.discovered(visit, due);
        }
        if !committed_first {
            self.frontier.committed(crawl, &host, visit.place, stored_page);
        }
    }
}
