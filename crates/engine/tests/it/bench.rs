//! What every test here starts from: a web, a directory, an engine between them.

use std::sync::Arc;

use telusur_engine::control::{Control, ExportItem, ExportLine, ExportPages, Operation, Verify};
use telusur_engine::{Engine, EngineOptions, EngineParts, RequestError};
use telusur_fetch::Fetch;
use telusur_index::SearchIndex;
use telusur_ledger::{CrawlRecord, CrawlStore, NewCrawl, Store, StoreError, UrlRecord};
use telusur_model::{
    Clock, Crawl, CrawlId, CrawlNo, CrawlState, FetchRules, Keep, Limits, PageUrl, Politeness,
    Progress, RobotsRules, ScopeKind, ScopeRules, Seeds, SitemapRules, Timestamp,
};
use telusur_parse_pool::{InProcess, Parser};
use telusur_store_embedded::EmbeddedStore;
use telusur_testkit::clock::{ManualClock, TokioClock};
use telusur_testkit::{FakeAnswer, FakeRequest, FakeWeb, FakeWebFetcher, FakeWebSpec, Website};

pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) fetcher: Arc<FakeWebFetcher>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Bench {
    pub(crate) fn of_web(spec: FakeWebSpec) -> (Self, FakeWeb) {
        let web = FakeWeb::new(spec).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
        let fetcher = Arc::new(FakeWebFetcher::new(web.clone(), Arc::clone(&clock)));
        (Self { dir: tempfile::tempdir().unwrap(), fetcher, clock }, web)
    }

    /// One host `site.test` whose pages are given by path.
    pub(crate) fn of_site(answer: fn(&str) -> FakeAnswer) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
        let site = Arc::new(OneSite { answer });
        let fetcher = Arc::new(FakeWebFetcher::of_website(site, Arc::clone(&clock)));
        Self { dir: tempfile::tempdir().unwrap(), fetcher, clock }
    }

    /// Hosts below `.test` whose pages are given by host and path.
    pub(crate) fn of_hosts(answer: fn(&str, &str) -> FakeAnswer) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
        let hosts = Arc::new(Hosts { answer });
        let fetcher = Arc::new(FakeWebFetcher::of_website(hosts, Arc::clone(&clock)));
        Self { dir: tempfile::tempdir().unwrap(), fetcher, clock }
    }

    /// The same hosts under a clock that stands still until it is moved.
    pub(crate) fn of_hosts_by_hand(
        answer: fn(&str, &str) -> FakeAnswer,
    ) -> (Self, Arc<ManualClock>) {
        let by_hand = Arc::new(ManualClock::new());
        let clock = Arc::clone(&by_hand) as Arc<dyn Clock>;
        let hosts = Arc::new(Hosts { answer });
        let fetcher = Arc::new(FakeWebFetcher::of_website(hosts, Arc::clone(&clock)));
        (Self { dir: tempfile::tempdir().unwrap(), fetcher, clock }, by_hand)
    }

    /// The targets that were asked for, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        let requests = self.fetcher.log().requests();
        requests.into_iter().map(|it| format!("{}{}", it.host, it.target)).collect()
    }

    pub(crate) fn open(&self) -> Arc<EmbeddedStore> {
        Arc::new(telusur_store_embedded::open(self.dir.path()).unwrap())
    }

    /// Opens the directory of an engine that vanished, once its visits under way have let go of it.
    pub(crate) async fn open_again(&self) -> Arc<EmbeddedStore> {
        loop {
            match telusur_store_embedded::open(self.dir.path()) {
                Err(StoreError::Locked { .. }) => tokio::task::yield_now().await,
                opened => return Arc::new(opened.unwrap()),
            }
        }
    }

    pub(crate) fn engine(&self, store: &Arc<EmbeddedStore>) -> Engine {
        self.engine_with(store, 0)
    }

    pub(crate) fn engine_with(&self, store: &Arc<EmbeddedStore>, free_bytes_min: u64) -> Engine {
        Engine::start(self.parts(store), &EngineOptions { parse_threads: 2, free_bytes_min })
            .unwrap()
    }

    pub(crate) fn engine_with_index(
        &self,
        store: &Arc<EmbeddedStore>,
        index: &Arc<SearchIndex>,
    ) -> Engine {
        let parts = EngineParts { index: Some(Arc::clone(index)), ..self.parts(store) };
        Engine::start(parts, &EngineOptions { parse_threads: 2, free_bytes_min: 0 }).unwrap()
    }

    pub(crate) fn engine_with_parser(
        &self,
        store: &Arc<EmbeddedStore>,
        parser: Arc<dyn Parser>,
    ) -> Engine {
        let parts = EngineParts { parser, ..self.parts(store) };
        Engine::start(parts, &EngineOptions { parse_threads: 2, free_bytes_min: 0 }).unwrap()
    }

    pub(crate) fn parts(&self, store: &Arc<EmbeddedStore>) -> EngineParts {
        EngineParts {
            store: Arc::clone(store) as Arc<dyn Store>,
            fetcher: Arc::clone(&self.fetcher) as Arc<dyn Fetch>,
            clock: Arc::clone(&self.clock),
            parser: Arc::new(InProcess::default()),
            index: None,
            followers: Vec::new(),
        }
    }

    /// Runs a new crawl to its end and gives what became of it.
    pub(crate) async fn crawl(&self, crawl: Crawl) -> (Arc<EmbeddedStore>, CrawlRecord) {
        let store = self.open();
        let engine = self.engine(&store);
        let no = accept(&store, crawl);
        engine.handle().run(no).await.unwrap();
        finished(&engine, no).await;
        engine.shutdown().await.unwrap();
        let record = store.crawl(no).unwrap().unwrap();
        assert_verified(&store);
        (store, record)
    }
}

/// Reads pages in this process.
pub(crate) fn in_process() -> Arc<dyn Parser> {
    Arc::new(InProcess::default())
}

pub(crate) fn accept(store: &EmbeddedStore, crawl: Crawl) -> CrawlNo {
    store.create(NewCrawl { crawl, random: 7 }).unwrap().crawl.no
}

/// Waits until a crawl is over.
pub(crate) async fn finished(engine: &Engine, crawl: CrawlNo) -> Progress {
    until(engine, crawl, |progress| matches!(progress.state, CrawlState::Finished { .. })).await
}

/// Waits until a snapshot of a crawl is as wanted.
pub(crate) async fn until(
    engine: &Engine,
    crawl: CrawlNo,
    is_wanted: impl Fn(&Progress) -> bool,
) -> Progress {
    let mut snapshots = engine.handle().progress();
    let found = snapshots.wait_for(|shown| shown.get(&crawl).is_some_and(&is_wanted)).await;
    found.unwrap()[&crawl].clone()
}

/// A crawl without delay and without robots, as wide as the web.
pub(crate) fn crawl(seeds: Vec<PageUrl>) -> Crawl {
    Crawl {
        no: CrawlNo(0),
        id: CrawlId::new(Timestamp(0), 0),
        name: None,
        created_at: Timestamp(1_000),
        seeds: Seeds::Links(seeds),
        scope: ScopeRules { kind: ScopeKind::Any, ..Default::default() },
        politeness: Politeness {
            delay_ms: 0,
            workers: 16,
            robots: RobotsRules::Ignore,
            ..Default::default()
        },
        limits: Limits {
            urls_per_host_max: u64::MAX,
            urls_per_site_max: u64::MAX,
            ..Default::default()
        },
        fetch: FetchRules::default(),
        keep: Keep::Html,
        topic: Vec::new(),
        keep_tracking: false,
        sitemaps: SitemapRules { discover: false, urls: Vec::new() },
        recrawl_of: None,
        labels: Default::default(),
    }
}

/// A crawl of `site.test` as a user would get it, without delay.
pub(crate) fn polite_crawl() -> Crawl {
    let mut crawl = site_crawl();
    crawl.politeness.robots = RobotsRules::Obey;
    crawl.sitemaps.discover = true;
    crawl.scope = ScopeRules::default();
    crawl
}

/// A crawl of `site.test`.
pub(crate) fn site_crawl() -> Crawl {
    crawl(vec![url("http://site.test/")])
}

pub(crate) fn url(text: &str) -> PageUrl {
    PageUrl::parse(text).unwrap()
}

pub(crate) fn known(store: &EmbeddedStore, text: &str) -> UrlRecord {
    use telusur_ledger::FrontierStore;
    store.url(CrawlNo(1), &url(text)).unwrap().unwrap_or_else(|| panic!("{text} is not known"))
}

/// Runs an operation on a store beside no engine, and gives its items and its reply.
#[track_caller]
pub(crate) fn run<O: Operation>(
    store: &Arc<EmbeddedStore>,
    operation: &O,
) -> (Vec<O::Item>, O::Reply) {
    try_run(store, operation).unwrap_or_else(|error| panic!("{:?}: {error:?}", O::KIND))
}

/// The same for an operation that may be refused.
pub(crate) fn try_run<O: Operation>(
    store: &Arc<EmbeddedStore>,
    operation: &O,
) -> Result<(Vec<O::Item>, O::Reply), RequestError> {
    Control::of_store(Arc::clone(store) as Arc<dyn Store>, in_process()).collect(operation)
}

pub(crate) fn export(store: &Arc<EmbeddedStore>) -> Vec<ExportLine> {
    let (lines, ()) = run(store, &ExportPages { crawl: "last".into() });
    lines
        .into_iter()
        .map(|line| match line {
            ExportItem::Page(line) => *line,
            damaged => panic!("{damaged:?}"),
        })
        .collect()
}

#[track_caller]
pub(crate) fn assert_verified(store: &Arc<EmbeddedStore>) {
    let (_, report) = run(store, &Verify {});
    assert!(report.holds(), "{report:#?}");
}

struct OneSite {
    answer: fn(&str) -> FakeAnswer,
}

impl Website for OneSite {
    fn address_of(&self, host: &str) -> Option<std::net::Ipv4Addr> {
        (host == "site.test").then_some(std::net::Ipv4Addr::new(127, 9, 9, 9))
    }

    fn answer_to(&self, request: FakeRequest<'_>) -> Option<FakeAnswer> {
        (request.host == "site.test").then(|| (self.answer)(request.target))
    }
}

struct Hosts {
    answer: fn(&str, &str) -> FakeAnswer,
}

impl Website for Hosts {
    fn address_of(&self, host: &str) -> Option<std::net::Ipv4Addr> {
        let name = host.split(':').next()?;
        let number = name.bytes().fold(0_u16, |sum, byte| sum.wrapping_mul(31) ^ u16::from(byte));
        let [high, low] = number.to_be_bytes();
        name.ends_with(".test").then(|| std::net::Ipv4Addr::new(127, 8, high, low))
    }

    fn answer_to(&self, request: FakeRequest<'_>) -> Option<FakeAnswer> {
        self.address_of(request.host)?;
        Some((self.answer)(request.host, request.target))
    }
}

/// A page with these links.
pub(crate) fn page(links: &[&str]) -> FakeAnswer {
    let links: String = links.iter().map(|link| format!("<a href=\"{link}\">x</a>\n")).collect();
    FakeAnswer::html(format!("<!doctype html><title>A page</title><p>Some text.</p>{links}"))
}
