//! Whether the index follows the store, and if not, since when and why. Written by the index stage, read
//! by whoever shows it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use telusur_model::Timestamp;

/// The pause after the first failed write. A full disk is not free again sooner.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause: once there is space again, indexing is not behind for longer than this.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// How long to wait after so many failures in a row before the index is opened again.
pub fn index_retry_pause(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    PAUSE_MIN.saturating_mul(1 << doublings).min(PAUSE_MAX)
}

/// How far the index of a process is behind its store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexReport {
    /// Pages that are stored and cannot be found yet.
    pub lag: u64,
    /// Why it does not follow, if it fails.
    pub trouble: Option<IndexTrouble>,
}

/// Indexing fails, and is tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexTrouble {
    /// What went wrong last.
    pub why: String,
    /// Since when.
    pub since: Timestamp,
    /// How often it was tried.
    pub failures: u32,
}

/// The health of one index, shared.
#[derive(Clone, Default)]
pub(crate) struct IndexHealth(Arc<State>);

#[derive(Default)]
struct State {
    lag: AtomicU64,
    /// Held for moments only.
    trouble: Mutex<Option<IndexTrouble>>,
    /// A write of somebody else that failed, which the index stage has not heard of. Held for moments only.
    failed_write: Mutex<Option<String>>,
}

impl IndexHealth {
    /// Pages that are stored and cannot be found yet.
    pub(crate) fn lag(&self) -> &AtomicU64 {
        &self.0.lag
    }

    /// A write failed. Gives the number of failures since the last one that did not.
    pub(crate) fn failed(&self, why: String, now: Timestamp) -> u32 {
        let mut trouble = self.trouble();
        let (since, failures) = trouble.as_ref().map_or((now, 0), |it| (it.since, it.failures));
        let failures = failures.saturating_add(1);
        *trouble = Some(IndexTrouble { why, since, failures });
        failures
    }

    /// A write failed that was not the index stage's own, as that of one who deletes a crawl.
    pub(crate) fn failed_elsewhere(&self, why: String) {
        *self.failed_write() = Some(why);
    }

    /// The failed write of somebody else, once.
    pub(crate) fn take_failed_write(&self) -> Option<String> {
        self.failed_write().take()
    }

    fn failed_write(&self) -> MutexGuard<'_, Option<String>> {
        self.0.failed_write.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that was taken in can be found.
    pub(crate) fn recovered(&self) {
        if let Some(IndexTrouble { failures, .. }) = self.trouble().take() {
            tracing::info!(failures, "the search index follows again");
        }
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.trouble().is_some()
    }

    pub(crate) fn report(&self) -> IndexReport {
        IndexReport { lag: self.0.lag.load(Ordering::Acquire), trouble: self.trouble().clone() }
    }

    fn trouble(&self) -> MutexGuard<'_, Option<IndexTrouble>> {
        self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_have_an_end() {
        let pauses: Vec<u64> =
            (1..=9).map(|failures| index_retry_pause(failures).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(index_retry_pause(u32::MAX).as_secs(), 60);
    }
}
