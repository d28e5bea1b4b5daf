//! [`Flights`]: the visits of a crawl that are under way, and who among them takes up a worker. A
//! visit that hears nothing for a while gives its worker to another: a thousand servers that accept
//! and stay silent must not use up all workers.

use std::collections::{BTreeMap, BTreeSet};

use telusur_model::{Moment, Politeness, QueuePlace};

/// A visit that takes longer than this waits for a silent server.
pub(crate) const PATIENCE_MS: u64 = 2_000;
/// The same for a host that has never answered: three hundred of them with two seconds each would
/// take all of the usual workers for twenty seconds.
const PATIENCE_WITH_STRANGERS_MS: u64 = 500;
/// The share of workers that is left to doubtful hosts when no more silent servers can be waited for.
const DOUBTFUL_SHARE: usize = 6;

/// What is known of a host before it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It answers in time.
    Earned,
    /// It has not answered yet.
    Stranger,
    /// It keeps us waiting: no second visit is lent to it.
    Lost,
}

impl Trust {
    pub(crate) fn is_doubtful(self) -> bool {
        self != Self::Earned
    }

    fn patience_ms(self) -> u64 {
        match self {
            Self::Earned => PATIENCE_MS,
            Self::Stranger => PATIENCE_WITH_STRANGERS_MS,
            Self::Lost => 0,
        }
    }
}

/// Visits under way. Those that take up a worker are sorted by the moment at which they give it up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flights {
    trusted: BTreeSet<(Moment, QueuePlace)>,
    doubtful: BTreeSet<(Moment, QueuePlace)>,
    silent: BTreeSet<QueuePlace>,
    patience_ends: BTreeMap<QueuePlace, Moment>,
}

impl Flights {
    pub(crate) fn begin(&mut self, place: QueuePlace, trust: Trust, at: Moment) {
        let end = at.plus_ms(trust.patience_ms());
        let lively = if trust.is_doubtful() { &mut self.doubtful } else { &mut self.trusted };
        lively.insert((end, place));
        self.patience_ends.insert(place, end);
    }

    pub(crate) fn end(&mut self, place: QueuePlace) {
        let Some(end) = self.patience_ends.remove(&place) else { return };
        let flight = (end, place);
        let _ = self.trusted.remove(&flight)
            || self.doubtful.remove(&flight)
            || self.silent.remove(&place);
    }

    pub(crate) fn count(&self) -> u64 {
        self.patience_ends.len() as u64
    }

    /// Sorts out those that have become silent.
    pub(crate) fn advance(&mut self, politeness: &Politeness, now: Moment) {
        for lively in [&mut self.doubtful, &mut self.trusted] {
            while self.silent.len() < usize::from(politeness.silent_max)
                && let Some(&(end, place)) = lively.first()
                && end <= now
            {
                lively.pop_first();
                self.silent.insert(place);
            }
        }
    }

    /// When a visit to a host that answers in time may begin; `None` if only an event can allow it.
    pub(crate) fn opens_at(&self, politeness: &Politeness) -> Option<Moment> {
        let workers = usize::from(politeness.workers.max(1));
        if self.trusted.len() + self.doubtful.len() < workers {
            return Some(Moment(0));
        }
        let first = self.trusted.first().into_iter().chain(self.doubtful.first()).min();
        first.filter(|_| self.has_room_for_silent(politeness)).map(|&(end, _)| end)
    }

    /// The same for a doubtful host. As long as there is room to wait for it should it be silent, it
    /// is a host like any other.
    pub(crate) fn opens_to_doubtful_at(&self, politeness: &Politeness) -> Option<Moment> {
        let silent_max = usize::from(politeness.silent_max);
        let share = usize::from(politeness.workers) / DOUBTFUL_SHARE;
        let is_crowded = silent_max > 0
            && self.silent.len() + self.doubtful.len() >= silent_max
            && self.doubtful.len() >= share.max(1);
        if is_crowded { None } else { self.opens_at(politeness) }
    }

    fn has_room_for_silent(&self, politeness: &Politeness) -> bool {
        self.silent.len() < usize::from(politeness.silent_max)
    }
}
