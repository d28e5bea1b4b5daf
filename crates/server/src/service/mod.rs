//! [`Service`]: everything that the service can do, for whoever asks: the JSON API, the calls of the
//! first service, the web pages. It knows nothing of HTTP. What a data directory knows is read from its
//! store and control; what runs, runs in the engine.

mod request;

mod orders;

mod operations;
mod run_queue;
mod sudden_ends;

mod catalog;
mod view;

mod feed;
mod lists;

mod pages;
mod search;

mod export;

mod lone_fetch;
mod site_map;

mod keys;
mod scrub;

mod blocking_pool;
mod s1;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use telusur_engine::control::{Control, Operation};
use telusur_engine::{EngineHandle, Part};
use telusur_fetch::{AddressGuard, OwnAddresses};
use telusur_index::SearchIndex;
use telusur_ledger::{CrawlRecord, Store, StoreError};
use telusur_model::{Clock, CrawlNo, Moment, Progress, UnboundSecret};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::blocking_pool::BlockingPool;
use self::catalog::Catalog;
use self::feed::Feeds;
use self::run_queue::RunQueue;
use self::s1::LinkMemory;
use self::sudden_ends::SuddenEnds;
use crate::access::{KeyRing, KeyRingError, Rates};
use crate::metrics::Metrics;
use crate::problem::{Code, Problem};
use crate::settings::ServiceSettings;

pub use self::export::ExportPieces;
pub use self::feed::{EventKind, EventKinds, EventReader, ServiceEvent};
pub use self::lists::Cursor;
pub use self::orders::{Accepted, Order, RequestMark};
pub(crate) use self::pages::{for_eyes_of, mask_cookie};

/// What a service is made of.
pub struct ServiceParts {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// What runs the crawls.
    pub engine: EngineHandle,
    /// What searches go to.
    pub index: Option<Arc<SearchIndex>>,
    /// The clocks.
    pub clock: Arc<dyn Clock>,
    /// What the operator decided.
    pub settings: ServiceSettings,
}

/// Why a service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The keys cannot be read.
    #[error(transparent)]
    Keys(#[from] KeyRingError),
    /// The address is open to others, and nobody has a key.
    #[error("refusing to listen on {0} without a key")]
    NoKey(std::net::SocketAddr),
    /// A secret of the operator would go to whatever URL a user of the service names.
    #[error("{0} and names no origin, so every site that a user asks for could receive it")]
    UnboundSecret(UnboundSecret),
    /// A rule of the operator cannot be followed.
    #[error("{0}")]
    Rules(String),
}

/// The service. A handle: copies are the same service.
#[derive(Clone)]
pub struct Service {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: EngineHandle,
    pub(crate) control: Control,
    pub(crate) index: Option<Arc<SearchIndex>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: ServiceSettings,
    pub(crate) keys: KeyRing,
    pub(crate) metrics: Metrics,
    pub(crate) rates: Rates,
    /// Exceptions from "public addresses only".
    guard: AddressGuard,
    /// The names of all crawls. Held to look something up, never while waiting.
    catalog: Mutex<Catalog>,
    run_queue: Arc<RunQueue>,
    feeds: Feeds,
    links: LinkMemory,
    store_pool: BlockingPool,
    search_pool: BlockingPool,
    check_pool: BlockingPool,
    exports: Arc<Semaphore>,
    /// Clients that watch a crawl or the index.
    watchers: Arc<Semaphore>,
    fetches: Semaphore,
    /// One crawl is accepted, or changed, at a time: between the check and the write nobody else
    /// writes.
    accepting: tokio::sync::Mutex<()>,
    /// Changes of state that are under way, each in a task of its own.
    changes: TaskTracker,
    ending: CancellationToken,
    started: Moment,
}

impl Service {
    /// Starts the service: crawls that ran when the last owner ended go on by themselves. Must be
    /// called inside the engine's runtime.
    pub async fn start(parts: ServiceParts) -> Result<Self, ServiceError> {
        let ServiceParts { store, engine, index, clock, settings } = parts;
        let keys = KeyRing::open(&settings.keys_file)?;
        if !settings.listen.ip().is_loopback() {
            if keys.is_empty() {
                return Err(ServiceError::NoKey(settings.listen));
            }
            keys.require();
        }
        if let Some(secret) = settings.defaults.fetch.unbound_secrets().into_iter().next() {
            return Err(ServiceError::UnboundSecret(secret));
        }
        let guard = AddressGuard::new(&settings.defaults.fetch.allow_private)
            .map_err(|error| ServiceError::Rules(error.to_string()))?
            .without_own(OwnAddresses::new([settings.listen]));
        let records = {
            let (store, at) = (Arc::clone(&store), clock.wall());
            tokio::task::spawn_blocking(move || {
                let mut records = store.crawls()?;
                let ends = SuddenEnds::look(store.as_ref(), &mut records, at)?;
                Ok::<_, StoreError>((records, ends))
            })
            .await
        };
        let (records, ends) = records.map_err(|error| ServiceError::Rules(error.to_string()))??;
        let changes = TaskTracker::new();
        // A closed tracker still takes tasks; it only says when there are none.
        changes.close();
        let run_queue = Arc::new(RunQueue::of(&records, ends, clock.now()));
        let waiting = Arc::clone(&run_queue);
        let control = Control::of_engine(Arc::clone(&store), engine.clone())
            .with_index(index.clone())
            .with_run_queue(move |no| waiting.is_waiting(no));
        let inner = Inner {
            catalog: Mutex::new(Catalog::of(&records)),
            run_queue,
            feeds: Feeds::default(),
            links: LinkMemory::default(),
            store_pool: BlockingPool::of_store(),
            search_pool: BlockingPool::of_index(),
            check_pool: BlockingPool::of_checks(),
            exports: Arc::new(Semaphore::new(settings.bounds.exports_max)),
            watchers: Arc::new(Semaphore::new(settings.bounds.watchers_max)),
            fetches: Semaphore::new(settings.bounds.fetches_max),
            accepting: tokio::sync::Mutex::new(()),
            changes,
            ending: CancellationToken::new(),
            started: clock.now(),
            metrics: Metrics::default(),
            rates: Rates::default(),
            store,
            engine,
            control,
            index,
            clock,
            settings,
            keys,
            guard,
        };
        let service = Self { inner: Arc::new(inner) };
        let supervisor = service.inner.engine.supervisor().clone();
        supervisor.task(Part::Service("run queue"), run_queue::start_in_turn(service.clone()));
        if service.inner.settings.bounds.scrub_bytes_per_second > 0 {
            supervisor.task(Part::Service("scrub"), scrub::scrub_when_idle(service.clone()));
        }
        Ok(service)
    }

    /// What the operator decided.
    pub fn settings(&self) -> &ServiceSettings {
        &self.inner.settings
    }

    /// Begins to end: nothing new is started, streams end, and clients are told.
    pub fn drain(&self) {
        self.inner.engine.supervisor().close();
        self.inner.ending.cancel();
    }

    /// Whether it is ending.
    pub fn is_draining(&self) -> bool {
        self.inner.ending.is_cancelled()
    }

    /// Ends when the service does.
    pub fn ending(&self) -> CancellationToken {
        self.inner.ending.clone()
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Does work that reads the disk or takes long, away from the async threads.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        self.answered(&self.inner.store_pool, work).await
    }

    /// The same for searches by words.
    pub(crate) async fn look_up<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        self.answered(&self.inner.search_pool, work).await
    }

    /// The same for checks of what users ask for, which may take a core for a while.
    pub(crate) async fn check<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        self.answered(&self.inner.check_pool, work).await
    }

    async fn answered<T: Send + 'static>(
        &self,
        pool: &BlockingPool,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let service = self.clone();
        let done = pool.run(move || work(&service)).await;
        done.unwrap_or_else(|| Err(failed_in_the_middle()))
    }

    /// Carries out a change of state in a task of its own, which the caller only waits for. A client that
    /// hangs up drops the handler of its request at any `await`; a change that were part of the handler
    /// would then be left half done: a crawl in the store that no list knows, or one taken out of the line
    /// and never put back.
    async fn carry_through<T, F>(&self, change: impl FnOnce(Self) -> F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Problem>> + Send + 'static,
    {
        let done = self.inner.changes.spawn(change(self.clone())).await;
        done.unwrap_or_else(|_| Err(failed_in_the_middle()))
    }

    /// Waits for the changes of state that are under way, also those whose clients have left.
    pub async fn settled(&self) {
        self.inner.changes.wait().await;
    }

    /// The same for orders, which may have to wait for visits under way and hold nobody up.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let service = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&service)).await;
        done.unwrap_or_else(|_| Err(failed_in_the_middle()))
    }

    /// Runs an operation and gives its reply. Blocks.
    fn ask<O: Operation>(&self, operation: &O) -> Result<O::Reply, Problem> {
        Ok(self.inner.control.run(operation, &mut |_| true)?)
    }

    /// The number of a crawl: its id, or its alias `crawl_N`.
    pub fn crawl_no(&self, id: &str) -> Result<CrawlNo, Problem> {
        let found = match id.strip_prefix("crawl_") {
            // Exactly as it is written: crawl_07 is nobody's name.
            Some(number) => {
                let no = number.parse().ok().map(CrawlNo).filter(|no| no.to_string() == *id);
                no.filter(|no| self.catalog().has(*no))
            }
            None => self.catalog().number(id),
        };
        found.ok_or_else(|| Problem::no_such_crawl(id))
    }

    /// A crawl as it is stored. Blocks.
    fn record(&self, no: CrawlNo) -> Result<CrawlRecord, Problem> {
        match self.inner.store.crawl(no)? {
            Some(record) => Ok(record),
            None => {
                // Thrown away from another terminal.
                self.catalog().remove(no);
                Err(Problem::no_such_crawl(&no.to_string()))
            }
        }
    }

    fn catalog(&self) -> MutexGuard<'_, Catalog> {
        self.inner.catalog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The snapshot of a crawl, if it is in the engine or was lately.
    fn progress(&self, no: CrawlNo) -> Option<Progress> {
        self.inner.engine.progress().borrow().get(&no).cloned()
    }
}

fn failed_in_the_middle() -> Problem {
    tracing::error!("a request failed in the middle");
    Problem::new(Code::Internal, "the request failed in the middle")
}
