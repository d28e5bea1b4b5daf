//! Runs crawls. The flow of the product, as files:
//!
//! `crawl_task` owns the frontier and decides; `fetch_stage` asks the web; `parse_stage` reads what
//! came back and finds links; `commit_stage` is the only writer and makes it durable in groups;
//! `followers` hands it to whatever is derived from pages, such as the search index (`index_follower`), which may be leased to a process of its own (`index_lease`); `progress` counts. `prerequisites` sees to it that
//! robots.txt was read first, `id_visits` to the pages of linear crawls. Stages are tasks with bounded channels between them. A stage that fails stops
//! everything: there is no half-alive process. The engine does not know which back end it runs on.

mod admission;
mod asked_before;
mod budget_room;
mod can_resume;
mod change;
mod clock;
mod commit_stage;
mod context;
pub mod control;
mod crawl_task;
mod error;
pub mod export;
mod faults;
mod fetch_stage;
pub mod follower_conformance;
mod followers;
mod fresh_pages;
mod handle;
mod holding_back;
mod id_looks;
mod id_visits;
mod imports;
mod index_follower;
mod index_lease;
mod learned;
mod letting_in;
mod linear_run;
mod page_look;
mod page_source;
mod parse_costs;
mod parse_queue;
mod parse_stage;
mod patience;
mod pipeline;
mod prerequisites;
mod progress;
mod removals;
pub mod request;
mod robots_reading;
mod single_fetch;
mod sitemap_reading;
mod soft_404;
mod stored_page;
mod supervision;
mod trap_watch;
mod visit_ending;

pub use crate::admission::{Admission, create as create_crawl};
pub use crate::can_resume::check_can_resume;
pub use crate::change::CrawlChange;
pub use crate::clock::SystemClock;
pub use crate::commit_stage::FREE_BYTES_LEAST;
pub use crate::error::{EngineError, RequestError};
pub use crate::followers::{
    ChangeBatch, FollowError, FollowedChange, FollowedPage, Follower, FollowerReport,
    FollowerTrouble, Pace, PageContent, follower_retry_pause,
};
pub use crate::handle::{Engine, EngineHandle, EngineOptions, EngineParts};
pub use crate::imports::{ImportLine, Importer};
pub use crate::index_follower::{IndexFollower, Indexer};
pub use crate::index_lease::{
    FollowCounts, LeaseEnd, LeasedIndex, NotLeased, StopFollowing, lease_index,
};
pub use crate::linear_run::{ResumeNote, accept_run};
pub use crate::removals::delete_removed_for_a_moment;
pub use crate::single_fetch::{Arrived, FetchError, FetchRequest, NotFetched};
pub use crate::supervision::{Part, SupervisedTask, Supervisor};
