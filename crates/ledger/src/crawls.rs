//! Crawls: accepted, changed, finished, removed.

use telusur_model::{Crawl, CrawlId, CrawlNo, CrawlState, CrawlStats, EngineFault, Timestamp};

use crate::fold::{CrawlRow, decode_row};
use crate::layout::{self, crawl_key, decode, encode};
use crate::memory::Memory;
use crate::storage::{Batch, Rows, Storage, Table, WriteRows};
use crate::{
    Asking, CrawlAccepted, CrawlChange, CrawlRecord, CrawlStore, Event, Ledger, LinksOf, NewCrawl,
    Removal, ScrubState, Step, StoreError, VerifyReport, scrub, verify,
};

impl<S: Storage> CrawlStore for Ledger<S> {
    fn create(&self, new: NewCrawl) -> Result<CrawlRecord, StoreError> {
        let mut memory = self.memory();
        memory.refuse_if_broken()?;
        let mut crawl = new.crawl;
        crawl.no = self.free_number(memory.crawls);
        crawl.id = CrawlId::new(crawl.created_at, new.random);
        if self.rows().contains(Table::Crawls, crawl_key(crawl.no))? {
            let what = format!("{} is there, beyond the last number that was given", crawl.no);
            return Err(StoreError::Damaged(what));
        }
        let accepted = CrawlAccepted { crawl: crawl.clone(), key_seed: self.key_seed() };
        self.write(&mut memory, Step::of(Event::CrawlAccepted(Box::new(accepted))))?;
        Ok(CrawlRecord {
            state: CrawlState::Running,
            stats: memory.by_crawl[&crawl.no].stats.clone(),
            state_since: crawl.created_at,
            fault: None,
            key_seed: self.key_seed(),
            crawl,
        })
    }

    fn crawl(&self, no: CrawlNo) -> Result<Option<CrawlRecord>, StoreError> {
        let row = read_row(self.rows(), no)?.filter(|row| !row.removing);
        row.map(|row| self.record(row)).transpose()
    }

    fn find(&self, text: &str) -> Result<Option<CrawlRecord>, StoreError> {
        let row = match text {
            "last" => self.last_row()?,
            _ => self.row_called(text)?,
        };
        row.map(|row| self.record(row)).transpose()
    }

    fn crawls(&self) -> Result<Vec<CrawlRecord>, StoreError> {
        let mut records = Vec::new();
        for row in self.rows().prefix(Table::Crawls, []) {
            let (key, value) = row?;
            let record = decode_row(&value).and_then(|row| match row.removing {
                true => Ok(None),
                false => self.record(row).map(Some),
            });
            match record {
                Ok(record) => records.extend(record),
                // It is that crawl's trouble; `verify` names it as well.
                Err(error) if error.is_of_rows() => {
                    let crawl = layout::crawl_of(&key).map(|no| no.to_string());
                    let crawl = crawl.unwrap_or_else(|_| "a crawl".to_owned());
                    tracing::error!(crawl, %error, "a crawl is not listed: its row is damaged");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(records)
    }

    fn set_state(&self, no: CrawlNo, state: CrawlState, at: Timestamp) -> Result<(), StoreError> {
        self.change_row(no, CrawlChange::State(state, at))?;
        if state != CrawlState::Running {
            self.memory().forget(no);
        }
        Ok(())
    }

    fn set_fault(&self, no: CrawlNo, fault: Option<EngineFault>) -> Result<(), StoreError> {
        self.change_row(no, CrawlChange::Fault(fault))
    }

    fn change(&self, crawl: &Crawl) -> Result<(), StoreError> {
        self.change_row(crawl.no, CrawlChange::Settings(Box::new(crawl.clone())))
    }

    fn begin_removal(&self, no: CrawlNo) -> Result<(), StoreError> {
        self.begin_to_remove(no)
    }

    fn removals(&self) -> Result<Vec<Removal>, StoreError> {
        self.all_removals()
    }

    fn delete_removed(&self, no: CrawlNo) -> Result<bool, StoreError> {
        self.delete_piece(no)
    }

    fn end_removal(&self, no: CrawlNo) -> Result<(), StoreError> {
        self.finish_removing(no)
    }

    fn asking(&self) -> Result<Vec<(CrawlNo, Asking)>, StoreError> {
        let rows = self.rows().prefix(Table::Meta, layout::META_ASKING);
        let asking = rows.map(|row| {
            let (key, value) = row?;
            let crawl = layout::crawl_of_meta(&key, layout::META_ASKING)?;
            Ok((crawl, decode(&value, "meta")?))
        });
        asking.collect()
    }

    fn set_asking(&self, no: CrawlNo, asking: Option<Asking>) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        match asking {
            Some(asking) => batch.insert(Table::Meta, layout::meta_asking(no), encode(&asking)),
            None => batch.remove(Table::Meta, layout::meta_asking(no)),
        }
        self.rows().commit(batch)
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

    fn scrub(&self, bytes_max: u64, at: Timestamp) -> Result<ScrubState, StoreError> {
        scrub::scrub(self, bytes_max, at)
    }

    fn scrubbed(&self) -> Result<Option<ScrubState>, StoreError> {
        scrub::last(self)
    }
}

impl<S: Storage> Ledger<S> {
    /// The next number whose bodies lie nowhere: should the state database ever be lost, the bodies
    /// it knew are not written over.
    fn free_number(&self, last: u32) -> CrawlNo {
        let mut no = CrawlNo(last + 1);
        while self.bodies_found().contains(&no) {
            no = CrawlNo(no.0 + 1);
        }
        no
    }

    /// Goes back to what the last commit made durable, after a step that was not written: a row that it
    /// needed cannot be read.
    pub(crate) fn forget_unwritten(&self, memory: &mut Memory) -> Result<(), StoreError> {
        let (durable, _) = Memory::load(self.rows(), self.key_seed())?;
        *memory = durable;
        self.recent().clear();
        Ok(())
    }

    fn record(&self, row: CrawlRow) -> Result<CrawlRecord, StoreError> {
        let stats = read_stats(self.rows(), row.crawl.no)?;
        Ok(row.into_record(stats, self.key_seed()))
    }
}

pub(crate) fn read_row(rows: &impl Rows, no: CrawlNo) -> Result<Option<CrawlRow>, StoreError> {
    let bytes = rows.get(Table::Crawls, crawl_key(no))?;
    bytes.map(|bytes| decode_row(&bytes)).transpose()
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
    use crate::conformance::{create, first, step};
    use crate::in_memory::InMemory;
    use crate::{FrontierStore, Step, Store};

    /// A new crawl once made a memory count as good again that ran ahead of the disk.
    #[test]
    fn no_crawl_is_accepted_after_a_commit_that_failed() {
        let store = Ledger::open(InMemory::default()).unwrap();
        store.memory().broken = true;
        let crawl = crate::conformance::crawl(&["http://a.test/"]);
        assert!(store.create(NewCrawl { crawl, random: 1 }).is_err());
        assert!(store.memory().broken);
    }

    /// A step that says how long a crawl ran, and brings links of it from a file that is in no queue.
    fn step_with_links(store: &dyn Store, record: &CrawlRecord) -> Step {
        let links = ["http://a.test/1", "http://a.test/2"];
        let page = step(store, record, first(store, record, "a.test"), 200, &links);
        let found = page.events.into_iter().filter(|it| matches!(it, Event::LinksFound(_)));
        let ran = Event::CrawlRan { crawl: record.crawl.no, active_ms: 100 };
        found.chain([ran]).collect()
    }

    /// Rows of a crawl in any table, its own included.
    fn rows_of(storage: &InMemory, no: CrawlNo) -> Vec<Table> {
        let of_crawl = Table::OF_CRAWL.into_iter().chain([Table::Crawls, Table::Stats]);
        let has_rows = |table: &Table| storage.prefix(*table, crawl_key(no)).next().is_some();
        let order = storage.prefix(Table::Order, []).any(|row| *row.unwrap().1 == crawl_key(no));
        of_crawl.filter(has_rows).chain(order.then_some(Table::Order)).collect()
    }

    /// A step that was written between the two parts of a removal once brought the crawl back into
    /// memory: whatever came later was written for a crawl that is gone.
    #[test]
    fn a_step_in_the_moment_of_a_removal_revives_nothing() {
        let storage = InMemory::default();
        let store = Ledger::open(storage.clone()).unwrap();
        let record = create(&store, &["http://a.test/"]);
        let no = record.crawl.no;
        let late = step_with_links(&store, &record);
        let again = late.clone();
        *store.before_lock.lock().unwrap() = Some(Box::new(move |store| {
            store.commit(again.clone()).unwrap();
        }));
        store.commit(late.clone()).unwrap();
        assert_ne!(rows_of(&storage, no), []);
        store.remove(no).unwrap();
        store.end_removal(no).unwrap();
        *store.before_lock.lock().unwrap() = None;
        assert_eq!(rows_of(&storage, no), []);
        store.commit(late).unwrap();
        assert_eq!(rows_of(&storage, no), []);
        assert_eq!(store.crawl(no).unwrap(), None);
    }
}
