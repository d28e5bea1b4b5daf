//! [`Engine`]: the running engine, as the rest of the program sees it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use telusur_fetch::Fetch;
use telusur_fetch::robots::{Rules, product_token};
use telusur_frontier::Frontier;
use telusur_index::SearchIndex;
use telusur_ledger::{Event as LedgerEvent, Step, Store, StoreError};
use telusur_model::{
    Clock, Crawl, CrawlNo, CrawlState, FinishReason, PageUrl, PauseReason, Progress, Visit,
};
use telusur_parse_pool::Parser;
use tokio::sync::{mpsc, oneshot, watch};

use crate::asked_before::AskedBefore;
use crate::change::CrawlChange;
use crate::commit_stage::{self, Writer};
use crate::context::CrawlContext;
use crate::crawl_task::{Command, CrawlTask, DRAIN_MS_MAX, Event, Goal, KnownHosts, Reply, Waits};
use crate::error::{EngineError, RequestError};
use crate::faults::Faults;
use crate::fetch_stage::FetchStage;
use crate::followers::{Follower, FollowerParts, FollowerReport, Followers, FollowersHandle};
use crate::fresh_pages::FreshPages;
use crate::holding_back::HoldingBack;
use crate::index_follower::{INDEX, IndexFollower};
use crate::index_lease::IndexOwner;
use crate::page_source::StoredSource;
use crate::parse_queue::ParseQueue;
use crate::parse_stage::{self, ParseWorker};
use crate::pipeline::{PIPELINE_VISITS_MAX, Pipeline};
use crate::prerequisites::{StoredRobots, is_fresh};
use crate::removals::{RemovalCalls, RemovalThread, end_followed_removals};
use crate::single_fetch::{Arrived, FetchError, FetchRequest, FetchStart, Singles};
use crate::supervision::Supervisor;

/// Events waiting for the crawl task; senders wait when it is full.
const EVENTS_MAX: usize = 4096;
/// Work waiting for the writer.
const COMMITS_MAX: usize = 2 * PIPELINE_VISITS_MAX;

/// How long the removal of a crawl waits for followers. One that keeps up commits within a second.
const REMOVAL_WAIT_MAX: Duration = Duration::from_secs(5);

/// What an engine is made of.
pub struct EngineParts {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// The door to the web.
    pub fetcher: Arc<dyn Fetch>,
    /// The clocks.
    pub clock: Arc<dyn Clock>,
    /// Who reads the pages.
    pub parser: Arc<dyn Parser>,
    /// Where pages become searchable; without it they do not, in this process.
    pub index: Option<Arc<SearchIndex>>,
    /// Whatever else is derived from pages.
    pub followers: Vec<Box<dyn Follower>>,
}

/// What can be set about an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Threads that parse.
    pub parse_threads: usize,
    /// Crawls pause when less space is left.
    pub free_bytes_min: u64,
}

/// A running engine.
pub struct Engine {
    free_bytes_min: u64,
    store: Arc<dyn Store>,
    parser: Arc<dyn Parser>,
    clock: Arc<dyn Clock>,
    events: mpsc::Sender<Event>,
    progress: watch::Receiver<BTreeMap<CrawlNo, Progress>>,
    asked_before: Arc<AskedBefore>,
    faults: Arc<Faults>,
    supervisor: Supervisor,
    holding_back: Arc<HoldingBack>,
    followers: FollowersHandle,
    removals: RemovalThread,
    task: tokio::task::JoinHandle<Result<(), EngineError>>,
    commit: Option<JoinHandle<Result<(), StoreError>>>,
    parsers: Vec<JoinHandle<()>>,
}

/// Asks a running engine for things; can be cloned and handed to other tasks.
#[derive(Clone)]
pub struct EngineHandle {
    free_bytes_min: u64,
    store: Arc<dyn Store>,
    parser: Arc<dyn Parser>,
    clock: Arc<dyn Clock>,
    events: mpsc::WeakSender<Event>,
    progress: watch::Receiver<BTreeMap<CrawlNo, Progress>>,
    asked_before: Arc<AskedBefore>,
    supervisor: Supervisor,
    holding_back: Arc<HoldingBack>,
    followers: FollowersHandle,
    removals: RemovalCalls,
}

impl Engine {
    /// Starts the stages. Must be called inside a tokio runtime.
    pub fn start(parts: EngineParts, options: &EngineOptions) -> std::io::Result<Self> {
        let EngineParts { store, fetcher, clock, parser, index, followers } = parts;
        let (events, event_queue) = mpsc::channel(EVENTS_MAX);
        let (shown, progress) = watch::channel(BTreeMap::new());
        let (commit, commit_queue) = sync_channel(COMMITS_MAX);
        let under_way = Arc::new(AtomicUsize::new(0));
        let faults = Arc::<Faults>::default();
        let supervisor = Supervisor::default();
        let writer = Writer {
            faults: Arc::clone(&faults),
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
            events: events.clone(),
            under_way: Arc::clone(&under_way),
            free_bytes_min: options.free_bytes_min,
        };
        let committer = commit_stage::start(writer, commit_queue, &supervisor)?;
        let fresh_pages = index.as_ref().map(|_| Arc::<FreshPages>::default());
        let threads = options.parse_threads.max(1);
        let (parse, parse_queue) = ParseQueue::new(threads);
        let reader = ParseWorker {
            faults: Arc::clone(&faults),
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
            parser: Arc::clone(&parser),
            commit: commit.clone(),
            events: events.clone(),
            fresh_pages: fresh_pages.clone(),
        };
        let parsers = parse_stage::start(threads, &parse_queue, &reader, &supervisor)?;
        let source = || StoredSource::new(Arc::clone(&store), Arc::clone(&parser));
        let index = index.map(|index| FollowerParts {
            follower: Box::new(IndexFollower::new(index)),
            // Pages that the crawl has just read are taken out of their cache, by one follower.
            source: Arc::new(source().with_fresh_pages(fresh_pages.unwrap_or_default())),
        });
        let others = followers
            .into_iter()
            .map(|follower| FollowerParts { follower, source: Arc::new(source()) });
        let followers = index.into_iter().chain(others).collect();
        let followers = Followers::start(followers, &store, &clock, &supervisor)?;
        let followers_handle = followers.handle();
        let removals =
            RemovalThread::start(Arc::clone(&store), followers_handle.clone(), &supervisor)?;
        let holding_back = Arc::<HoldingBack>::default();
        let task = CrawlTask {
            followers,
            frontier: Frontier::new(),
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
            fetch: FetchStage {
                store: Arc::clone(&store),
                fetcher,
                events: events.clone(),
                faults: Arc::clone(&faults),
                supervisor: supervisor.clone(),
            },
            faults: Arc::clone(&faults),
            supervisor: supervisor.clone(),
            parse,
            commit,
            events: event_queue,
            shown,
            under_way,
            crawls: BTreeMap::new(),
            backlog: VecDeque::new(),
            prerequisites: Default::default(),
            singles: Singles::default(),
            pipeline: Pipeline::default(),
            is_shutting_down: false,
            waits: Waits::default(),
            holding_back: Arc::clone(&holding_back),
        };
        let task = tokio::spawn(task.run());
        Ok(Self {
            free_bytes_min: options.free_bytes_min,
            store,
            parser,
            clock,
            events,
            progress,
            asked_before: Arc::default(),
            faults,
            supervisor,
            holding_back,
            followers: followers_handle,
            removals,
            task,
            commit: Some(committer),
            parsers,
        })
    }

    /// For those who ask it for things.
    pub fn handle(&self) -> EngineHandle {
        EngineHandle {
            free_bytes_min: self.free_bytes_min,
            store: Arc::clone(&self.store),
            parser: Arc::clone(&self.parser),
            clock: Arc::clone(&self.clock),
            events: self.events.downgrade(),
            progress: self.progress.clone(),
            asked_before: Arc::clone(&self.asked_before),
            supervisor: self.supervisor.clone(),
            holding_back: Arc::clone(&self.holding_back),
            followers: self.followers.clone(),
            removals: self.removals.calls(),
        }
    }

    /// Waits until the engine fails. Returns only then.
    pub async fn failed(&mut self) -> EngineError {
        let ended = (&mut self.task).await;
        let cause = self.cause(ended);
        self.faults.record(&cause, &self.running(), &*self.store, &*self.clock);
        cause
    }

    /// Ends all crawls in order and closes the store. Crawls that were running go on at the next
    /// start.
    pub async fn shutdown(self) -> Result<(), EngineError> {
        self.shutdown_within(DRAIN_MS_MAX).await
    }

    /// The same, when visits under way have no more than these milliseconds left. Those that have not ended by
    /// then stay queued.
    pub async fn shutdown_within(mut self, drain_ms: u64) -> Result<(), EngineError> {
        self.supervisor.close();
        let _ = self.events.send(Event::Command(Command::Shutdown { drain_ms })).await;
        let ended = (&mut self.task).await;
        if !matches!(ended, Ok(Ok(()))) {
            let cause = self.cause(ended);
            self.faults.record(&cause, &self.running(), &*self.store, &*self.clock);
            return Err(cause);
        }
        // An end in order: whatever happened before was not twice in a row.
        for crawl in self.running() {
            if self.store.crawl(crawl)?.is_some_and(|record| record.fault.is_some()) {
                self.store.set_fault(crawl, None)?;
            }
        }
        // Nobody waits for a page that is still being parsed: its visit stays queued.
        self.parser.interrupt();
        drop(self.events);
        let (commit, parsers) = (self.commit.take(), std::mem::take(&mut self.parsers));
        let removals = self.removals;
        let joined = tokio::task::spawn_blocking(move || {
            removals.end();
            let parsed = parsers.into_iter().all(|parser| parser.join().is_ok());
            let committed = commit.map(JoinHandle::join);
            (parsed, committed)
        });
        match joined.await {
            Ok((true, Some(Ok(result)))) => result?,
            Ok((true, None)) => {}
            Ok((false, _)) => return Err(EngineError::StageDied("parse")),
            _ => return Err(EngineError::StageDied("commit")),
        }
        // What followers took in at the very end.
        let followers = &self.followers;
        end_followed_removals(&*self.store, |removal| followers.have_passed(removal.place));
        self.store.close()?;
        Ok(())
    }

    /// Ends at once and without order, as a kill would: nothing is drained, nothing is closed. For
    /// tests of what survives.
    pub async fn vanish(mut self) {
        self.supervisor.close();
        self.task.abort();
        let _ = (&mut self.task).await;
        self.parser.interrupt();
        drop(self.events);
        let (commit, parsers) = (self.commit.take(), std::mem::take(&mut self.parsers));
        let removals = self.removals;
        // The threads hold the store open; the directory is free when they have seen the silence.
        let _ = tokio::task::spawn_blocking(move || {
            removals.end();
            parsers.into_iter().for_each(|parser| drop(parser.join()));
            commit.map(JoinHandle::join)
        })
        .await;
    }

    /// The crawls that run here, as far as they were shown.
    fn running(&self) -> Vec<CrawlNo> {
        let shown = self.progress.borrow();
        let running = shown.values().filter(|progress| progress.state == CrawlState::Running);
        running.map(|progress| progress.crawl).collect()
    }

    /// Why the crawl task ended: the writer's error explains more than the silence it left.
    fn cause(
        &mut self,
        ended: Result<Result<(), EngineError>, tokio::task::JoinError>,
    ) -> EngineError {
        let error = match ended {
            Ok(Ok(())) => EngineError::StageDied("crawl"),
            Ok(Err(error)) => error,
            Err(_) => EngineError::StageDied("crawl"),
        };
        // A writer that is gone is about to end, if it has not: its last words are worth the wait.
        let is_gone = matches!(error, EngineError::StageDied("commit"));
        let commit = self.commit.take().filter(|commit| is_gone || commit.is_finished());
        match commit.map(JoinHandle::join) {
            Some(Ok(Err(store))) => EngineError::Store(store),
            _ => error,
        }
    }
}

impl EngineHandle {
    /// Snapshots of all crawls of this process.
    pub fn progress(&self) -> watch::Receiver<BTreeMap<CrawlNo, Progress>> {
        self.progress.clone()
    }

    /// Starts what runs beside the engine, and stops the engine when it dies.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Whether everything that is stored can be found, and if not, why.
    pub fn indexing(&self) -> Option<FollowerReport> {
        self.followers().into_iter().find(FollowerReport::is_index)
    }

    /// How far everything that is derived from pages is behind, and why.
    pub fn followers(&self) -> Vec<FollowerReport> {
        self.followers.reports()
    }

    /// Waits until everything up to a place can be found, or for `wait_max`. True if it can.
    pub(crate) fn wait_for_index(&self, place: u64, wait_max: Duration) -> bool {
        self.followers.have_reached(&[INDEX], place, wait_max)
    }

    /// Has the index built from nothing. Waits until that has begun.
    pub(crate) fn rebuild_index(&self) -> Result<(), RequestError> {
        self.followers.rebuild(INDEX)
    }

    /// The store has changed in another way than by a crawl: followers look at once.
    pub(crate) fn wake_followers(&self) {
        self.followers.look();
    }

    /// The same after a crawl was removed. Waits until those that keep up have taken it out, and has the removal
    /// ended when all have. Blocks.
    pub(crate) fn follow_removal(&self, place: u64) {
        self.followers.look();
        self.followers.wait_for(place, REMOVAL_WAIT_MAX);
        self.removals.wake();
    }

    /// Who reads pages in this process.
    pub fn parser(&self) -> Arc<dyn Parser> {
        Arc::clone(&self.parser)
    }

    /// What leases the index of this process, if it has one.
    pub(crate) fn index_owner(&self) -> Option<IndexOwner> {
        self.followers.owner_of(INDEX)
    }

    /// Whether a crawl is in this process, running or paused.
    pub fn is_here(&self, crawl: CrawlNo) -> bool {
        // One that was set aside is shown, and gone from here: it is started from what is stored.
        self.progress.borrow().get(&crawl).is_some_and(|progress| match progress.state {
            CrawlState::Finished { .. }
            | CrawlState::Paused { why: PauseReason::EngineStopped } => false,
            CrawlState::Running | CrawlState::Paused { .. } => true,
        })
    }

    /// Space on the disk below which all crawls of this process pause.
    pub(crate) fn free_bytes_min(&self) -> u64 {
        self.free_bytes_min
    }

    /// Why no further crawl should be started now: it would only wait with the others.
    pub fn holds_back(&self) -> Option<PauseReason> {
        self.holding_back.get()
    }

    /// Whether a crawl can be run at all. Compiles its patterns: never call it on an async thread.
    pub fn check(&self, crawl: &Crawl) -> Result<(), RequestError> {
        CrawlContext::to_run(crawl.clone(), self.store.key_seed()).map(drop)
    }

    /// Runs a crawl of the store, from where it is.
    pub async fn run(&self, crawl: CrawlNo) -> Result<(), RequestError> {
        let store = Arc::clone(&self.store);
        let wall = Arc::clone(&self.clock);
        let asked_before = Arc::clone(&self.asked_before);
        let is_here = self.is_here(crawl);
        let loaded = tokio::task::spawn_blocking(move || {
            if !is_here {
                let_in_left_out(store.as_ref(), crawl)?;
            }
            let record = store.crawl(crawl)?;
            let walks = record.as_ref().map_or(0, |record| record.crawl.seeds.walks().len());
            let runs = (0..).take(walks).map(|walk| store.runs(crawl, walk));
            let runs = runs.collect::<Result<Vec<_>, _>>()?;
            let asked_lately = asked_before.lately(store.as_ref(), crawl, wall.wall())?;
            let mut own = store.hosts(crawl)?;
            for row in &mut own {
                row.last_request_at = row.last_request_at.max(asked_lately.own_until);
            }
            Ok::<_, StoreError>((record, KnownHosts { own, asked_lately }, runs))
        });
        let (record, hosts, runs) = loaded.await.map_err(|_| RequestError::Stopped)??;
        let record = record.ok_or_else(|| RequestError::NoSuchCrawl(crawl.to_string()))?;
        self.ask(|reply| Command::Run { record: Box::new(record), hosts, runs, reply }).await
    }

    /// Fetches one page, which is stored nowhere: as a visit of this engine, through the gates that all visits
    /// go through. Dropping the future gives it up.
    pub async fn fetch(&self, request: FetchRequest) -> Result<Arrived, FetchError> {
        let store = Arc::clone(&self.store);
        let wall = Arc::clone(&self.clock);
        let asked_before = Arc::clone(&self.asked_before);
        let prepared = tokio::task::spawn_blocking(move || {
            let context = CrawlContext::new(request.crawl(), store.key_seed())?;
            let no = context.crawl.no;
            let asked_lately = asked_before.lately(store.as_ref(), no, wall.wall())?;
            Ok::<_, RequestError>(FetchStart { request, context, asked_lately })
        });
        let start = Box::new(prepared.await.map_err(|_| RequestError::Stopped)??);
        let (reply, answer) = oneshot::channel();
        let events = self.events.upgrade().ok_or(RequestError::Stopped)?;
        let event = Event::Command(Command::Fetch { start, reply });
        events.send(event).await.map_err(|_| RequestError::Stopped)?;
        drop(events);
        answer.await.map_err(|_| RequestError::Stopped)?
    }

    /// The rules of a URL's origin that were read within the last day, as this crawler reads them. Blocks.
    pub fn stored_rules(
        &self,
        url: &PageUrl,
        user_agent: &str,
    ) -> Result<Option<Arc<Rules>>, StoreError> {
        let row = self.store.origin(&url.origin())?;
        let now = self.clock.wall();
        let fresh = row.filter(|row| is_fresh(row.asked_at, now));
        Ok(fresh
            .and_then(|row| StoredRobots::of(row, product_token(user_agent)))
            .map(|it| it.rules))
    }

    /// Pauses a crawl, once its visits under way have ended.
    pub async fn pause(&self, crawl: CrawlNo) -> Result<(), RequestError> {
        let goal = Goal::Pause(PauseReason::Asked);
        self.ask(|reply| Command::End { crawl, goal, reply }).await
    }

    /// Goes on with a paused crawl of this process.
    pub async fn resume(&self, crawl: CrawlNo) -> Result<(), RequestError> {
        self.ask(|reply| Command::Resume { crawl, reply }).await
    }

    /// Ends a crawl and keeps what it has.
    pub async fn stop(&self, crawl: CrawlNo) -> Result<(), RequestError> {
        let goal = Goal::Finish(FinishReason::Stopped);
        self.ask(|reply| Command::End { crawl, goal, reply }).await
    }

    /// Adds an exclusion to a running crawl. URLs that wait in the queue are judged anew when their
    /// turn comes.
    pub async fn exclude(&self, crawl: CrawlNo, pattern: String) -> Result<(), RequestError> {
        self.change(crawl, CrawlChange { exclude: vec![pattern], ..CrawlChange::default() }).await
    }

    /// Changes limits, manners and exclusions of a crawl of this process, while it runs.
    pub async fn change(&self, crawl: CrawlNo, change: CrawlChange) -> Result<(), RequestError> {
        self.ask(|reply| Command::Change { crawl, change: Box::new(change), reply }).await
    }

    /// Queues URLs of a crawl of this process that failed.
    pub(crate) async fn again(
        &self,
        crawl: CrawlNo,
        visits: Vec<Visit>,
    ) -> Result<(), RequestError> {
        self.ask(|reply| Command::Again { crawl, visits, reply }).await
    }

    async fn ask(&self, command: impl FnOnce(Reply) -> Command) -> Result<(), RequestError> {
        let (reply, answer) = oneshot::channel();
        let events = self.events.upgrade().ok_or(RequestError::Stopped)?;
        let event = Event::Command(command(reply));
        events.send(event).await.map_err(|_| RequestError::Stopped)?;
        answer.await.map_err(|_| RequestError::Stopped)?
    }
}

/// Lets in the links that the budgets of a resting crawl left out and have room for now: they were
/// raised since, or whoever raised them was killed before all were in.
fn let_in_left_out(store: &dyn Store, crawl: CrawlNo) -> Result<(), StoreError> {
    let Some(record) = store.crawl(crawl)? else { return Ok(()) };
    // Looked at first: most crawls left nothing out, and a step costs a sync.
    while store.has_room_for_left_out(&record.crawl)? {
        let effects = store.commit(Step::of(LedgerEvent::BudgetsRaised { crawl }))?;
        if effects.more_held.is_empty() {
            break;
        }
    }
    Ok(())
}
