//! [`WalkState`]: one walk with its progress. It translates between ids, which the world knows, and
//! the offsets of its legs; the decisions are theirs.

use telusur_model::{Host, IdState, Moment, Run, Walk};

use crate::linear::leg::Leg;
use crate::linear::opening::ResumeNote;
use crate::linear::track::Track;

/// One walk, as far as it has come.
#[derive(Clone, Debug)]
pub struct WalkState {
    walk: Walk,
    pub(super) legs: Vec<(Track, Leg)>,
}

/// A walk that was opened, and what there is to say about it.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The walk.
    pub state: WalkState,
    /// What the store has to keep before anything is asked: holes that are retried.
    pub changed: Vec<Run>,
    /// How an earlier run was continued, for the user.
    pub notes: Vec<ResumeNote>,
}

impl WalkState {
    pub(super) fn new(walk: Walk, legs: Vec<(Track, Leg)>) -> Self {
        Self { walk, legs }
    }

    /// What was asked for.
    pub fn walk(&self) -> &Walk {
        &self.walk
    }

    /// The host that is asked.
    pub fn host(&self) -> &Host {
        self.walk.rules().template.host()
    }

    pub(super) fn leg(&self, leg: usize) -> &Leg {
        &self.legs[leg].1
    }

    /// The next id of a leg that can ask, and its attempt.
    pub(super) fn hand_out(&mut self, leg: usize, now: Moment, only_retries: bool) -> (u64, u8) {
        let (track, leg) = &mut self.legs[leg];
        let (offset, attempt) = leg.hand_out(now, only_retries).expect("asked only if it can");
        (self.walk.id_at(track.position(offset)), attempt)
    }

    /// Returns the leg of the id.
    pub(super) fn became(&mut self, id: u64, state: IdState, now: Moment) -> Option<usize> {
        let (index, offset) = self.leg_of(self.walk.position_of(id)?)?;
        self.legs[index].1.became(offset, state, now).then_some(index)
    }

    /// Whether one of its directions can ask.
    pub(crate) fn can_ask(&self, now: Moment) -> bool {
        self.legs.iter().any(|(_, leg)| leg.can_ask(now))
    }

    /// Whether one of its directions can ask for an id that was asked before.
    pub(crate) fn can_retry(&self, now: Moment) -> bool {
        self.legs.iter().any(|(_, leg)| leg.can_retry(now))
    }

    /// Whether an id has a state already.
    pub(crate) fn is_known(&self, id: u64) -> bool {
        let place = self.walk.position_of(id).and_then(|position| self.leg_of(position));
        place.is_some_and(|(leg, offset)| self.legs[leg].1.is_known(offset))
    }

    /// Ids in flight that have no state yet.
    pub(crate) fn in_flight_first(&self) -> u64 {
        self.legs.iter().map(|(_, leg)| leg.in_flight_first()).sum()
    }

    /// Whether nothing is left to ask, or under way.
    pub fn is_finished(&self) -> bool {
        self.legs.iter().all(|(_, leg)| leg.is_finished())
    }

    /// Gives up the ids that wait for another attempt. Returns what the store has to keep.
    pub(super) fn give_up_waiting(&mut self) -> Vec<Run> {
        let legs = self.legs.iter_mut();
        legs.flat_map(|(track, leg)| {
            let holes = leg.give_up_waiting();
            holes.into_iter().flat_map(|run| track.positions(run).collect::<Vec<_>>())
        })
        .collect()
    }

    /// When the next retry is due.
    pub(crate) fn retry_at(&self) -> Option<Moment> {
        self.legs.iter().filter_map(|(_, leg)| leg.retry_at()).min()
    }

    fn leg_of(&self, position: u64) -> Option<(usize, u64)> {
        let offsets = self.legs.iter().map(|(track, _)| track.offset(position));
        offsets.enumerate().find_map(|(index, offset)| Some((index, offset?)))
    }
}
