//! The disk below the index fails and works again: indexing says so, waits, and goes on by itself.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use telusur_engine::control::{Control, CrawlDone, ReadCrawls, RemoveCrawl};
use telusur_engine::{Engine, FollowerReport, NotLeased, StopFollowing, lease_index};
use telusur_index::{DocKey, IndexLimits, SearchIndex, SyncHook};
use telusur_ledger::{CrawlStore, PageStore, Store};
use telusur_model::{CrawlNo, FinishReason};
use telusur_store_embedded::EmbeddedStore;
use telusur_testkit::FakeWebSpec;

use crate::bench::{Bench, accept, crawl, finished};

const PAGES: u64 = 60;
/// Failures in a row after which nobody waits any more.
const FAILURES_MAX: u32 = 100;

/// A disk that is full as long as it is told to be, or at one sync.
#[derive(Debug)]
struct FailingDisk {
    is_full: AtomicBool,
    /// Syncs until one fails.
    until_failure: AtomicI64,
}

impl FailingDisk {
    fn new(is_full: bool, fails_at: i64) -> Arc<Self> {
        let (is_full, until_failure) = (AtomicBool::new(is_full), AtomicI64::new(fails_at));
        Arc::new(Self { is_full, until_failure })
    }
}

impl SyncHook for FailingDisk {
    fn before_sync(&self) -> io::Result<()> {
        let fails = self.until_failure.fetch_sub(1, Ordering::SeqCst) == 1;
        if fails || self.is_full.load(Ordering::SeqCst) {
            return Err(io::Error::from_raw_os_error(28));
        }
        Ok(())
    }
}

/// An engine whose index is on that disk.
struct Owner {
    bench: Bench,
    crawl: telusur_model::Crawl,
    store: Arc<EmbeddedStore>,
    index: Arc<SearchIndex>,
    engine: Engine,
}

impl Owner {
    fn start(disk: &Arc<FailingDisk>) -> Self {
        let spec = FakeWebSpec {
            hosts: 3,
            pages: telusur_testkit::fake_web::PageCounts::Even { total: PAGES },
            links_per_page: 8,
            page_bytes: 2_000,
            ..FakeWebSpec::default()
        };
        let (bench, web) = Bench::of_web(spec);
        let store = bench.open();
        let dir = bench.dir.path().join("index");
        // It works while the index is made.
        let is_full = disk.is_full.swap(false, Ordering::SeqCst);
        let fails_at = disk.until_failure.swap(0, Ordering::SeqCst);
        let index = SearchIndex::open_with(&dir, IndexLimits::default(), disk.clone()).unwrap();
        disk.is_full.store(is_full, Ordering::SeqCst);
        disk.until_failure.store(fails_at, Ordering::SeqCst);
        let index = Arc::new(index);
        let engine = bench.engine_with_index(&store, &index);
        Self { bench, crawl: crawl(web.seeds()), store, index, engine }
    }

    async fn crawl(&self) -> CrawlNo {
        let no = accept(&self.store, self.crawl.clone());
        self.engine.handle().run(no).await.unwrap();
        finished(&self.engine, no).await;
        no
    }

    /// Lets time pass until it is as wanted. What has failed so often in the meantime will not come.
    #[track_caller]
    fn until(&self, is_wanted: impl Fn(&Self) -> bool) -> impl Future<Output = ()> {
        let at = std::panic::Location::caller();
        async move {
            while !is_wanted(self) {
                let trouble = self.indexing().trouble;
                let failures = trouble.as_ref().map_or(0, |trouble| trouble.failures);
                assert!(failures < FAILURES_MAX, "waits in vain at {at}: {trouble:?}");
                tokio::time::advance(Duration::from_millis(100)).await;
                std::thread::yield_now();
            }
        }
    }

    fn indexing(&self) -> FollowerReport {
        self.engine.handle().indexing().unwrap()
    }

    fn control(&self) -> Control {
        Control::of_engine(Arc::clone(&self.store) as Arc<dyn Store>, self.engine.handle())
            .with_index(Some(Arc::clone(&self.index)))
    }

    /// Why control says that indexing is behind.
    fn told(&self) -> Option<String> {
        let (crawls, ()) = self.control().collect(&ReadCrawls {}).unwrap();
        let behind = crawls.into_iter().next_back()?.behind;
        behind.into_iter().find_map(|report| report.trouble).map(|trouble| trouble.why)
    }

    fn is_searchable(&self, crawl: CrawlNo) -> bool {
        let pages = self.store.pages_after(crawl, 0, 10_000).unwrap();
        self.index.applied_upto() >= pages.last().unwrap().seq
    }

    fn assert_complete(&self, crawl: CrawlNo) {
        let mut keys = Vec::new();
        self.index.each_key(&mut |key| keys.push(key)).unwrap();
        keys.sort_unstable();
        let pages = self.store.pages_after(crawl, 0, 10_000).unwrap();
        let ok = pages.iter().filter(|page| page.is_ok());
        let mut stored: Vec<_> = ok.map(|page| DocKey { url: page.key, crawl }).collect();
        stored.sort_unstable();
        assert!(stored.len() as u64 >= PAGES);
        assert_eq!(keys, stored);
        self.index.validate().unwrap();
    }
}

/// One failed sync once ended indexing until the next start of the process.
#[tokio::test(start_paused = true)]
async fn one_failed_sync_does_not_end_indexing() {
    for nth in [1, 2, 3, 5, 8, 13] {
        let disk = FailingDisk::new(false, nth);
        let owner = Owner::start(&disk);
        let no = owner.crawl().await;
        owner.until(|owner| owner.is_searchable(no)).await;
        owner.until(|owner| owner.indexing().trouble.is_none()).await;
        assert!(disk.until_failure.load(Ordering::SeqCst) <= 0, "sync {nth} was never reached");
        owner.assert_complete(no);
        owner.engine.shutdown().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_is_told_and_indexing_goes_on_when_there_is_space() {
    let disk = FailingDisk::new(true, 0);
    let owner = Owner::start(&disk);
    // The crawl itself is not held up.
    let no = owner.crawl().await;
    let record = owner.store.crawl(no).unwrap().unwrap();
    assert!(record.stats.pages >= PAGES);
    assert!(
        matches!(record.state, telusur_model::CrawlState::Finished { why: FinishReason::Drained }),
        "{:?}",
        record.state
    );
    let failures = |owner: &Owner| owner.indexing().trouble.map(|it| it.failures);
    owner.until(|owner| failures(owner) >= Some(3)).await;
    let report = owner.indexing();
    assert_eq!(report.lag, record.stats.pages);
    let why = report.trouble.unwrap().why;
    assert!(why.contains("the disk is full"), "{why}");
    assert_eq!(owner.told(), Some(why));
    disk.is_full.store(false, Ordering::SeqCst);
    owner.until(|owner| failures(owner).is_none()).await;
    owner.until(|owner| owner.is_searchable(no)).await;
    assert_eq!(owner.told(), None);
    assert_eq!(owner.indexing().lag, 0);
    owner.assert_complete(no);
    owner.engine.shutdown().await.unwrap();
}

/// The first write that fails is that of one who deletes a crawl: the crawl is gone all the same.
#[tokio::test(start_paused = true)]
async fn a_crawl_is_deleted_and_the_index_follows() {
    let disk = FailingDisk::new(false, 0);
    let owner = Owner::start(&disk);
    let (kept, deleted) = (owner.crawl().await, owner.crawl().await);
    owner.until(|owner| owner.is_searchable(kept) && owner.is_searchable(deleted)).await;
    disk.is_full.store(true, Ordering::SeqCst);
    let control = owner.control();
    let id = owner.store.crawl(deleted).unwrap().unwrap().crawl.id.to_string();
    let order = RemoveCrawl { crawl: deleted.to_string() };
    let replied = tokio::task::spawn_blocking(move || control.collect(&order)).await.unwrap();
    assert_eq!(replied.unwrap().1, CrawlDone { crawl: id });
    assert!(owner.store.crawl(deleted).unwrap().is_none());
    disk.is_full.store(false, Ordering::SeqCst);
    owner.until(|owner| !owner.index.crawls().unwrap().contains(&deleted)).await;
    owner.until(|owner| owner.indexing().trouble.is_none()).await;
    owner.assert_complete(kept);
    owner.engine.shutdown().await.unwrap();
}

/// The index is not leased while it cannot be written, and whoever wants it is told why.
#[tokio::test(start_paused = true)]
async fn a_failing_index_is_not_leased() {
    let disk = FailingDisk::new(true, 0);
    let owner = Owner::start(&disk);
    let socket = owner.bench.dir.path().join("control.sock");
    let guard = telusur_engine::control::serve(&socket, owner.control()).unwrap();
    let no = owner.crawl().await;
    owner.until(|owner| owner.indexing().trouble.is_some()).await;
    let leased =
        tokio::task::spawn_blocking(move || lease_index(&socket, &StopFollowing::default())).await;
    let Err(NotLeased::Refused(why)) = leased.unwrap() else { panic!("it was leased") };
    assert!(why.contains("cannot be written"), "{why}");
    disk.is_full.store(false, Ordering::SeqCst);
    owner.until(|owner| owner.is_searchable(no)).await;
    owner.assert_complete(no);
    drop(guard);
    owner.engine.shutdown().await.unwrap();
}
