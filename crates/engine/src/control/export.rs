//! Every URL of a crawl that got an answer, one line each.

use serde::{Deserialize, Serialize};
use telusur_ledger::{Store, StoreError, UrlState};
use telusur_model::{Crawl, PageContent, PageRecord, PageUrl, Via};

use super::handle::Control;
use super::operation::{Each, Length, Operation, OperationKind};
use crate::error::RequestError;
use crate::stored_page::{Stored, StoredPages, each_page, parse_failed};

/// Redirects followed to say where a URL ends.
const HOPS_MAX: usize = 32;

/// Every URL of a crawl that got an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportPages {
    /// Which crawl.
    pub crawl: String,
}

/// What is known of one URL of an [`ExportPages`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportItem {
    /// A page, or a redirect.
    Page(Box<ExportLine>),
    /// It cannot be read.
    Damaged(DamagedPage),
}

/// A page whose stored bytes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedPage {
    /// Its URL.
    pub url: String,
    /// What is wrong, and where.
    pub what: String,
}

/// One line of an export: a page, or a URL that redirects to one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportLine {
    /// The URL that was asked for.
    pub url: String,
    /// Where its content is: another URL if it redirects.
    pub final_url: String,
    /// The HTTP status.
    pub status: u16,
    /// The page's title.
    pub title: Option<String>,
    /// The URLs that it links to.
    pub links: Vec<String>,
    /// The page that it was found on.
    pub referrer: Option<String>,
    /// Links away from a start URL.
    pub depth: u16,
    /// When the answer came, in RFC 3339.
    pub fetched_at: String,
    /// The media type.
    pub content_type: Option<String>,
    /// Size of the decoded body.
    pub bytes: u64,
    /// Whether the body was cut at the limit.
    pub truncated: bool,
    /// Attempts that it needed.
    pub attempts: u8,
    /// How long the visit took.
    pub took_ms: u64,
    /// BLAKE3 of the decoded body.
    pub digest: Option<String>,
    /// `<meta name=description>`.
    pub description: Option<String>,
    /// `<meta name=keywords>`.
    pub keywords: Option<String>,
    /// The language of the text, as an ISO 639-1 code where it could be told.
    pub lang: Option<String>,
    /// `<link rel=canonical>`.
    pub canonical: Option<String>,
    /// The main content; `None` where the page is no text, or its body was not kept.
    pub text: Option<String>,
    /// The visible text of `<article>`, else of `<body>`.
    pub visible_text: Option<String>,
    /// The main content as Markdown.
    pub markdown: Option<String>,
}

impl Operation for ExportPages {
    const KIND: OperationKind = OperationKind::ExportPages;
    const LENGTH: Length = Length::Long;
    type Item = ExportItem;
    type Reply = ();

    fn run(&self, control: &Control, each: Each<'_, ExportItem>) -> Result<(), RequestError> {
        Ok(export(&control.pages, &control.find(&self.crawl)?.crawl, each)?)
    }
}

fn export(
    pages: &StoredPages,
    crawl: &Crawl,
    each: Each<'_, ExportItem>,
) -> Result<(), StoreError> {
    let store = pages.store.as_ref();
    let goes_on = each_page(store, crawl.no, |page| {
        let line = match pages.content(&page) {
            Ok(Stored::Read(content)) => {
                ExportItem::Page(Box::new(page_line(page, Some(*content))))
            }
            Ok(Stored::NotKept) => ExportItem::Page(Box::new(page_line(page, None))),
            Ok(Stored::Failed { why }) => ExportItem::Damaged(DamagedPage {
                url: page.url.to_string(),
                what: parse_failed(&why),
            }),
            // One damaged page costs one page.
            Err(StoreError::Damaged(what)) => {
                ExportItem::Damaged(DamagedPage { url: page.url.to_string(), what })
            }
            Err(error) => return Err(error),
        };
        Ok(each(line))
    })?;
    if !goes_on {
        return Ok(());
    }
    let mut failed = None;
    store.settled_urls(crawl.no, &mut |url| {
        let UrlState::Redirected { status, ref to, at } = url.state else { return true };
        let final_url = match final_url(store, crawl, to) {
            Ok(final_url) => final_url,
            Err(error) => {
                failed = Some(error);
                return false;
            }
        };
        each(ExportItem::Page(Box::new(ExportLine {
            url: url.url,
            final_url,
            status,
            title: None,
            links: Vec::new(),
            referrer: url.referrer,
            depth: url.depth,
            fetched_at: at.rfc3339(),
            content_type: None,
            bytes: 0,
            truncated: false,
            attempts: 1,
            took_ms: 0,
            digest: None,
            description: None,
            keywords: None,
            lang: None,
            canonical: None,
            text: None,
            visible_text: None,
            markdown: None,
        })))
    })?;
    failed.map_or(Ok(()), Err)
}

fn page_line(page: PageRecord, content: Option<PageContent>) -> ExportLine {
    let is_text = content.as_ref().is_some_and(|content| !content.charset.is_empty());
    let is_whole = is_text && page.body.is_some();
    let content = content.unwrap_or_default();
    // An id is known by its own address, wherever it was redirected to.
    let asked = page.redirects.first().filter(|_| page.via == Via::Linear).cloned();
    ExportLine {
        url: asked.unwrap_or_else(|| page.url.to_string()),
        final_url: page.url.to_string(),
        status: page.status,
        title: page.title,
        links: content.links.iter().map(|link| link.url.to_string()).collect(),
        referrer: page.referrer,
        depth: page.depth,
        fetched_at: page.fetched_at.rfc3339(),
        content_type: page.content_type,
        bytes: page.bytes,
        truncated: page.truncated,
        attempts: page.attempts,
        took_ms: page.took_ms,
        digest: Some(page.digest.to_string()),
        description: content.description,
        keywords: content.keywords,
        lang: content.language.or(content.language_declared),
        canonical: content.canonical.map(|url| url.to_string()),
        text: is_whole.then_some(content.text),
        visible_text: is_text.then_some(content.visible_text),
        markdown: is_whole.then_some(content.markdown),
    }
}

/// Follows the redirects that the crawl knows of.
pub(super) fn final_url(
    store: &dyn Store,
    crawl: &Crawl,
    first: &str,
) -> Result<String, StoreError> {
    let mut at = first.to_owned();
    for _ in 0..HOPS_MAX {
        let Ok(url) = PageUrl::parse(&at) else { break };
        match store.url(crawl.no, &url)?.map(|known| known.state) {
            Some(UrlState::Redirected { to, .. }) => at = to,
            _ => break,
        }
    }
    Ok(at)
}
