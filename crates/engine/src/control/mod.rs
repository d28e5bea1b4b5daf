//! Control: where every question about a data directory is answered, whichever process asks.
//!
//! One process owns a data directory. A command in another terminal writes its [`Request`] to the
//! owner's control socket as one line of JSON and reads lines of [`Reply`] back; a command that
//! finds no owner opens the directory itself and asks its own control. Both get the same answers.

mod content;
mod explain;
mod export;
mod handle;
mod politeness;
mod reparse;
mod requeue;
mod retry;
mod scrub;
mod search;
mod socket;
mod verify_index;

use serde::{Deserialize, Serialize};
use telusur_index::{TopPage, TopSite};
use telusur_ledger::{CrawlRecord, ScrubState, UrlRecord, VerifyReport};
use telusur_model::{
    ContentKind, CrawlNo, CrawlState, EngineFault, IdRun, PageRecord, Progress, Reason, SiteShare,
    Timestamp, WalkCoverage,
};

use crate::change::CrawlChange;
use crate::followers::FollowerReport;

pub use self::content::{FoundContent, StoredPage};
pub use self::explain::{Explanation, IdExplained, Judged, RobotsSaid};
pub use self::export::ExportLine;
pub use self::handle::{Control, DAMAGED_DATA, DAMAGED_INDEX, DAMAGED_STATE, DISK_FULL};
pub use self::politeness::{CrawlManners, PolitenessReport, RecentRequest, RobotsReport};
pub use self::reparse::{RereadChange, RereadPage, RereadTotal};
pub use self::scrub::{pause as scrub_pause, piece_bytes as scrub_piece_bytes};
pub use self::search::{SearchHit, SearchReply, SearchRequest};
pub use self::socket::{SocketGuard, ask, is_served, serve};

/// A question or an order. `crawl` is an id, an alias `crawl_N`, a name, or `last`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// All crawls, with everything that is known of each.
    Crawls,
    /// All crawls, with as much of each as a list shows.
    CrawlList,
    /// One crawl with its sites.
    Crawl {
        /// Which.
        crawl: String,
    },
    /// The URLs of a crawl that failed or answered with an error.
    Errors {
        /// Which crawl.
        crawl: String,
    },
    /// The URLs of a crawl that were never asked for.
    Skipped {
        /// Which crawl.
        crawl: String,
        /// Only those with this reason.
        reason: Option<String>,
    },
    /// What became of the pages of the crawl that this one repeats.
    Changes {
        /// Which crawl.
        crawl: String,
    },
    /// Every URL of a crawl that got an answer.
    Export {
        /// Which crawl.
        crawl: String,
    },
    /// The content of one kind in every page of a crawl.
    Content {
        /// Which crawl.
        crawl: String,
        /// Which kind.
        kind: ContentKind,
    },
    /// Everything that is in one stored page.
    Page {
        /// Its URL, or one that redirects to it.
        url: String,
        /// In this crawl only; else in the youngest that has it.
        crawl: Option<String>,
        /// Whether its body is wanted as well.
        with_body: bool,
    },
    /// Everything known about one URL.
    Explain {
        /// The URL.
        url: String,
        /// In this crawl only.
        crawl: Option<String>,
    },
    /// What is known of the ids of a linear crawl.
    Coverage {
        /// Which crawl.
        crawl: String,
    },
    /// What was asked of a host, and by which rules.
    Politeness {
        /// The host's name.
        host: String,
    },
    /// Searches.
    Search(SearchRequest),
    /// Ways to go on typing.
    Suggest {
        /// What was typed so far.
        typed: String,
        /// How many, at most.
        max: usize,
    },
    /// The best linked pages or sites.
    Rank {
        /// Only those of this crawl.
        crawl: Option<String>,
        /// Sites instead of pages.
        sites: bool,
        /// How many, at most.
        max: usize,
    },
    /// Every stored body of a crawl is read again by the present extractor.
    Reparse {
        /// Which crawl.
        crawl: String,
        /// Nothing is written when less space than this is left.
        #[serde(default)]
        free_bytes_min: u64,
    },
    /// Checks the store.
    Verify,
    /// Pages whose stored bodies cannot be read are taken out, and asked for again. Crawls that are running
    /// are left alone.
    Requeue,
    /// Reads everything that is stored, from where the last reading ended.
    Scrub {
        /// No faster than this; 0 is as fast as it goes.
        bytes_per_second: u64,
    },
    /// A crawl waits.
    Pause {
        /// Which.
        crawl: String,
    },
    /// A paused crawl of the owner goes on.
    Resume {
        /// Which.
        crawl: String,
    },
    /// A crawl ends and keeps what it has.
    Stop {
        /// Which.
        crawl: String,
    },
    /// A crawl ends and everything it stored is deleted.
    Cancel {
        /// Which.
        crawl: String,
    },
    /// No more URLs that match.
    Exclude {
        /// Which crawl.
        crawl: String,
        /// The pattern.
        pattern: String,
    },
    /// Limits, manners and exclusions of a crawl become others.
    Change {
        /// Which crawl.
        crawl: String,
        /// What becomes how.
        change: Box<CrawlChange>,
    },
    /// What failed is asked again. A crawl that is over must be resumed afterwards.
    Retry {
        /// Which crawl.
        crawl: String,
    },
    /// Everything that a crawl stored is deleted.
    Remove {
        /// Which.
        crawl: String,
    },
    /// The index is to be leased, over the connection that asks.
    Follow {
        /// The format of index that the holder writes.
        format: u32,
    },
}

/// One line of an answer. [`Reply::End`] or [`Reply::Error`] is the last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// A crawl, and its snapshot if it is in the owner's process.
    Crawl(Box<CrawlReply>),
    /// A line of the list of crawls.
    CrawlLine(Box<CrawlLine>),
    /// A page that answered with an error.
    ErrorPage(Box<PageRecord>),
    /// A URL.
    Url(Box<UrlRecord>),
    /// A page that is not as it was.
    Changed {
        /// Its URL.
        url: String,
        /// `new`, `changed` or `gone`.
        what: String,
    },
    /// A line of an export.
    Export(Box<ExportLine>),
    /// What a page of a crawl has of one kind.
    Content(Box<FoundContent>),
    /// A stored page.
    Page(Box<StoredPage>),
    /// A page that reads differently now.
    Reread(Box<RereadPage>),
    /// What came of reading a crawl again.
    RereadTotal(RereadTotal),
    /// A page whose stored bytes cannot be read.
    Damaged {
        /// Its URL.
        url: String,
        /// What is wrong, and where.
        what: String,
    },
    /// What one crawl knows of a URL.
    Explanation(Box<Explanation>),
    /// A walk of a linear crawl; its runs follow.
    Walk(Box<WalkCoverage>),
    /// Runs of ids, the lowest first.
    Runs(Vec<CoveredRun>),
    /// How a host was treated.
    Politeness(Box<PolitenessReport>),
    /// What a search found.
    Found(Box<SearchReply>),
    /// A way to go on typing.
    Suggestion(String),
    /// A well linked page.
    TopPage(TopPage),
    /// A well linked site.
    TopSite(TopSite),
    /// What came of a check.
    Verified(VerifyReport),
    /// How far everything has been read, and what is damaged.
    Scrubbed(Box<ScrubState>),
    /// URLs, or ids, that are asked again.
    Retried {
        /// How many.
        count: u64,
    },
    /// An order was carried out on this crawl.
    Done {
        /// Its id.
        crawl: String,
    },
    /// The index is leased. What follows are the lines of the lease.
    Leased,
    /// That was all.
    End,
    /// That was all, and it went wrong.
    Error {
        /// `no_such_crawl`, `wrong_state`, `bad_argument`, `stopped`, `storage` or `damaged_index`.
        code: String,
        /// For people.
        text: String,
    },
}

/// A run of ids, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoveredRun {
    /// The ids, and what became of them.
    pub run: IdRun,
    /// Why, if they failed.
    pub why: Option<Reason>,
}

/// A crawl as a list shows it: a tenth of what is known of it, for there may be thousands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrawlLine {
    /// Which crawl.
    pub no: CrawlNo,
    /// Its name.
    pub name: Option<String>,
    /// What it is doing.
    pub state: CrawlState,
    /// Whether some process is working on it now.
    pub is_live: bool,
    /// Why it ended the engine, if it did.
    pub fault: Option<EngineFault>,
    /// Pages stored.
    pub pages: u64,
    /// URLs waiting.
    pub queued: u64,
    /// URLs that failed or answered with an error.
    pub errors: u64,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// The first of its start URLs, or its first template.
    pub start: Option<String>,
    /// What is derived from pages in the owner's process and fails.
    pub behind: Vec<FollowerReport>,
}

/// A crawl with everything that is shown of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrawlReply {
    /// The crawl, its state and its counters.
    pub record: CrawlRecord,
    /// Its snapshot, if it is in the owner's process.
    pub progress: Option<Progress>,
    /// Whether some process is working on it now.
    pub is_live: bool,
    /// Its sites, the most served first.
    pub sites: Vec<SiteShare>,
    /// Start URLs that lead out of the crawl's scope: where, and to where.
    pub moved_seeds: Vec<(String, String)>,
    /// What the owner derives from pages and is behind, because it fails.
    #[serde(default)]
    pub behind: Vec<FollowerReport>,
}
