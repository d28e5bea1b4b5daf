//! Pages and their bodies.

use crate::{Body, Packed, PageStore, StoreChange, StoreError};
use telusur_model::{
    BlobRef, Crawl, CrawlNo, Keep, PageRecord, PageUrl, ParsedPage, RawPage, Timestamp,
};

use crate::Ledger;
use crate::layout::{self, decode};
use crate::memory::committed_end;
use crate::storage::{Bodies, KeptParts, Rows, Storage, Table};

impl<S: Storage> PageStore for Ledger<S> {
    fn pack(
        &self,
        crawl: &Crawl,
        page: &RawPage,
        parsed: Option<&ParsedPage>,
        at: Timestamp,
    ) -> Packed {
        let is_parsed = parsed.is_some_and(|parsed| !parsed.charset.is_empty());
        let keeps_body = match crawl.keep {
            Keep::None => false,
            Keep::Text => parsed.is_none(),
            Keep::Html => is_parsed || parsed.is_none(),
            Keep::Raw => true,
        };
        // Where the body is kept, everything can be read out of it again: an extract beside it would
        // take a fifth more space and a tenth of all CPU time.
        let keeps_extract = is_parsed && crawl.keep == Keep::Text;
        let json = parsed.filter(|_| keeps_extract).map(|parsed| {
            serde_json::to_vec(parsed).expect("a parsed page is plain text and numbers")
        });
        let kept = KeptParts {
            crawl,
            at,
            url: page.url.as_str(),
            answer: keeps_body.then_some(page),
            extract: json.as_deref(),
        };
        Packed { blob: self.bodies().pack(&kept), has_body: keeps_body, has_extract: keeps_extract }
    }

    fn page(&self, crawl: CrawlNo, seq: u64) -> Result<Option<PageRecord>, StoreError> {
        self.page_record(crawl, seq)
    }

    fn page_of(&self, crawl: CrawlNo, url: &PageUrl) -> Result<Option<PageRecord>, StoreError> {
        self.page_of_url(crawl, url)
    }

    fn changes_after(&self, seq: u64, max: usize) -> Result<Vec<StoreChange>, StoreError> {
        self.changes_in_order(seq, max)
    }

    fn last_change(&self) -> Result<u64, StoreError> {
        self.last_change_place()
    }

    fn changes_count(&self, after: u64, upto: u64) -> Result<u64, StoreError> {
        self.changes_between(after, upto)
    }

    fn last_place(&self, crawl: CrawlNo) -> Result<u64, StoreError> {
        Ledger::last_place(self, crawl)
    }

    fn pages_after(
        &self,
        crawl: CrawlNo,
        seq: u64,
        max: usize,
    ) -> Result<Vec<PageRecord>, StoreError> {
        let start = layout::page_key(crawl, seq.saturating_add(1));
        let end = layout::page_key(crawl, u64::MAX);
        let rows = self.rows().range(Table::Pages, start.into(), Some(end.into()));
        rows.take(max).map(|row| decode(&row?.1, "pages")).collect()
    }

    fn bodies_reach(&self, crawl: CrawlNo) -> Result<bool, StoreError> {
        self.bodies().reach(crawl, committed_end(self.rows(), crawl)?)
    }

    fn body(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Body, StoreError> {
        self.bodies().answer(crawl, blob)
    }

    fn parsed(&self, crawl: CrawlNo, blob: BlobRef) -> Result<ParsedPage, StoreError> {
        let json = self.bodies().extract(crawl, blob)?;
        serde_json::from_slice(&json)
            .map_err(|error| StoreError::Damaged(format!("an extract cannot be read: {error}")))
    }
}

impl<S: Storage> Ledger<S> {
    pub(crate) fn page_record(
        &self,
        crawl: CrawlNo,
        seq: u64,
    ) -> Result<Option<PageRecord>, StoreError> {
        let bytes = self.rows().get(Table::Pages, layout::page_key(crawl, seq))?;
        bytes.map(|bytes| decode(&bytes, "pages")).transpose()
    }
}
