//! [`Turns`]: which crawls wait, and the task that starts them when there is room. A crawl waits if its
//! state in the store is "running" and no engine has it; that is why nothing of this is written down.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use telusur_engine::RequestError;
use telusur_model::{CrawlNo, CrawlState, FinishReason};
use telusur_store::CrawlRecord;
use tokio::sync::Notify;

use super::Service;
use crate::problem::Problem;

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
}

impl Turns {
    pub(crate) fn of(records: &[CrawlRecord]) -> Self {
        let running = records.iter().filter(|record| record.state == CrawlState::Running);
        let waiting = running.map(|record| record.crawl.no).collect();
        let line = Line { waiting, ..Line::default() };
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

    fn begin_next(&self) -> Option<CrawlNo> {
        let mut line = self.line();
        line.starting = line.waiting.pop_first();
        line.starting
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
        while has_room(&service) {
            let Some(no) = inner.turns.begin_next() else { break };
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

fn has_room(service: &Service) -> bool {
    let inner = service.inner();
    let pictures = inner.engine.progress();
    let pictures = pictures.borrow();
    let running = pictures.values().filter(|it| it.state == CrawlState::Running).count();
    running < inner.settings.bounds.running_max && !service.is_draining()
}

async fn start(service: &Service, no: CrawlNo) -> Result<(), Problem> {
    // It may have been stopped or thrown away from another terminal while it waited.
    let record = service.work(move |service| Ok(service.inner().store.crawl(no)?)).await?;
    if record.is_none_or(|record| record.state != CrawlState::Running) {
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
}
