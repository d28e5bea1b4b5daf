//! What is done to crawls: accepted, changed, paused, resumed, stopped, thrown away, retried.

use std::sync::Arc;

use telusur_engine::control::{
    CancelCrawl, ChangeCrawl, Control, CrawlDone, Operation, PauseCrawl, RecrawlCrawl, RemoveCrawl,
    ResumeCrawl, RetryCrawl, StopCrawl,
};
use telusur_engine::request::{ChangeRequest, CrawlRequest, RequestPolicy, Rights, warnings};
use telusur_engine::{Admission, CrawlChange, RequestError, create_crawl};
use telusur_ledger::CrawlRecord;
use telusur_model::{CompiledPatterns, Crawl, CrawlNo, CrawlState, FinishReason};

use super::Service;
use super::catalog::REQUEST_LABEL;
use crate::json::{CrawlView, ResumeRequest, RetriedView};
use crate::problem::{Code, Problem, draining};

/// When a client may try again that was refused because too many crawls wait.
const TURN_AGAIN_S: u64 = 30;

/// The request that a crawl was made by, so that the same request makes no second one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestMark {
    /// A hash of the client's own key for it.
    pub key: String,
    /// A hash of what was asked for.
    pub digest: String,
}

impl RequestMark {
    /// The mark of a request, by the client's key and the body that came with it.
    pub fn new(key: &str, body: &[u8]) -> Self {
        let short = |bytes: &[u8]| blake3::hash(bytes).to_hex()[..32].to_owned();
        Self { key: short(key.as_bytes()), digest: short(body) }
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        let (key, digest) = text.split_once(' ')?;
        Some(Self { key: key.to_owned(), digest: digest.to_owned() })
    }

    fn text(&self) -> String {
        format!("{} {}", self.key, self.digest)
    }
}

/// What came of a request for a crawl.
pub enum Accepted {
    /// A new crawl.
    New(CrawlView),
    /// The crawl that the same request made before.
    Before(CrawlView),
    /// Nothing was made: this is what it would be.
    DryRun(CrawlView),
}

/// What can be ordered about a crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It waits until it is resumed.
    Pause,
    /// It ends, and keeps what it has.
    Stop,
}

impl Service {
    /// Accepts a crawl as the JSON API describes it.
    pub async fn accept(
        &self,
        request: CrawlRequest,
        mark: Option<RequestMark>,
        rights: Rights,
    ) -> Result<Accepted, Problem> {
        self.check_writable()?;
        let is_dry_run = request.dry_run;
        let warnings = warnings(&request);
        let crawl =
            self.check(move |service| Ok(service.policy(rights).crawl_of(&request)?)).await?;
        if is_dry_run {
            return Ok(Accepted::DryRun(self.view_of_request(crawl, warnings)));
        }
        self.accept_crawl(crawl, mark, warnings).await
    }

    /// Accepts a crawl that was checked. It is made once, whatever becomes of the client that waits.
    pub(crate) async fn accept_crawl(
        &self,
        crawl: Crawl,
        mark: Option<RequestMark>,
        warnings: Vec<String>,
    ) -> Result<Accepted, Problem> {
        self.carry_through(|service| async move { service.make(crawl, mark, warnings).await }).await
    }

    async fn make(
        &self,
        mut crawl: Crawl,
        mark: Option<RequestMark>,
        warnings: Vec<String>,
    ) -> Result<Accepted, Problem> {
        let inner = self.inner();
        if let Some(no) = self.made_by(mark.as_ref())? {
            return Ok(Accepted::Before(self.crawl(no).await?));
        }
        // Before the lock: who is refused does not wait for the disk behind those who are accepted.
        let queued_max = inner.settings.bounds.queued_max;
        let place = inner.run_queue.keep_place(queued_max).ok_or_else(|| {
            let what = format!("{queued_max} crawls wait for their turn already");
            Problem::new(Code::TooManyCrawls, what).retry_after_s(TURN_AGAIN_S)
        })?;
        let _only_one = inner.accepting.lock().await;
        if self.is_draining() {
            return Err(draining());
        }
        // The same request may have come in twice at the same time.
        if let Some(no) = self.made_by(mark.as_ref())? {
            return Ok(Accepted::Before(self.crawl(no).await?));
        }
        if let Some(mark) = mark {
            crawl.labels.insert(REQUEST_LABEL.to_owned(), mark.text());
        }
        crawl.created_at = inner.clock.wall();
        let record = self
            .work(move |service| Ok(create_crawl(service.inner().store.as_ref(), crawl)?))
            .await?;
        self.catalog().add(&record.crawl);
        inner.run_queue.join(record.crawl.no);
        drop(place);
        tracing::info!(crawl = %record.crawl.no, id = %record.crawl.id, "crawl accepted");
        let mut view = self.view(&record, &[]);
        view.warnings = warnings;
        Ok(Accepted::New(view))
    }

    /// The crawl that the same request made before, if it did.
    fn made_by(&self, mark: Option<&RequestMark>) -> Result<Option<CrawlNo>, Problem> {
        let Some(mark) = mark else { return Ok(None) };
        let Some((digest, no)) = self.catalog().of_request(&mark.key) else { return Ok(None) };
        if digest != mark.digest {
            let what = "the same Idempotency-Key came with another body before";
            return Err(Problem::new(Code::IdempotencyMismatch, what));
        }
        Ok(Some(no))
    }

    /// Changes limits, politeness and exclusions. `if_match` is the tag of the version that the client saw.
    pub async fn change(
        &self,
        no: CrawlNo,
        request: ChangeRequest,
        if_match: Option<String>,
        rights: Rights,
    ) -> Result<CrawlView, Problem> {
        self.check_writable()?;
        // Patterns are compiled by those who check, before it is this change's turn.
        let (request, compiled) = self
            .check(move |service| {
                let crawl = service.record(no)?.crawl;
                let change = service.policy(rights).change_of(&crawl, &request, None)?;
                Ok((request, change.compiled))
            })
            .await?;
        self.carry_through(|service| async move {
            service.make_change(no, request, compiled, if_match, rights).await
        })
        .await
    }

    async fn make_change(
        &self,
        no: CrawlNo,
        request: ChangeRequest,
        compiled: Option<CompiledPatterns>,
        if_match: Option<String>,
        rights: Rights,
    ) -> Result<CrawlView, Problem> {
        let _only_one = self.inner().accepting.lock().await;
        self.work(move |service| {
            let record = service.record(no)?;
            if if_match.is_some_and(|tag| tag != settings_tag(&record)) {
                let what = "the crawl was changed since; read it again";
                return Err(Problem::new(Code::Changed, what));
            }
            let change: CrawlChange =
                service.policy(rights).change_of(&record.crawl, &request, compiled)?;
            service.ask(&ChangeCrawl { crawl: no.to_string(), change: Box::new(change) })
        })
        .await?;
        self.crawl(no).await
    }

    /// Pauses or stops. Doing it twice is doing it once.
    pub async fn order(&self, no: CrawlNo, order: Order) -> Result<CrawlView, Problem> {
        self.check_writable()?;
        self.carry_through(|service| async move { service.obey(no, order).await }).await
    }

    async fn obey(&self, no: CrawlNo, order: Order) -> Result<CrawlView, Problem> {
        let was_waiting = self.inner().run_queue.leave(no).await;
        let done = self
            .work(move |service| {
                let record = service.record(no)?;
                if is_done(order, service.state(&record)) {
                    return Ok(());
                }
                let crawl = no.to_string();
                match order {
                    Order::Pause => service.ask(&PauseCrawl { crawl })?,
                    Order::Stop => service.ask(&StopCrawl { crawl })?,
                };
                Ok(())
            })
            .await;
        if done.is_err() && was_waiting {
            self.inner().run_queue.join(no);
        }
        done?;
        self.crawl(no).await
    }

    /// Goes on with a crawl. Doing it twice is doing it once.
    pub async fn resume(
        &self,
        no: CrawlNo,
        request: ResumeRequest,
        rights: Rights,
    ) -> Result<CrawlView, Problem> {
        self.check_writable()?;
        let ResumeRequest { limits, politeness, exclude, ids } = request;
        let change = ChangeRequest { limits, politeness, exclude };
        let resume = ResumeCrawl { crawl: no.to_string(), change, ids };
        self.carry_through(|service| async move {
            let _only_one = service.inner().accepting.lock().await;
            service.run_as(rights, resume).await?;
            service.crawl(no).await
        })
        .await
    }

    /// Crawls the same again.
    pub async fn recrawl(
        &self,
        no: CrawlNo,
        change: ChangeRequest,
        rights: Rights,
    ) -> Result<CrawlView, Problem> {
        self.check_writable()?;
        let recrawl = RecrawlCrawl { crawl: no.to_string(), change };
        self.carry_through(|service| async move {
            let started = service.run_as(rights, recrawl).await?;
            service.crawl(started.no).await
        })
        .await
    }

    /// Runs an operation that may start or resume crawls.
    async fn run_as<O>(&self, rights: Rights, operation: O) -> Result<O::Reply, Problem>
    where
        O: Operation + Send + 'static,
        O::Reply: Send + 'static,
    {
        let control = self.control(rights);
        self.work(move |_| Ok(control.run(&operation, &mut |_| true)?)).await
    }

    /// Control that starts crawls in the order of this service's queue. Must be called inside a tokio runtime.
    pub fn control(&self, rights: Rights) -> Control {
        let runtime = tokio::runtime::Handle::current();
        let admission = QueueAdmission { service: self.clone(), runtime };
        let control = self.inner().control.clone();
        control.with_policy(self.policy(rights)).with_admission(Arc::new(admission))
    }

    /// Control for whoever owns the data directory, over its control socket. Must be called inside a tokio runtime.
    pub fn owner_control(&self) -> Control {
        let defaults = self.settings().defaults.clone();
        self.control(Rights::Owner).with_policy(RequestPolicy::of_owner(defaults))
    }

    /// A crawl waits for its turn from now on, or goes on if it is paused.
    async fn go_on(&self, no: CrawlNo) -> Result<(), Problem> {
        let inner = self.inner();
        let was_waiting = inner.run_queue.leave(no).await;
        let gone_on = self
            .work(move |service| {
                let inner = service.inner();
                if inner.engine.is_here(no) {
                    return Ok(false);
                }
                let record = service.record(no)?;
                inner.engine.check(&record.crawl)?;
                // From here on it is shown as running, and waits for its turn.
                inner.store.set_fault(no, None)?;
                inner.store.set_state(no, CrawlState::Running, inner.clock.wall())?;
                Ok(true)
            })
            .await;
        match gone_on {
            Ok(false) => Ok(inner.engine.resume(no).await?),
            Ok(true) => {
                inner.run_queue.forgive(no);
                inner.run_queue.join(no);
                Ok(())
            }
            Err(problem) => {
                if was_waiting {
                    inner.run_queue.join(no);
                }
                Err(problem)
            }
        }
    }

    /// Ends a crawl, if it runs, and throws away what it has.
    pub async fn cancel(&self, no: CrawlNo) -> Result<(), Problem> {
        self.check_writable()?;
        let cancel = CancelCrawl { crawl: no.to_string() };
        self.carry_through(|service| async move { service.throw_away(no, cancel).await }).await
    }

    /// Deletes what a crawl has; a running one is refused.
    pub async fn delete(&self, no: CrawlNo) -> Result<(), Problem> {
        self.check_writable()?;
        let remove = RemoveCrawl { crawl: no.to_string() };
        self.carry_through(|service| async move { service.throw_away(no, remove).await }).await
    }

    async fn throw_away<O>(&self, no: CrawlNo, operation: O) -> Result<(), Problem>
    where
        O: Operation<Reply = CrawlDone> + Send + 'static,
    {
        let was_waiting = self.inner().run_queue.leave(no).await;
        let done = self
            .work(move |service| {
                service.record(no)?;
                service.ask(&operation).map(drop)
            })
            .await;
        match done {
            Ok(()) => {
                self.catalog().remove(no);
                tracing::info!(crawl = %no, "crawl thrown away");
            }
            Err(_) if was_waiting => self.inner().run_queue.join(no),
            Err(_) => {}
        }
        done
    }

    /// Asks again for what failed.
    pub async fn retry(&self, no: CrawlNo) -> Result<RetriedView, Problem> {
        self.check_writable()?;
        self.carry_through(|service| async move { service.ask_again(no).await }).await
    }

    async fn ask_again(&self, no: CrawlNo) -> Result<RetriedView, Problem> {
        let retry = RetryCrawl { crawl: no.to_string(), change: ChangeRequest::default() };
        let retried = self.run_as(Rights::User, retry).await?.count;
        Ok(RetriedView { retried, state: self.crawl(no).await?.state })
    }

    pub(crate) fn check_writable(&self) -> Result<(), Problem> {
        if self.settings().read_only {
            return Err(Problem::new(Code::ReadOnly, "this server was started with --read-only"));
        }
        if self.is_draining() { Err(draining()) } else { Ok(()) }
    }
}

/// Admits crawls to the queue of a service.
struct QueueAdmission {
    service: Service,
    runtime: tokio::runtime::Handle,
}

impl Admission for QueueAdmission {
    fn admit(&self, crawl: Crawl) -> Result<CrawlRecord, RequestError> {
        let admitted = self.runtime.block_on(self.service.accept_crawl(crawl, None, Vec::new()));
        let view = match admitted.map_err(refused)? {
            Accepted::New(view) | Accepted::Before(view) | Accepted::DryRun(view) => view,
        };
        let record = self.service.inner().store.find(&view.id)?;
        record.ok_or(RequestError::NoSuchCrawl(view.id))
    }

    fn go_on(&self, crawl: CrawlNo) -> Result<(), RequestError> {
        self.runtime.block_on(self.service.go_on(crawl)).map_err(refused)
    }
}

/// A problem, for those who do not speak HTTP.
fn refused(problem: Problem) -> RequestError {
    let what = problem.detail().to_owned();
    match problem.advice() {
        Some(hint) => RequestError::CannotResume { what, hint: hint.to_owned() },
        None => RequestError::WrongState(what),
    }
}

/// Whether there is nothing to do: the crawl is as it is wanted.
fn is_done(order: Order, state: CrawlState) -> bool {
    match (order, state) {
        // One that the machine paused would go on by itself.
        (Order::Pause, CrawlState::Paused { why }) => !why.passes(),
        (Order::Stop, CrawlState::Finished { why: FinishReason::Stopped }) => true,
        (Order::Pause | Order::Stop, _) => false,
    }
}

/// Names the version of a crawl's settings and state. Counters are no part of it: a change of limits
/// must not fail because a page was stored in the meantime.
pub(crate) fn settings_tag(record: &CrawlRecord) -> String {
    let settings = serde_json::to_vec(&(&record.crawl, record.state)).unwrap_or_default();
    blake3::hash(&settings).to_hex()[..16].to_owned()
}
