//! What goes over the wire, as types: the bodies that are read and the answers that are written. Each of
//! them is also a part of the API's description. Nothing here decides anything.

mod crawl;
mod linear;
mod page;
mod request;
mod s1;
mod search;
mod system;

use serde::Serialize;
use utoipa::ToSchema;

pub use crawl::{
    CrawlLinks, CrawlView, HostStats, LeftOutView, LimitsView, MannersView, ScopeView, SiteView,
    StatsView,
};
pub use linear::{CountsView, CoverageView, LegView, RunView};
pub use page::{
    ErrorView, ExplanationView, FetchedView, FoundLink, HostView, MapView, PageLink, PageView,
    QueuedView, RobotsView, SkippedView, StoredPageView,
};
pub use request::{FetchBody, MapBody, ResumeRequest};
pub use s1::{S1Answer, S1Job, S1Page, S1Request, S1Started};
pub use search::{FacetView, HitView, SearchBody, SearchView};
pub use system::{
    EventBody, FollowerView, HealthView, KeyBody, KeyView, NewKeyView, RetriedView, ScrubView,
    StatsOfAll, SuggestView,
};

/// Some of many.
#[derive(Clone, Debug, Serialize, ToSchema)]
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
