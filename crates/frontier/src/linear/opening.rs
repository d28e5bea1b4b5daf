//! [`Opening`]: how a walk begins, or goes on from what an earlier run left. Only the runs that the
//! store kept are needed: what was in flight when a run was killed is simply not known.

use std::fmt;

use telusur_model::{Direction, IdState, Moment, Resume, Run, Walk};

use crate::linear::leg::{Leg, LegRules};
use crate::linear::runs::Runs;
use crate::linear::track::Track;
use crate::linear::walk_state::{Opened, WalkState};

/// How a walk is opened.
#[derive(Clone, Debug)]
pub struct Opening {
    /// What is done about an earlier run.
    pub resume: Resume,
    /// The same run goes on after a crash: holes stay holes, and the decisions of its
    /// beginning still hold.
    pub is_recovery: bool,
    /// Asks once more for the misses at which a leg stopped: pages may have come since. This is for
    /// walks that are repeated day by day; else the same walk twice fetches nothing twice.
    pub recheck_end: bool,
    /// The walk as it was in the earlier run, if that may differ.
    pub earlier: Option<Walk>,
}

impl Opening {
    /// A second run by the user's wish, or a first one.
    pub fn resume(resume: Resume) -> Self {
        Self { resume, is_recovery: false, recheck_end: false, earlier: None }
    }

    /// The same run after a crash.
    pub fn recover(resume: Resume) -> Self {
        Self { is_recovery: true, ..Self::resume(resume) }
    }

    /// Opens a walk. `runs` is what the store kept of it, in any order.
    pub fn open(&self, walk: Walk, runs: impl IntoIterator<Item = Run>, now: Moment) -> Opened {
        let mut notes = self.earlier.as_ref().map_or_else(Vec::new, |from| changes(from, &walk));
        let fits = self.earlier.as_ref().is_none_or(|earlier| walk.has_positions_of(earlier));
        let mut known = vec![Runs::default(); walk.legs().len()];
        let tracks: Vec<Track> = walk.legs().iter().map(Track::new).collect();
        let mut changed = Vec::new();
        for mut run in runs.into_iter().filter(|_| fits) {
            if run.state == IdState::Hole && self.reopens_holes() {
                run.state = IdState::Waiting { attempts: 0 };
                changed.push(run);
            }
            for (track, known) in tracks.iter().zip(&mut known) {
                if let Some((first, last)) = track.offsets(run.first, run.last) {
                    known.set(Run { first, last, ..run });
                }
            }
        }
        let legs = tracks.into_iter().zip(known).map(|(track, runs)| {
            let leg = self.leg(&walk, &track, runs, now);
            (track, leg)
        });
        let state = WalkState::new(walk.clone(), legs.collect());
        if !self.is_recovery {
            notes.extend(outlook(&state));
        }
        Opened { state, changed, notes }
    }

    fn reopens_holes(&self) -> bool {
        !self.is_recovery && matches!(self.resume, Resume::All | Resume::Holes)
    }

    fn leg(&self, walk: &Walk, track: &Track, mut runs: Runs, now: Moment) -> Leg {
        let rules = LegRules {
            last: track.last(),
            margin: walk.rules().margin,
            cooldown_ms: walk.rules().cooldown_ms,
            asks_fresh: self.resume != Resume::Holes,
        };
        if self.recheck_end && rules.asks_fresh {
            let leg = Leg::new(rules, runs.clone(), now);
            if let Some(stop) = leg.stop() {
                runs.forget_misses(stop - (rules.margin - 1), stop);
            }
        }
        Leg::new(rules, runs, now)
    }
}

/// What there is to say about an earlier run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumeNote {
    /// It asked for other pages: nothing of it is used.
    OtherTemplate {
        /// Its template.
        from: String,
    },
    /// Its steps came by other ids: nothing of it is used.
    OtherStep {
        /// Its step.
        from: u64,
        /// The step now.
        to: u64,
    },
    /// The margin is another one: the stop is computed again from the known states.
    Margin {
        /// Of the earlier run.
        from: u64,
        /// Now.
        to: u64,
    },
    /// The bounds are other ones: what lies between the new ones is used.
    Bounds {
        /// Lowest and highest id of the earlier run.
        from: (Option<u64>, Option<u64>),
        /// Now.
        to: (Option<u64>, Option<u64>),
    },
    /// The start is another one: ids keep what is known of them, the order is new.
    Start {
        /// Of the earlier run.
        from: Option<u64>,
        /// Now.
        to: Option<u64>,
    },
    /// Holes are asked again.
    HolesRetried {
        /// How many.
        ids: u64,
    },
    /// A direction goes on.
    GoesOn {
        /// Which way.
        direction: Direction,
        /// With this id.
        next: u64,
    },
    /// A direction stopped at its margin before, and has nothing to ask.
    Stopped {
        /// Which way.
        direction: Direction,
        /// At this id.
        at: u64,
        /// The margin.
        margin: u64,
    },
    /// A direction found its margin of misses before, and asks only for failed ids before it.
    EndsBy {
        /// Which way.
        direction: Direction,
        /// The last id that matters.
        at: u64,
        /// The margin.
        margin: u64,
    },
    /// A direction has reached its bound before.
    Complete {
        /// Which way.
        direction: Direction,
    },
}

/// What differs between two walks, and what that means.
fn changes(from: &Walk, to: &Walk) -> Vec<ResumeNote> {
    let (old, new) = (from.rules(), to.rules());
    if old.template != new.template {
        return vec![ResumeNote::OtherTemplate { from: old.template.to_string() }];
    }
    if !to.has_positions_of(from) {
        return vec![ResumeNote::OtherStep { from: old.step, to: new.step }];
    }
    let mut notes = Vec::new();
    if old.margin != new.margin {
        notes.push(ResumeNote::Margin { from: old.margin, to: new.margin });
    }
    if (old.min, old.max) != (new.min, new.max) {
        notes.push(ResumeNote::Bounds { from: (old.min, old.max), to: (new.min, new.max) });
    }
    if old.start != new.start {
        notes.push(ResumeNote::Start { from: old.start, to: new.start });
    }
    notes
}

/// What each direction of a resumed walk is going to do.
fn outlook(state: &WalkState) -> Vec<ResumeNote> {
    let coverage = state.coverage();
    if coverage.counts.is_nothing_known() {
        return Vec::new();
    }
    let mut notes = Vec::new();
    let ids = coverage.counts.waiting;
    if ids > 0 {
        notes.push(ResumeNote::HolesRetried { ids });
    }
    for (leg, end) in coverage.legs.into_iter().zip(state.ends()) {
        let (direction, margin) = (leg.direction, leg.margin);
        match (leg.stop, end, leg.next) {
            (Some(at), ..) => notes.push(ResumeNote::Stopped { direction, at, margin }),
            (None, Some(at), _) => notes.push(ResumeNote::EndsBy { direction, at, margin }),
            (None, None, Some(next)) if leg.asks_fresh => {
                notes.push(ResumeNote::GoesOn { direction, next })
            }
            (None, None, Some(_)) => {}
            (None, None, None) => notes.push(ResumeNote::Complete { direction }),
        }
    }
    notes
}

impl fmt::Display for ResumeNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = |id: &Option<u64>| id.map_or("unknown".to_owned(), |id| id.to_string());
        match self {
            Self::OtherTemplate { from } => {
                write!(f, "the earlier run asked for {from}: nothing of it is used")
            }
            Self::OtherStep { from, to } => {
                write!(
                    f,
                    "the steps come by other ids than before ({from}, now {to}): all are asked"
                )
            }
            Self::Margin { from, to } => {
                write!(
                    f,
                    "margin {from} is now {to}: the stop is computed again from the known states"
                )
            }
            Self::Bounds { from, to } => write!(
                f,
                "bounds {} to {} are now {} to {}: known ids between them are not asked again",
                id(&from.0),
                id(&from.1),
                id(&to.0),
                id(&to.1)
            ),
            Self::Start { from, to } => {
                write!(f, "start {} is now {}: known ids are not asked again", id(from), id(to))
            }
            Self::HolesRetried { ids } => write!(f, "{ids} failed ids are asked again"),
            Self::GoesOn { direction, next } => {
                write!(f, "{} goes on with {next}", direction.word())
            }
            Self::Stopped { direction, at, margin } => write!(
                f,
                "{} stopped at {at} after {margin} missing in a row: a larger margin goes on",
                direction.word()
            ),
            Self::EndsBy { direction, at, margin } => write!(
                f,
                "{} goes no further than {at}, where {margin} are missing in a row: a larger margin goes on",
                direction.word()
            ),
            Self::Complete { direction } => {
                write!(f, "{} has reached its bound", direction.word())
            }
        }
    }
}
