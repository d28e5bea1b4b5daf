//! Pages and their bodies.

use telusur_model::{BlobRef, Crawl, CrawlNo, Keep, PageRecord, ParsedPage, RawPage, Timestamp};
use telusur_store::{Body, Packed, PageStore, StoreError};

use crate::rows::{self, decode};
use crate::warc::{self, Kept};
use crate::{EmbeddedStore, engine_error, segment};

impl PageStore for EmbeddedStore {
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
        let kept = Kept {
            crawl,
            at,
            url: page.url.as_str(),
            answer: keeps_body.then_some(page),
            extract: json.as_deref(),
        };
        Packed { blob: warc::pack(&kept), has_body: keeps_body, has_extract: keeps_extract }
    }

    fn page(&self, crawl: CrawlNo, seq: u64) -> Result<Option<PageRecord>, StoreError> {
        self.page_record(crawl, seq)
    }

    fn pages_after(
        &self,
        crawl: CrawlNo,
        seq: u64,
        max: usize,
    ) -> Result<Vec<PageRecord>, StoreError> {
        let start = rows::page_key(crawl, seq.saturating_add(1));
        let end = rows::page_key(crawl, u64::MAX);
        self.keyspaces
            .pages
            .range(start..=end)
            .take(max)
            .map(|row| decode(&row.value().map_err(engine_error)?, "pages"))
            .collect()
    }

    fn body(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Body, StoreError> {
        warc::unpack_answer(&self.segments.read(crawl, blob)?)
            .map_err(|error| at(crawl, blob, error))
    }

    fn parsed(&self, crawl: CrawlNo, blob: BlobRef) -> Result<ParsedPage, StoreError> {
        let bytes = self.segments.read(crawl, blob)?;
        let json = warc::unpack_extract(&bytes).map_err(|error| at(crawl, blob, error))?;
        serde_json::from_slice(&json)
            .map_err(|error| StoreError::Damaged(format!("an extract cannot be read: {error}")))
    }
}

impl EmbeddedStore {
    pub(crate) fn page_record(
        &self,
        crawl: CrawlNo,
        seq: u64,
    ) -> Result<Option<PageRecord>, StoreError> {
        let bytes = self.keyspaces.pages.get(rows::page_key(crawl, seq)).map_err(engine_error)?;
        bytes.map(|bytes| decode(&bytes, "pages")).transpose()
    }
}

/// Names the place of the damage.
fn at(crawl: CrawlNo, blob: BlobRef, error: StoreError) -> StoreError {
    match error {
        StoreError::Damaged(what) => {
            StoreError::Damaged(format!("{}: {what}", segment::place(crawl, blob)))
        }
        other => other,
    }
}
