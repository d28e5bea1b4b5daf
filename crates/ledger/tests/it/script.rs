//! Random crawls and linear walks: a script of small numbers becomes a list of events, as an engine would
//! write them down that works on a small web.

use proptest::prelude::*;
use telusur_ledger::conformance::crawl;
use telusur_ledger::in_memory::InMemory;
use telusur_ledger::{
    CrawlAccepted, CrawlChange, Effects, Event, FrontierStore, GiveUp, HostNote, IdEnded, IdEnding,
    KeptRun, KeptState, Ledger, LinkSource, LostPageRetry, PageLost, PageStore, Step, TrapMark,
    VisitEnded, VisitOutcome,
};
use telusur_model::{
    Crawl, CrawlId, CrawlNo, CrawlState, Digest, Discovery, Host, IdState, LinearSeeds, OriginRow,
    PageRecord, PageUrl, PauseReason, Purpose, QueuePlace, Reason, Resume, RobotsAnswer, Scope,
    Seeds, Template, Timestamp, UrlKey, UrlKeyer, Via, Visit, Walk, WalkRules,
};

/// The key seed of the set of crawls: not that of the storage, which must not matter.
const KEY_SEED: u64 = 77;
const HOSTS: [&str; 4] = ["a.test", "b.a.test", "c.test", "out.test"];

/// What happens next. Numbers choose among what there is.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    End { pick: u8, how: u8, links: Vec<u16> },
    EndAgain,
    EndId { id: u8, how: u8, redirect: bool, links: Vec<u16> },
    FindSitemaps { links: Vec<u16> },
    AskAgain { pick: u8 },
    GiveUp { host: u8 },
    Limits { host_max: u8, site_max: u8 },
    Raise,
    Import { url: u16 },
    ReadAgain { pick: u8 },
    Lose { pick: u8, is_linear: bool },
    MarkIds { first: u8, len: u8 },
    Note { host: u8, what: u8 },
    Trap { shape: u8, run: u8 },
    Origin { host: u8 },
    Ran,
    State { paused: bool },
}

pub(crate) fn script() -> impl Strategy<Value = Vec<Action>> {
    let links = || prop::collection::vec(any::<u16>(), 0..6);
    let end = (any::<u8>(), any::<u8>(), links());
    let end = end.prop_map(|(pick, how, links)| Action::End { pick, how, links });
    let id = (any::<u8>(), any::<u8>(), any::<bool>(), links());
    let id = id.prop_map(|(id, how, redirect, links)| Action::EndId { id, how, redirect, links });
    let limits = (any::<u8>(), any::<u8>());
    let limits = limits.prop_map(|(host_max, site_max)| Action::Limits { host_max, site_max });
    let lose = (any::<u8>(), any::<bool>());
    let lose = lose.prop_map(|(pick, is_linear)| Action::Lose { pick, is_linear });
    let mark = (any::<u8>(), any::<u8>());
    let mark = mark.prop_map(|(first, len)| Action::MarkIds { first, len });
    let note = (any::<u8>(), any::<u8>());
    let note = note.prop_map(|(host, what)| Action::Note { host, what });
    let trap = (any::<u8>(), any::<u8>());
    let trap = trap.prop_map(|(shape, run)| Action::Trap { shape, run });
    let action = prop_oneof![
        8 => end,
        1 => Just(Action::EndAgain),
        4 => id,
        1 => links().prop_map(|links| Action::FindSitemaps { links }),
        2 => any::<u8>().prop_map(|pick| Action::AskAgain { pick }),
        1 => any::<u8>().prop_map(|host| Action::GiveUp { host }),
        2 => limits,
        2 => Just(Action::Raise),
        1 => any::<u16>().prop_map(|url| Action::Import { url }),
        1 => any::<u8>().prop_map(|pick| Action::ReadAgain { pick }),
        1 => lose,
        1 => mark,
        1 => note,
        1 => trap,
        1 => any::<u8>().prop_map(|host| Action::Origin { host }),
        1 => Just(Action::Ran),
        1 => any::<bool>().prop_map(|paused| Action::State { paused }),
    ];
    prop::collection::vec(action, 1..32)
}

/// Writes the events of a script down, and folds each as it comes: what happens next depends on it.
pub(crate) struct Author {
    pub(crate) events: Vec<Event>,
    pub(crate) storage: InMemory,
    ledger: Ledger<InMemory>,
    crawls: [Crawl; 2],
    scopes: [Scope; 2],
    queued: Vec<Visit>,
    failed: Vec<Visit>,
    last_ended: Option<Event>,
    now: u64,
}

impl Author {
    pub(crate) fn write(script: &[Action]) -> Self {
        let storage = InMemory::default();
        let ledger = Ledger::open(storage.clone()).unwrap();
        let mut links = crawl(&["http://a.test/", "http://c.test/"]);
        links.limits.urls_per_host_max = 4;
        links.limits.urls_per_site_max = 6;
        links.sitemaps.urls = vec![url("http://a.test/sitemap.xml")];
        let template = Template::parse("http://a.test/{id}").unwrap();
        let rules = WalkRules { min: Some(0), max: Some(9), ..WalkRules::new(template) };
        let walks = vec![Walk::new(rules).unwrap()];
        let mut linear = crawl(&[]);
        linear.seeds = Seeds::Linear(LinearSeeds { walks, resume: Resume::All, follow: true });
        let numbered = |(no, crawl)| Crawl {
            no: CrawlNo(no),
            id: CrawlId::new(Timestamp(0), u128::from(no)),
            ..crawl
        };
        let crawls = [(1, links), (2, linear)].map(numbered);
        let scopes = crawls.each_ref().map(|crawl| Scope::of(crawl).unwrap());
        let mut author = Self {
            events: Vec::new(),
            storage,
            ledger,
            scopes,
            queued: Vec::new(),
            failed: Vec::new(),
            last_ended: None,
            now: 1_000,
            crawls: crawls.clone(),
        };
        for crawl in crawls {
            let accepted = CrawlAccepted { crawl, key_seed: KEY_SEED };
            author.happens(Event::CrawlAccepted(Box::new(accepted)));
        }
        for action in script {
            author.now += 10;
            author.act(action);
        }
        author
    }

    fn happens(&mut self, event: Event) {
        self.events.push(event.clone());
        let Effects { queued, dequeued, .. } = self.ledger.commit(Step::of(event)).unwrap();
        for gone in dequeued {
            self.queued.retain(|visit| (visit.crawl, visit.place) != (gone.crawl, gone.place));
        }
        self.queued.extend(queued.into_iter().map(|it| it.visit));
    }

    fn act(&mut self, action: &Action) {
        let crawl = CrawlNo(1);
        match action {
            Action::End { pick, how, links } => self.end(*pick, *how, links),
            Action::EndAgain => {
                if let Some(event) = self.last_ended.clone() {
                    self.happens(event);
                }
            }
            Action::EndId { id, how, redirect, links } => self.end_id(*id, *how, *redirect, links),
            Action::FindSitemaps { links } => {
                let source = self.source("http://a.test/robots.txt", crawl);
                self.find(source, links, Via::Sitemap);
            }
            Action::AskAgain { pick } => {
                if let Some(visit) = choose(&self.failed, *pick) {
                    self.happens(Event::AskedAgain(Box::new(visit)));
                }
            }
            Action::GiveUp { host } => {
                let give_up = GiveUp {
                    crawl,
                    host: host_of(*host),
                    reason: Reason::RetryAfter,
                    detail: "an hour".to_owned(),
                    at: Timestamp(self.now),
                };
                self.happens(Event::HostGivenUp(Box::new(give_up)));
            }
            Action::Limits { host_max, site_max } => {
                let limits = &mut self.crawls[0].limits;
                limits.urls_per_host_max = u64::from(host_max % 8);
                limits.urls_per_site_max = u64::from(site_max % 12);
                let change = CrawlChange::Settings(Box::new(self.crawls[0].clone()));
                self.happens(Event::CrawlChanged { crawl, change });
            }
            Action::Raise => self.happens(Event::BudgetsRaised { crawl }),
            Action::Import { url } => {
                let url = url_of(*url);
                let page = self.page(crawl, keyer().key(&url), url, 200);
                self.happens(Event::DocumentImported(Box::new(page)));
            }
            Action::ReadAgain { pick } => {
                let pages = self.ledger.pages_after(crawl, 0, 100).unwrap();
                if let Some(page) = choose(&pages, *pick) {
                    let page = PageRecord { title: Some(format!("{}", self.now)), ..page };
                    self.happens(Event::PageReadAgain(Box::new(page)));
                }
            }
            Action::Lose { pick, is_linear } => {
                let crawl = CrawlNo(if *is_linear { 2 } else { 1 });
                let pages = self.ledger.pages_after(crawl, 0, 100).unwrap();
                if let Some(page) = choose(&pages, *pick) {
                    self.lose(page);
                }
            }
            Action::MarkIds { first, len } => {
                let first = u64::from(first % 10);
                let state = KeptState { state: IdState::Waiting { attempts: 0 }, why: None };
                let run = KeptRun { first, last: first + u64::from(len % 4), state };
                let site = host_of(0).site();
                self.happens(Event::IdsMarked { crawl: CrawlNo(2), site, walk: 0, run });
            }
            Action::Note { host, what } => {
                let note = match what % 3 {
                    0 => HostNote::Requested(Timestamp(self.now)),
                    1 => HostNote::LastRequest(Timestamp(self.now)),
                    _ => HostNote::Delay(Some(u64::from(*what))),
                };
                self.happens(Event::HostNoted { crawl, host: host_of(*host), note });
            }
            Action::Trap { shape, run } => {
                let (shape, run) = (u64::from(shape % 3), u32::from(run % 4));
                let mark = TrapMark { shape, run, rule: (run == 3).then(|| "alike".to_owned()) };
                self.happens(Event::TrapNoted { crawl, site: host_of(0).site(), mark });
            }
            Action::Origin { host } => {
                let row = OriginRow {
                    origin: format!("http://{}", host_of(*host)),
                    robots: RobotsAnswer::Missing { why: "404".to_owned() },
                    asked_at: Timestamp(self.now),
                    redirects: Vec::new(),
                    not_found: None,
                };
                self.happens(Event::OriginLearned(Box::new(row)));
            }
            Action::Ran => self.happens(Event::CrawlRan { crawl, active_ms: 7 }),
            Action::State { paused } => {
                let state = match paused {
                    true => CrawlState::Paused { why: PauseReason::Asked },
                    false => CrawlState::Running,
                };
                let change = CrawlChange::State(state, Timestamp(self.now));
                self.happens(Event::CrawlChanged { crawl, change });
            }
        }
    }

    fn end(&mut self, pick: u8, how: u8, links: &[u16]) {
        let Some(visit) = choose(&self.queued, pick) else { return };
        let at = Timestamp(self.now);
        let mut requested_at = Some(at);
        let how = match how % 10 {
            0 => {
                requested_at = None;
                let rule = "robots.txt line 1".to_owned();
                VisitOutcome::Skipped { reason: Reason::RobotsDisallowed, rule }
            }
            1 => VisitOutcome::Failed { reason: Reason::TimeoutBody, detail: String::new() },
            2 | 3 => VisitOutcome::Later {
                due: Timestamp(self.now + 100),
                counted: how % 10 == 2,
                reason: Reason::HttpError,
                status: Some(503),
                detail: String::new(),
            },
            4 => VisitOutcome::Redirected { status: 301, to: "http://a.test/1".to_owned() },
            _ if matches!(visit.purpose, Purpose::Sitemap { .. }) => {
                VisitOutcome::Sitemap { entries: 1, dropped: 0, trouble: None }
            }
            5 => self.page_outcome(&visit, 404),
            _ => self.page_outcome(&visit, 200),
        };
        let via = match how {
            VisitOutcome::Redirected { .. } => Via::Redirect,
            VisitOutcome::Sitemap { .. } => Via::Sitemap,
            _ => Via::Link,
        };
        self.find(LinkSource::of_visit(&visit, at), links, via);
        if matches!(how, VisitOutcome::Failed { .. }) {
            self.failed.push(visit.clone());
        }
        let ended = VisitEnded { visit, how, at, requested_at, other_schemes: 1 };
        let event = Event::VisitEnded(Box::new(ended));
        self.last_ended = Some(event.clone());
        self.happens(event);
    }

    fn page_outcome(&self, visit: &Visit, status: u16) -> VisitOutcome {
        VisitOutcome::Page(Box::new(self.page(visit.crawl, visit.key, visit.url.clone(), status)))
    }

    fn end_id(&mut self, id: u8, how: u8, redirect: bool, links: &[u16]) {
        let id = u64::from(id % 10);
        let first = url(&format!("http://a.test/{id}"));
        let at = Timestamp(self.now);
        let visit = Visit {
            crawl: CrawlNo(2),
            purpose: Purpose::Page,
            key: linear_keyer().key(&first),
            url: if redirect { url(&format!("http://c.test/{id}")) } else { first.clone() },
            place: QueuePlace::of_id(0, id),
            depth: 0,
            hops_outside: 0,
            via: Via::Linear,
            found_at: at,
            referrer: None,
            redirects: if redirect { vec![first.to_string()] } else { Vec::new() },
            lastmod: None,
            attempt: 1,
        };
        let (state, why) = match how % 4 {
            0 => (IdState::Missing, None),
            1 => (IdState::Hole, Some(Reason::TimeoutBody)),
            _ => (IdState::Content, None),
        };
        let page = PageRecord {
            redirects: visit.redirects.clone(),
            ..self.page(visit.crawl, visit.key, visit.url.clone(), 200)
        };
        let page = (state == IdState::Content).then(|| Box::new(page));
        let status = page.is_none().then_some(404);
        self.find(LinkSource::of_visit(&visit, at), links, Via::Link);
        let id = IdEnding { walk: 0, position: id, kept: KeptState { state, why } };
        let ended = IdEnded { visit, id, page, status, requested_at: Some(at), other_schemes: 0 };
        self.happens(Event::IdEnded(Box::new(ended)));
    }

    fn lose(&mut self, page: PageRecord) {
        let crawl = page.crawl;
        let first = page.redirects.first().map_or_else(|| page.url.clone(), |first| url(first));
        let id = first.as_str().strip_prefix("http://a.test/").and_then(|id| id.parse().ok());
        let again = match id.filter(|id| *id < 10 && crawl == CrawlNo(2)) {
            Some(position) => LostPageRetry::Id { walk: 0, position },
            None if page.depth % 2 == 1 => LostPageRetry::Never,
            None => LostPageRetry::Queue(Box::new(Visit {
                crawl,
                purpose: Purpose::Page,
                url: page.url.clone(),
                key: page.key,
                place: QueuePlace::of_id(0, 0),
                depth: page.depth,
                hops_outside: 0,
                via: page.via,
                found_at: page.found_at,
                referrer: None,
                redirects: Vec::new(),
                lastmod: None,
                attempt: 1,
            })),
        };
        let lost = PageLost { crawl, url: first, key: page.key, again };
        self.happens(Event::PageLost(Box::new(lost)));
    }

    /// Finds links; each number is a URL and a mark or two.
    fn find(&mut self, source: LinkSource, links: &[u16], via: Via) {
        let crawl = source.crawl;
        let keyer = if crawl == CrawlNo(1) { keyer() } else { linear_keyer() };
        let found = links.iter().map(|link| {
            let url = url_of(*link);
            let nofollow = link % 7 == 0;
            if via == Via::Sitemap && link % 5 == 0 {
                let purpose = Purpose::Sitemap { nesting: 1 };
                let key = keyer.sitemap_key(&url);
                return Discovery { purpose, ..Discovery::page(url, key, via) };
            }
            let hot = link % 11 == 0;
            let key = keyer.key(&url);
            Discovery { hot, nofollow, ..Discovery::page(url, key, via) }
        });
        let scope = &self.scopes[usize::try_from(crawl.0 - 1).unwrap()];
        for event in source.judge_to_events(found.collect(), scope) {
            self.happens(event);
        }
    }

    fn source(&self, url: &str, crawl: CrawlNo) -> LinkSource {
        LinkSource {
            crawl,
            at: Timestamp(self.now),
            depth: 0,
            hops_outside: 0,
            url: url.to_owned(),
            referrer: None,
            redirects: Vec::new(),
        }
    }

    fn page(&self, crawl: CrawlNo, key: UrlKey, url: PageUrl, status: u16) -> PageRecord {
        PageRecord {
            seq: 0,
            crawl,
            key,
            url,
            redirects: Vec::new(),
            status,
            content_type: None,
            title: None,
            via: Via::Link,
            found_at: Timestamp(0),
            referrer: None,
            depth: 0,
            requested_at: None,
            fetched_at: Timestamp(self.now),
            took_ms: 1,
            attempts: 1,
            bytes: 3,
            wire_bytes: 2,
            truncated: false,
            digest: Digest([0; 32]),
            etag: None,
            last_modified: None,
            lastmod: None,
            directives: Default::default(),
            soft_404: false,
            parse_failed: self.now.is_multiple_of(90).then(|| "deep".to_owned()),
            change: None,
            link_count: 0,
            body: None,
            parsed: None,
        }
    }
}

fn choose<T: Clone>(of: &[T], pick: u8) -> Option<T> {
    of.get(usize::from(pick) % of.len().max(1)).cloned()
}

fn url(text: &str) -> PageUrl {
    PageUrl::parse(text).unwrap()
}

fn host_of(number: u8) -> Host {
    Host::new(HOSTS[usize::from(number) % HOSTS.len()])
}

/// One of some eighty URLs, ids of the walk among them.
fn url_of(number: u16) -> PageUrl {
    let host = HOSTS[usize::from(number) % HOSTS.len()];
    let path = number / 4 % 20;
    url(&format!("http://{host}/{path}"))
}

fn keyer() -> UrlKeyer {
    UrlKeyer { seed: KEY_SEED, drop_tracking: true }
}

fn linear_keyer() -> UrlKeyer {
    UrlKeyer { seed: KEY_SEED, drop_tracking: true }
}
