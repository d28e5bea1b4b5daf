//! The only writer: makes endings durable in groups, and reads the queues in between.
//!
//! Reading goes through the same thread on purpose: what the frontier is told about the queues is
//! then always in the order in which it happened.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use telusur_frontier::Region;
use telusur_ledger::{
    Effects, Ending, Event as LedgerEvent, GiveUp, HostNote, NewlyQueued, QueueRange, Step, Store,
    StoreError,
};
use telusur_model::{
    Clock, Crawl, CrawlNo, CrawlState, Host, OriginRow, PageUrl, QueuePlace, RobotsAnswer,
    Timestamp, Visit,
};
use tokio::sync::mpsc;

use crate::crawl_task::{Event, Reply};
use crate::faults::{self, Faults, is_of_reading, may_be_of_crawl};
use crate::pipeline::Load;
use crate::prerequisites::{StoredRobots, is_fresh};
use crate::robots_reading::{PrerequisiteEnd, RobotsEnd};
use crate::single_fetch::Singles;
use crate::supervision::{Part, Supervisor};

/// Visits in one group: more would only make the others wait longer.
const GROUP_VISITS_MAX: usize = 256;
/// Longest that an ended visit waits for company before it is made durable.
const GROUP_WAIT: Duration = Duration::from_millis(50);
/// How often the writer looks for company. The last visit under way may also end without a message.
const NAP: Duration = Duration::from_millis(4);
/// How often the free space is looked at.
const FREE_SPACE_EVERY: Duration = Duration::from_secs(1);
/// Space without which nothing is stored, whatever limit was set: the state database writes out memory tables and
/// compacts them beside what a step brings, and takes no more writes after one that failed.
pub const FREE_BYTES_LEAST: u64 = 16 << 20;
/// The share of the limit by which more space must be free before paused crawls go on.
const SPACE_MARGIN: u64 = 10;

/// What the writer is asked to do, in order.
pub(crate) enum CommitWork {
    /// A visit ended; its body was so large.
    Ending { ending: Box<Ending>, body_bytes: u64 },
    /// A prerequisite ended.
    Prerequisite {
        visit: Box<Visit>,
        requested_at: Option<Timestamp>,
        body_bytes: u64,
        end: Box<PrerequisiteEnd>,
    },
    /// The rules of a URL's origin are wanted, for the crawler with this name.
    Robots { crawl: CrawlNo, url: PageUrl, product_token: String },
    /// Events that nobody waits for.
    Events(Vec<LedgerEvent>),
    /// The queued URLs of a host are given up.
    GiveUp(Box<GiveUp>),
    /// The budgets of a crawl may have been raised: links that were left out are let in.
    LetIn { crawl: CrawlNo },
    /// The frontier needs URLs.
    Refill { crawl: CrawlNo, host: Host, region: Region, after: Option<QueuePlace>, max: usize },
    /// How much space is left, for crawls that wait for it.
    Space,
    /// A crawl changes its state, after everything before it.
    State { crawl: CrawlNo, state: CrawlState },
    /// A crawl asks nobody any more, and when it did is written down.
    HasAsked { crawl: CrawlNo },
    /// The settings of a crawl have changed; who asked for it is answered when that is durable.
    Change { crawl: Box<Crawl>, reply: Reply },
}

impl CommitWork {
    /// The crawl that it is for, if it is for one.
    fn crawl(&self) -> Option<CrawlNo> {
        match self {
            Self::Ending { ending, .. } => Some(ending.visit.crawl),
            Self::Prerequisite { visit, .. } => Some(visit.crawl),
            Self::Events(events) => events.first().and_then(LedgerEvent::crawl),
            Self::GiveUp(give_up) => Some(give_up.crawl),
            Self::Robots { crawl, .. } | Self::LetIn { crawl } | Self::Refill { crawl, .. } => {
                Some(*crawl)
            }
            // Makes durable what others have brought.
            Self::State { .. } | Self::HasAsked { .. } | Self::Change { .. } | Self::Space => None,
        }
    }
}

/// What the writer reports.
pub(crate) enum Written {
    /// A step is durable.
    Step {
        effects: Effects,
        /// What it took off the pipeline.
        load: Load,
        /// Prerequisites that ended with it.
        prerequisites: Vec<(Visit, PrerequisiteEnd)>,
    },
    /// Links that were left out are queued, as far as there is room.
    LetIn {
        crawl: CrawlNo,
        effects: Effects,
    },
    /// What the store knows of the rules of a URL's origin.
    Robots {
        crawl: CrawlNo,
        url: PageUrl,
        stored: Option<StoredRobots>,
    },
    Refill {
        crawl: CrawlNo,
        host: Host,
        region: Region,
        queued: Vec<NewlyQueued>,
        exhausted: bool,
    },
    State {
        crawl: CrawlNo,
        state: CrawlState,
    },
    /// A crawl whose rows or bodies cannot be read or written is paused.
    SetAside {
        crawl: CrawlNo,
    },
    /// So much space is left.
    Space {
        free_bytes: u64,
        /// Less than the limit.
        is_low: bool,
    },
}

/// Endings on their way into one step.
#[derive(Default)]
struct Group {
    step: Step,
    endings: usize,
    load: Load,
    prerequisites: Vec<(Visit, PrerequisiteEnd)>,
}

impl Group {
    fn is_empty(&self) -> bool {
        self.step.is_empty() && self.prerequisites.is_empty()
    }

    fn visits(&self) -> usize {
        self.endings + self.prerequisites.len()
    }
}

pub(crate) struct Writer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) events: mpsc::Sender<Event>,
    /// Visits that are being fetched or parsed. When there are none, nobody else will join the
    /// group, and waiting for company would only stall the crawl.
    pub(crate) under_way: Arc<AtomicUsize>,
    pub(crate) free_bytes_min: u64,
    pub(crate) faults: Arc<Faults>,
}

/// Starts the writer's thread. It ends when the last sender of work is gone, or the store fails.
pub(crate) fn start(
    writer: Writer,
    work: Receiver<CommitWork>,
    supervisor: &Supervisor,
) -> std::io::Result<JoinHandle<Result<(), StoreError>>> {
    supervisor.thread(Part::Stage("commit"), move || writer.run(&work))
}

impl Writer {
    fn run(&self, work: &Receiver<CommitWork>) -> Result<(), StoreError> {
        let mut group = Group::default();
        let mut space_checked: Option<Instant> = None;
        while let Ok(first) = work.recv() {
            let deadline = Instant::now() + GROUP_WAIT;
            let mut next = Some(first);
            while let Some(item) = next.take() {
                let of_crawl: Vec<CrawlNo> = item.crawl().into_iter().collect();
                self.faults.watch(&of_crawl, || self.take(item, &mut group))?;
                if group.visits() >= GROUP_VISITS_MAX {
                    break;
                }
                next = self.wait_for_company(work, deadline, &group);
            }
            self.commit(&mut group)?;
            if space_checked.is_none_or(|at| at.elapsed() >= FREE_SPACE_EVERY) {
                space_checked = Some(Instant::now());
                self.check_space()?;
            }
        }
        self.commit(&mut group)
    }

    fn wait_for_company(
        &self,
        work: &Receiver<CommitWork>,
        deadline: Instant,
        group: &Group,
    ) -> Option<CommitWork> {
        if let Ok(item) = work.try_recv() {
            return Some(item);
        }
        if group.visits() == 0 {
            return None;
        }
        loop {
            if self.under_way.load(Ordering::Acquire) == 0 {
                return work.try_recv().ok();
            }
            let now = Instant::now();
            if now >= deadline {
                return None;
            }
            // Napping instead of waiting for the next message: being woken for every page would cost
            // more than the page's share of the commit.
            std::thread::sleep((deadline - now).min(NAP));
            if let Ok(item) = work.try_recv() {
                return Some(item);
            }
        }
    }

    fn take(&self, item: CommitWork, group: &mut Group) -> Result<(), StoreError> {
        match item {
            CommitWork::Ending { ending, body_bytes } => {
                group.load.add(&ending.visit, body_bytes);
                group.step.end(*ending);
                group.endings += 1;
                self.under_way.fetch_sub(1, Ordering::AcqRel);
            }
            CommitWork::Prerequisite { visit, requested_at, body_bytes, end } => {
                group.load.add(&visit, body_bytes);
                self.under_way.fetch_sub(1, Ordering::AcqRel);
                // The store knows no crawl that a single fetch belongs to.
                let requested_at = requested_at.filter(|_| !Singles::is_single(visit.crawl));
                group.step.extend(requested_at.map(|at| LedgerEvent::HostNoted {
                    crawl: visit.crawl,
                    host: visit.url.host(),
                    note: HostNote::Requested(at),
                }));
                let learned = self.learned(&visit, &end)?;
                group.step.extend(learned.map(|row| LedgerEvent::OriginLearned(Box::new(row))));
                group.prerequisites.push((*visit, *end));
            }
            CommitWork::Robots { crawl, url, product_token } => {
                let row = self.origin(&url.origin())?;
                let stored = row.and_then(|row| StoredRobots::of(row, &product_token));
                self.report(Written::Robots { crawl, url, stored });
            }
            CommitWork::Events(events) => group.step.extend(events),
            CommitWork::GiveUp(give_up) => {
                // In a step of its own: it may settle thousands of URLs, and nobody waits for others.
                self.commit(group)?;
                group.step.push(LedgerEvent::HostGivenUp(give_up));
                self.commit(group)?;
            }
            CommitWork::LetIn { crawl } => {
                // In a step of its own: nothing else waits for the many links that it may bring.
                self.commit(group)?;
                let step = Step::of(LedgerEvent::BudgetsRaised { crawl });
                match self.store.commit(step) {
                    Ok(effects) => self.report(Written::LetIn { crawl, effects }),
                    Err(error) if may_be_of_crawl(&error) => self.set_aside(crawl, &error)?,
                    Err(error) => return Err(error),
                }
            }
            CommitWork::Refill { crawl, host, region, after, max } => {
                let later = region == Region::Later;
                let ask = QueueRange { crawl, host: &host, later, after, max };
                match self.store.queued(ask) {
                    Ok(queued) => {
                        let exhausted = queued.len() < max;
                        self.report(Written::Refill { crawl, host, region, queued, exhausted });
                    }
                    Err(error) if is_of_reading(&error) => self.set_aside(crawl, &error)?,
                    Err(error) => return Err(error),
                }
            }
            CommitWork::Space => {
                // A little more than the limit, or crawls would be paused again at once.
                let enough = self.free_bytes_min.saturating_add(self.free_bytes_min / SPACE_MARGIN);
                if let Some(free_bytes) = self.store.free_bytes()? {
                    self.report(Written::Space { free_bytes, is_low: free_bytes < enough });
                }
            }
            CommitWork::State { crawl, state } => {
                self.commit(group)?;
                match self.store.set_state(crawl, state, self.clock.wall()) {
                    Ok(()) => self.report(Written::State { crawl, state }),
                    Err(error) if error.is_of_rows() => self.set_aside(crawl, &error)?,
                    Err(error) => return Err(error),
                }
            }
            CommitWork::HasAsked { crawl } => {
                self.commit(group)?;
                self.store.set_asking(crawl, None)?;
            }
            CommitWork::Change { crawl, reply } => {
                self.commit(group)?;
                // Who asked may have left.
                match self.store.change(&crawl) {
                    Ok(()) => drop(reply.send(Ok(()))),
                    Err(error) if error.is_of_rows() => {
                        self.set_aside(crawl.no, &error)?;
                        drop(reply.send(Err(error.into())));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// What a prerequisite taught about its origin, together with what was known before.
    fn learned(
        &self,
        visit: &Visit,
        end: &PrerequisiteEnd,
    ) -> Result<Option<OriginRow>, StoreError> {
        let origin = visit.first_url().origin();
        let before = self.origin(&origin)?;
        Ok(match end {
            // Rules that still hold are not forgotten because their origin is down.
            PrerequisiteEnd::Robots(RobotsEnd::Unreachable { .. })
                if before.as_ref().is_some_and(|row| self.is_relied_on(row)) =>
            {
                None
            }
            PrerequisiteEnd::Robots(
                RobotsEnd::Known { row, .. } | RobotsEnd::Unreachable { row, .. },
            ) => {
                let not_found = before.and_then(|before| before.not_found);
                Some(OriginRow { not_found, ..row.clone() })
            }
            PrerequisiteEnd::Probe(Some(look)) => {
                before.map(|before| OriginRow { not_found: Some(*look), ..before })
            }
            PrerequisiteEnd::Robots(_) | PrerequisiteEnd::Probe(None) => None,
        })
    }

    /// What is known about an origin. A row that cannot be read is asked for again, and replaced: it belongs to
    /// no crawl.
    fn origin(&self, origin: &str) -> Result<Option<OriginRow>, StoreError> {
        match self.store.origin(origin) {
            Err(error) if error.is_of_rows() => {
                tracing::warn!(origin, %error, "what is known about an origin is damaged");
                Ok(None)
            }
            read => read,
        }
    }

    fn is_relied_on(&self, row: &OriginRow) -> bool {
        let has_rules = match row.robots {
            RobotsAnswer::Text { .. } | RobotsAnswer::Missing { .. } => true,
            RobotsAnswer::Unreachable { .. } => false,
        };
        has_rules && is_fresh(row.asked_at, self.clock.wall())
    }

    fn commit(&self, group: &mut Group) -> Result<(), StoreError> {
        if group.is_empty() || self.must_wait_for_space()? {
            return Ok(());
        }
        let Group { step, load, prerequisites, .. } = std::mem::take(group);
        let crawls: Vec<CrawlNo> = step.crawls().into_iter().collect();
        // Should one of several crawls have a fault, the others are committed without it.
        let spare = (crawls.len() > 1).then(|| step.clone());
        let effects = match self.faults.watch(&crawls, || self.store.commit(step)) {
            Ok(effects) => effects,
            Err(error) if may_be_of_crawl(&error) => {
                match (spare, crawls.as_slice()) {
                    (Some(step), _) => self.commit_apart(step)?,
                    (None, [crawl]) => self.set_aside(*crawl, &error)?,
                    (None, _) => return Err(error),
                }
                Effects::default()
            }
            Err(error) => return Err(error),
        };
        self.report(Written::Step { effects, load, prerequisites });
        Ok(())
    }

    /// Commits a step of several crawls crawl by crawl. Those whose part cannot be committed are set aside.
    fn commit_apart(&self, step: Step) -> Result<(), StoreError> {
        for (crawl, part) in step.by_crawl() {
            match (self.store.commit(part), crawl) {
                (Ok(effects), _) => {
                    let (load, prerequisites) = (Load::default(), Vec::new());
                    self.report(Written::Step { effects, load, prerequisites });
                }
                (Err(error), Some(crawl)) if may_be_of_crawl(&error) => {
                    self.set_aside(crawl, &error)?;
                }
                (Err(error), _) => return Err(error),
            }
        }
        Ok(())
    }

    fn set_aside(&self, crawl: CrawlNo, error: &StoreError) -> Result<(), StoreError> {
        faults::set_aside(self.store.as_ref(), self.clock.as_ref(), crawl, error)?;
        self.report(Written::SetAside { crawl });
        Ok(())
    }

    /// Whether there is so little space that a step must not be begun: the rows that all crawls share might
    /// not be written to their end. It is kept until there is more; if the process ends before, its visits are
    /// still queued.
    fn must_wait_for_space(&self) -> Result<bool, StoreError> {
        let least = self.free_bytes_min.min(FREE_BYTES_LEAST);
        let Some(free_bytes) = self.store.free_bytes()? else { return Ok(false) };
        let is_low = free_bytes < least;
        if is_low {
            self.report(Written::Space { free_bytes, is_low });
        }
        Ok(is_low)
    }

    fn check_space(&self) -> Result<(), StoreError> {
        if let Some(free_bytes) = self.store.free_bytes()?
            && free_bytes < self.free_bytes_min
        {
            self.report(Written::Space { free_bytes, is_low: true });
        }
        Ok(())
    }

    fn report(&self, written: Written) {
        // Nobody listens any more only when the engine has ended; what is committed stays so.
        let _ = self.events.blocking_send(Event::Written(written));
    }
}

/// Refuses to write when less space is left than the user wants to keep.
pub(crate) fn expect_space(store: &dyn Store, free_bytes_min: u64) -> Result<(), StoreError> {
    match store.free_bytes()? {
        Some(free) if free < free_bytes_min => Err(StoreError::DiskFull(format!(
            "{} kB free, and min_free_disk is {} kB",
            free / 1000,
            free_bytes_min / 1000
        ))),
        Some(_) | None => Ok(()),
    }
}
