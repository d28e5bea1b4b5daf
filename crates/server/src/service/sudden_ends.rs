//! [`SuddenEnds`]: which crawls may have ended the process without leaving a word, as an abort, a stack
//! overflow or the kernel does that needs memory. Such an end looks like any kill, so one counts for nothing.
//! If the next process ends in the same way within seconds, its crawls are tried one at a time. One whose trial
//! ends the process is held until the next one has run without it: only then a second trial says something. If
//! the process ends while it is held, it was something else, such as an operator who kills it several times.
//! One that ends the process in both trials is set aside.

use std::collections::BTreeSet;

use telusur_ledger::{CrawlRecord, Store, StoreError};
use telusur_model::{CrawlNo, CrawlState, EngineFault, PauseReason, Timestamp};

use super::run_queue::goes_on;

/// Ends of the process while a crawl was tried after which it is not started again.
const TRIALS_MAX: u32 = 2;
/// What such an end is called; it also tells these faults from those that the engine has seen.
const WHY: &str = "the service ended suddenly, soon after this crawl was started";
/// The same while the process runs without it.
const WHY_HELD: &str =
    "the service ended suddenly while this crawl was tried; it waits for a second trial";

/// What the ends of earlier processes tell about the crawls that go on.
#[derive(Debug, Default)]
pub(crate) struct SuddenEnds {
    /// Those that are tried one at a time.
    pub(crate) suspects: BTreeSet<CrawlNo>,
    /// The one whose trial ended the last process: it is tried again when this one has run without it.
    pub(crate) held: BTreeSet<CrawlNo>,
    /// Those that ran when the last process ended: if this one ends soon, too, they are suspects.
    pub(crate) watched: BTreeSet<CrawlNo>,
}

impl SuddenEnds {
    /// Looks at how the last process ended, and writes down what this one must know if it ends in the same
    /// way. Crawls that have been tried often enough are set aside.
    pub(crate) fn look(
        store: &dyn Store,
        records: &mut [CrawlRecord],
        at: Timestamp,
    ) -> Result<Self, StoreError> {
        let mut found = Self::default();
        let is_sudden = !store.was_closed();
        // A process that ended while a crawl was held has ended without it.
        for record in records.iter_mut().filter(|record| goes_on(record) && is_held(record)) {
            set_fault(store, record, None)?;
        }
        let is_explained = records.iter().any(|record| goes_on(record) && record.fault.is_some());
        for record in records.iter_mut().filter(|record| goes_on(record)) {
            let no = record.crawl.no;
            match record.fault.clone() {
                Some(fault) if is_tried_out(&fault) => set_aside(store, record, fault, at)?,
                Some(fault) if fault.times == 0 && !is_sudden => set_fault(store, record, None)?,
                Some(fault) if fault.why == WHY && fault.times > 0 => {
                    set_fault(store, record, Some(EngineFault { why: WHY_HELD.into(), ..fault }))?;
                    found.held.insert(no);
                }
                Some(_) => {
                    found.suspects.insert(no);
                }
                None if is_sudden && !is_explained => {
                    set_fault(store, record, Some(fault_of(0)))?;
                    found.watched.insert(no);
                }
                None => {}
            }
        }
        Ok(found)
    }
}

/// The fault of a crawl that is about to be tried: what is true if the process ends meanwhile. Faults that the
/// engine has seen are counted by the engine.
pub(crate) fn before_trial(fault: &EngineFault) -> Option<EngineFault> {
    [WHY, WHY_HELD].contains(&fault.why.as_str()).then(|| fault_of(fault.times + 1))
}

fn fault_of(times: u32) -> EngineFault {
    EngineFault { times, why: WHY.to_owned(), is_certain: false }
}

fn is_held(record: &CrawlRecord) -> bool {
    record.fault.as_ref().is_some_and(|fault| fault.why == WHY_HELD)
}

fn is_tried_out(fault: &EngineFault) -> bool {
    fault.why == WHY && fault.times >= TRIALS_MAX
}

fn set_aside(
    store: &dyn Store,
    record: &mut CrawlRecord,
    fault: EngineFault,
    at: Timestamp,
) -> Result<(), StoreError> {
    let no = record.crawl.no;
    tracing::error!(crawl = %no, why = fault.why, "crawl set aside: it stopped the engine twice");
    record.state = CrawlState::Paused { why: PauseReason::EngineStopped };
    store.set_state(no, record.state, at)?;
    set_fault(store, record, Some(fault))
}

fn set_fault(
    store: &dyn Store,
    record: &mut CrawlRecord,
    fault: Option<EngineFault>,
) -> Result<(), StoreError> {
    record.fault = fault.clone();
    store.set_fault(record.crawl.no, fault)
}
