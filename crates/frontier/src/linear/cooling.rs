//! [`Cooling`]: ids that failed, until they may be asked again. Neighbours that failed one after
//! the other are kept as one stretch, so that an outage of a million ids costs a few entries.

use std::collections::VecDeque;

use telusur_model::Moment;

/// Ids that wait for an attempt, in the order in which they are due. The cool-down is the same for
/// all of them, so this is the order in which they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cooling {
    stretches: VecDeque<Stretch>,
    cooldown_ms: u64,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    first: u64,
    last: u64,
    /// Attempts that count so far.
    attempts: u8,
    /// When its first id could be asked.
    opens: Moment,
    /// When its last id can be asked, and so all of them.
    due: Moment,
}

/// A stretch is never longer, in time, than this part of the cool-down: no id waits much longer
/// than it has to, and an hour of failures costs a bounded number of stretches.
const STRETCH_PART: u64 = 16;

impl Cooling {
    pub(crate) fn new(cooldown_ms: u64) -> Self {
        Self { stretches: VecDeque::new(), cooldown_ms }
    }

    /// An id failed now.
    pub(crate) fn push(&mut self, offset: u64, attempts: u8, now: Moment) {
        let due = now.plus_ms(self.cooldown_ms);
        let slack_ms = self.cooldown_ms / STRETCH_PART;
        if let Some(back) = self.stretches.back_mut()
            && back.attempts == attempts
            && back.last.checked_add(1) == Some(offset)
            && due.ms_since(back.opens) <= slack_ms
        {
            back.last = offset;
            back.due = back.due.max(due);
            return;
        }
        self.push_stretch(offset, offset, attempts, due);
    }

    /// Ids that failed earlier, due at a moment that is not before that of any other.
    pub(crate) fn push_stretch(&mut self, first: u64, last: u64, attempts: u8, due: Moment) {
        self.stretches.push_back(Stretch { first, last, attempts, opens: due, due });
    }

    /// When the next id is due.
    pub(crate) fn due(&self) -> Option<Moment> {
        self.stretches.front().map(|front| front.due)
    }

    /// Takes the next id, due or not, and the attempts that it had.
    pub(crate) fn take(&mut self) -> Option<(u64, u8)> {
        let front = self.stretches.front_mut()?;
        let taken = (front.first, front.attempts);
        if front.first == front.last {
            self.stretches.pop_front();
        } else {
            front.first += 1;
        }
        Some(taken)
    }

    /// Ids beyond this one are not asked again.
    pub(crate) fn forget_beyond(&mut self, last: u64) {
        self.stretches.retain_mut(|stretch| {
            stretch.last = stretch.last.min(last);
            stretch.first <= last
        });
    }

    pub(crate) fn clear(&mut self) {
        self.stretches.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn stretches(&self) -> usize {
        self.stretches.len()
    }
}
