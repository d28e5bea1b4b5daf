//! Follows the store: makes every stored page searchable, soon after it was stored.
//!
//! The index is derived. How far it has read is kept inside its own commits, so a kill at any moment
//! loses nothing and doubles nothing: the next start goes on from there, and an index that is gone
//! or damaged is built anew. A wake-up only makes it sooner.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, ScopedJoinHandle};
use std::time::{Duration, Instant};

use telusur_fetch::robots::{Rules, product_token};
use telusur_index::{DocKey, IndexDoc, IndexError, LinkLag, OutLink, SearchIndex};
use telusur_model::{
    CrawlNo, Findings, Link, PageRecord, PageUrl, ParsedPage, RawPage, RobotsAnswer, SearchPage,
    UrlKey, UrlKeyer,
};
use telusur_parse_pool::{InProcess, Parser, Reading, VisibleText};
use telusur_store::{Store, StoreError};

use crate::imports::imported_id;
use crate::shelf::Shelf;
use crate::stored_page::{stored_answer, unreadable};

/// Pages that are taken in at once: their records are held in memory.
const BATCH_PAGES_MAX: usize = 250;
/// Pages in one commit of an index that catches up. A kill costs at most their indexing.
const CATCH_UP_COMMIT_PAGES: u64 = 10_000;
/// Pages that are read together: a child is woken once for all of them.
const READ_TOGETHER: usize = 16;
/// How long pages wait for company before they are taken in: looking into the store for each would
/// cost as much as a page.
const TAKE_IN_WAIT: Duration = Duration::from_millis(100);
/// How long the first page of a commit waits for company. A page is to be found within two seconds;
/// the fewer commits, the fewer segments there are to be merged.
const COMMIT_WAIT: Duration = Duration::from_millis(700);
/// Pages in one commit beside a running crawl: writing out so many takes a few tenths of a second.
const COMMIT_PAGES_MAX: u64 = 500;
/// How often the store is looked at without being woken.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Origins whose rights are remembered.
const ORIGINS_MAX: usize = 10_000;
/// Links are digested during a crawl when there are this many times as many pages as the last time:
/// all that work together is then at most four thirds of the last of it.
const LINKS_GROWTH: u64 = 4;
/// Nor before there are so many pages: until then nobody can tell good pages from others by links.
const LINKED_PAGES_MIN: u64 = 1000;
/// When a crawl is over, links are digested unless fewer than one page in so many is new.
const LINKS_NEW_SHARE: u64 = 20;

/// Why the index could not follow.
#[derive(Debug, thiserror::Error)]
pub enum IndexingError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// Brings an index up to its store.
pub struct Indexer {
    store: Arc<dyn Store>,
    index: Arc<SearchIndex>,
    parser: Arc<dyn Parser>,
    /// Where a running crawl puts pages that it has read.
    shelf: Arc<Shelf>,
    /// The words about rights in robots.txt files that were read lately, by origin.
    rights: Mutex<HashMap<String, Vec<String>>>,
    /// What makes the keys of URLs, by crawl.
    keyers: Mutex<HashMap<CrawlNo, UrlKeyer>>,
}

impl Indexer {
    /// An indexer between these two, which reads pages in this process.
    pub fn new(store: Arc<dyn Store>, index: Arc<SearchIndex>) -> Self {
        Self {
            store,
            index,
            parser: Arc::new(InProcess::default()),
            shelf: Arc::default(),
            rights: Mutex::default(),
            keyers: Mutex::default(),
        }
    }

    /// The same indexer, with another reader of pages.
    pub fn with_parser(self, parser: Arc<dyn Parser>) -> Self {
        Self { parser, ..self }
    }

    /// The same indexer, beside a crawl that puts the pages that it read on this shelf.
    pub(crate) fn with_shelf(self, shelf: Arc<Shelf>) -> Self {
        Self { shelf, ..self }
    }

    /// The index that it brings up to date.
    pub fn index(&self) -> &Arc<SearchIndex> {
        &self.index
    }

    /// Makes everything searchable that was stored since the last commit of the index, and calls
    /// `progress` with the number of pages now and then. Gives the number of pages looked at.
    pub fn catch_up(&self, progress: &mut dyn FnMut(u64)) -> Result<u64, IndexingError> {
        let (mut looked_at, mut committed) = (0, 0);
        loop {
            let pages = self.take_in_batch()?;
            looked_at += pages;
            if (pages == 0 && looked_at > committed)
                || looked_at - committed >= CATCH_UP_COMMIT_PAGES
            {
                self.index.commit()?;
                committed = looked_at;
            }
            if pages == 0 {
                return Ok(looked_at);
            }
            progress(looked_at);
        }
    }

    /// Takes in the next pages, without a commit, and gives their number.
    fn take_in_batch(&self) -> Result<u64, IndexingError> {
        let pages = self.pages_after(self.index.taken_upto(), BATCH_PAGES_MAX)?;
        let Some(last) = pages.last() else { return Ok(0) };
        let upto = last.seq;
        let (mut docs, mut left_out) = (Vec::new(), Vec::new());
        for together in pages.chunks(READ_TOGETHER) {
            for (page, doc) in together.iter().zip(self.documents(together)?) {
                match doc {
                    Some(doc) => docs.push(doc),
                    None => left_out.push(DocKey { url: page.key, crawl: page.crawl }),
                }
            }
        }
        self.index.take_in(&docs, &left_out, upto)?;
        Ok(pages.len() as u64)
    }

    /// Works out what links say, if enough pages came since the last time.
    pub fn digest_links(&self) -> Result<(), IndexingError> {
        let LinkLag { pages, pages_since } = self.index.link_lag();
        if pages_since > 0 && pages_since >= pages / LINKS_NEW_SHARE {
            self.index.digest_links()?;
        }
        Ok(())
    }

    /// The next pages of all crawls, in the order in which they were stored.
    fn pages_after(&self, seq: u64, max: usize) -> Result<Vec<PageRecord>, StoreError> {
        let mut pages: Vec<PageRecord> = Vec::new();
        let mut complete_upto = u64::MAX;
        for record in self.store.crawls()? {
            let batch = self.store.pages_after(record.crawl.no, seq, max)?;
            if let Some(last) = batch.last().filter(|_| batch.len() == max) {
                complete_upto = complete_upto.min(last.seq);
            }
            pages.extend(batch);
        }
        // Beyond the end of a full batch, pages of that crawl are missing.
        pages.retain(|page| page.seq <= complete_upto);
        pages.sort_unstable_by_key(|page| page.seq);
        pages.truncate(max);
        Ok(pages)
    }

    /// What is to be found of pages; `None` for those that are not to be found.
    pub(crate) fn documents(
        &self,
        pages: &[PageRecord],
    ) -> Result<Vec<Option<IndexDoc>>, StoreError> {
        let mut contents = self.contents(pages)?.into_iter();
        let mut document = |page: &PageRecord| {
            let Some(read) = contents.next().flatten() else { return Ok(None) };
            let rights = self.rights_of(page)?;
            let keyer = self.keyer(page.crawl)?;
            Ok(Some(document_of(page, read, rights, &keyer)))
        };
        pages.iter().map(&mut document).collect()
    }

    fn keyer(&self, crawl: CrawlNo) -> Result<UrlKeyer, StoreError> {
        let mut known = self.keyers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keyer) = known.get(&crawl) {
            return Ok(*keyer);
        }
        let keeps_tracking = self.store.crawl(crawl)?.is_some_and(|it| it.crawl.keep_tracking);
        let keyer = UrlKeyer { seed: self.store.key_seed(), drop_tracking: !keeps_tracking };
        known.insert(crawl, keyer);
        Ok(keyer)
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
            Kept::Answer(answer) => match readings.next()? {
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
        if let Some(read) = page.body.and_then(|_| self.shelf.take(page)) {
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
    fn rights_of(&self, page: &PageRecord) -> Result<Vec<String>, StoreError> {
        let origin = page.url.origin();
        let mut known = self.rights.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ORIGINS_MAX {
            known.clear();
        }
        let mut words = match known.get(&origin) {
            Some(words) => words.clone(),
            None => {
                let agent = self.store.crawl(page.crawl)?.map(|it| it.crawl.fetch.user_agent);
                let words = self.content_signals(&origin, &agent.unwrap_or_default())?;
                known.insert(origin, words.clone());
                words
            }
        };
        if page.directives.nofollow {
            words.push("nofollow".to_owned());
        }
        Ok(words)
    }

    fn content_signals(&self, origin: &str, agent: &str) -> Result<Vec<String>, StoreError> {
        let Some(row) = self.store.origin(origin)? else { return Ok(Vec::new()) };
        let RobotsAnswer::Text { text } = row.robots else { return Ok(Vec::new()) };
        let rules = Rules::parse(&text, product_token(agent));
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

/// The keys of the addresses that redirected to a page.
fn aliases(page: &PageRecord, keyer: &UrlKeyer) -> Vec<UrlKey> {
    page.redirects.iter().filter_map(|url| Some(keyer.key(&PageUrl::parse(url).ok()?))).collect()
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

/// A running index stage.
pub(crate) struct IndexStage {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<Result<(), IndexingError>>>,
    lag: Arc<AtomicU64>,
}

impl IndexStage {
    /// Starts the thread that follows the store.
    pub(crate) fn start(indexer: Indexer) -> std::io::Result<Self> {
        let (wake, woken) = sync_channel(1);
        let lag = Arc::new(AtomicU64::new(0));
        let shown = Arc::clone(&lag);
        let thread = std::thread::Builder::new()
            .name("index".into())
            .spawn(move || follow(&indexer, &woken, &shown))?;
        Ok(Self { wake: Some(wake), thread: Some(thread), lag })
    }

    /// Pages were stored.
    pub(crate) fn wake(&self, pages: u64) {
        self.lag.fetch_add(pages, Ordering::AcqRel);
        // A wake-up that is already waiting is enough.
        let _ = self.wake.as_ref().map(|wake| wake.try_send(()));
    }

    /// Pages that are stored and not yet searchable, as far as this process knows.
    pub(crate) fn lag(&self) -> u64 {
        self.lag.load(Ordering::Acquire)
    }

    /// Whether the thread has ended, which it does only when it fails or is told to.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Takes in what is stored and ends. Gives the failure, if there was one.
    pub(crate) fn finish(mut self) -> Option<String> {
        self.wake = None;
        match self.thread.take()?.join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the index stage panicked".to_owned()),
        }
    }
}

fn follow(indexer: &Indexer, woken: &Receiver<()>, lag: &AtomicU64) -> Result<(), IndexingError> {
    std::thread::scope(|scope| {
        let mut digestion = None;
        let mut uncommitted = Uncommitted::default();
        loop {
            let is_last = match woken.recv_timeout(uncommitted.patience()) {
                Ok(()) => {
                    std::thread::sleep(TAKE_IN_WAIT);
                    while woken.try_recv().is_ok() {}
                    false
                }
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => true,
            };
            if is_last {
                if indexer.catch_up(&mut |_| {})? == 0 && uncommitted.pages > 0 {
                    indexer.index.commit()?;
                }
                return indexer.digest_links();
            }
            uncommitted.take_in(indexer, lag)?;
            if digestion.as_ref().is_none_or(ScopedJoinHandle::is_finished) {
                digestion = has_outgrown(indexer.index.link_lag())
                    .then(|| scope.spawn(|| digest_beside(indexer)));
            }
        }
    })
}

/// What was taken in and is not yet searchable.
#[derive(Default)]
struct Uncommitted {
    pages: u64,
    /// How much of the lag they are.
    lag: u64,
    /// When the first of them came.
    since: Option<Instant>,
}

impl Uncommitted {
    /// How long to wait for pages before the next look.
    fn patience(&self) -> Duration {
        self.since.map_or(LOOK_EVERY, |since| COMMIT_WAIT.saturating_sub(since.elapsed()))
    }

    /// Takes in what waits, and commits whenever it is time to.
    fn take_in(&mut self, indexer: &Indexer, lag: &AtomicU64) -> Result<(), IndexingError> {
        loop {
            let behind = lag.load(Ordering::Acquire);
            let pages = indexer.take_in_batch()?;
            let is_all = pages < BATCH_PAGES_MAX as u64;
            self.pages += pages;
            // Whatever was counted before a look that saw everything was seen by it: a page that was
            // stored twice is counted twice and seen once.
            self.lag = if is_all { behind } else { self.lag + pages };
            if self.pages > 0 {
                self.since.get_or_insert_with(Instant::now);
            }
            if self.is_due() {
                indexer.index.commit()?;
                self.pages = 0;
            }
            if self.pages == 0 {
                let seen = std::mem::take(self).lag;
                let _ = lag.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
                    Some(now.saturating_sub(seen))
                });
            }
            if is_all {
                return Ok(());
            }
        }
    }

    fn is_due(&self) -> bool {
        let has_waited = self.since.is_some_and(|since| since.elapsed() >= COMMIT_WAIT);
        has_waited || self.pages >= COMMIT_PAGES_MAX
    }
}

/// Whether ranks are so old that they are worked out anew while the crawl goes on.
fn has_outgrown(lag: LinkLag) -> bool {
    let before = lag.pages - lag.pages_since;
    lag.pages >= LINKED_PAGES_MIN && lag.pages >= before * LINKS_GROWTH
}

/// Works out what links say while pages go on coming in.
fn digest_beside(indexer: &Indexer) {
    if let Err(error) = indexer.index.digest_links() {
        // Searches go on with older ranks; a damaged log shows itself at the end of the crawl.
        tracing::warn!(%error, "link ranks cannot be worked out");
    }
}
