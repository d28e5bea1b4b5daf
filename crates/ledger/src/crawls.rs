//! Crawls: accepted, changed, finished, removed.

use crate::{CrawlRecord, CrawlStore, LinksOf, NewCrawl, StoreError, VerifyReport};
use serde::{Deserialize, Serialize};
use telusur_model::{Crawl, CrawlId, CrawlNo, CrawlState, CrawlStats, EngineFault, Timestamp};

use crate::commit::StepWriter;
use crate::layout::{self, crawl_key, decode};
use crate::lookup::names_of;
use crate::storage::{Batch, Bodies, Rows, Storage, Table};
use crate::{Ledger, verify};

/// Rows deleted in one batch while a crawl is removed.
const REMOVE_BATCH_ROWS: usize = 10_000;

/// A crawl as it lies in the database, in JSON: few, read by people who debug, and growing fields.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CrawlRow {
    pub(crate) crawl: Crawl,
    pub(crate) state: CrawlState,
    pub(crate) state_since: Timestamp,
    /// Its removal has begun, and is finished at the next start if need be.
    pub(crate) removing: bool,
    /// Whether it ended the engine. Rows of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<EngineFault>,
}

impl<S: Storage> CrawlStore for Ledger<S> {
    fn create(&self, new: NewCrawl) -> Result<CrawlRecord, StoreError> {
        let mut memory = self.memory();
        memory.refuse_if_broken()?;
        let mut crawl = new.crawl;
        crawl.no = self.free_number(memory.crawls)?;
        crawl.id = CrawlId::new(crawl.created_at, new.random);
        let row = CrawlRow {
            state: CrawlState::Running,
            state_since: crawl.created_at,
            crawl,
            removing: false,
            fault: None,
        };
        let crawl = &row.crawl;
        let mut writer = StepWriter::new(self, &mut memory);
        writer.put_crawl(&row);
        writer.seed(crawl);
        writer.commit()?;
        let stats = memory.by_crawl[&crawl.no].stats.clone();
        let CrawlRow { crawl, state, state_since, fault, .. } = row;
        Ok(CrawlRecord { crawl, state, stats, state_since, fault })
    }

    fn crawl(&self, no: CrawlNo) -> Result<Option<CrawlRecord>, StoreError> {
        match read_row(self.rows(), no)? {
            Some(row) if !row.removing => self.record(row).map(Some),
            _ => Ok(None),
        }
    }

    fn find(&self, text: &str) -> Result<Option<CrawlRecord>, StoreError> {
        let row = match text {
            "last" => self.last_row()?,
            _ => self.row_called(text)?,
        };
        row.map(|row| self.record(row)).transpose()
    }

    fn crawls(&self) -> Result<Vec<CrawlRecord>, StoreError> {
        let rows = all_rows(self.rows())?;
        rows.into_iter().filter(|row| !row.removing).map(|row| self.record(row)).collect()
    }

    fn set_state(&self, no: CrawlNo, state: CrawlState, at: Timestamp) -> Result<(), StoreError> {
        self.update_row(no, |row| {
            row.state = state;
            row.state_since = at;
            if state != CrawlState::Running {
                row.fault = None;
            }
        })?;
        if state != CrawlState::Running {
            self.memory().forget(no);
        }
        Ok(())
    }

    fn set_fault(&self, no: CrawlNo, fault: Option<EngineFault>) -> Result<(), StoreError> {
        self.update_row(no, |row| row.fault = fault)
    }

    fn change(&self, crawl: &Crawl) -> Result<(), StoreError> {
        self.update_row(crawl.no, |row| row.crawl = crawl.clone())?;
        if let Some(memory) = self.memory().by_crawl.get_mut(&crawl.no) {
            memory.limits = crawl.limits.clone();
        }
        Ok(())
    }

    fn remove(&self, no: CrawlNo) -> Result<(), StoreError> {
        {
            // In one go: a step in between would bring the crawl back into memory, and write on.
            let mut memory = self.memory();
            if !self.change_row(no, |row| row.removing = true)? {
                return Ok(());
            }
            memory.forget(no);
            memory.recent.clear();
        }
        self.remove_rows(no)
    }

    fn key_seed(&self) -> u64 {
        self.storage().key_seed()
    }

    fn was_closed(&self) -> bool {
        self.closed_before()
    }

    fn close(&self) -> Result<(), StoreError> {
        self.set_closed(true)
    }

    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        self.storage().free_bytes()
    }

    fn verify(&self, links_of: LinksOf<'_>) -> Result<VerifyReport, StoreError> {
        verify::verify(self, links_of)
    }
}

impl<S: Storage> Ledger<S> {
    /// The next number whose bodies lie nowhere: should the state database ever be lost, the bodies
    /// it knew are not written over.
    fn free_number(&self, last: u32) -> Result<CrawlNo, StoreError> {
        let taken = self.bodies().crawls()?;
        let mut no = CrawlNo(last + 1);
        while taken.contains(&no.to_string()) {
            no = CrawlNo(no.0 + 1);
        }
        Ok(no)
    }

    fn record(&self, row: CrawlRow) -> Result<CrawlRecord, StoreError> {
        let stats = read_stats(self.rows(), row.crawl.no)?;
        let CrawlRow { crawl, state, state_since, fault, .. } = row;
        Ok(CrawlRecord { crawl, state, stats, state_since, fault })
    }

    fn update_row(
        &self,
        no: CrawlNo,
        change: impl FnOnce(&mut CrawlRow),
    ) -> Result<(), StoreError> {
        // The lock keeps two updates from reading the same old row.
        let _writer = self.memory();
        self.change_row(no, change).map(|_is_there| ())
    }

    /// Changes the row of a crawl, under the writer's lock. False if there is none.
    fn change_row(
        &self,
        no: CrawlNo,
        change: impl FnOnce(&mut CrawlRow),
    ) -> Result<bool, StoreError> {
        let Some(mut row) = read_row(self.rows(), no)? else { return Ok(false) };
        let mut batch = Batch::default();
        for text in names_of(&row.crawl) {
            batch.remove(Table::Names, layout::name_key(text, no));
        }
        change(&mut row);
        for text in names_of(&row.crawl) {
            batch.insert(Table::Names, layout::name_key(text, no), []);
        }
        batch.insert(Table::Crawls, crawl_key(no), encode_row(&row));
        self.rows().commit(batch)?;
        Ok(true)
    }

    /// Finishes what a killed `rm` began.
    pub(crate) fn finish_removals(&self) -> Result<(), StoreError> {
        for row in all_rows(self.rows())? {
            if row.removing {
                self.remove_rows(row.crawl.no)?;
            }
        }
        Ok(())
    }

    /// Deletes everything of a crawl, its own row last: until then the removal can be resumed. In the step
    /// that deletes that row the removal gets its place in the order of changes, behind all pages of the
    /// crawl: followers of the order hear of it, once.
    fn remove_rows(&self, no: CrawlNo) -> Result<(), StoreError> {
        for table in Table::OF_CRAWL {
            self.remove_prefix(table, no)?;
        }
        self.bodies().remove(no)?;
        let mut memory = self.memory();
        let Some(row) = read_row(self.rows(), no)? else { return Ok(()) };
        let mut batch = Batch::default();
        batch.remove(Table::Meta, layout::meta_bodies_end(no));
        batch.remove(Table::Stats, crawl_key(no));
        for text in names_of(&row.crawl) {
            batch.remove(Table::Names, layout::name_key(text, no));
        }
        batch.remove(Table::Crawls, crawl_key(no));
        memory.seq += 1;
        batch.insert(Table::Order, layout::order_key(memory.seq), layout::removal_entry(no));
        batch.insert(Table::Meta, layout::META_SEQ, memory.seq.to_be_bytes());
        self.rows().commit(batch)
    }

    fn remove_prefix(&self, table: Table, no: CrawlNo) -> Result<(), StoreError> {
        loop {
            let mut batch = Batch::default();
            for row in self.rows().prefix(table, crawl_key(no)).take(REMOVE_BATCH_ROWS) {
                let key = row?.0;
                if table == Table::Pages {
                    batch.remove(Table::Order, layout::order_key(layout::seq_of(&key)?));
                }
                batch.remove(table, &*key);
            }
            if batch.is_empty() {
                return Ok(());
            }
            self.rows().commit(batch)?;
        }
    }
}

pub(crate) fn encode_row(row: &CrawlRow) -> Vec<u8> {
    serde_json::to_vec(row).expect("a crawl holds nothing that JSON cannot write")
}

pub(crate) fn read_row(rows: &impl Rows, no: CrawlNo) -> Result<Option<CrawlRow>, StoreError> {
    let bytes = rows.get(Table::Crawls, crawl_key(no))?;
    bytes.map(|bytes| decode_row(&bytes)).transpose()
}

fn all_rows(rows: &impl Rows) -> Result<Vec<CrawlRow>, StoreError> {
    rows.prefix(Table::Crawls, []).map(|row| decode_row(&row?.1)).collect()
}

pub(crate) fn decode_row(bytes: &[u8]) -> Result<CrawlRow, StoreError> {
    serde_json::from_slice(bytes)
        .map_err(|error| StoreError::Damaged(format!("a crawl cannot be read: {error}")))
}

pub(crate) fn read_stats(rows: &impl Rows, no: CrawlNo) -> Result<CrawlStats, StoreError> {
    match rows.get(Table::Stats, crawl_key(no))? {
        Some(bytes) => decode(&bytes, "stats"),
        None => Ok(CrawlStats::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_memory::InMemory;
    use crate::{PageStore, StoreChange};

    /// Removals had no place in the order once: what follows it has to hear of those as well.
    #[test]
    fn removals_of_earlier_versions_get_their_places() {
        let rows = InMemory::default();
        let store = Ledger::open(rows.clone()).unwrap();
        let crawl = crate::conformance::crawl(&["http://a.test/"]);
        let new = |random| NewCrawl { crawl: crawl.clone(), random };
        let [gone, _kept] = [1, 2].map(|random| store.create(new(random)).unwrap().crawl.no);
        store.remove(gone).unwrap();
        drop(store);
        let mut batch = Batch::default();
        for row in rows.prefix(Table::Order, []) {
            batch.remove(Table::Order, row.unwrap().0);
        }
        batch.remove(Table::Meta, layout::META_REMOVALS);
        rows.commit(batch).unwrap();
        for _start in 0..2 {
            let store = Ledger::open(rows.clone()).unwrap();
            let changes = store.changes_after(0, 9).unwrap();
            let [StoreChange::Removed { crawl, .. }] = changes[..] else { panic!("{changes:?}") };
            assert_eq!(crawl, gone);
        }
    }

    /// A new crawl once made a memory count as good again that ran ahead of the disk.
    #[test]
    fn no_crawl_is_accepted_after_a_commit_that_failed() {
        let store = Ledger::open(InMemory::default()).unwrap();
        store.memory().broken = true;
        let crawl = crate::conformance::crawl(&["http://a.test/"]);
        assert!(store.create(NewCrawl { crawl, random: 1 }).is_err());
        assert!(store.memory().broken);
    }
}
