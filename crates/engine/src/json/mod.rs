//! JSON as everybody outside gets it: one type for each thing that is shown. `--json` prints it, the
//! control socket carries it, the HTTP API answers with it. Times are RFC 3339, kinds are the words of
//! `model`. Nothing here decides anything.

mod crawl;
mod linear;
mod page;
mod search;
mod system;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::crawl::{
    CrawlLinks, CrawlView, HostStats, LeftOutView, LimitsView, MannersView, ScopeView, SiteView,
    StatsView,
};
pub use self::linear::{CountsView, CoverageView, LegView, RunView};
pub use self::page::{
    ErrorView, ExplanationView, FetchedView, FoundLink, HostView, MapView, PageLink, PageView,
    QueuedView, RobotsView, SkippedView, StoredPageView,
};
pub use self::search::{
    FacetView, HitView, RankedPageView, RankedSiteView, SearchView, SuggestView,
};
pub use self::system::{
    EventBody, FollowerView, HealthView, KeyBody, KeyView, NewKeyView, RetriedView, ScrubView,
    StatsOfAll,
};

/// Some of many.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Paged<T> {
    /// These.
    pub items: Vec<T>,
    /// What to ask with for the next ones; `null` if these were the last.
    pub next_cursor: Option<String>,
    /// How many there are in all, where that is known.
    pub total: Option<u64>,
}

impl<T> Paged<T> {
    /// The same page of other things.
    pub fn map<U>(self, each: impl FnMut(T) -> U) -> Paged<U> {
        let items = self.items.into_iter().map(each).collect();
        Paged { items, next_cursor: self.next_cursor, total: self.total }
    }
}
