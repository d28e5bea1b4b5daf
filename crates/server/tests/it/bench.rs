//! What every test here starts from: a made-up web, a data directory, and the service between them.

use std::net::Ipv4Addr;
use std::sync::Arc;

use async_trait::async_trait;
use telusur_engine::{Engine, EngineOptions, EngineParts, Follower};
use telusur_fetch::{Fetch, FetchOrder, FetchProfile, Resolved};
use telusur_index::{IndexLimits, SearchIndex, SyncHook};
use telusur_ledger::{Store, StoreError};
use telusur_model::{
    Clock, Crawl, CrawlId, CrawlNo, CrawlState, FetchRules, Fetched, Keep, Limits, PageUrl,
    Politeness, Progress, RobotsRules, ScopeRules, Seeds, SitemapRules, Timestamp,
};
use telusur_parse_pool::InProcess;
use telusur_server::{Bounds, Service, ServiceParts, ServiceSettings, serve};
use telusur_store_embedded::EmbeddedStore;
use telusur_testkit::clock::TokioClock;
use telusur_testkit::{FakeAnswer, FakeRequest, FakeWebFetcher, Website};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::client::Client;

/// How a page is answered, by its path.
pub(crate) type Answers = fn(&str) -> FakeAnswer;

/// A service that runs.
pub(crate) struct Bench {
    pub(crate) dir: Arc<tempfile::TempDir>,
    pub(crate) client: Client,
    pub(crate) service: Service,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) index_disk: Arc<IndexDisk>,
    answers: Answers,
    engine: Option<Engine>,
    serving: JoinHandle<()>,
    settings: fn(&mut ServiceSettings),
}

/// The disk below the index, which is full when it is told to be.
#[derive(Debug, Default)]
pub(crate) struct IndexDisk {
    pub(crate) is_full: std::sync::atomic::AtomicBool,
}

impl SyncHook for IndexDisk {
    fn before_sync(&self) -> std::io::Result<()> {
        match self.is_full.load(std::sync::atomic::Ordering::SeqCst) {
            true => Err(std::io::Error::from_raw_os_error(28)),
            false => Ok(()),
        }
    }
}

impl Bench {
    /// A service over the site `site.test`.
    pub(crate) async fn start(answers: Answers) -> Self {
        Self::start_with(answers, |_| {}).await
    }

    /// The same, with other settings.
    pub(crate) async fn start_with(answers: Answers, settings: fn(&mut ServiceSettings)) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        Self::open(dir, Arc::new(Gate::open()), answers, settings, Vec::new()).await
    }

    /// The same, with something else that follows the store.
    pub(crate) async fn start_with_follower(
        answers: Answers,
        settings: fn(&mut ServiceSettings),
        follower: Box<dyn Follower>,
    ) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        Self::open(dir, Arc::new(Gate::open()), answers, settings, vec![follower]).await
    }

    /// A service over a site that answers only as many requests as the test [lets](Gate::let_through).
    pub(crate) async fn start_gated(answers: Answers) -> Self {
        Self::start_gated_with(answers, |_| {}).await
    }

    /// The same, with other settings.
    pub(crate) async fn start_gated_with(
        answers: Answers,
        settings: fn(&mut ServiceSettings),
    ) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        Self::open(dir, Arc::new(Gate::closed()), answers, settings, Vec::new()).await
    }

    async fn open(
        dir: Arc<tempfile::TempDir>,
        gate: Arc<Gate>,
        answers: Answers,
        settings: fn(&mut ServiceSettings),
        followers: Vec<Box<dyn Follower>>,
    ) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
        let site = Arc::new(Site { answers });
        let web = FakeWebFetcher::of_website(site, Arc::clone(&clock));
        let fetcher: Arc<dyn Fetch> = Arc::new(Gated { web, gate: Arc::clone(&gate) });
        let store: Arc<dyn Store> = Arc::new(open_store(dir.path()).await);
        let index_disk = Arc::<IndexDisk>::default();
        let index = dir.path().join("index");
        let index =
            SearchIndex::open_with(&index, IndexLimits::default(), index_disk.clone()).unwrap();
        let index = Some(Arc::new(index));
        let parts = EngineParts {
            store: Arc::clone(&store),
            fetcher,
            clock: Arc::clone(&clock),
            parser: Arc::new(InProcess::default()),
            index: index.clone(),
            followers,
        };
        let engine =
            Engine::start(parts, &EngineOptions { parse_threads: 1, free_bytes_min: 0 }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut own = ServiceSettings {
            listen: address,
            allowed_hosts: Vec::new(),
            public_search: false,
            read_only: false,
            has_ui: false,
            keys_file: dir.path().join("keys.json"),
            defaults: defaults(),
            bounds: Bounds::default(),
        };
        settings(&mut own);
        let engine_handle = engine.handle();
        let service = Service::start(ServiceParts {
            store: Arc::clone(&store),
            engine: engine_handle,
            index,
            clock,
            settings: own,
        });
        let service = service.await.unwrap();
        let serving = {
            let service = service.clone();
            tokio::spawn(serve(listener, service))
        };
        let (engine, client) = (Some(engine), Client::new(address));
        Self { dir, client, service, store, gate, index_disk, answers, engine, serving, settings }
    }

    /// Waits until a snapshot of a crawl is as wanted.
    pub(crate) async fn until(
        &self,
        crawl: CrawlNo,
        is_wanted: impl Fn(&Progress) -> bool,
    ) -> Progress {
        let mut snapshots = self.engine.as_ref().unwrap().handle().progress();
        let found = snapshots.wait_for(|shown| shown.get(&crawl).is_some_and(&is_wanted)).await;
        found.unwrap()[&crawl].clone()
    }

    /// Waits until a crawl is over.
    pub(crate) async fn finished(&self, crawl: u32) -> Progress {
        let is_over = |it: &Progress| matches!(it.state, CrawlState::Finished { .. });
        self.until(CrawlNo(crawl), is_over).await
    }

    /// The state of a crawl that the engine has; the store follows.
    pub(crate) fn live_state(&self, crawl: CrawlNo) -> Option<CrawlState> {
        let handle = self.engine.as_ref().unwrap().handle();
        let state = handle.progress().borrow().get(&crawl).map(|it| it.state);
        state.filter(|_| handle.is_here(crawl))
    }

    /// Crawls `site.test` to its end.
    pub(crate) async fn crawled(&self) -> u32 {
        let body = serde_json::json!({ "urls": ["http://site.test/"] });
        let reply = self.client.post("/api/v1/crawls", &body).await;
        assert_eq!(reply.status, 202, "{reply:?}");
        let no = number(&reply.json()["alias"]);
        self.finished(no).await;
        no
    }

    /// Ends in order.
    pub(crate) async fn stop(mut self) {
        // Requests that still wait for the test would hold up the end.
        self.gate.0.close();
        self.service.drain();
        self.serving.await.unwrap();
        self.engine.take().unwrap().shutdown().await.unwrap();
    }

    /// Ends in order and starts again on the same directory.
    pub(crate) async fn restart(self) -> Self {
        self.restart_after(|_| {}).await
    }

    /// The same, with something done to the store in between.
    pub(crate) async fn restart_after(mut self, change: impl FnOnce(&EmbeddedStore)) -> Self {
        self.service.drain();
        self.serving.await.unwrap();
        self.engine.take().unwrap().shutdown().await.unwrap();
        let Self { dir, gate, answers, settings, service, store, .. } = self;
        drop((service, store));
        change(&open_store(dir.path()).await);
        Self::open(dir, gate, answers, settings, Vec::new()).await
    }

    /// Ends as a kill would, and starts again on the same directory.
    pub(crate) async fn killed(mut self) -> Self {
        self.engine.take().unwrap().vanish().await;
        self.gate.0.close();
        self.service.drain();
        self.serving.await.unwrap();
        let Self { dir, answers, settings, service, store, .. } = self;
        drop((service, store));
        Self::open(dir, Arc::new(Gate::closed()), answers, settings, Vec::new()).await
    }
}

/// Opens the store; tasks of an earlier service may still be about to let go of it.
async fn open_store(path: &std::path::Path) -> EmbeddedStore {
    loop {
        match telusur_store_embedded::open(path) {
            Err(StoreError::Locked { .. }) => tokio::task::yield_now().await,
            opened => return opened.unwrap(),
        }
    }
}

/// The number in `crawl_7`.
#[track_caller]
pub(crate) fn number(alias: &serde_json::Value) -> u32 {
    alias.as_str().unwrap().strip_prefix("crawl_").unwrap().parse().unwrap()
}

/// A page with these links.
pub(crate) fn page(links: &[&str]) -> FakeAnswer {
    let links: String = links.iter().map(|link| format!("<a href=\"{link}\">x</a>\n")).collect();
    FakeAnswer::html(format!("<!doctype html><title>A page</title><p>Some text.</p>{links}"))
}

/// Five pages, one of which is not there.
pub(crate) fn small_site(path: &str) -> FakeAnswer {
    match path {
        "/" => page(&["/a", "/b", "/gone", "http://elsewhere.test/"]),
        "/a" => FakeAnswer::html("<title>Coffee</title><p>Roasted beans smell of mornings."),
        "/b" => page(&["/c"]),
        "/c" => FakeAnswer::html("<title>Tea</title><p>Leaves and hot water."),
        _ => FakeAnswer::not_found(),
    }
}

/// A site without end: every page has two more.
pub(crate) fn endless_site(path: &str) -> FakeAnswer {
    let number: u64 = path.trim_start_matches('/').parse().unwrap_or(0);
    let links = [format!("/{}", 2 * number + 1), format!("/{}", 2 * number + 2)];
    FakeAnswer::page_about(number, &[&links[0], &links[1]])
}

fn defaults() -> Crawl {
    Crawl {
        no: CrawlNo(0),
        id: CrawlId::new(Timestamp(0), 0),
        name: None,
        created_at: Timestamp(0),
        seeds: Seeds::Links(Vec::new()),
        scope: ScopeRules::default(),
        politeness: Politeness {
            delay_ms: 0,
            robots: RobotsRules::Ignore,
            ..Politeness::default()
        },
        limits: Limits::default(),
        fetch: FetchRules::default(),
        keep: Keep::Html,
        topic: Vec::new(),
        keep_tracking: false,
        sitemaps: SitemapRules { discover: false, urls: Vec::new() },
        recrawl_of: None,
        labels: Default::default(),
    }
}

/// How many requests the made-up web still answers.
pub(crate) struct Gate(Semaphore);

impl Gate {
    fn open() -> Self {
        Self(Semaphore::new(Semaphore::MAX_PERMITS / 2))
    }

    fn closed() -> Self {
        Self(Semaphore::new(0))
    }

    /// Lets so many more requests through.
    pub(crate) fn let_through(&self, requests: usize) {
        self.0.add_permits(requests);
    }
}

struct Gated {
    web: FakeWebFetcher,
    gate: Arc<Gate>,
}

#[async_trait]
impl Fetch for Gated {
    async fn fetch(&self, order: FetchOrder) -> Fetched {
        // A closed gate is that of a process that is gone.
        if let Ok(permit) = self.gate.0.acquire().await {
            permit.forget();
        }
        self.web.fetch(order).await
    }

    async fn resolve(&self, url: &PageUrl, profile: &FetchProfile) -> Resolved {
        self.web.resolve(url, profile).await
    }
}

struct Site {
    answers: Answers,
}

impl Website for Site {
    fn address_of(&self, host: &str) -> Option<Ipv4Addr> {
        (host == "site.test").then_some(Ipv4Addr::new(127, 9, 9, 9))
    }

    fn answer_to(&self, request: FakeRequest<'_>) -> Option<FakeAnswer> {
        (request.host == "site.test").then(|| (self.answers)(request.target))
    }
}
