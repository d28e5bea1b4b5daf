//! The clocks of the operating system.

use std::time::{SystemTime, UNIX_EPOCH};

use telusur_model::{Clock, Moment, Timestamp};
use tokio::time::Instant;

/// The real clock. Its moments follow the runtime's timer, so that what was planned for a moment
/// happens at that moment.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// A clock whose moments count from now.
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        Moment(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn wall(&self) -> Timestamp {
        // A system clock before 1970 counts as 1970.
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX))
    }
}
