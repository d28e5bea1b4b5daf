//! [`ParserPool`]: leases jailed children to the threads that parse, and replaces the dead.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use telusur_model::{PageContent, PageUrl, ParsedPage, RawPage, SearchPage};

use crate::child::{Answered, ChildLimits, ChildProgram, Death, ParserChild, plain};
use crate::frames::{Depth, FRAME_BYTES_MAX, ParseReply};
use crate::jail::JailReport;
use crate::parser::{Parser, PoolError, ReadPage, Reading, VisibleText, panicked};
use crate::restarts::{PAUSE_MAX, Restarts};
use crate::spawner::{SpawnSettings, Spawner};
use crate::watch::{Interrupts, Task};

/// Pages that are given to a child at once, if they are small: each batch costs two wake-ups,
/// however many pages it has.
const BATCH_PAGES_MAX: usize = 16;
/// Bytes of body after which a batch is full.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// Deaths without a page read in between, beyond one for each child, after which the pool gives up.
const FRUITLESS_MAX: u32 = 10;
/// How often a thread that pauses before a start looks whether anybody still waits for it.
const PAUSE_PIECE: Duration = Duration::from_millis(50);

/// How a pool is run.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// How many children; at least one.
    pub children: usize,
    /// What is run as a child.
    pub program: ChildProgram,
    /// What a page may cost.
    pub limits: ChildLimits,
    /// Pause before a start that follows fruitless ones, or many that ended with a page; doubled each
    /// time.
    pub pause_first: Duration,
}

impl PoolSettings {
    /// As many children of this very program, with the usual limits.
    pub fn new(children: usize) -> io::Result<Self> {
        Ok(Self {
            children,
            program: ChildProgram::this_program()?,
            limits: ChildLimits::default(),
            pause_first: Duration::from_millis(50),
        })
    }
}

/// Parses in jailed children. A child that dies costs at most a second parse of the pages that it
/// had; a page that kills two children is [`Failed`](Reading::Failed).
///
/// As many threads as there are children parse at once; further ones wait.
#[derive(Debug)]
pub struct ParserPool {
    places: Mutex<Places>,
    place_freed: Condvar,
    spawner: Spawner,
    jail: JailReport,
    /// Children that died since a page was last read, without having been killed by one.
    fruitless: AtomicU32,
    /// Children that pages have killed. Guarded by a lock that is held for a push or a look only.
    restarts: Mutex<Restarts>,
    began: Instant,
    interrupts: Interrupts,
    children: usize,
    pause_first: Duration,
}

/// The places for children that are not leased out. Guarded by a lock that is held for a push or a
/// pop only.
#[derive(Debug)]
struct Places {
    /// The one that worked last is leased first: its memory is warm.
    resting: Vec<ParserChild>,
    /// Places of children that are gone.
    vacant: usize,
}

impl ParserPool {
    /// Starts all children and has one of them read a page. Fails if any of this does.
    pub fn start(settings: PoolSettings) -> Result<Self, PoolError> {
        let PoolSettings { children, program, limits, pause_first } = settings;
        let children = children.max(1);
        let start = |why| PoolError::Start { why };
        let spawner = Spawner::open(SpawnSettings { program, limits })
            .map_err(|error| start(error.to_string()))?;
        let (first, jail) = spawner.child().map_err(start)?;
        let mut resting = vec![first];
        while resting.len() < children {
            resting.push(spawner.child().map_err(start)?.0);
        }
        let mut answers = Vec::new();
        let interrupts = Interrupts::default();
        let task = interrupts.task();
        match resting[0].read(&task, HARMLESS_DEPTH, &[&harmless_page()], &mut answers) {
            Ok(()) if matches!(answers[..], [Answered { answer: ParseReply::Parsed(_), .. }]) => {}
            Ok(()) => return Err(start(format!("a harmless page gave {answers:?}"))),
            Err(Death::Idle { why } | Death::OnPage { why, .. }) => return Err(start(why)),
        }
        if !jail.is_whole() {
            tracing::warn!(%jail, "this kernel cannot build the whole jail");
        }
        Ok(Self {
            places: Mutex::new(Places { resting, vacant: 0 }),
            place_freed: Condvar::new(),
            spawner,
            jail,
            fruitless: AtomicU32::new(0),
            restarts: Mutex::default(),
            began: Instant::now(),
            interrupts,
            children,
            pause_first,
        })
    }

    /// The walls around the children.
    pub fn jail(&self) -> &JailReport {
        &self.jail
    }

    /// The processes of the children that have no page at the moment.
    pub fn resting_pids(&self) -> Vec<u32> {
        self.places().resting.iter().map(ParserChild::pid).collect()
    }

    fn all<T: Found>(
        &self,
        depth: Depth,
        pages: &[&RawPage],
    ) -> Result<Vec<ReadPage<T>>, PoolError> {
        let task = self.interrupts.task();
        let mut readings = Vec::with_capacity(pages.len());
        let mut left = pages;
        while !left.is_empty() {
            let (batch, behind) = left.split_at(batch_pages(left));
            left = behind;
            let Attempt { answers, death } = self.attempt(&task, depth, batch)?;
            // Which of the others killed the child is not known: answers that were held die with it.
            // Each gets its second try alone, so that none can be blamed for its neighbours.
            let unanswered = &batch[answers.len()..];
            readings.extend(answers.into_iter().map(read_page));
            let first = readings.len();
            for page in unanswered {
                readings.push(self.second_attempt(&task, depth, page)?);
            }
            if let Some(death) = death {
                charge_first_try(&mut readings[first..], &death);
            }
        }
        Ok(readings)
    }

    /// Has a batch read by a child that was alive when it got it.
    fn attempt(&self, task: &Task, depth: Depth, pages: &[&RawPage]) -> Result<Attempt, PoolError> {
        let mut answers = Vec::with_capacity(pages.len());
        loop {
            match self.lease(task)?.read(task, depth, pages, &mut answers) {
                Ok(()) => {
                    self.fruitless.store(0, Ordering::Relaxed);
                    return Ok(Attempt { answers, death: None });
                }
                Err(_) if task.is_interrupted() => return Err(PoolError::Interrupted),
                Err(Death::OnPage { why, cpu }) => {
                    let url = pages.get(answers.len()).map(|page| page.url.as_str());
                    tracing::warn!(url, why, "parser child lost");
                    self.restarts().died(self.began.elapsed());
                    return Ok(Attempt { answers, death: Some(PageDeath { why, cpu }) });
                }
                // Killed from outside while it had nothing to do: not a page's fault.
                Err(Death::Idle { why }) => self.note_fruitless(why)?,
            }
        }
    }

    /// Tries a page again that was left without an answer when its child died, this time alone.
    fn second_attempt<T: Found>(
        &self,
        task: &Task,
        depth: Depth,
        page: &RawPage,
    ) -> Result<ReadPage<T>, PoolError> {
        let Attempt { mut answers, death } = self.attempt(task, depth, &[page])?;
        match (answers.pop(), death) {
            (Some(answer), _) => Ok(read_page(answer)),
            (None, death) => {
                self.check_health(task)?;
                let PageDeath { why, cpu } = death.unwrap_or_default();
                Ok(ReadPage { reading: Reading::Failed { why }, cpu, deaths: 1 })
            }
        }
    }

    /// After a page has killed two children: was it the page? A child that cannot read a harmless
    /// page either says that it was not, and that pages must not be blamed for it.
    fn check_health(&self, task: &Task) -> Result<(), PoolError> {
        while let Some(death) = self.attempt(task, HARMLESS_DEPTH, &[&harmless_page()])?.death {
            self.note_fruitless(death.why)?;
        }
        Ok(())
    }

    /// Takes a child, waiting for one if all are leased out, and starting one if one is missing.
    fn lease(&self, task: &Task) -> Result<ChildLease<'_>, PoolError> {
        let mut places = self.places();
        loop {
            if task.is_interrupted() {
                return Err(PoolError::Interrupted);
            }
            if let Some(child) = places.resting.pop() {
                return Ok(ChildLease { pool: self, child: Some(child) });
            }
            if places.vacant > 0 {
                places.vacant -= 1;
                break;
            }
            places = self.place_freed.wait(places).unwrap_or_else(PoisonError::into_inner);
        }
        drop(places);
        // From here on the place is given back by the lease, also after an error or a panic.
        let mut lease = ChildLease { pool: self, child: None };
        loop {
            self.pause_before_start(task)?;
            match self.spawner.child() {
                Ok((child, _)) => {
                    lease.child = Some(child);
                    return Ok(lease);
                }
                Err(why) => self.note_fruitless(why)?,
            }
        }
    }

    fn note_fruitless(&self, why: String) -> Result<(), PoolError> {
        let times = self.fruitless.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::warn!(times, why, "parser child lost without having read a page");
        if times > self.fruitless_free() + FRUITLESS_MAX {
            return Err(PoolError::ChildrenDie { times, why });
        }
        Ok(())
    }

    /// If all children are killed at once, they are replaced at once.
    fn fruitless_free(&self) -> u32 {
        u32::try_from(self.children).unwrap_or(u32::MAX / 2)
    }

    /// Waits before the next start: not at all, unless starts lead nowhere or pages kill child after
    /// child.
    fn pause_before_start(&self, task: &Task) -> Result<(), PoolError> {
        let fruitless = self.fruitless.load(Ordering::Relaxed);
        let after_fruitless = match fruitless.saturating_sub(self.fruitless_free()) {
            0 => Duration::ZERO,
            beyond => self.pause_first.saturating_mul(1 << (beyond - 1).min(16)).min(PAUSE_MAX),
        };
        let after_deaths = self.restarts().pause(self.began.elapsed(), self.pause_first);
        let mut left = after_fruitless.max(after_deaths);
        if !after_deaths.is_zero() {
            tracing::warn!(pause = ?left, "pages kill parser children: the next start waits");
        }
        while !left.is_zero() {
            if task.is_interrupted() {
                return Err(PoolError::Interrupted);
            }
            let piece = left.min(PAUSE_PIECE);
            std::thread::sleep(piece);
            left -= piece;
        }
        Ok(())
    }

    fn restarts(&self) -> MutexGuard<'_, Restarts> {
        self.restarts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parser for ParserPool {
    fn parse_all(
        &self,
        pages: &[&RawPage],
        text: VisibleText,
    ) -> Result<Vec<ReadPage<ParsedPage>>, PoolError> {
        self.all(Depth::Crawl(text), pages)
    }

    fn read_for_search(
        &self,
        pages: &[&RawPage],
        text: VisibleText,
    ) -> Result<Vec<ReadPage<SearchPage>>, PoolError> {
        self.all(Depth::Search(text), pages)
    }

    fn read_all(&self, pages: &[&RawPage]) -> Result<Vec<ReadPage<PageContent>>, PoolError> {
        self.all(Depth::Everything, pages)
    }

    fn interrupt(&self) {
        self.interrupts.interrupt();
        // Locked for a moment: a thread between its check and its wait must not miss the wake-up.
        drop(self.places());
        self.place_freed.notify_all();
    }
}

/// What an answer can hold.
trait Found: Sized {
    /// What is in the page, if the answer is of this kind.
    fn found(answer: ParseReply) -> Option<Box<Self>>;
}

impl Found for ParsedPage {
    fn found(answer: ParseReply) -> Option<Box<Self>> {
        if let ParseReply::Parsed(parsed) = answer { Some(parsed) } else { None }
    }
}

impl Found for SearchPage {
    fn found(answer: ParseReply) -> Option<Box<Self>> {
        if let ParseReply::ForSearch(read) = answer { Some(read) } else { None }
    }
}

impl Found for PageContent {
    fn found(answer: ParseReply) -> Option<Box<Self>> {
        if let ParseReply::Read(content) = answer { Some(content) } else { None }
    }
}

/// What a child made of a batch.
struct Attempt {
    /// Of the first pages; of all pages, if the child lives.
    answers: Vec<Answered>,
    /// How the child died.
    death: Option<PageDeath>,
}

/// How a page killed a child.
#[derive(Default)]
struct PageDeath {
    why: String,
    /// What the page had used until then.
    cpu: Duration,
}

/// Charges the death of a child to one of the pages that it left unanswered: the one that killed again,
/// or the only one. Of several that were all read alone, the costliest pays for the time, and none is
/// said to have killed.
fn charge_first_try<T>(readings: &mut [ReadPage<T>], death: &PageDeath) {
    let is_alone = readings.len() == 1;
    let Some(page) = readings.iter_mut().max_by_key(|page| (page.deaths, page.cpu)) else { return };
    page.cpu += death.cpu;
    if is_alone || page.deaths > 0 {
        page.deaths += 1;
    }
}

/// How many of these pages go out together; at least one.
fn batch_pages(pages: &[&RawPage]) -> usize {
    let mut bytes = 0;
    let fitting = pages.iter().take(BATCH_PAGES_MAX).take_while(|page| {
        bytes += page.body.len();
        bytes <= BATCH_BYTES_MAX
    });
    fitting.count().max(1)
}

/// A child that is leased out, or the place of one that is to be started.
struct ChildLease<'a> {
    pool: &'a ParserPool,
    child: Option<ParserChild>,
}

impl ChildLease<'_> {
    fn read(
        &mut self,
        task: &Task,
        depth: Depth,
        pages: &[&RawPage],
        answers: &mut Vec<Answered>,
    ) -> Result<(), Death> {
        let child = self.child.as_mut().expect("a lease is handed out with its child");
        let read = child.read(task, depth, pages, answers);
        if read.is_err() || child.is_worn() {
            self.child = None;
        }
        read
    }
}

impl Drop for ChildLease<'_> {
    fn drop(&mut self) {
        let mut places = self.pool.places();
        match self.child.take() {
            Some(child) => places.resting.push(child),
            None => places.vacant += 1,
        }
        drop(places);
        self.pool.place_freed.notify_one();
    }
}

fn read_page<T: Found>(Answered { answer, cpu }: Answered) -> ReadPage<T> {
    ReadPage { reading: reading(answer), cpu, deaths: 0 }
}

fn reading<T: Found>(answer: ParseReply) -> Reading<T> {
    match answer {
        ParseReply::Panicked(text) => Reading::Failed { why: panicked(&plain(&text)) },
        ParseReply::TooLarge => Reading::Failed {
            why: format!("the page or what is in it is larger than {FRAME_BYTES_MAX} bytes"),
        },
        read => Reading::Read(T::found(read).expect("an answer of another depth is malformed")),
    }
}

/// How deeply a child reads a page that only shows whether it can read at all.
const HARMLESS_DEPTH: Depth = Depth::Crawl(VisibleText::Left);

/// A page that no parser can stumble over.
fn harmless_page() -> RawPage {
    RawPage {
        url: PageUrl::parse("http://harmless.invalid/").expect("a plain URL"),
        status: 200,
        headers: vec![("content-type".to_owned(), "text/html; charset=utf-8".to_owned())],
        body: bytes::Bytes::from_static(b"<!doctype html><title>Hello</title><p>Harmless."),
        truncated: false,
        wire_bytes: 0,
    }
}
