//! Reads what came back: takes fetched visits out of the queue, has their pages parsed, and hands on
//! what became of them (`visit_ending`).
//!
//! Runs on threads of its own: parsing and packing are heavy, and the async threads must stay free
//! to talk to hosts.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

use telusur_frontier::{COSTLY_PARSE_MS, Disposition, PageCost};
use telusur_ledger::Store;
use telusur_model::{
    Clock, FetchOutcome, Fetched, Findings, Keep, ParsedPage, Purpose, RawPage, SearchPage, Visit,
};
use telusur_parse_pool::{Parser, PoolError, ReadPage, Reading, VisibleText};
use tokio::sync::mpsc;

use crate::commit_stage::CommitWork;
use crate::context::CrawlContext;
use crate::crawl_task::Event;
use crate::error::EngineError;
use crate::faults::Faults;
use crate::fresh_pages::FreshPages;
use crate::parse_queue::ParseQueue;
use crate::supervision::{Part, Supervisor};

/// A visit whose fetch has ended.
pub(crate) struct ParseWork {
    pub(crate) visit: Visit,
    pub(crate) fetched: Fetched,
    pub(crate) disposition: Disposition,
    pub(crate) context: Arc<CrawlContext>,
    /// Whether the host's last page was costly: what this one costs is told in any case.
    pub(crate) is_cost_watched: bool,
}

/// Starts the threads. They end when the sender of work is gone.
pub(crate) fn start(
    threads: usize,
    work: &Arc<ParseQueue>,
    reader: &ParseWorker,
    supervisor: &Supervisor,
) -> std::io::Result<Vec<JoinHandle<()>>> {
    (0..threads)
        .map(|_| {
            let (work, reader) = (Arc::clone(work), reader.clone());
            supervisor.thread(Part::Stage("parse"), move || reader.run(&work))
        })
        .collect()
}

/// What every thread needs.
#[derive(Clone)]
pub(crate) struct ParseWorker {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) parser: Arc<dyn Parser>,
    pub(crate) commit: SyncSender<CommitWork>,
    /// For the news that no page can be read any more.
    pub(crate) events: mpsc::Sender<Event>,
    /// Where pages wait for the index, if there is one.
    pub(crate) fresh_pages: Option<Arc<FreshPages>>,
    pub(crate) faults: Arc<Faults>,
}

/// What was read out of a page.
pub(crate) struct PageRead {
    pub(crate) parsed: ParsedPage,
    /// What a search goes by, if the page is likely to be searched.
    pub(crate) findings: Option<Findings>,
}

impl PageRead {
    pub(crate) fn of(reading: Reading<ParsedPage>) -> Reading<Self> {
        reading.map(|parsed| Self { parsed, findings: None })
    }

    fn for_search(reading: Reading<SearchPage>) -> Reading<Self> {
        reading.map(|page| Self { parsed: page.parsed, findings: Some(page.findings) })
    }
}

/// A page that was parsed before its turn, and what that took.
struct Ahead {
    reading: Reading<PageRead>,
    cpu: Duration,
    deaths: u32,
}

impl Ahead {
    fn of<T>(page: ReadPage<T>, read: impl FnOnce(Reading<T>) -> Reading<PageRead>) -> Self {
        let ReadPage { reading, cpu, deaths } = page;
        Self { reading: read(reading), cpu, deaths }
    }
}

impl ParseWorker {
    fn run(&self, queue: &ParseQueue) {
        while let Some(mut batch) = queue.take(|| self.clock.now()) {
            let works = std::mem::take(&mut batch.works);
            let ahead = match self.parse_ahead(&works) {
                Ok(ahead) => ahead,
                // The engine ends, and waits for nobody: these visits stay queued.
                Err(PoolError::Interrupted) => return,
                Err(error) => return self.give_up(error),
            };
            let (mut ended, mut costs) = (Vec::with_capacity(works.len()), Vec::new());
            for (work, ahead) in works.into_iter().zip(ahead) {
                let (crawl, host) = (work.visit.crawl, work.visit.url.host());
                let (is_watched, purpose) = (work.is_cost_watched, work.visit.purpose);
                let deaths = ahead.as_ref().map_or(0, |ahead| ahead.deaths);
                let read = self.faults.watch(&[crawl], || self.read(work, ahead));
                let ReadWork { done, cpu } = match read {
                    Ok(read) => read,
                    Err(PoolError::Interrupted) => return,
                    Err(error) => return self.give_up(error),
                };
                ended.push(done);
                costs.push(cpu);
                let cost_ms = cpu.map(|cpu| u64::try_from(cpu.as_millis()).unwrap_or(u64::MAX));
                // A probe teaches how unknown URLs look, and nothing else.
                if let Some(cpu_ms) = cost_ms
                    && purpose != Purpose::Probe
                    && (is_watched || cpu_ms >= COSTLY_PARSE_MS || deaths > 0)
                {
                    // Before the page is committed: the host's next visit waits for that.
                    let cost = PageCost { cpu_ms, has_killed: deaths > 0 };
                    let _ = self.events.blocking_send(Event::Parsed { host, cost });
                }
            }
            queue.ended(&batch, &costs);
            for done in ended {
                if self.commit.send(done).is_err() {
                    return;
                }
            }
        }
    }

    fn give_up(&self, error: PoolError) {
        // If nobody listens, the engine has ended already.
        let _ = self.events.blocking_send(Event::Broken(EngineError::Parser(error)));
    }

    /// Parses the pages that will be asked for, all at once: a child is woken once for many.
    fn parse_ahead(&self, taken: &[ParseWork]) -> Result<Vec<Option<Ahead>>, PoolError> {
        let is_searched = |work: &ParseWork| self.fresh_pages.is_some() && is_likely_searched(work);
        let (mut searched, mut others) = (Vec::new(), Vec::new());
        for work in taken {
            if let Some(page) = page_to_parse(work) {
                if is_searched(work) { searched.push(page) } else { others.push(page) }
            }
        }
        let needs_text = taken.iter().any(needs_text);
        let text = if needs_text { VisibleText::Taken } else { VisibleText::Left };
        let mut searched = self.parser.read_for_search(&searched, text)?.into_iter();
        let mut others = self.parser.parse_all(&others, text)?.into_iter();
        let of_work = |work| {
            page_to_parse(work)?;
            match is_searched(work) {
                true => searched.next().map(|page| Ahead::of(page, PageRead::for_search)),
                false => others.next().map(|page| Ahead::of(page, PageRead::of)),
            }
        };
        Ok(taken.iter().map(of_work).collect())
    }

    /// What is in a page, which is parsed now if it was not before. Adds to what the visit took.
    pub(crate) fn reading(
        &self,
        page: &RawPage,
        ahead: Option<Reading<PageRead>>,
        cpu: &Cell<Option<Duration>>,
    ) -> Result<Reading<PageRead>, PoolError> {
        if let Some(reading) = ahead {
            return Ok(reading);
        }
        let mut read = self.parser.parse_all(&[page], VisibleText::Taken)?;
        let ReadPage { reading, cpu: taken, .. } = read.pop().expect("every page has a reading");
        cpu.set(Some(cpu.get().unwrap_or_default() + taken));
        Ok(PageRead::of(reading))
    }

    fn read(&self, work: ParseWork, ahead: Option<Ahead>) -> Result<ReadWork, PoolError> {
        let cpu = Cell::new(ahead.as_ref().map(|ahead| ahead.cpu));
        let done = self.read_and_count(work, ahead.map(|ahead| ahead.reading), &cpu)?;
        Ok(ReadWork { done, cpu: cpu.get() })
    }
}

/// A visit that is ready for the store, and the CPU that its page took, if it had one.
struct ReadWork {
    done: CommitWork,
    cpu: Option<Duration>,
}

/// The page that will have to be parsed, if there is one.
pub(crate) fn page_to_parse(work: &ParseWork) -> Option<&RawPage> {
    let FetchOutcome::Page(page) = &work.fetched.outcome else { return None };
    let is_wanted = match work.visit.purpose {
        Purpose::Robots | Purpose::Sitemap { .. } => false,
        Purpose::Probe => true,
        Purpose::Page if work.visit.place.id().is_some() => (200..300).contains(&page.status),
        Purpose::Page => matches!(work.disposition, Disposition::Settle),
    };
    is_wanted.then_some(page)
}

/// Whether a page will be searched, as far as can be told before it is read. Only a page whose body is
/// kept is read for that: of others the index knows what the store keeps, and no more.
fn is_likely_searched(work: &ParseWork) -> bool {
    let FetchOutcome::Page(page) = &work.fetched.outcome else { return false };
    work.visit.purpose == Purpose::Page
        && (200..300).contains(&page.status)
        && matches!(work.context.crawl.keep, Keep::Html | Keep::Raw)
}

/// Whether anybody will look at the text of a page now.
fn needs_text(work: &ParseWork) -> bool {
    let ParseWork { visit, context, .. } = work;
    context.crawl.keep == Keep::Text
        || visit.purpose == Purpose::Probe
        || visit.place.id().is_some()
        || context.soft_404.is_known(&visit.url)
        || context.learned.traps.wants_text()
}
