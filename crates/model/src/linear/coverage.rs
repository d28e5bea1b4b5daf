//! What is shown of a walk: how many ids are in each state, what each direction is doing, a strip.
//! Plain data; the frontier works it out.

use serde::{Deserialize, Serialize};

use crate::words::words;
use crate::{Direction, IdState, Moment};

/// A walk at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// How many ids are in each state.
    pub counts: CoverageCounts,
    /// Its directions, in the order of their turns.
    pub legs: Vec<LegCoverage>,
}

/// How many ids are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoverageCounts {
    /// Exist and are stored.
    pub content: u64,
    /// Do not exist.
    pub missing: u64,
    /// Failed, with no attempt left.
    pub holes: u64,
    /// Failed, and are asked again.
    pub waiting: u64,
    /// Not known, between the bounds; `None` if a bound is unknown.
    pub unknown: Option<u128>,
    /// Exist and are stored, but lie past the stop of the sequential crawl.
    pub content_past_stop: u64,
}

impl CoverageCounts {
    /// Whether no id has answered.
    pub fn is_nothing_known(&self) -> bool {
        self.content == 0 && self.missing == 0 && self.holes == 0 && self.waiting == 0
    }
}

/// One direction at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegCoverage {
    /// Which way.
    pub direction: Direction,
    /// Ids in its turn.
    pub rate: u32,
    /// What it is doing.
    pub state: LegState,
    /// The first id that is not crawled; `None` if the bound is reached. From here to the bound is
    /// what a later run can go on with.
    pub next: Option<u64>,
    /// The id at which the margin was reached.
    pub stop: Option<u64>,
    /// Misses in a row.
    pub misses_in_row: u64,
    /// At which it stops; 0 is never.
    pub margin: u64,
    /// When the next retry is due, by the clock of the process that says so.
    #[serde(skip)]
    pub retry_at: Option<Moment>,
    /// Whether this run asks for ids of which nothing is known.
    pub asks_fresh: bool,
}

/// What a direction is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LegState {
    /// It asks.
    Running,
    /// It waits until failed ids may be asked again.
    Waiting,
    /// The margin was reached.
    Stopped,
    /// The bound was reached.
    Complete,
    /// Only holes were retried: the rest is left for another run.
    Left,
}

words! {
    LegState {
        Running = "running",
        Waiting = "waiting",
        Stopped = "stopped",
        Complete = "complete",
        Left = "left",
    }
}

/// Ids of one state that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdRun {
    /// The lowest id.
    pub first: u64,
    /// The highest id.
    pub last: u64,
    /// How many, by the step.
    pub count: u64,
    /// What became of them.
    pub state: IdState,
}

/// A walk drawn as a line of cells, from the lowest to the highest id that answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strip {
    /// The lowest id in the strip.
    pub first: u64,
    /// The highest id in the strip.
    pub last: u64,
    /// The cells, each for an equal share of the ids.
    pub cells: Vec<StripCell>,
    /// The cell of the start, if the walk goes both ways.
    pub start: Option<usize>,
}

/// What most ids of a cell are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StripCell {
    /// They exist.
    Content,
    /// They failed.
    Hole,
    /// They failed, and are asked again.
    Waiting,
    /// They do not exist.
    Missing,
    /// Nothing is known.
    Unknown,
}

/// A walk with everything that is shown of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WalkCoverage {
    /// The template as the user wrote it.
    pub template: String,
    /// The lowest id; `None` is unknown.
    pub min: Option<u64>,
    /// The highest id; `None` is unknown.
    pub max: Option<u64>,
    /// The first id that is asked, where the walk goes both ways from it.
    pub start: Option<u64>,
    /// Counts and directions.
    pub coverage: Coverage,
    /// Its strip, if any id has answered.
    pub strip: Option<Strip>,
    /// How long until the next retry.
    pub retry_in_ms: Option<u64>,
    /// Missing ids that answered like a page that does not exist, although they said otherwise.
    #[serde(default)]
    pub missing_by_look: u64,
}
