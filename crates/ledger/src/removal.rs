//! Removals: begun in one small commit, worked off piece by piece, over when every follower has let go of
//! the crawl.
//!
//! The commit that begins a removal takes the crawl's own rows away, gives the removal its place in the
//! order of changes and writes down that it is not over. From then on nothing shows the crawl, whatever
//! happens next. What is left is deleted by whoever has the storage open, now or after a kill.

use std::sync::{MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use telusur_model::CrawlNo;

use crate::crawls::read_row;
use crate::fold::{decode_row, names_of};
use crate::layout::{self, crawl_key, decode, encode};
use crate::memory::Memory;
use crate::storage::{Batch, Bodies, Rows, Storage, Table, WriteRows};
use crate::{Ledger, StoreError};

/// Rows deleted in one piece: a tenth of a second.
const PIECE_ROWS: usize = 10_000;
/// Files of bodies deleted in one piece: at 256 MiB each, about a second.
const PIECE_FILES: usize = 64;

/// A removal that has begun and is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Of this crawl.
    pub crawl: CrawlNo,
    /// Its place in the order of changes, behind all pages of the crawl.
    pub place: u64,
    /// Whether nothing of the crawl is left but what says that it is being removed.
    pub is_deleted: bool,
}

/// What is kept of a removal until it is over.
#[derive(Serialize, Deserialize)]
pub(crate) struct RemovalRow {
    pub(crate) place: u64,
    is_deleted: bool,
}

/// How far the rows of a crawl were deleted by this process. Deleted rows are passed over slowly until the
/// storage has compacted them: each piece begins behind the last.
#[derive(Default)]
pub(crate) struct Deleting {
    crawl: Option<CrawlNo>,
    /// An index into [`Table::OF_CRAWL`].
    table: usize,
    last_key: Option<Vec<u8>>,
}

impl<S: Storage> Ledger<S> {
    /// Takes up removals that older programs began, and those of which only bodies tell.
    pub(crate) fn adopt_removals(&self) -> Result<(), StoreError> {
        for row in self.rows().prefix(Table::Crawls, []) {
            let bytes = row?.1;
            // At every start, for every crawl: most rows need not be read any further.
            if may_be_removing(&bytes) {
                // A row that cannot be read is that crawl's trouble.
                if let Some(row) = decode_row(&bytes).ok().filter(|row| row.removing) {
                    self.begin_to_remove(row.crawl.no)?;
                }
            }
        }
        for no in self.bodies().half_removed()? {
            let is_known = self.rows().contains(Table::Crawls, crawl_key(no))?
                || self.rows().contains(Table::Meta, layout::meta_removal(no))?;
            // The rows were lost since and made again: followers may still have its pages.
            if !is_known {
                let mut batch = Batch::default();
                put_removal(&mut batch, &mut self.memory(), no);
                self.rows().commit(batch)?;
            }
        }
        Ok(())
    }

    pub(crate) fn begin_to_remove(&self, no: CrawlNo) -> Result<(), StoreError> {
        // In one go: a step in between would bring the crawl back into memory, and write on.
        let mut memory = self.memory();
        let Some(row) = read_row(self.rows(), no)? else { return Ok(()) };
        let mut batch = Batch::default();
        batch.remove(Table::Crawls, crawl_key(no));
        batch.remove(Table::Stats, crawl_key(no));
        batch.remove(Table::Meta, layout::meta_bodies_end(no));
        for text in names_of(&row.crawl) {
            batch.remove(Table::Names, layout::name_key(text, no));
        }
        put_removal(&mut batch, &mut memory, no);
        self.rows().commit(batch)?;
        memory.forget(no);
        self.recent().clear();
        // From here on the bodies tell of no crawl either: who recovers the rows from them does not bring it back.
        // If that fails, the removal has begun all the same, and the first piece tries again.
        if let Err(error) = self.bodies().remove(no, 0) {
            tracing::warn!(crawl = %no, %error, "the bodies of a removed crawl are set aside later");
        }
        Ok(())
    }

    pub(crate) fn all_removals(&self) -> Result<Vec<Removal>, StoreError> {
        let mut removals = Vec::new();
        for row in self.rows().prefix(Table::Meta, layout::META_REMOVALS) {
            let (key, value) = row?;
            let crawl = layout::crawl_of_meta(&key, layout::META_REMOVALS)?;
            let RemovalRow { place, is_deleted } = decode(&value, "removals")?;
            removals.push(Removal { crawl, place, is_deleted });
        }
        removals.sort_by_key(|removal| removal.crawl);
        Ok(removals)
    }

    /// Deletes a piece of what is left of a removed crawl. True if nothing is left.
    pub(crate) fn delete_piece(&self, no: CrawlNo) -> Result<bool, StoreError> {
        let mut deleting = self.deleting();
        let key = layout::meta_removal(no);
        let Some(row) = self.rows().get(Table::Meta, &key)? else { return Ok(true) };
        let row: RemovalRow = decode(&row, "removals")?;
        if row.is_deleted {
            return Ok(true);
        }
        // Bodies first: they are most of it, and on a full disk everything else needs their space.
        if !self.bodies().remove(no, PIECE_FILES)? {
            return Ok(false);
        }
        if deleting.crawl != Some(no) {
            *deleting = Deleting { crawl: Some(no), ..Deleting::default() };
        }
        let mut batch = self.next_rows(no, &mut deleting)?;
        let is_deleted = deleting.table == Table::OF_CRAWL.len();
        if is_deleted {
            batch.insert(Table::Meta, key, encode(&RemovalRow { is_deleted, ..row }));
        }
        let written = self.rows().commit(batch);
        if is_deleted || written.is_err() {
            // The next look begins at the first row.
            *deleting = Deleting::default();
        }
        written.map(|()| is_deleted)
    }

    /// A batch that deletes the next rows of a crawl.
    fn next_rows(&self, no: CrawlNo, deleting: &mut Deleting) -> Result<Batch, StoreError> {
        let mut batch = Batch::default();
        let mut left = PIECE_ROWS;
        while let Some(&table) = Table::OF_CRAWL.get(deleting.table) {
            let first = deleting.last_key.take().unwrap_or_else(|| crawl_key(no).into());
            let end = layout::after_crawl(no).map(Vec::from);
            for row in self.rows().range(table, first, end).take(left) {
                let key = row?.0;
                if matches!(table, Table::Pages | Table::Lost) {
                    batch.remove(Table::Order, layout::order_key(layout::seq_of(&key)?));
                }
                batch.remove(table, &*key);
                left -= 1;
                deleting.last_key = Some(key.to_vec());
            }
            if left == 0 {
                break;
            }
            deleting.table += 1;
            deleting.last_key = None;
        }
        Ok(batch)
    }

    /// Deletes what is left of a removed crawl, and what says that it is being removed.
    pub(crate) fn finish_removing(&self, no: CrawlNo) -> Result<(), StoreError> {
        while !self.delete_piece(no)? {}
        let mut batch = Batch::default();
        batch.remove(Table::Meta, layout::meta_removal(no));
        self.rows().commit(batch)
    }

    /// Held while a piece is deleted.
    fn deleting(&self) -> MutexGuard<'_, Deleting> {
        self.deleting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives a removal its place, behind everything else.
pub(crate) fn put_removal(batch: &mut Batch, memory: &mut Memory, no: CrawlNo) {
    memory.seq += 1;
    let place = memory.seq;
    batch.insert(Table::Order, layout::order_key(place), layout::removal_entry(no));
    batch.insert(Table::Meta, layout::META_SEQ, place.to_be_bytes());
    let row = RemovalRow { place, is_deleted: false };
    batch.insert(Table::Meta, layout::meta_removal(no), encode(&row));
}

/// Whether a row says that an older program began to remove its crawl. It may also be a pattern or a name
/// that says so.
fn may_be_removing(bytes: &[u8]) -> bool {
    const MARK: &[u8] = b"\"removing\":true";
    bytes.windows(MARK.len()).any(|window| window == MARK)
}

#[cfg(test)]
mod tests;
