//! Pages: stored, imported, parsed again, replaced.

use telusur_model::{CrawlNo, CrawlStats, IdState, PageRecord, Reason};

use super::Fold;
use crate::layout::{self, UrlRow, encode};
use crate::storage::{Rows, Table};
use crate::{KeptRun, KeptState, LostPageRetry, PageLost, StoreError, Stored};

impl<R: Rows> Fold<'_, R> {
    /// A document that no visit brought. A known page is replaced.
    pub(super) fn import(&mut self, page: PageRecord) -> Result<(), StoreError> {
        let (crawl, key) = (page.crawl, page.key);
        match self.url_row(crawl, key)? {
            None => self.take_unknown(crawl, key),
            Some(UrlRow::Page { seq }) => self.drop_page(crawl, seq)?,
            // A URL of a crawl that is no page yet will have its own answer.
            Some(UrlRow::Queued { .. } | UrlRow::Settled(_)) => return Ok(()),
        }
        self.put_alias(&page);
        self.store_page(page);
        Ok(())
    }

    /// Replaces the record of a page, if it is still there. Its new place tells the followers of the
    /// order of pages, such as the index.
    pub(super) fn read_again(&mut self, page: PageRecord) -> Result<(), StoreError> {
        let crawl = page.crawl;
        let Some(known) = self.page_record(crawl, page.seq)? else { return Ok(()) };
        self.remove_page(crawl, known.seq);
        let seq = self.next_seq();
        count_parse_failure(self.stats(crawl), Some(&known), Some(&page));
        self.put_page(&PageRecord { seq, body: known.body, parsed: known.parsed, ..page });
        Ok(())
    }

    /// Finds the present place of a page by its URL, because steps before are lost. False if it is not stored.
    pub(super) fn find_page(&self, page: &mut PageRecord) -> Result<bool, StoreError> {
        let Some(UrlRow::Page { seq }) = self.url_row(page.crawl, page.key)? else {
            return Ok(false);
        };
        page.seq = seq;
        Ok(true)
    }

    /// A page whose body cannot be read goes. Its record keeps a place in the order of changes, so that
    /// followers hear of it.
    pub(super) fn lose_page(&mut self, lost: PageLost) -> Result<(), StoreError> {
        let PageLost { crawl, url: _, key, again } = lost;
        let Some(UrlRow::Page { seq }) = self.url_row(crawl, key)? else { return Ok(()) };
        let Some(page) = self.page_record(crawl, seq)? else { return Ok(()) };
        self.drop_page(crawl, seq)?;
        let seq = self.next_seq();
        let host = page.url.host();
        let record = PageRecord { seq, body: None, parsed: None, ..page };
        self.batch.insert(Table::Lost, layout::page_key(crawl, seq), encode(&record));
        self.batch.insert(Table::Order, layout::order_key(seq), layout::page_entry(crawl));
        if again != LostPageRetry::Never {
            self.update_host(crawl, &host, |row| row.pages = row.pages.saturating_sub(1));
        }
        match again {
            LostPageRetry::Queue(visit) => self.queue_again(*visit, Reason::BodyLost),
            LostPageRetry::Id { walk, position } => {
                let state = KeptState { state: IdState::Hole, why: None };
                self.load_runs(crawl, walk)?;
                self.write_run(crawl, walk, KeptRun { first: position, last: position, state });
                self.forget_url(crawl, key);
            }
            LostPageRetry::Never => self.forget_url(crawl, key),
        }
        Ok(())
    }

    /// Takes a page out that is about to be replaced.
    fn drop_page(&mut self, crawl: CrawlNo, seq: u64) -> Result<(), StoreError> {
        let Some(page) = self.page_record(crawl, seq)? else { return Ok(()) };
        self.remove_page(crawl, seq);
        let stats = self.stats(crawl);
        stats.pages -= 1;
        stats.ok -= u64::from(page.is_ok());
        count_parse_failure(stats, Some(&page), None);
        stats.bytes -= page.bytes;
        stats.wire_bytes -= page.wire_bytes;
        let counters = [stats.statuses.get_mut(&page.status), stats.depths.get_mut(&page.depth)];
        for count in counters.into_iter().flatten() {
            *count -= 1;
        }
        Ok(())
    }

    pub(super) fn store_page(&mut self, page: PageRecord) {
        let page = PageRecord { seq: self.next_seq(), ..page };
        let stats = self.stats(page.crawl);
        stats.pages += 1;
        stats.ok += u64::from(page.is_ok());
        count_parse_failure(stats, None, Some(&page));
        stats.bytes += page.bytes;
        stats.wire_bytes += page.wire_bytes;
        *stats.statuses.entry(page.status).or_default() += 1;
        *stats.depths.entry(page.depth).or_default() += 1;
        if let Some(change) = page.change {
            *stats.changes.entry(change).or_default() += 1;
        }
        self.put_page(&page);
        self.effects.stored.push(Stored { seq: page.seq, url: page.url });
    }

    fn remove_page(&mut self, crawl: CrawlNo, seq: u64) {
        self.batch.remove(Table::Pages, layout::page_key(crawl, seq));
        self.batch.remove(Table::Order, layout::order_key(seq));
    }

    fn put_page(&mut self, page: &PageRecord) {
        let PageRecord { seq, crawl, key, .. } = *page;
        self.put_url(crawl, key, &UrlRow::Page { seq });
        self.batch.insert(Table::Pages, layout::page_key(crawl, seq), encode(page));
        self.batch.insert(Table::Order, layout::order_key(seq), layout::page_entry(crawl));
    }
}

/// Counts a page that could not be parsed, in the place of another one or of none. Error pages are
/// counted as such.
fn count_parse_failure(
    stats: &mut CrawlStats,
    before: Option<&PageRecord>,
    now: Option<&PageRecord>,
) {
    let has_failed = |page: &PageRecord| page.is_ok() && page.parse_failed.is_some();
    match (before.is_some_and(has_failed), now.is_some_and(has_failed)) {
        (false, true) => *stats.failures.entry(Reason::ParseFailed).or_default() += 1,
        (true, false) => {
            // Pages of older directories were not counted.
            if let Some(count) = stats.failures.get_mut(&Reason::ParseFailed) {
                *count = count.saturating_sub(1);
            }
            stats.failures.retain(|_, count| *count > 0);
        }
        (false, false) | (true, true) => {}
    }
}
