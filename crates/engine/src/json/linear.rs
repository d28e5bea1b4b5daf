//! What is known of the ids of a linear crawl.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is known of the ids of one template.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CoverageView {
    /// The template.
    pub template: String,
    /// Its number among the templates of the crawl, from 0.
    pub walk: u32,
    /// The lowest id; `null` is unknown.
    pub min: Option<u64>,
    /// The highest id; `null` is unknown.
    pub max: Option<u64>,
    /// The first id that is asked.
    pub start: Option<u64>,
    /// Its directions.
    pub legs: Vec<LegView>,
    /// How many ids there are of each kind.
    pub counts: CountsView,
    /// The ids, as runs of one state, the lowest first. Some of them: `next_cursor` has more.
    pub runs: Vec<RunView>,
}

/// One direction.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LegView {
    /// `ascending` or `descending`.
    pub direction: String,
    /// `running`, `waiting`, `stopped`, `complete` or `left`.
    pub state: String,
    /// The id that is asked next.
    pub next: Option<u64>,
    /// Missing ids in a row.
    pub misses_in_row: u64,
    /// How many of them stop it; 0 is never.
    pub margin: u64,
    /// Ids that it asks in its turn.
    pub rate: u32,
}

/// How many ids there are of each kind.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CountsView {
    /// Exist and are stored.
    pub content: u64,
    /// Do not exist.
    pub missing: u64,
    /// Those of them that answered like a page that does not exist, although they said otherwise.
    pub missing_by_look: u64,
    /// Failed.
    pub holes: u64,
    /// Failed, and are asked again.
    pub pending_retry: u64,
    /// Of which nothing is known; `null` if nobody knows how many.
    pub unknown: Option<u64>,
}

/// Ids of one state that follow each other.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunView {
    /// The lowest id.
    pub first: u64,
    /// The highest id.
    pub last: u64,
    /// How many, by the step.
    pub count: u64,
    /// `content`, `missing`, `hole` or `waiting`.
    pub state: String,
    /// Why, if they failed or only pretend to exist.
    pub reason: Option<String>,
}
