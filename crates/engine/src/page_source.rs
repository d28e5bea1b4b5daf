//! Where an indexer gets the pages that it has not seen: out of the store, as the index wants them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use telusur_fetch::robots::{Rules, product_token};
use telusur_index::{DocKey, IndexDoc, OutLink};
use telusur_ledger::{Store, StoreError};
use telusur_model::{
    CrawlNo, Findings, Link, PageRecord, PageUrl, ParsedPage, RawPage, RobotsAnswer, SearchPage,
    UrlKey, UrlKeyer,
};
use telusur_parse_pool::{InProcess, Parser, Reading, VisibleText};

use crate::fresh_pages::FreshPages;
use crate::imports::imported_id;
use crate::index_stage::IndexingError;
use crate::stored_page::{stored_answer, unreadable};

/// Pages that are read together: a child is woken once for all of them.
const READ_TOGETHER: usize = 16;
/// Origins whose rights are remembered, each once for every name that crawls go by.
const ORIGINS_MAX: usize = 10_000;
/// Crawls of which is remembered how they read their pages.
const CRAWLS_MAX: usize = 10_000;

/// Gives an indexer the pages that it has not seen.
pub(crate) trait PageSource: Send + Sync {
    /// The next pages behind a place in the order of all pages, at most so many.
    fn next(&self, after: u64, pages_max: usize) -> Result<PageBatch, IndexingError>;

    /// Hears that everything given so far is committed.
    fn committed(&self) -> Result<(), IndexingError> {
        Ok(())
    }

    /// Hears that link ranks were worked out anew.
    fn digested(&self) -> Result<(), IndexingError> {
        Ok(())
    }
}

/// Pages as the index wants them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PageBatch {
    /// What is to be found.
    pub(crate) docs: Vec<IndexDoc>,
    /// Pages that are not to be found.
    pub(crate) left_out: Vec<DocKey>,
    /// The place of the last page.
    pub(crate) upto: u64,
}

impl PageBatch {
    /// How many pages these are.
    pub(crate) fn pages(&self) -> usize {
        self.docs.len() + self.left_out.len()
    }
}

/// The pages of a store that this process owns.
pub(crate) struct StoredSource {
    store: Arc<dyn Store>,
    parser: Arc<dyn Parser>,
    /// Where a running crawl puts pages that it has read.
    fresh_pages: Arc<FreshPages>,
    /// The words about rights in robots.txt files that were read lately.
    rights: Mutex<HashMap<RobotsReader, Vec<String>>>,
    crawls: Mutex<HashMap<CrawlNo, OfCrawl>>,
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

impl PageSource for StoredSource {
    fn next(&self, after: u64, pages_max: usize) -> Result<PageBatch, IndexingError> {
        let pages = self.store.pages_of_all_after(after, pages_max)?;
        let upto = pages.last().map_or(after, |last| last.seq);
        let mut batch = PageBatch { upto, ..PageBatch::default() };
        for together in pages.chunks(READ_TOGETHER) {
            for (page, doc) in together.iter().zip(self.documents(together)?) {
                match doc {
                    Some(doc) => batch.docs.push(doc),
                    None => batch.left_out.push(DocKey { url: page.key, crawl: page.crawl }),
                }
            }
        }
        Ok(batch)
    }
}

impl StoredSource {
    /// The pages of this store, read by this process.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            parser: Arc::new(InProcess::default()),
            fresh_pages: Arc::default(),
            rights: Mutex::default(),
            crawls: Mutex::default(),
        }
    }

    /// The same pages, with another reader.
    pub(crate) fn with_parser(self, parser: Arc<dyn Parser>) -> Self {
        Self { parser, ..self }
    }

    /// The same pages, beside a crawl that caches those that it has just parsed.
    pub(crate) fn with_fresh_pages(self, fresh_pages: Arc<FreshPages>) -> Self {
        Self { fresh_pages, ..self }
    }

    /// What is to be found of pages; `None` for those that are not to be found.
    pub(crate) fn documents(
        &self,
        pages: &[PageRecord],
    ) -> Result<Vec<Option<IndexDoc>>, StoreError> {
        let mut contents = self.contents(pages)?.into_iter();
        let mut document = |page: &PageRecord| {
            let Some(read) = contents.next().flatten() else { return Ok(None) };
            let OfCrawl { keyer, product_token } = self.of_crawl(page.crawl)?;
            let rights = self.rights_of(page, product_token)?;
            Ok(Some(document_of(page, read, rights, &keyer)))
        };
        pages.iter().map(&mut document).collect()
    }

    fn of_crawl(&self, crawl: CrawlNo) -> Result<OfCrawl, StoreError> {
        let mut known = self.crawls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_crawl) = known.get(&crawl) {
            return Ok(of_crawl.clone());
        }
        let record = self.store.crawl(crawl)?;
        let settings = record.as_ref().map(|record| &record.crawl);
        let keeps_tracking = settings.is_some_and(|crawl| crawl.keep_tracking);
        let agent = settings.map_or("", |crawl| crawl.fetch.user_agent.as_str());
        let of_crawl = OfCrawl {
            keyer: UrlKeyer { seed: self.store.key_seed(), drop_tracking: !keeps_tracking },
            product_token: product_token(agent).into(),
        };
        if known.len() >= CRAWLS_MAX {
            known.clear();
        }
        known.insert(crawl, of_crawl.clone());
        Ok(of_crawl)
    }

    /// What is in pages, as far as the index wants it; `None` for those that are not to be found.
    fn contents(&self, pages: &[PageRecord]) -> Result<Vec<Option<SearchPage>>, StoreError> {
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

fn document_of(
    page: &PageRecord,
    read: SearchPage,
    rights: Vec<String>,
    keyer: &UrlKeyer,
) -> IndexDoc {
    let SearchPage { parsed, findings } = read;
    let key = DocKey { url: page.key, crawl: page.crawl };
    let has = [
        ("table", findings.has_table),
        ("form", findings.has_form),
        ("image", findings.has_image),
        ("code", findings.has_code),
    ];
    let imported = imported_id(&page.url);
    IndexDoc {
        url: if imported.is_some() { String::new() } else { page.url.to_string() },
        id: imported,
        title: parsed.title.unwrap_or_default(),
        headings: findings.headings,
        description: findings.description.unwrap_or_default(),
        keywords: parsed.keywords.unwrap_or_default(),
        text: findings.text,
        language: findings.language,
        kind: kind_of(page.content_type.as_deref()).to_owned(),
        published_at: findings.published.and_then(|date| telusur_fetch::sitemap::parse_date(&date)),
        status: page.status,
        depth: page.depth,
        has: has.iter().filter(|(_, there)| *there).map(|(word, _)| (*word).to_owned()).collect(),
        rights,
        aliases: aliases(page, keyer),
        links: out_links(parsed.links, page.directives.nofollow, keyer),
        ..IndexDoc::new(key, "", page.fetched_at)
    }
}

/// Whether a page may be found at all: not error pages, nor those that ask to stay out, nor those
/// that broke the parser and would break it again here.
pub(crate) fn may_be_found(page: &PageRecord) -> bool {
    page.is_ok() && !page.directives.noindex && !page.soft_404 && page.parse_failed.is_none()
}

/// The keys of all addresses that lead to a page, but for its own: those that redirected to it, and for
/// an id, which goes by the address that was asked for, the one where it ended.
fn aliases(page: &PageRecord, keyer: &UrlKeyer) -> Vec<UrlKey> {
    let before = page.redirects.iter().filter_map(|url| PageUrl::parse(url).ok());
    let keys = before.chain([page.url.clone()]).map(|url| keyer.key(&url));
    keys.filter(|key| *key != page.key).collect()
}

fn out_links(links: Vec<Link>, is_nofollow: bool, keyer: &UrlKeyer) -> Vec<OutLink> {
    let out_link = |link: Link| OutLink {
        page: keyer.key(&link.url),
        url: link.url.to_string(),
        anchor: link.anchor,
        nofollow: is_nofollow || link.nofollow,
    };
    links.into_iter().map(out_link).collect()
}

fn kind_of(content_type: Option<&str>) -> &'static str {
    match content_type {
        Some("text/plain") => "text",
        Some("application/rss+xml" | "application/atom+xml" | "application/feed+json") => "feed",
        Some("application/pdf") => "pdf",
        _ => "html",
    }
}
