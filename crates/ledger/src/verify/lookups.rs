//! Checks the tables that are derived from others: the order of all pages, and the names of crawls.

use telusur_model::CrawlNo;

use super::{Checks, View};
use crate::fold::{decode_row, names_of};
use crate::storage::{Rows, Storage, Table};
use crate::{StoreError, crawls, layout};

impl Checks {
    /// Every place has its page (that every page has its place is checked with the pages), and every
    /// name its crawl. Crawls that are being removed lose both in one batch.
    pub(super) fn lookups<S: Storage>(&mut self, view: &View<'_, S>) -> Result<(), StoreError> {
        for row in view.rows.prefix(Table::Order, []) {
            let (key, value) = row?;
            let (seq, no) = (layout::seq_of(&key)?, layout::crawl_of(&value)?);
            if layout::is_removal(&value) {
                let is_gone = !view.rows.contains(Table::Crawls, layout::crawl_key(no))?;
                self.lookups.look(is_gone, || format!("{no} is removed at {seq}, and is there"));
                continue;
            }
            let is_page = view.rows.contains(Table::Pages, layout::page_key(no, seq))?
                || view.rows.contains(Table::Lost, layout::page_key(no, seq))?;
            self.lookups.look(is_page, || format!("{no} has no page at {seq}, its place has"));
        }
        for row in view.rows.prefix(Table::Crawls, []) {
            // One that cannot be read is named as such.
            let Ok(row) = decode_row(&row?.1) else { continue };
            let crawl = row.crawl;
            for name in names_of(&crawl) {
                let is_found =
                    view.rows.contains(Table::Names, layout::name_key(name, crawl.no))?;
                self.lookups.look(is_found, || format!("{} is not found as {name}", crawl.no));
            }
            self.crawl_number(view, crawl.no)?;
        }
        for row in view.rows.prefix(Table::Names, []) {
            let key = row?.0;
            let no = layout::crawl_of(&key)?;
            let Ok(row) = crawls::read_row(&view.rows, no) else { continue };
            let crawl = row.map(|row| row.crawl);
            let is_name = crawl.is_some_and(|crawl| {
                names_of(&crawl).any(|name| layout::name_key(name, no) == *key)
            });
            self.lookups.look(is_name, || {
                format!("{} is no name of {no}", String::from_utf8_lossy(&key).escape_debug())
            });
        }
        Ok(())
    }

    /// A number beyond the last one given would be given once more.
    fn crawl_number<S: Storage>(
        &mut self,
        view: &View<'_, S>,
        no: CrawlNo,
    ) -> Result<(), StoreError> {
        let last = match view.rows.get(Table::Meta, layout::META_CRAWLS)? {
            Some(bytes) => layout::decode_u64(&bytes, layout::META_CRAWLS)?,
            None => 0,
        };
        self.continues.look(u64::from(no.0) <= last, || {
            format!("{no} is there, the last crawl accepted has number {last}")
        });
        Ok(())
    }
}
