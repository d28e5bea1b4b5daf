//! [`Control`]: what operations run on: a store, and the index and the engine of this process if it has them.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use telusur_index::SearchIndex;
use telusur_ledger::{CrawlRecord, Store};
use telusur_model::{Crawl, CrawlNo, PageRecord, PageUrl, Progress, Timestamp};
use telusur_parse_pool::Parser;

use super::operation::{Each, Operation, OperationKind};
use super::page;
use crate::admission::{self, Admission, AtOnce};
use crate::error::RequestError;
use crate::followers::FollowerReport;
use crate::handle::EngineHandle;
use crate::index_lease::{Hold, IndexOwner, LeaseHolder, refuse};
use crate::json::StoredPageView;
use crate::request::{RequestPolicy, program_defaults};
use crate::stored_page::{Stored, StoredPages};
use crate::supervision::Supervisor;

/// Runs operations on one store.
#[derive(Clone)]
pub struct Control {
    pub(super) store: Arc<dyn Store>,
    pub(super) pages: StoredPages,
    /// The index that searches go to, if this process has one.
    pub(super) index: Option<Arc<SearchIndex>>,
    /// The engine of this process, if it runs one.
    pub(super) engine: Option<(EngineHandle, tokio::runtime::Handle)>,
    /// Runs crawls in this process, if it does.
    pub(super) admission: Option<Arc<dyn Admission>>,
    /// What requests for crawls are judged by.
    pub(super) policy: Arc<RequestPolicy>,
    pub(super) wall: fn() -> Timestamp,
    /// Which crawls wait for their turn, if this process starts them by itself.
    run_queue: Option<Arc<dyn Fn(CrawlNo) -> bool + Send + Sync>>,
}

impl Control {
    /// Control of a process that only reads, or changes crawls that do not run. Stored pages are read by this
    /// parser.
    pub fn of_store(store: Arc<dyn Store>, parser: Arc<dyn Parser>) -> Self {
        let pages = StoredPages { store: Arc::clone(&store), parser };
        Self {
            store,
            pages,
            index: None,
            engine: None,
            admission: None,
            policy: policy(),
            wall,
            run_queue: None,
        }
    }

    /// Control of a process that runs crawls. Must be called inside the engine's runtime.
    pub fn of_engine(store: Arc<dyn Store>, engine: EngineHandle) -> Self {
        let runtime = tokio::runtime::Handle::current();
        let pages = StoredPages { store: Arc::clone(&store), parser: engine.parser() };
        let at_once =
            AtOnce { store: Arc::clone(&store), engine: engine.clone(), runtime: runtime.clone() };
        Self {
            store,
            pages,
            index: None,
            engine: Some((engine, runtime)),
            admission: Some(Arc::new(at_once)),
            policy: policy(),
            wall,
            run_queue: None,
        }
    }

    /// The same, with an index to search in.
    pub fn with_index(self, index: Option<Arc<SearchIndex>>) -> Self {
        Self { index, ..self }
    }

    /// The same in a process that starts crawls by itself. `is_waiting`: whether a crawl waits for its turn.
    pub fn with_run_queue(
        self,
        is_waiting: impl Fn(CrawlNo) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { run_queue: Some(Arc::new(is_waiting)), ..self }
    }

    /// The same, where crawls are run by `admission`.
    pub fn with_admission(self, admission: Arc<dyn Admission>) -> Self {
        Self { admission: Some(admission), ..self }
    }

    /// The same, with other rules for requests.
    pub fn with_policy(self, policy: RequestPolicy) -> Self {
        Self { policy: Arc::new(policy), ..self }
    }

    /// Runs an operation. Blocks: never call it on an async thread.
    pub fn run<O: Operation>(
        &self,
        operation: &O,
        each: Each<'_, O::Item>,
    ) -> Result<O::Reply, RequestError> {
        operation.run(self, each)
    }

    /// Runs an operation that is only known by its kind and its JSON, and hands over the lines of what it says:
    /// items, then a reply or an error. Blocks.
    pub fn run_json(
        &self,
        operation: OperationKind,
        request: serde_json::Value,
        lines: Each<'_, Vec<u8>>,
    ) {
        operation.serve(self, request, lines);
    }

    /// Runs an operation and gives its items and its reply. Blocks.
    pub fn collect<O: Operation>(
        &self,
        operation: &O,
    ) -> Result<(Vec<O::Item>, O::Reply), RequestError> {
        let mut items = Vec::new();
        let reply = operation.run(self, &mut |item| {
            items.push(item);
            true
        })?;
        Ok((items, reply))
    }

    /// A crawl by id, alias, name, or `last`. Of several with one name the youngest is meant.
    pub fn find(&self, text: &str) -> Result<CrawlRecord, RequestError> {
        self.store.find(text)?.ok_or_else(|| RequestError::NoSuchCrawl(text.to_owned()))
    }

    /// The place of a crawl's last page, or 0. Blocks.
    pub fn last_seq(&self, crawl: CrawlNo) -> Result<u64, RequestError> {
        Ok(self.store.last_place(crawl)?)
    }

    /// The page with this place in the order of all pages, with everything that is in it. Blocks.
    pub fn page_at(
        &self,
        crawl: CrawlNo,
        seq: u64,
    ) -> Result<Option<StoredPageView>, RequestError> {
        let (Some(crawl), Some(page)) = (self.store.crawl(crawl)?, self.store.page(crawl, seq)?)
        else {
            return Ok(None);
        };
        Ok(Some(page::with_content(&self.pages, &crawl.crawl, page, true)?))
    }

    /// Where the links of a stored page lead; nothing if nothing of it is kept, or it cannot be parsed. Blocks.
    pub fn links_of(&self, page: &PageRecord) -> Result<Vec<String>, RequestError> {
        Ok(match self.pages.parsed(page)? {
            Stored::Read(parsed) => {
                parsed.links.into_iter().map(|link| link.url.to_string()).collect()
            }
            Stored::NotKept | Stored::Failed { .. } => Vec::new(),
        })
    }
}

/// What operations need.
impl Control {
    /// The crawl that is named, or all of them, oldest first.
    pub(super) fn meant(&self, crawl: Option<&str>) -> Result<Vec<CrawlRecord>, RequestError> {
        match crawl {
            Some(crawl) => Ok(vec![self.find(crawl)?]),
            None => Ok(self.store.crawls()?),
        }
    }

    /// Crawls that are removed, and may still be in the index.
    pub(super) fn removed(&self) -> Result<Vec<CrawlNo>, RequestError> {
        Ok(self.store.removals()?.into_iter().map(|removal| removal.crawl).collect())
    }

    pub(super) fn index(&self) -> Result<&SearchIndex, RequestError> {
        self.index.as_deref().ok_or_else(no_index)
    }

    /// Stores a new crawl, and runs it if this process runs crawls.
    pub(super) fn admit(&self, crawl: Crawl) -> Result<CrawlRecord, RequestError> {
        match &self.admission {
            Some(admission) => admission.admit(crawl),
            None => Ok(admission::create(self.store.as_ref(), crawl)?),
        }
    }

    /// A stored crawl goes on, if this process runs crawls.
    pub(super) fn go_on(&self, crawl: CrawlNo) -> Result<(), RequestError> {
        self.admission.as_ref().map_or(Ok(()), |admission| admission.go_on(crawl))
    }

    /// Gives an order to the engine, and waits until it is carried out.
    pub(super) fn engine(
        &self,
        order: impl AsyncFnOnce(EngineHandle) -> Result<(), RequestError>,
    ) -> Result<(), RequestError> {
        let (engine, runtime) = self.engine.as_ref().ok_or(RequestError::Stopped)?;
        runtime.block_on(order(engine.clone()))
    }

    /// Whether the engine of this process is working on a crawl.
    pub(super) fn is_live(&self, crawl: CrawlNo) -> bool {
        self.engine.as_ref().is_some_and(|(engine, _)| engine.is_here(crawl))
    }

    /// Whether a crawl waits for its turn; `None` if nothing here starts crawls by itself.
    pub(super) fn waits(&self, crawl: CrawlNo) -> Option<bool> {
        self.run_queue.as_ref().map(|is_waiting| is_waiting(crawl))
    }

    /// The snapshot of a crawl, if it is in this process or was lately.
    pub(super) fn progress(&self, crawl: CrawlNo) -> Option<Progress> {
        let (engine, _) = self.engine.as_ref()?;
        engine.progress().borrow().get(&crawl).cloned()
    }

    /// What is derived from pages in this process and fails.
    pub(super) fn behind(&self) -> Vec<FollowerReport> {
        let mut behind = self.engine.as_ref().map_or(Vec::new(), |(engine, _)| engine.followers());
        behind.retain(|report| report.trouble.is_some());
        behind
    }

    pub(super) fn wake_followers(&self) {
        if let Some((engine, _)) = &self.engine {
            engine.wake_followers();
        }
    }

    /// Sees to it that this process may write the index while the hold is there.
    pub(super) fn hold_index(&self) -> Result<Option<Hold>, RequestError> {
        self.index_owner().as_ref().map(IndexOwner::hold).transpose()
    }

    /// Leases the index over a connection, which is told if that cannot be. Blocks.
    pub(super) fn lease_index(&self, stream: UnixStream, holder: LeaseHolder) {
        match self.index_owner() {
            Some(index_owner) => index_owner.lease(stream, holder),
            None => refuse(stream, &no_index()),
        }
    }

    fn index_owner(&self) -> Option<IndexOwner> {
        self.engine.as_ref().and_then(|(engine, _)| engine.index_owner())
    }

    /// Watches what serves it. Without an engine there is nothing to stop.
    pub(super) fn supervisor(&self) -> Supervisor {
        self.engine.as_ref().map(|(engine, _)| engine.supervisor().clone()).unwrap_or_default()
    }
}

pub(super) fn read_url(text: &str) -> Result<PageUrl, RequestError> {
    PageUrl::parse(text).map_err(|error| RequestError::BadArgument(format!("{text:?}: {error}")))
}

fn no_index() -> RequestError {
    RequestError::WrongState("this process keeps no search index".into())
}

fn policy() -> Arc<RequestPolicy> {
    Arc::new(RequestPolicy::of_owner(program_defaults()))
}

fn wall() -> Timestamp {
    telusur_model::Clock::wall(&crate::SystemClock::new())
}
