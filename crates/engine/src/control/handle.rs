//! [`Control`]: answers one [`Request`] from the store, or hands it to the engine.

use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use telusur_index::{OfCrawls, SearchIndex};
use telusur_ledger::{Asking, CrawlRecord, Store, StoreError, UrlState, VerifyReport};
use telusur_model::{
    Change, Crawl, CrawlNo, CrawlState, FinishReason, Host, PageRecord, PageUrl, PauseReason,
    Reason, Scope, SiteShare, Timestamp, Verdict,
};
use telusur_parse_pool::InProcess;

use super::{
    CoveredRun, CrawlLine, CrawlReply, Reply, Request, StoredPage, content, explain, export,
    politeness, reparse, requeue, retry, scrub, search, verify_index,
};
use crate::asked_before::LATELY_MS;
use crate::change::CrawlChange;
use crate::error::RequestError;
use crate::followers::FollowerReport;
use crate::handle::EngineHandle;
use crate::index_lease::{Hold, IndexOwner, LeaseHolder, refuse};
use crate::linear_run::StoredWalk;
use crate::removals;
use crate::stored_page::{StoredPages, each_page};
use crate::supervision::Supervisor;

/// Runs of ids in one line of an answer: a line stays below a megabyte.
const RUNS_IN_LINE_MAX: usize = 5_000;

/// The code of an error that asking again may mend: the index is built anew when it is next opened.
pub const DAMAGED_INDEX: &str = "damaged_index";
/// The code of an answer that a damaged state database cannot give.
pub const DAMAGED_STATE: &str = "damaged_state";
/// The code of an answer that a damaged body cannot give.
pub const DAMAGED_DATA: &str = "damaged_data";

/// The code of an error that space on the disk mends.
pub const DISK_FULL: &str = "disk_full";

/// Answers questions about one store.
#[derive(Clone)]
pub struct Control {
    store: Arc<dyn Store>,
    pages: StoredPages,
    /// The index that searches go to, if this process has one.
    index: Option<Arc<SearchIndex>>,
    /// The engine of this process, if it runs one.
    engine: Option<(EngineHandle, tokio::runtime::Handle)>,
    wall: fn() -> Timestamp,
}

/// Takes the lines of an answer; false ends it early.
pub(crate) type Emit<'a> = &'a mut dyn FnMut(Reply) -> bool;

impl Control {
    /// Control of a process that only reads, or changes crawls that do not run.
    pub fn of_store(store: Arc<dyn Store>) -> Self {
        let pages =
            StoredPages { store: Arc::clone(&store), parser: Arc::new(InProcess::default()) };
        Self { store, pages, index: None, engine: None, wall }
    }

    /// Control of a process that runs crawls. Must be called inside the engine's runtime.
    pub fn of_engine(store: Arc<dyn Store>, engine: EngineHandle) -> Self {
        let runtime = tokio::runtime::Handle::current();
        let pages = StoredPages { store: Arc::clone(&store), parser: engine.parser() };
        Self { store, pages, index: None, engine: Some((engine, runtime)), wall }
    }

    /// The same, with an index to search in.
    pub fn with_index(self, index: Option<Arc<SearchIndex>>) -> Self {
        Self { index, ..self }
    }

    /// Answers, line by line. Blocks: never call it on an async thread.
    pub fn handle(&self, request: &Request, emit: Emit<'_>) {
        let last = match self.try_handle(request, emit) {
            Ok(()) => Reply::End,
            Err(error) => Reply::of_error(&error),
        };
        emit(last);
    }

    /// Watches what serves it. Without an engine there is nothing to stop.
    pub(super) fn supervisor(&self) -> Supervisor {
        self.engine.as_ref().map(|(engine, _)| engine.supervisor().clone()).unwrap_or_default()
    }

    /// Leases the index over a connection, which is told if that cannot be. Blocks.
    pub(super) fn lease_index(&self, stream: UnixStream, holder: LeaseHolder) {
        match self.index_owner() {
            Some(index_owner) => index_owner.lease(stream, holder),
            None => refuse(stream, &no_index()),
        }
    }

    /// Sees to it that this process may write the index while the hold is there.
    fn hold_index(&self) -> Result<Option<Hold>, RequestError> {
        self.index_owner().as_ref().map(IndexOwner::hold).transpose()
    }

    fn index_owner(&self) -> Option<IndexOwner> {
        self.engine.as_ref().and_then(|(engine, _)| engine.index_owner())
    }

    fn try_handle(&self, request: &Request, emit: Emit<'_>) -> Result<(), RequestError> {
        match request {
            Request::Crawls => {
                for record in self.store.crawls()? {
                    if !emit(Reply::Crawl(Box::new(self.crawl_reply(record, false)?))) {
                        break;
                    }
                }
            }
            Request::CrawlList => {
                let behind = self.behind();
                for record in self.store.crawls()? {
                    let line = self.crawl_line(record, behind.clone());
                    if !emit(Reply::CrawlLine(Box::new(line))) {
                        break;
                    }
                }
            }
            Request::Crawl { crawl } => {
                let record = self.find(crawl)?;
                emit(Reply::Crawl(Box::new(self.crawl_reply(record, true)?)));
            }
            Request::Errors { crawl } => self.errors(self.find(crawl)?.crawl.no, emit)?,
            Request::Skipped { crawl, reason } => {
                self.skipped(self.find(crawl)?.crawl.no, reason.as_deref(), emit)?;
            }
            Request::Changes { crawl } => self.changes(&self.find(crawl)?, emit)?,
            Request::Export { crawl } => {
                export::export(&self.pages, &self.find(crawl)?.crawl, emit)?;
            }
            Request::Content { crawl, kind } => {
                content::contents(&self.pages, &self.find(crawl)?.crawl, *kind, emit)?;
            }
            Request::Page { url, crawl, with_body } => {
                self.page(url, crawl.as_deref(), *with_body, emit)?;
            }
            Request::Explain { url, crawl } => self.explain(url, crawl.as_deref(), emit)?,
            Request::Coverage { crawl } => self.coverage(&self.find(crawl)?, emit)?,
            Request::Politeness { host } => {
                let report = politeness::politeness(self.store.as_ref(), &Host::new(host))?;
                emit(Reply::Politeness(Box::new(report)));
            }
            Request::Search(request) => {
                let mut request = request.clone();
                if !request.pattern {
                    request.text = self.with_crawl_numbers(&request.text);
                }
                let removed = self.removed()?;
                let found = search::search(self.index()?, &request, &removed)?;
                emit(Reply::Found(Box::new(found)));
            }
            Request::Suggest { typed, max } => {
                let index = self.index()?;
                let ways = index.suggest(typed, *max);
                let ways = ways.map_err(|error| search::refused(index, error))?;
                ways.into_iter().all(|way| emit(Reply::Suggestion(way)));
            }
            Request::Rank { crawl, sites, max } => {
                let crawl = crawl.as_deref().map(|crawl| self.find(crawl)).transpose()?;
                let only = crawl.map(|record| record.crawl.no);
                let crawls = OfCrawls { only, without: self.removed()? };
                search::rank(self.index()?, &crawls, *sites, *max, emit)?;
            }
            Request::Reparse { crawl, free_bytes_min } => {
                let record = self.find(crawl)?;
                let no = record.crawl.no;
                if self.is_live(no) {
                    let what = format!("{no} is running; stop it first");
                    return Err(RequestError::WrongState(what));
                }
                reparse::reparse(&self.pages, record, (self.wall)(), *free_bytes_min, emit)?;
                if let Some((engine, _)) = &self.engine {
                    engine.wake_followers();
                }
            }
            Request::Retry { crawl } => {
                let record = self.find(crawl)?;
                let live = self.engine.as_ref().filter(|_| self.is_live(record.crawl.no));
                let count = retry::retry(&self.store, live, &record)?;
                emit(Reply::Retried { count });
            }
            Request::Scrub { bytes_per_second } => {
                let (store, index) = (self.store.as_ref(), self.index.as_deref());
                scrub::scrub(store, index, *bytes_per_second, self.wall, emit)?;
            }
            Request::Verify => {
                emit(Reply::Verified(self.verify()?));
            }
            Request::Requeue => {
                let count = self.requeue(emit)?;
                emit(Reply::Retried { count });
            }
            order => {
                let crawl = self.carry_out(order)?;
                emit(Reply::Done { crawl });
            }
        }
        Ok(())
    }

    /// The walks of a crawl as the store knows them: what a running one has in memory is never ahead.
    fn coverage(&self, record: &CrawlRecord, emit: Emit<'_>) -> Result<(), RequestError> {
        let Some(seeds) = record.crawl.seeds.linear() else {
            let what = format!("{} is no linear crawl", record.crawl.no);
            return Err(RequestError::BadArgument(what));
        };
        for (number, walk) in (0..).zip(&seeds.walks) {
            let store = self.store.as_ref();
            let walk = StoredWalk::read(store, record.crawl.no, number, walk, seeds)?;
            let mut goes_on = emit(Reply::Walk(Box::new(walk.coverage())));
            let mut runs = walk.id_runs().map(|(run, why)| CoveredRun { run, why }).peekable();
            while goes_on && runs.peek().is_some() {
                goes_on = emit(Reply::Runs(runs.by_ref().take(RUNS_IN_LINE_MAX).collect()));
            }
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    fn requeue(&self, emit: Emit<'_>) -> Result<u64, RequestError> {
        let mut count = 0;
        for record in self.store.crawls()? {
            if !self.is_live(record.crawl.no) {
                count += requeue::requeue(self.store.as_ref(), &record, emit)?;
            }
        }
        if let Some((engine, _)) = &self.engine {
            engine.wake_followers();
        }
        Ok(count)
    }

    fn verify(&self) -> Result<VerifyReport, RequestError> {
        let mut report = self.store.verify(&|page| {
            let parsed = self.pages.parsed(page)?.unwrap_or_default();
            Ok(parsed.links.into_iter().map(|link| link.url).collect())
        })?;
        if let Some(index) = &self.index {
            let _hold = self.hold_index()?;
            verify_index::verify_index(&self.pages, index, &mut report)?;
        }
        Ok(report)
    }

    fn carry_out(&self, order: &Request) -> Result<String, RequestError> {
        let (Request::Pause { crawl }
        | Request::Resume { crawl }
        | Request::Stop { crawl }
        | Request::Cancel { crawl }
        | Request::Exclude { crawl, .. }
        | Request::Change { crawl, .. }
        | Request::Remove { crawl }) = order
        else {
            return Err(RequestError::BadArgument("this is no order".into()));
        };
        let record = self.find(crawl)?;
        let no = record.crawl.no;
        let is_live = self.is_live(no);
        match order {
            Request::Pause { .. } if is_live => {
                self.engine(async |engine| engine.pause(no).await)?
            }
            Request::Pause { .. } => {
                self.set_state(&record, CrawlState::Paused { why: PauseReason::Asked })?;
            }
            Request::Resume { .. } if is_live => {
                self.engine(async |engine| engine.resume(no).await)?
            }
            Request::Resume { .. } if self.engine.is_some() => {
                self.engine(async |engine| engine.run(no).await)?
            }
            Request::Resume { .. } => {
                return Err(RequestError::WrongState(format!("no process is running {no}")));
            }
            Request::Stop { .. } if is_live => self.engine(async |engine| engine.stop(no).await)?,
            Request::Stop { .. } => {
                self.set_state(&record, CrawlState::Finished { why: FinishReason::Stopped })?;
            }
            Request::Exclude { pattern, .. } if is_live => {
                self.engine(async |engine| engine.exclude(no, pattern.clone()).await)?;
            }
            Request::Exclude { pattern, .. } => self.exclude(record.clone(), pattern)?,
            Request::Change { change, .. } if is_live => {
                let change = (**change).clone();
                self.engine(async |engine| engine.change(no, change).await)?;
            }
            Request::Change { change, .. } => {
                self.change((**change).clone(), record.crawl.clone())?
            }
            Request::Remove { .. } if is_live => {
                return Err(RequestError::WrongState(format!(
                    "{no} is running; stop it first, or cancel it to throw it away"
                )));
            }
            _ => {
                if is_live {
                    self.engine(async |engine| engine.stop(no).await)?;
                }
                self.remove(&record)?;
            }
        }
        Ok(record.crawl.id.to_string())
    }

    /// The crawl is removed whatever comes next: nothing shows it, and its followers take out what they still
    /// have when they come to the removal. The reply waits for them only for seconds.
    fn remove(&self, record: &CrawlRecord) -> Result<(), RequestError> {
        let no = record.crawl.no;
        self.keep_asked(record)?;
        self.store.begin_removal(no)?;
        let Some((engine, _)) = &self.engine else {
            removals::finish_removals(self.store.as_ref(), self.index.as_deref());
            return Ok(());
        };
        // Beside its deletion.
        engine.wake_followers();
        removals::delete_removed_crawl(self.store.as_ref(), no);
        engine.follow_removal(self.store.last_change()?);
        Ok(())
    }

    /// Writes down that the hosts of a crawl were asked lately, which its rows will not tell any more.
    fn keep_asked(&self, record: &CrawlRecord) -> Result<(), RequestError> {
        let CrawlRecord { crawl, state, state_since, stats, .. } = record;
        if stats.visits == 0 {
            return Ok(());
        }
        let asking = match state {
            CrawlState::Running => Asking::Now,
            CrawlState::Paused { .. } | CrawlState::Finished { .. } => Asking::Until(*state_since),
        };
        let is_recent = (self.wall)().0.saturating_sub(state_since.0) < LATELY_MS;
        let is_known = self.store.asking()?.iter().any(|(no, _)| *no == crawl.no);
        if !is_known && (is_recent || asking == Asking::Now) {
            self.store.set_asking(crawl.no, Some(asking))?;
        }
        Ok(())
    }

    /// Crawls that are removed, and may still be in the index.
    fn removed(&self) -> Result<Vec<CrawlNo>, RequestError> {
        Ok(self.store.removals()?.into_iter().map(|removal| removal.crawl).collect())
    }

    /// The query with crawls named by their numbers, which is what the index knows of them.
    fn with_crawl_numbers(&self, text: &str) -> String {
        const FIELD: &str = "crawl:";
        if !text.contains(FIELD) {
            return text.to_owned();
        }
        let named = |piece: &str| {
            let (sign, name) = piece.split_once(FIELD).filter(|(sign, _)| sign.len() <= 1)?;
            Some(format!("{sign}{FIELD}{}", self.find(name).ok()?.crawl.no))
        };
        let pieces = text.split(' ').map(|piece| named(piece).unwrap_or_else(|| piece.to_owned()));
        pieces.collect::<Vec<_>>().join(" ")
    }

    /// The place of a crawl's last page, or 0. Blocks.
    pub fn last_seq(&self, crawl: CrawlNo) -> Result<u64, RequestError> {
        Ok(self.store.last_place(crawl)?)
    }

    /// The page with this place in the order of all pages, with everything that is in it. Blocks.
    pub fn page_at(&self, crawl: CrawlNo, seq: u64) -> Result<Option<StoredPage>, RequestError> {
        let (Some(crawl), Some(page)) = (self.store.crawl(crawl)?, self.store.page(crawl, seq)?)
        else {
            return Ok(None);
        };
        Ok(Some(content::with_content(&self.pages, &crawl.crawl, page, true)?))
    }

    /// Where the links of a stored page lead; nothing if nothing of it is kept. Blocks.
    pub fn links_of(&self, page: &PageRecord) -> Result<Vec<String>, RequestError> {
        let parsed = self.pages.parsed(page)?.unwrap_or_default();
        Ok(parsed.links.into_iter().map(|link| link.url.to_string()).collect())
    }

    fn index(&self) -> Result<&SearchIndex, RequestError> {
        self.index.as_deref().ok_or_else(no_index)
    }

    fn engine(
        &self,
        order: impl AsyncFnOnce(EngineHandle) -> Result<(), RequestError>,
    ) -> Result<(), RequestError> {
        let (engine, runtime) = self.engine.as_ref().ok_or(RequestError::Stopped)?;
        runtime.block_on(order(engine.clone()))
    }

    fn set_state(&self, record: &CrawlRecord, state: CrawlState) -> Result<(), RequestError> {
        if let CrawlState::Finished { why } = record.state {
            return Err(RequestError::WrongState(format!(
                "{} is over: {}",
                record.crawl.no,
                why.phrase()
            )));
        }
        Ok(self.store.set_state(record.crawl.no, state, (self.wall)())?)
    }

    fn exclude(&self, record: CrawlRecord, pattern: &str) -> Result<(), RequestError> {
        if record.stats.queued == 0 && record.crawl.seeds.linear().is_none() {
            let what = format!("{} has nothing left to exclude", record.crawl.no);
            return Err(RequestError::WrongState(what));
        }
        let mut crawl = record.crawl;
        crawl.scope.exclude.push(pattern.to_owned());
        Scope::of(&crawl).map_err(|error| RequestError::BadArgument(error.to_string()))?;
        Ok(self.store.change(&crawl)?)
    }

    fn change(&self, change: CrawlChange, crawl: Crawl) -> Result<(), RequestError> {
        let (crawl, _) = change
            .applied(crawl, None)
            .map_err(|error| RequestError::BadArgument(error.to_string()))?;
        Ok(self.store.change(&crawl)?)
    }

    fn is_live(&self, crawl: CrawlNo) -> bool {
        self.engine.as_ref().is_some_and(|(engine, _)| engine.is_here(crawl))
    }

    /// A crawl by id, alias, name, or `last`. Of several with one name the youngest is meant.
    pub fn find(&self, text: &str) -> Result<CrawlRecord, RequestError> {
        self.store.find(text)?.ok_or_else(|| RequestError::NoSuchCrawl(text.to_owned()))
    }

    /// The crawl that is named, or all of them, oldest first.
    fn meant(&self, crawl: Option<&str>) -> Result<Vec<CrawlRecord>, RequestError> {
        match crawl {
            Some(crawl) => Ok(vec![self.find(crawl)?]),
            None => Ok(self.store.crawls()?),
        }
    }

    fn crawl_line(&self, record: CrawlRecord, behind: Vec<FollowerReport>) -> CrawlLine {
        let CrawlRecord { crawl, state, stats, fault, .. } = record;
        CrawlLine {
            no: crawl.no,
            state,
            is_live: self.is_live(crawl.no),
            fault,
            pages: stats.pages,
            queued: stats.queued,
            errors: stats.errors(),
            created_at: crawl.created_at,
            start: crawl.seeds.texts().into_iter().next(),
            name: crawl.name,
            behind,
        }
    }

    /// What is derived from pages in this process and fails.
    fn behind(&self) -> Vec<FollowerReport> {
        let mut behind = self.engine.as_ref().map_or(Vec::new(), |(engine, _)| engine.followers());
        behind.retain(|report| report.trouble.is_some());
        behind
    }

    fn crawl_reply(
        &self,
        record: CrawlRecord,
        with_sites: bool,
    ) -> Result<CrawlReply, RequestError> {
        let no = record.crawl.no;
        let progress = match &self.engine {
            Some((engine, _)) => engine.progress().borrow().get(&no).cloned(),
            None => None,
        };
        let sites = if with_sites { self.sites(no)? } else { Vec::new() };
        let moved_seeds = if with_sites { self.moved_seeds(&record)? } else { Vec::new() };
        let is_live = self.is_live(no);
        let behind = self.behind();
        Ok(CrawlReply { is_live, record, progress, sites, moved_seeds, behind })
    }

    fn sites(&self, crawl: CrawlNo) -> Result<Vec<SiteShare>, RequestError> {
        let mut by_site: HashMap<String, SiteShare> = HashMap::new();
        for row in self.store.hosts(crawl)? {
            let site = row.host.site().to_string();
            let share =
                by_site.entry(site.clone()).or_insert(SiteShare { site, pages: 0, queued: 0 });
            share.pages += row.pages;
            share.queued += row.queued;
        }
        let mut sites: Vec<SiteShare> = by_site.into_values().collect();
        sites.sort_by(|left, right| {
            right.pages.cmp(&left.pages).then_with(|| left.site.cmp(&right.site))
        });
        Ok(sites)
    }

    /// Start URLs that redirect out of the scope: an empty crawl must say why it is empty.
    fn moved_seeds(&self, record: &CrawlRecord) -> Result<Vec<(String, String)>, RequestError> {
        let crawl = &record.crawl;
        let scope =
            Scope::of(crawl).map_err(|error| RequestError::BadArgument(error.to_string()))?;
        let mut moved = Vec::new();
        for seed in crawl.seeds.urls() {
            let Some(known) = self.store.url(crawl.no, seed)? else { continue };
            let UrlState::Redirected { to, .. } = known.state else { continue };
            let leads_out = PageUrl::parse(&to)
                .is_ok_and(|url| scope.judge(&url, 0, 0).verdict != Verdict::Admit);
            if leads_out {
                moved.push((seed.to_string(), to));
            }
        }
        Ok(moved)
    }

    fn errors(&self, crawl: CrawlNo, emit: Emit<'_>) -> Result<(), RequestError> {
        let goes_on = each_page(self.store.as_ref(), crawl, |page| {
            Ok(!page.is_error() || emit(Reply::ErrorPage(Box::new(page))))
        })?;
        if !goes_on {
            return Ok(());
        }
        Ok(self.store.settled_urls(crawl, &mut |url| {
            !matches!(url.state, UrlState::Failed { .. }) || emit(Reply::Url(Box::new(url)))
        })?)
    }

    fn changes(&self, record: &CrawlRecord, emit: Emit<'_>) -> Result<(), RequestError> {
        let crawl = &record.crawl;
        let Some(base) = crawl.recrawl_of else {
            let what = format!("{} repeats no other crawl; see: telusur recrawl", crawl.no);
            return Err(RequestError::WrongState(what));
        };
        let store = self.store.as_ref();
        let goes_on = each_page(store, crawl.no, |page| {
            let what = page.change.filter(|it| matches!(it, Change::New | Change::Changed));
            let changed = what.filter(|_| page.is_ok());
            let line = changed
                .map(|what| Reply::Changed { url: page.url.to_string(), what: what.to_string() });
            Ok(line.is_none_or(&mut *emit))
        })?;
        if !goes_on {
            return Ok(());
        }
        each_page(store, base, |page| {
            let now = store.page_of(crawl.no, &page.url)?;
            let is_gone = page.is_ok() && !now.is_some_and(|now| now.is_ok());
            let what = "gone".to_owned();
            Ok(!is_gone || emit(Reply::Changed { url: page.url.to_string(), what }))
        })?;
        Ok(())
    }

    fn skipped(
        &self,
        crawl: CrawlNo,
        reason: Option<&str>,
        emit: Emit<'_>,
    ) -> Result<(), RequestError> {
        let wanted = match reason {
            Some(word) => Some(Reason::from_word(word).ok_or_else(|| {
                RequestError::BadArgument(format!("there is no skip reason {word:?}"))
            })?),
            None => None,
        };
        Ok(self.store.settled_urls(crawl, &mut |url| {
            let is_wanted = matches!(url.state, UrlState::Skipped { reason, .. }
                if wanted.is_none_or(|wanted| wanted == reason));
            !is_wanted || emit(Reply::Url(Box::new(url)))
        })?)
    }

    /// The page of the youngest crawl that has it; nothing if none has.
    fn page(
        &self,
        url: &str,
        crawl: Option<&str>,
        with_body: bool,
        emit: Emit<'_>,
    ) -> Result<(), RequestError> {
        let url = read_url(url)?;
        for record in self.meant(crawl)?.iter().rev() {
            if let Some(page) = content::stored(&self.pages, &record.crawl, &url, with_body)? {
                emit(Reply::Page(Box::new(page)));
                break;
            }
        }
        Ok(())
    }

    fn explain(&self, url: &str, crawl: Option<&str>, emit: Emit<'_>) -> Result<(), RequestError> {
        let url = read_url(url)?;
        for record in self.meant(crawl)? {
            let mut explanation = explain::explain(self.store.as_ref(), &record.crawl, &url)?;
            explanation.parked = self.parked(record.crawl.no, &url);
            if !emit(Reply::Explanation(Box::new(explanation))) {
                break;
            }
        }
        Ok(())
    }
}

impl Control {
    /// Why the host of a URL is not asked at present, if a crawl of this process leaves it alone for
    /// what its pages do to the parser.
    fn parked(&self, crawl: CrawlNo, url: &PageUrl) -> Option<String> {
        let (engine, _) = self.engine.as_ref()?;
        let snapshots = engine.progress();
        let snapshots = snapshots.borrow();
        snapshots.get(&crawl)?.why_host_waits(url.host_str())
    }
}

fn read_url(text: &str) -> Result<PageUrl, RequestError> {
    PageUrl::parse(text).map_err(|error| RequestError::BadArgument(format!("{text:?}: {error}")))
}

fn no_index() -> RequestError {
    RequestError::WrongState("this process keeps no search index".into())
}

impl Reply {
    /// The last line of an answer that went wrong.
    pub(crate) fn of_error(error: &RequestError) -> Self {
        Self::Error { code: code(error).to_owned(), text: error.to_string() }
    }
}

fn code(error: &RequestError) -> &'static str {
    match error {
        RequestError::NoSuchCrawl(_) => "no_such_crawl",
        RequestError::WrongState(_) => "wrong_state",
        RequestError::BadArgument(_) => "bad_argument",
        RequestError::Stopped => "stopped",
        RequestError::Index(error) if error.needs_rebuild() => DAMAGED_INDEX,
        RequestError::Store(
            StoreError::StateDamaged(_) | StoreError::Unreadable { damage: Some(_), .. },
        ) => DAMAGED_STATE,
        RequestError::Store(StoreError::Damaged(_)) => DAMAGED_DATA,
        RequestError::Store(StoreError::DiskFull(_)) => DISK_FULL,
        RequestError::Index(error) if error.is_disk_full() => DISK_FULL,
        RequestError::Store(_) | RequestError::Index(_) => "storage",
    }
}

fn wall() -> Timestamp {
    telusur_model::Clock::wall(&crate::SystemClock::new())
}
