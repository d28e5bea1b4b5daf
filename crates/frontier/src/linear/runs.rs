//! [`Runs`]: what is known of many ids, as runs of one state. Memory is O(runs), independent
//! of the number of ids; neighbours of one state are always joined.

use std::collections::BTreeMap;

use telusur_model::{IdState, Run, overlay};

/// What is known. The ends of its runs are offsets of a [`Leg`](super::leg::Leg).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    /// By the first offset: the last one, and the state.
    by_first: BTreeMap<u64, (u64, IdState)>,
    totals: Totals,
}

/// How many ids are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) content: u64,
    pub(crate) missing: u64,
    pub(crate) holes: u64,
    pub(crate) waiting: u64,
}

impl Totals {
    fn of(&mut self, state: IdState) -> &mut u64 {
        match state {
            IdState::Content => &mut self.content,
            IdState::Missing => &mut self.missing,
            IdState::Hole => &mut self.holes,
            IdState::Waiting { .. } => &mut self.waiting,
        }
    }

    fn add(&mut self, run: Run) {
        let total = self.of(run.state);
        *total = total.saturating_add(length(run));
    }

    pub(crate) fn subtract(&mut self, run: Run) {
        let total = self.of(run.state);
        *total = total.saturating_sub(length(run));
    }
}

/// All 2^64 ids in one state are more than a crawl can reach, and are counted one short.
pub(crate) fn length(run: Run) -> u64 {
    (run.last - run.first).saturating_add(1)
}

impl Runs {
    /// The run that contains an offset.
    pub(crate) fn at(&self, offset: u64) -> Option<Run> {
        let run = run(self.by_first.range(..=offset).next_back()?);
        (run.last >= offset).then_some(run)
    }

    /// Lays a run over what is known.
    pub(crate) fn set(&mut self, new: Run) {
        let before = self.by_first.range(..new.first).next_back().map(run);
        let before = before.filter(|before| before.touches(&new));
        let reach = new.last.saturating_add(1);
        if self.by_first.range(new.first..=reach).next().is_none() {
            match before {
                // The common case of a walk that goes on: the last run grows.
                Some(before) if before.state == new.state && before.last < new.first => {
                    self.insert(Run { first: before.first, ..new });
                    self.totals.subtract(before);
                    return;
                }
                Some(before) if before.last >= new.first => {}
                _ => return self.insert(new),
            }
        }
        let from = before.map_or(new.first, |before| before.first);
        let touching: Vec<Run> = self.by_first.range(from..=reach).map(run).collect();
        for &old in &touching {
            self.by_first.remove(&old.first);
            self.totals.subtract(old);
        }
        for run in overlay(touching, new).into_iter().flatten() {
            self.insert(run);
        }
    }

    /// Forgets what is known of misses between two offsets, both inclusive.
    pub(crate) fn forget_misses(&mut self, first: u64, last: u64) {
        let from = self.at(first).map_or(first, |run| run.first);
        let cut: Vec<Run> = self.by_first.range(from..=last).map(run).collect();
        for old in cut.into_iter().filter(|old| old.state == IdState::Missing) {
            self.by_first.remove(&old.first);
            self.totals.subtract(old);
            if old.first < first {
                self.insert(Run { last: first - 1, ..old });
            }
            if old.last > last {
                self.insert(Run { first: last + 1, ..old });
            }
        }
    }

    /// The runs in order. Either end can be taken from.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Run> {
        self.by_first.iter().map(run)
    }

    /// The runs that reach beyond an offset, the highest first; the last one is cut.
    pub(crate) fn beyond(&self, offset: u64) -> impl Iterator<Item = Run> {
        let runs = self.iter().rev().take_while(move |run| run.last > offset);
        runs.map(move |run| Run { first: run.first.max(offset + 1), ..run })
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    fn insert(&mut self, run: Run) {
        self.by_first.insert(run.first, (run.last, run.state));
        self.totals.add(run);
    }
}

fn run((&first, &(last, state)): (&u64, &(u64, IdState))) -> Run {
    Run { first, last, state }
}
