//! What is found without reading every crawl or page: changes in the one order of all crawls, crawls by
//! what people call them, and pages of ids by the URL that they were redirected to. All three tables are
//! derived from others, and can be made again.

use std::collections::HashMap;

use telusur_model::{CrawlNo, PageRecord, PageUrl, UrlKey, UrlKeyer};

use crate::crawls;
use crate::fold::{CrawlRow, decode_row, names_of};
use crate::layout::{self, UrlRow};
use crate::storage::{Batch, Rows, Storage, Table, WriteRows};
use crate::{Ledger, StoreChange, StoreError, removal};

/// Rows written in one batch while the tables are made.
const BATCH_ROWS: usize = 10_000;

/// The row that finds the page of an id by the URL that it was redirected to; `None` for other pages.
pub(crate) fn alias_row(page: &PageRecord, keyer: &UrlKeyer) -> Option<([u8; 20], [u8; 16])> {
    if page.redirects.is_empty() {
        return None;
    }
    let key = keyer.key(&page.url);
    (key != page.key).then(|| (layout::url_key(page.crawl, key), page.key.0.to_be_bytes()))
}

/// What could be read. A row that is damaged costs what it holds, and nobody behind it waits.
fn readable<T>(read: Result<Option<T>, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Err(error) if error.is_of_rows() => {
            tracing::warn!(%error, "a change is passed over: its row is damaged");
            Ok(None)
        }
        read => read,
    }
}

impl<S: Storage> Ledger<S> {
    /// Makes the tables of this module from the rows that they are derived from, for a storage whose
    /// last writer did not keep them.
    pub fn derive_lookups(&self) -> Result<(), StoreError> {
        let mut memory = self.memory();
        for table in [Table::Order, Table::Names, Table::Aliases] {
            self.copy_rows(table, |batch, key, _| {
                batch.remove(table, key);
                Ok(())
            })?;
        }
        let mut keyers = HashMap::new();
        self.copy_rows(Table::Crawls, |batch, _, value| {
            let row = decode_row(value)?;
            keyers.insert(row.crawl.no, row.keyer(self.key_seed()));
            for text in names_of(&row.crawl) {
                batch.insert(Table::Names, layout::name_key(text, row.crawl.no), []);
            }
            Ok(())
        })?;
        self.copy_rows(Table::Lost, |batch, key, _| {
            let entry = layout::page_entry(layout::owner_of(key)?);
            batch.insert(Table::Order, layout::order_key(layout::seq_of(key)?), entry);
            Ok(())
        })?;
        self.copy_rows(Table::Pages, |batch, key, value| {
            let page: PageRecord = layout::decode(value, "pages")?;
            let entry = layout::page_entry(page.crawl);
            batch.insert(Table::Order, layout::order_key(layout::seq_of(key)?), entry);
            let keyer = keyers.get(&page.crawl);
            if let Some((key, value)) = keyer.and_then(|keyer| alias_row(&page, keyer)) {
                batch.insert(Table::Aliases, key, value);
            }
            Ok(())
        })?;
        // Their pages are gone, and when they were removed was not written down: behind everything else.
        let mut batch = Batch::default();
        for no in (1..=memory.crawls).map(CrawlNo) {
            if self.rows().contains(Table::Meta, layout::meta_removal(no))? {
                removal::put_removal(&mut batch, &mut memory, no);
            } else if !self.rows().contains(Table::Crawls, layout::crawl_key(no))? {
                memory.seq += 1;
                let entry = layout::removal_entry(no);
                batch.insert(Table::Order, layout::order_key(memory.seq), entry);
            }
        }
        batch.insert(Table::Meta, layout::META_SEQ, memory.seq.to_be_bytes());
        self.rows().commit(batch)
    }

    /// The page that is stored for a URL, or of an id that was redirected to it.
    pub(crate) fn page_of_url(
        &self,
        crawl: CrawlNo,
        url: &PageUrl,
    ) -> Result<Option<PageRecord>, StoreError> {
        let Some(row) = self.row(crawl)? else { return Ok(None) };
        let key = row.keyer(self.key_seed()).key(url);
        match self.page_with_key(crawl, key)? {
            Some(page) => Ok(Some(page)),
            None => self.page_redirected_to(crawl, key),
        }
    }

    /// The page of an id that was redirected to the URL with this key.
    pub(crate) fn page_redirected_to(
        &self,
        crawl: CrawlNo,
        key: UrlKey,
    ) -> Result<Option<PageRecord>, StoreError> {
        match self.rows().get(Table::Aliases, layout::url_key(crawl, key))? {
            Some(value) => self.page_with_key(crawl, layout::key_of_url_row(&value)?),
            None => Ok(None),
        }
    }

    fn page_with_key(&self, crawl: CrawlNo, key: UrlKey) -> Result<Option<PageRecord>, StoreError> {
        let row = self.rows().get(Table::Urls, layout::url_key(crawl, key))?;
        match row.map(|row| layout::decode(&row, "urls")).transpose()? {
            Some(UrlRow::Page { seq }) => self.page_record(crawl, seq),
            Some(UrlRow::Queued { .. } | UrlRow::Settled(_)) | None => Ok(None),
        }
    }

    /// Calls `write` with each row of a table, and commits now and then.
    fn copy_rows(
        &self,
        table: Table,
        mut write: impl FnMut(&mut Batch, &[u8], &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        for row in self.rows().prefix(table, []) {
            let (key, value) = row?;
            write(&mut batch, &key, &value)?;
            if batch.len() >= BATCH_ROWS {
                self.rows().commit(std::mem::take(&mut batch))?;
            }
        }
        self.rows().commit(batch)
    }

    /// Changes of all crawls behind a place, in the order in which they were made.
    pub(crate) fn changes_in_order(
        &self,
        seq: u64,
        max: usize,
    ) -> Result<Vec<StoreChange>, StoreError> {
        let Some(first) = seq.checked_add(1).filter(|_| max > 0) else { return Ok(Vec::new()) };
        let mut is_there = HashMap::new();
        let mut changes = Vec::new();
        for row in self.rows().range(Table::Order, layout::order_key(first).into(), None) {
            let (key, value) = row?;
            let (seq, crawl) = (layout::seq_of(&key)?, layout::crawl_of(&value)?);
            if layout::is_removal(&value) {
                changes.push(StoreChange::Removed { seq, crawl });
                if changes.len() >= max {
                    break;
                }
                continue;
            }
            let is_there = match is_there.get(&crawl) {
                Some(is_there) => *is_there,
                None => *is_there.entry(crawl).or_insert(readable(self.row(crawl))?.is_some()),
            };
            // A page that was replaced between the two reads comes again at its new place.
            if is_there {
                changes.extend(readable(self.page_change(crawl, seq))?);
            }
            if changes.len() >= max {
                break;
            }
        }
        Ok(changes)
    }

    /// The page that was stored or lost at a place.
    fn page_change(&self, crawl: CrawlNo, seq: u64) -> Result<Option<StoreChange>, StoreError> {
        if let Some(page) = self.page_record(crawl, seq)? {
            return Ok(Some(StoreChange::Page(Box::new(page))));
        }
        let lost = self.rows().get(Table::Lost, layout::page_key(crawl, seq))?;
        let lost = lost.map(|row| layout::decode(&row, "lost")).transpose()?;
        Ok(lost.map(|page| StoreChange::Lost(Box::new(page))))
    }

    /// The place of the last change, or 0.
    pub(crate) fn last_change_place(&self) -> Result<u64, StoreError> {
        let mut changes = self.rows().prefix(Table::Order, []);
        changes.next_back().map_or(Ok(0), |row| layout::seq_of(&row?.0))
    }

    /// How many changes there are behind a place, up to another.
    pub(crate) fn changes_between(&self, after: u64, upto: u64) -> Result<u64, StoreError> {
        let Some(first) = after.checked_add(1).filter(|first| *first <= upto) else {
            return Ok(0);
        };
        let end = upto.checked_add(1).map(|end| layout::order_key(end).into());
        let rows = self.rows().range(Table::Order, layout::order_key(first).into(), end);
        rows.map(|row| row.map(|_| 1)).sum()
    }

    /// The place of a crawl's last page, or 0.
    pub(crate) fn last_place(&self, crawl: CrawlNo) -> Result<u64, StoreError> {
        let mut pages = self.rows().prefix(Table::Pages, layout::crawl_key(crawl));
        pages.next_back().map_or(Ok(0), |row| layout::seq_of(&row?.0))
    }

    /// The youngest crawl with this id, alias or name.
    pub(crate) fn row_called(&self, text: &str) -> Result<Option<CrawlRow>, StoreError> {
        let alias = text.strip_prefix("crawl_").and_then(|number| number.parse().ok()).map(CrawlNo);
        let by_alias = match alias.filter(|no| no.to_string() == text) {
            Some(no) => self.row(no)?,
            None => None,
        };
        let called = layout::called_key(text);
        let key_bytes = called.len() + size_of::<u32>();
        for row in self.rows().prefix(Table::Names, called).rev() {
            let key = row?.0;
            // Others have a longer name that begins so.
            if key.len() != key_bytes {
                continue;
            }
            let no = layout::crawl_of(&key)?;
            if by_alias.as_ref().is_some_and(|row| row.crawl.no >= no) {
                break;
            }
            if let Some(row) = self.row(no)? {
                return Ok(Some(row));
            }
        }
        Ok(by_alias)
    }

    /// The youngest crawl of all.
    pub(crate) fn last_row(&self) -> Result<Option<CrawlRow>, StoreError> {
        for row in self.rows().prefix(Table::Crawls, []).rev() {
            let row = decode_row(&row?.1)?;
            if !row.removing {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// The row of a crawl that is not being removed.
    fn row(&self, no: CrawlNo) -> Result<Option<CrawlRow>, StoreError> {
        Ok(crawls::read_row(self.rows(), no)?.filter(|row| !row.removing))
    }
}
