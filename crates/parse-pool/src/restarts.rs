//! [`Restarts`]: how soon a child that a page has killed is replaced. A page that kills now and then
//! costs nothing; pages that kill all the time must not make us start processes all the time.

use std::collections::VecDeque;
use std::time::Duration;

/// The time in which deaths are counted.
const WINDOW: Duration = Duration::from_secs(60);
/// Deaths within that time that are replaced at once: each page that breaks the parser costs two.
const FREE: usize = 8;
/// Longest pause before a start.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The deaths of the last minute. Told the time, never reads a clock.
#[derive(Debug, Default)]
pub(crate) struct Restarts {
    /// When children died, the oldest first. Times are since the pool began.
    deaths: VecDeque<Duration>,
}

impl Restarts {
    /// A page has killed a child.
    pub(crate) fn died(&mut self, now: Duration) {
        self.forget_old(now);
        self.deaths.push_back(now);
    }

    /// How long to wait before the next start: `first` after one death too many, and twice as long
    /// for each further one.
    pub(crate) fn pause(&mut self, now: Duration, first: Duration) -> Duration {
        self.forget_old(now);
        match self.deaths.len().saturating_sub(FREE) {
            0 => Duration::ZERO,
            beyond => first.saturating_mul(1 << (beyond - 1).min(16)).min(PAUSE_MAX),
        }
    }

    fn forget_old(&mut self, now: Duration) {
        while self.deaths.front().is_some_and(|&at| now.saturating_sub(at) >= WINDOW) {
            self.deaths.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(50);

    #[test]
    fn a_few_deaths_are_made_good_at_once() {
        let mut restarts = Restarts::default();
        for at in 0..8 {
            assert_eq!(restarts.pause(Duration::from_secs(at), FIRST), Duration::ZERO);
            restarts.died(Duration::from_secs(at));
        }
        assert_eq!(restarts.pause(Duration::from_secs(8), FIRST), Duration::ZERO);
    }

    #[test]
    fn a_child_that_dies_at_once_each_time_is_started_ever_more_rarely() {
        let mut restarts = Restarts::default();
        let (mut now, mut starts) = (Duration::ZERO, Vec::new());
        while now < Duration::from_secs(600) {
            now += restarts.pause(now, FIRST);
            starts.push(now);
            restarts.died(now);
        }
        for minute in 0..10 {
            let within = |at: &&Duration| at.as_secs() / 60 == minute;
            let count = starts.iter().filter(within).count();
            assert!((10..=30).contains(&count), "{count} starts in minute {minute}");
        }
        // A quiet minute, and all is forgiven.
        assert_eq!(restarts.pause(now + WINDOW, FIRST), Duration::ZERO);
    }
}
