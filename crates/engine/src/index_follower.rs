//! The search index as a follower: makes every stored page searchable, soon after it was stored.
//!
//! How far it has read is kept inside its own commits. An index that is gone or damaged is built again
//! from the store; a failed write (a full disk) costs the pages since the last commit. While pages come in,
//! what links say is worked out beside; at rest, segments are put together.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use telusur_index::{DocKey, IndexDoc, IndexError, LinkLag, OutLink, SearchIndex};
use telusur_ledger::Store;
use telusur_model::{Link, PageRecord, PageUrl, SearchPage, UrlKey, UrlKeyer};
use telusur_parse_pool::Parser;

use crate::followers::{
    ChangeBatch, ChangeSource, FollowError, FollowedChange, FollowedPage, Follower, FollowerHealth,
    Pace, PageContent, catch_up,
};
use crate::imports::imported_id;
use crate::index_lease::Lease;
use crate::page_source::StoredSource;
use crate::removals::end_followed_removals;

/// What the follower is called.
pub(crate) const INDEX: &str = "index";
/// Links are digested during a crawl when there are this many times as many pages as the last time:
/// all that work together is then at most four thirds of the last of it.
const LINKS_GROWTH: u64 = 4;
/// Pages below which links are not digested during a crawl: they do not tell good pages from others yet.
const LINKED_PAGES_MIN: u64 = 1000;
/// When a crawl is over, links are digested if at least one page in this many is new.
const LINKS_NEW_SHARE: u64 = 20;

/// What is new in an index, beside what the runner commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexNews {
    /// Segments were put together.
    Merged,
    /// Link ranks were worked out.
    Digested,
}

/// Tells others who show the same index what is new in it.
pub(crate) type TellNews = Arc<dyn Fn(IndexNews) + Send + Sync>;

/// A search index that follows a store.
pub struct IndexFollower {
    index: Arc<SearchIndex>,
    tell: TellNews,
    /// Works out what links say, beside.
    digestion: Option<Digestion>,
}

/// A thread that works out what links say.
struct Digestion {
    thread: JoinHandle<()>,
    done: Receiver<Result<(), IndexError>>,
}

impl IndexFollower {
    /// The follower that this index is.
    pub fn new(index: Arc<SearchIndex>) -> Self {
        Self::telling(index, Arc::new(|_| ()))
    }

    /// The same, with others who show the index.
    pub(crate) fn telling(index: Arc<SearchIndex>, tell: TellNews) -> Self {
        Self { index, tell, digestion: None }
    }

    /// Waits for work that goes on beside.
    fn join_digestion(&mut self) {
        let Some(Digestion { thread, done }) = self.digestion.take() else { return };
        let _ = thread.join();
        if let Ok(Err(error)) = done.try_recv() {
            // Searches go on with older ranks; a damaged log shows itself at the end of the crawl.
            tracing::warn!(%error, "link ranks cannot be worked out");
        }
    }

    /// The same, but not for longer than `wait_max`: what is not done by then is left behind. True if it is
    /// done.
    fn wait_for_digestion(&mut self, wait_max: Duration) -> Result<bool, FollowError> {
        let Some(Digestion { thread, done }) = self.digestion.take() else { return Ok(true) };
        match done.recv_timeout(wait_max) {
            Err(RecvTimeoutError::Timeout) => {
                tracing::info!("link ranks are worked out at another time");
                Ok(false)
            }
            Ok(digested) => {
                let _ = thread.join();
                Ok(digested.map(|()| true)?)
            }
            Err(RecvTimeoutError::Disconnected) => Err(FollowError::Panicked),
        }
    }

    /// Puts the index in order while nothing comes in.
    fn compact_in_background(&self) {
        match self.index.compact_in_background() {
            Ok(true) => (self.tell)(IndexNews::Merged),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "the search index stays as it is"),
        }
    }

    /// Works out what links say while pages go on coming in.
    fn digest_beside(&mut self) {
        let (index, tell) = (Arc::clone(&self.index), Arc::clone(&self.tell));
        let (sender, done) = sync_channel(1);
        let digest = move || {
            let digested = index.digest_links();
            // The waiting side may open the index again.
            drop(index);
            if digested.is_ok() {
                tell(IndexNews::Digested);
            }
            let _ = sender.send(digested);
        };
        // Without a thread there are no ranks, and everything else goes on.
        let thread = std::thread::Builder::new().name("links".into()).spawn(digest).ok();
        self.digestion = thread.map(|thread| Digestion { thread, done });
    }
}

impl Follower for IndexFollower {
    fn name(&self) -> &'static str {
        INDEX
    }

    fn place(&self) -> u64 {
        self.index.applied_upto()
    }

    fn take_in(&mut self, batch: ChangeBatch) -> Result<(), FollowError> {
        let mut pages = Pages::default();
        let mut upto = self.index.taken_upto();
        for change in batch.changes {
            let seq = change.seq();
            match change {
                FollowedChange::Page(page) => {
                    // A second version of a page comes after the first.
                    if pages.keys.contains(&key_of(&page.record)) {
                        pages.take_in(&self.index, upto)?;
                    }
                    pages.add(*page);
                }
                FollowedChange::Removed { crawl, .. } => {
                    pages.take_in(&self.index, upto)?;
                    self.index.remove_crawl_at(crawl, seq)?;
                }
            }
            upto = seq;
        }
        pages.take_in(&self.index, batch.upto)
    }

    fn commit(&mut self) -> Result<(), FollowError> {
        Ok(self.index.commit()?)
    }

    fn reopen(&mut self, why: &FollowError) -> Result<(), FollowError> {
        self.join_digestion();
        match why {
            FollowError::Index(damage) if damage.needs_rebuild() => {
                tracing::warn!(error = %damage, "the search index is rebuilt");
                self.index.begin_anew()?;
            }
            FollowError::Index(_)
            | FollowError::Store(_)
            | FollowError::Failed(_)
            | FollowError::Panicked => self.index.reopen()?,
        }
        Ok(())
    }

    fn rebuild(&mut self) -> Result<(), FollowError> {
        self.join_digestion();
        Ok(self.index.begin_anew()?)
    }

    fn pace(&self) -> Pace {
        Pace { slows_crawls: true, ..Pace::default() }
    }

    fn tend(&mut self, is_idle: bool) -> Result<(), FollowError> {
        if is_idle {
            self.compact_in_background();
        }
        if self.digestion.as_ref().is_none_or(|digestion| digestion.thread.is_finished()) {
            self.join_digestion();
            if has_outgrown(self.index.link_lag()) {
                self.digest_beside();
            }
        }
        Ok(())
    }

    fn finish(&mut self, wait_max: Duration) -> Result<(), FollowError> {
        let since = Instant::now();
        if self.wait_for_digestion(wait_max)? && has_new_links(&self.index) {
            self.digest_beside();
            self.wait_for_digestion(wait_max.saturating_sub(since.elapsed()))?;
        }
        Ok(())
    }

    fn lend(
        &mut self,
        lease: Lease,
        source: &dyn ChangeSource,
        health: &FollowerHealth,
    ) -> Result<(), FollowError> {
        self.join_digestion();
        lease.carry_out(&self.index, source, health)
    }
}

impl Drop for IndexFollower {
    /// The files of an index that is let go of are at rest.
    fn drop(&mut self) {
        self.join_digestion();
    }
}

/// Pages on their way into the index, none twice.
#[derive(Default)]
struct Pages {
    keys: HashSet<DocKey>,
    docs: Vec<IndexDoc>,
    left_out: Vec<DocKey>,
}

impl Pages {
    fn add(&mut self, page: FollowedPage) {
        let key = key_of(&page.record);
        self.keys.insert(key);
        match page.content {
            Some(content) => self.docs.push(document_of(&page.record, content)),
            None => self.left_out.push(key),
        }
    }

    fn take_in(&mut self, index: &SearchIndex, upto: u64) -> Result<(), FollowError> {
        let Self { keys, docs, left_out } = std::mem::take(self);
        if !keys.is_empty() {
            index.take_in(&docs, &left_out, upto)?;
        }
        Ok(())
    }
}

/// Brings an index up to its store, without a thread.
pub struct Indexer {
    store: Arc<dyn Store>,
    source: StoredSource,
    index: Arc<SearchIndex>,
}

impl Indexer {
    /// An indexer between these two. Pages are read by this parser.
    pub fn new(store: Arc<dyn Store>, index: Arc<SearchIndex>, parser: Arc<dyn Parser>) -> Self {
        Self { source: StoredSource::new(Arc::clone(&store), parser), store, index }
    }

    /// The same, leaving this much space on the disk.
    pub fn leaving(self, free_bytes_min: u64) -> Self {
        Self { source: self.source.leaving(free_bytes_min), ..self }
    }

    /// The index that it brings up to date.
    pub fn index(&self) -> &Arc<SearchIndex> {
        &self.index
    }

    /// Makes everything searchable that was stored since the last commit of the index, and calls
    /// `progress` with the number of changes now and then. Gives the number of changes.
    pub fn catch_up(&self, progress: &mut dyn FnMut(u64)) -> Result<u64, FollowError> {
        let mut follower = IndexFollower::new(Arc::clone(&self.index));
        let taken_upto = self.index.taken_upto();
        let changes = catch_up(&mut follower, &self.source, taken_upto, &mut |changes| {
            progress(changes);
            true
        })?;
        let applied_upto = self.index.applied_upto();
        end_followed_removals(self.store.as_ref(), |removal| removal.place <= applied_upto);
        Ok(changes)
    }

    /// Puts the index in order, in which it is searched sooner. Takes a while if many pages were taken in,
    /// and is not needed: if it fails, the index stays as it is.
    pub fn compact(&self) {
        if let Err(error) = self.index.compact() {
            tracing::warn!(%error, "the search index stays as it is");
        }
    }

    /// Works out what links say, if enough pages came since the last time.
    pub fn digest_links(&self) -> Result<(), FollowError> {
        if has_new_links(&self.index) {
            self.index.digest_links()?;
        }
        Ok(())
    }
}

/// Whether enough pages came since links were last digested.
fn has_new_links(index: &SearchIndex) -> bool {
    let LinkLag { pages, pages_since } = index.link_lag();
    pages_since > 0 && pages_since >= pages / LINKS_NEW_SHARE
}

/// Whether ranks are so old that they are worked out again while the crawl goes on.
fn has_outgrown(lag: LinkLag) -> bool {
    let before = lag.pages - lag.pages_since;
    lag.pages >= LINKED_PAGES_MIN && lag.pages >= before * LINKS_GROWTH
}

fn key_of(page: &PageRecord) -> DocKey {
    DocKey { url: page.key, crawl: page.crawl }
}

fn document_of(page: &PageRecord, content: PageContent) -> IndexDoc {
    let PageContent { page: SearchPage { parsed, findings }, rights, keyer } = content;
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
        aliases: aliases(page, &keyer),
        links: out_links(parsed.links, page.directives.nofollow, &keyer),
        ..IndexDoc::new(key_of(page), "", page.fetched_at)
    }
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
