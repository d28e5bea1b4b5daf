//! Follows the store: makes every stored page searchable, soon after it was stored.
//!
//! The index is derived. How far it has read is kept inside its own commits, so a kill at any moment
//! loses nothing and doubles nothing: the next start goes on from there, and an index that is gone
//! or damaged is built anew. A wake-up only makes it sooner.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use telusur_fetch::robots::{Rules, product_token};
use telusur_index::{DocKey, IndexDoc, IndexError, SearchIndex};
use telusur_model::{PageContent, PageRecord, RobotsAnswer};
use telusur_parse::ContentLimits;
use telusur_store::{Store, StoreError};

use crate::imports::imported_id;
use crate::stored_page::stored_answer;

/// Pages in one commit of the index.
const BATCH_PAGES_MAX: usize = 1000;
/// How long pages may wait for company. A commit costs tens of milliseconds, and a page is to be
/// found within two seconds.
const BATCH_WAIT: Duration = Duration::from_millis(500);
/// How often the store is looked at without being woken.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Origins whose rights are remembered.
const ORIGINS_MAX: usize = 10_000;

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
    /// The words about rights in robots.txt files that were read lately, by origin.
    rights: Mutex<HashMap<String, Vec<String>>>,
}

impl Indexer {
    /// An indexer between these two.
    pub fn new(store: Arc<dyn Store>, index: Arc<SearchIndex>) -> Self {
        Self { store, index, rights: Mutex::new(HashMap::new()) }
    }

    /// The index that it brings up to date.
    pub fn index(&self) -> &Arc<SearchIndex> {
        &self.index
    }

    /// Takes in everything that was stored since the last commit of the index, and calls `progress`
    /// with the number of pages after each batch. Gives the number of pages looked at.
    pub fn catch_up(&self, progress: &mut dyn FnMut(u64)) -> Result<u64, IndexingError> {
        let mut looked_at = 0;
        loop {
            let pages = self.pages_after(self.index.applied_upto()?)?;
            let Some(last) = pages.last() else { return Ok(looked_at) };
            let upto = last.seq;
            let (mut docs, mut left_out) = (Vec::new(), Vec::new());
            for page in &pages {
                match self.document(page)? {
                    Some(doc) => docs.push(doc),
                    None => left_out.push(DocKey { url: page.key, crawl: page.crawl }),
                }
            }
            self.index.apply(&docs, &left_out, upto)?;
            looked_at += pages.len() as u64;
            progress(looked_at);
        }
    }

    /// The next pages of all crawls, in the order in which they were stored.
    fn pages_after(&self, seq: u64) -> Result<Vec<PageRecord>, StoreError> {
        let mut pages: Vec<PageRecord> = Vec::new();
        let mut complete_upto = u64::MAX;
        for record in self.store.crawls()? {
            let batch = self.store.pages_after(record.crawl.no, seq, BATCH_PAGES_MAX)?;
            if let Some(last) = batch.last().filter(|_| batch.len() == BATCH_PAGES_MAX) {
                complete_upto = complete_upto.min(last.seq);
            }
            pages.extend(batch);
        }
        // Beyond the end of a full batch, pages of that crawl are missing.
        pages.retain(|page| page.seq <= complete_upto);
        pages.sort_unstable_by_key(|page| page.seq);
        pages.truncate(BATCH_PAGES_MAX);
        Ok(pages)
    }

    /// What is to be found of a page; `None` if it is not to be found.
    fn document(&self, page: &PageRecord) -> Result<Option<IndexDoc>, StoreError> {
        if !page.is_ok() || page.directives.noindex || page.soft_404 {
            return Ok(None);
        }
        let content = match self.content(page) {
            Ok(content) => content,
            // One damaged page costs one page.
            Err(StoreError::Damaged(what)) => {
                tracing::warn!(url = %page.url, what, "a page cannot be indexed");
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let Some(content) = content else { return Ok(None) };
        let rights = self.rights_of(page)?;
        Ok(Some(document_of(page, content, rights)))
    }

    fn content(&self, page: &PageRecord) -> Result<Option<PageContent>, StoreError> {
        let store = self.store.as_ref();
        if let Some(answer) = stored_answer(store, page)? {
            let content = telusur_parse::read_page(&answer, &ContentLimits::default());
            return Ok((!content.charset.is_empty()).then_some(content));
        }
        let Some(blob) = page.parsed else { return Ok(None) };
        let parsed = store.parsed(page.crawl, blob)?;
        Ok(Some(PageContent {
            charset: parsed.charset,
            title: parsed.title,
            description: parsed.description,
            keywords: parsed.keywords,
            language: parsed.language,
            text: parsed.visible_text,
            links: parsed.links,
            ..PageContent::default()
        }))
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

fn document_of(page: &PageRecord, content: PageContent, rights: Vec<String>) -> IndexDoc {
    let key = DocKey { url: page.key, crawl: page.crawl };
    let has = [
        ("table", !content.tables.is_empty()),
        ("form", !content.forms.is_empty()),
        ("image", !content.images.is_empty()),
        ("code", content.markdown.contains("```")),
    ];
    let imported = imported_id(&page.url);
    IndexDoc {
        url: if imported.is_some() { String::new() } else { page.url.to_string() },
        id: imported,
        title: content.title.unwrap_or_default(),
        headings: content.headings.into_iter().map(|heading| heading.text).collect(),
        description: content.description.unwrap_or_default(),
        keywords: content.keywords.unwrap_or_default(),
        text: content.text,
        language: content.language,
        kind: kind_of(page.content_type.as_deref()).to_owned(),
        published_at: content.published.and_then(|date| telusur_fetch::sitemap::parse_date(&date)),
        status: page.status,
        depth: page.depth,
        has: has.iter().filter(|(_, there)| *there).map(|(word, _)| (*word).to_owned()).collect(),
        rights,
        links: content.links.iter().map(|link| link.url.to_string()).collect(),
        ..IndexDoc::new(key, "", page.fetched_at)
    }
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
    loop {
        let is_last = match woken.recv_timeout(LOOK_EVERY) {
            Ok(()) => {
                std::thread::sleep(BATCH_WAIT);
                while woken.try_recv().is_ok() {}
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        let behind = lag.load(Ordering::Acquire);
        indexer.catch_up(&mut |_| {})?;
        // Whatever was counted before the look was seen by it.
        let _ = lag.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
            Some(now.saturating_sub(behind))
        });
        if is_last {
            return Ok(());
        }
    }
}
