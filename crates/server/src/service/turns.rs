//! [`Turns`]: which crawls wait, and the task that starts them when there is room. A crawl waits if its
//! state in the store is "running" and no engine has it; that is why nothing of this is written down.
//! Crawls that may have ended the engine, as others may that ran beside them, are started one at a
//! time: one that survives is cleared.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use telusur_engine::RequestError;
use telusur_model::{CrawlNo, CrawlState, FinishReason, Moment};
use telusur_store::CrawlRecord;
use tokio::sync::Notify;

use super::Service;
use crate::problem::Problem;

/// How long a crawl that may have ended the engine runs before it is cleared. What ends the engine
/// does so within seconds of every start: its visit is the first to be asked for again.
const TRIAL_MS: u64 = 30_000;

/// The crawls that wait, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Held to look or to change, never while waiting.
    line: Mutex<Line>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Line {
    waiting: BTreeSet<CrawlNo>,
    /// Places that are kept for crawls that are being made.
    kept: usize,
    /// The one that is being started.
    starting: Option<CrawlNo>,
    /// Those that may have ended the engine.
    suspects: BTreeSet<CrawlNo>,
    /// The one of them that is tried, and since when.
    on_trial: Option<(CrawlNo, Moment)>,
}

impl Turns {
    pub(crate) fn of(records: &[CrawlRecord]) -> Self {
        let of = |is_wanted: fn(&CrawlRecord) -> bool| -> BTreeSet<CrawlNo> {
            let wanted = records.iter().filter(|record| is_wanted(record));
            wanted.map(|record| record.crawl.no).collect()
        };
        let waiting = of(goes_on);
        let suspects = of(|record| {
            goes_on(record) && record.fault.as_ref().is_some_and(|fault| !fault.is_certain)
        });
        let line = Line { waiting, suspects, ..Line::default() };
        Self { line: Mutex::new(line), changed: Notify::new() }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a place for a crawl that is about to be made, if fewer than `max` wait. It is given back
    /// when it is dropped: by then the crawl stands in the line, or was not made.
    pub(crate) fn keep_place(&self, max: usize) -> Option<KeptPlace<'_>> {
        let mut line = self.line();
        if line.waiting.len() + line.kept >= max {
            return None;
        }
        line.kept += 1;
        Some(KeptPlace { turns: self })
    }

    pub(crate) fn is_waiting(&self, no: CrawlNo) -> bool {
        let line = self.line();
        line.waiting.contains(&no) || line.starting == Some(no)
    }

    pub(crate) fn join(&self, no: CrawlNo) {
        self.line().waiting.insert(no);
        self.changed.notify_waiters();
    }

    /// Takes a crawl out of the line, so that it is not started while something else is done to it.
    /// Waits if it is being started just now. Says whether it was in the line.
    pub(crate) async fn leave(&self, no: CrawlNo) -> bool {
        loop {
            let changed = self.changed.notified();
            {
                let mut line = self.line();
                if line.starting != Some(no) {
                    return line.waiting.remove(&no);
                }
            }
            changed.await;
        }
    }

    fn begin_next(&self, now: Moment) -> Option<CrawlNo> {
        let mut line = self.line();
        let is_tried = line.on_trial.is_some();
        let may_begin = |no: &&CrawlNo| !is_tried || !line.suspects.contains(*no);
        let next = line.waiting.iter().find(may_begin).copied()?;
        line.waiting.remove(&next);
        line.starting = Some(next);
        if line.suspects.contains(&next) {
            line.on_trial = Some((next, now));
        }
        Some(next)
    }

    /// The crawl on trial, if it has run for long enough or is over: it is cleared.
    fn cleared(&self, now: Moment, is_running: impl Fn(CrawlNo) -> bool) -> Option<CrawlNo> {
        let mut line = self.line();
        let (no, since) = line.on_trial.filter(|(no, _)| line.starting != Some(*no))?;
        if now.ms_since(since) < TRIAL_MS && is_running(no) {
            return None;
        }
        line.on_trial = None;
        line.suspects.remove(&no);
        Some(no)
    }

    fn begun(&self) {
        self.line().starting = None;
        self.changed.notify_waiters();
    }
}

/// A place in the line for a crawl that is being made.
#[derive(Debug)]
pub(crate) struct KeptPlace<'a> {
    turns: &'a Turns,
}

impl Drop for KeptPlace<'_> {
    fn drop(&mut self) {
        self.turns.line().kept -= 1;
    }
}

/// Starts crawls while there is room, until the service or the engine ends.
pub(crate) async fn give_turns(service: Service) {
    let inner = service.inner();
    let mut pictures = inner.engine.progress();
    loop {
        let changed = inner.turns.changed.notified();
        clear_suspect(&service).await;
        while has_room(&service) {
            let Some(no) = inner.turns.begin_next(inner.clock.now()) else { break };
            let started = start(&service, no).await;
            inner.turns.begun();
            if let Err(problem) = started {
                tracing::error!(crawl = %no, problem = problem.detail(), "crawl cannot start");
            }
        }
        tokio::select! {
            () = inner.ending.cancelled() => return,
            () = changed => {}
            shown = pictures.changed() => if shown.is_err() { return },
        }
    }
}

/// Whether a crawl is to be started without being told: it runs, or waits for the machine.
fn goes_on(record: &CrawlRecord) -> bool {
    match record.state {
        CrawlState::Running => true,
        CrawlState::Paused { why } => why.passes(),
        CrawlState::Finished { .. } => false,
    }
}

/// A crawl that was tried alone and did not end the engine is like any other.
async fn clear_suspect(service: &Service) {
    let inner = service.inner();
    let is_running = |no| service.progress(no).is_some_and(|it| it.state == CrawlState::Running);
    let Some(no) = inner.turns.cleared(inner.clock.now(), is_running) else { return };
    let forgotten =
        service.work(move |service| Ok(service.inner().store.set_fault(no, None)?)).await;
    if let Err(problem) = forgotten {
        tracing::error!(crawl = %no, problem = problem.detail(), "crawl cannot be cleared");
    }
}

fn has_room(service: &Service) -> bool {
    let inner = service.inner();
    let pictures = inner.engine.progress();
    let pictures = pictures.borrow();
    let running = pictures.values().filter(|it| it.state == CrawlState::Running).count();
    let is_held_back = inner.engine.holds_back().is_some();
    running < inner.settings.bounds.running_max && !is_held_back && !service.is_draining()
}

async fn start(service: &Service, no: CrawlNo) -> Result<(), Problem> {
    // It may have been stopped or thrown away from another terminal while it waited.
    let record = service.work(move |service| Ok(service.inner().store.crawl(no)?)).await?;
    if !record.is_some_and(|record| goes_on(&record)) {
        return Ok(());
    }
    match service.inner().engine.run(no).await {
        // A crawl whose rules cannot be followed would be tried again at every start.
        Err(RequestError::BadArgument(what)) => {
            tracing::error!(crawl = %no, why = what, "crawl cannot run");
            let state = CrawlState::Finished { why: FinishReason::NoStart };
            let at = service.inner().clock.wall();
            service.work(move |service| Ok(service.inner().store.set_state(no, state, at)?)).await
        }
        // Resumed from another terminal in the meantime.
        Err(RequestError::WrongState(_)) => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_kept_and_given_back() {
        let turns = Turns::default();
        let first = turns.keep_place(2).unwrap();
        let second = turns.keep_place(2).unwrap();
        assert!(turns.keep_place(2).is_none(), "two are being made");
        turns.join(CrawlNo(1));
        drop(first);
        assert!(turns.keep_place(2).is_none(), "one waits, one is being made");
        drop(second);
        assert!(turns.keep_place(2).is_some(), "one was not made after all");
        assert!(turns.keep_place(1).is_none(), "the other one waits");
    }

    #[test]
    fn suspects_are_tried_one_at_a_time() {
        let turns = Turns::default();
        turns.line().suspects.extend([CrawlNo(1), CrawlNo(2)]);
        (1..=4).for_each(|no| turns.join(CrawlNo(no)));
        let begin = |at| {
            let next = turns.begin_next(Moment(at));
            turns.begun();
            next.map(|no| no.0)
        };
        assert_eq!([begin(0), begin(0), begin(0), begin(0)], [Some(1), Some(3), Some(4), None]);
        assert_eq!(turns.cleared(Moment(TRIAL_MS - 1), |_| true), None);
        assert_eq!(turns.cleared(Moment(TRIAL_MS), |_| true), Some(CrawlNo(1)));
        assert_eq!(begin(TRIAL_MS), Some(2), "the next one is tried");
        assert_eq!(turns.cleared(Moment(TRIAL_MS), |_| false), Some(CrawlNo(2)), "it is over");
    }
}
