//! Runs crawls. The flow of the product, as files:
//!
//! `crawl_task` owns the frontier and decides; `fetch_stage` asks the web; `parse_stage` reads what
//! came back and finds links; `commit_stage` is the only writer and makes it durable in groups;
//! `followers` hands it to whatever is derived from pages, such as the search index (`index_follower`), which may be leased to a process of its own (`index_lease`); `progress` counts. `prerequisites` sees to it that
//! robots.txt was read first, `id_visits` to the pages of linear crawls. Stages are tasks with bounded channels between them. A stage that fails stops
//! everything: there is no half-alive process. The engine does not know which back end it runs on.

mod handle;
mod supervision;

mod clock;
mod error;

mod crawl_task;

mod asked_before;
mod budget_room;
mod context;
mod faults;
mod learned;
mod letting_in;
mod patience;
mod pipeline;

mod fetch_stage;
mod parse_stage;

mod page_look;
mod parse_costs;
mod parse_queue;
mod soft_404;
mod trap_watch;
mod visit_ending;

mod commit_stage;
mod followers;
mod index_follower;

mod fresh_pages;
mod index_lease;
mod page_source;
mod removals;

pub mod follower_conformance;
mod progress;

mod prerequisites;

mod robots_reading;
mod sitemap_reading;

mod id_visits;

mod id_looks;
mod linear_run;

pub mod control;
pub mod json;
pub mod request;

mod admission;
mod can_resume;
mod change;
pub mod export;
mod holding_back;
mod imports;
mod single_fetch;
mod stored_page;

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
