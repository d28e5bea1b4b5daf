//! One stored page with everything that is in it.

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use telusur_ledger::StoreError;
use telusur_model::{Crawl, PageContent, PageRecord, PageUrl};

use super::export::final_url;
use super::handle::{Control, read_url};
use super::operation::{Each, NoItem, Operation, OperationKind};
use crate::error::RequestError;
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

/// A stored page with everything that is in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredPage {
    /// The crawl's id.
    pub crawl: String,
    /// The crawl's alias.
    pub alias: String,
    /// What was recorded when the page came. `parse_failed` is also told if the page breaks the parser now.
    pub record: PageRecord,
    /// The headers that came with it, if its body is kept.
    pub headers: Vec<(String, String)>,
    /// What is in it; `None` if nothing of it is kept, or it cannot be parsed.
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

impl Operation for ReadPage {
    const KIND: OperationKind = OperationKind::ReadPage;
    type Item = NoItem;
    /// `None` if no crawl has it.
    type Reply = Option<Box<StoredPage>>;

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
    let (content, parse_failed) = match pages.content(&record)? {
        Stored::Read(content) => (Some(*content), None),
        Stored::NotKept => (None, None),
        Stored::Failed { why } => (None, Some(why)),
    };
    Ok(StoredPage {
        crawl: crawl.id.to_string(),
        alias: crawl.no.to_string(),
        content,
        record: PageRecord { parse_failed: parse_failed.or(record.parse_failed), ..record },
        headers: answer.map(|answer| answer.headers).unwrap_or_default(),
        body,
    })
}
