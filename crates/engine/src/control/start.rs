//! Crawls are started, repeated and gone on with: in the process that owns the directory if it runs crawls, else
//! they are only made ready for the one that asks.

use serde::{Deserialize, Serialize};
use telusur_ledger::CrawlRecord;
use telusur_model::{Crawl, CrawlNo, CrawlState, FinishReason, Resume, Seeds};

use super::handle::Control;
use super::operation::{Each, NoItem, Operation, OperationKind};
use super::retry;
use crate::can_resume::check_can_resume;
use crate::change::CrawlChange;
use crate::error::RequestError;
use crate::linear_run::{accept_run, has_walks_of};
use crate::request::{self, BadRequest, ChangeRequest, CrawlRequest, LimitsRequest};

/// A crawl is started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartCrawl {
    /// What it is to be like.
    pub request: CrawlRequest,
    /// Whether an earlier crawl with the same start goes on instead, if it was interrupted or walks the same ids.
    pub or_resume: bool,
}

/// A crawl that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedCrawl {
    /// Its number.
    pub no: CrawlNo,
    /// Its id.
    pub crawl: String,
    /// Whether it is new.
    pub start: StartKind,
    /// What is worth a second look about the request.
    pub warnings: Vec<String>,
    /// What another run does about the ids of the earlier ones.
    pub notes: Vec<String>,
}

/// How a crawl was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartKind {
    /// It is new.
    New,
    /// It was interrupted and goes on.
    Interrupted,
    /// It walked the same ids before, and makes another run.
    AnotherRun,
    /// It is running already.
    Running,
}

/// A crawl is repeated: only what changed since is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecrawlCrawl {
    /// Which.
    pub crawl: String,
    /// What is different from it.
    pub change: ChangeRequest,
}

/// A crawl goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResumeCrawl {
    /// Which.
    pub crawl: String,
    /// What is changed first.
    #[serde(default)]
    pub change: ChangeRequest,
    /// Of a linear crawl: what this run does about the ids of earlier ones.
    #[serde(default)]
    pub ids: Option<Resume>,
}

/// A crawl that goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumedCrawl {
    /// Its number.
    pub no: CrawlNo,
    /// Its id.
    pub crawl: String,
    /// Whether it was in that process already, running or paused.
    pub was_live: bool,
    /// What this run does about the ids of earlier ones.
    pub notes: Vec<String>,
}

/// What failed is asked for again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RetryCrawl {
    /// Which.
    pub crawl: String,
    /// What is changed first.
    #[serde(default)]
    pub change: ChangeRequest,
}

/// URLs, or ids, that are asked for again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetriedCrawl {
    /// The crawl's number.
    pub no: CrawlNo,
    /// Its id.
    pub crawl: String,
    /// How many URLs or ids are asked for again.
    pub count: u64,
    /// Whether it was in that process already, running or paused.
    pub was_live: bool,
}

impl Operation for StartCrawl {
    const KIND: OperationKind = OperationKind::StartCrawl;
    const MAY_WRITE: bool = true;
    type Item = NoItem;
    type Reply = StartedCrawl;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<StartedCrawl, RequestError> {
        let crawl = control.policy.crawl_of(&self.request)?;
        expect_shared_space(control, &self.request.limits)?;
        let earlier = match self.or_resume {
            true => earlier_crawl(control, &crawl)?,
            false => None,
        };
        let started = match earlier {
            Some(record) => go_on_with(control, record, crawl)?,
            None => {
                let crawl = Crawl { created_at: (control.wall)(), ..crawl };
                let record = control.admit(crawl)?;
                (record.crawl, StartKind::New, Vec::new())
            }
        };
        let (crawl, start, notes) = started;
        Ok(StartedCrawl {
            no: crawl.no,
            crawl: crawl.id.to_string(),
            start,
            warnings: request::warnings(&self.request),
            notes,
        })
    }
}

/// The youngest crawl of the same name and start, if it is one to go on with.
fn earlier_crawl(control: &Control, crawl: &Crawl) -> Result<Option<CrawlRecord>, RequestError> {
    let mut crawls = control.store.crawls()?.into_iter().rev();
    let found = crawls.find(|record| {
        let earlier = &record.crawl;
        earlier.name == crawl.name
            && match (&crawl.seeds, &earlier.seeds) {
                (Seeds::Links(urls), Seeds::Links(before)) => {
                    urls == before && crawl.sitemaps.urls == earlier.sitemaps.urls
                }
                (Seeds::Linear(seeds), Seeds::Linear(before)) => has_walks_of(seeds, before),
                (Seeds::Links(_), Seeds::Linear(_)) | (Seeds::Linear(_), Seeds::Links(_)) => false,
            }
    });
    Ok(found.filter(|record| match record.crawl.seeds {
        Seeds::Linear(_) => true,
        Seeds::Links(_) => record.stats.queued > 0 && is_interrupted(record),
    }))
}

/// Killed, stopped, paused, or out of time: there is something to go on with.
fn is_interrupted(record: &CrawlRecord) -> bool {
    match record.state {
        CrawlState::Running | CrawlState::Paused { .. } => true,
        CrawlState::Finished { why } => {
            matches!(why, FinishReason::Stopped | FinishReason::MaxDuration)
        }
    }
}

/// Goes on with an earlier crawl, as the request wants it.
fn go_on_with(
    control: &Control,
    record: CrawlRecord,
    wanted: Crawl,
) -> Result<(Crawl, StartKind, Vec<String>), RequestError> {
    let no = record.crawl.no;
    let is_same = wanted.seeds == record.crawl.seeds;
    if control.is_live(no) {
        if !is_same {
            let what = format!("{no} is walking these ids now; stop it first, or start a new one");
            return Err(RequestError::WrongState(what));
        }
        let change = CrawlChange {
            limits: Some(wanted.limits),
            politeness: Some(wanted.politeness),
            ..CrawlChange::default()
        };
        control.engine(async |engine| engine.change(no, change).await)?;
        if matches!(record.state, CrawlState::Paused { .. }) {
            control.go_on(no)?;
        }
        return Ok((record.crawl, StartKind::Running, Vec::new()));
    }
    let mut crawl =
        Crawl { no, id: record.crawl.id.clone(), created_at: record.crawl.created_at, ..wanted };
    // A time limit counts from where the crawl goes on.
    let ran_ms = record.stats.active_ms;
    crawl.limits.duration_ms_max = crawl.limits.duration_ms_max.map(|limit| limit + ran_ms);
    let (start, notes) =
        match crawl.seeds.linear().is_some() && !(is_same && is_interrupted(&record)) {
            true => (StartKind::AnotherRun, new_run(control, &crawl)?),
            false => {
                control.store.change(&crawl)?;
                (StartKind::Interrupted, Vec::new())
            }
        };
    control.go_on(no)?;
    Ok((crawl, start, notes))
}

/// Makes a linear crawl ready for another run. Gives what the run does about the ids of earlier ones.
fn new_run(control: &Control, crawl: &Crawl) -> Result<Vec<String>, RequestError> {
    let notes = accept_run(control.store.as_ref(), crawl, &crate::SystemClock::new())?;
    let is_one = notes.len() == 1;
    let told = crawl.seeds.walks().iter().zip(notes).flat_map(|(walk, notes)| {
        let place = if is_one { String::new() } else { format!("{}: ", walk.rules().template) };
        notes.into_iter().map(move |note| format!("{place}{note}"))
    });
    Ok(told.collect())
}

impl Operation for RecrawlCrawl {
    const KIND: OperationKind = OperationKind::RecrawlCrawl;
    const MAY_WRITE: bool = true;
    type Item = NoItem;
    type Reply = StartedCrawl;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<StartedCrawl, RequestError> {
        let base = control.find(&self.crawl)?;
        let no = base.crawl.no;
        if base.crawl.is_import() {
            let what = format!("{no} is an import: there is nothing to fetch");
            let hint = "Import again, what is there already is replaced: telusur import FILE";
            return Err(RequestError::CannotResume { what, hint: hint.to_owned() });
        }
        if base.stats.pages == 0 {
            let what = format!("{no} has no pages that could have changed");
            let hint = format!("Go on with it: telusur resume {no}");
            return Err(RequestError::CannotResume { what, hint });
        }
        let changed = changed(control, &base, &self.change)?;
        let crawl = Crawl { created_at: (control.wall)(), recrawl_of: Some(no), ..changed };
        let record = control.admit(crawl)?;
        Ok(StartedCrawl {
            no: record.crawl.no,
            crawl: record.crawl.id.to_string(),
            start: StartKind::New,
            warnings: Vec::new(),
            notes: Vec::new(),
        })
    }
}

/// All crawls of a process share the disk, and what it leaves free: a crawl cannot have more of it left.
fn expect_shared_space(control: &Control, limits: &LimitsRequest) -> Result<(), RequestError> {
    let (Some(wanted), Some((engine, _))) = (limits.min_free_disk, &control.engine) else {
        return Ok(());
    };
    let shared = engine.free_bytes_min();
    if wanted <= shared {
        return Ok(());
    }
    let what = format!(
        "min_free_disk cannot be raised to {wanted} for one crawl: the process that runs it leaves {shared} bytes free for all"
    );
    let hint = "Start that process with it (telusur serve --min-free-disk SIZE), or end it first";
    Err(RequestError::CannotResume { what, hint: hint.to_owned() })
}

/// The crawl as a request changes it.
fn changed(
    control: &Control,
    record: &CrawlRecord,
    change: &ChangeRequest,
) -> Result<Crawl, RequestError> {
    expect_shared_space(control, &change.limits)?;
    let change = control.policy.change_of(&record.crawl, change, None)?;
    let (crawl, _) = change
        .applied(record.crawl.clone(), None)
        .map_err(|error| BadRequest::field("/exclude", error.to_string()))?;
    Ok(crawl)
}

impl Operation for ResumeCrawl {
    const KIND: OperationKind = OperationKind::ResumeCrawl;
    const MAY_WRITE: bool = true;
    type Item = NoItem;
    type Reply = ResumedCrawl;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<ResumedCrawl, RequestError> {
        let record = control.find(&self.crawl)?;
        let no = record.crawl.no;
        let was_live = control.is_live(no);
        let mut notes = Vec::new();
        if was_live {
            if self.ids.is_some() {
                let what = format!("{no} is walking its ids now; stop it first");
                return Err(RequestError::WrongState(what));
            }
            if !self.change.is_empty() {
                expect_shared_space(control, &self.change.limits)?;
                let change = control.policy.change_of(&record.crawl, &self.change, None)?;
                control.engine(async |engine| engine.change(no, change).await)?;
            }
        } else {
            let mut crawl = changed(control, &record, &self.change)?;
            let record = CrawlRecord { crawl: crawl.clone(), ..record };
            match (self.ids, &mut crawl.seeds) {
                (None, _) => {
                    check_can_resume(control.store.as_ref(), &record)?;
                    if !self.change.is_empty() {
                        control.store.change(&crawl)?;
                    }
                }
                (Some(ids), Seeds::Linear(seeds)) => {
                    seeds.resume = ids;
                    notes = new_run(control, &crawl)?;
                }
                (Some(_), Seeds::Links(_)) => {
                    let what = format!("{no} is no linear crawl: it has no ids");
                    return Err(BadRequest::field("/ids", what).into());
                }
            }
        }
        let is_running = was_live && record_is_running(control, no);
        if !is_running {
            control.go_on(no)?;
        }
        let crawl = control.store.crawl(no)?.map(|record| record.crawl.id.to_string());
        Ok(ResumedCrawl { no, crawl: crawl.unwrap_or_else(|| no.to_string()), was_live, notes })
    }
}

fn record_is_running(control: &Control, no: CrawlNo) -> bool {
    control.progress(no).is_some_and(|progress| progress.state == CrawlState::Running)
}

impl Operation for RetryCrawl {
    const KIND: OperationKind = OperationKind::RetryCrawl;
    const MAY_WRITE: bool = true;
    type Item = NoItem;
    type Reply = RetriedCrawl;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<RetriedCrawl, RequestError> {
        let record = control.find(&self.crawl)?;
        let no = record.crawl.no;
        let live = control.engine.as_ref().filter(|_| control.is_live(no));
        let was_live = live.is_some();
        let count = retry::retry(&control.store, live, &record)?;
        if !was_live && count > 0 {
            let crawl = changed(control, &record, &self.change)?;
            if !self.change.is_empty() {
                control.store.change(&crawl)?;
            }
            let record = control.find(&self.crawl)?;
            check_can_resume(control.store.as_ref(), &record)?;
            control.go_on(no)?;
        }
        Ok(RetriedCrawl { no, crawl: record.crawl.id.to_string(), count, was_live })
    }
}
