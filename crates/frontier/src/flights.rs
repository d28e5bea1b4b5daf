//! [`Flights`]: the visits of a crawl that are under way. One that has heard nothing for a while
//! gives its place to another: a thousand servers that accept and stay silent must not use up all
//! workers.

use std::collections::BTreeSet;

use telusur_model::{Moment, Politeness, QueuePlace};

/// A visit that takes longer than this waits for a silent server.
const PATIENCE_MS: u64 = 2_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct Flights {
    lively: BTreeSet<(Moment, QueuePlace)>,
    silent: BTreeSet<(Moment, QueuePlace)>,
}

impl Flights {
    pub(crate) fn begin(&mut self, place: QueuePlace, at: Moment) {
        self.lively.insert((at, place));
    }

    pub(crate) fn end(&mut self, place: QueuePlace, began_at: Moment) {
        let flight = (began_at, place);
        let _ = self.lively.remove(&flight) || self.silent.remove(&flight);
    }

    pub(crate) fn count(&self) -> u64 {
        (self.lively.len() + self.silent.len()) as u64
    }

    /// Sorts out those that have become silent.
    pub(crate) fn advance(&mut self, politeness: &Politeness, now: Moment) {
        while self.silent.len() < usize::from(politeness.silent_max)
            && let Some(&oldest) = self.lively.first()
            && now.ms_since(oldest.0) >= PATIENCE_MS
        {
            self.lively.pop_first();
            self.silent.insert(oldest);
        }
    }

    /// When another visit may begin; `None` if only an event can allow it.
    pub(crate) fn opens_at(&self, politeness: &Politeness) -> Option<Moment> {
        if self.lively.len() < usize::from(politeness.workers.max(1)) {
            return Some(Moment(0));
        }
        if self.silent.len() >= usize::from(politeness.silent_max) {
            return None;
        }
        self.lively.first().map(|&(began_at, _)| began_at.plus_ms(PATIENCE_MS))
    }
}
