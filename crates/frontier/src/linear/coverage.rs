//! What is shown of a walk: counts, runs, the state of each direction, a strip. Everything here
//! equals the sequential crawl; what was asked past its stop is only counted.

use telusur_model::{
    Coverage, CoverageCounts, Direction, IdRun, IdState, LegCoverage, LegState, Run, Strip,
    StripCell,
};

use crate::linear::leg::Leg;
use crate::linear::runs::{Totals, length};
use crate::linear::track::Track;
use crate::linear::walk_state::WalkState;

impl WalkState {
    /// Counts and directions.
    pub fn coverage(&self) -> Coverage {
        let mut counts = CoverageCounts::default();
        let mut ids_total = 0_u128;
        for (track, leg) in &self.legs {
            let totals = leg.runs().totals();
            let reported = reported_totals(leg);
            counts.content += reported.content;
            counts.missing += reported.missing;
            counts.holes += reported.holes;
            counts.waiting += reported.waiting;
            counts.content_past_stop += totals.content - reported.content;
            ids_total += u128::from(track.last()) + 1;
        }
        let known = [counts.content, counts.missing, counts.holes, counts.waiting];
        let known: u128 = known.into_iter().map(u128::from).sum();
        counts.unknown = self.has_known_bounds().then(|| ids_total - known);
        let legs = self.legs.iter().map(|(track, leg)| self.leg_coverage(track, leg));
        Coverage { counts, legs: legs.collect() }
    }

    /// The runs of all ids that answered, the lowest first.
    pub fn runs(&self) -> impl Iterator<Item = IdRun> {
        let id_run = |run: Run| IdRun {
            first: self.walk().id_at(run.first),
            last: self.walk().id_at(run.last),
            count: length(run),
            state: run.state,
        };
        joined(self.position_runs()).map(id_run)
    }

    /// A strip of at most this many cells; `None` if no id has answered.
    pub fn strip(&self, cells_max: usize) -> Option<Strip> {
        // Places count from the start: 0, 1, 2 … upwards, -1, -2 … downwards.
        let reach = |direction| {
            let leg = self.legs.iter().find(|(track, _)| track.direction() == direction);
            leg.and_then(|(_, leg)| reported_runs(leg).next_back()).map(|run| run.last)
        };
        let up = reach(Direction::Ascending).map(i128::from);
        let down = reach(Direction::Descending).map(|last| -1 - i128::from(last));
        let (first, last) = (down.or(up.map(|_| 0))?, up.unwrap_or(-1));
        let axis = Axis::new(first, last, cells_max);
        let mut cells = vec![[0_u128; 4]; axis.cells];
        for (track, leg) in &self.legs {
            for run in reported_runs(leg) {
                let (low, high) = match track.direction() {
                    Direction::Ascending => (i128::from(run.first), i128::from(run.last)),
                    Direction::Descending => {
                        (-1 - i128::from(run.last), -1 - i128::from(run.first))
                    }
                };
                axis.count(low, high, kind(run.state), &mut cells);
            }
        }
        let cells = cells.iter().enumerate().map(|(cell, counts)| axis.most(cell, counts));
        Some(Strip {
            first: self.id_at_place(first),
            last: self.id_at_place(last),
            cells: cells.collect(),
            start: (first < 0 && last >= 0).then(|| axis.cell(0)),
        })
    }

    fn leg_coverage(&self, track: &Track, leg: &Leg) -> LegCoverage {
        let id = |offset| self.walk().id_at(track.position(offset));
        LegCoverage {
            direction: track.direction(),
            rate: self.rate_of(track.direction()),
            state: leg_state(leg),
            next: leg.next().map(id),
            stop: leg.stop().map(id),
            misses_in_row: leg.misses(),
            margin: leg.rules().margin,
            retry_at: leg.retry_at(),
            asks_fresh: leg.rules().asks_fresh,
        }
    }

    /// Where each direction ends, if it asks for nothing but failed ids before that.
    pub(crate) fn ends(&self) -> impl Iterator<Item = Option<u64>> {
        let id = |track: &Track, offset| self.walk().id_at(track.position(offset));
        self.legs.iter().map(move |(track, leg)| leg.end().map(|offset| id(track, offset)))
    }

    fn rate_of(&self, direction: Direction) -> u32 {
        let rates = self.walk().rules().rates;
        match direction {
            Direction::Ascending => rates.ascending,
            Direction::Descending => rates.descending,
        }
    }

    /// Reported runs as positions, the lowest first: downwards the leg that goes down, then upwards
    /// the one that goes up.
    fn position_runs(&self) -> impl Iterator<Item = Run> {
        let of =
            |direction| self.legs.iter().find(move |(track, _)| track.direction() == direction);
        let down = of(Direction::Descending)
            .into_iter()
            .flat_map(|(track, leg)| reported_runs(leg).rev().flat_map(|run| track.positions(run)));
        let up = of(Direction::Ascending)
            .into_iter()
            .flat_map(|(track, leg)| reported_runs(leg).flat_map(|run| track.positions(run)));
        down.chain(up)
    }

    fn has_known_bounds(&self) -> bool {
        let rules = self.walk().rules();
        rules.ids.is_some()
            || self.legs.iter().all(|(track, _)| match track.direction() {
                Direction::Ascending => rules.max.is_some(),
                Direction::Descending => rules.min.is_some(),
            })
    }

    fn id_at_place(&self, place: i128) -> u64 {
        let (direction, offset) = match place < 0 {
            true => (Direction::Descending, -1 - place),
            false => (Direction::Ascending, place),
        };
        let leg = self.legs.iter().find(|(track, _)| track.direction() == direction);
        let (track, _) = leg.expect("a place belongs to a leg");
        let offset = u64::try_from(offset).expect("a place was an offset");
        self.walk().id_at(track.position(offset))
    }
}

fn leg_state(leg: &Leg) -> LegState {
    if leg.stop().is_some() {
        LegState::Stopped
    } else if leg.is_complete() {
        LegState::Complete
    } else if leg.is_running() {
        LegState::Running
    } else if leg.retry_at().is_some() {
        LegState::Waiting
    } else {
        LegState::Left
    }
}

fn reported_totals(leg: &Leg) -> Totals {
    let mut totals = leg.runs().totals();
    for run in leg.runs().beyond(leg.reported_last()) {
        totals.subtract(run);
    }
    totals
}

fn reported_runs(leg: &Leg) -> impl DoubleEndedIterator<Item = Run> {
    let last = leg.reported_last();
    let runs = leg.runs().iter().filter(move |run| run.first <= last);
    runs.map(move |run| Run { last: run.last.min(last), ..run })
}

/// Joins neighbours that people see as one: those that wait, after any number of attempts, and those on
/// both sides of the start.
fn joined(runs: impl Iterator<Item = Run>) -> impl Iterator<Item = Run> {
    let mut runs = runs.peekable();
    std::iter::from_fn(move || {
        let mut run = runs.next()?;
        while let Some(next) = runs.next_if(|next| {
            run.last.checked_add(1) == Some(next.first) && run.state.word() == next.state.word()
        }) {
            run.last = next.last;
        }
        Some(run)
    })
}

/// The kinds of cells that are counted, in the order in which they win a draw.
const KINDS: [StripCell; 4] =
    [StripCell::Content, StripCell::Hole, StripCell::Waiting, StripCell::Missing];

fn kind(state: IdState) -> usize {
    match state {
        IdState::Content => 0,
        IdState::Hole => 1,
        IdState::Waiting { .. } => 2,
        IdState::Missing => 3,
    }
}

/// A stretch of places, shared into cells.
struct Axis {
    first: i128,
    places: u128,
    cells: usize,
}

impl Axis {
    fn new(first: i128, last: i128, cells_max: usize) -> Self {
        let places = (last - first).unsigned_abs() + 1;
        let cells = usize::try_from(places).unwrap_or(usize::MAX).min(cells_max.max(1));
        Self { first, places, cells }
    }

    /// The cell that a place falls into.
    fn cell(&self, place: i128) -> usize {
        let distance = (place - self.first).unsigned_abs();
        // Cell c begins at c * places / cells, rounded down.
        let cell = ((distance + 1) * self.cells as u128 - 1) / self.places;
        usize::try_from(cell).expect("fewer than cells")
    }

    /// The places before a cell.
    fn before(&self, cell: usize) -> u128 {
        cell as u128 * self.places / self.cells as u128
    }

    fn count(&self, low: i128, high: i128, kind: usize, cells: &mut [[u128; 4]]) {
        let from = (low - self.first).unsigned_abs();
        let to = (high - self.first).unsigned_abs();
        let (cell_first, cell_last) = (self.cell(low), self.cell(high));
        for (cell, counts) in (cell_first..).zip(&mut cells[cell_first..=cell_last]) {
            let first = from.max(self.before(cell));
            let last = to.min(self.before(cell + 1) - 1);
            counts[kind] += last - first + 1;
        }
    }

    /// What most places of a cell are.
    fn most(&self, cell: usize, counts: &[u128; 4]) -> StripCell {
        let places = self.before(cell + 1) - self.before(cell);
        let unknown = places - counts.iter().sum::<u128>();
        let mut most = (unknown, StripCell::Unknown);
        for (kind, count) in KINDS.into_iter().zip(*counts).rev() {
            if count >= most.0 && count > 0 {
                most = (count, kind);
            }
        }
        most.1
    }
}
