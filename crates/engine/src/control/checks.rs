//! Checks of what is stored: the invariants, damaged bodies, and everything at a given pace.

use serde::{Deserialize, Serialize};
use telusur_ledger::{ScrubState, VerifyReport};

use super::handle::Control;
use super::operation::{Each, IndexUse, Length, NoItem, Operation, OperationKind};
use super::{DamagedPage, requeue, scrub, verify_index};
use crate::error::RequestError;

/// Checks the store and the index beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verify {}

/// Takes out pages whose stored bodies cannot be read, and queues them again. Running crawls are left alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequeueDamaged {}

/// URLs, or ids, that are queued again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requeued {
    /// How many.
    pub count: u64,
}

/// Reads everything that is stored, from where the last reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scrub {
    /// No faster than this; 0 is as fast as it goes.
    pub bytes_per_second: u64,
}

impl Operation for Verify {
    const KIND: OperationKind = OperationKind::Verify;
    const INDEX: IndexUse = IndexUse::IfThere;
    const LENGTH: Length = Length::Long;
    type Item = NoItem;
    type Reply = VerifyReport;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<VerifyReport, RequestError> {
        let mut report = control.store.verify(&|page| {
            let parsed = control.pages.parsed(page)?.unwrap_or_default();
            Ok(parsed.links.into_iter().map(|link| link.url).collect())
        })?;
        if let Some(index) = &control.index {
            let _hold = control.hold_index()?;
            verify_index::verify_index(&control.pages, index, &mut report)?;
        }
        Ok(report)
    }
}

impl Operation for RequeueDamaged {
    const KIND: OperationKind = OperationKind::RequeueDamaged;
    const MAY_WRITE: bool = true;
    const LENGTH: Length = Length::Long;
    type Item = DamagedPage;
    type Reply = Requeued;

    fn run(
        &self,
        control: &Control,
        each: Each<'_, DamagedPage>,
    ) -> Result<Requeued, RequestError> {
        let mut count = 0;
        for record in control.store.crawls()? {
            if !control.is_live(record.crawl.no) {
                count += requeue::requeue(control.store.as_ref(), &record, each)?;
            }
        }
        control.wake_followers();
        Ok(Requeued { count })
    }
}

impl Operation for Scrub {
    const KIND: OperationKind = OperationKind::Scrub;
    const INDEX: IndexUse = IndexUse::IfThere;
    const LENGTH: Length = Length::Long;
    type Item = ScrubState;
    type Reply = ();

    fn run(&self, control: &Control, each: Each<'_, ScrubState>) -> Result<(), RequestError> {
        let (store, index) = (control.store.as_ref(), control.index.as_deref());
        scrub::scrub(store, index, self.bytes_per_second, control.wall, each)
    }
}
