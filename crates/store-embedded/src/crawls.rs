//! Crawls: accepted, changed, finished, removed.

use fjall::Keyspace;
use serde::{Deserialize, Serialize};
use telusur_model::{Crawl, CrawlId, CrawlNo, CrawlState, CrawlStats, EngineFault, Timestamp};
use telusur_store::{CrawlRecord, CrawlStore, LinksOf, NewCrawl, StoreError, VerifyReport};

use crate::commit::StepWriter;
use crate::rows::{self, crawl_key, decode};
use crate::{EmbeddedStore, Keyspaces, engine_error, io_error, verify};

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

impl CrawlStore for EmbeddedStore {
    fn create(&self, new: NewCrawl) -> Result<CrawlRecord, StoreError> {
        let mut memory = self.memory.lock();
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
        match read_row(&self.keyspaces, no)? {
            Some(row) if !row.removing => self.record(row).map(Some),
            _ => Ok(None),
        }
    }

    fn crawls(&self) -> Result<Vec<CrawlRecord>, StoreError> {
        let rows = all_rows(&self.keyspaces)?;
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
            self.memory.lock().forget(no);
        }
        Ok(())
    }

    fn set_fault(&self, no: CrawlNo, fault: Option<EngineFault>) -> Result<(), StoreError> {
        self.update_row(no, |row| row.fault = fault)
    }

    fn change(&self, crawl: &Crawl) -> Result<(), StoreError> {
        self.update_row(crawl.no, |row| row.crawl = crawl.clone())?;
        if let Some(memory) = self.memory.lock().by_crawl.get_mut(&crawl.no) {
            memory.limits = crawl.limits.clone();
        }
        Ok(())
    }

    fn remove(&self, no: CrawlNo) -> Result<(), StoreError> {
        if read_row(&self.keyspaces, no)?.is_none() {
            return Ok(());
        }
        {
            let mut memory = self.memory.lock();
            memory.forget(no);
            memory.recent.clear();
        }
        self.update_row(no, |row| row.removing = true)?;
        self.remove_rows(no)
    }

    fn key_seed(&self) -> u64 {
        self.key_seed
    }

    fn was_closed(&self) -> bool {
        self.was_closed
    }

    fn close(&self) -> Result<(), StoreError> {
        self.set_closed(true)
    }

    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        let root = self.directory.root();
        let stat = rustix::fs::statvfs(root).map_err(|error| {
            io_error(format!("ask for the free space of {}", root.display()), error.into())
        })?;
        Ok(Some(stat.f_bavail.saturating_mul(stat.f_frsize)))
    }

    fn verify(&self, links_of: LinksOf<'_>) -> Result<VerifyReport, StoreError> {
        verify::verify(self, links_of)
    }
}

impl EmbeddedStore {
    /// The next number whose bodies lie nowhere: should the state database ever be lost, the bodies
    /// it knew are not written over.
    fn free_number(&self, last: u32) -> Result<CrawlNo, StoreError> {
        let taken = self.segments.dirs()?;
        let mut no = CrawlNo(last + 1);
        while taken.contains(&no.to_string()) {
            no = CrawlNo(no.0 + 1);
        }
        Ok(no)
    }

    fn record(&self, row: CrawlRow) -> Result<CrawlRecord, StoreError> {
        let stats = read_stats(&self.keyspaces, row.crawl.no)?;
        let CrawlRow { crawl, state, state_since, fault, .. } = row;
        Ok(CrawlRecord { crawl, state, stats, state_since, fault })
    }

    fn update_row(
        &self,
        no: CrawlNo,
        change: impl FnOnce(&mut CrawlRow),
    ) -> Result<(), StoreError> {
        // The lock keeps two updates from reading the same old row.
        let _writer = self.memory.lock();
        let Some(mut row) = read_row(&self.keyspaces, no)? else { return Ok(()) };
        change(&mut row);
        let mut batch = self.batch();
        batch.insert(&self.keyspaces.crawls, crawl_key(no), encode_row(&row));
        batch.commit().map_err(engine_error)
    }

    /// Finishes what a killed `rm` began.
    pub(crate) fn finish_removals(&self) -> Result<(), StoreError> {
        for row in all_rows(&self.keyspaces)? {
            if row.removing {
                self.remove_rows(row.crawl.no)?;
            }
        }
        Ok(())
    }

    /// Deletes everything of a crawl, its own row last: until then the removal can be resumed.
    fn remove_rows(&self, no: CrawlNo) -> Result<(), StoreError> {
        let keyspaces = &self.keyspaces;
        let of_crawl = [
            &keyspaces.queue,
            &keyspaces.held,
            &keyspaces.urls,
            &keyspaces.pages,
            &keyspaces.hosts,
            &keyspaces.runs,
            &keyspaces.traps,
        ];
        for keyspace in of_crawl {
            self.remove_prefix(keyspace, no)?;
        }
        self.segments.remove(no)?;
        let mut batch = self.batch();
        batch.remove(&keyspaces.meta, rows::meta_segment_end(no));
        batch.remove(&keyspaces.stats, crawl_key(no));
        batch.remove(&keyspaces.crawls, crawl_key(no));
        batch.commit().map_err(engine_error)
    }

    fn remove_prefix(&self, keyspace: &Keyspace, no: CrawlNo) -> Result<(), StoreError> {
        loop {
            let mut batch = self.batch();
            for row in keyspace.prefix(crawl_key(no)).take(REMOVE_BATCH_ROWS) {
                batch.remove(keyspace, row.key().map_err(engine_error)?);
            }
            if batch.is_empty() {
                return Ok(());
            }
            batch.commit().map_err(engine_error)?;
        }
    }
}

pub(crate) fn encode_row(row: &CrawlRow) -> Vec<u8> {
    serde_json::to_vec(row).expect("a crawl holds nothing that JSON cannot write")
}

pub(crate) fn read_row(keyspaces: &Keyspaces, no: CrawlNo) -> Result<Option<CrawlRow>, StoreError> {
    let bytes = keyspaces.crawls.get(crawl_key(no)).map_err(engine_error)?;
    bytes.map(|bytes| decode_row(&bytes)).transpose()
}

fn all_rows(keyspaces: &Keyspaces) -> Result<Vec<CrawlRow>, StoreError> {
    keyspaces.crawls.iter().map(|row| decode_row(&row.value().map_err(engine_error)?)).collect()
}

fn decode_row(bytes: &[u8]) -> Result<CrawlRow, StoreError> {
    serde_json::from_slice(bytes)
        .map_err(|error| StoreError::Damaged(format!("a crawl cannot be read: {error}")))
}

pub(crate) fn read_stats(keyspaces: &Keyspaces, no: CrawlNo) -> Result<CrawlStats, StoreError> {
    match keyspaces.stats.get(crawl_key(no)).map_err(engine_error)? {
        Some(bytes) => decode(&bytes, "stats"),
        None => Ok(CrawlStats::default()),
    }
}
