//! [`ParseQueue`]: the work between the crawl task, which never waits for it, and the threads that
//! parse, which do. Whose turn it is, is decided in `fair`.

mod fair;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use telusur_frontier::COSTLY_PARSE_MS;
use telusur_model::{CrawlNo, FetchOutcome, Moment};

use self::fair::{FairQueue, Owner, Turn, Weight};
use crate::parse_stage::{ParseWork, page_to_parse};

/// Shared by the crawl task and the threads.
pub(crate) struct ParseQueue {
    /// Held for a push, or for taking a few pages out.
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    queue: FairQueue<Queued>,
    /// The batches that threads have taken.
    under_way: BTreeMap<u64, UnderWay>,
    batches: u64,
    is_closed: bool,
}

struct Queued {
    work: ParseWork,
    since: Moment,
}

struct UnderWay {
    since: Moment,
    crawls: Vec<CrawlNo>,
}

/// Work that a thread has taken. Its end must be told to the queue.
pub(crate) struct Batch {
    number: u64,
    pub(crate) works: Vec<ParseWork>,
    turns: Vec<Turn<()>>,
}

/// The crawl task's end of the queue: when it is gone, the threads end.
pub(crate) struct ParseSender(Arc<ParseQueue>);

impl Drop for ParseSender {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl ParseQueue {
    /// A queue for so many threads, and the end that feeds it.
    pub(crate) fn new(threads: usize) -> (ParseSender, Arc<Self>) {
        let state = State {
            queue: FairQueue::new(threads, COSTLY_PARSE_MS * 1_000),
            under_way: BTreeMap::new(),
            batches: 0,
            is_closed: false,
        };
        let queue = Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() });
        (ParseSender(Arc::clone(&queue)), queue)
    }

    /// Waits for work; `None` when the engine has ended. What waits then stays in the store's queue.
    /// `now` is asked for when there is work.
    pub(crate) fn take(&self, now: impl Fn() -> Moment) -> Option<Batch> {
        let mut state = self.state();
        loop {
            if state.is_closed {
                return None;
            }
            let taken = state.queue.take();
            if !taken.is_empty() {
                return Some(state.begin(taken, now()));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A batch was parsed. `costs`: the CPU time of each page; `None` for work that needed no parser.
    pub(crate) fn ended(&self, batch: &Batch, costs: &[Option<Duration>]) {
        let mut state = self.state();
        state.under_way.remove(&batch.number);
        for (turn, cost) in batch.turns.iter().zip(costs) {
            let spent_us =
                cost.map(|cost| u64::try_from(cost.as_micros()).unwrap_or(u64::MAX >> 8));
            state.queue.ended(turn, spent_us);
        }
        drop(state);
        // A costly page that was held back may be begun now.
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ParseSender {
    pub(crate) fn send(&self, work: ParseWork, now: Moment) {
        let owner = Owner { crawl: work.visit.crawl, site: work.visit.url.site() };
        let weight = weight(&work);
        self.0.state().queue.push(&owner, Queued { work, since: now }, weight);
        self.0.changed.notify_one();
    }

    /// Takes out what a crawl has waited for since this moment or longer.
    pub(crate) fn remove_older(&self, crawl: CrawlNo, moment: Moment) -> Vec<ParseWork> {
        let removed = self.0.state().queue.remove(crawl, |queued| queued.since <= moment);
        removed.into_iter().map(|queued| queued.work).collect()
    }

    /// Forgets a crawl, and gives back what of it waits.
    pub(crate) fn forget(&self, crawl: CrawlNo) -> Vec<ParseWork> {
        let removed = self.0.state().queue.forget(crawl);
        removed.into_iter().map(|queued| queued.work).collect()
    }

    /// Visits of a crawl whose page is being parsed since this moment or longer.
    pub(crate) fn parsed_since(&self, crawl: CrawlNo, moment: Moment) -> usize {
        let state = self.0.state();
        let batches = state.under_way.values().filter(|batch| batch.since <= moment);
        batches.flat_map(|batch| &batch.crawls).filter(|no| **no == crawl).count()
    }
}

impl State {
    fn begin(&mut self, taken: Vec<Turn<Queued>>, now: Moment) -> Batch {
        self.batches += 1;
        let (queued, turns): (Vec<Queued>, Vec<_>) = taken.into_iter().map(Turn::split).unzip();
        let works: Vec<ParseWork> = queued.into_iter().map(|queued| queued.work).collect();
        let crawls = works.iter().map(|work| work.visit.crawl).collect();
        self.under_way.insert(self.batches, UnderWay { since: now, crawls });
        Batch { number: self.batches, works, turns }
    }
}

fn weight(work: &ParseWork) -> Weight {
    let parsed_bytes = match &work.fetched.outcome {
        // The page of the earlier crawl is read again.
        FetchOutcome::NotModified => Some(0),
        _ => page_to_parse(work).map(|page| page.body.len() as u64),
    };
    Weight { parsed_bytes }
}
