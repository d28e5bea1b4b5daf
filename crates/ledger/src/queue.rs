//! Queues and URLs, read.

use crate::{
    Effects, FrontierStore, KeptRun, NewlyQueued, QueueRange, Step, StoreError, TrapMark,
    UrlRecord, UrlState,
};
use telusur_model::{
    Crawl, CrawlNo, Discovery, Host, HostRow, OriginRow, PageRecord, PageUrl, Timestamp, UrlKey,
    UrlKeyer,
};

use crate::fold;
use crate::layout::{self, QueueRow, UrlRow, decode};
use crate::storage::{Rows, Storage, Table, WriteRows};
use crate::{Ledger, crawls};

impl<S: Storage> Ledger<S> {
    fn host_rows(&self, crawl: CrawlNo) -> impl Iterator<Item = Result<HostRow, StoreError>> {
        let rows = self.rows().prefix(Table::Hosts, layout::crawl_key(crawl));
        rows.map(|row| decode(&row?.1, "hosts"))
    }
}

impl<S: Storage> FrontierStore for Ledger<S> {
    fn hosts(&self, crawl: CrawlNo) -> Result<Vec<HostRow>, StoreError> {
        self.host_rows(crawl).collect()
    }

    fn hosts_asked_since(
        &self,
        crawl: CrawlNo,
        since: Timestamp,
    ) -> Result<Vec<HostRow>, StoreError> {
        let is_meant = |row: &HostRow| row.last_request_at.is_some_and(|at| at >= since);
        self.host_rows(crawl).filter(|row| row.as_ref().map_or(true, is_meant)).collect()
    }

    fn queued(&self, range: QueueRange<'_>) -> Result<Vec<NewlyQueued>, StoreError> {
        let lane = |byte| layout::queue_lane_key(range.crawl, range.host, byte);
        let (first, end) = if range.later { (lane(2), lane(3)) } else { (lane(0), lane(2)) };
        let start = match range.after {
            // The smallest key behind the one named.
            Some(place) => {
                let mut key = layout::queue_key(range.crawl, range.host, place);
                key.push(0);
                key
            }
            None => first,
        };
        let mut queued = Vec::new();
        for row in self.rows().range(Table::Queue, start, Some(end)).take(range.max) {
            let (key, value) = row?;
            let place = layout::place_of(&key)
                .ok_or_else(|| StoreError::Damaged("a key of the queue cannot be read".into()))?;
            let row: QueueRow = decode(&value, "queue")?;
            queued.push(row.into_queued(range.crawl, place));
        }
        Ok(queued)
    }

    fn traps(&self, crawl: CrawlNo) -> Result<Vec<TrapMark>, StoreError> {
        let rows = self.rows().prefix(Table::Traps, layout::crawl_key(crawl));
        rows.map(|row| {
            let (key, value) = row?;
            let shape = key.last_chunk().map(|shape| u64::from_be_bytes(*shape));
            let shape = shape.ok_or_else(|| StoreError::Damaged("a key of traps is cut".into()))?;
            let (run, rule) = decode(&value, "traps")?;
            Ok(TrapMark { shape, run, rule })
        })
        .collect()
    }

    fn has_room_for_left_out(&self, crawl: &Crawl) -> Result<bool, StoreError> {
        let mut memory = self.memory();
        let was_loaded = memory.by_crawl.contains_key(&crawl.no);
        let Some(loaded) = memory.crawl(crawl.no, self.rows())? else { return Ok(false) };
        let fits = fold::any_fits(self.rows(), crawl, loaded);
        if !was_loaded {
            memory.forget(crawl.no);
        }
        fits
    }

    fn commit(&self, step: Step) -> Result<Effects, StoreError> {
        let mut memory = self.memory();
        let written = self.write(&mut memory, step);
        if written.as_ref().is_err_and(StoreError::is_of_rows) {
            self.forget_unwritten(&mut memory)?;
        }
        let effects = written?;
        tracing::trace!(gone = effects.dequeued.len(), "step synced");
        Ok(effects)
    }

    fn drop_known(&self, crawl: CrawlNo, links: &mut Vec<Discovery>) {
        links.retain(|link| !self.recent().contains(crawl, link.key));
    }

    fn url(&self, crawl: CrawlNo, url: &PageUrl) -> Result<Option<UrlRecord>, StoreError> {
        self.url_record(crawl, url, UrlKeyer::key)
    }

    fn sitemap(&self, crawl: CrawlNo, url: &PageUrl) -> Result<Option<UrlRecord>, StoreError> {
        self.url_record(crawl, url, UrlKeyer::sitemap_key)
    }

    fn runs(&self, crawl: CrawlNo, walk: u32) -> Result<Vec<KeptRun>, StoreError> {
        fold::read_runs(self.rows(), crawl, walk)
    }

    fn origin(&self, origin: &str) -> Result<Option<OriginRow>, StoreError> {
        let Ok(url) = PageUrl::parse(origin) else { return Ok(None) };
        let key = layout::origin_key(&url.host(), origin);
        let bytes = self.rows().get(Table::Origins, key)?;
        bytes.map(|bytes| decode(&bytes, "origins")).transpose()
    }

    fn origins_of(&self, host: &Host) -> Result<Vec<OriginRow>, StoreError> {
        self.rows()
            .prefix(Table::Origins, layout::origin_key(host, ""))
            .map(|row| decode(&row?.1, "origins"))
            .collect()
    }

    fn settled_urls_after(
        &self,
        crawl: CrawlNo,
        after: Option<UrlKey>,
        each: &mut dyn FnMut(UrlKey, UrlRecord) -> bool,
    ) -> Result<(), StoreError> {
        let first = match after.map(|after| after.0.checked_add(1)) {
            None => UrlKey(0),
            Some(Some(next)) => UrlKey(next),
            Some(None) => return Ok(()),
        };
        let first = layout::url_key(crawl, first);
        let end = layout::after_crawl(crawl).map(Vec::from);
        for row in self.rows().range(Table::Urls, first.into(), end) {
            let (key, value) = row?;
            if let UrlRow::Settled(record) = decode(&value, "urls")?
                && !each(layout::key_of_url_row(&key)?, *record)
            {
                break;
            }
        }
        Ok(())
    }
}

impl<S: Storage> Ledger<S> {
    fn url_record(
        &self,
        crawl: CrawlNo,
        url: &PageUrl,
        key_of: fn(&UrlKeyer, &PageUrl) -> UrlKey,
    ) -> Result<Option<UrlRecord>, StoreError> {
        // At one instant: a URL may leave the queue between two reads.
        let rows = self.rows().snapshot();
        let row = crawls::read_row(&rows, crawl)?.filter(|row| !row.removing);
        let Some(row) = row else { return Ok(None) };
        let key = key_of(&row.keyer(self.key_seed()), url);
        let bytes = rows.get(Table::Urls, layout::url_key(crawl, key))?;
        let Some(bytes) = bytes else {
            return Ok(self.page_redirected_to(crawl, key)?.map(known_as_page));
        };
        let lost = |what: &str| StoreError::Damaged(format!("{crawl}: {url} has no row in {what}"));
        match decode(&bytes, "urls")? {
            UrlRow::Settled(record) => Ok(Some(*record)),
            UrlRow::Page { seq } => {
                let bytes = rows.get(Table::Pages, layout::page_key(crawl, seq))?;
                let bytes = bytes.ok_or_else(|| lost(Table::Pages.name()))?;
                Ok(Some(known_as_page(decode(&bytes, "pages")?)))
            }
            UrlRow::Queued { place } => {
                let bytes = rows.get(Table::Queue, layout::queue_key(crawl, &url.host(), place))?;
                let bytes = bytes.ok_or_else(|| lost(Table::Queue.name()))?;
                Ok(Some(decode::<QueueRow>(&bytes, "queue")?.into_record(place)))
            }
        }
    }
}

fn known_as_page(page: PageRecord) -> UrlRecord {
    UrlRecord {
        url: page.url.to_string(),
        depth: page.depth,
        via: page.via,
        found_at: page.found_at,
        referrer: page.referrer,
        redirects: page.redirects,
        lastmod: page.lastmod,
        state: UrlState::Page { seq: page.seq },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{crawl, create};
    use crate::in_memory::InMemory;
    use crate::storage::Batch;
    use crate::{CrawlStore, NewCrawl};

    fn remove_all(store: &Ledger<InMemory>, table: Table) {
        let mut batch = Batch::default();
        for row in store.rows().prefix(table, []) {
            batch.remove(table, row.unwrap().0);
        }
        store.rows().commit(batch).unwrap();
    }

    /// It once asked itself again until the stack was used up.
    #[test]
    fn a_queued_url_whose_row_is_lost_is_damaged() {
        let store = Ledger::open(InMemory::default()).unwrap();
        let record = create(&store, &["http://a.test/"]);
        remove_all(&store, Table::Queue);
        let url = PageUrl::parse("http://a.test/").unwrap();
        let known = store.url(record.crawl.no, &url);
        assert!(matches!(known, Err(StoreError::Damaged(_))), "{known:?}");
    }

    /// The rows of a crawl go table by table: queued URLs are known for longer than they are queued.
    #[test]
    fn nothing_is_known_of_a_crawl_that_is_being_removed() {
        let store = Ledger::open(InMemory::default()).unwrap();
        let crawl = crawl(&["http://a.test/"]);
        let crawl = store.create(NewCrawl { crawl, random: 1 }).unwrap().crawl;
        let mut row = crawls::read_row(store.rows(), crawl.no).unwrap().unwrap();
        row.removing = true;
        let mut batch = Batch::default();
        batch.insert(Table::Crawls, layout::crawl_key(crawl.no), fold::encode_row(&row));
        store.rows().commit(batch).unwrap();
        remove_all(&store, Table::Queue);
        let url = PageUrl::parse("http://a.test/").unwrap();
        assert!(store.url(crawl.no, &url).unwrap().is_none());
    }
}
