//! Whether a follower keeps up with the store, and if not, since when and why. Written by its thread,
//! read where health is shown.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use telusur_model::{Clock, Moment, Timestamp};

/// The pause after the first failure. A full disk is not free again sooner.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause: once there is space again, a follower is not behind for longer than this.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The pause before a follower is opened again, after this number of failures in a row.
pub fn follower_retry_pause(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    PAUSE_MIN.saturating_mul(1 << doublings).min(PAUSE_MAX)
}

/// How far a follower is behind the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowerReport {
    /// Which follower, such as `index`.
    pub name: String,
    /// Changes, nearly all of them pages, that are stored and that it has not committed.
    pub lag: u64,
    /// Why it does not follow, if it fails.
    pub trouble: Option<FollowerTrouble>,
}

impl FollowerReport {
    /// Whether it is that of the search index.
    pub fn is_index(&self) -> bool {
        self.name == crate::index_follower::INDEX
    }

    /// What is behind when it is behind, in a sentence.
    pub fn subject(&self) -> &str {
        if self.is_index() { "indexing" } else { &self.name }
    }
}

/// A follower fails, and is tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowerTrouble {
    /// What went wrong last.
    pub why: String,
    /// Since when.
    pub since: Timestamp,
    /// How often it was tried.
    pub failures: u32,
}

/// The health of one follower, shared.
#[derive(Clone)]
pub struct FollowerHealth(Arc<State>);

struct State {
    name: &'static str,
    clock: Arc<dyn Clock>,
    lag: Arc<AtomicU64>,
    /// Whether it has seen everything at some moment since it was started.
    has_caught_up: AtomicBool,
    /// Guards what it has reached; held for moments only.
    reached: Mutex<Reached>,
    changed: Condvar,
}

struct Reached {
    /// The place of its last commit.
    place: u64,
    /// When it last took in or committed something.
    moved: Moment,
    trouble: Option<FollowerTrouble>,
    /// Its thread has ended.
    is_over: bool,
}

impl FollowerHealth {
    /// The health of a follower that is behind by `lag`.
    pub(crate) fn new(name: &'static str, clock: Arc<dyn Clock>, lag: Arc<AtomicU64>) -> Self {
        let reached = Reached { place: 0, moved: clock.now(), trouble: None, is_over: false };
        Self(Arc::new(State {
            name,
            clock,
            lag,
            has_caught_up: AtomicBool::new(false),
            reached: Mutex::new(reached),
            changed: Condvar::new(),
        }))
    }

    pub(crate) fn name(&self) -> &'static str {
        self.0.name
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.0.clock.as_ref()
    }

    /// Changes that are stored and not committed, as far as this process knows.
    pub(crate) fn lag(&self) -> &AtomicU64 {
        &self.0.lag
    }

    /// It has failed. Gives the number of failures since it last did not.
    pub(crate) fn failed(&self, why: String) -> u32 {
        let now = self.0.clock.wall();
        let mut reached = self.reached();
        let trouble = reached.trouble.as_ref();
        let (since, failures) = trouble.map_or((now, 0), |it| (it.since, it.failures));
        let failures = failures.saturating_add(1);
        reached.trouble = Some(FollowerTrouble { why, since, failures });
        self.0.changed.notify_all();
        failures
    }

    /// It took in something.
    pub(crate) fn moved(&self) {
        let now = self.0.clock.now();
        self.reached().moved = now;
    }

    /// Everything up to this place is committed.
    pub(crate) fn committed(&self, place: u64) {
        let now = self.0.clock.now();
        let mut reached = self.reached();
        reached.moved = now;
        reached.place = place;
        self.0.changed.notify_all();
        if let Some(FollowerTrouble { failures, .. }) = reached.trouble.take() {
            tracing::info!(follower = self.0.name, failures, "it follows the store again");
        }
    }

    /// It was made from nothing, up to this place.
    pub(crate) fn begin_anew(&self, place: u64) {
        let now = self.0.clock.now();
        let mut reached = self.reached();
        reached.moved = now;
        reached.place = place;
    }

    /// It has seen everything that was stored.
    pub(crate) fn caught_up(&self) {
        self.0.has_caught_up.store(true, Ordering::Release);
    }

    /// Whether it works off what came while it runs: not what it missed before, nor after a failure.
    pub(crate) fn is_up_to_speed(&self) -> bool {
        self.0.has_caught_up.load(Ordering::Acquire) && !self.is_failing()
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.reached().trouble.is_some()
    }

    /// Milliseconds since it last took in or committed something.
    pub(crate) fn still_ms(&self) -> u64 {
        let now = self.0.clock.now();
        now.ms_since(self.reached().moved)
    }

    /// Whether everything up to a place is committed.
    pub(crate) fn has_passed(&self, place: u64) -> bool {
        self.reached().place >= place
    }

    /// Its thread has ended.
    pub(crate) fn over(&self) {
        self.reached().is_over = true;
        self.0.changed.notify_all();
    }

    /// Waits until everything up to a place is committed; not for a follower that fails or has ended, and
    /// no longer than `wait_max`. True if it is.
    pub(crate) fn wait_for(&self, place: u64, wait_max: Duration) -> bool {
        let waits = |reached: &mut Reached| {
            reached.place < place && reached.trouble.is_none() && !reached.is_over
        };
        let waited = self.0.changed.wait_timeout_while(self.reached(), wait_max, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.place >= place
    }

    pub(crate) fn report(&self) -> FollowerReport {
        FollowerReport {
            name: self.0.name.to_owned(),
            lag: self.0.lag.load(Ordering::Acquire),
            trouble: self.reached().trouble.clone(),
        }
    }

    fn reached(&self) -> MutexGuard<'_, Reached> {
        self.0.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_have_an_end() {
        let pauses: Vec<u64> =
            (1..=9).map(|failures| follower_retry_pause(failures).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(follower_retry_pause(u32::MAX).as_secs(), 60);
    }
}
