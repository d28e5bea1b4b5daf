//! The stored pages of a crawl, and what is in them: read out of its body again, or, where no body is
//! kept, as it was extracted when the page came.

use std::sync::Arc;

use telusur_ledger::{Body, Store, StoreError};
use telusur_model::{CrawlNo, PageContent, PageRecord, ParsedPage, RawPage, Reason};
use telusur_parse_pool::{Parser, PoolError, Reading};

/// Reads stored pages again.
#[derive(Clone)]
pub(crate) struct StoredPages {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) parser: Arc<dyn Parser>,
}

/// What is in a stored page.
#[derive(Debug)]
pub(crate) enum Stored<T> {
    /// This.
    Read(Box<T>),
    /// Nothing of it is kept, or it could not be parsed when it came.
    NotKept,
    /// It breaks the parser now.
    Failed {
        /// How, for people.
        why: String,
    },
}

impl<T> Stored<T> {
    fn of(reading: Result<Reading<T>, PoolError>) -> Result<Self, StoreError> {
        Ok(match reading.map_err(unreadable)? {
            Reading::Read(found) => Self::Read(found),
            Reading::Failed { why } => Self::Failed { why },
        })
    }
}

/// The words for a page that breaks the parser.
pub(crate) fn parse_failed(why: &str) -> String {
    format!("{}: {why}", Reason::ParseFailed)
}

impl StoredPages {
    /// What a crawl goes by in a stored page.
    pub(crate) fn parsed(&self, page: &PageRecord) -> Result<Stored<ParsedPage>, StoreError> {
        if let Some(raw) = self.readable(page)? {
            return Stored::of(self.parser.parse(&raw));
        }
        let Some(blob) = page.parsed else { return Ok(Stored::NotKept) };
        Ok(Stored::Read(Box::new(self.store.parsed(page.crawl, blob)?)))
    }

    /// The answer of a page whose body is kept, unless it has broken the parser before.
    fn readable(&self, page: &PageRecord) -> Result<Option<RawPage>, StoreError> {
        if page.parse_failed.is_some() {
            return Ok(None);
        }
        stored_answer(self.store.as_ref(), page)
    }

    /// What a crawl goes by in an answer.
    pub(crate) fn parse(&self, answer: &RawPage) -> Result<Reading<ParsedPage>, StoreError> {
        self.parser.parse(answer).map_err(unreadable)
    }

    /// Everything that is in a stored page, by the present extractor. Where only an extract is kept, there
    /// are no more kinds of content than it has.
    pub(crate) fn content(&self, page: &PageRecord) -> Result<Stored<PageContent>, StoreError> {
        if let Some(raw) = self.readable(page)? {
            return Stored::of(self.parser.read(&raw));
        }
        let Some(blob) = page.parsed else { return Ok(Stored::NotKept) };
        let content = PageContent::from(self.store.parsed(page.crawl, blob)?);
        Ok(Stored::Read(Box::new(PageContent { bytes: page.bytes, ..content })))
    }
}

/// No page can be read on this machine at present.
pub(crate) fn unreadable(error: PoolError) -> StoreError {
    let source = std::io::Error::other(error);
    StoreError::Io { doing: "read a stored page".to_owned(), source }
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
