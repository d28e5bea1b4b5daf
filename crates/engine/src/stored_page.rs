//! The stored pages of a crawl, and what is in them: read out of its body again, or, where no body is kept, as it was
//! extracted when the page came.

use telusur_model::{CrawlNo, PageContent, PageRecord, PageUrl, ParsedPage, RawPage};
use telusur_parse::{ContentLimits, ParseLimits};
use telusur_store::{Body, Store, StoreError, UrlState};

/// What a crawl goes by in a stored page; `None` if nothing of it is kept.
pub(crate) fn stored_page(
    store: &dyn Store,
    crawl: CrawlNo,
    page: &PageRecord,
) -> Result<Option<ParsedPage>, StoreError> {
    if let Some(blob) = page.body {
        let raw = raw_page(page, store.body(crawl, blob)?);
        return Ok(Some(telusur_parse::parse(&raw, &ParseLimits::default())));
    }
    page.parsed.map(|blob| store.parsed(crawl, blob)).transpose()
}

/// Everything that is in a stored page, by the present extractor; `None` if nothing of it is kept.
/// Where only an extract is kept, there are no more kinds of content than it has.
pub(crate) fn stored_content(
    store: &dyn Store,
    page: &PageRecord,
) -> Result<Option<PageContent>, StoreError> {
    if let Some(raw) = stored_answer(store, page)? {
        return Ok(Some(telusur_parse::read_page(&raw, &ContentLimits::default())));
    }
    let Some(blob) = page.parsed else { return Ok(None) };
    let content = PageContent::from(store.parsed(page.crawl, blob)?);
    Ok(Some(PageContent { bytes: page.bytes, ..content }))
}

/// The page that a crawl stored for a URL.
pub(crate) fn earlier_page(
    store: &dyn Store,
    crawl: CrawlNo,
    url: &PageUrl,
) -> Result<Option<PageRecord>, StoreError> {
    match store.url(crawl, url)?.map(|known| known.state) {
        Some(UrlState::Page { seq }) => store.page(crawl, seq),
        _ => Ok(None),
    }
}

/// The answer to an earlier visit as it came; `None` if its body was not kept.
pub(crate) fn stored_answer(
    store: &dyn Store,
    page: &PageRecord,
) -> Result<Option<RawPage>, StoreError> {
    let Some(blob) = page.body else { return Ok(None) };
    Ok(Some(raw_page(page, store.body(page.crawl, blob)?)))
}

/// Pages read at once.
const BATCH: usize = 256;

/// Calls `each` with every page of a crawl, oldest first, until it returns false. False if it did.
pub(crate) fn each_page(
    store: &dyn Store,
    crawl: CrawlNo,
    mut each: impl FnMut(PageRecord) -> Result<bool, StoreError>,
) -> Result<bool, StoreError> {
    let mut seq = 0;
    loop {
        let pages = store.pages_after(crawl, seq, BATCH)?;
        let Some(last) = pages.last() else { return Ok(true) };
        seq = last.seq;
        for page in pages {
            if !each(page)? {
                return Ok(false);
            }
        }
    }
}

/// The answer as it came, from what is kept of it.
fn raw_page(page: &PageRecord, body: Body) -> RawPage {
    let fields = body.head.lines().skip(1).filter_map(|line| line.split_once(": "));
    RawPage {
        url: page.url.clone(),
        status: page.status,
        headers: fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        body: body.bytes.into(),
        truncated: page.truncated,
        wire_bytes: page.wire_bytes,
    }
}
