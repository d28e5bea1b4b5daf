//! A follower as an engine runs it: on a thread of its own, behind a store that goes on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use telusur_ledger::in_memory::InMemory;
use telusur_ledger::{
    CrawlStore, Event, FrontierStore, Ledger, NewCrawl, PageStore, Store, Stored,
};
use telusur_model::{
    Clock, Crawl, CrawlId, CrawlNo, FetchRules, Keep, Limits, Moment, PageRecord, PageUrl,
    Politeness, ScopeRules, Seeds, SitemapRules, Timestamp,
};
use telusur_parse_pool::InProcess;

use super::{COMMON_WORD, FollowerBench, HeldPage, PAGES_MAX, held, title_of};
use crate::followers::{
    ChangeBatch, FollowError, Follower, FollowerParts, Followers, FollowersHandle, Pace,
};
use crate::imports::{ImportLine, Importer};
use crate::page_source::StoredSource;
use crate::supervision::Supervisor;

/// How long a follower is waited for between two looks at it.
const WAIT: Duration = Duration::from_secs(1);

/// A store in memory with documents in it.
struct Pages {
    store: Arc<Ledger<InMemory>>,
    /// Counts versions.
    version: u64,
}

impl Pages {
    fn new() -> Self {
        Self { store: Arc::new(Ledger::open(InMemory::default()).unwrap()), version: 0 }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    fn crawl(&self) -> Crawl {
        let crawl = Crawl {
            no: CrawlNo(0),
            id: CrawlId::new(Timestamp(0), 0),
            name: None,
            created_at: Timestamp(1_000),
            seeds: Seeds::Links(Vec::new()),
            scope: ScopeRules::default(),
            politeness: Politeness::default(),
            limits: Limits::default(),
            fetch: FetchRules::default(),
            keep: Keep::Text,
            topic: Vec::new(),
            keep_tracking: true,
            sitemaps: SitemapRules::default(),
            recrawl_of: None,
            labels: Default::default(),
        };
        self.store.create(NewCrawl { crawl, random: 7 }).unwrap().crawl
    }

    /// Stores pages of a crawl, or new versions of them.
    fn put(&mut self, crawl: &Crawl, numbers: impl IntoIterator<Item = u64>) {
        let mut importer = Importer::new(self.store.as_ref(), crawl.clone());
        for number in numbers {
            self.version += 1;
            let line = ImportLine {
                id: None,
                url: None,
                title: title_of(self.version, number),
                text: format!("{COMMON_WORD} of page {number}, version{}", self.version),
                language: None,
            };
            let url = format!("http://site{}.test/{number}", crawl.no.0);
            importer.add(line, PageUrl::parse(&url).unwrap(), Timestamp(2_000)).unwrap();
        }
        importer.flush().unwrap();
    }

    fn records(&self, crawl: CrawlNo) -> Vec<PageRecord> {
        self.store.pages_after(crawl, 0, usize::MAX).unwrap()
    }

    /// Records what is found when pages of a crawl are read again.
    fn read_again(&self, crawl: CrawlNo, max: usize) {
        let mut reread = self.records(crawl);
        reread.truncate(max);
        let again = reread.into_iter().map(|page| Event::PageReadAgain(Box::new(page)));
        self.store.commit(again.collect()).unwrap();
    }

    /// What a follower of it should hold.
    fn expected(&self) -> Vec<HeldPage> {
        let crawls = self.store.crawls().unwrap();
        let pages = crawls.iter().flat_map(|record| self.records(record.crawl.no));
        let held = pages.map(|PageRecord { crawl, key, title, .. }| HeldPage {
            crawl,
            key,
            title: title.unwrap(),
        });
        let mut pages: Vec<_> = held.collect();
        pages.sort();
        assert!(pages.len() <= PAGES_MAX);
        pages
    }

    /// Waits until the followers have committed everything, however often they fail.
    fn wait(&self, followers: &FollowersHandle, which: &[&str]) {
        let place = self.store.last_change().unwrap();
        while !followers.have_reached(which, place, WAIT) {}
    }
}

/// A clock on which minutes pass whenever it is looked at: nobody waits for a pause.
#[derive(Default)]
struct FastClock(AtomicU64);

impl Clock for FastClock {
    fn now(&self) -> Moment {
        Moment::default().plus_ms(self.0.fetch_add(100_000, Ordering::AcqRel))
    }

    fn wall(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Acquire))
    }
}

/// What a follower of the suite was asked to do.
#[derive(Default)]
struct Seen {
    /// The places of changes in commits that it knows of.
    committed: Vec<u64>,
    /// The places of changes since.
    taken: Vec<u64>,
    commits: u32,
}

/// A follower that is watched, and fails now and then.
struct Watched {
    follower: Box<dyn Follower>,
    seen: Arc<Mutex<Seen>>,
    /// Every how many commits one fails: the first time before it is made, the second time after.
    fails_every: Option<u32>,
}

impl Watched {
    fn new(follower: Box<dyn Follower>, fails_every: Option<u32>) -> (Self, Arc<Mutex<Seen>>) {
        let seen = Arc::<Mutex<Seen>>::default();
        (Self { follower, seen: Arc::clone(&seen), fails_every }, seen)
    }

    fn note_commit(&self) {
        let mut seen = lock(&self.seen);
        let (place, taken) = (self.follower.place(), std::mem::take(&mut seen.taken));
        seen.committed.extend(taken.into_iter().filter(|seq| *seq <= place));
    }
}

impl Follower for Watched {
    fn name(&self) -> &'static str {
        self.follower.name()
    }

    fn place(&self) -> u64 {
        self.follower.place()
    }

    fn take_in(&mut self, batch: ChangeBatch) -> Result<(), FollowError> {
        let places: Vec<u64> = batch.changes.iter().map(|change| change.seq()).collect();
        lock(&self.seen).taken.extend(&places);
        self.follower.take_in(batch)
    }

    fn commit(&mut self) -> Result<(), FollowError> {
        let commits = {
            let mut seen = lock(&self.seen);
            seen.commits += 1;
            seen.commits
        };
        let fails = self.fails_every.filter(|every| commits.is_multiple_of(*every));
        let failure = || Err(FollowError::Failed("every third commit fails".into()));
        let is_made = fails.is_none_or(|every| (commits / every).is_multiple_of(2));
        if is_made {
            self.follower.commit()?;
            self.note_commit();
        }
        fails.map_or(Ok(()), |_| failure())
    }

    fn reopen(&mut self, why: &FollowError) -> Result<(), FollowError> {
        // What it committed by itself counts as well.
        self.note_commit();
        self.follower.reopen(why)
    }

    /// As many commits as there are batches.
    fn pace(&self) -> Pace {
        Pace { commit_wait: Duration::ZERO, commit_changes_max: 1, slows_crawls: false }
    }

    fn tend(&mut self, is_idle: bool) -> Result<(), FollowError> {
        self.follower.tend(is_idle)
    }
}

/// A follower that can do nothing.
struct Broken;

impl Follower for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn place(&self) -> u64 {
        0
    }

    fn take_in(&mut self, _batch: ChangeBatch) -> Result<(), FollowError> {
        panic!("it takes in nothing")
    }

    fn commit(&mut self) -> Result<(), FollowError> {
        Ok(())
    }

    fn reopen(&mut self, _why: &FollowError) -> Result<(), FollowError> {
        Err(FollowError::Failed("nor is it opened again".into()))
    }
}

fn start(pages: &Pages, followers: Vec<Box<dyn Follower>>) -> Followers {
    // The pages are those of this suite: they need no jail.
    let source = || StoredSource::new(pages.store(), Arc::new(InProcess::default()));
    let parts = |follower| FollowerParts { follower, source: Arc::new(source()) };
    let clock: Arc<dyn Clock> = Arc::new(FastClock::default());
    let followers = followers.into_iter().map(parts).collect();
    Followers::start(followers, &pages.store(), &clock, &Supervisor::default()).unwrap()
}

/// What tells followers of a change; the rest they read in the store.
fn told(pages: u64) -> Vec<Stored> {
    let url = PageUrl::parse("http://site.test/").unwrap();
    (0..pages).map(|seq| Stored { seq, url: url.clone() }).collect()
}

#[track_caller]
fn assert_in_order_and_once(seen: &Mutex<Seen>) {
    let seen = lock(seen);
    let is_ordered = seen.committed.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(is_ordered, "not in order, or twice: {:?}", seen.committed);
}

pub(super) fn catches_up(bench: &dyn FollowerBench) {
    let mut pages = Pages::new();
    let crawls = [pages.crawl(), pages.crawl(), pages.crawl()];
    for crawl in &crawls {
        pages.put(crawl, 0..250);
    }
    // It was there before the rest was stored.
    let follower = bench.open();
    let name = follower.name();
    let followers = start(&pages, vec![follower]);
    pages.wait(&followers.handle(), &[name]);
    assert_eq!(followers.finish(), []);
    drop(bench.open());
    pages.put(&crawls[0], 0..300);
    pages.put(&crawls[1], 200..300);
    pages.store.remove(crawls[2].no).unwrap();
    pages.read_again(crawls[0].no, 40);
    let (watched, seen) = Watched::new(bench.open(), None);
    let missing = pages.store.changes_count(watched.place(), u64::MAX).unwrap();
    let followers = start(&pages, vec![Box::new(watched)]);
    let handle = followers.handle();
    pages.wait(&handle, &[name]);
    let report = handle.reports().remove(0);
    assert_eq!((report.lag, report.trouble), (0, None));
    assert_in_order_and_once(&seen);
    assert_eq!(lock(&seen).committed.len() as u64, missing);
    assert_eq!(followers.finish(), []);
    let _open = bench.open();
    assert_eq!(held(bench), pages.expected());
}

pub(super) fn survives_failing_commits(bench: &dyn FollowerBench) {
    let mut pages = Pages::new();
    let (watched, seen) = Watched::new(bench.open(), Some(3));
    let name = watched.name();
    let followers = start(&pages, vec![Box::new(watched)]);
    let (kept, gone) = (pages.crawl(), pages.crawl());
    for round in 0..8 {
        pages.put(&kept, round * 10..round * 10 + 15);
        pages.put(&gone, [round, round + 1]);
        followers.wake(&told(17));
        pages.wait(&followers.handle(), &[name]);
    }
    pages.store.remove(gone.no).unwrap();
    followers.handle().look();
    pages.wait(&followers.handle(), &[name]);
    assert!(lock(&seen).commits >= 6, "no commit failed");
    assert_in_order_and_once(&seen);
    followers.finish();
    let _open = bench.open();
    assert_eq!(held(bench), pages.expected());
}

pub(super) fn follows_changes_meanwhile(bench: &dyn FollowerBench) {
    let mut pages = Pages::new();
    let (watched, seen) = Watched::new(bench.open(), Some(5));
    let name = watched.name();
    let followers = start(&pages, vec![Box::new(watched)]);
    let handle = followers.handle();
    let mut dice = super::Dice(3);
    let mut crawls = [pages.crawl(), pages.crawl(), pages.crawl()];
    for _ in 0..60 {
        let at = dice.below(crawls.len() as u64) as usize;
        match dice.below(8) {
            0 => {
                pages.store.remove(crawls[at].no).unwrap();
                crawls[at] = pages.crawl();
                handle.look();
            }
            1 | 2 => {
                pages.read_again(crawls[at].no, 10);
                handle.look();
            }
            _ => {
                let first = dice.below(100);
                pages.put(&crawls[at], first..first + 20);
                followers.wake(&told(20));
            }
        }
    }
    pages.wait(&handle, &[name]);
    assert_in_order_and_once(&seen);
    followers.finish();
    let _open = bench.open();
    assert_eq!(held(bench), pages.expected());
}

pub(super) fn stands_alone(bench: &dyn FollowerBench) {
    let mut pages = Pages::new();
    let follower = bench.open();
    let name = follower.name();
    let followers = start(&pages, vec![Box::new(Broken), follower]);
    let handle = followers.handle();
    let crawl = pages.crawl();
    pages.put(&crawl, 0..5);
    followers.wake(&told(5));
    pages.wait(&handle, &[name]);
    let troubles = || handle.reports().remove(0).trouble;
    while troubles().is_none_or(|trouble| trouble.failures < 3) {
        std::thread::yield_now();
    }
    let [broken, sound] = &handle.reports()[..] else { panic!("there are two") };
    assert_eq!((broken.lag, broken.name.as_str()), (5, "broken"));
    assert_eq!(broken.trouble.as_ref().unwrap().why, "nor is it opened again");
    assert_eq!((sound.lag, &sound.trouble), (0, &None));
    assert!(!followers.slow_crawls(1), "nobody waits for it");
    let failed = followers.finish();
    assert_eq!(failed.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["broken"]);
    let _open = bench.open();
    assert_eq!(held(bench), pages.expected());
}

fn lock<T>(guarded: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}
