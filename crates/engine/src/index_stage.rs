//! Follows the store: makes every stored page searchable, soon after it was stored.
//!
//! The index is derived. How far it has read is kept inside its own commits, so a kill at any moment
//! loses nothing and doubles nothing: the next start goes on from there, and an index that is gone
//! or damaged is built anew. A wake-up only makes it sooner.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{JoinHandle, ScopedJoinHandle};
use std::time::{Duration, Instant};

use telusur_index::{IndexError, LinkLag, SearchIndex};
use telusur_store::{Store, StoreError};

use crate::page_source::{PageSource, StoredSource};

/// Pages that are taken in at once: their records are held in memory.
const BATCH_PAGES_MAX: usize = 250;
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
/// all that work together is then at most twice the last of it.
const LINKS_GROWTH: u64 = 2;
/// Nor before there are so many pages: until then nobody can tell good pages from others by links.
const LINKED_PAGES_MIN: u64 = 1000;
/// When a crawl is over, links are digested unless fewer than one page in so many is new.
const LINKS_NEW_SHARE: u64 = 20;

/// Why the index could not follow.
#[derive(Debug, thiserror::Error)]
pub enum IndexingError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// Brings an index up to its store.
pub struct Indexer {
    source: Box<dyn PageSource>,
    index: Arc<SearchIndex>,
}

impl Indexer {
    /// An indexer between these two, which reads pages in this process.
    pub fn new(store: Arc<dyn Store>, index: Arc<SearchIndex>) -> Self {
        Self::from(Box::new(StoredSource::new(store)), index)
    }

    /// An indexer that gets its pages elsewhere.
    pub(crate) fn from(source: Box<dyn PageSource>, index: Arc<SearchIndex>) -> Self {
        Self { source, index }
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

    /// Takes in the next pages, without a commit, and gives their number.
    fn take_in_batch(&self) -> Result<u64, IndexingError> {
        let batch = self.source.next(self.index.taken_upto(), BATCH_PAGES_MAX)?;
        let pages = batch.pages() as u64;
        if pages > 0 {
            self.index.take_in(&batch.docs, &batch.left_out, batch.upto)?;
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

    /// Makes everything searchable that was taken in.
    fn commit(&self) -> Result<(), IndexingError> {
        self.index.commit()?;
        self.source.committed()
    }
}

/// A running index stage.
pub(crate) struct IndexStage {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<Result<(), IndexingError>>>,
    lag: Arc<AtomicU64>,
}

impl IndexStage {
    /// Starts the thread that follows the store.
    pub(crate) fn start(indexer: Indexer) -> std::io::Result<Self> {
        let (wake, woken) = sync_channel(1);
        let lag = Arc::new(AtomicU64::new(0));
        let shown = Arc::clone(&lag);
        let thread = std::thread::Builder::new()
            .name("index".into())
            .spawn(move || follow(&indexer, &woken, &shown))?;
        Ok(Self { wake: Some(wake), thread: Some(thread), lag })
    }

    /// Pages were stored.
    pub(crate) fn wake(&self, pages: u64) {
        self.lag.fetch_add(pages, Ordering::AcqRel);
        // A wake-up that is already waiting is enough.
        let _ = self.wake.as_ref().map(|wake| wake.try_send(()));
    }

    /// Pages that are stored and not yet searchable, as far as this process knows.
    pub(crate) fn lag(&self) -> u64 {
        self.lag.load(Ordering::Acquire)
    }

    /// Whether the thread has ended, which it does only when it fails or is told to.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Takes in what is stored and ends. Gives the failure, if there was one.
    pub(crate) fn finish(mut self) -> Option<String> {
        self.wake = None;
        match self.thread.take()?.join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the index stage panicked".to_owned()),
        }
    }
}

fn follow(indexer: &Indexer, woken: &Receiver<()>, lag: &AtomicU64) -> Result<(), IndexingError> {
    std::thread::scope(|scope| {
        let mut digestion = None;
        let mut uncommitted = Uncommitted::default();
        loop {
            let is_last = match woken.recv_timeout(uncommitted.patience()) {
                Ok(()) => {
                    std::thread::sleep(TAKE_IN_WAIT);
                    while woken.try_recv().is_ok() {}
                    false
                }
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => true,
            };
            if is_last {
                if indexer.catch_up(&mut |_| {})? == 0 && uncommitted.pages > 0 {
                    indexer.commit()?;
                }
                return indexer.digest_links();
            }
            uncommitted.take_in(indexer, lag)?;
            if digestion.as_ref().is_none_or(ScopedJoinHandle::is_finished) {
                digestion = has_outgrown(indexer.index.link_lag())
                    .then(|| scope.spawn(|| digest_beside(indexer)));
            }
        }
    })
}

/// What was taken in and is not yet searchable.
#[derive(Default)]
struct Uncommitted {
    pages: u64,
    /// How much of the lag they are.
    lag: u64,
    /// When the first of them came.
    since: Option<Instant>,
}

impl Uncommitted {
    /// How long to wait for pages before the next look.
    fn patience(&self) -> Duration {
        self.since.map_or(LOOK_EVERY, |since| COMMIT_WAIT.saturating_sub(since.elapsed()))
    }

    /// Takes in what waits, and commits whenever it is time to.
    fn take_in(&mut self, indexer: &Indexer, lag: &AtomicU64) -> Result<(), IndexingError> {
        loop {
            let behind = lag.load(Ordering::Acquire);
            let pages = indexer.take_in_batch()?;
            let is_all = pages < BATCH_PAGES_MAX as u64;
            self.pages += pages;
            // Whatever was counted before a look that saw everything was seen by it: a page that was
            // stored twice is counted twice and seen once.
            self.lag = if is_all { behind } else { self.lag + pages };
            if self.pages > 0 {
                self.since.get_or_insert_with(Instant::now);
            }
            if self.is_due() {
                indexer.commit()?;
                self.pages = 0;
            }
            if self.pages == 0 {
                let seen = std::mem::take(self).lag;
                let _ = lag.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
                    Some(now.saturating_sub(seen))
                });
            }
            if is_all {
                return Ok(());
            }
        }
    }

    fn is_due(&self) -> bool {
        let has_waited = self.since.is_some_and(|since| since.elapsed() >= COMMIT_WAIT);
        has_waited || self.pages >= COMMIT_PAGES_MAX
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
