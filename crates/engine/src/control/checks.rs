//! Checks of what is stored: the invariants, damaged bodies, and everything at a given pace.

use std::cell::RefCell;

use serde::{Deserialize, Serialize};
use telusur_ledger::{ScrubState, StoreError, VerifyReport};
use telusur_model::{PageRecord, PageUrl};

use super::handle::Control;
use super::operation::{Each, IndexUse, Length, NoItem, Operation, OperationKind};
use super::{DamagedPage, requeue, scrub, verify_index};
use crate::error::RequestError;
use crate::stored_page::{Stored, StoredPages, parse_failed};

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
        let unread = RefCell::new(Unread::default());
        let mut report = control.store.verify(&|page| links_of(&control.pages, page, &unread))?;
        unread.into_inner().tell(&mut report)?;
        if let Some(index) = &control.index {
            let _hold = control.hold_index()?;
            verify_index::verify_index(&control.pages, index, &mut report)?;
        }
        Ok(report)
    }
}

/// Pages whose links could not be looked at.
#[derive(Default)]
struct Unread {
    /// Those that break the parser.
    failed: Vec<String>,
    /// No page can be read at all.
    trouble: Option<StoreError>,
}

/// The links of a stored page.
fn links_of(
    pages: &StoredPages,
    page: &PageRecord,
    unread: &RefCell<Unread>,
) -> Result<Vec<PageUrl>, StoreError> {
    match pages.parsed(page) {
        Ok(Stored::Read(parsed)) => Ok(parsed.links.into_iter().map(|link| link.url).collect()),
        Ok(Stored::NotKept) => Ok(Vec::new()),
        Ok(Stored::Failed { why }) => {
            unread.borrow_mut().failed.push(format!("{}: {}", page.url, parse_failed(&why)));
            Ok(Vec::new())
        }
        // The check of bodies names it.
        Err(StoreError::Damaged(what)) => Err(StoreError::Damaged(what)),
        Err(error) => {
            let what = error.to_string();
            unread.borrow_mut().trouble.get_or_insert(error);
            Err(StoreError::Damaged(what))
        }
    }
}

impl Unread {
    /// Says which links were not looked at. Fails if that was not the fault of pages: what was not looked at
    /// must not pass for sound.
    fn tell(self, report: &mut VerifyReport) -> Result<(), StoreError> {
        if let Some(trouble) = self.trouble {
            return Err(trouble);
        }
        if let Some(links) = report.checks.iter_mut().find(|check| check.id == "I3") {
            self.failed.into_iter().for_each(|page| links.note(page));
        }
        Ok(())
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
