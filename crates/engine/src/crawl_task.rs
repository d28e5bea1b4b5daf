//! Owns the frontier: turns its decisions into work for the stages, and what the stages report into
//! events for it. The only place where crawls begin, change and end.

mod lifecycle;
mod waits;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use telusur_frontier::{Frontier, IdEnd, Next, PageCost};
use telusur_ledger::{
    CrawlRecord, Dequeued, Effects, Ending, Event as LedgerEvent, HostNote, KeptRun, NewlyQueued,
    Store, VisitOutcome,
};
use telusur_model::{
    Clock, CrawlNo, CrawlState, CrawlStats, FetchOutcome, Fetched, FinishReason, Host, HostRow,
    Moment, PauseReason, Progress, Purpose, Reason, RobotsRules, Timestamp, Visit,
};
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use self::lifecycle::DRAIN_MS_MAX;
use self::lifecycle::EndingCrawl;
pub(crate) use self::lifecycle::delay_over;
pub(crate) use self::waits::Waits;
use crate::asked_before::AskedLately;
use crate::change::CrawlChange;
use crate::commit_stage::{CommitWork, Written};
use crate::context::CrawlContext;
use crate::error::{EngineError, RequestError};
use crate::faults::Faults;
use crate::fetch_stage::FetchStage;
use crate::followers::Followers;
use crate::holding_back::HoldingBack;
use crate::id_visits::Hop;
use crate::index_follower::INDEX;
use crate::letting_in::LettingIn;
use crate::parse_costs::unparsable;
use crate::parse_queue::ParseSender;
use crate::parse_stage::ParseWork;
use crate::patience::Patience;
use crate::pipeline::{Block, Load, Pipeline};
use crate::prerequisites::Prerequisites;
use crate::progress::{RateMeter, WalksShown, snapshot};
use crate::single_fetch::{FetchReply, FetchStart, Singles};
use crate::supervision::{Part, Supervisor};

/// Pages that may be stored and not yet searchable before the crawl waits: what the index takes in
/// within little more than a second. A page is to be found within two.
const FOLLOWER_LAG_MAX: u64 = 800;
/// How often limits are checked and progress is shown.
const TICK: Duration = Duration::from_millis(100);
/// How often running time and learned delays are written down.
const ACCOUNT_MS: u64 = 1000;
/// Ids in a row that may not be asked, after which a linear crawl waits for the user: a range of a
/// billion ids is refused one by one, without a request that would slow it down.
const IDS_REFUSED_MAX: u32 = 10_000;
/// Finished crawls whose last snapshot is still shown.
const FINISHED_SHOWN_MAX: usize = 100;

/// What the stages and the users report.
pub(crate) enum Event {
    Fetched(Box<Arrival>),
    Requested {
        host: Host,
        at: Moment,
        is_again: bool,
    },
    Addressed {
        host: Host,
        address: Option<IpAddr>,
    },
    /// A page of a host was costly to parse, or is of a host whose pages were.
    Parsed {
        host: Host,
        cost: PageCost,
    },
    Written(Written),
    Command(Command),
    /// Ids of a walk look alike: how does its template answer for one that cannot exist?
    ProbeWalk {
        crawl: CrawlNo,
        walk: usize,
    },
    Broken(EngineError),
}

impl Event {
    /// The crawl that it is about, if it is about one.
    fn crawl(&self) -> Option<CrawlNo> {
        match self {
            Self::Fetched(arrival) => Some(arrival.visit.crawl),
            Self::Command(Command::Run { record, .. }) => Some(record.crawl.no),
            Self::Command(
                Command::End { crawl, .. }
                | Command::Resume { crawl, .. }
                | Command::Change { crawl, .. }
                | Command::Again { crawl, .. },
            )
            | Self::ProbeWalk { crawl, .. } => Some(*crawl),
            Self::Written(
                Written::Robots { crawl, .. }
                | Written::LetIn { crawl, .. }
                | Written::Refill { crawl, .. }
                | Written::SetAside { crawl }
                | Written::State { crawl, .. },
            ) => Some(*crawl),
            Self::Written(Written::Step { .. } | Written::Space { .. })
            | Self::Command(Command::Shutdown { .. } | Command::Fetch { .. })
            | Self::Requested { .. }
            | Self::Addressed { .. }
            | Self::Parsed { .. }
            | Self::Broken(_) => None,
        }
    }
}

/// A visit that is back from the web.
pub(crate) struct Arrival {
    pub(crate) visit: Visit,
    pub(crate) fetched: Fetched,
}

pub(crate) type Reply = oneshot::Sender<Result<(), RequestError>>;

/// Hosts as the store knows them when a crawl starts or goes on.
pub(crate) struct KnownHosts {
    /// Those of the crawl.
    pub(crate) own: Vec<HostRow>,
    /// Those that other crawls asked lately.
    pub(crate) asked_lately: AskedLately,
}

/// What users ask for.
pub(crate) enum Command {
    Run {
        record: Box<CrawlRecord>,
        hosts: KnownHosts,
        /// What is known of the ids of each walk.
        runs: Vec<Vec<KeptRun>>,
        reply: Reply,
    },
    End {
        crawl: CrawlNo,
        goal: Goal,
        reply: Reply,
    },
    Resume {
        crawl: CrawlNo,
        reply: Reply,
    },
    Change {
        crawl: CrawlNo,
        change: Box<CrawlChange>,
        reply: Reply,
    },
    /// Somebody wants a page that is stored nowhere.
    Fetch {
        start: Box<FetchStart>,
        reply: FetchReply,
    },
    /// URLs that failed join the queue again.
    Again {
        crawl: CrawlNo,
        visits: Vec<Visit>,
        reply: Reply,
    },
    /// Ends everything in order, within this time. Crawls that were running go on at the next start.
    Shutdown {
        drain_ms: u64,
    },
}

/// What becomes of a crawl once its visits under way have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    Finish(FinishReason),
    Pause(PauseReason),
    /// Its state stays as it is: the process ends, the crawl does not.
    Keep,
}

pub(crate) struct CrawlTask {
    pub(crate) frontier: Frontier,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) fetch: FetchStage,
    pub(crate) parse: ParseSender,
    pub(crate) commit: SyncSender<CommitWork>,
    pub(crate) events: mpsc::Receiver<Event>,
    pub(crate) shown: watch::Sender<BTreeMap<CrawlNo, Progress>>,
    pub(crate) under_way: Arc<AtomicUsize>,
    pub(crate) crawls: BTreeMap<CrawlNo, Running>,
    /// Work for the writer that found its channel full.
    pub(crate) backlog: VecDeque<CommitWork>,
    pub(crate) prerequisites: Prerequisites,
    pub(crate) singles: Singles,
    pub(crate) followers: Followers,
    pub(crate) pipeline: Pipeline,
    pub(crate) is_shutting_down: bool,
    pub(crate) waits: Waits,
    pub(crate) holding_back: Arc<HoldingBack>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) supervisor: Supervisor,
}

/// A crawl in this process.
pub(crate) struct Running {
    pub(crate) context: Arc<CrawlContext>,
    state: CrawlState,
    /// Since when, by this process's clock.
    state_since: Moment,
    pub(crate) stats: CrawlStats,
    meter: RateMeter,
    /// Up to here the running time is written down.
    accounted: Moment,
    /// Visits handed out and not yet durable.
    pub(crate) outstanding: usize,
    /// Hosts whose delay has changed since it was last written.
    changed_delays: HashSet<Host>,
    ending: Option<EndingCrawl>,
    /// Links that its budgets left out are being let in: it has not come to its end before that.
    letting_in: LettingIn,
    /// Ids in a row that may not be asked.
    ids_refused: u32,
    /// What was last shown of its walks.
    walks: WalksShown,
    /// How long it waits for nothing but `Retry-After`.
    pub(crate) patience: Patience,
}

impl Running {
    /// Whether it asks for pages, and is not about to end.
    fn is_running(&self) -> bool {
        self.ending.is_none() && self.state == CrawlState::Running
    }

    /// Visits are durable, or stay queued. Some may belong to an earlier run of the crawl, which ended
    /// without waiting for them: this run has never counted them. It may then end before the last visit
    /// of its own, like one that waits in vain: that visit stays queued.
    pub(crate) fn left(&mut self, visits: usize) {
        self.outstanding = self.outstanding.saturating_sub(visits);
    }
}

impl CrawlTask {
    pub(crate) async fn run(mut self) -> Result<(), EngineError> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let watched = self.supervisor.clone();
        loop {
            let wake = self.hand_out()?;
            if self.is_shutting_down && self.crawls.is_empty() && self.backlog.is_empty() {
                self.note_singles()?;
                return self.finish_followers().await;
            }
            let pause_ms = wake.map_or(u64::MAX, |at| at.ms_since(self.clock.now()));
            let pause = tokio::time::sleep(Duration::from_millis(pause_ms.min(60_000)));
            tokio::select! {
                biased;
                event = self.events.recv() => {
                    let Some(event) = event else { return Err(EngineError::StageDied("event")) };
                    self.handle_watched(event)?;
                    while let Ok(event) = self.events.try_recv() {
                        self.handle_watched(event)?;
                    }
                    if let Some(part) = self.supervisor.dead() {
                        return Err(self.cause_of_death(part));
                    }
                }
                part = watched.death() => return Err(self.cause_of_death(part)),
                _ = tick.tick() => self.tick()?,
                () = pause, if wake.is_some() => {}
            }
        }
    }

    /// Why a part has died: it may have said so before it ended.
    fn cause_of_death(&mut self, part: Part) -> EngineError {
        while let Ok(event) = self.events.try_recv() {
            if let Event::Broken(error) = event {
                return error;
            }
        }
        part.into()
    }

    /// Asks the frontier until it has nothing more for now. Gives the moment to ask again.
    fn hand_out(&mut self) -> Result<Option<Moment>, EngineError> {
        self.look_for_robots_again()?;
        self.send_backlog()?;
        loop {
            let is_full = self.apply_back_pressure();
            if !self.backlog.is_empty() || self.followers.slow_crawls(FOLLOWER_LAG_MAX) || is_full {
                return Ok(None);
            }
            match self.frontier.next(self.clock.now()) {
                Next::Wait(until) => return Ok(until),
                Next::Visit(visit) => {
                    let faults = Arc::clone(&self.faults);
                    faults.watch(&[visit.crawl], || self.dispatch(visit))?;
                }
                Next::NeedAddress { crawl, url } => match self.context_of(crawl) {
                    Some(context) => self.fetch.resolve(url, context),
                    None => self.frontier.address(&url.host(), None, self.clock.now()),
                },
                Next::NeedRobots { crawl, url } => self.need_robots(crawl, &url)?,
                // The one URL of a single fetch is in memory.
                Next::NeedUrls { crawl, host, region, .. } if Singles::is_single(crawl) => {
                    self.frontier.refill(crawl, &host, region, Vec::new(), true);
                }
                Next::NeedUrls { crawl, host, region, after, max } => {
                    self.write(CommitWork::Refill { crawl, host, region, after, max })?;
                }
                Next::Finished { crawl, why } => self.drained(crawl, why),
            }
        }
    }

    /// Tells the frontier whose pages take up their share of the pipeline. Says whether there is no
    /// room for anybody.
    fn apply_back_pressure(&mut self) -> bool {
        let running = self.crawls.values().filter(|running| running.is_running()).count();
        for block in self.pipeline.blocks(running) {
            match block {
                Block::Site(site, is_blocked) => {
                    tracing::debug!(%site, is_blocked, "pages of a site wait for the parser");
                    self.frontier.block_site(&site, is_blocked);
                }
                Block::Crawl(crawl, is_blocked) => {
                    tracing::debug!(%crawl, is_blocked, "pages of a crawl wait for the parser");
                    self.frontier.block_crawl(crawl, is_blocked);
                }
            }
        }
        self.pipeline.is_full(running)
    }

    fn dispatch(&mut self, mut visit: Visit) -> Result<(), EngineError> {
        if Singles::is_single(visit.crawl) {
            self.dispatch_single(visit);
            return Ok(());
        }
        let now = self.clock.now();
        let Some(running) = self.crawls.get_mut(&visit.crawl) else {
            self.frontier.skipped(&visit, now);
            return Ok(());
        };
        running.outstanding += 1;
        self.pipeline.enter(&visit);
        self.under_way.fetch_add(1, Ordering::AcqRel);
        running.context.identify(&mut visit, self.clock.wall());
        let refusal = refusal(&visit, &running.context, &mut self.prerequisites)
            .or_else(|| unparsable(&visit, &self.frontier));
        if let Some(how) = refusal {
            if visit.purpose.is_prerequisite() {
                return self.prerequisite_refused(visit);
            }
            running.ids_refused += u32::from(visit.place.id().is_some());
            let is_in_vain = running.ids_refused >= IDS_REFUSED_MAX;
            let ending = Ending {
                id: running.context.id_refused(&visit, &how),
                how,
                at: self.clock.wall(),
                requested_at: None,
                found: Vec::new(),
                other_schemes: 0,
                visit,
                packed: None,
            };
            self.frontier.skipped(&ending.visit, now);
            if is_in_vain {
                self.end(ending.visit.crawl, Goal::Pause(PauseReason::Refused), None);
            }
            return self.write(CommitWork::Ending { ending: Box::new(ending), body_bytes: 0 });
        }
        self.pipeline.begin_fetch(&visit);
        self.fetch.visit(visit, &running.context);
        Ok(())
    }

    fn handle_watched(&mut self, event: Event) -> Result<(), EngineError> {
        let faults = Arc::clone(&self.faults);
        let of_crawl: Vec<CrawlNo> = event.crawl().into_iter().collect();
        faults.watch(&of_crawl, || self.handle(event))
    }

    fn handle(&mut self, event: Event) -> Result<(), EngineError> {
        match event {
            Event::Fetched(arrival) => return self.fetched(*arrival),
            Event::Requested { host, at, is_again: false } => self.frontier.requested(&host, at),
            Event::Requested { host, at, is_again: true } => {
                self.frontier.requested_again(&host, at);
            }
            Event::Addressed { host, address } => {
                self.frontier.address(&host, address, self.clock.now());
            }
            Event::Parsed { host, cost } => self.parsed(&host, cost),
            Event::Written(written) => self.written(written)?,
            Event::Command(command) => self.command(command),
            Event::ProbeWalk { crawl, walk } => self.probe_walk(crawl, walk),
            Event::Broken(error) => return Err(error),
        }
        Ok(())
    }

    fn fetched(&mut self, arrival: Arrival) -> Result<(), EngineError> {
        let Arrival { visit, mut fetched } = arrival;
        let body_bytes = fetched.body_bytes();
        self.pipeline.end_fetch(&visit, &fetched);
        if Singles::is_single(visit.crawl) {
            self.single_fetched(visit, fetched);
            return Ok(());
        }
        let Some(running) = self.crawls.get_mut(&visit.crawl) else {
            // The crawl ended without waiting for it: the visit stays queued. Its host is free again,
            // for others too, and what it said about the network counts like any other answer.
            self.pipeline.leave_one(&visit, body_bytes);
            self.under_way.fetch_sub(1, Ordering::AcqRel);
            self.frontier.finished(&visit, &fetched, self.clock.now());
            return Ok(());
        };
        if visit.place.id().is_some() {
            running.ids_refused = 0;
        }
        let host = visit.url.host();
        if matches!(fetched.outcome, FetchOutcome::Page(_) | FetchOutcome::Redirected { .. }) {
            self.waits.answered(visit.crawl, &host, &visit.url);
        }
        let delay_before = self.frontier.host_delay_ms(visit.crawl, &host);
        let disposition = self.frontier.finished(&visit, &fetched, self.clock.now());
        if self.frontier.host_delay_ms(visit.crawl, &host) != delay_before {
            running.changed_delays.insert(host);
        }
        let context = Arc::clone(&running.context);
        if visit.place.id().is_some() {
            fetched.outcome = match self.hop(&visit, &context, fetched.outcome) {
                Hop::Followed => return Ok(()),
                Hop::Ended(outcome) => outcome,
            };
        } else if visit.purpose == Purpose::Page
            && matches!(&fetched.outcome, FetchOutcome::Page(page) if page.status == 200)
            && context.crawl.politeness.robots != RobotsRules::Ignore
        {
            self.page_seen(visit.crawl, &visit.url);
        }
        let is_cost_watched = self.frontier.watches_cost(&visit.url.host());
        let work = ParseWork { visit, fetched, disposition, context, is_cost_watched };
        // The queue needs no bound of its own: it holds no more than the pipeline does.
        self.parse.send(work, self.clock.now());
        Ok(())
    }

    fn written(&mut self, written: Written) -> Result<(), EngineError> {
        match written {
            Written::Step { effects, load, prerequisites } => {
                self.step_written(effects, &load);
                for (visit, end) in prerequisites {
                    self.prerequisite_ended(visit, end)?;
                }
            }
            Written::LetIn { crawl, effects } => self.let_in(crawl, effects)?,
            Written::Refill { crawl, host, region, queued, exhausted } => {
                // After a restart the queue alone knows who asked us to wait.
                let asked = queued.iter().filter(|queued| queued.asked_to_wait);
                let until = asked.filter_map(|queued| queued.due).max();
                let visits = queued.into_iter().map(|queued| self.with_due(queued)).collect();
                if let Some(until) = until {
                    self.frontier.asked_to_wait(&host, self.moment_of(until));
                }
                self.frontier.refill(crawl, &host, region, visits, exhausted);
            }
            Written::State { crawl, state } => self.state_written(crawl, state),
            Written::SetAside { crawl } => self.set_aside(crawl),
            Written::Robots { crawl, url, stored } => self.robots_stored(crawl, &url, stored)?,
            Written::Space { free_bytes, is_low } => self.space_seen(free_bytes, is_low),
        }
        Ok(())
    }

    fn step_written(&mut self, effects: Effects, load: &Load) {
        if !effects.stored.is_empty() {
            self.followers.wake(&effects.stored);
        }
        // Before what is gone: a link may be queued and taken out in one step.
        for queued in effects.queued {
            if self.crawls.contains_key(&queued.visit.crawl) {
                let (visit, due) = self.with_due(queued);
                self.frontier.discovered(visit, due);
            }
        }
        for gone in &effects.dequeued {
            let Dequeued { crawl, place, stored_page, .. } = *gone;
            match gone.id_state {
                Some(state) => {
                    let end = IdEnd { state, stored_page };
                    self.frontier.committed_id(crawl, &gone.host, place, end);
                }
                None => self.frontier.committed(crawl, &gone.host, place, stored_page),
            }
        }
        for (crawl, stats) in effects.stats {
            if let Some(running) = self.crawls.get_mut(&crawl) {
                running.stats = stats;
            }
        }
        for (crawl, visits) in load.visits() {
            if let Some(running) = self.crawls.get_mut(&crawl) {
                running.left(visits);
            }
        }
        self.pipeline.leave(load);
        tracing::trace!(crawls = load.crawls().len(), "step acknowledged");
    }

    /// The store knows due times by the calendar, the frontier by its own clock.
    fn with_due(&self, queued: NewlyQueued) -> (Visit, Option<Moment>) {
        (queued.visit, queued.due.map(|due| self.moment_of(due)))
    }

    pub(crate) fn moment_of(&self, due: Timestamp) -> Moment {
        self.clock.now().plus_ms(due.0.saturating_sub(self.clock.wall().0))
    }

    fn tick(&mut self) -> Result<(), EngineError> {
        let now = self.clock.now();
        self.watch_machine(now)?;
        self.check_singles(now);
        let crawls: Vec<CrawlNo> = self.crawls.keys().copied().collect();
        for crawl in crawls {
            self.account(crawl, now, ACCOUNT_MS)?;
            if let Some(why) = self.limit_reached(crawl, now) {
                self.end(crawl, Goal::Finish(why), None);
            } else if self.is_cut_off(crawl, now) {
                self.cut_off(crawl, now);
            } else {
                self.check_patience(crawl, now)?;
            }
            self.finish_ending(crawl, now)?;
        }
        self.show();
        Ok(())
    }

    fn account(
        &mut self,
        crawl: CrawlNo,
        now: Moment,
        at_least_ms: u64,
    ) -> Result<(), EngineError> {
        let Some(running) = self.crawls.get_mut(&crawl) else { return Ok(()) };
        let ms = now.ms_since(running.accounted);
        if running.state != CrawlState::Running || ms < at_least_ms || ms == 0 {
            return Ok(());
        }
        running.accounted = now;
        running.meter.sample(now, running.stats.pages);
        let changed = std::mem::take(&mut running.changed_delays);
        let mut events = vec![LedgerEvent::CrawlRan { crawl, active_ms: ms }];
        for host in changed {
            let note = HostNote::Delay(self.frontier.host_delay_ms(crawl, &host));
            events.push(LedgerEvent::HostNoted { crawl, host, note });
        }
        self.write(CommitWork::Events(events))
    }

    /// Hands what is stored to the followers, and ends them.
    async fn finish_followers(&mut self) -> Result<(), EngineError> {
        let followers = std::mem::take(&mut self.followers);
        let failed = tokio::task::spawn_blocking(move || followers.finish()).await;
        for (follower, error) in failed.unwrap_or_default() {
            tracing::error!(follower, error, "it cannot follow the store; it is made good later");
        }
        Ok(())
    }

    /// The delay of a host has changed: written down with the next account.
    pub(crate) fn note_delay(&mut self, crawl: CrawlNo, host: Host) {
        if let Some(running) = self.crawls.get_mut(&crawl) {
            running.changed_delays.insert(host);
        }
    }

    pub(crate) fn write(&mut self, work: CommitWork) -> Result<(), EngineError> {
        self.backlog.push_back(work);
        self.send_backlog()
    }

    /// Hands work to the writer without ever waiting for it: the writer may be waiting for us.
    fn send_backlog(&mut self) -> Result<(), EngineError> {
        while let Some(work) = self.backlog.pop_front() {
            match self.commit.try_send(work) {
                Ok(()) => {}
                Err(TrySendError::Full(work)) => {
                    self.backlog.push_front(work);
                    return Ok(());
                }
                Err(TrySendError::Disconnected(_)) => return Err(EngineError::StageDied("commit")),
            }
        }
        Ok(())
    }

    fn show(&mut self) {
        let now = self.clock.now();
        for (crawl, running) in &mut self.crawls {
            if let Some(linear) = self.frontier.linear(*crawl) {
                running.walks.look(linear, running.state, now);
            }
        }
        let (index, others): (Vec<_>, Vec<_>) =
            self.followers.lags().partition(|(name, _)| *name == INDEX);
        let index_lag = index.first().map_or(0, |(_, lag)| *lag);
        let behind = others.into_iter().filter(|(_, lag)| *lag > 0);
        let followers_behind: Vec<_> = behind.map(|(name, lag)| (name.to_owned(), lag)).collect();
        self.shown.send_modify(|shown| {
            for (crawl, running) in &self.crawls {
                let mut stats = running.stats.clone();
                if running.state == CrawlState::Running {
                    stats.active_ms += now.ms_since(running.accounted);
                }
                let limits = &running.context.crawl.limits;
                let mut snapshot =
                    snapshot(*crawl, running.state, &stats, limits, &running.meter, &self.frontier);
                snapshot.walks = running.walks.shown.clone();
                for (shown, walk) in snapshot.walks.iter_mut().zip(&running.context.walks) {
                    shown.missing_by_look = walk.looks.missing();
                }
                snapshot.index_lag = index_lag;
                snapshot.followers_behind = followers_behind.clone();
                snapshot.retry_after_ms = running.patience.shown_ms();
                shown.insert(*crawl, snapshot);
            }
            while shown.len() > self.crawls.len() + FINISHED_SHOWN_MAX {
                let Some(oldest) = shown.keys().find(|no| !self.crawls.contains_key(no)).copied()
                else {
                    break;
                };
                shown.remove(&oldest);
            }
        });
    }
}

/// Why a visit that was handed out is not carried out after all.
fn refusal(
    visit: &Visit,
    context: &CrawlContext,
    prerequisites: &mut Prerequisites,
) -> Option<VisitOutcome> {
    // The exclusion may be younger than the link. Exclusions are for pages: robots.txt, probes and
    // sitemaps are asked for whatever the user excludes.
    if visit.purpose == Purpose::Page
        && let Some(pattern) = context.scope.exclusion(&visit.url)
    {
        let rule = format!("exclude {pattern}");
        return Some(VisitOutcome::Skipped { reason: Reason::Excluded, rule });
    }
    // So may be the look-alikes that found out a trap.
    let is_link = visit.purpose == Purpose::Page && visit.depth > 0;
    if is_link
        && let Some((reason @ Reason::TrapSuspected, rule)) =
            context.scope.learned_refusal(&visit.url, || context.scope.is_included(&visit.url))
    {
        return Some(VisitOutcome::Skipped { reason, rule });
    }
    let obeys = context.crawl.politeness.robots != RobotsRules::Ignore;
    if obeys && visit.purpose != Purpose::Robots { prerequisites.judge(visit) } else { None }
}
