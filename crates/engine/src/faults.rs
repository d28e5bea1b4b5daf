//! [`Faults`]: which crawl ended the engine. A crawl that does so twice in a row is set aside, so that
//! it cannot take all others down at every start.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use telusur_ledger::{Store, StoreError};
use telusur_model::{Clock, CrawlNo, CrawlState, EngineFault, PauseReason};

use crate::error::EngineError;

/// Ends of the engine in a row after which a crawl is not started again.
const ENDS_MAX: u32 = 2;
/// Longest text that is kept of a cause.
const WHY_CHARS_MAX: usize = 300;

/// The crawls that the stages were working for when they failed, with the cause.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Held to add or to read, never while working.
    found: Mutex<Vec<(CrawlNo, String)>>,
}

impl Faults {
    /// Does work for crawls. Should it panic, they are remembered.
    pub(crate) fn watch<T>(&self, crawls: &[CrawlNo], work: impl FnOnce() -> T) -> T {
        // Nothing is used after a panic but this list: the engine ends.
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(done) => done,
            Err(panic) => {
                self.blame(crawls, &panic_text(&*panic));
                resume_unwind(panic)
            }
        }
    }

    pub(crate) fn blame(&self, crawls: &[CrawlNo], why: &str) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        for crawl in crawls {
            if !found.iter().any(|(known, _)| known == crawl) {
                found.push((*crawl, why.to_owned()));
            }
        }
    }

    fn found(&self) -> Vec<(CrawlNo, String)> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The engine has ended by this error: writes down whose fault it was. `running`: the crawls that
    /// it ran.
    pub(crate) fn record(
        &self,
        error: &EngineError,
        running: &[CrawlNo],
        store: &dyn Store,
        clock: &dyn Clock,
    ) {
        let named = self.found();
        let suspects = match blame_of(error) {
            Blame::Nobody => return,
            Blame::Named => named,
            Blame::Anybody if named.is_empty() => unnamed_suspects(error, running, store),
            Blame::Anybody => named,
        };
        let is_certain = suspects.len() == 1;
        for (crawl, why) in suspects {
            if let Err(error) = note(store, clock, crawl, &why, is_certain) {
                tracing::error!(%crawl, %error, "cannot write down what ended the engine");
            }
        }
    }
}

/// No stage has named a crawl. Those that were under suspicion before are the likely ones; else all
/// that ran.
fn unnamed_suspects(
    error: &EngineError,
    running: &[CrawlNo],
    store: &dyn Store,
) -> Vec<(CrawlNo, String)> {
    let is_known = |crawl: &&CrawlNo| {
        let record = store.crawl(**crawl).ok().flatten();
        record.is_some_and(|record| record.fault.is_some())
    };
    let known: Vec<CrawlNo> = running.iter().filter(is_known).copied().collect();
    let suspects = if known.is_empty() { running.to_vec() } else { known };
    suspects.into_iter().map(|crawl| (crawl, error.to_string())).collect()
}

fn note(
    store: &dyn Store,
    clock: &dyn Clock,
    crawl: CrawlNo,
    why: &str,
    is_certain: bool,
) -> Result<(), StoreError> {
    let Some(record) = store.crawl(crawl)? else { return Ok(()) };
    let times = record.fault.map_or(0, |fault| fault.times) + 1;
    let why: String = why.chars().take(WHY_CHARS_MAX).collect();
    let fault = EngineFault { times, why, is_certain };
    if times < ENDS_MAX {
        tracing::error!(%crawl, why = fault.why, "crawl ended the engine");
    } else {
        tracing::error!(%crawl, why = fault.why, "crawl set aside: it stopped the engine twice");
        let state = CrawlState::Paused { why: PauseReason::EngineStopped };
        store.set_state(crawl, state, clock.wall())?;
    }
    store.set_fault(crawl, Some(fault))
}

/// Whether an error of a commit may be that of one crawl: its rows or bodies cannot be read, or its bodies not
/// written. After an error of the rows that all share the store takes nothing more, so that nobody is
/// blamed for it.
pub(crate) fn may_be_of_crawl(error: &StoreError) -> bool {
    match error {
        StoreError::Damaged(_) | StoreError::Unreadable { .. } | StoreError::Io { .. } => true,
        StoreError::Engine(_)
        | StoreError::DiskFull(_)
        | StoreError::Locked { .. }
        | StoreError::StateDamaged(_)
        | StoreError::Unusable(_) => false,
    }
}

/// The same for reading what belongs to one crawl: also a block that cannot be read, which a store reports as
/// an error of its engine.
pub(crate) fn is_of_reading(error: &StoreError) -> bool {
    may_be_of_crawl(error) || matches!(error, StoreError::Engine(_))
}

/// Pauses a crawl because of a fault that is its own, so that no start runs it before `resume` does.
pub(crate) fn set_aside(
    store: &dyn Store,
    clock: &dyn Clock,
    crawl: CrawlNo,
    error: &StoreError,
) -> Result<(), StoreError> {
    tracing::error!(%crawl, %error, "crawl set aside: what is stored of it cannot be read or written");
    let why = error.to_string().chars().take(WHY_CHARS_MAX).collect();
    let state = CrawlState::Paused { why: PauseReason::EngineStopped };
    let fault = EngineFault { times: 0, why, is_certain: true };
    let written = store.set_state(crawl, state, clock.wall());
    match written.and_then(|()| store.set_fault(crawl, Some(fault))) {
        // Its own row is what cannot be read: nothing starts it.
        Err(error) if error.is_of_rows() => Ok(()),
        written => written,
    }
}

/// Whose fault an error may be.
enum Blame {
    Nobody,
    /// Only those that a stage has named.
    Named,
    /// Those that a stage has named, or else any of them.
    Anybody,
}

/// A full disk, a failed write, and parsers that cannot be started, are nobody's fault. What cannot be
/// read is the fault of the crawl that it was read for, and of no other.
fn blame_of(error: &EngineError) -> Blame {
    match error {
        EngineError::StageDied(_) | EngineError::Store(StoreError::Damaged(_)) => Blame::Anybody,
        EngineError::Store(
            StoreError::Io { .. } | StoreError::Engine(_) | StoreError::Unreadable { .. },
        ) => Blame::Named,
        EngineError::Parser(_)
        | EngineError::PartDied(_)
        | EngineError::Store(
            StoreError::DiskFull(_)
            | StoreError::Locked { .. }
            | StoreError::StateDamaged(_)
            | StoreError::Unusable(_),
        ) => Blame::Nobody,
    }
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a text").to_owned()
}
