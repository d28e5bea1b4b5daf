//! [`Visit`]: one attempt at one URL; [`Discovery`]: a link that may become one.

use serde::{Deserialize, Serialize};

use crate::words::words;
use crate::{CrawlNo, PageUrl, Timestamp, UrlKey};

/// One attempt at one URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    /// The crawl it belongs to.
    pub crawl: CrawlNo,
    /// What it is for.
    pub purpose: Purpose,
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
    /// When the page was changed, as a sitemap says.
    pub lastmod: Option<Timestamp>,
    /// 1 at the first attempt.
    pub attempt: u8,
}

impl Visit {
    /// The URL that the first of the redirects on the way here was asked for, or this one.
    pub fn first_url(&self) -> PageUrl {
        let first = self.redirects.first().and_then(|url| PageUrl::parse(url).ok());
        first.unwrap_or_else(|| self.url.clone())
    }
}

/// What a visit is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To keep the page.
    #[default]
    Page,
    /// To read what a site lists about itself.
    Sitemap {
        /// Index files on the way here.
        nesting: u8,
    },
    /// To learn what a site lets us ask for.
    Robots,
    /// To see how a site answers for a page that does not exist.
    Probe,
}

impl Purpose {
    /// Whether the visit is a prerequisite of the engine: made when it is needed, never queued in the
    /// store, and no URL of the crawl.
    pub fn is_prerequisite(self) -> bool {
        matches!(self, Self::Robots | Self::Probe)
    }
}

/// Where a URL stands in the queue of its host and crawl: lane by lane, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueuePlace {
    /// Which of the host's lanes.
    pub lane: Lane,
    /// Depth in the lanes `Hot` and `Plain` (breadth first); in `Later` the wall-clock millisecond
    /// at which it is due; in `Linear` the number of the walk.
    pub order: u64,
    /// Order of discovery; in `Linear` the id.
    pub seq: u64,
}

/// The lanes of a host's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Lane {
    /// A prerequisite, ahead of everything. Never in the store.
    Prerequisite,
    /// Matches the crawl's topic: goes first.
    Hot,
    /// Everything else, breadth first.
    Plain,
    /// Failed before, and due at a later time.
    Later,
    /// An id of a linear crawl. Never in the store: what is known of ids is kept as runs.
    Linear,
}

impl QueuePlace {
    /// The place of an id in a walk of a linear crawl.
    pub fn of_id(walk: u32, id: u64) -> Self {
        Self { lane: Lane::Linear, order: u64::from(walk), seq: id }
    }

    /// The walk and the id, if it is such a place.
    pub fn id(self) -> Option<(u32, u64)> {
        let walk = u32::try_from(self.order).ok()?;
        (self.lane == Lane::Linear).then_some((walk, self.seq))
    }
}

impl Lane {
    /// The lanes that are stored, in their order.
    pub const STORED: [Self; 3] = [Self::Hot, Self::Plain, Self::Later];
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
    /// What a visit of it would be for.
    pub purpose: Purpose,
    /// Whether the page asks not to follow it.
    pub nofollow: bool,
    /// When the page was changed, as a sitemap says.
    pub lastmod: Option<Timestamp>,
}

impl Discovery {
    /// A page that was found.
    pub fn page(url: PageUrl, key: UrlKey, via: Via) -> Self {
        Self { url, key, hot: false, via, purpose: Purpose::Page, nofollow: false, lastmod: None }
    }
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
    /// It is an id of a linear crawl.
    Linear,
}

words! {
    Via {
        Seed = "seed",
        Link = "link",
        Redirect = "redirect",
        Sitemap = "sitemap",
        Linear = "linear",
    }
}
