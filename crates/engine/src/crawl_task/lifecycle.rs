//! How crawls begin, change and end.

use std::collections::HashSet;
use std::sync::Arc;

use telusur_frontier::{AskedEarlier, CrawlStart, HostStart};
use telusur_ledger::{Asking, CrawlRecord, Effects, Event as LedgerEvent, HostNote, KeptRun};
use telusur_model::{
    CrawlNo, CrawlState, CrawlStats, FinishReason, HostRow, Moment, PauseReason, RobotsRules,
    Timestamp, Visit,
};

use super::{Command, CrawlTask, Goal, KnownHosts, Reply, Running};
use crate::asked_before::AskedHost;
use crate::change::CrawlChange;
use crate::commit_stage::CommitWork;
use crate::context::CrawlContext;
use crate::error::{EngineError, RequestError};
use crate::id_visits::{open_walks, refused_ids};
use crate::letting_in::LettingIn;
use crate::parse_costs::stuck_since;
use crate::patience::Patience;
use crate::pipeline::Load;
use crate::progress::{RateMeter, WalksShown};

/// Longest that an ending crawl waits for its visits under way; later ones stay queued.
pub(crate) const DRAIN_MS_MAX: u64 = 8_000;

/// A crawl whose visits under way still end.
pub(super) struct EndingCrawl {
    goal: Goal,
    deadline: Moment,
    /// The state that was sent to the writer.
    written: Option<CrawlState>,
    replies: Vec<Reply>,
}

impl EndingCrawl {
    /// Whether it ends only because nothing was left to ask, and nobody was told so.
    fn is_for_want_of_links(&self) -> bool {
        self.goal == Goal::Finish(FinishReason::Drained)
            && self.written.is_none()
            && self.replies.is_empty()
    }
}

impl CrawlTask {
    pub(super) fn command(&mut self, command: Command) {
        match command {
            Command::Run { record, hosts, runs, reply } => {
                let _ = reply.send(self.begin(*record, hosts, runs));
            }
            Command::End { crawl, goal, reply } => self.end(crawl, goal, Some(reply)),
            Command::Resume { crawl, reply } => {
                let _ = reply.send(self.resume(crawl));
            }
            Command::Change { crawl, change, reply } => {
                if let Err((reply, error)) = self.change(crawl, *change, reply) {
                    let _ = reply.send(Err(error));
                }
            }
            Command::Fetch { start, reply } => self.begin_single(*start, reply),
            Command::Again { crawl, visits, reply } => {
                let _ = reply.send(self.again(crawl, visits));
            }
            Command::Shutdown { drain_ms } => self.shut_down(drain_ms),
        }
    }

    /// Ends all crawls. Those that were ending before have no more time than the others.
    fn shut_down(&mut self, drain_ms: u64) {
        self.is_shutting_down = true;
        self.stop_singles();
        let deadline = self.clock.now().plus_ms(drain_ms);
        let running: Vec<CrawlNo> = self.crawls.keys().copied().collect();
        for crawl in running {
            self.end(crawl, Goal::Keep, None);
            let ending = self.crawls.get_mut(&crawl).and_then(|it| it.ending.as_mut());
            if let Some(ending) = ending {
                ending.deadline = ending.deadline.min(deadline);
            }
        }
    }

    fn begin(
        &mut self,
        record: CrawlRecord,
        hosts: KnownHosts,
        runs: Vec<Vec<KeptRun>>,
    ) -> Result<(), RequestError> {
        let crawl = record.crawl.no;
        if self.is_shutting_down {
            return Err(RequestError::Stopped);
        }
        if self.crawls.contains_key(&crawl) {
            return Err(RequestError::WrongState(format!("{crawl} is running already")));
        }
        let context = CrawlContext::to_run(record.crawl, record.key_seed)?;
        context.learned.traps.go_on(self.store.traps(crawl)?);
        // Not before it is certain that it runs: a crawl that is refused keeps its state and its fault.
        self.store.set_state(crawl, CrawlState::Running, self.clock.wall())?;
        // Before its first request: after a kill nobody else knows that there was one.
        self.store.set_asking(crawl, Some(Asking::Now))?;
        if record.state == (CrawlState::Paused { why: PauseReason::EngineStopped }) {
            // Only a user starts a crawl that was set aside: it is tried again like any other.
            self.store.set_fault(crawl, None)?;
        }
        for (walk, runs) in context.walks.iter().zip(&runs) {
            walk.looks.go_on(runs);
        }
        let now = self.clock.now();
        let delay_ms = context.crawl.politeness.delay_ms;
        let wall = self.clock.wall();
        // A killed process did not write down its last requests: they may have gone to any host.
        let asked_at = hosts.asked_lately.anybody_until;
        let quiet_until = asked_at.map_or(now, |at| delay_over(at, delay_ms, now, wall));
        let obeys = context.crawl.politeness.robots != RobotsRules::Ignore;
        self.owe_delays(hosts.asked_lately.hosts, obeys);
        let hosts = hosts
            .own
            .into_iter()
            .map(|row| HostStart {
                queued: row.queued,
                pages: row.pages,
                delay_ms: row.delay_ms,
                next_at: next_at(&row, delay_ms, now, wall),
                host: row.host,
            })
            .collect();
        let refused: Vec<u64> = runs.iter().map(|runs| refused_ids(runs)).collect();
        self.frontier.start(CrawlStart {
            crawl,
            politeness: context.crawl.politeness.clone(),
            pages_max: context.crawl.limits.pages_max,
            pages_done: record.stats.pages,
            hosts,
            linear: open_walks(&context.crawl, runs, now),
            quiet_until,
        });
        self.frontier.ids_refused_earlier(crawl, &refused);
        self.frontier.limit_ids(crawl, context.crawl.limits.ids_per_host_max);
        let running = Running {
            context: Arc::new(context),
            state: CrawlState::Running,
            state_since: now,
            meter: RateMeter::new(now, record.stats.pages),
            stats: record.stats,
            accounted: now,
            outstanding: 0,
            changed_delays: HashSet::new(),
            ending: None,
            letting_in: LettingIn::default(),
            ids_refused: 0,
            walks: WalksShown::default(),
            patience: Patience::default(),
        };
        self.crawls.insert(crawl, running);
        self.has_begun(now);
        self.show();
        Ok(())
    }

    /// Keeps the distance to hosts that were asked before this engine began. `obeys`: whether the crawl that
    /// asks them next obeys robots.txt.
    pub(crate) fn owe_delays(&mut self, hosts: Vec<AskedHost>, obeys: bool) {
        let (now, wall) = (self.clock.now(), self.clock.wall());
        for AskedHost { row, delay_ms, wait_until, .. } in hosts {
            let next_at = next_at(&row, delay_ms, now, wall);
            // A crawl that ignores robots.txt has a delay of its own.
            let delay_ms = row.delay_ms.filter(|_| obeys).unwrap_or(0);
            self.frontier.asked_earlier(&row.host, AskedEarlier { next_at, delay_ms });
            if let Some(until) = wait_until {
                self.frontier.asked_to_wait(&row.host, self.moment_of(until));
            }
        }
    }

    /// Lets a crawl's visits under way end, then writes its new state.
    pub(crate) fn end(&mut self, crawl: CrawlNo, goal: Goal, reply: Option<Reply>) {
        let Some(running) = self.crawls.get_mut(&crawl) else {
            if let Some(reply) = reply {
                let _ =
                    reply.send(Err(RequestError::WrongState(format!("{crawl} is not running"))));
            }
            return;
        };
        self.frontier.pause(crawl);
        let deadline = self.clock.now().plus_ms(DRAIN_MS_MAX);
        let ending = running.ending.get_or_insert(EndingCrawl {
            goal,
            deadline,
            written: None,
            replies: Vec::new(),
        });
        // A later request for more wins: a stop ends a pause that has not happened yet. What was asked
        // for outlives the end of the process.
        let is_replaced = match ending.goal {
            Goal::Finish(_) => false,
            Goal::Pause(PauseReason::Asked) => !matches!(goal, Goal::Keep),
            Goal::Pause(_) | Goal::Keep => true,
        };
        if ending.written.is_none() && is_replaced {
            ending.goal = goal;
        }
        ending.replies.extend(reply);
    }

    pub(super) fn resume(&mut self, crawl: CrawlNo) -> Result<(), RequestError> {
        let running = self
            .crawls
            .get_mut(&crawl)
            .ok_or_else(|| RequestError::WrongState(format!("{crawl} is not running here")))?;
        match (&running.ending, running.state) {
            (Some(ending), _) if !matches!(ending.goal, Goal::Pause(_)) => {
                return Err(RequestError::WrongState(format!("{crawl} is ending")));
            }
            (None, CrawlState::Running) => return Ok(()),
            _ => {}
        }
        // Who asked for the pause is told that somebody else overtook it, not left without an answer.
        let overtaken = running.ending.take().map_or(Vec::new(), |ending| ending.replies);
        for reply in overtaken {
            let what = format!("{crawl} was resumed before it had paused");
            let _ = reply.send(Err(RequestError::WrongState(what)));
        }
        running.state = CrawlState::Running;
        running.state_since = self.clock.now();
        running.accounted = self.clock.now();
        running.ids_refused = 0;
        // The time of the pause is no wait for an answer.
        running.patience = Patience::default();
        self.frontier.resume(crawl);
        self.backlog.push_back(CommitWork::State { crawl, state: CrawlState::Running });
        self.show();
        Ok(())
    }

    /// Changes the settings of a crawl. They hold at once, so that the next change builds on them; the
    /// writer answers when they are durable. A change that is refused is given back.
    fn change(
        &mut self,
        crawl: CrawlNo,
        change: CrawlChange,
        reply: Reply,
    ) -> Result<(), (Reply, RequestError)> {
        let Some(running) = self.crawls.get_mut(&crawl) else {
            let what = format!("{crawl} is not running here");
            return Err((reply, RequestError::WrongState(what)));
        };
        let before = &running.context.crawl.limits;
        let (per_host, per_site) = (before.urls_per_host_max, before.urls_per_site_max);
        let context = match running.context.changed(change) {
            Ok(context) => context,
            Err(error) => return Err((reply, error)),
        };
        let kept = Box::new(context.crawl.clone());
        self.backlog.push_back(CommitWork::Change { crawl: kept, reply });
        self.frontier.set_politeness(crawl, context.crawl.politeness.clone());
        self.frontier.set_pages_max(crawl, context.crawl.limits.pages_max);
        self.frontier.limit_ids(crawl, context.crawl.limits.ids_per_host_max);
        let limits = &context.crawl.limits;
        let is_raised = limits.urls_per_host_max > per_host || limits.urls_per_site_max > per_site;
        running.context = Arc::new(context);
        if is_raised {
            // Behind the change: the writer goes by the limits that it knows.
            running.letting_in.begin();
            self.backlog.push_back(CommitWork::LetIn { crawl });
        }
        Ok(())
    }

    /// The frontier has nothing left of a crawl.
    pub(super) fn drained(&mut self, crawl: CrawlNo, why: FinishReason) {
        let running = self.crawls.get_mut(&crawl);
        if let Some(why) = running.and_then(|running| running.letting_in.drained(why)) {
            self.end(crawl, Goal::Finish(why), None);
        }
    }

    /// Links that the budgets of a crawl had left out are queued, as many as one step takes.
    pub(super) fn let_in(&mut self, crawl: CrawlNo, effects: Effects) -> Result<(), EngineError> {
        let has_more = effects.more_held.contains(&crawl);
        let is_any = !effects.queued.is_empty();
        self.step_written(effects, &Load::default());
        let Some(running) = self.crawls.get_mut(&crawl) else { return Ok(()) };
        if is_any && running.ending.take_if(|ending| ending.is_for_want_of_links()).is_some() {
            // The budget was raised in the moment in which it came to its end.
            self.frontier.resume(crawl);
        }
        if has_more {
            running.letting_in.begin();
        }
        let drained = running.letting_in.ended(is_any);
        if has_more {
            self.write(CommitWork::LetIn { crawl })?;
        }
        if let Some(why) = drained {
            self.end(crawl, Goal::Finish(why), None);
        }
        Ok(())
    }

    fn again(&mut self, crawl: CrawlNo, visits: Vec<Visit>) -> Result<(), RequestError> {
        if !self.crawls.contains_key(&crawl) {
            return Err(RequestError::WrongState(format!("{crawl} is not running here")));
        }
        let again = visits.into_iter().map(|visit| LedgerEvent::AskedAgain(Box::new(visit)));
        self.write(CommitWork::Events(again.collect())).map_err(|_| RequestError::Stopped)
    }

    pub(super) fn limit_reached(&self, crawl: CrawlNo, now: Moment) -> Option<FinishReason> {
        let running = self.crawls.get(&crawl)?;
        if running.ending.is_some() || running.state != CrawlState::Running {
            return None;
        }
        let limits = &running.context.crawl.limits;
        let active_ms = running.stats.active_ms + now.ms_since(running.accounted);
        let reached = |limit: Option<u64>, value: u64| limit.is_some_and(|limit| value >= limit);
        if reached(limits.duration_ms_max, active_ms) {
            Some(FinishReason::MaxDuration)
        } else if reached(limits.bytes_max, running.stats.wire_bytes) {
            Some(FinishReason::MaxBytes)
        } else if reached(limits.errors_max, running.stats.errors()) {
            Some(FinishReason::MaxErrors)
        } else {
            None
        }
    }

    /// Writes the new state of a crawl whose visits under way have ended, or had their time.
    pub(super) fn finish_ending(&mut self, crawl: CrawlNo, now: Moment) -> Result<(), EngineError> {
        let Some(running) = self.crawls.get_mut(&crawl) else { return Ok(()) };
        let Some(ending) = &mut running.ending else { return Ok(()) };
        if ending.written.is_some() {
            return Ok(());
        }
        if now < ending.deadline {
            self.drop_parse_work(crawl, now);
        }
        let Some(running) = self.crawls.get_mut(&crawl) else { return Ok(()) };
        // A page that takes long to parse is not waited for: its visit stays queued.
        let is_drained = running.outstanding <= self.parse.parsed_since(crawl, stuck_since(now));
        let Some(ending) = &mut running.ending else { return Ok(()) };
        if !is_drained && now < ending.deadline {
            return Ok(());
        }
        let state = match ending.goal {
            Goal::Finish(why) => {
                let has_rest = self.frontier.has_ids_left_out(crawl);
                CrawlState::Finished { why: final_reason(why, &running.stats, has_rest) }
            }
            Goal::Pause(why) => CrawlState::Paused { why },
            Goal::Keep => running.state,
        };
        ending.written = Some(state);
        // A paused crawl goes on in this process.
        let has_asked = !matches!(ending.goal, Goal::Pause(_));
        self.account(crawl, now, 0)?;
        self.note_last_requests(crawl, now)?;
        if has_asked {
            self.write(CommitWork::HasAsked { crawl })?;
        }
        self.write(CommitWork::State { crawl, state })
    }

    /// Writes down when hosts were asked that are still owed a delay. Visits that are under way or given
    /// back to the queue do not say so themselves, and the next process may follow at once.
    fn note_last_requests(&mut self, crawl: CrawlNo, now: Moment) -> Result<(), EngineError> {
        let wall = self.clock.wall();
        let noted = |(host, at)| {
            let at = Timestamp(wall.0.saturating_sub(now.ms_since(at)));
            LedgerEvent::HostNoted { crawl, host, note: HostNote::LastRequest(at) }
        };
        let noted: Vec<_> = self.frontier.asked_lately(crawl, now).into_iter().map(noted).collect();
        match noted.is_empty() {
            true => Ok(()),
            false => self.write(CommitWork::Events(noted)),
        }
    }

    pub(super) fn state_written(&mut self, crawl: CrawlNo, state: CrawlState) {
        let Some(running) = self.crawls.get_mut(&crawl) else { return };
        running.state = state;
        running.state_since = self.clock.now();
        // An older state may still be on its way when the next ending begins: a crawl that is resumed
        // and stopped at once is running first, and then over.
        let Some(ending) = running.ending.take_if(|ending| ending.written == Some(state)) else {
            return;
        };
        for reply in ending.replies {
            let _ = reply.send(Ok(()));
        }
        self.show();
        // A paused crawl stays here: it can be resumed from another terminal, and what the machine
        // paused goes on by itself. Its visits that are still under way belong to it then.
        let stays = matches!(ending.goal, Goal::Pause(_));
        if !stays || self.is_shutting_down {
            self.leave(crawl);
        }
    }

    /// The writer has paused a crawl whose rows or bodies cannot be read or written. It leaves at once: what it
    /// had under way is still queued, and is read again from the store when it is resumed.
    pub(super) fn set_aside(&mut self, crawl: CrawlNo) {
        let Some(running) = self.crawls.get_mut(&crawl) else { return };
        running.state = CrawlState::Paused { why: PauseReason::EngineStopped };
        running.state_since = self.clock.now();
        for reply in running.ending.take().map_or(Vec::new(), |ending| ending.replies) {
            let _ = reply.send(Ok(()));
        }
        self.show();
        self.leave(crawl);
    }

    fn leave(&mut self, crawl: CrawlNo) {
        self.drop_all_parse_work(crawl);
        self.crawls.remove(&crawl);
        self.frontier.remove(crawl);
        self.prerequisites.forget(crawl);
    }
}

/// When a host may be asked again, by what its row says about the last time.
fn next_at(row: &HostRow, delay_ms: u64, now: Moment, wall: Timestamp) -> Moment {
    let delay_ms = row.delay_ms.unwrap_or(delay_ms);
    row.last_request_at.map_or(now, |last| delay_over(last, delay_ms, now, wall))
}

/// When a delay is over that began with a request at this time.
pub(crate) fn delay_over(
    asked_at: Timestamp,
    delay_ms: u64,
    now: Moment,
    wall: Timestamp,
) -> Moment {
    let since_ms = wall.0.saturating_sub(asked_at.0);
    now.plus_ms(delay_ms.saturating_sub(since_ms))
}

/// A crawl that is drained without one good page never really started.
/// Ids that do not exist are an answer, too. One that left links out did not come to their end.
fn final_reason(why: FinishReason, stats: &CrawlStats, has_ids_left_out: bool) -> FinishReason {
    let is_in_vain = stats.ok == 0 && stats.ids.missing == 0;
    match why {
        FinishReason::Drained if is_in_vain => FinishReason::NoStart,
        FinishReason::Drained if has_ids_left_out || !stats.left_out().is_empty() => {
            FinishReason::Budget
        }
        why => why,
    }
}
