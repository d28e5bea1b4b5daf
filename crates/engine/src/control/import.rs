//! Documents from a file become pages of a crawl, batch by batch.

use serde::{Deserialize, Serialize};
use telusur_ledger::CrawlRecord;
use telusur_model::{
    Crawl, CrawlNo, CrawlState, FinishReason, Keep, PauseReason, Politeness, RobotsRules,
};

use super::handle::Control;
use super::operation::{Each, NoItem, Operation, OperationKind};
use crate::admission;
use crate::commit_stage::expect_space;
use crate::error::RequestError;
use crate::imports::{ImportLine, Importer};
use crate::request::{BadRequest, program_defaults};

/// Documents in one batch: a line of the control socket stays below its limit.
pub const IMPORT_BATCH_MAX: usize = 500;
/// Bytes of the texts of one batch, at which it is handed over.
pub const IMPORT_BATCH_BYTES: usize = 512 << 10;

/// Documents are stored, and found like pages. Those of an import with the same name are replaced.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportDocuments {
    /// The name of the import.
    pub name: String,
    /// The documents, at most [`IMPORT_BATCH_MAX`].
    pub documents: Vec<ImportLine>,
    /// Whether these are the last: until then the import counts as not complete.
    pub is_last: bool,
    /// Refused with less free space on the disk than this.
    #[serde(default)]
    pub min_free_disk: u64,
}

/// Documents that were stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedDocuments {
    /// The number of their crawl.
    pub no: CrawlNo,
    /// The id of their crawl.
    pub crawl: String,
}

impl Operation for ImportDocuments {
    const KIND: OperationKind = OperationKind::ImportDocuments;
    const MAY_WRITE: bool = true;
    type Item = NoItem;
    type Reply = ImportedDocuments;

    fn run(
        &self,
        control: &Control,
        _: Each<'_, NoItem>,
    ) -> Result<ImportedDocuments, RequestError> {
        if self.documents.len() > IMPORT_BATCH_MAX {
            let what = format!("{IMPORT_BATCH_MAX} documents at once are the limit");
            return Err(BadRequest::field("/documents", what).into());
        }
        expect_space(control.store.as_ref(), self.min_free_disk)?;
        // All of them first: a batch is stored whole or not at all.
        let mut addresses = Vec::with_capacity(self.documents.len());
        for (number, document) in self.documents.iter().enumerate() {
            let pointer = format!("/documents/{number}");
            let url = document.address().map_err(|why| BadRequest::field(pointer, why))?;
            addresses.push(url);
        }
        let store = control.store.as_ref();
        let now = (control.wall)();
        let record = match import_of(control, &self.name)? {
            Some(record) => record,
            None => admission::create(store, new_import(&self.name, now))?,
        };
        let (no, crawl) = (record.crawl.no, record.crawl.id.to_string());
        // Until its end it is neither complete nor something that a service could go on with.
        let unfinished = CrawlState::Paused { why: PauseReason::Import };
        if record.state != unfinished {
            store.set_state(no, unfinished, now)?;
        }
        let mut importer = Importer::new(store, record.crawl);
        for (document, url) in self.documents.iter().zip(addresses) {
            importer.add(document.clone(), url, now)?;
        }
        importer.flush()?;
        if self.is_last {
            store.set_state(no, CrawlState::Finished { why: FinishReason::Drained }, now)?;
        }
        control.wake_followers();
        Ok(ImportedDocuments { no, crawl })
    }
}

/// The youngest import of this name.
fn import_of(control: &Control, name: &str) -> Result<Option<CrawlRecord>, RequestError> {
    let crawls = control.store.crawls()?.into_iter().rev();
    let mut same = crawls.filter(|record| record.crawl.name.as_deref() == Some(name));
    Ok(same.find(|record| record.crawl.is_import()))
}

fn new_import(name: &str, at: telusur_model::Timestamp) -> Crawl {
    Crawl {
        name: Some(name.to_owned()),
        created_at: at,
        keep: Keep::Text,
        keep_tracking: true,
        politeness: Politeness { robots: RobotsRules::Ignore, ..Politeness::default() },
        ..program_defaults()
    }
}
