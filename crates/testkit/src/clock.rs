//! Clocks that a test can hold still: [`TokioClock`] follows tokio's time, paused or not,
//! [`ManualClock`] moves only when told. The clock of the running product is not here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use telusur_model::{Clock, Moment, Timestamp};
use tokio::runtime::Handle;
use tokio::time::Instant;

/// What the calendar shows when a test begins: 2026-01-01T00:00:00Z.
pub const WALL_AT_START: Timestamp = Timestamp(1_767_225_600_000);

/// Tokio's time, counted from when this clock was made. Under paused time it advances with it, read on
/// any thread.
#[derive(Clone, Debug)]
pub struct TokioClock {
    started: Instant,
    /// Threads that are not the runtime's own would read the real time.
    runtime: Option<Handle>,
    wall_at_start: Timestamp,
}

impl TokioClock {
    /// A clock whose calendar begins at [`WALL_AT_START`].
    pub fn new() -> Self {
        Self::starting_at(WALL_AT_START)
    }

    /// A clock whose calendar begins at this time.
    pub fn starting_at(wall: Timestamp) -> Self {
        Self { started: Instant::now(), runtime: Handle::try_current().ok(), wall_at_start: wall }
    }

    fn elapsed(&self) -> Duration {
        let _inside = self.runtime.as_ref().map(Handle::enter);
        self.started.elapsed()
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Moment {
        Moment(u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn wall(&self) -> Timestamp {
        self.wall_at_start.plus(self.elapsed())
    }
}

/// A clock that stands still until it is moved. The calendar can be moved on its own, as system
/// clocks do.
#[derive(Debug)]
pub struct ManualClock {
    now_ms: AtomicU64,
    wall_ms: AtomicU64,
}

impl ManualClock {
    /// A clock at moment zero, whose calendar shows [`WALL_AT_START`].
    pub fn new() -> Self {
        Self { now_ms: AtomicU64::new(0), wall_ms: AtomicU64::new(WALL_AT_START.0) }
    }

    /// Time passes: both clocks move on.
    pub fn advance_ms(&self, ms: u64) {
        self.now_ms.fetch_add(ms, Ordering::SeqCst);
        self.wall_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// The calendar jumps, forwards or backwards, and no time passes.
    pub fn set_wall(&self, wall: Timestamp) {
        self.wall_ms.store(wall.0, Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        Moment(self.now_ms.load(Ordering::SeqCst))
    }

    fn wall(&self) -> Timestamp {
        Timestamp(self.wall_ms.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn paused_time_moves_both_clocks() {
        let clock = TokioClock::new();
        assert_eq!((clock.now(), clock.wall()), (Moment(0), WALL_AT_START));
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(clock.now(), Moment(3_600_000));
        assert_eq!(clock.wall().to_string(), "2026-01-01T01:00:00Z");
    }

    #[test]
    fn a_manual_clock_moves_when_told() {
        let clock = ManualClock::new();
        clock.advance_ms(1500);
        assert_eq!(clock.now(), Moment(1500));
        clock.set_wall(Timestamp(0));
        assert_eq!((clock.now(), clock.wall()), (Moment(1500), Timestamp(0)));
    }
}
