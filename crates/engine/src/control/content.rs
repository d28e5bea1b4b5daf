//! What is in stored pages: everything in one of them, or one kind of content in all of them.

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use telusur_ledger::StoreError;
use telusur_model::{ContentKind, Crawl, PageContent, PageRecord, PageUrl};

use super::Reply;
use super::export::final_url;
use super::handle::Emit;
use crate::stored_page::{StoredPages, each_page, stored_answer};

/// A stored page with everything that is in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredPage {
    /// The crawl's id.
    pub crawl: String,
    /// The crawl's alias.
    pub alias: String,
    /// What was recorded when the page came.
    pub record: PageRecord,
    /// The headers that came with it, if its body is kept.
    pub headers: Vec<(String, String)>,
    /// What is in it; `None` if nothing of it is kept.
    pub content: Option<PageContent>,
    /// Its body in base 64, if that is kept and wanted.
    pub body: Option<String>,
}

impl StoredPage {
    /// The body as it was decoded from its content coding.
    pub fn body_bytes(&self) -> Option<Vec<u8>> {
        BASE64.decode(self.body.as_deref()?.as_bytes()).ok()
    }
}

/// What a page has of one kind of content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundContent {
    /// The crawl's id.
    pub crawl: String,
    /// The page's URL.
    pub page: String,
    /// The content, of the kind that was asked for.
    pub content: PageContent,
}

/// The page of a crawl for this URL, or for the one that it redirects to.
pub(super) fn stored(
    pages: &StoredPages,
    crawl: &Crawl,
    url: &PageUrl,
    with_body: bool,
) -> Result<Option<StoredPage>, StoreError> {
    let store = pages.store.as_ref();
    let Ok(url) = PageUrl::parse(&final_url(store, crawl, url.as_str())?) else { return Ok(None) };
    let record = store.page_of(crawl.no, &url)?;
    record.map(|record| with_content(pages, crawl, record, with_body)).transpose()
}

/// A page of a crawl with everything that is in it.
pub(super) fn with_content(
    pages: &StoredPages,
    crawl: &Crawl,
    record: PageRecord,
    with_body: bool,
) -> Result<StoredPage, StoreError> {
    let answer = stored_answer(pages.store.as_ref(), &record)?;
    let body = answer.as_ref().filter(|_| with_body).map(|answer| BASE64.encode(&answer.body));
    Ok(StoredPage {
        crawl: crawl.id.to_string(),
        alias: crawl.no.to_string(),
        content: pages.content(&record)?,
        record,
        headers: answer.map(|answer| answer.headers).unwrap_or_default(),
        body,
    })
}

/// The content of one kind, page by page, oldest first.
pub(super) fn contents(
    pages: &StoredPages,
    crawl: &Crawl,
    kind: ContentKind,
    emit: Emit<'_>,
) -> Result<(), StoreError> {
    each_page(pages.store.as_ref(), crawl.no, |page| {
        let line = match pages.content(&page) {
            Ok(None) => return Ok(true),
            Ok(Some(content)) => Reply::Content(Box::new(FoundContent {
                crawl: crawl.id.to_string(),
                page: page.url.to_string(),
                content: content.only(kind),
            })),
            // One damaged page costs one page.
            Err(StoreError::Damaged(what)) => Reply::Damaged { url: page.url.to_string(), what },
            Err(error) => return Err(error),
        };
        Ok(emit(line))
    })?;
    Ok(())
}
