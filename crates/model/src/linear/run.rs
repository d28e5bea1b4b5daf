//! [`Run`]: a range of ids in one state, and [`overlay`], the one rule by which runs change.
//! The frontier's memory and the store's rows both follow it, so they cannot differ.

use serde::{Deserialize, Serialize};

use crate::Retry;

/// The state of an id. An id that was never asked has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdState {
    /// It exists and is stored.
    Content,
    /// It does not exist.
    Missing,
    /// It failed, and no attempt is left.
    Hole,
    /// It failed, and is asked again after the cool-down.
    Waiting {
        /// Attempts that count so far.
        attempts: u8,
    },
}

impl IdState {
    /// What an id is after an attempt, if there may be `attempts_max` of them. The first is 1.
    pub fn after(answer: IdOutcome, attempt: u8, attempts_max: u8) -> Self {
        match answer {
            IdOutcome::Content => Self::Content,
            IdOutcome::Missing => Self::Missing,
            IdOutcome::Failed(Retry::Never) => Self::Hole,
            IdOutcome::Failed(Retry::NotCounted) => {
                Self::Waiting { attempts: attempt.saturating_sub(1) }
            }
            IdOutcome::Failed(Retry::Later) if attempt < attempts_max => {
                Self::Waiting { attempts: attempt }
            }
            IdOutcome::Failed(Retry::Later) => Self::Hole,
        }
    }

    /// The stable word: it is stored, exported and shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Missing => "missing",
            Self::Hole => "hole",
            Self::Waiting { .. } => "waiting",
        }
    }

    /// Whether it counts for the margin.
    pub fn is_miss(self) -> bool {
        matches!(self, Self::Missing | Self::Hole)
    }
}

/// How an id answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdOutcome {
    /// With a page.
    Content,
    /// It does not exist.
    Missing,
    /// It is unknown whether it exists.
    Failed(Retry),
}

/// Neighbouring ids of one state. The ends are positions of a [`Walk`](crate::Walk), both
/// inclusive: for a walk of step 1 they are the ids themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Run<S = IdState> {
    /// The lowest position.
    pub first: u64,
    /// The highest position.
    pub last: u64,
    /// The state of all of them.
    pub state: S,
}

impl<S> Run<S> {
    /// Whether the two overlap or adjoin.
    pub fn touches(&self, other: &Self) -> bool {
        self.first <= other.last.saturating_add(1) && other.first <= self.last.saturating_add(1)
    }
}

/// What becomes of runs when a new one is laid over them. `touching` are all old runs that overlap
/// or adjoin the new one, in order; the answer takes their place, in order.
pub fn overlay<S: Copy + PartialEq>(
    touching: impl IntoIterator<Item = Run<S>>,
    new: Run<S>,
) -> [Option<Run<S>>; 3] {
    let (mut left, mut middle, mut right) = (None, new, None);
    for old in touching {
        debug_assert!(old.touches(&new));
        if old.state == new.state {
            middle.first = middle.first.min(old.first);
            middle.last = middle.last.max(old.last);
            continue;
        }
        if old.first < new.first {
            left = Some(Run { last: old.last.min(new.first - 1), ..old });
        }
        if old.last > new.last {
            right = Some(Run { first: old.first.max(new.last + 1), ..old });
        }
    }
    [left, Some(middle), right]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: u64, last: u64, state: IdState) -> Run {
        Run { first, last, state }
    }

    #[track_caller]
    fn check(touching: &[Run], new: Run, expect: &[Run]) {
        let result: Vec<Run> =
            overlay(touching.iter().copied(), new).into_iter().flatten().collect();
        assert_eq!(result, expect);
    }

    use IdState::{Content, Hole, Missing};

    #[test]
    fn equal_neighbours_are_joined() {
        check(&[], run(5, 5, Content), &[run(5, 5, Content)]);
        check(&[run(1, 4, Content)], run(5, 5, Content), &[run(1, 5, Content)]);
        let both = [run(1, 4, Content), run(6, 9, Content)];
        check(&both, run(5, 5, Content), &[run(1, 9, Content)]);
        check(&[run(1, 9, Content)], run(5, 5, Content), &[run(1, 9, Content)]);
    }

    #[test]
    fn other_neighbours_stay() {
        let both = [run(1, 4, Missing), run(6, 9, Hole)];
        let expect = [run(1, 4, Missing), run(5, 5, Content), run(6, 9, Hole)];
        check(&both, run(5, 5, Content), &expect);
    }

    #[test]
    fn a_run_is_cut_out_of_another() {
        let expect = [run(1, 4, Hole), run(5, 5, Content), run(6, 9, Hole)];
        check(&[run(1, 9, Hole)], run(5, 5, Content), &expect);
        let expect = [run(5, 5, Content), run(6, 9, Hole)];
        check(&[run(5, 9, Hole)], run(5, 5, Content), &expect);
    }

    #[test]
    fn many_are_covered_by_one() {
        let old = [run(1, 3, Hole), run(4, 4, Content), run(5, 9, Missing)];
        check(&old, run(2, 8, Content), &[run(1, 1, Hole), run(2, 8, Content), run(9, 9, Missing)]);
    }

    #[test]
    fn both_ends_of_all_ids() {
        check(
            &[run(0, u64::MAX, Hole)],
            run(0, 0, Content),
            &[run(0, 0, Content), run(1, u64::MAX, Hole)],
        );
        check(
            &[run(0, u64::MAX, Hole)],
            run(u64::MAX, u64::MAX, Content),
            &[run(0, u64::MAX - 1, Hole), run(u64::MAX, u64::MAX, Content)],
        );
    }

    #[test]
    fn attempts_are_used_up() {
        let failed = |retry, attempt| IdState::after(IdOutcome::Failed(retry), attempt, 3);
        assert_eq!(failed(Retry::Later, 2), IdState::Waiting { attempts: 2 });
        assert_eq!(failed(Retry::Later, 3), Hole);
        // The number of attempts may have been larger in an earlier run.
        assert_eq!(failed(Retry::Later, 4), Hole);
        assert_eq!(failed(Retry::NotCounted, 3), IdState::Waiting { attempts: 2 });
        assert_eq!(failed(Retry::Never, 1), Hole);
    }

    #[test]
    fn a_row_is_small() {
        let row = run(38_398_022, 38_401_121, IdState::Waiting { attempts: 2 });
        assert_eq!(postcard::to_stdvec(&row).unwrap().len(), 10);
    }
}
