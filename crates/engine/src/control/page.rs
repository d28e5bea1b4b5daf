//! One stored page with everything that is in it.

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use telusur_ledger::StoreError;
use telusur_model::{Crawl, PageRecord, PageUrl};

use super::export::final_url;
use super::handle::{Control, read_url};
use super::operation::{Each, NoItem, Operation, OperationKind};
use crate::error::RequestError;
use crate::json::{PageView, StoredPageView};
use crate::stored_page::{Stored, StoredPages, stored_answer};

/// The stored page of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadPage {
    /// Its URL, or one that redirects to it.
    pub url: String,
    /// In this crawl only; else in the youngest that has it.
    pub crawl: Option<String>,
    /// Whether its body is wanted as well.
    pub with_body: bool,
}

impl Operation for ReadPage {
    const KIND: OperationKind = OperationKind::ReadPage;
    type Item = NoItem;
    /// `None` if no crawl has it.
    type Reply = Option<Box<StoredPageView>>;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<Self::Reply, RequestError> {
        let url = read_url(&self.url)?;
        for record in control.meant(self.crawl.as_deref())?.iter().rev() {
            if let Some(page) = stored(&control.pages, &record.crawl, &url, self.with_body)? {
                return Ok(Some(Box::new(page)));
            }
        }
        Ok(None)
    }
}

/// The page of a crawl for this URL, or for the one that it redirects to.
fn stored(
    pages: &StoredPages,
    crawl: &Crawl,
    url: &PageUrl,
    with_body: bool,
) -> Result<Option<StoredPageView>, StoreError> {
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
) -> Result<StoredPageView, StoreError> {
    let answer = stored_answer(pages.store.as_ref(), &record)?;
    let body = answer.as_ref().filter(|_| with_body).map(|answer| BASE64.encode(&answer.body));
    let (content, parse_failed) = match pages.content(&record)? {
        Stored::Read(content) => (Some(content), None),
        Stored::NotKept => (None, None),
        Stored::Failed { why } => (None, Some(why)),
    };
    // What breaks the parser now is said as well.
    let record = PageRecord { parse_failed: parse_failed.or(record.parse_failed), ..record };
    Ok(StoredPageView {
        crawl: crawl.id.to_string(),
        alias: crawl.no.to_string(),
        redirects: record.redirects.clone(),
        headers: answer.map(|answer| answer.headers).unwrap_or_default(),
        digest: record.digest.to_string(),
        has_body: record.body.is_some(),
        content,
        body,
        page: page_view(record),
    })
}

/// A stored page as lists show it.
pub fn page_view(page: PageRecord) -> PageView {
    let asks = page.directives.said;
    PageView {
        id: format!("p_{}_{}", page.crawl.0, page.seq),
        seq: page.seq,
        url: page.url.to_string(),
        status: page.status,
        title: page.title,
        depth: page.depth,
        referrer: page.referrer,
        content_type: page.content_type,
        bytes: page.bytes,
        took_ms: page.took_ms,
        fetched_at: page.fetched_at.rfc3339(),
        link_count: page.link_count,
        attempts: page.attempts,
        truncated: page.truncated,
        change: page.change.map(|change| change.word().to_owned()),
        asks: (!asks.is_empty()).then_some(asks),
        lastmod: page.lastmod.map(|at| at.rfc3339()),
        soft_404: page.soft_404,
        parse_failed: page.parse_failed,
    }
}
