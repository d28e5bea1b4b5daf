//! [`HoldingBack`]: why no further crawl should be started now, for those who decide about it.

use std::sync::atomic::{AtomicU8, Ordering};

use telusur_model::PauseReason;

/// Set by the crawl task, read by everybody.
#[derive(Debug, Default)]
pub(crate) struct HoldingBack(AtomicU8);

const SPACE: u8 = 1;
const NETWORK: u8 = 2;

impl HoldingBack {
    pub(crate) fn set(&self, why: Option<PauseReason>) {
        let code = match why {
            Some(PauseReason::DiskFull) => SPACE,
            Some(PauseReason::NoNetwork) => NETWORK,
            Some(
                PauseReason::Asked
                | PauseReason::Refused
                | PauseReason::EngineStopped
                | PauseReason::Import,
            )
            | None => 0,
        };
        self.0.store(code, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<PauseReason> {
        match self.0.load(Ordering::Relaxed) {
            SPACE => Some(PauseReason::DiskFull),
            NETWORK => Some(PauseReason::NoNetwork),
            _ => None,
        }
    }
}
