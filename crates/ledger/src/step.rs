//! [`Step`]: one atomic commit. What ended, what it left behind, what it found.

use std::sync::Arc;

use telusur_model::{
    CrawlNo, CrawlStats, Discovery, Host, IdState, OriginRow, PageRecord, PageUrl, QueuePlace,
    Reason, Scope, Timestamp, Visit,
};

use crate::{KeptRun, KeptState, Packed};

/// One atomic commit.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// Visits that ended, or go back to the queue.
    pub endings: Vec<Ending>,
    /// Time that crawls have run since the last step.
    pub active_ms: Vec<(CrawlNo, u64)>,
    /// Delays that were learned for hosts; `None` is the crawl's own.
    pub host_delays: Vec<(CrawlNo, Host, Option<u64>)>,
    /// What no visit of the crawl found: the sitemaps that robots.txt names, links in pages read again.
    pub found: Vec<Found>,
    /// What was learned about origins.
    pub origins: Vec<OriginRow>,
    /// Documents that nobody crawled. One whose key is known as a page replaces that page.
    pub imports: Vec<PageToStore>,
    /// Stored pages that were read again: what is recorded of them is replaced, and they get a new
    /// place in the order of pages. Their bodies stay where they are.
    pub reread: Vec<PageRecord>,
    /// Requests that belong to no URL of a crawl: those for robots.txt.
    pub prerequisite_requests: Vec<(CrawlNo, Host, Timestamp)>,
    /// When hosts were last asked by visits that leave nothing else behind: they are still under way, or
    /// are given back to the queue.
    pub last_requests: Vec<(CrawlNo, Host, Timestamp)>,
    /// What is to be known of ids although no visit brought it: holes that are asked again.
    pub runs: Vec<(CrawlNo, u32, KeptRun)>,
    /// URLs that failed and are asked again; the store gives them their places. Others are passed over.
    pub again: Vec<Visit>,
    /// Hosts whose queued URLs are given up.
    pub give_up: Vec<GiveUp>,
    /// Crawls whose budgets were raised: links that were left out are let in, a bounded number of
    /// them. [`Committed::more_held`] says whether there are more.
    pub let_in: Vec<CrawlNo>,
    /// What was found out about shapes of addresses that may be traps.
    pub traps: Vec<(CrawlNo, TrapMark)>,
}

/// How far pages of one shape of addresses say the same: what makes a trap end, and stay ended after
/// the next start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrapMark {
    /// The shape, by a hash.
    pub shape: u64,
    /// Look-alikes in a row; 0 if they are none any more, and nothing is kept.
    pub run: u32,
    /// The rule in words, if the shape's budget has ended.
    pub rule: Option<String>,
}

/// The queued URLs of a host end without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GiveUp {
    /// Of this crawl.
    pub crawl: CrawlNo,
    /// And this host.
    pub host: Host,
    /// Why.
    pub reason: Reason,
    /// What exactly.
    pub detail: String,
    /// When.
    pub at: Timestamp,
}

impl Step {
    /// Whether there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.endings.is_empty()
            && self.active_ms.is_empty()
            && self.host_delays.is_empty()
            && self.found.is_empty()
            && self.origins.is_empty()
            && self.imports.is_empty()
            && self.reread.is_empty()
            && self.prerequisite_requests.is_empty()
            && self.last_requests.is_empty()
            && self.runs.is_empty()
            && self.again.is_empty()
            && self.give_up.is_empty()
            && self.let_in.is_empty()
            && self.traps.is_empty()
    }
}

/// Links that no visit of the crawl found: in a file that is no page, or in a page read again.
#[derive(Clone, Debug)]
pub struct Found {
    /// The crawl that takes them in.
    pub crawl: CrawlNo,
    /// Where they were found.
    pub on: String,
    /// How many links away from a start URL that is.
    pub depth: u16,
    /// How many links beyond the scope that is.
    pub hops_outside: u8,
    /// When.
    pub at: Timestamp,
    /// The links.
    pub discoveries: Vec<Discovery>,
    /// What judges those of them that are new.
    pub scope: Arc<Scope>,
}

/// How one visit ended, and what was found on the way.
#[derive(Clone, Debug)]
pub struct Ending {
    /// The visit.
    pub visit: Visit,
    /// How it ended.
    pub how: VisitOutcome,
    /// When.
    pub at: Timestamp,
    /// When its request was sent.
    pub requested_at: Option<Timestamp>,
    /// Links found.
    pub discoveries: Vec<Discovery>,
    /// What judges those of them that are new.
    pub scope: Arc<Scope>,
    /// Links that are never fetched, of which only the number is kept.
    pub other_schemes: u32,
    /// What became of the id, if it was asked for one of a linear crawl.
    pub id: Option<IdEnding>,
}

/// What became of an id of a linear crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdEnding {
    /// In this walk.
    pub walk: u32,
    /// Its position there.
    pub position: u64,
    /// What became of it, and why.
    pub kept: KeptState,
}

/// How a visit ended.
#[derive(Clone, Debug)]
pub enum VisitOutcome {
    /// The server answered.
    Page(Box<PageToStore>),
    /// A sitemap was read, or is none; its entries are among the discoveries.
    Sitemap {
        /// Entries that are followed up.
        entries: u32,
        /// Entries that were left out.
        dropped: u64,
        /// Why it was not read, or not to its end.
        trouble: Option<String>,
    },
    /// The server sent us elsewhere; the target is among the discoveries.
    Redirected {
        /// The redirecting status.
        status: u16,
        /// Where to.
        to: String,
    },
    /// There was no answer, and there will be none.
    Failed {
        /// Why.
        reason: Reason,
        /// What exactly.
        detail: String,
    },
    /// An id of a linear crawl has no page: it does not exist, or it failed. Nothing is kept of it
    /// but its run.
    NoPage {
        /// The status, if the server answered.
        status: Option<u16>,
    },
    /// It was not asked for after all.
    Skipped {
        /// Why.
        reason: Reason,
        /// By which rule.
        rule: String,
    },
    /// It is asked again.
    Later {
        /// When.
        due: Timestamp,
        /// Whether this attempt counts.
        counted: bool,
        /// What went wrong.
        reason: Reason,
        /// The status, if the server answered.
        status: Option<u16>,
        /// What exactly.
        detail: String,
    },
}

/// A page with its bytes. The store fills in the record's sequence number and the bytes' place.
#[derive(Clone, Debug)]
pub struct PageToStore {
    /// The record.
    pub record: PageRecord,
    /// What is kept of it.
    pub packed: Packed,
}

/// What a step did.
#[derive(Clone, Debug, Default)]
pub struct Committed {
    /// URLs that are new in the queues, retried ones included.
    pub queued: Vec<NewlyQueued>,
    /// The queue rows that are gone.
    pub dequeued: Vec<Dequeued>,
    /// The pages that are stored, in order: what an indexer is told.
    pub stored: Vec<Stored>,
    /// The counters of the crawls that the step touched.
    pub stats: Vec<(CrawlNo, CrawlStats)>,
    /// Crawls that may have more links to let in than the step looked at.
    pub more_held: Vec<CrawlNo>,
}

/// A page that was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its place in the order of all pages.
    pub seq: u64,
    /// Its address.
    pub url: PageUrl,
}

/// A queued URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewlyQueued {
    /// The visit to come.
    pub visit: Visit,
    /// Not before this time.
    pub due: Option<Timestamp>,
    /// The host asked for that time (`Retry-After`).
    pub asked_to_wait: bool,
}

/// A queue row that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dequeued {
    /// Of this crawl.
    pub crawl: CrawlNo,
    /// And this host.
    pub host: Host,
    /// From here.
    pub place: QueuePlace,
    /// Whether a page was stored for it.
    pub stored_page: bool,
    /// What became of the id, if it was one of a linear crawl and never had a row.
    pub id_state: Option<IdState>,
}
