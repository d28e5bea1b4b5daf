//! Measures how long pages take from their fetch until a search can find them, by watching a crawl
//! from outside.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use telusur_engine::SystemClock;
use telusur_index::SearchIndex;
use telusur_ledger::Store;
use telusur_model::{Clock, CrawlNo};

/// How often the index is looked at: waits are measured to a fiftieth of a second.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Pages that are read at once.
const PAGES_MAX: usize = 10_000;

/// Watches a crawl until it is asked for what it saw.
pub(super) struct FindableWatch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<u64>>,
}

impl FindableWatch {
    pub(super) fn start(store: Arc<dyn Store>, index: Arc<SearchIndex>, crawl: CrawlNo) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || watch(store.as_ref(), &index, crawl, &told));
        Self { is_over, thread }
    }

    /// The waits of all pages in milliseconds, ascending.
    pub(super) fn finish(self) -> Vec<u64> {
        self.is_over.store(true, Ordering::Release);
        let mut waits = self.thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        waits.sort_unstable();
        waits
    }
}

fn watch(store: &dyn Store, index: &SearchIndex, crawl: CrawlNo, is_over: &AtomicBool) -> Vec<u64> {
    let clock = SystemClock::new();
    let mut waits = Vec::new();
    let mut seen = 0;
    loop {
        let is_last = is_over.load(Ordering::Acquire);
        let upto = index.applied_upto();
        while upto > seen {
            let now = clock.wall();
            let Ok(pages) = store.pages_after(crawl, seen, PAGES_MAX) else { return waits };
            let found = pages.iter().take_while(|page| page.seq <= upto);
            waits.extend(found.map(|page| now.0.saturating_sub(page.fetched_at.0)));
            seen = pages.last().map_or(upto, |page| page.seq.min(upto));
            if pages.is_empty() {
                seen = upto;
            }
        }
        if is_last {
            return waits;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
