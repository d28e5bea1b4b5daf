//! Where followers get the changes that they have not seen: out of the store, with the content of pages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use telusur_fetch::robots::{Rules, product_token};
use telusur_ledger::{CrawlRecord, Store, StoreChange, StoreError};
use telusur_model::{
    CrawlNo, Findings, PageRecord, ParsedPage, RawPage, RobotsAnswer, SearchPage, UrlKeyer,
};
use telusur_parse_pool::{Parser, Reading, VisibleText};

use crate::commit_stage::FREE_BYTES_LEAST;
use crate::followers::{
    ChangeBatch, ChangeSource, FollowError, FollowedChange, FollowedPage, PageContent,
};
use crate::fresh_pages::FreshPages;
use crate::stored_page::{parse_failed, stored_answer, unreadable};

/// Pages that are read together: a child is woken once for all of them.
const READ_TOGETHER: usize = 16;
/// Origins whose rights are remembered, each once for every name that crawls go by.
const ORIGINS_MAX: usize = 10_000;
/// Crawls of which is remembered how they read their pages.
const CRAWLS_MAX: usize = 10_000;

/// The pages of a store that this process owns.
pub(crate) struct StoredSource {
    store: Arc<dyn Store>,
    parser: Arc<dyn Parser>,
    /// Where a running crawl puts pages that it has read.
    fresh_pages: Arc<FreshPages>,
    /// The words about rights in robots.txt files that were read lately.
    rights: Mutex<HashMap<RobotsReader, Vec<String>>>,
    crawls: Mutex<HashMap<CrawlNo, OfCrawl>>,
    /// With less space left nothing is derived from pages.
    free_bytes_min: u64,
}

/// Who reads which robots.txt: a file may say one thing to one crawler and another to the next.
#[derive(PartialEq, Eq, Hash)]
struct RobotsReader {
    origin: String,
    product_token: Arc<str>,
}

/// What a crawl's settings mean for its pages.
#[derive(Clone)]
struct OfCrawl {
    keyer: UrlKeyer,
    /// The name that robots.txt files know the crawl by.
    product_token: Arc<str>,
}

impl ChangeSource for StoredSource {
    fn next(&self, after: u64, max: usize) -> Result<ChangeBatch, FollowError> {
        let stored = self.store.changes_after(after, max)?;
        self.expect_space(&stored)?;
        let upto = stored.last().map_or(after, StoreChange::seq);
        let pages: Vec<&PageRecord> = stored.iter().filter_map(StoreChange::page).collect();
        let mut contents = Vec::with_capacity(pages.len());
        for together in pages.chunks(READ_TOGETHER) {
            contents.extend(self.contents(together)?);
        }
        let mut contents = contents.into_iter();
        let changes = stored.into_iter().map(|change| match change {
            StoreChange::Page(record) => {
                let content = contents.next().flatten();
                FollowedChange::Page(Box::new(FollowedPage { record: *record, content }))
            }
            // A page without content is not to be found.
            StoreChange::Lost(record) => {
                FollowedChange::Page(Box::new(FollowedPage { record: *record, content: None }))
            }
            StoreChange::Removed { seq, crawl } => FollowedChange::Removed { seq, crawl },
        });
        Ok(ChangeBatch { changes: changes.collect(), upto })
    }
}

impl StoredSource {
    /// Nothing is derived from pages on a disk that is nearly full: what is left is for the store itself.
    /// Removals are followed all the same.
    fn expect_space(&self, changes: &[StoreChange]) -> Result<(), StoreError> {
        if changes.iter().all(|change| change.page().is_none()) {
            return Ok(());
        }
        match self.store.free_bytes()? {
            Some(free) if free < self.free_bytes_min => {
                let least = self.free_bytes_min / 1000;
                let what = format!("index pages: {} kB free, {least} kB are needed", free / 1000);
                Err(StoreError::DiskFull(what))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The pages of this store, read by this parser.
    pub(crate) fn new(store: Arc<dyn Store>, parser: Arc<dyn Parser>) -> Self {
        Self {
            store,
            parser,
            fresh_pages: Arc::default(),
            rights: Mutex::default(),
            crawls: Mutex::default(),
            free_bytes_min: FREE_BYTES_LEAST / 2,
        }
    }

    /// The same pages, as long as this much space is left.
    pub(crate) fn leaving(self, free_bytes_min: u64) -> Self {
        Self { free_bytes_min: self.free_bytes_min.max(free_bytes_min), ..self }
    }

    /// The same pages, beside a crawl that caches those that it has just parsed.
    pub(crate) fn with_fresh_pages(self, fresh_pages: Arc<FreshPages>) -> Self {
        Self { fresh_pages, ..self }
    }

    /// What is in pages; `None` for those that are not to be found.
    pub(crate) fn contents(
        &self,
        pages: &[&PageRecord],
    ) -> Result<Vec<Option<PageContent>>, StoreError> {
        let mut read = self.read(pages)?.into_iter();
        let mut content = |page: &&PageRecord| {
            let Some(read) = read.next().flatten() else { return Ok(None) };
            let OfCrawl { keyer, product_token } = self.of_crawl(page.crawl)?;
            let rights = self.rights_of(page, product_token)?;
            Ok(Some(PageContent { page: read, rights, keyer }))
        };
        pages.iter().map(&mut content).collect()
    }

    fn of_crawl(&self, crawl: CrawlNo) -> Result<OfCrawl, StoreError> {
        let mut known = self.crawls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_crawl) = known.get(&crawl) {
            return Ok(of_crawl.clone());
        }
        let record = self.store.crawl(crawl)?;
        let agent = record.as_ref().map_or("", |record| &record.crawl.fetch.user_agent);
        let of_removed = || UrlKeyer { seed: self.store.key_seed(), drop_tracking: true };
        let of_crawl = OfCrawl {
            keyer: record.as_ref().map_or_else(of_removed, CrawlRecord::keyer),
            product_token: product_token(agent).into(),
        };
        if known.len() >= CRAWLS_MAX {
            known.clear();
        }
        known.insert(crawl, of_crawl.clone());
        Ok(of_crawl)
    }

    /// What is in pages, as far as the index wants it; `None` for those that are not to be found.
    fn read(&self, pages: &[&PageRecord]) -> Result<Vec<Option<SearchPage>>, StoreError> {
        let kept = pages.iter().map(|page| self.kept(page)).collect::<Result<Vec<_>, _>>()?;
        let answers: Vec<&RawPage> = kept.iter().filter_map(Kept::answer).collect();
        let readings = self.parser.read_for_search(&answers, VisibleText::Left);
        let mut readings = readings.map_err(unreadable)?.into_iter();
        let mut read = |kept| match kept {
            Kept::Nothing => None,
            Kept::Read(page) => Some(*page),
            Kept::Answer(answer) => match readings.next()?.reading {
                Reading::Read(page) => Some(*page),
                Reading::Failed { why } => {
                    let why = parse_failed(&why);
                    tracing::warn!(url = %answer.url, why, "a page cannot be indexed");
                    None
                }
            },
        };
        // What has no charset is not text.
        let is_text = |page: &SearchPage| !page.parsed.charset.is_empty();
        Ok(kept.into_iter().map(|kept| read(kept).filter(is_text)).collect())
    }

    /// What is kept of a page that may be found.
    fn kept(&self, page: &PageRecord) -> Result<Kept, StoreError> {
        if !may_be_found(page) {
            return Ok(Kept::Nothing);
        }
        // Only what the store has as well: an index that is built anew shall hold the same.
        if let Some(read) = page.body.and_then(|_| self.fresh_pages.take(page)) {
            return Ok(Kept::Read(read));
        }
        let store = self.store.as_ref();
        let kept = match (stored_answer(store, page), page.parsed) {
            (Ok(Some(answer)), _) => Ok(Kept::Answer(answer)),
            (Ok(None), None) => Ok(Kept::Nothing),
            (Ok(None), Some(blob)) => {
                store.parsed(page.crawl, blob).map(|parsed| Kept::Read(Box::new(as_told(parsed))))
            }
            (Err(error), _) => Err(error),
        };
        match kept {
            // One damaged page costs one page.
            Err(StoreError::Damaged(what)) => {
                tracing::warn!(url = %page.url, what, "a page cannot be indexed");
                Ok(Kept::Nothing)
            }
            kept => kept,
        }
    }

    /// What the page and its origin say about its use.
    fn rights_of(
        &self,
        page: &PageRecord,
        product_token: Arc<str>,
    ) -> Result<Vec<String>, StoreError> {
        let reader = RobotsReader { origin: page.url.origin(), product_token };
        let mut known = self.rights.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ORIGINS_MAX {
            known.clear();
        }
        let mut words = match known.get(&reader) {
            Some(words) => words.clone(),
            None => {
                let words = self.content_signals(&reader)?;
                known.insert(reader, words.clone());
                words
            }
        };
        if page.directives.nofollow {
            words.push("nofollow".to_owned());
        }
        Ok(words)
    }

    fn content_signals(&self, reader: &RobotsReader) -> Result<Vec<String>, StoreError> {
        let Some(row) = self.store.origin(&reader.origin)? else { return Ok(Vec::new()) };
        let RobotsAnswer::Text { text } = row.robots else { return Ok(Vec::new()) };
        let rules = Rules::parse(&text, &reader.product_token);
        let signals = rules.content_signals().flat_map(|signal| signal.split(','));
        Ok(signals.map(|word| word.trim().to_ascii_lowercase()).collect())
    }
}

/// What is kept of a page.
enum Kept {
    Nothing,
    /// It has been read.
    Read(Box<SearchPage>),
    /// It is to be read.
    Answer(RawPage),
}

impl Kept {
    fn answer(&self) -> Option<&RawPage> {
        if let Self::Answer(answer) = self { Some(answer) } else { None }
    }
}

/// A page of which only the text is kept: what it was said to be in is its language.
fn as_told(parsed: ParsedPage) -> SearchPage {
    let told = parsed.language.as_deref().and_then(|tag| tag.split(['-', '_']).next());
    // Codes of languages have two or three letters; whatever else stands there says nothing.
    let is_code = |code: &&str| {
        (2..=3).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    let language = told.filter(is_code).map(str::to_ascii_lowercase);
    let page = SearchPage::from(parsed);
    SearchPage { findings: Findings { language, ..page.findings }, ..page }
}

/// Whether a page may be found at all: not error pages, nor those that ask to stay out, nor those
/// that broke the parser and would break it again here.
pub(crate) fn may_be_found(page: &PageRecord) -> bool {
    page.is_ok() && !page.directives.noindex && !page.soft_404 && page.parse_failed.is_none()
}
