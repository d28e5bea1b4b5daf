//! The search index: brought up to date, rebuilt, measured.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use telusur_index::SearchIndex;

use super::handle::Control;
use super::operation::{Each, IndexUse, Length, Operation, OperationKind};
use crate::commit_stage::expect_space;
use crate::error::RequestError;
use crate::index_follower::Indexer;

/// How often whoever waits is told how far the index is.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// An index that has not moved for this long is not waited for.
const STILL_MAX: Duration = Duration::from_secs(30);

/// Waits until everything that is stored can be found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatchUpIndex {}

/// Rebuilds the index from the stored pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebuildIndex {
    /// Refused with less free space on the disk than this.
    #[serde(default)]
    pub min_free_disk: u64,
}

/// How far the index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexProgress {
    /// Changes that it has made searchable since the operation began.
    pub indexed: u64,
    /// Changes that it has still to make searchable, as far as that is known.
    pub behind: u64,
}

/// An index that is up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexReport {
    /// Documents in it.
    pub documents: u64,
    /// Its size on the disk.
    pub bytes: u64,
    /// How much of that are stored texts.
    pub stored_bytes: u64,
    /// The place of the last change in it.
    pub applied_upto: u64,
    /// Changes that were looked at.
    pub pages_looked_at: u64,
}

impl Operation for CatchUpIndex {
    const KIND: OperationKind = OperationKind::CatchUpIndex;
    const INDEX: IndexUse = IndexUse::AsItIs;
    const LENGTH: Length = Length::Watch;
    type Item = IndexProgress;
    type Reply = IndexReport;

    fn run(
        &self,
        control: &Control,
        each: Each<'_, IndexProgress>,
    ) -> Result<IndexReport, RequestError> {
        let index = control.index()?;
        let looked_at = match &control.engine {
            Some((engine, _)) => {
                let before = index.applied_upto();
                engine.wake_followers();
                wait_for_index(control, before, each)?
            }
            None => catch_up_here(control, 0, each)?,
        };
        report(index, looked_at)
    }
}

impl Operation for RebuildIndex {
    const KIND: OperationKind = OperationKind::RebuildIndex;
    const INDEX: IndexUse = IndexUse::Anew;
    const MAY_WRITE: bool = true;
    const LENGTH: Length = Length::Watch;
    type Item = IndexProgress;
    type Reply = IndexReport;

    fn run(
        &self,
        control: &Control,
        each: Each<'_, IndexProgress>,
    ) -> Result<IndexReport, RequestError> {
        let index = control.index()?;
        expect_space(control.store.as_ref(), self.min_free_disk)?;
        let looked_at = match &control.engine {
            Some((engine, _)) => {
                let _hold = control.hold_index()?;
                engine.rebuild_index()?;
                wait_for_index(control, 0, each)?
            }
            // It was opened empty.
            None => catch_up_here(control, self.min_free_disk, each)?,
        };
        report(index, looked_at)
    }
}

/// Without an engine nothing else writes the index.
fn catch_up_here(
    control: &Control,
    free_bytes_min: u64,
    each: Each<'_, IndexProgress>,
) -> Result<u64, RequestError> {
    let Some(index) = &control.index else { return Ok(0) };
    let parser = control.pages.parser.clone();
    let indexer = Indexer::new(control.store.clone(), index.clone(), parser);
    let indexer = indexer.leaving(free_bytes_min);
    let looked_at = indexer.catch_up(&mut |indexed| {
        each(IndexProgress { indexed, behind: 0 });
    })?;
    indexer.digest_links()?;
    if looked_at > 0 {
        indexer.compact();
    }
    Ok(looked_at)
}

/// Waits until the follower has made everything searchable that is stored now. `before`: the place of the index
/// when the wait begins. Gives the number of changes.
fn wait_for_index(
    control: &Control,
    before: u64,
    each: Each<'_, IndexProgress>,
) -> Result<u64, RequestError> {
    let Some((engine, _)) = &control.engine else { return Ok(0) };
    let target = control.store.last_change()?;
    let missing = control.store.changes_count(before, target)?;
    let mut moved = (Instant::now(), before);
    loop {
        if engine.wait_for_index(target, LOOK_EVERY) {
            return Ok(missing);
        }
        let trouble = engine.indexing().and_then(|report| report.trouble);
        if let Some(trouble) = trouble {
            return Err(RequestError::WrongState(format!("indexing fails: {}", trouble.why)));
        }
        let place = control.index()?.applied_upto();
        if place != moved.1 {
            moved = (Instant::now(), place);
        }
        let behind = control.store.changes_count(place, target)?;
        let goes_on = each(IndexProgress { indexed: missing.saturating_sub(behind), behind });
        if !goes_on || moved.0.elapsed() > STILL_MAX {
            return Ok(missing.saturating_sub(behind));
        }
    }
}

fn report(index: &SearchIndex, pages_looked_at: u64) -> Result<IndexReport, RequestError> {
    let (bytes, stored_bytes) = index.disk_bytes()?;
    Ok(IndexReport {
        documents: index.doc_count(),
        bytes,
        stored_bytes,
        applied_upto: index.applied_upto(),
        pages_looked_at,
    })
}
