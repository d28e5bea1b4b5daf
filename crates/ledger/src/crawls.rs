//! Crawls: accepted, changed, finished, removed.

use telusur_model::{Crawl, CrawlId, CrawlNo, CrawlState, CrawlStats, EngineFault, Timestamp};

use crate::fold::{CrawlRow, decode_row, encode_row, names_of};
use crate::layout::{self, crawl_key, decode};
use crate::memory::Memory;
use crate::storage::{Batch, Bodies, Rows, Storage, Table, WriteRows};
use crate::{
    CrawlAccepted, CrawlChange, CrawlRecord, CrawlStore, Event, Ledger, LinksOf, NewCrawl,
    ScrubState, Step, StoreError, VerifyReport, scrub, verify,
};

/// Rows deleted in one batch while a crawl is removed.
const REMOVE_BATCH_ROWS: usize = 10_000;
/// With less space than this the bodies of a removed crawl are deleted before its rows. A million rows take
/// 50 MB of journal.
const REMOVAL_FREE_BYTES: u64 = 64 << 20;

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

    fn remove(&self, no: CrawlNo) -> Result<(), StoreError> {
        {
            // In one go: a step in between would bring the crawl back into memory, and write on.
            let mut memory = self.memory();
            let Some(row) = read_row(self.rows(), no)? else { return Ok(()) };
            let mut batch = Batch::default();
            let row = CrawlRow { removing: true, ..row };
            batch.insert(Table::Crawls, crawl_key(no), encode_row(&row));
            self.rows().commit(batch)?;
            memory.forget(no);
            self.recent().clear();
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

    fn record(&self, row: CrawlRow) -> Result<CrawlRecord, StoreError> {
        let stats = read_stats(self.rows(), row.crawl.no)?;
        Ok(row.into_record(stats, self.key_seed()))
    }

    /// Finishes what a killed `rm` began.
    pub(crate) fn finish_removals(&self) -> Result<(), StoreError> {
        let mut removing = Vec::new();
        for row in self.rows().prefix(Table::Crawls, []) {
            let bytes = row?.1;
            // At every start, for every crawl: most rows need not be read any further.
            if may_be_removing(&bytes) {
                // A row that cannot be read is that crawl's trouble.
                removing.extend(decode_row(&bytes).ok().filter(|row| row.removing));
            }
        }
        for no in removing.iter().map(|row| row.crawl.no) {
            match self.remove_rows(no) {
                // So is one that cannot be removed: it is tried again at the next start.
                Err(error @ (StoreError::Io { .. } | StoreError::Unreadable { .. })) => {
                    tracing::error!(crawl = %no, %error, "a removal cannot be finished");
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// Deletes everything of a crawl, its own row last: until then the removal can be resumed. In the step
    /// that deletes that row the removal gets its place in the order of changes, behind all pages of the
    /// crawl: followers of the order hear of it, once.
    fn remove_rows(&self, no: CrawlNo) -> Result<(), StoreError> {
        self.make_room_for_removal(no)?;
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

    /// On a disk that is nearly full the bodies of a crawl whose removal has begun go first: deleting its
    /// rows writes more before it frees anything. Nobody reads them any more.
    fn make_room_for_removal(&self, no: CrawlNo) -> Result<(), StoreError> {
        match self.storage().free_bytes()? {
            Some(free) if free < REMOVAL_FREE_BYTES => self.bodies().remove(no),
            Some(_) | None => Ok(()),
        }
    }

    /// Goes back to what the last commit made durable, after a step that was not written: a row that it
    /// needed cannot be read.
    pub(crate) fn forget_unwritten(&self, memory: &mut Memory) -> Result<(), StoreError> {
        let (durable, _) = Memory::load(self.rows(), self.key_seed())?;
        *memory = durable;
        self.recent().clear();
        Ok(())
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

pub(crate) fn read_row(rows: &impl Rows, no: CrawlNo) -> Result<Option<CrawlRow>, StoreError> {
    let bytes = rows.get(Table::Crawls, crawl_key(no))?;
    bytes.map(|bytes| decode_row(&bytes)).transpose()
}

/// Whether a row says that its removal has begun. It may also be a pattern or a name that says so.
fn may_be_removing(bytes: &[u8]) -> bool {
    const MARK: &[u8] = b"\"removing\":true";
    bytes.windows(MARK.len()).any(|window| window == MARK)
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
        *store.before_lock.lock().unwrap() = None;
        assert_eq!(rows_of(&storage, no), []);
        store.commit(late).unwrap();
        assert_eq!(rows_of(&storage, no), []);
        assert_eq!(store.crawl(no).unwrap(), None);
    }
}
