//! Removed crawls are deleted beside everything else: what a killed `rm` left, and what a follower had not
//! let go of when the reply could not wait any longer. A start never waits for that.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use telusur_index::SearchIndex;
use telusur_ledger::{Removal, Store, StoreError};
use telusur_model::CrawlNo;

use crate::followers::FollowersHandle;
use crate::supervision::{Part, Supervisor};

/// How often followers are looked at while a removal waits for them.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The pause after a failure: what cannot be deleted now can hardly be deleted in a second.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);
/// Pieces that are deleted when a directory is opened for a moment: less than a second. What is left is
/// deleted by those that come next, or beside a crawl or a service.
const PIECES_AT_OPENING: usize = 10;

/// Deletes a bounded part of what removed crawls left in a store that was just opened. That it fails is no
/// reason not to open the store.
pub fn delete_removed_for_a_moment(store: &dyn Store) {
    let mut pieces = PIECES_AT_OPENING;
    if let Err(error) = delete_removed(store, &mut || {
        pieces = pieces.saturating_sub(1);
        pieces > 0
    }) {
        say_failed(&error);
    }
}

/// Deletes what is left of removed crawls, piece by piece, while `goes_on` says so.
fn delete_removed(store: &dyn Store, goes_on: &mut dyn FnMut() -> bool) -> Result<(), StoreError> {
    let mut failure = Ok(());
    for removal in store.removals()?.iter().filter(|removal| !removal.is_deleted) {
        // One that cannot be deleted keeps no other from it.
        match delete_pieces(store, removal.crawl, goes_on) {
            Ok(true) => {}
            Ok(false) => return failure,
            Err(error) => failure = Err(error),
        }
    }
    failure
}

/// Deletes what is left of one removed crawl.
pub(crate) fn delete_removed_crawl(store: &dyn Store, crawl: CrawlNo) {
    if let Err(error) = delete_pieces(store, crawl, &mut || true) {
        say_failed(&error);
    }
}

/// False if it was told to end.
fn delete_pieces(
    store: &dyn Store,
    crawl: CrawlNo,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<bool, StoreError> {
    while !store.delete_removed(crawl)? {
        if !goes_on() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Deletes all that is left of removed crawls and takes them out of an index that nobody else has: nothing
/// follows the store in this process.
pub(crate) fn finish_removals(store: &dyn Store, index: Option<&SearchIndex>) {
    if let Err(error) = delete_removed(store, &mut || true) {
        say_failed(&error);
    }
    let Some(index) = index else { return };
    let finish = |removal: Removal| {
        // It is not shown, and taken out when the index is next brought up to date.
        if let Err(error) = index.remove_crawl(removal.crawl) {
            tracing::warn!(crawl = %removal.crawl, %error, "the index keeps a removed crawl for now");
            return Ok(());
        }
        store.end_removal(removal.crawl)
    };
    let finished = store.removals().and_then(|removals| {
        removals.into_iter().filter(|removal| removal.is_deleted).try_for_each(finish)
    });
    if let Err(error) = finished {
        say_failed(&error);
    }
}

/// Ends the removals that every follower has heard of, and of which nothing else is left. That it fails, on a
/// full disk for one, is nobody's trouble: they are not shown anyway.
pub(crate) fn end_followed_removals(store: &dyn Store, is_followed: impl Fn(&Removal) -> bool) {
    if let Err(error) = end_removals(store, is_followed) {
        say_failed(&error);
    }
}

fn end_removals(
    store: &dyn Store,
    is_followed: impl Fn(&Removal) -> bool,
) -> Result<(), StoreError> {
    let removals = store.removals()?;
    let mut over = removals.iter().filter(|removal| removal.is_deleted && is_followed(removal));
    over.try_for_each(|removal| store.end_removal(removal.crawl))
}

fn say_failed(error: &StoreError) {
    tracing::warn!(%error, "what is left of a removed crawl is deleted later");
}

/// A thread that works off removals.
pub(crate) struct RemovalThread {
    calls: RemovalCalls,
    thread: Option<JoinHandle<()>>,
}

/// Wakes the thread; can be cloned and handed to others.
#[derive(Clone, Default)]
pub(crate) struct RemovalCalls(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Guards what the thread is told; held for moments only.
    told: Mutex<Told>,
    changed: Condvar,
}

#[derive(Default)]
struct Told {
    is_woken: bool,
    is_over: bool,
}

impl RemovalThread {
    pub(crate) fn start(
        store: Arc<dyn Store>,
        followers: FollowersHandle,
        supervisor: &Supervisor,
    ) -> std::io::Result<Self> {
        let calls = RemovalCalls::default();
        let told = calls.clone();
        let thread = supervisor.thread(Part::Service("removals"), move || {
            while told.wait(work_off(store.as_ref(), &followers, &told)) {}
        })?;
        Ok(Self { calls, thread: Some(thread) })
    }

    pub(crate) fn calls(&self) -> RemovalCalls {
        self.calls.clone()
    }

    /// Ends it, after the piece that is being deleted. Blocks.
    pub(crate) fn end(mut self) {
        self.calls.end();
        if let Some(thread) = self.thread.take() {
            // A panic is the supervisor's to tell.
            let _ = thread.join();
        }
    }
}

impl Drop for RemovalThread {
    /// It must not hold the store open when the engine is gone.
    fn drop(&mut self) {
        self.calls.end();
    }
}

impl RemovalCalls {
    /// There is a new removal, or a follower has come further.
    pub(crate) fn wake(&self) {
        self.told().is_woken = true;
        self.0.changed.notify_all();
    }

    fn end(&self) {
        self.told().is_over = true;
        self.0.changed.notify_all();
    }

    fn is_over(&self) -> bool {
        self.told().is_over
    }

    /// Waits for a call, or for so long. False if it is over.
    fn wait(&self, wait_max: Option<Duration>) -> bool {
        let is_quiet = |told: &mut Told| !told.is_woken && !told.is_over;
        let mut told = match wait_max {
            None => self.0.changed.wait_while(self.told(), is_quiet),
            Some(wait_max) => self
                .0
                .changed
                .wait_timeout_while(self.told(), wait_max, is_quiet)
                .map(|(told, _)| told)
                .map_err(|poisoned| PoisonError::new(poisoned.into_inner().0)),
        }
        .unwrap_or_else(PoisonError::into_inner);
        told.is_woken = false;
        !told.is_over
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does what can be done now. Gives the time until the next look; `None` if there is nothing left to do.
fn work_off(
    store: &dyn Store,
    followers: &FollowersHandle,
    calls: &RemovalCalls,
) -> Option<Duration> {
    let deleted = delete_removed(store, &mut || !calls.is_over());
    let ended = end_removals(store, |removal| followers.have_passed(removal.place));
    let left = deleted.and(ended).and_then(|()| store.removals());
    match left {
        Ok(left) if left.is_empty() => None,
        Ok(_) => Some(LOOK_EVERY),
        Err(error) => {
            say_failed(&error);
            Some(PAUSE_AFTER_FAILURE)
        }
    }
}
