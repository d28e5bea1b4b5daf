//! [`RunQueue`]: which crawls wait, and the task that starts them when there is room. A crawl waits if its
//! state in the store is "running" and no engine has it; that is why nothing of this is written down.
//! Crawls that may have ended the engine, as others may that ran beside them, are started one at a
//! time: one that survives is cleared. One whose trial ended the process is held until the process has run
//! without it.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use telusur_engine::RequestError;
use telusur_ledger::CrawlRecord;
use telusur_model::{CrawlNo, CrawlState, EngineFault, Moment, PauseReason};
use tokio::sync::Notify;

use super::Service;
use super::sudden_ends::{self, SuddenEnds};
use crate::problem::Problem;

/// How long a crawl that may have ended the engine runs before it is cleared. What ends the engine
/// does so within seconds of every start: its visit is the first to be asked for again.
const TRIAL_MS: u64 = 30_000;

/// The crawls that wait, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct RunQueue {
    /// Held to look or to change, never while waiting.
    line: Mutex<RunQueueState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct RunQueueState {
    waiting: BTreeSet<CrawlNo>,
    /// Places that are kept for crawls that are being made.
    kept: usize,
    /// The one that is being started.
    starting: Option<CrawlNo>,
    /// Those that may have ended the engine.
    suspects: BTreeSet<CrawlNo>,
    /// Of these, those that are not tried again before the others, nor before this moment.
    held: BTreeSet<CrawlNo>,
    held_until: Moment,
    /// The one of them that is tried, and since when.
    on_trial: Option<(CrawlNo, Moment)>,
    /// Those that become suspects if the process ends soon, and since when.
    watched: Option<(BTreeSet<CrawlNo>, Moment)>,
}

impl RunQueue {
    pub(crate) fn of(records: &[CrawlRecord], ends: SuddenEnds, now: Moment) -> Self {
        let waiting = records.iter().filter(|record| goes_on(record));
        let waiting = waiting.map(|record| record.crawl.no).collect();
        let SuddenEnds { mut suspects, held, watched } = ends;
        suspects.extend(&held);
        let watched = (!watched.is_empty()).then_some((watched, now));
        let held_until = now.plus_ms(TRIAL_MS);
        let line =
            RunQueueState { waiting, suspects, held, held_until, watched, ..Default::default() };
        Self { line: Mutex::new(line), changed: Notify::new() }
    }

    fn line(&self) -> MutexGuard<'_, RunQueueState> {
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
        Some(KeptPlace { run_queue: self })
    }

    pub(crate) fn is_waiting(&self, no: CrawlNo) -> bool {
        let line = self.line();
        line.waiting.contains(&no) || line.starting == Some(no)
    }

    pub(crate) fn join(&self, no: CrawlNo) {
        self.line().waiting.insert(no);
        self.changed.notify_waiters();
    }

    /// Somebody wants a crawl to run, whatever it may have done.
    pub(crate) fn forgive(&self, no: CrawlNo) {
        let mut line = self.line();
        line.suspects.remove(&no);
        line.held.remove(&no);
    }

    /// How long the next crawl is held that was tried in vain; `None` if none is.
    fn held_ms(&self, now: Moment) -> Option<u64> {
        let line = self.line();
        line.held.iter().any(|no| line.waiting.contains(no)).then(|| line.held_until.ms_since(now))
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
        let is_untried = |no: &CrawlNo| line.suspects.contains(no) && !line.held.contains(no);
        let holds = now < line.held_until || line.waiting.iter().any(is_untried);
        let may_begin = |no: &&CrawlNo| {
            let is_held = holds && line.held.contains(*no);
            !line.suspects.contains(*no) || !is_tried && !is_held
        };
        let next = line.waiting.iter().find(may_begin).copied()?;
        line.waiting.remove(&next);
        line.held.remove(&next);
        line.starting = Some(next);
        if line.suspects.contains(&next) {
            line.on_trial = Some((next, now));
        }
        Some(next)
    }

    fn is_on_trial(&self, no: CrawlNo) -> bool {
        self.line().on_trial.is_some_and(|(tried, _)| tried == no)
    }

    /// The crawls that were watched, if the process has not ended for long enough.
    fn unwatched(&self, now: Moment) -> BTreeSet<CrawlNo> {
        let is_over = |(_, since): &mut (_, Moment)| now.ms_since(*since) >= TRIAL_MS;
        let watched = self.line().watched.take_if(is_over);
        watched.map(|(crawls, _)| crawls).unwrap_or_default()
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

    /// The start that was begun is over. A trial begins now: a start may take long.
    fn begun(&self, now: Moment) {
        let mut line = self.line();
        let started = line.starting.take();
        if let Some((tried, since)) = &mut line.on_trial
            && started == Some(*tried)
        {
            *since = now;
        }
        drop(line);
        self.changed.notify_waiters();
    }
}

/// A place in the line for a crawl that is being made.
#[derive(Debug)]
pub(crate) struct KeptPlace<'a> {
    run_queue: &'a RunQueue,
}

impl Drop for KeptPlace<'_> {
    fn drop(&mut self) {
        self.run_queue.line().kept -= 1;
    }
}

/// Starts crawls while there is room, until the service or the engine ends.
pub(crate) async fn start_in_turn(service: Service) {
    let inner = service.inner();
    let mut snapshots = inner.engine.progress();
    loop {
        let changed = inner.run_queue.changed.notified();
        clear_suspects(&service).await;
        while has_room(&service) {
            let Some(no) = inner.run_queue.begin_next(inner.clock.now()) else { break };
            let started = start(&service, no).await;
            inner.run_queue.begun(inner.clock.now());
            if let Err(problem) = started {
                tracing::error!(crawl = %no, problem = problem.detail(), "crawl cannot start");
            }
        }
        let held_ms = inner.run_queue.held_ms(inner.clock.now());
        let is_held = held_ms.is_some_and(|ms| ms > 0);
        let release = tokio::time::sleep(Duration::from_millis(held_ms.unwrap_or(0)));
        tokio::select! {
            () = inner.ending.cancelled() => return,
            () = changed => {}
            () = release, if is_held => {}
            shown = snapshots.changed() => if shown.is_err() { return },
        }
    }
}

/// Whether a crawl is to be started without being told: it runs, or waits for the machine.
pub(super) fn goes_on(record: &CrawlRecord) -> bool {
    match record.state {
        CrawlState::Running => true,
        CrawlState::Paused { why } => why.passes(),
        CrawlState::Finished { .. } => false,
    }
}

/// A crawl that was tried alone and did not end the engine is like any other, and so are those that were
/// watched while the process might have ended.
async fn clear_suspects(service: &Service) {
    let inner = service.inner();
    let now = inner.clock.now();
    // One that waits for the machine has not come to its end, nor shown that it runs well.
    let is_running = |no| {
        service.progress(no).is_some_and(|it| match it.state {
            CrawlState::Running => true,
            CrawlState::Paused { why } => why.passes(),
            CrawlState::Finished { .. } => false,
        })
    };
    let mut cleared = inner.run_queue.unwatched(now);
    cleared.extend(inner.run_queue.cleared(now, is_running));
    for no in cleared {
        let forgotten = service.work(move |service| forget_fault(service, no)).await;
        if let Err(problem) = forgotten {
            tracing::error!(crawl = %no, problem = problem.detail(), "crawl cannot be cleared");
        }
    }
}

fn forget_fault(service: &Service, no: CrawlNo) -> Result<(), Problem> {
    let store = &service.inner().store;
    let record = store.crawl(no)?;
    let is_aside = |record: &CrawlRecord| {
        record.state == CrawlState::Paused { why: PauseReason::EngineStopped }
    };
    if record.is_some_and(|record| record.fault.is_some() && !is_aside(&record)) {
        store.set_fault(no, None)?;
    }
    Ok(())
}

fn has_room(service: &Service) -> bool {
    let inner = service.inner();
    let snapshots = inner.engine.progress();
    let snapshots = snapshots.borrow();
    let running = snapshots.values().filter(|it| it.state == CrawlState::Running).count();
    let is_held_back = inner.engine.holds_back().is_some();
    running < inner.settings.bounds.running_max && !is_held_back && !service.is_draining()
}

async fn start(service: &Service, no: CrawlNo) -> Result<(), Problem> {
    if !service.work(move |service| ready(service, no)).await? {
        return Ok(());
    }
    match service.inner().engine.run(no).await {
        // A crawl that cannot run would be tried again at every start.
        Err(RequestError::BadArgument(why)) => set_aside(service, no, why).await,
        // Resumed from another terminal in the meantime.
        Err(RequestError::WrongState(_)) if service.inner().engine.is_here(no) => Ok(()),
        Err(RequestError::WrongState(why)) => set_aside(service, no, why).await,
        // Nor can one whose rows cannot be read.
        Err(RequestError::Store(error)) if error.is_of_rows() => {
            set_aside(service, no, error.to_string()).await
        }
        other => Ok(other?),
    }
}

/// Whether a crawl is to be started. If it is tried, its row says so before anything can go wrong.
fn ready(service: &Service, no: CrawlNo) -> Result<bool, Problem> {
    let inner = service.inner();
    // It may have been stopped or thrown away from another terminal while it waited.
    let Some(record) = inner.store.crawl(no)?.filter(goes_on) else { return Ok(false) };
    if let Some(fault) = record.fault.as_ref().and_then(sudden_ends::before_trial)
        && inner.run_queue.is_on_trial(no)
    {
        inner.store.set_fault(no, Some(fault))?;
    }
    Ok(true)
}

/// Keeps a crawl that cannot run from being started again. Its owner sees why.
async fn set_aside(service: &Service, no: CrawlNo, why: String) -> Result<(), Problem> {
    tracing::error!(crawl = %no, why, "crawl cannot run: set aside");
    let at = service.inner().clock.wall();
    service
        .work(move |service| {
            let store = &service.inner().store;
            let state = CrawlState::Paused { why: PauseReason::EngineStopped };
            store.set_state(no, state, at)?;
            Ok(store.set_fault(no, Some(EngineFault { times: 0, why, is_certain: true }))?)
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_kept_and_given_back() {
        let run_queue = RunQueue::default();
        let first = run_queue.keep_place(2).unwrap();
        let second = run_queue.keep_place(2).unwrap();
        assert!(run_queue.keep_place(2).is_none(), "two are being made");
        run_queue.join(CrawlNo(1));
        drop(first);
        assert!(run_queue.keep_place(2).is_none(), "one waits, one is being made");
        drop(second);
        assert!(run_queue.keep_place(2).is_some(), "one was not made after all");
        assert!(run_queue.keep_place(1).is_none(), "the other one waits");
    }

    #[test]
    fn suspects_are_tried_one_at_a_time() {
        let run_queue = RunQueue::default();
        run_queue.line().suspects.extend([CrawlNo(1), CrawlNo(2)]);
        (1..=4).for_each(|no| run_queue.join(CrawlNo(no)));
        let begin = |at| {
            let next = run_queue.begin_next(Moment(at));
            run_queue.begun(Moment(at));
            next.map(|no| no.0)
        };
        assert_eq!([begin(0), begin(0), begin(0), begin(0)], [Some(1), Some(3), Some(4), None]);
        assert_eq!(run_queue.cleared(Moment(TRIAL_MS - 1), |_| true), None);
        assert_eq!(run_queue.cleared(Moment(TRIAL_MS), |_| true), Some(CrawlNo(1)));
        assert_eq!(begin(TRIAL_MS), Some(2), "the next one is tried");
        assert_eq!(run_queue.cleared(Moment(TRIAL_MS), |_| false), Some(CrawlNo(2)), "it is over");
    }

    /// A start that takes longer than a trial clears nobody.
    #[test]
    fn a_trial_begins_when_the_crawl_has_started() {
        let run_queue = RunQueue::default();
        run_queue.line().suspects.insert(CrawlNo(1));
        run_queue.join(CrawlNo(1));
        assert_eq!(run_queue.begin_next(Moment(0)), Some(CrawlNo(1)));
        run_queue.begun(Moment(TRIAL_MS));
        assert_eq!(run_queue.cleared(Moment(TRIAL_MS), |_| true), None);
        assert_eq!(run_queue.cleared(Moment(2 * TRIAL_MS), |_| true), Some(CrawlNo(1)));
    }

    /// The process runs without it for as long as a trial takes: if it ends meanwhile, it was something
    /// else.
    #[test]
    fn one_whose_trial_ended_the_process_is_tried_again_after_the_others() {
        let run_queue = RunQueue::default();
        {
            let mut line = run_queue.line();
            line.suspects.extend([CrawlNo(1), CrawlNo(2)]);
            line.held.insert(CrawlNo(1));
            line.held_until = Moment(TRIAL_MS);
        }
        (1..=3).for_each(|no| run_queue.join(CrawlNo(no)));
        let begin = |at| {
            let next = run_queue.begin_next(Moment(at));
            run_queue.begun(Moment(at));
            next.map(|no| no.0)
        };
        assert_eq!([begin(0), begin(0), begin(TRIAL_MS)], [Some(2), Some(3), None]);
        assert_eq!(run_queue.held_ms(Moment(1)), Some(TRIAL_MS - 1));
        assert_eq!(run_queue.cleared(Moment(TRIAL_MS), |_| true), Some(CrawlNo(2)));
        assert_eq!(begin(TRIAL_MS), Some(1));
        // Nobody who asks for it has to wait.
        run_queue.line().held.insert(CrawlNo(4));
        run_queue.line().suspects.insert(CrawlNo(4));
        run_queue.line().held_until = Moment(2 * TRIAL_MS);
        run_queue.join(CrawlNo(4));
        assert_eq!(begin(TRIAL_MS), None);
        run_queue.forgive(CrawlNo(4));
        assert_eq!(begin(TRIAL_MS), Some(4));
    }
}
