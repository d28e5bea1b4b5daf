//! Reads the stored bodies of a crawl again, without asking anybody: what the present extractor finds
//! in them replaces what was recorded, and links that were overlooked are queued.

use serde::{Deserialize, Serialize};
use telusur_fetch::robots::directives;
use telusur_ledger::{CrawlRecord, Event, LinkSource, Step, StoreError};
use telusur_model::{PageRecord, ParsedPage, Seeds, Timestamp};
use telusur_parse_pool::Reading;

use super::DamagedPage;
use super::handle::Control;
use super::operation::{Each, Length, Operation, OperationKind};
use crate::commit_stage::expect_space;
use crate::context::CrawlContext;
use crate::error::RequestError;
use crate::stored_page::{StoredPages, stored_answer};
use crate::visit_ending::{discoveries, metas};

/// Pages in one step. Each may bring ten thousand links.
const BATCH: usize = 64;

/// Every stored body of a crawl is read again by the present extractor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReparseCrawl {
    /// Which crawl.
    pub crawl: String,
    /// Nothing is written when less space than this is left.
    pub free_bytes_min: u64,
}

/// What is worth telling of one page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReparseItem {
    /// It reads differently now.
    Reread(Box<RereadPage>),
    /// It cannot be read.
    Damaged(DamagedPage),
}

impl Operation for ReparseCrawl {
    const KIND: OperationKind = OperationKind::ReparseCrawl;
    const MAY_WRITE: bool = true;
    const LENGTH: Length = Length::Long;
    type Item = ReparseItem;
    type Reply = RereadTotal;

    fn run(
        &self,
        control: &Control,
        each: Each<'_, ReparseItem>,
    ) -> Result<RereadTotal, RequestError> {
        let record = control.find(&self.crawl)?;
        let no = record.crawl.no;
        if control.is_live(no) {
            return Err(RequestError::WrongState(format!("{no} is running; stop it first")));
        }
        let total = reparse(&control.pages, record, (control.wall)(), self.free_bytes_min, each)?;
        control.wake_followers();
        Ok(total)
    }
}

/// A page that reads differently now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RereadPage {
    /// Its URL.
    pub url: String,
    /// What is different.
    pub changes: Vec<RereadChange>,
}

/// One thing that is recorded of a page and reads differently now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RereadChange {
    /// `title`, `links`, `asks` or `parse_failed`.
    pub what: String,
    /// What was recorded.
    pub before: String,
    /// What is recorded from now on.
    pub now: String,
}

/// What came of reading a crawl again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RereadTotal {
    /// Pages that were read.
    pub pages: u64,
    /// Pages that read differently now.
    pub changed: u64,
    /// Pages whose body was not kept.
    pub not_kept: u64,
    /// URLs that were not known, or not to be followed, and wait to be fetched now.
    pub queued: u64,
}

/// Reads a crawl again. No process may be working on it.
fn reparse(
    stored: &StoredPages,
    record: CrawlRecord,
    at: Timestamp,
    free_bytes_min: u64,
    each: Each<'_, ReparseItem>,
) -> Result<RereadTotal, RequestError> {
    let (store, no) = (stored.store.as_ref(), record.crawl.no);
    let context = CrawlContext::new(record.crawl, record.key_seed)?;
    let mut total = RereadTotal::default();
    // Pages that changed get a new place behind all others, and are not read a second time.
    let last_seq = store.last_place(no)?;
    let mut seq = 0;
    loop {
        let mut pages = store.pages_after(no, seq, BATCH)?;
        pages.retain(|page| page.seq <= last_seq);
        let Some(last) = pages.last() else { break };
        seq = last.seq;
        expect_space(store, free_bytes_min)?;
        let mut step = Step::default();
        for page in pages {
            let line = match reread(stored, &context, page.clone(), at, &mut step) {
                Ok(Some(changes)) => {
                    total.pages += 1;
                    total.changed += u64::from(!changes.is_empty());
                    let reread = RereadPage { url: page.url.to_string(), changes };
                    (!reread.changes.is_empty()).then(|| ReparseItem::Reread(Box::new(reread)))
                }
                Ok(None) => {
                    total.not_kept += 1;
                    None
                }
                // One damaged page costs one page.
                Err(StoreError::Damaged(what)) => {
                    let url = page.url.to_string();
                    Some(ReparseItem::Damaged(DamagedPage { url, what }))
                }
                Err(error) => return Err(error.into()),
            };
            if !line.is_none_or(&mut *each) {
                return Ok(total);
            }
        }
        if !step.is_empty() {
            total.queued += store.commit(step)?.queued.len() as u64;
        }
    }
    Ok(total)
}

/// Reads one page again and adds what is new to a step. Gives what changed; `None` if its body was
/// not kept.
fn reread(
    stored: &StoredPages,
    context: &CrawlContext,
    page: PageRecord,
    at: Timestamp,
    step: &mut Step,
) -> Result<Option<Vec<RereadChange>>, StoreError> {
    let Some(raw) = stored_answer(stored.store.as_ref(), &page)? else { return Ok(None) };
    let (parsed, parse_failed) = match stored.parse(&raw)? {
        Reading::Read(parsed) => (*parsed, None),
        Reading::Failed { why } => (ParsedPage::default(), Some(why)),
    };
    let now = PageRecord {
        parse_failed,
        title: parsed.title.clone(),
        link_count: u32::try_from(parsed.links.len()).unwrap_or(u32::MAX),
        directives: directives(&raw, metas(&parsed), &context.product_token),
        ..page.clone()
    };
    // Only a crawl that follows links takes new ones in, and not from error pages.
    if now.is_ok() && matches!(context.crawl.seeds, Seeds::Links(_)) {
        // How many hops led out of the scope to this page is not recorded: it may have been all.
        let is_outside = context.scope.is_outside(&page.url);
        let hops_outside = if is_outside { context.crawl.scope.extra_hops } else { 0 };
        let mut links = discoveries(context, now.directives.nofollow, &parsed);
        stored.store.drop_known(page.crawl, &mut links);
        let source = LinkSource {
            crawl: page.crawl,
            at,
            depth: page.depth,
            hops_outside,
            url: page.url.to_string(),
            referrer: None,
            redirects: Vec::new(),
        };
        step.extend(source.judge_to_events(links, &context.scope));
    }
    let changes = changes(&page, &now);
    if !changes.is_empty() {
        step.push(Event::PageReadAgain(Box::new(now)));
    }
    Ok(Some(changes))
}

fn changes(before: &PageRecord, now: &PageRecord) -> Vec<RereadChange> {
    let title = |page: &PageRecord| page.title.clone().unwrap_or_default();
    let links = |page: &PageRecord| page.link_count.to_string();
    let asks = |page: &PageRecord| page.directives.said.clone();
    let failed = |page: &PageRecord| page.parse_failed.clone().unwrap_or_default();
    let all = [
        ("title", title(before), title(now)),
        ("links", links(before), links(now)),
        ("asks", asks(before), asks(now)),
        ("parse_failed", failed(before), failed(now)),
    ];
    all.into_iter()
        .filter(|(_, before, now)| before != now)
        .map(|(what, before, now)| RereadChange { what: what.to_owned(), before, now })
        .collect()
}
