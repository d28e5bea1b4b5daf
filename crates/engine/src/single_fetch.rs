//! Single pages, fetched for somebody who waits for them and stored nowhere. Each is a crawl of one URL in the
//! frontier that no store knows, so that its requests go through the same gates as all others, wait for the
//! same robots.txt, and follow redirects as visits (`docs/decisions/0020`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use telusur_frontier::CrawlStart;
use telusur_ledger::{Asking, StoreError, VisitOutcome};
use telusur_model::{
    Crawl, CrawlId, CrawlNo, FetchOutcome, FetchRules, Fetched, Host, Keep, Lane, Limits, Moment,
    PageUrl, Politeness, Purpose, QueuePlace, RawPage, Reason, RobotsRules, ScopeRules, Seeds,
    SitemapRules, Timestamp, UrlKey, Via, Visit,
};
use tokio::sync::oneshot;

use crate::asked_before::AskedLately;
use crate::context::CrawlContext;
use crate::crawl_task::{CrawlTask, delay_over};
use crate::error::RequestError;
use crate::parse_stage::ParseWork;

/// The first number of a single fetch. A store numbers its crawls from 1.
const FIRST_NO: u32 = 1 << 31;
/// What the store remembers single fetches under: that they may have asked anybody.
const ASKING_NO: CrawlNo = CrawlNo(u32::MAX);
/// Single fetches at once. A service admits fewer; each holds one page in memory.
const SINGLES_MAX: usize = 256;
/// What somebody is told to wait when nothing says for how long.
const RETRY_AFTER_MS_MIN: u64 = 1_000;

/// A page that is wanted now.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// Where it is.
    pub url: PageUrl,
    /// A URL of the origin that the user named: extra headers that are bound to no origin go there only.
    pub named: PageUrl,
    /// How it is asked for.
    pub fetch: FetchRules,
    /// How its host is treated.
    pub politeness: Politeness,
    /// Decoded bytes of the body that are read.
    pub body_bytes_max: u64,
    /// Longest that it waits for a host before a request.
    pub wait_ms_max: u64,
}

/// A page, and the way to it.
#[derive(Debug)]
pub struct Arrived {
    /// The page.
    pub page: RawPage,
    /// The URLs that redirected here, first to last.
    pub redirects: Vec<String>,
    /// How long the last request took.
    pub took_ms: u64,
}

/// Why there is no page.
#[derive(Debug, PartialEq, Eq)]
pub struct NotFetched {
    /// Where it ended.
    pub url: String,
    /// Why.
    pub why: Reason,
    /// What exactly, for people.
    pub detail: String,
}

/// Why a single fetch brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The page could not be fetched.
    #[error("cannot fetch {}: {} ({})", .0.url, .0.why, .0.detail)]
    NotFetched(NotFetched),
    /// The host may not be asked soon enough.
    #[error("{host} may not be asked again for {retry_after_ms} ms")]
    MustWait {
        /// Which.
        host: Host,
        /// When to come again.
        retry_after_ms: u64,
    },
    /// The engine cannot carry it out.
    #[error(transparent)]
    Refused(#[from] RequestError),
}

/// Where the answer goes.
pub(crate) type FetchReply = oneshot::Sender<Result<Arrived, FetchError>>;

/// A single fetch that is ready to begin.
pub(crate) struct FetchStart {
    pub(crate) request: FetchRequest,
    pub(crate) context: CrawlContext,
    pub(crate) asked_lately: AskedLately,
}

impl FetchRequest {
    /// The crawl that it is. It gets its number when it begins.
    pub(crate) fn crawl(&self) -> Crawl {
        Crawl {
            no: CrawlNo(FIRST_NO),
            id: CrawlId::new(Timestamp(0), 0),
            name: None,
            created_at: Timestamp(0),
            seeds: Seeds::Links(vec![self.named.clone()]),
            scope: ScopeRules::default(),
            // Somebody waits: what fails is not tried again. What it teaches about the host is kept.
            politeness: Politeness {
                attempts_max: 1,
                rate_per_second: None,
                ..self.politeness.clone()
            },
            limits: Limits { body_bytes_max: self.body_bytes_max, ..Limits::default() },
            fetch: self.fetch.clone(),
            keep: Keep::None,
            topic: Vec::new(),
            keep_tracking: true,
            sitemaps: SitemapRules { discover: false, urls: Vec::new() },
            recrawl_of: None,
            labels: BTreeMap::new(),
        }
    }
}

/// The single fetches of an engine.
#[derive(Default)]
pub(crate) struct Singles {
    by_no: BTreeMap<CrawlNo, Single>,
    /// How many there were.
    count: u32,
    /// Fetches that wait until another one has read the robots.txt that they need.
    robots_needs: Vec<(CrawlNo, PageUrl)>,
    /// It is written down that hosts may have been asked.
    is_asking: bool,
}

struct Single {
    context: Arc<CrawlContext>,
    /// Where it is now.
    url: PageUrl,
    /// The URLs that redirected there.
    redirects: Vec<String>,
    /// Since when it waits to be asked for; `None` while a request is under way.
    waits_since: Option<Moment>,
    wait_ms_max: u64,
    reply: FetchReply,
}

impl Singles {
    /// Whether a visit belongs to a single fetch, which may be over.
    pub(crate) fn is_single(crawl: CrawlNo) -> bool {
        crawl.0 >= FIRST_NO
    }

    pub(crate) fn context(&self, crawl: CrawlNo) -> Option<&Arc<CrawlContext>> {
        self.by_no.get(&crawl).map(|single| &single.context)
    }

    /// A number that no fetch has whose visits may still be under way.
    fn next_no(&mut self) -> CrawlNo {
        self.count = (self.count + 1) % (ASKING_NO.0 - FIRST_NO);
        CrawlNo(FIRST_NO + self.count)
    }
}

impl CrawlTask {
    /// Begins to fetch a page.
    pub(crate) fn begin_single(&mut self, start: FetchStart, reply: FetchReply) {
        match self.admit_single(start, reply) {
            Ok(crawl) => self.check_single(crawl, self.clock.now()),
            // Nobody may be waiting any more.
            Err((reply, error)) => drop(reply.send(Err(error))),
        }
    }

    fn admit_single(
        &mut self,
        start: FetchStart,
        reply: FetchReply,
    ) -> Result<CrawlNo, (FetchReply, FetchError)> {
        let FetchStart { request, mut context, asked_lately } = start;
        if self.is_shutting_down {
            return Err((reply, RequestError::Stopped.into()));
        }
        if self.singles.by_no.len() >= SINGLES_MAX {
            let (host, retry_after_ms) = (request.url.host(), RETRY_AFTER_MS_MIN);
            return Err((reply, FetchError::MustWait { host, retry_after_ms }));
        }
        // Before its first request: after a kill nobody else knows that there was one.
        if !self.singles.is_asking {
            if let Err(error) = self.store.set_asking(ASKING_NO, Some(Asking::Now)) {
                return Err((reply, FetchError::Refused(error.into())));
            }
            self.singles.is_asking = true;
        }
        let crawl = self.singles.next_no();
        context.crawl.no = crawl;
        let now = self.clock.now();
        let delay_ms = context.crawl.politeness.delay_ms;
        let asked_at = asked_lately.anybody_until;
        let quiet_until =
            asked_at.map_or(now, |at| delay_over(at, delay_ms, now, self.clock.wall()));
        let obeys = context.crawl.politeness.robots != RobotsRules::Ignore;
        self.owe_delays(asked_lately.hosts, obeys);
        self.frontier.start(CrawlStart {
            crawl,
            politeness: context.crawl.politeness.clone(),
            pages_max: None,
            pages_done: 0,
            hosts: Vec::new(),
            linear: None,
            quiet_until,
        });
        let single = Single {
            context: Arc::new(context),
            url: request.url.clone(),
            redirects: Vec::new(),
            waits_since: Some(now),
            wait_ms_max: request.wait_ms_max,
            reply,
        };
        self.singles.by_no.insert(crawl, single);
        self.queue_single(crawl, request.url);
        Ok(crawl)
    }

    /// Has the frontier ask for a URL when its turn comes.
    fn queue_single(&mut self, crawl: CrawlNo, url: PageUrl) {
        let seq = self.prerequisites.next_seq();
        let visit = Visit {
            crawl,
            purpose: Purpose::Page,
            url,
            key: UrlKey(0),
            place: QueuePlace { lane: Lane::Hot, order: 0, seq },
            depth: 0,
            hops_outside: 0,
            via: Via::Link,
            found_at: self.clock.wall(),
            referrer: None,
            redirects: Vec::new(),
            lastmod: None,
            attempt: 1,
        };
        self.frontier.discovered(visit, None);
    }

    /// What keeps a crawl's visits together: of a crawl of the store, or of a single fetch.
    pub(crate) fn context_of(&self, crawl: CrawlNo) -> Option<&Arc<CrawlContext>> {
        let of_crawl = self.crawls.get(&crawl).map(|running| &running.context);
        of_crawl.or_else(|| self.singles.context(crawl))
    }

    /// The turn of a single fetch has come: it asks, unless robots.txt forbids it.
    pub(crate) fn dispatch_single(&mut self, visit: Visit) {
        let now = self.clock.now();
        let Some(context) = self.singles.context(visit.crawl).map(Arc::clone) else {
            return self.frontier.skipped(&visit, now);
        };
        let obeys = context.crawl.politeness.robots != RobotsRules::Ignore;
        if obeys
            && visit.purpose == Purpose::Page
            && let Some(refusal) = self.prerequisites.judge(&visit)
        {
            self.frontier.skipped(&visit, now);
            return self.end_single(visit.crawl, Err(refused(&visit.url, refusal)));
        }
        if let Some(single) = self.singles.by_no.get_mut(&visit.crawl) {
            single.waits_since = None;
        }
        self.pipeline.enter(&visit);
        self.under_way.fetch_add(1, Ordering::AcqRel);
        self.pipeline.begin_fetch(&visit);
        self.fetch.visit(visit, &context);
    }

    /// A request of a single fetch has ended: that for robots.txt is read like that of any crawl, a page or a
    /// redirect is its own.
    pub(crate) fn single_fetched(&mut self, visit: Visit, fetched: Fetched) {
        let now = self.clock.now();
        let disposition = self.frontier.finished(&visit, &fetched, now);
        let single = self.singles.by_no.get_mut(&visit.crawl);
        let context = single.map(|single| {
            single.waits_since = Some(now);
            Arc::clone(&single.context)
        });
        if let (Purpose::Robots, Some(context)) = (visit.purpose, &context) {
            let context = Arc::clone(context);
            let work = ParseWork { visit, fetched, disposition, context, is_cost_watched: false };
            return self.parse.send(work, now);
        }
        self.pipeline.leave_one(&visit, fetched.body_bytes());
        self.under_way.fetch_sub(1, Ordering::AcqRel);
        self.frontier.committed(visit.crawl, &visit.url.host(), visit.place, false);
        let Fetched { outcome, took_ms, .. } = fetched;
        match outcome {
            FetchOutcome::Redirected { to, .. } => self.redirect_single(visit.crawl, to),
            FetchOutcome::Page(page) => {
                let single = self.singles.by_no.get_mut(&visit.crawl);
                let redirects =
                    single.map(|single| std::mem::take(&mut single.redirects)).unwrap_or_default();
                self.end_single(visit.crawl, Ok(Arrived { page, redirects, took_ms }));
            }
            FetchOutcome::Refused { why, detail } | FetchOutcome::Failed { why, detail, .. } => {
                self.end_single(visit.crawl, Err(not_fetched(&visit.url, why, detail)));
            }
            FetchOutcome::NotModified => {
                let detail = "status 304, unasked".to_owned();
                let failed = not_fetched(&visit.url, Reason::ProtocolError, detail);
                self.end_single(visit.crawl, Err(failed));
            }
        }
    }

    /// The next hop is a visit of its own: its host, its address and its robots.txt are asked like the first.
    fn redirect_single(&mut self, crawl: CrawlNo, to: PageUrl) {
        let Some(single) = self.singles.by_no.get_mut(&crawl) else { return };
        let from = std::mem::replace(&mut single.url, to.clone());
        single.redirects.push(from.to_string());
        let redirects_max = usize::from(single.context.crawl.fetch.redirects_max);
        let failed = if single.redirects.iter().any(|earlier| earlier == to.as_str()) {
            let detail = format!("redirects to {to}");
            Some(not_fetched(&from, Reason::RedirectLoop, detail))
        } else if single.redirects.len() > redirects_max {
            let detail = format!("more than {redirects_max} in a row, the next is {to}");
            Some(not_fetched(&from, Reason::TooManyRedirects, detail))
        } else {
            None
        };
        match failed {
            Some(failed) => self.end_single(crawl, Err(failed)),
            None => self.queue_single(crawl, to),
        }
    }

    /// Whether another single fetch is reading the robots.txt that this one needs, so that it is asked for
    /// once.
    pub(crate) fn waits_for_robots_of_other(&mut self, crawl: CrawlNo, url: &PageUrl) -> bool {
        let waits = Singles::is_single(crawl) && self.prerequisites.is_read_by_other(crawl, url);
        if waits {
            self.singles.robots_needs.push((crawl, url.clone()));
        }
        waits
    }

    /// Fetches that waited for the robots.txt of another one look again.
    pub(crate) fn look_for_robots_again(&mut self) -> Result<(), crate::error::EngineError> {
        for (crawl, url) in std::mem::take(&mut self.singles.robots_needs) {
            self.need_robots(crawl, &url)?;
        }
        Ok(())
    }

    /// Tells those that their host may not be asked soon enough, and forgets those that nobody waits for.
    pub(crate) fn check_singles(&mut self, now: Moment) {
        let waiting: Vec<CrawlNo> = self.singles.by_no.keys().copied().collect();
        for crawl in waiting {
            self.check_single(crawl, now);
        }
    }

    fn check_single(&mut self, crawl: CrawlNo, now: Moment) {
        let Some(single) = self.singles.by_no.get(&crawl) else { return };
        if single.reply.is_closed() {
            return self.forget_single(crawl);
        }
        let Some(since) = single.waits_since else { return };
        let host = single.url.host();
        let deadline = since.plus_ms(single.wait_ms_max);
        let opens_at = self.frontier.may_ask_at(crawl, &host).unwrap_or(now);
        if opens_at <= deadline && now <= deadline {
            return;
        }
        let retry_after_ms = opens_at.ms_since(now).max(RETRY_AFTER_MS_MIN);
        self.end_single(crawl, Err(FetchError::MustWait { host, retry_after_ms }));
    }

    fn end_single(&mut self, crawl: CrawlNo, result: Result<Arrived, FetchError>) {
        let single = self.singles.by_no.remove(&crawl);
        self.forget_single(crawl);
        if let Some(single) = single {
            // Nobody may be waiting any more.
            drop(single.reply.send(result));
        }
    }

    /// What is still under way keeps its host and address busy until it ends.
    fn forget_single(&mut self, crawl: CrawlNo) {
        self.singles.by_no.remove(&crawl);
        self.drop_all_parse_work(crawl);
        self.frontier.remove(crawl);
        self.prerequisites.forget(crawl);
    }

    /// Ends all of them: nobody waits for a page when the engine ends.
    pub(crate) fn stop_singles(&mut self) {
        let all: Vec<CrawlNo> = self.singles.by_no.keys().copied().collect();
        for crawl in all {
            self.end_single(crawl, Err(RequestError::Stopped.into()));
        }
    }

    /// Writes down up to when hosts may have been asked: the next process owes them a delay.
    pub(crate) fn note_singles(&mut self) -> Result<(), StoreError> {
        if std::mem::take(&mut self.singles.is_asking) {
            self.store.set_asking(ASKING_NO, Some(Asking::Until(self.clock.wall())))?;
        }
        Ok(())
    }
}

/// Why a page may not be asked for, by what is known of its robots.txt.
fn refused(url: &PageUrl, refusal: VisitOutcome) -> FetchError {
    match refusal {
        VisitOutcome::Skipped { reason, rule } => not_fetched(url, reason, rule),
        VisitOutcome::Later { reason, detail, .. } | VisitOutcome::Failed { reason, detail } => {
            not_fetched(url, reason, detail)
        }
        other => unreachable!("robots.txt says no more than that: {other:?}"),
    }
}

fn not_fetched(url: &PageUrl, why: Reason, detail: String) -> FetchError {
    FetchError::NotFetched(NotFetched { url: url.to_string(), why, detail })
}
