//! Linear crawls: which id is asked next, and what is known of all ids.
//!
//! [`Linear`] holds the walks of one crawl. Like the frontier it is pure: it is told the time and
//! the answers, and says what to ask ([`LinearNext`]). It knows nothing of gates and addresses;
//! the caller of [`next`](Linear::next) says which hosts may be asked. What it knows is kept as
//! runs of ids, so that a range of a billion ids costs no more than its changes from one state to
//! another.
//!
//! **What is reported equals the sequential crawl**: the one that asks id after id, repeats a
//! failure at once until its attempts are used up, and stops at the margin. Here fetches overlap
//! and attempts come later, so ids past that stop may have been asked. They are kept, and not
//! reported.
//!
//! Read in the order of the modules: `walk_state` is one walk, `leg` one direction of it and all
//! its decisions, `rotation` the taking of turns; `coverage` is what is shown, `opening` what a
//! second run makes of the first. `track` lets a leg count its ids 0, 1, 2 … in any
//! direction, with any step and over a list; `runs` and `cooling` are its memory.

mod walk_state;

mod leg;
mod rotation;

mod coverage;
mod opening;
mod track;

mod runs;

mod cooling;

#[cfg(test)]
mod tests;

use telusur_model::{IdState, Moment, Run};

use crate::linear::rotation::Rotation;

pub use crate::linear::opening::{Opening, ResumeNote};
pub use crate::linear::walk_state::{Opened, WalkState};

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearNext {
    /// Ask for this id. It is in flight until [`answered`](Linear::answered) or
    /// [`unasked`](Linear::unasked).
    Ask {
        /// Which walk, in the order given to [`Linear::new`].
        walk: usize,
        /// Which id.
        id: u64,
        /// 1 at the first attempt.
        attempt: u8,
    },
    /// Nothing before this moment; `None`: nothing until an answer comes or a host is ready.
    Wait(Option<Moment>),
    /// No attempt is left, and nothing is in flight.
    Finished,
}

/// The walks of one crawl, taking turns.
#[derive(Clone, Debug)]
pub struct Linear {
    walks: Vec<WalkState>,
    /// The walk and the leg of every place in the rotation.
    places: Vec<(usize, usize)>,
    /// The place of the first leg of every walk.
    place_first: Vec<usize>,
    rotation: Rotation,
}

impl Linear {
    /// Walks that take turns in this order.
    pub fn new(walks: Vec<WalkState>) -> Self {
        let (mut places, mut place_first, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        for (walk, state) in walks.iter().enumerate() {
            place_first.push(places.len());
            for (leg, plan) in state.walk().legs().iter().enumerate() {
                places.push((walk, leg));
                rates.push(plan.rate);
            }
        }
        let rotation = Rotation::new(&rates);
        let mut linear = Self { walks, places, place_first, rotation };
        for place in 0..linear.places.len() {
            linear.leave_if_finished(place);
        }
        linear
    }

    /// What to ask now. `is_ready`: whether the host of a walk may be asked. Call it again until it
    /// waits.
    pub fn next(&mut self, now: Moment, is_ready: impl FnMut(usize) -> bool) -> LinearNext {
        self.next_within(now, is_ready, |_| true)
    }

    /// As [`next`](Self::next), where `has_unit` says whether a walk may ask for ids that were never
    /// asked before. Another attempt at an id needs no unit.
    pub(crate) fn next_within(
        &mut self,
        now: Moment,
        mut is_ready: impl FnMut(usize) -> bool,
        has_unit: impl Fn(usize) -> bool,
    ) -> LinearNext {
        let (walks, places) = (&self.walks, &self.places);
        let picked = self.rotation.next(|place| {
            let (walk, leg) = places[place];
            let leg = walks[walk].leg(leg);
            leg.can_ask(now) && (has_unit(walk) || leg.can_retry(now)) && is_ready(walk)
        });
        if let Some(place) = picked {
            let (walk, leg) = self.places[place];
            let (id, attempt) = self.walks[walk].hand_out(leg, now, !has_unit(walk));
            return LinearNext::Ask { walk, id, attempt };
        }
        if self.rotation.is_empty() {
            return LinearNext::Finished;
        }
        let due = self.walks.iter().filter_map(WalkState::retry_at).filter(|due| *due > now);
        LinearNext::Wait(due.min())
    }

    /// An id that was in flight is this now: what the store has kept. False if it was not in flight.
    pub fn became(&mut self, walk: usize, id: u64, state: IdState, now: Moment) -> bool {
        let leg = self.walks.get_mut(walk).and_then(|walk| walk.became(id, state, now));
        if let Some(leg) = leg {
            self.leave_if_finished(self.place_first[walk] + leg);
        }
        leg.is_some()
    }

    /// Gives up the ids of a walk that wait for another attempt. Returns what the store has to keep.
    pub(crate) fn give_up_waiting(&mut self, walk: usize) -> Vec<Run> {
        let holes = self.walks.get_mut(walk).map(WalkState::give_up_waiting).unwrap_or_default();
        let legs = self.walks.get(walk).map_or(0, |walk| walk.legs.len());
        for leg in 0..legs {
            self.leave_if_finished(self.place_first[walk] + leg);
        }
        holes
    }

    /// The walks, in order.
    pub fn walks(&self) -> &[WalkState] {
        &self.walks
    }

    fn leave_if_finished(&mut self, place: usize) {
        let (walk, leg) = self.places[place];
        if self.walks[walk].leg(leg).is_finished() {
            self.rotation.leave(place);
        }
    }
}
