//! What crawls decide: [`Event`]s are folded into rows, over any [`Storage`]. What the engine sees of it
//! are three traits, and a suite that every storage passes.
//!
//! The one rule behind all of it: a visit leaves the queue in the same atomic [`Step`] that records
//! its page and its links, and nothing is reported stored before that step is durable. This crate has no
//! storage engine, no clock, no randomness and no thread.

mod ledger;
mod storage;

mod layout;
mod memory;
mod recent;

mod event;
mod step;

mod fold;
mod parts;

mod crawls;
mod links;

mod queue;
mod url_record;

mod pages;

mod lookup;
mod step_record;

mod base_records;
mod redo;
mod removal;

mod scrub;
mod verify;
mod verify_report;

pub mod conformance;
pub mod in_memory;

use serde::{Deserialize, Serialize};
use telusur_model::{
    BlobRef, Crawl, CrawlNo, CrawlState, CrawlStats, Discovery, EngineFault, Host, HostRow,
    IdState, OriginRow, PageRecord, PageUrl, ParsedPage, QueuePlace, RawPage, Reason, Run,
    Timestamp, UrlKey, UrlKeyer,
};

pub use crate::event::{
    CrawlAccepted, CrawlChange, Event, GiveUp, HostNote, IdEnded, IdEnding, LostPageRetry, Owner,
    PageLost, TrapMark, VisitEnded, VisitOutcome, decode_events, encode_events,
};
pub use crate::ledger::Ledger;
pub use crate::links::{Admission, FoundLink, LinkSource, LinksFound};
pub use crate::redo::{LostPage, RecoverProgress, Recovered, UnreadableBytes};
pub use crate::removal::Removal;
pub use crate::scrub::ScrubState;
pub use crate::step::{Dequeued, Effects, Ending, NewlyQueued, PageToStore, Step, Stored};
pub use crate::storage::{
    Batch, BlobOrigin, Bodies, BodiesEnd, BytesRange, Change, FilesRead, KeptParts, Rows, Scanned,
    Storage, Table, WriteRows,
};
pub use crate::url_record::{UrlRecord, UrlState};
pub use crate::verify_report::{Check, VerifyCounts, VerifyReport};

/// Everything a running engine needs of a back end.
pub trait Store: CrawlStore + FrontierStore + PageStore {}

impl<T: CrawlStore + FrontierStore + PageStore> Store for T {}

/// Crawls, their states and their counters.
pub trait CrawlStore: Send + Sync {
    /// Accepts a crawl: gives it its number and queues its seeds, in one step.
    fn create(&self, new: NewCrawl) -> Result<CrawlRecord, StoreError>;
    /// One crawl.
    fn crawl(&self, no: CrawlNo) -> Result<Option<CrawlRecord>, StoreError>;
    /// A crawl by id, alias or name, or the `last` one. Of several with one name the youngest is meant.
    fn find(&self, text: &str) -> Result<Option<CrawlRecord>, StoreError>;
    /// All crawls, oldest first.
    fn crawls(&self) -> Result<Vec<CrawlRecord>, StoreError>;
    /// Records what a crawl is doing.
    fn set_state(&self, no: CrawlNo, state: CrawlState, at: Timestamp) -> Result<(), StoreError>;
    /// Records that a crawl ended the engine, or that this is forgotten. A state that it comes to in
    /// order ([`set_state`](Self::set_state), other than running) forgets it as well.
    fn set_fault(&self, no: CrawlNo, fault: Option<EngineFault>) -> Result<(), StoreError>;
    /// Replaces the settings that may change while a crawl runs (limits, politeness, exclusions).
    fn change(&self, crawl: &Crawl) -> Result<(), StoreError>;
    /// Begins to remove a crawl, in one small commit: from then on nothing shows it and nothing is stored for
    /// it, and the removal has its place in the order of changes. A crawl that is not there is no error.
    fn begin_removal(&self, no: CrawlNo) -> Result<(), StoreError>;
    /// Removals that have begun and are not over, by number.
    fn removals(&self) -> Result<Vec<Removal>, StoreError>;
    /// Deletes a piece of what is left of a removed crawl; takes a second at most. True when nothing is left
    /// but what says that it is being removed.
    fn delete_removed(&self, no: CrawlNo) -> Result<bool, StoreError>;
    /// Ends a removal, with what is left of the crawl. Every follower has let go of it: what they still
    /// had would be shown again.
    fn end_removal(&self, no: CrawlNo) -> Result<(), StoreError>;
    /// Removes a crawl and everything it stored, up to what waits for its followers.
    fn remove(&self, no: CrawlNo) -> Result<(), StoreError> {
        self.begin_removal(no)?;
        while !self.delete_removed(no)? {}
        Ok(())
    }
    /// Crawls whose last requests may not be written down.
    fn asking(&self) -> Result<Vec<(CrawlNo, Asking)>, StoreError>;
    /// Records that a crawl sends requests, sent some up to a time, or that all of them are written down. Must be
    /// durable before the first request: visits say when they asked only when they end.
    fn set_asking(&self, no: CrawlNo, asking: Option<Asking>) -> Result<(), StoreError>;
    /// The seed that this store's URL keys are made with.
    fn key_seed(&self) -> u64;
    /// Whether the last owner of the store closed it, or was killed.
    fn was_closed(&self) -> bool;
    /// Records that everything was ended in order.
    fn close(&self) -> Result<(), StoreError>;
    /// Bytes left on the device that holds the store, where that is known.
    fn free_bytes(&self) -> Result<Option<u64>, StoreError>;
    /// Checks the promises about a store's content, one by one. The store keeps bodies and does not
    /// read them: `links_of` gives the links of a stored page.
    fn verify(&self, links_of: LinksOf<'_>) -> Result<VerifyReport, StoreError>;
    /// Reads on through everything that is stored, about this many bytes from where the last call ended, and
    /// says what is damaged. After the end it begins again.
    fn scrub(&self, bytes_max: u64, at: Timestamp) -> Result<ScrubState, StoreError>;
    /// How far the last call of [`scrub`](Self::scrub) came.
    fn scrubbed(&self) -> Result<Option<ScrubState>, StoreError>;
}

/// The queues, and the step that moves them on.
pub trait FrontierStore: Send + Sync {
    /// What is known about the hosts of a crawl.
    fn hosts(&self, crawl: CrawlNo) -> Result<Vec<HostRow>, StoreError>;
    /// Those hosts of a crawl that were asked at this moment or later.
    fn hosts_asked_since(
        &self,
        crawl: CrawlNo,
        since: Timestamp,
    ) -> Result<Vec<HostRow>, StoreError>;
    /// The next queued URLs of a host in the lanes `Hot` and `Plain` (`later` false) or in `Later`,
    /// in order, after a place.
    fn queued(&self, ask: QueueRange<'_>) -> Result<Vec<NewlyQueued>, StoreError>;
    /// Makes a step durable, all of it or nothing. Bodies are synced before the records that point
    /// at them.
    fn commit(&self, step: Step) -> Result<Effects, StoreError>;
    /// Drops links that are certainly known, without reading any row. Of those that are left some may be
    /// known, too.
    fn drop_known(&self, crawl: CrawlNo, links: &mut Vec<Discovery>);
    /// Whether the budgets of a crawl, as they are given here, have room for a link that they left
    /// out: [`Event::BudgetsRaised`] would let it in.
    fn has_room_for_left_out(&self, crawl: &Crawl) -> Result<bool, StoreError>;
    /// What was found out about shapes of addresses that may be traps, in a crawl.
    fn traps(&self, crawl: CrawlNo) -> Result<Vec<TrapMark>, StoreError>;
    /// Everything known about one URL as a page.
    /// One that only an id of a walk was redirected to is known as the page of that id.
    fn url(&self, crawl: CrawlNo, url: &PageUrl) -> Result<Option<UrlRecord>, StoreError>;
    /// Everything known about one URL as a sitemap.
    fn sitemap(&self, crawl: CrawlNo, url: &PageUrl) -> Result<Option<UrlRecord>, StoreError>;
    /// States of the ids of a walk of a linear crawl, in order.
    fn runs(&self, crawl: CrawlNo, walk: u32) -> Result<Vec<KeptRun>, StoreError>;
    /// What is known about an origin, whichever crawl learned it.
    fn origin(&self, origin: &str) -> Result<Option<OriginRow>, StoreError>;
    /// The origins of a host that something is known about.
    fn origins_of(&self, host: &Host) -> Result<Vec<OriginRow>, StoreError>;
    /// Calls `each` with every URL of a crawl that is not a page and not queued, in the order of their
    /// keys and from behind `after`, until it returns false.
    fn settled_urls_after(
        &self,
        crawl: CrawlNo,
        after: Option<UrlKey>,
        each: &mut dyn FnMut(UrlKey, UrlRecord) -> bool,
    ) -> Result<(), StoreError>;
    /// The same for all of them.
    fn settled_urls(
        &self,
        crawl: CrawlNo,
        each: &mut dyn FnMut(UrlRecord) -> bool,
    ) -> Result<(), StoreError> {
        self.settled_urls_after(crawl, None, &mut |_, url| each(url))
    }
}

/// Pages and their bodies.
pub trait PageStore: Send + Sync {
    /// Packs a body and what was extracted from it, ready for a step. Heavy and free of side
    /// effects: called outside the thread that commits.
    /// A page that could not be parsed is kept as it came, unless nothing at all is kept.
    fn pack(
        &self,
        crawl: &Crawl,
        page: &RawPage,
        parsed: Option<&ParsedPage>,
        at: Timestamp,
    ) -> Packed;
    /// The page with this place in a crawl's order.
    fn page(&self, crawl: CrawlNo, seq: u64) -> Result<Option<PageRecord>, StoreError>;
    /// The page that a crawl stored for a URL, or for an id of a walk that was redirected to it.
    fn page_of(&self, crawl: CrawlNo, url: &PageUrl) -> Result<Option<PageRecord>, StoreError>;
    /// Changes of all crawls after `seq`, at most `max`. The sequence is one order over all crawls: a
    /// change becomes visible only when all changes before it are. A page that was replaced, and the pages
    /// of a crawl that was removed, are not in it any more: a follower that has them finds the page at its new
    /// place, and the removal behind all pages of the crawl.
    fn changes_after(&self, seq: u64, max: usize) -> Result<Vec<StoreChange>, StoreError>;
    /// The place of the last change, or 0.
    fn last_change(&self) -> Result<u64, StoreError>;
    /// How many changes there are after one place, up to and with another. Reads as many keys.
    fn changes_count(&self, after: u64, upto: u64) -> Result<u64, StoreError>;
    /// The place of a crawl's last page, or 0.
    fn last_place(&self, crawl: CrawlNo) -> Result<u64, StoreError>;
    /// Pages of a crawl stored after `seq`, oldest first, at most `max`.
    fn pages_after(
        &self,
        crawl: CrawlNo,
        seq: u64,
        max: usize,
    ) -> Result<Vec<PageRecord>, StoreError>;
    /// Whether the bodies of a crawl reach as far as was committed. If not, the next step begins a new segment.
    fn bodies_reach(&self, crawl: CrawlNo) -> Result<bool, StoreError>;
    /// The raw answer of a page: its HTTP head and its body.
    fn body(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Body, StoreError>;
    /// What was extracted from a page.
    fn parsed(&self, crawl: CrawlNo, blob: BlobRef) -> Result<ParsedPage, StoreError>;
}

/// A change that matters to everything derived from pages.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreChange {
    /// A page was stored, replaced or read again: its record, at its place.
    Page(Box<PageRecord>),
    /// A page was lost: the record that it had, at the place of the loss, and nothing of its content.
    Lost(Box<PageRecord>),
    /// A crawl was removed, with all its pages.
    Removed {
        /// The place of the removal.
        seq: u64,
        /// Which. Its number is not given to another.
        crawl: CrawlNo,
    },
}

impl StoreChange {
    /// Its place in the order of changes.
    pub fn seq(&self) -> u64 {
        match self {
            Self::Page(page) | Self::Lost(page) => page.seq,
            Self::Removed { seq, .. } => *seq,
        }
    }

    /// The page, if it is one that is stored.
    pub fn page(&self) -> Option<&PageRecord> {
        match self {
            Self::Page(page) => Some(page),
            Self::Lost(_) | Self::Removed { .. } => None,
        }
    }
}

/// What is known of requests that may not be written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Asking {
    /// They are being sent, or were until whoever sent them was killed.
    Now,
    /// None was sent after this time.
    Until(Timestamp),
}

/// Reads the links out of a stored page.
pub type LinksOf<'a> = &'a dyn Fn(&PageRecord) -> Result<Vec<PageUrl>, StoreError>;

/// A crawl to accept.
#[derive(Clone, Debug)]
pub struct NewCrawl {
    /// The settings; number and id are given by the store.
    pub crawl: Crawl,
    /// 80 random bits for the crawl's id.
    pub random: u128,
}

/// A crawl with its state and counters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrawlRecord {
    /// What was asked for.
    pub crawl: Crawl,
    /// What it is doing.
    pub state: CrawlState,
    /// Its counters.
    pub stats: CrawlStats,
    /// When the state last changed.
    pub state_since: Timestamp,
    /// Whether it ended the engine, and by what.
    #[serde(default)]
    pub fault: Option<EngineFault>,
    /// The seed of its URL keys.
    #[serde(default)]
    pub key_seed: u64,
}

impl CrawlRecord {
    /// What makes the keys of its URLs.
    pub fn keyer(&self) -> UrlKeyer {
        UrlKeyer { seed: self.key_seed, drop_tracking: !self.crawl.keep_tracking }
    }
}

/// A run of ids as it is kept.
pub type KeptRun = Run<KeptState>;

/// The state of ids, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptState {
    /// Their state.
    pub state: IdState,
    /// Why, if they failed.
    pub why: Option<Reason>,
}

/// Which queued URLs to read.
#[derive(Clone, Copy, Debug)]
pub struct QueueRange<'a> {
    /// Of this crawl.
    pub crawl: CrawlNo,
    /// And this host.
    pub host: &'a Host,
    /// From the lane `Later`, or from the two others.
    pub later: bool,
    /// After this place; `None` from the beginning.
    pub after: Option<QueuePlace>,
    /// At most this many.
    pub max: usize,
}

/// What is kept of a page, ready to be appended.
#[derive(Clone, Debug, Default)]
pub struct Packed {
    /// The bytes, if anything is kept.
    pub blob: Option<Vec<u8>>,
    /// Whether the raw answer is in it.
    pub has_body: bool,
    /// Whether the extract is in it.
    pub has_extract: bool,
}

/// A stored answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The HTTP head as text.
    pub head: String,
    /// The decoded body.
    pub bytes: Vec<u8>,
}

/// Our own trouble. Named after what the caller can do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Free some space, then go on.
    #[error("the disk is full ({0})")]
    DiskFull(String),
    /// Somebody else owns the data directory.
    #[error("data directory is locked by pid {pid}")]
    Locked {
        /// The owner's process id, as its lock says.
        pid: String,
    },
    /// The directory is not ours, or of a version that this program does not read.
    #[error("{0}")]
    Unusable(String),
    /// Bytes on disk are not what was written.
    #[error("damaged data: {0}")]
    Damaged(String),
    /// The rows fall short of what was written, or cannot be read at all: rebuild them from the bodies.
    #[error("{0}; {help}", help = .0.help())]
    StateDamaged(Box<StateDamage>),
    /// The operating system refused.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A stored row cannot be read.
    #[error("a row of {table} cannot be read: {what}", what = why_unreadable(why, damage.as_deref()))]
    Unreadable {
        /// The name of its table.
        table: &'static str,
        /// The crawl that it belongs to, if it is one crawl's.
        crawl: Option<CrawlNo>,
        /// What the storage engine says.
        why: String,
        /// The damaged file, if it was found.
        damage: Option<Box<StateDamage>>,
    },
    /// The storage engine refused; start again to recover.
    #[error("storage engine: {0}")]
    Engine(String),
}

/// What is damaged of the rows, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDamage {
    /// The data directory.
    pub data: String,
    /// The damaged file, relative to the data directory.
    pub file: String,
    /// Where in the file the damage begins, if that is known.
    pub byte: Option<u64>,
    /// What is wrong or missing, in numbers.
    pub what: String,
    /// Whether the directory is a copy that was made while another process used the original: its files are of
    /// different moments, and its rows are to be rebuilt from its bodies.
    pub is_torn_copy: bool,
}

impl StateDamage {
    /// What helps.
    pub fn help(&self) -> String {
        let data = &self.data;
        format!(
            "restore {data} from a backup if there is one; or rebuild its state from its stored pages: telusur recover {data}"
        )
    }
}

fn why_unreadable(why: &str, damage: Option<&StateDamage>) -> String {
    damage.map_or_else(|| why.to_owned(), |damage| format!("{damage}; {}", damage.help()))
}

impl std::fmt::Display for StateDamage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, what, .. } = self;
        match self.byte {
            _ if self.is_torn_copy => {
                write!(f, "{file} does not fit the rest of a copy of a directory in use: {what}")
            }
            Some(byte) => write!(f, "{file} is damaged at byte {byte}: {what}"),
            None => write!(f, "{file} is damaged: {what}"),
        }
    }
}

impl StoreError {
    /// Whether what is stored is at fault, and not the moment: it fails again at the next start.
    pub fn is_of_rows(&self) -> bool {
        match self {
            Self::Damaged(_) | Self::Unreadable { .. } | Self::StateDamaged(_) => true,
            Self::DiskFull(_)
            | Self::Locked { .. }
            | Self::Unusable(_)
            | Self::Io { .. }
            | Self::Engine(_) => false,
        }
    }
}
