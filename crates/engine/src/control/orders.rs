//! Orders: crawls are paused, resumed, stopped, changed, retried and removed.

use serde::{Deserialize, Serialize};
use telusur_ledger::{Asking, CrawlRecord};
use telusur_model::{CrawlNo, CrawlState, FinishReason, PauseReason, Scope};

use super::handle::Control;
use super::operation::{Each, IndexUse, NoItem, Operation, OperationKind};
use crate::asked_before::LATELY_MS;
use crate::change::CrawlChange;
use crate::error::RequestError;
use crate::removals;

/// A crawl waits until it is resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseCrawl {
    /// Which.
    pub crawl: String,
}

/// A crawl ends and keeps what it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopCrawl {
    /// Which.
    pub crawl: String,
}

/// A crawl ends and everything that it stored is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelCrawl {
    /// Which.
    pub crawl: String,
}

/// Everything that a crawl stored is deleted. A running one is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveCrawl {
    /// Which.
    pub crawl: String,
}

/// URLs that match are not asked for any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcludeUrls {
    /// In which crawl.
    pub crawl: String,
    /// A regular expression.
    pub pattern: String,
}

/// Limits, politeness and exclusions of a crawl are changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeCrawl {
    /// Which crawl.
    pub crawl: String,
    /// The new values.
    pub change: Box<CrawlChange>,
}

/// An order was carried out on this crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlDone {
    /// Its id.
    pub crawl: String,
}

impl From<CrawlRecord> for CrawlDone {
    fn from(record: CrawlRecord) -> Self {
        Self { crawl: record.crawl.id.to_string() }
    }
}

impl Operation for PauseCrawl {
    const KIND: OperationKind = OperationKind::PauseCrawl;
    const MAY_WRITE: bool = true;
    type Item = NoItem;
    type Reply = CrawlDone;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<CrawlDone, RequestError> {
        let record = control.find(&self.crawl)?;
        let no = record.crawl.no;
        match control.is_live(no) {
            true => control.engine(async |engine| engine.pause(no).await)?,
            false => set_state(control, &record, CrawlState::Paused { why: PauseReason::Asked })?,
        }
        Ok(record.into())
    }
}

impl Operation for StopCrawl {
    const KIND: OperationKind = OperationKind::StopCrawl;
    const MAY_WRITE: bool = true;
    type Item = NoItem;
    type Reply = CrawlDone;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<CrawlDone, RequestError> {
        let record = control.find(&self.crawl)?;
        let no = record.crawl.no;
        match control.is_live(no) {
            true => control.engine(async |engine| engine.stop(no).await)?,
            false => {
                set_state(control, &record, CrawlState::Finished { why: FinishReason::Stopped })?;
            }
        }
        Ok(record.into())
    }
}

impl Operation for ExcludeUrls {
    const KIND: OperationKind = OperationKind::ExcludeUrls;
    const MAY_WRITE: bool = true;
    type Item = NoItem;
    type Reply = CrawlDone;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<CrawlDone, RequestError> {
        let record = control.find(&self.crawl)?;
        let no = record.crawl.no;
        if control.is_live(no) {
            control.engine(async |engine| engine.exclude(no, self.pattern.clone()).await)?;
            return Ok(record.into());
        }
        if record.stats.queued == 0 && record.crawl.seeds.linear().is_none() {
            let what = format!("{no} has nothing left to exclude");
            return Err(RequestError::WrongState(what));
        }
        let mut crawl = record.crawl.clone();
        crawl.scope.exclude.push(self.pattern.clone());
        Scope::of(&crawl).map_err(|error| RequestError::BadArgument(error.to_string()))?;
        control.store.change(&crawl)?;
        Ok(record.into())
    }
}

impl Operation for ChangeCrawl {
    const KIND: OperationKind = OperationKind::ChangeCrawl;
    const MAY_WRITE: bool = true;
    type Item = NoItem;
    type Reply = CrawlDone;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<CrawlDone, RequestError> {
        let record = control.find(&self.crawl)?;
        let no = record.crawl.no;
        let change = (*self.change).clone();
        if control.is_live(no) {
            control.engine(async |engine| engine.change(no, change).await)?;
        } else {
            let (crawl, _) = change
                .applied(record.crawl.clone(), None)
                .map_err(|error| RequestError::BadArgument(error.to_string()))?;
            control.store.change(&crawl)?;
        }
        Ok(record.into())
    }
}

impl Operation for CancelCrawl {
    const KIND: OperationKind = OperationKind::CancelCrawl;
    const INDEX: IndexUse = IndexUse::AsItIs;
    const MAY_WRITE: bool = true;
    type Item = NoItem;
    type Reply = CrawlDone;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<CrawlDone, RequestError> {
        let record = control.find(&self.crawl)?;
        let no = record.crawl.no;
        if control.is_live(no) {
            control.engine(async |engine| engine.stop(no).await)?;
        }
        remove(control, &record)?;
        Ok(record.into())
    }
}

impl Operation for RemoveCrawl {
    const KIND: OperationKind = OperationKind::RemoveCrawl;
    const INDEX: IndexUse = IndexUse::AsItIs;
    const MAY_WRITE: bool = true;
    type Item = NoItem;
    type Reply = CrawlDone;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<CrawlDone, RequestError> {
        let record = control.find(&self.crawl)?;
        let no = record.crawl.no;
        if control.is_live(no) {
            let what = format!("{no} is running; stop it first, or cancel it to throw it away");
            return Err(RequestError::WrongState(what));
        }
        remove(control, &record)?;
        Ok(record.into())
    }
}

/// Sets the state of a crawl that no process is working on.
fn set_state(
    control: &Control,
    record: &CrawlRecord,
    state: CrawlState,
) -> Result<(), RequestError> {
    if let CrawlState::Finished { why } = record.state {
        let what = format!("{} is over: {}", record.crawl.no, why.phrase());
        return Err(RequestError::WrongState(what));
    }
    Ok(control.store.set_state(record.crawl.no, state, (control.wall)())?)
}

/// The crawl is removed whatever comes next: nothing shows it, and its followers take out what they still
/// have when they come to the removal. The reply waits for them only for seconds.
fn remove(control: &Control, record: &CrawlRecord) -> Result<(), RequestError> {
    let no = record.crawl.no;
    keep_asked(control, record)?;
    control.store.begin_removal(no)?;
    let Some((engine, _)) = &control.engine else {
        removals::finish_removals(control.store.as_ref(), control.index.as_deref());
        return Ok(());
    };
    // Beside its deletion.
    engine.wake_followers();
    removals::delete_removed_crawl(control.store.as_ref(), no);
    engine.follow_removal(control.store.last_change()?);
    Ok(())
}

/// Records that the hosts of a crawl were asked lately, which its rows will not tell any more.
fn keep_asked(control: &Control, record: &CrawlRecord) -> Result<(), RequestError> {
    let CrawlRecord { crawl, state, state_since, stats, .. } = record;
    if stats.visits == 0 {
        return Ok(());
    }
    let asking = match state {
        CrawlState::Running => Asking::Now,
        CrawlState::Paused { .. } | CrawlState::Finished { .. } => Asking::Until(*state_since),
    };
    let is_recent = (control.wall)().0.saturating_sub(state_since.0) < LATELY_MS;
    let is_known = control.store.asking()?.iter().any(|(no, _): &(CrawlNo, _)| *no == crawl.no);
    if !is_known && (is_recent || asking == Asking::Now) {
        control.store.set_asking(crawl.no, Some(asking))?;
    }
    Ok(())
}
