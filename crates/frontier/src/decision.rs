//! The words between the frontier and the engine: what is decided, and what a crawl starts with.

use telusur_model::{
    CrawlNo, FinishReason, Host, IdState, Lane, Moment, PageUrl, Politeness, QueuePlace, Visit,
};

use crate::linear::Linear;

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Carry this out now. It is in flight until [`finished`](crate::Frontier::finished) or
    /// [`skipped`](crate::Frontier::skipped), and outstanding until
    /// [`committed`](crate::Frontier::committed).
    Visit(Visit),
    /// Resolve this URL's host, then call [`address`](crate::Frontier::address). Asked once per
    /// host until it is answered.
    NeedAddress {
        /// The crawl that wants to know.
        crawl: CrawlNo,
        /// A URL of the host.
        url: PageUrl,
    },
    /// Find out what this URL's robots.txt says, then call [`robots`](crate::Frontier::robots).
    /// Asked once per crawl and origin until it is answered, and again when the answer has expired.
    NeedRobots {
        /// The crawl that wants to know.
        crawl: CrawlNo,
        /// A URL of the origin.
        url: PageUrl,
    },
    /// Read the store, then call [`refill`](crate::Frontier::refill). At most one is under way for
    /// a crawl, host and region.
    NeedUrls {
        /// Whose queue.
        crawl: CrawlNo,
        /// Which host's.
        host: Host,
        /// Which part of it.
        region: Region,
        /// Only places beyond this one.
        after: Option<QueuePlace>,
        /// How many, at most.
        max: usize,
    },
    /// The crawl is over: nothing of it is in flight or uncommitted. Said once; then
    /// [`remove`](crate::Frontier::remove) the crawl.
    Finished {
        /// Which crawl.
        crawl: CrawlNo,
        /// Drained, or its page limit.
        why: FinishReason,
    },
    /// Nothing before this moment; `None`: nothing until an event comes.
    Wait(Option<Moment>),
}

/// The two parts of a host's queue that are read separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Region {
    /// The lanes `Hot` and `Plain`: one sequence in the order of places.
    Fresh,
    /// The lane `Later`, by due time.
    Later,
}

impl Region {
    /// Both regions.
    pub const ALL: [Self; 2] = [Self::Fresh, Self::Later];

    /// The region that holds a lane.
    pub fn of(lane: Lane) -> Self {
        match lane {
            Lane::Hot | Lane::Plain => Self::Fresh,
            Lane::Later => Self::Later,
            Lane::Prerequisite | Lane::Linear => unreachable!("these are in no queue of the store"),
        }
    }
}

/// A crawl, as the store knows it when it starts or goes on.
#[derive(Clone, Debug)]
pub struct CrawlStart {
    /// Which crawl.
    pub crawl: CrawlNo,
    /// How it treats hosts.
    pub politeness: Politeness,
    /// Pages after which it ends.
    pub pages_max: Option<u64>,
    /// Pages stored so far.
    pub pages_done: u64,
    /// The hosts it knows.
    pub hosts: Vec<HostStart>,
    /// The walks of a linear crawl.
    pub linear: Option<Linear>,
    /// No host of this crawl is asked before: after a crash it is unknown when a host was asked
    /// last, so a full delay is waited.
    pub quiet_until: Moment,
}

/// What is left of an earlier crawl of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedEarlier {
    /// It is not asked before.
    pub next_at: Moment,
    /// The delay that was learned for it; 0 if none was.
    pub delay_ms: u64,
}

/// A host of a crawl, as the store knows it.
#[derive(Clone, Debug)]
pub struct HostStart {
    /// Which host.
    pub host: Host,
    /// URLs in its queue.
    pub queued: u64,
    /// Pages stored: the service it had.
    pub pages: u64,
    /// The delay that was learned for it.
    pub delay_ms: Option<u64>,
    /// It is not asked before.
    pub next_at: Moment,
}

/// How a visit to an id of a linear crawl ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdEnd {
    /// What the store has kept.
    pub state: IdState,
    /// Whether a page was stored with it.
    pub stored_page: bool,
}

/// What is known of an origin's robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RobotsKnown {
    /// Until when it may be relied on.
    pub until: Moment,
    /// The delay that the origin asks for.
    pub crawl_delay_ms: Option<u64>,
}

/// What becomes of a visit whose fetch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The outcome is final: store it.
    Settle,
    /// Queue it again in the lane `Later`.
    Retry {
        /// Due this long from now.
        after_ms: u64,
        /// Whether the next one is one attempt further.
        counted: bool,
    },
}
