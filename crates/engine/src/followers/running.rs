//! Every follower on a thread of its own: started, woken, tried again after a failure, ended.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use telusur_ledger::{Store, Stored};
use telusur_model::Clock;

use super::{
    Call, Caller, Calls, ChangeSource, FollowError, Follower, FollowerHealth, FollowerReport,
    Runner, calls, follower_retry_pause,
};
use crate::error::RequestError;
use crate::index_lease::{IndexOwner, Leases};
use crate::supervision::{Part, Supervisor};

/// How often a follower that failed is looked after while it waits to be opened again.
const RETRY_LOOK_EVERY: Duration = Duration::from_millis(100);
/// A follower that has taken in nothing for so long stands still: a batch takes a second at most, a commit
/// seldom more.
const STILL_MS_MAX: u64 = 10_000;

/// A follower, and where its changes come from.
pub(crate) struct FollowerParts {
    pub(crate) follower: Box<dyn Follower>,
    pub(crate) source: Arc<dyn ChangeSource>,
}

/// The followers of an engine.
#[derive(Default)]
pub(crate) struct Followers(Vec<RunningFollower>);

/// A follower on its thread.
struct RunningFollower {
    caller: Option<Arc<Caller>>,
    thread: Option<JoinHandle<Result<(), FollowError>>>,
    health: FollowerHealth,
    leases: Arc<Leases>,
    slows_crawls: bool,
}

/// Asks followers how they are, and wakes them; can be cloned and handed to others.
#[derive(Clone, Default)]
pub(crate) struct FollowersHandle(Vec<FollowerHandle>);

#[derive(Clone)]
struct FollowerHandle {
    caller: Weak<Caller>,
    health: FollowerHealth,
    leases: Arc<Leases>,
}

impl Followers {
    /// Starts the threads that follow a store.
    pub(crate) fn start(
        followers: Vec<FollowerParts>,
        store: &Arc<dyn Store>,
        clock: &Arc<dyn Clock>,
        supervisor: &Supervisor,
    ) -> std::io::Result<Self> {
        let start = |parts| RunningFollower::start(parts, store, clock, supervisor);
        Ok(Self(followers.into_iter().map(start).collect::<std::io::Result<_>>()?))
    }

    /// For those who ask.
    pub(crate) fn handle(&self) -> FollowersHandle {
        FollowersHandle(self.0.iter().map(RunningFollower::handle).collect())
    }

    /// Pages were stored.
    pub(crate) fn wake(&self, stored: &[Stored]) {
        for follower in &self.0 {
            follower.health.lag().fetch_add(stored.len() as u64, Ordering::AcqRel);
            if let Some(caller) = &follower.caller {
                caller.wake();
            }
            follower.leases.tell(stored);
        }
    }

    /// How far each is behind.
    pub(crate) fn lags(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|it| (it.health.name(), it.health.lag().load(Ordering::Acquire)))
    }

    /// Whether a crawl should wait for a follower that reads pages while they are in memory. Not for one that
    /// another process holds and does nothing with, nor for one that fails, is behind from before or stands
    /// still: then nobody knows for how long.
    pub(crate) fn slow_crawls(&self, lag_max: u64) -> bool {
        self.0.iter().filter(|it| it.slows_crawls).any(|it| {
            it.health.lag().load(Ordering::Acquire) >= lag_max
                && !it.leases.is_stuck()
                && it.health.is_up_to_speed()
                && it.health.still_ms() < STILL_MS_MAX
        })
    }

    /// Hands over what is stored, as far as that is soon done, and ends. Gives the names and failures of those
    /// that failed.
    pub(crate) fn finish(mut self) -> Vec<(&'static str, String)> {
        // All of them first: they end side by side.
        self.0.iter_mut().for_each(RunningFollower::end);
        let ended = self.0.into_iter().map(|it| (it.health.name(), it.join()));
        ended.filter_map(|(name, failure)| Some((name, failure?))).collect()
    }
}

#[cfg(test)]
impl Followers {
    /// One follower of which there is only the health.
    pub(super) fn without_thread(health: FollowerHealth, slows_crawls: bool) -> Self {
        let leases = Arc::default();
        Self(vec![RunningFollower { caller: None, thread: None, health, leases, slows_crawls }])
    }
}

impl FollowersHandle {
    /// How far each is behind, and why.
    pub(crate) fn reports(&self) -> Vec<FollowerReport> {
        self.0.iter().map(|it| it.health.report()).collect()
    }

    /// For those who lease the index or call it back.
    pub(crate) fn owner_of(&self, name: &str) -> Option<IndexOwner> {
        let follower = self.0.iter().find(|it| it.health.name() == name)?;
        let (caller, leases) = (Weak::clone(&follower.caller), Arc::clone(&follower.leases));
        Some(IndexOwner { caller, leases })
    }

    /// The store has changed in another way than by a crawl that stores pages.
    pub(crate) fn look(&self) {
        for follower in &self.0 {
            if let Some(caller) = follower.caller.upgrade() {
                caller.wake();
            }
            follower.leases.tell_look();
        }
    }

    /// Waits until the named followers have committed everything up to a place, as long as they do not fail
    /// and for `wait_max` each. True if they have.
    pub(crate) fn have_reached(&self, names: &[&str], place: u64, wait_max: Duration) -> bool {
        let mut named = self.0.iter().filter(|it| names.contains(&it.health.name()));
        named.all(|it| it.health.wait_for(place, wait_max))
    }

    /// Has a follower built from nothing. Waits until that has begun.
    pub(crate) fn rebuild(&self, name: &str) -> Result<(), RequestError> {
        let follower = self.0.iter().find(|it| it.health.name() == name);
        let caller = follower.and_then(|it| it.caller.upgrade()).ok_or(RequestError::Stopped)?;
        let (answer, begun) = sync_channel(1);
        caller.call(Call::Rebuild(answer));
        drop(caller);
        begun.recv().map_err(|_| RequestError::Stopped)?
    }

    /// Whether all of them have committed everything up to a place.
    pub(crate) fn have_passed(&self, place: u64) -> bool {
        self.0.iter().all(|it| it.health.has_passed(place))
    }

    /// Waits until all that keep up have committed everything up to a place, or for `wait_max`.
    pub(crate) fn wait_for(&self, place: u64, wait_max: Duration) {
        for follower in self.0.iter().filter(|it| it.health.is_up_to_speed()) {
            if !follower.health.wait_for(place, wait_max) {
                let follower = follower.health.name();
                tracing::warn!(follower, "it is behind, and follows when it can");
            }
        }
    }
}

impl RunningFollower {
    fn start(
        parts: FollowerParts,
        store: &Arc<dyn Store>,
        clock: &Arc<dyn Clock>,
        supervisor: &Supervisor,
    ) -> std::io::Result<Self> {
        let FollowerParts { follower, source } = parts;
        let (caller, calls) = calls();
        let lag = Arc::<AtomicU64>::default();
        let health = FollowerHealth::new(follower.name(), Arc::clone(clock), lag);
        let leases = Arc::<Leases>::default();
        let slows_crawls = follower.pace().slows_crawls;
        // What was stored until now is counted by its own thread, what comes later by those who wake it.
        let stored_upto = store.last_change().map_err(std::io::Error::other)?;
        let mut following =
            Following { follower, source, store: Arc::clone(store), calls, health: health.clone() };
        let leased = Arc::clone(&leases);
        let thread = supervisor.thread(Part::Service(following.follower.name()), move || {
            following.count_missing(following.follower.place(), stored_upto);
            let ended = following.run();
            leased.end();
            leased.returned();
            following.health.over();
            ended
        })?;
        // The first look needs no word from anybody.
        caller.wake();
        let caller = Some(Arc::new(caller));
        Ok(Self { caller, thread: Some(thread), health, leases, slows_crawls })
    }

    fn handle(&self) -> FollowerHandle {
        FollowerHandle {
            caller: self.caller.as_ref().map(Arc::downgrade).unwrap_or_default(),
            health: self.health.clone(),
            leases: Arc::clone(&self.leases),
        }
    }

    fn end(&mut self) {
        self.caller = None;
        self.leases.end();
    }

    /// Waits for its end. Gives the failure, if there was one.
    fn join(mut self) -> Option<String> {
        match self.thread.take()?.join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(FollowError::Panicked.to_string()),
        }
    }
}

impl Drop for RunningFollower {
    /// A lease must not outlive who leased it: its thread would hold the store open.
    fn drop(&mut self) {
        self.end();
    }
}

/// What the thread of a follower has.
struct Following {
    follower: Box<dyn Follower>,
    source: Arc<dyn ChangeSource>,
    store: Arc<dyn Store>,
    calls: Calls,
    health: FollowerHealth,
}

/// Why a pause is over.
enum Waited {
    /// It has passed.
    Due,
    /// Nobody calls any more: the follower ends.
    Ending,
}

impl Following {
    /// Follows the store until it ends. Whatever fails is tried again; only a failure of the last try, at
    /// the end, is given back.
    fn run(&mut self) -> Result<(), FollowError> {
        let mut is_last = false;
        loop {
            let followed = catch_unwind(AssertUnwindSafe(|| self.follow_and_lend()));
            let Err(mut error) = followed.unwrap_or(Err(FollowError::Panicked)) else {
                return Ok(());
            };
            loop {
                if is_last {
                    return Err(error);
                }
                is_last = matches!(self.pause_after(&error), Waited::Ending);
                match self.reopen(&error) {
                    Ok(()) => break,
                    Err(again) => error = again,
                }
            }
        }
    }

    fn follow_and_lend(&mut self) -> Result<(), FollowError> {
        let Self { follower, source, calls, health, store } = self;
        let (follower, source) = (follower.as_mut(), source.as_ref());
        while let Some(call) = (Runner { follower, source, health }).follow(calls)? {
            match call {
                Call::Lease(lease) => follower.lend(*lease, source, health)?,
                Call::Leave => break,
                Call::Rebuild(answer) => {
                    let before = follower.place();
                    let rebuilt = follower.rebuild();
                    health.begin_anew(follower.place());
                    count_missing(store.as_ref(), health, follower.place(), before);
                    let _ = answer.send(rebuilt.map_err(RequestError::from));
                }
            }
        }
        Ok(())
    }

    fn reopen(&mut self, error: &FollowError) -> Result<(), FollowError> {
        let before = self.follower.place();
        let reopened = catch_unwind(AssertUnwindSafe(|| self.follower.reopen(error)));
        reopened.unwrap_or(Err(FollowError::Panicked))?;
        // One that had to begin from nothing misses what it had.
        self.count_missing(self.follower.place(), before);
        Ok(())
    }

    /// Counts changes that nobody wakes it for.
    fn count_missing(&self, after: u64, upto: u64) {
        count_missing(self.store.as_ref(), &self.health, after, upto);
    }

    /// Says what failed and waits until it is worth another try.
    fn pause_after(&self, error: &FollowError) -> Waited {
        let failures = self.health.failed(error.to_string());
        let pause = follower_retry_pause(failures);
        let (follower, pause_s) = (self.health.name(), pause.as_secs());
        tracing::error!(follower, %error, failures, pause_s, "it cannot follow the store; trying again");
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        let clock = self.health.clock();
        let due = clock.now().plus_ms(pause_ms);
        loop {
            let left = Duration::from_millis(due.ms_since(clock.now()));
            match self.calls.wait(left.min(RETRY_LOOK_EVERY)) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Waited::Ending,
            }
            let refusal =
                || RequestError::WrongState(format!("the search index cannot be written: {error}"));
            match self.calls.take() {
                Some(Call::Lease(lease)) => lease.refuse(&refusal()),
                Some(Call::Rebuild(answer)) => _ = answer.send(Err(refusal())),
                Some(Call::Leave) | None => {}
            }
            if left.is_zero() {
                return Waited::Due;
            }
        }
    }
}

/// Counts changes that a follower is not woken for.
fn count_missing(store: &dyn Store, health: &FollowerHealth, after: u64, upto: u64) {
    match store.changes_count(after, upto) {
        Ok(missing) => _ = health.lag().fetch_add(missing, Ordering::AcqRel),
        // It only says how far it is behind; the first look fails as well, and is told.
        Err(error) => tracing::debug!(%error, "what a follower misses cannot be counted"),
    }
}
