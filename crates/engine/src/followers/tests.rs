//! How followers end, and whom crawls wait for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use telusur_ledger::in_memory::InMemory;
use telusur_ledger::{Ledger, Store};

use crate::supervision::Supervisor;
use telusur_model::{Clock, CrawlNo, Moment, Timestamp};

use super::*;

/// A clock that stands still until it is moved.
#[derive(Default)]
struct ByHand(AtomicU64);

impl Clock for ByHand {
    fn now(&self) -> Moment {
        Moment(self.0.load(Ordering::Acquire))
    }

    fn wall(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Acquire))
    }
}

/// Changes up to a place; each batch takes a second.
struct SlowSource {
    upto: u64,
    clock: Arc<ByHand>,
}

impl ChangeSource for SlowSource {
    fn next(&self, after: u64, max: usize) -> Result<ChangeBatch, FollowError> {
        self.clock.0.fetch_add(1_000, Ordering::AcqRel);
        let last = self.upto.min(after + max as u64);
        let removed = |seq| FollowedChange::Removed { seq, crawl: CrawlNo(1) };
        Ok(ChangeBatch { changes: (after + 1..=last).map(removed).collect(), upto: last })
    }
}

/// Only counts.
struct Counter {
    taken: u64,
    /// What is committed.
    place: Arc<Mutex<u64>>,
}

impl Follower for Counter {
    fn name(&self) -> &'static str {
        "counter"
    }

    fn place(&self) -> u64 {
        *self.place.lock().unwrap()
    }

    fn take_in(&mut self, batch: ChangeBatch) -> Result<(), FollowError> {
        assert_eq!(batch.changes[0].seq(), self.taken + 1);
        self.taken = batch.upto;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), FollowError> {
        *self.place.lock().unwrap() = self.taken;
        Ok(())
    }

    fn reopen(&mut self, _why: &FollowError) -> Result<(), FollowError> {
        self.taken = self.place();
        Ok(())
    }
}

struct Started {
    followers: Followers,
    clock: Arc<ByHand>,
    place: Arc<Mutex<u64>>,
}

fn start(upto: u64) -> Started {
    let clock = Arc::<ByHand>::default();
    let place = Arc::<Mutex<u64>>::default();
    let source = Arc::new(SlowSource { upto, clock: Arc::clone(&clock) });
    let follower = Box::new(Counter { taken: 0, place: Arc::clone(&place) });
    let store: Arc<dyn Store> = Arc::new(Ledger::open(InMemory::default()).unwrap());
    let its_clock = Arc::clone(&clock) as Arc<dyn Clock>;
    let parts = vec![FollowerParts { follower, source }];
    let followers = Followers::start(parts, &store, &its_clock, &Supervisor::default()).unwrap();
    Started { followers, clock, place }
}

/// A service that was ended while it built its index again once worked until it was done.
#[test]
fn a_follower_that_is_far_behind_ends_soon() {
    let an_hour_behind = 3600 * BATCH_CHANGES_MAX as u64;
    let started = start(an_hour_behind);
    assert_eq!(started.followers.finish(), []);
    let place = *started.place.lock().unwrap();
    let took_s = started.clock.0.load(Ordering::Acquire) / 1_000;
    assert!(place < an_hour_behind && took_s < 60, "it took {took_s} s to its end");
    assert_eq!(place % BATCH_CHANGES_MAX as u64, 0, "what was taken in is committed");
    assert!(place > 0);
}

#[test]
fn a_follower_that_is_nearly_done_is_done_at_its_end() {
    let upto = 3 * BATCH_CHANGES_MAX as u64 + 7;
    let started = start(upto);
    assert_eq!(started.followers.finish(), []);
    assert_eq!(*started.place.lock().unwrap(), upto);
}

#[test]
fn crawls_wait_for_a_follower_that_moves_and_for_no_other() {
    const LAG_MAX: u64 = 10;
    let clock = Arc::<ByHand>::default();
    let lag = Arc::new(AtomicU64::new(LAG_MAX));
    let its_clock = Arc::clone(&clock) as Arc<dyn Clock>;
    let health = FollowerHealth::new("counter", its_clock, Arc::clone(&lag));
    let followers = Followers::without_thread(health.clone(), true);
    assert!(!followers.slow_crawls(LAG_MAX), "it is behind from before");
    health.caught_up();
    assert!(followers.slow_crawls(LAG_MAX));
    assert!(!followers.slow_crawls(LAG_MAX + 1), "it is not so far behind");
    health.failed("the disk is full".into());
    assert!(!followers.slow_crawls(LAG_MAX), "it fails");
    health.committed(7);
    assert!(followers.slow_crawls(LAG_MAX), "it follows again");
    clock.0.fetch_add(60_000, Ordering::AcqRel);
    assert!(!followers.slow_crawls(LAG_MAX), "it stands still");
    health.moved();
    assert!(followers.slow_crawls(LAG_MAX));
    let others = Followers::without_thread(health, false);
    assert!(!others.slow_crawls(LAG_MAX), "nobody waits for others");
}
