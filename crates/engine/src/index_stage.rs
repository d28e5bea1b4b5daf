//! Follows the store: makes every stored page searchable, soon after it was stored.
//!
//! The index is derived. How far it has read is kept inside its own commits, so a kill at any moment
//! loses nothing and doubles nothing: the next start goes on from there, and an index that is gone
//! or damaged is built anew. A wake-up only makes it sooner. A failed write (a full disk) costs the pages
//! since the last commit: the index is opened again after a pause and goes on from there.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, ScopedJoinHandle};
use std::time::{Duration, Instant};

use telusur_index::{IndexError, LinkLag, SearchIndex};
use telusur_ledger::{Store, StoreError, Stored};
use telusur_model::Clock;

use crate::error::RequestError;
use crate::index_health::{IndexHealth, index_retry_pause};
use crate::index_lease::{IndexOwner, Lease, Leases};
use crate::page_source::{PageSource, StoredSource};
use crate::supervision::{Part, Supervisor};

/// Pages that are taken in at once: their records are held in memory.
pub(crate) const BATCH_PAGES_MAX: usize = 250;
/// Pages in one commit of an index that catches up. A kill costs at most their indexing.
const CATCH_UP_COMMIT_PAGES: u64 = 10_000;
/// How long pages wait for company before they are taken in: looking into the store for each would
/// cost as much as a page.
const TAKE_IN_WAIT: Duration = Duration::from_millis(100);
/// How long the first page of a commit waits for company. A page is to be found within two seconds;
/// the fewer commits, the fewer segments there are to be merged.
const COMMIT_WAIT: Duration = Duration::from_millis(700);
/// Pages in one commit beside a running crawl: writing out so many takes a few tenths of a second.
const COMMIT_PAGES_MAX: u64 = 500;
/// How often the store is looked at without being woken.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Links are digested during a crawl when there are this many times as many pages as the last time:
/// all that work together is then at most four thirds of the last of it.
const LINKS_GROWTH: u64 = 4;
/// Nor before there are so many pages: until then nobody can tell good pages from others by links.
const LINKED_PAGES_MIN: u64 = 1000;
/// When a crawl is over, links are digested unless fewer than one page in so many is new.
const LINKS_NEW_SHARE: u64 = 20;
/// Looks that find nothing before the index is put in order: what began to rest a moment ago may go on.
const LOOKS_BEFORE_REST: u32 = 5;

/// How often an index that failed is looked after while it waits to be opened again.
const RETRY_LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why the index could not follow.
#[derive(Debug, thiserror::Error)]
pub enum IndexingError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A write of somebody else failed: the writer refuses everything from then on.
    #[error("{0}")]
    Elsewhere(String),
    /// A fault of ours. The index is derived, so that it is tried again from the last commit.
    #[error("the index stage panicked")]
    Panicked,
}

/// Brings an index up to its store.
pub struct Indexer {
    source: Box<dyn PageSource>,
    index: Arc<SearchIndex>,
    health: IndexHealth,
}

impl Indexer {
    /// An indexer between these two, which reads pages in this process.
    pub fn new(store: Arc<dyn Store>, index: Arc<SearchIndex>) -> Self {
        Self::from(Box::new(StoredSource::new(store)), index)
    }

    /// An indexer that gets its pages elsewhere.
    pub(crate) fn from(source: Box<dyn PageSource>, index: Arc<SearchIndex>) -> Self {
        Self { source, index, health: IndexHealth::default() }
    }

    /// The index that it brings up to date.
    pub fn index(&self) -> &Arc<SearchIndex> {
        &self.index
    }

    /// Makes everything searchable that was stored since the last commit of the index, and calls
    /// `progress` with the number of pages now and then. Gives the number of pages looked at.
    pub fn catch_up(&self, progress: &mut dyn FnMut(u64)) -> Result<u64, IndexingError> {
        let (mut looked_at, mut committed) = (0, 0);
        loop {
            let pages = self.take_in_batch()?;
            looked_at += pages;
            if (pages == 0 && looked_at > committed)
                || looked_at - committed >= CATCH_UP_COMMIT_PAGES
            {
                self.commit()?;
                committed = looked_at;
            }
            if pages == 0 {
                return Ok(looked_at);
            }
            progress(looked_at);
        }
    }

    /// Puts the index in order, in which it is searched sooner. Takes a while if many pages were taken in,
    /// and is not needed: if it fails, the index stays as it is.
    pub fn compact(&self) {
        if let Err(error) = self.index.compact() {
            tracing::warn!(%error, "the search index stays as it is");
        }
    }

    /// Takes in the next pages, without a commit, and gives their number.
    fn take_in_batch(&self) -> Result<u64, IndexingError> {
        if let Some(why) = self.health.take_failed_write() {
            return Err(IndexingError::Elsewhere(why));
        }
        let batch = self.source.next(self.index.taken_upto(), BATCH_PAGES_MAX)?;
        let pages = batch.pages() as u64;
        if pages > 0 {
            self.index.take_in(&batch.docs, &batch.left_out, batch.upto)?;
        } else if self.index.taken_upto() == self.index.applied_upto() {
            self.health.recovered();
        }
        Ok(pages)
    }

    /// Works out what links say, if enough pages came since the last time.
    pub fn digest_links(&self) -> Result<(), IndexingError> {
        let LinkLag { pages, pages_since } = self.index.link_lag();
        if pages_since > 0 && pages_since >= pages / LINKS_NEW_SHARE {
            self.index.digest_links()?;
            self.source.digested()?;
        }
        Ok(())
    }

    /// Puts the index in order while nothing comes in.
    fn compact_in_background(&self) {
        let compacted = self.index.compact_in_background().map_err(IndexingError::from);
        let told =
            compacted.and_then(|is_new| if is_new { self.source.committed() } else { Ok(()) });
        if let Err(error) = told {
            tracing::warn!(%error, "the search index stays as it is");
        }
    }

    /// Makes everything searchable that was taken in.
    fn commit(&self) -> Result<(), IndexingError> {
        self.index.commit()?;
        self.health.recovered();
        self.source.committed()
    }
}

/// A running index stage.
pub(crate) struct IndexStage {
    caller: Option<Arc<Caller>>,
    thread: Option<JoinHandle<Result<(), IndexingError>>>,
    health: IndexHealth,
    leases: Arc<Leases>,
}

impl IndexStage {
    /// Starts the thread that follows the store.
    pub(crate) fn start(
        indexer: Indexer,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        supervisor: &Supervisor,
    ) -> std::io::Result<Self> {
        let (caller, calls) = calls();
        let (health, leases) = (indexer.health.clone(), Arc::<Leases>::default());
        let leased = Arc::clone(&leases);
        let following = Following { indexer, store, calls, clock };
        let thread = supervisor.thread(Part::Service("index"), move || {
            let ended = following.run();
            leased.end();
            leased.returned();
            ended
        })?;
        Ok(Self { caller: Some(Arc::new(caller)), thread: Some(thread), health, leases })
    }

    /// Whether it follows, and if not, why.
    pub(crate) fn health(&self) -> IndexHealth {
        self.health.clone()
    }

    /// For those who lease the index or call it back.
    pub(crate) fn index_owner(&self) -> IndexOwner {
        let caller = self.caller.as_ref().map(Arc::downgrade).unwrap_or_default();
        IndexOwner { caller, leases: Arc::clone(&self.leases) }
    }

    /// Pages were stored.
    pub(crate) fn wake(&self, stored: &[Stored]) {
        self.health.lag().fetch_add(stored.len() as u64, Ordering::AcqRel);
        if let Some(caller) = &self.caller {
            caller.wake();
        }
        self.leases.tell(stored);
    }

    /// Pages that are stored and not yet searchable, as far as this process knows.
    pub(crate) fn lag(&self) -> u64 {
        self.health.lag().load(Ordering::Acquire)
    }

    /// Whether a crawl should wait for the index. Not for one that another process holds and does
    /// nothing with, nor for one that cannot be written: then nobody knows for how long.
    pub(crate) fn is_behind(&self, pages_max: u64) -> bool {
        self.lag() >= pages_max && !self.leases.is_stuck() && !self.health.is_failing()
    }

    /// Takes in what is stored and ends. Gives the failure, if there was one.
    pub(crate) fn finish(mut self) -> Option<String> {
        self.end();
        match self.thread.take()?.join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the index stage panicked".to_owned()),
        }
    }

    fn end(&mut self) {
        self.caller = None;
        self.leases.end();
    }
}

impl Drop for IndexStage {
    /// A lease must not outlive who leased it: its thread would hold the store open.
    fn drop(&mut self) {
        self.end();
    }
}

/// What interrupts whoever follows the store.
pub(crate) enum Call {
    /// Another process wants to follow it.
    Lease(Box<Lease>),
    /// The index is given back.
    Leave,
}

/// Wakes and calls whoever follows the store. Never waits for it.
#[derive(Clone)]
pub(crate) struct Caller {
    wake: SyncSender<()>,
    /// The call that is not yet heard.
    call: Arc<Mutex<Option<Call>>>,
}

/// The other end of a [`Caller`].
pub(crate) struct Calls {
    woken: Receiver<()>,
    call: Arc<Mutex<Option<Call>>>,
}

/// A line between one who calls and one who follows.
pub(crate) fn calls() -> (Caller, Calls) {
    let (wake, woken) = sync_channel(1);
    let call = Arc::<Mutex<Option<Call>>>::default();
    (Caller { wake, call: Arc::clone(&call) }, Calls { woken, call })
}

impl Caller {
    pub(crate) fn wake(&self) {
        // A wake-up that is already waiting is enough.
        let _ = self.wake.try_send(());
    }

    pub(crate) fn call(&self, call: Call) {
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
        self.wake();
    }
}

impl Calls {
    fn take(&self) -> Option<Call> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_called(&self) -> bool {
        self.call.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// What the thread of the stage has.
struct Following {
    indexer: Indexer,
    store: Arc<dyn Store>,
    calls: Calls,
    clock: Arc<dyn Clock>,
}

/// Why a pause is over.
enum Waited {
    /// It has passed.
    Due,
    /// Nobody calls any more: the stage ends.
    Ending,
}

impl Following {
    /// Follows the store until the stage ends. Whatever fails is tried again; only a failure of the
    /// last try, when the stage ends, is given back.
    fn run(&self) -> Result<(), IndexingError> {
        let mut is_last = false;
        loop {
            let followed = catch_unwind(AssertUnwindSafe(|| self.follow_and_lease()));
            let Err(mut error) = followed.unwrap_or(Err(IndexingError::Panicked)) else {
                return Ok(());
            };
            loop {
                if is_last {
                    return Err(error);
                }
                is_last = matches!(self.pause_after(&error), Waited::Ending);
                match self.reopen(&error) {
                    Ok(()) => break,
                    Err(again) => error = again.into(),
                }
            }
        }
    }

    fn follow_and_lease(&self) -> Result<(), IndexingError> {
        let Self { indexer, calls, .. } = self;
        // It has just been opened.
        indexer.health.take_failed_write();
        self.take_out_removed()?;
        let lag = indexer.health.lag();
        while let Some(call) = follow(indexer, calls, lag)? {
            match call {
                Call::Lease(lease) => {
                    lease.carry_out(&indexer.index, indexer.source.as_ref(), lag)?
                }
                Call::Leave => break,
            }
        }
        Ok(())
    }

    /// Takes out crawls that were deleted while the index could not be written. Numbers of crawls are not
    /// given twice.
    fn take_out_removed(&self) -> Result<(), IndexingError> {
        let index = &self.indexer.index;
        for crawl in index.crawls()? {
            if self.store.crawl(crawl)?.is_none() {
                tracing::info!(%crawl, "crawl was deleted: it is taken out of the search index");
                index.remove_crawl(crawl)?;
            }
        }
        Ok(())
    }

    fn reopen(&self, error: &IndexingError) -> Result<(), IndexError> {
        match error {
            IndexingError::Index(damage) if damage.needs_rebuild() => {
                tracing::warn!(error = %damage, "the search index is built anew");
                self.indexer.index.begin_anew()
            }
            IndexingError::Index(_)
            | IndexingError::Store(_)
            | IndexingError::Elsewhere(_)
            | IndexingError::Panicked => self.indexer.index.reopen(),
        }
    }

    /// Says what failed and waits until it is worth another try.
    fn pause_after(&self, error: &IndexingError) -> Waited {
        let failures = self.indexer.health.failed(error.to_string(), self.clock.wall());
        let pause = index_retry_pause(failures);
        let pause_s = pause.as_secs();
        tracing::error!(%error, failures, pause_s, "the search index cannot follow; trying again");
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        let due = self.clock.now().plus_ms(pause_ms);
        loop {
            let left = Duration::from_millis(due.ms_since(self.clock.now()));
            if left.is_zero() {
                return Waited::Due;
            }
            match self.calls.woken.recv_timeout(left.min(RETRY_LOOK_EVERY)) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Waited::Ending,
            }
            if let Some(Call::Lease(lease)) = self.calls.take() {
                let what = format!("the search index cannot be written: {error}");
                lease.refuse(&RequestError::WrongState(what));
            }
        }
    }
}

/// Follows the store until there is a call; what was taken in is committed then. `None` if there can
/// be no more calls: everything that is stored is taken in then.
pub(crate) fn follow(
    indexer: &Indexer,
    calls: &Calls,
    lag: &AtomicU64,
) -> Result<Option<Call>, IndexingError> {
    std::thread::scope(|scope| {
        let mut digestion = None;
        let mut uncommitted = Uncommitted::default();
        let mut idle_looks = 0;
        loop {
            let woken = calls.woken.recv_timeout(uncommitted.patience());
            if let Some(call) = calls.take() {
                if uncommitted.given.pages > 0 {
                    indexer.commit()?;
                    uncommitted.given.committed(lag);
                }
                return Ok(Some(call));
            }
            match woken {
                Ok(()) => {
                    idle_looks = 0;
                    std::thread::sleep(TAKE_IN_WAIT);
                    while calls.woken.try_recv().is_ok() {}
                }
                Err(RecvTimeoutError::Timeout) => idle_looks += 1,
                Err(RecvTimeoutError::Disconnected) => {
                    if indexer.catch_up(&mut |_| {})? == 0 && uncommitted.given.pages > 0 {
                        indexer.commit()?;
                    }
                    indexer.digest_links()?;
                    return Ok(None);
                }
            }
            uncommitted.take_in(indexer, calls, lag)?;
            if idle_looks > LOOKS_BEFORE_REST && uncommitted.given.pages == 0 {
                indexer.compact_in_background();
            }
            if digestion.as_ref().is_none_or(ScopedJoinHandle::is_finished) {
                digestion = has_outgrown(indexer.index.link_lag())
                    .then(|| scope.spawn(|| digest_beside(indexer)));
            }
        }
    })
}

/// What an indexer was given since its last commit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given {
    pub(crate) pages: u64,
    /// How much of the lag they are.
    lag: u64,
}

impl Given {
    /// It was given so many pages more, when so many were known to be missing.
    pub(crate) fn batch(&mut self, pages: u64, behind: u64) {
        self.pages += pages;
        // Whatever was counted before a look that saw everything was seen by it: a page that was
        // stored twice is counted twice and seen once.
        let is_all = pages < BATCH_PAGES_MAX as u64;
        self.lag = if is_all { behind } else { self.lag + pages };
    }

    /// All of it is searchable.
    pub(crate) fn committed(&mut self, lag: &AtomicU64) {
        let seen = std::mem::take(self).lag;
        let _ = lag.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
            Some(now.saturating_sub(seen))
        });
    }
}

/// What was taken in and is not yet searchable.
#[derive(Default)]
struct Uncommitted {
    given: Given,
    /// When the first of them came.
    since: Option<Instant>,
}

impl Uncommitted {
    /// How long to wait for pages before the next look.
    fn patience(&self) -> Duration {
        self.since.map_or(LOOK_EVERY, |since| COMMIT_WAIT.saturating_sub(since.elapsed()))
    }

    /// Takes in what waits, unless there is a call, and commits whenever it is time to.
    fn take_in(
        &mut self,
        indexer: &Indexer,
        calls: &Calls,
        lag: &AtomicU64,
    ) -> Result<(), IndexingError> {
        loop {
            let behind = lag.load(Ordering::Acquire);
            let pages = indexer.take_in_batch()?;
            self.given.batch(pages, behind);
            if self.given.pages > 0 {
                self.since.get_or_insert_with(Instant::now);
            }
            if self.is_due() {
                indexer.commit()?;
                self.given.pages = 0;
            }
            if self.given.pages == 0 {
                self.given.committed(lag);
                self.since = None;
            }
            if pages < BATCH_PAGES_MAX as u64 || calls.is_called() {
                return Ok(());
            }
        }
    }

    fn is_due(&self) -> bool {
        let has_waited = self.since.is_some_and(|since| since.elapsed() >= COMMIT_WAIT);
        has_waited || self.given.pages >= COMMIT_PAGES_MAX
    }
}

/// Whether ranks are so old that they are worked out anew while the crawl goes on.
fn has_outgrown(lag: LinkLag) -> bool {
    let before = lag.pages - lag.pages_since;
    lag.pages >= LINKED_PAGES_MIN && lag.pages >= before * LINKS_GROWTH
}

/// Works out what links say while pages go on coming in.
fn digest_beside(indexer: &Indexer) {
    let digested = indexer.index.digest_links().map_err(IndexingError::from);
    if let Err(error) = digested.and_then(|()| indexer.source.digested()) {
        // Searches go on with older ranks; a damaged log shows itself at the end of the crawl.
        tracing::warn!(%error, "link ranks cannot be worked out");
    }
}
