//! What is done to crawls: accepted, changed, paused, resumed, stopped, thrown away, retried.

use std::fs::File;
use std::io::Read;

use telusur_engine::control::{
    CancelCrawl, ChangeCrawl, CrawlDone, Operation, PauseCrawl, RemoveCrawl, ResumeCrawl,
    RetryCrawl, StopCrawl,
};
use telusur_engine::{CrawlChange, has_budget_room};
use telusur_ledger::{CrawlRecord, NewCrawl, Store};
use telusur_model::{CompiledPatterns, Crawl, CrawlNo, CrawlState, FinishReason, Scope};

use super::Service;
use super::catalog::REQUEST_LABEL;
use crate::json::{ChangeBody, CrawlView, NewCrawlBody, RetriedView};
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
    /// It goes on.
    Resume,
    /// It ends, and keeps what it has.
    Stop,
}

impl Service {
    /// Accepts a crawl as the JSON API describes it.
    pub async fn accept(
        &self,
        body: NewCrawlBody,
        mark: Option<RequestMark>,
    ) -> Result<Accepted, Problem> {
        self.check_writable()?;
        let is_dry_run = body.dry_run;
        let (crawl, warnings) = self.check(move |service| service.crawl_of(body)).await?;
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
            .work(move |service| {
                let new = NewCrawl { crawl, random: random()? };
                Ok(service.inner().store.create(new)?)
            })
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

    /// Changes limits, manners and exclusions. `if_match` is the tag of the version that the client
    /// saw.
    pub async fn change(
        &self,
        no: CrawlNo,
        body: ChangeBody,
        if_match: Option<String>,
    ) -> Result<CrawlView, Problem> {
        self.check_writable()?;
        // What it costs is found out before it is anybody's turn, and by those who check.
        let (body, compiled) = self
            .check(move |service| {
                let crawl = service.record(no)?.crawl;
                let change = service.change_of(&crawl, body.clone(), None)?;
                Ok((body, change.compiled))
            })
            .await?;
        self.carry_through(|service| async move {
            service.make_change(no, body, compiled, if_match).await
        })
        .await
    }

    async fn make_change(
        &self,
        no: CrawlNo,
        body: ChangeBody,
        compiled: Option<CompiledPatterns>,
        if_match: Option<String>,
    ) -> Result<CrawlView, Problem> {
        let _only_one = self.inner().accepting.lock().await;
        self.work(move |service| {
            let record = service.record(no)?;
            if if_match.is_some_and(|tag| tag != settings_tag(&record)) {
                let what = "the crawl was changed since; read it again";
                return Err(Problem::new(Code::Changed, what));
            }
            let change = service.change_of(&record.crawl, body, compiled)?;
            service.ask(&ChangeCrawl { crawl: no.to_string(), change: Box::new(change) })
        })
        .await?;
        self.crawl(no).await
    }

    /// Pauses, resumes or stops. Doing it twice is doing it once.
    pub async fn order(&self, no: CrawlNo, order: Order) -> Result<CrawlView, Problem> {
        self.check_writable()?;
        self.carry_through(|service| async move { service.obey(no, order).await }).await
    }

    async fn obey(&self, no: CrawlNo, order: Order) -> Result<CrawlView, Problem> {
        let inner = self.inner();
        let was_waiting = inner.run_queue.leave(no).await;
        let done = self
            .work(move |service| {
                let record = service.record(no)?;
                let is_live = service.inner().engine.is_here(no);
                if is_done(order, service.state(&record), is_live, was_waiting) {
                    let is_resumed = was_waiting && order == Order::Resume;
                    if is_resumed && record.fault.is_some() {
                        service.inner().store.set_fault(no, None)?;
                    }
                    return Ok(is_resumed);
                }
                let crawl = no.to_string();
                match order {
                    Order::Pause => drop(service.ask(&PauseCrawl { crawl })?),
                    Order::Stop => drop(service.ask(&StopCrawl { crawl })?),
                    Order::Resume if is_live => drop(service.ask(&ResumeCrawl { crawl })?),
                    Order::Resume => {
                        check_can_resume(service.inner().store.as_ref(), &record)?;
                        // From here on it is shown as running, and waits for its turn.
                        service.inner().engine.check(&record.crawl)?;
                        let at = service.inner().clock.wall();
                        service.inner().store.set_fault(no, None)?;
                        service.inner().store.set_state(no, CrawlState::Running, at)?;
                        return Ok(true);
                    }
                }
                Ok(false)
            })
            .await;
        let is_resumed = matches!(done, Ok(true));
        if is_resumed {
            inner.run_queue.forgive(no);
        }
        let is_put_back = done.is_err() && was_waiting;
        if is_put_back || is_resumed {
            inner.run_queue.join(no);
        }
        done?;
        self.crawl(no).await
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
        let is_waiting = self.inner().run_queue.is_waiting(no);
        let (retried, goes_on) = self
            .work(move |service| {
                let record = service.record(no)?;
                if matches!(record.state, CrawlState::Finished { .. }) {
                    service.inner().engine.check(&record.crawl)?;
                }
                let retried = service.ask(&RetryCrawl { crawl: no.to_string() })?.count;
                let is_live = service.inner().engine.is_here(no);
                let is_over = matches!(record.state, CrawlState::Finished { .. });
                let goes_on = retried > 0 && is_over && !is_live;
                if goes_on {
                    let at = service.inner().clock.wall();
                    service.inner().store.set_state(no, CrawlState::Running, at)?;
                }
                Ok((retried, goes_on))
            })
            .await?;
        if goes_on && !is_waiting {
            self.inner().run_queue.join(no);
        }
        Ok(RetriedView { retried, state: self.crawl(no).await?.state })
    }

    pub(crate) fn check_writable(&self) -> Result<(), Problem> {
        if self.settings().read_only {
            return Err(Problem::new(Code::ReadOnly, "this server was started with --read-only"));
        }
        if self.is_draining() { Err(draining()) } else { Ok(()) }
    }

    /// `compiled`: the patterns of the crawl with this change, if it was looked at before.
    fn change_of(
        &self,
        crawl: &Crawl,
        body: ChangeBody,
        compiled: Option<CompiledPatterns>,
    ) -> Result<CrawlChange, Problem> {
        let ChangeBody { limits, manners, exclude } = body;
        if limits.max_body.is_some() {
            let what = "how much is read of a body cannot change once a crawl is accepted";
            return Err(Problem::field("/limits/max_body", what));
        }
        self.check_patterns("/exclude", &exclude, crawl.scope.exclude.len())?;
        let mut changed = crawl.clone();
        super::request::set_limits(&mut changed.limits, &limits)?;
        if crawl.seeds.linear().is_some() && limits.max_per_host.is_some() {
            changed.limits.ids_per_host_max = Some(changed.limits.urls_per_host_max);
        }
        super::request::set_manners(&mut changed.politeness, &manners)?;
        let compiled = match exclude.is_empty() {
            true => None,
            false => {
                changed.scope.exclude.extend(exclude.iter().cloned());
                Some(compiled_for(&changed, crawl, compiled)?)
            }
        };
        Ok(CrawlChange {
            limits: Some(changed.limits),
            politeness: Some(changed.politeness),
            exclude,
            compiled,
        })
    }
}

/// The patterns of a changed crawl, compiled unless they are known.
fn compiled_for(
    changed: &Crawl,
    before: &Crawl,
    known: Option<CompiledPatterns>,
) -> Result<CompiledPatterns, Problem> {
    let scope = match known {
        Some(known) => Scope::with_compiled(changed, &known),
        None => Scope::of(changed),
    };
    let scope = scope.map_err(|error| {
        let count = before.scope.include.len() + before.scope.exclude.len();
        let own = error.at.and_then(|at| at.checked_sub(count));
        let pointer = own.map_or("/exclude".to_owned(), |at| format!("/exclude/{at}"));
        Problem::field(&pointer, error.to_string())
    })?;
    Ok(scope.compiled())
}

/// Whether there is nothing to do: the crawl is as it is wanted.
fn is_done(order: Order, state: CrawlState, is_live: bool, was_waiting: bool) -> bool {
    match (order, state) {
        // One that the machine paused would go on by itself.
        (Order::Pause, CrawlState::Paused { why }) => !why.passes(),
        (Order::Stop, CrawlState::Finished { why: FinishReason::Stopped }) => true,
        (Order::Resume, CrawlState::Running) => is_live || was_waiting,
        _ => false,
    }
}

/// A crawl that would end at once is refused with the way out.
fn check_can_resume(store: &dyn Store, record: &CrawlRecord) -> Result<(), Problem> {
    let (no, limits, stats) = (record.crawl.no, &record.crawl.limits, &record.stats);
    let refuse = |what: String| Err(Problem::new(Code::WrongState, what));
    let reached = |limit: Option<u64>, value: u64| limit.is_some_and(|limit| value >= limit);
    if record.crawl.is_import() {
        return refuse(format!("{no} is an import: nothing can be fetched for it; import again"));
    }
    if reached(limits.pages_max, stats.pages) {
        return refuse(format!("{no} has reached its limit of pages; give it a higher one first"));
    }
    if reached(limits.duration_ms_max, stats.active_ms) {
        return refuse(format!("{no} has used up its time; give it more first"));
    }
    if reached(limits.bytes_max, stats.wire_bytes) {
        return refuse(format!("{no} has reached its limit of bytes; give it a higher one first"));
    }
    let is_complete = matches!(
        record.state,
        CrawlState::Finished {
            why: FinishReason::Drained | FinishReason::NoStart | FinishReason::Budget
        }
    );
    let left_out = record.crawl.left_out(record.state, stats);
    if is_complete && stats.queued == 0 && !left_out.is_empty() {
        if has_budget_room(store, &record.crawl)? {
            return Ok(());
        }
        let way_out = match left_out.iter().find_map(|row| row.reason.budget_limit()) {
            Some(limit) => format!("raise {limit} first"),
            None => "start a new crawl that includes them".to_owned(),
        };
        let what = match record.crawl.has_ids_left_out(record.state, stats) {
            true => "has asked its hosts for as many ids as it may",
            false => "is complete except for links that a budget left out",
        };
        return refuse(format!("{no} {what}; {way_out}"));
    }
    if is_complete && stats.queued == 0 {
        return refuse(format!("{no} is complete: nothing is left to fetch"));
    }
    Ok(())
}

/// Names the version of a crawl's settings and state. Counters are no part of it: a change of limits
/// must not fail because a page was stored in the meantime.
pub(crate) fn settings_tag(record: &CrawlRecord) -> String {
    let settings = serde_json::to_vec(&(&record.crawl, record.state)).unwrap_or_default();
    blake3::hash(&settings).to_hex()[..16].to_owned()
}

/// 128 random bits.
pub(crate) fn random() -> Result<u128, Problem> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| {
        tracing::error!(%error, "read /dev/urandom");
        Problem::new(Code::Internal, "there is no randomness to be had")
    })?;
    Ok(u128::from_le_bytes(bytes))
}
