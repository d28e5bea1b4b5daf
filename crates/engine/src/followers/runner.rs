//! Hands a follower the changes that it has not seen, soon after they were stored, and lets it commit in
//! groups. A wake-up only makes it sooner: the place that the follower has reached says what it misses.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::{Call, Calls, ChangeSource, FollowError, Follower, FollowerHealth};

/// Changes that are handed over at once: their content is held in memory.
pub(crate) const BATCH_CHANGES_MAX: usize = 250;
/// Changes in one commit of a follower that catches up. A kill costs at most taking them in again.
const CATCH_UP_COMMIT_CHANGES: u64 = 10_000;
/// How long changes wait for company before they are handed over: looking into the store for each would
/// cost as much as a page.
const TAKE_IN_WAIT: Duration = Duration::from_millis(100);
/// How often the store is looked at without being woken.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Looks that find nothing before a follower is idle: what began to rest a moment ago may go on.
const LOOKS_BEFORE_IDLE: u32 = 5;

/// Longest that a follower takes at the end of the process, to take in what it misses and to tidy up: stopping
/// a service does not wait until an index is built. The rest is caught up at the next start.
const END_MS_MAX: u64 = 10_000;

/// How often a follower commits, and whether crawls wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How long the first change of a commit waits for company. A page is to be found within two seconds;
    /// the fewer commits, the less work they are.
    pub commit_wait: Duration,
    /// Changes in one commit beside a running crawl.
    pub commit_changes_max: u64,
    /// Whether a crawl goes no faster than the follower, as long as that moves: then pages can be handed
    /// over while they are still in memory. A follower that is behind from before, stands still or fails is
    /// never waited for.
    pub slows_crawls: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            commit_wait: Duration::from_millis(700),
            commit_changes_max: 500,
            slows_crawls: false,
        }
    }
}

/// Hands everything to a follower that it has not seen, behind the place up to which it has taken in. Asks
/// `goes_on` after every batch with the number of changes so far; what was taken in is committed at the end.
/// Gives the number of changes.
pub(crate) fn catch_up(
    follower: &mut dyn Follower,
    source: &dyn ChangeSource,
    mut taken_upto: u64,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<u64, FollowError> {
    let (mut seen, mut committed) = (0, 0);
    loop {
        let batch = source.next(taken_upto, BATCH_CHANGES_MAX)?;
        let changes = batch.len() as u64;
        if changes > 0 {
            taken_upto = batch.upto;
            follower.take_in(batch)?;
            seen += changes;
        }
        let is_over = changes == 0 || !goes_on(seen);
        let is_due = is_over || seen - committed >= CATCH_UP_COMMIT_CHANGES;
        if is_due && follower.place() < taken_upto {
            follower.commit()?;
            source.committed();
            committed = seen;
        }
        if is_over {
            return Ok(seen);
        }
    }
}

/// A follower at work.
pub(crate) struct Runner<'a> {
    pub(crate) follower: &'a mut dyn Follower,
    pub(crate) source: &'a dyn ChangeSource,
    pub(crate) health: &'a FollowerHealth,
}

impl Runner<'_> {
    /// Follows the store until there is a call; what was taken in is committed then. `None` if there can
    /// be no more calls: what is stored is taken in then, as far as that is soon done.
    pub(crate) fn follow(&mut self, calls: &Calls) -> Result<Option<Call>, FollowError> {
        let mut taken = Taken::from(self.follower.place());
        let mut idle_looks = 0;
        loop {
            let woken = calls.wait(taken.patience(self.follower.pace()));
            if let Some(call) = calls.take() {
                self.commit(&mut taken)?;
                return Ok(Some(call));
            }
            match woken {
                Ok(()) => {
                    idle_looks = 0;
                    std::thread::sleep(TAKE_IN_WAIT);
                    calls.hush();
                }
                Err(RecvTimeoutError::Timeout) => idle_looks += 1,
                Err(RecvTimeoutError::Disconnected) => {
                    self.end(&mut taken)?;
                    return Ok(None);
                }
            }
            self.take_in(&mut taken, calls)?;
            let is_idle = idle_looks > LOOKS_BEFORE_IDLE && taken.given.changes == 0;
            self.follower.tend(is_idle)?;
        }
    }

    /// Takes in what waits, unless there is a call, and commits whenever it is time to.
    fn take_in(&mut self, taken: &mut Taken, calls: &Calls) -> Result<(), FollowError> {
        loop {
            let behind = self.health.lag().load(Ordering::Acquire);
            let changes = self.take_in_batch(taken)?;
            taken.given.batch(changes, behind);
            if taken.given.changes > 0 {
                taken.since.get_or_insert_with(Instant::now);
            }
            // A follower may commit sooner than it has to.
            if taken.is_due(self.follower.pace()) || self.follower.place() >= taken.upto {
                self.commit(taken)?;
            }
            if changes < BATCH_CHANGES_MAX as u64 {
                self.health.caught_up();
                return Ok(());
            }
            if calls.interrupt() {
                return Ok(());
            }
        }
    }

    /// Hands over the next changes, and gives their number.
    fn take_in_batch(&mut self, taken: &mut Taken) -> Result<u64, FollowError> {
        let batch = self.source.next(taken.upto, BATCH_CHANGES_MAX)?;
        let changes = batch.len() as u64;
        if changes > 0 {
            taken.upto = batch.upto;
            self.follower.take_in(batch)?;
            self.health.moved();
        }
        Ok(changes)
    }

    /// Makes durable what was taken in.
    fn commit(&mut self, taken: &mut Taken) -> Result<(), FollowError> {
        if self.follower.place() < taken.upto {
            self.follower.commit()?;
        }
        if taken.given.changes > 0 {
            self.source.committed();
        }
        taken.given.committed(self.health.lag());
        taken.since = None;
        self.health.committed(self.follower.place());
        Ok(())
    }

    /// Takes in what is stored, for the last time, and no longer than it may take.
    fn end(&mut self, taken: &mut Taken) -> Result<(), FollowError> {
        let clock = self.health.clock();
        let due = clock.now().plus_ms(END_MS_MAX);
        let is_over = || due.ms_since(clock.now()) == 0;
        catch_up(self.follower, self.source, taken.upto, &mut |_| !is_over())?;
        self.health.committed(self.follower.place());
        let left_ms = due.ms_since(clock.now());
        if left_ms == 0 {
            let follower = self.follower.name();
            tracing::info!(follower, "it is behind, and catches up at the next start");
            return Ok(());
        }
        self.follower.finish(Duration::from_millis(left_ms))
    }
}

/// What a follower was handed since its last commit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given {
    pub(crate) changes: u64,
    /// How much of the lag they are.
    lag: u64,
}

impl Given {
    /// It was handed `changes` more, when `behind` were known to be missing.
    pub(crate) fn batch(&mut self, changes: u64, behind: u64) {
        self.changes += changes;
        // Whatever was counted before a look that saw everything was seen by it: a page that was
        // stored twice is counted twice and seen once.
        let is_all = changes < BATCH_CHANGES_MAX as u64;
        self.lag = if is_all { behind } else { self.lag + changes };
    }

    /// All of it is committed.
    pub(crate) fn committed(&mut self, lag: &AtomicU64) {
        let seen = std::mem::take(self).lag;
        let _ = lag.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
            Some(now.saturating_sub(seen))
        });
    }
}

/// What was taken in and is not yet committed.
struct Taken {
    /// The place of the last change.
    upto: u64,
    given: Given,
    /// When the first of them came.
    since: Option<Instant>,
}

impl Taken {
    /// Nothing, behind a place.
    fn from(place: u64) -> Self {
        Self { upto: place, given: Given::default(), since: None }
    }

    /// How long to wait for changes before the next look.
    fn patience(&self, pace: Pace) -> Duration {
        self.since.map_or(LOOK_EVERY, |since| pace.commit_wait.saturating_sub(since.elapsed()))
    }

    fn is_due(&self, pace: Pace) -> bool {
        let has_waited = self.since.is_some_and(|since| since.elapsed() >= pace.commit_wait);
        has_waited || self.given.changes >= pace.commit_changes_max
    }
}
