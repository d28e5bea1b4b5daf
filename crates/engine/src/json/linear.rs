//! What is known of the ids of a linear crawl.

use serde::{Deserialize, Serialize};
use telusur_model::{LegCoverage, Strip, StripCell, WalkCoverage};
use utoipa::ToSchema;

/// What is known of the ids of one template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
    /// How long until failed ids are asked again.
    pub retry_in_ms: Option<u64>,
    /// All ids that answered, drawn as a line of cells; `null` if none did.
    pub strip: Option<StripView>,
    /// How many ids there are of each kind.
    pub counts: CountsView,
    /// The ids, as runs of one state, the lowest first. Some of them: `next_cursor` has more.
    pub runs: Vec<RunView>,
}

impl CoverageView {
    /// Adds an item of a list to those before it: one that goes on with the runs of a walk joins it.
    pub fn join(views: &mut Vec<Self>, next: Self) {
        match views.last_mut() {
            Some(last) if last.walk == next.walk => last.runs.extend(next.runs),
            Some(_) | None => views.push(next),
        }
    }

    /// A walk without its runs. `number`: its place among the walks of the crawl.
    pub fn of(walk: &WalkCoverage, number: u32) -> Self {
        let counts = &walk.coverage.counts;
        Self {
            template: walk.template.clone(),
            walk: number,
            min: walk.min,
            max: walk.max,
            start: walk.start,
            legs: walk.coverage.legs.iter().map(LegView::of).collect(),
            retry_in_ms: walk.retry_in_ms,
            strip: walk.strip.as_ref().map(StripView::of),
            counts: CountsView {
                content: counts.content,
                missing: counts.missing,
                missing_by_look: walk.missing_by_look,
                holes: counts.holes,
                pending_retry: counts.waiting,
                unknown: counts.unknown.map(|ids| u64::try_from(ids).unwrap_or(u64::MAX)),
                content_past_stop: counts.content_past_stop,
            },
            runs: Vec::new(),
        }
    }
}

/// A walk drawn as a line of cells, from the lowest to the highest id that answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StripView {
    /// The lowest id.
    pub first: u64,
    /// The highest id.
    pub last: u64,
    /// The cells, each for an equal share of the ids: `#` most exist, `.` do not, `x` failed, `?` failed and
    /// are asked again, `_` unknown.
    pub cells: String,
    /// The cell of the start, if the walk goes both ways.
    pub start: Option<u64>,
}

impl StripView {
    fn of(strip: &Strip) -> Self {
        let cell = |cell: &StripCell| match cell {
            StripCell::Content => '#',
            StripCell::Missing => '.',
            StripCell::Hole => 'x',
            StripCell::Waiting => '?',
            StripCell::Unknown => '_',
        };
        Self {
            first: strip.first,
            last: strip.last,
            cells: strip.cells.iter().map(cell).collect(),
            start: strip.start.map(|start| start as u64),
        }
    }
}

/// One direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LegView {
    /// `ascending` or `descending`.
    pub direction: String,
    /// `running`, `waiting`, `stopped`, `complete` or `left`.
    pub state: String,
    /// The id that is asked next.
    pub next: Option<u64>,
    /// The id at which it stopped after too many missing ones.
    pub stop: Option<u64>,
    /// Missing ids in a row.
    pub misses_in_row: u64,
    /// How many of them stop it; 0 is never.
    pub margin: u64,
    /// Ids that it asks in its turn.
    pub rate: u32,
}

impl LegView {
    fn of(leg: &LegCoverage) -> Self {
        Self {
            direction: leg.direction.word().to_owned(),
            state: leg.state.word().to_owned(),
            next: leg.next,
            stop: leg.stop,
            misses_in_row: leg.misses_in_row,
            margin: leg.margin,
            rate: leg.rate,
        }
    }
}

/// How many ids there are of each kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
    /// Exist and are stored, but are beyond the id at which the walk stopped.
    pub content_past_stop: u64,
}

/// Ids of one state that follow each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
