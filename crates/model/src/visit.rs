//! [`Visit`]: one attempt at one URL; [`Discovery`]: a link that may become one.

use serde::{Deserialize, Serialize};

use crate::{CrawlNo, PageUrl, Timestamp, UrlKey};

/// One attempt at one URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The crawl it belongs to.
    pub crawl: CrawlNo,
    /// What is asked for.
    pub url: PageUrl,
    /// Its identity.
    pub key: UrlKey,
    /// Where it stands in its host's queue.
    pub place: QueuePlace,
    /// Links away from a seed.
    pub depth: u16,
    /// Links followed beyond the scope on the way here.
    pub hops_outside: u8,
    /// How it was found.
    pub via: Via,
    /// When it was found.
    pub found_at: Timestamp,
    /// The page that it was found on; a seed has none.
    pub referrer: Option<String>,
    /// The URLs that redirected here, first to last.
    pub redirects: Vec<String>,
    /// 1 at the first attempt.
    pub attempt: u8,
}

/// Where a URL stands in the queue of its host and crawl: lane by lane, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueuePlace {
    /// Which of the host's lanes.
    pub lane: Lane,
    /// Depth in the lanes `Hot` and `Plain` (breadth first); in `Later` the wall-clock millisecond
    /// at which it is due.
    pub order: u64,
    /// Order of discovery.
    pub seq: u64,
}

/// The lanes of a host's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Lane {
    /// Matches the crawl's topic: goes first.
    Hot,
    /// Everything else, breadth first.
    Plain,
    /// Failed before, and due at a later time.
    Later,
}

impl Lane {
    /// All lanes in their order.
    pub const ALL: [Self; 3] = [Self::Hot, Self::Plain, Self::Later];
}

/// A link that was found. Whether it is followed is decided by the crawl's scope, once, when the
/// link turns out to be new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// The link.
    pub url: PageUrl,
    /// Its identity.
    pub key: UrlKey,
    /// Whether it matches the crawl's topic.
    pub hot: bool,
    /// How it was found.
    pub via: Via,
}

/// How a URL was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// The user named it.
    Seed,
    /// A page links to it.
    Link,
    /// A URL redirects to it.
    Redirect,
    /// A sitemap names it.
    Sitemap,
}
