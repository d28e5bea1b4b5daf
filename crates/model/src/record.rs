//! [`PageRecord`]: what is kept of a page, and the counters that add it all up.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::words;
use crate::{CrawlNo, IdState, PageUrl, Reason, Timestamp, UrlKey, Via};

/// A BLAKE3 hash of a body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// Where a blob lies in a crawl's body segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BlobRef {
    /// The segment file's number.
    pub segment: u32,
    /// Where its record begins.
    pub offset: u64,
    /// How long the record is on disk.
    pub len: u32,
}

/// What is kept of a page: one per URL key and crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRecord {
    /// Order in which pages were stored in the data directory; a page stored again gets a new one.
    pub seq: u64,
    /// The crawl it belongs to.
    pub crawl: CrawlNo,
    /// Its identity.
    pub key: UrlKey,
    /// The URL that was asked for.
    pub url: PageUrl,
    /// The URLs that redirected here, first to last.
    pub redirects: Vec<String>,
    /// The HTTP status.
    pub status: u16,
    /// The media type, from the header or by looking.
    pub content_type: Option<String>,
    /// The page's title.
    pub title: Option<String>,
    /// How it was found.
    pub via: Via,
    /// When it was found.
    pub found_at: Timestamp,
    /// The page that it was found on.
    pub referrer: Option<String>,
    /// Links away from a seed.
    pub depth: u16,
    /// When the request was sent.
    pub requested_at: Option<Timestamp>,
    /// When the answer came.
    pub fetched_at: Timestamp,
    /// How long the visit took.
    pub took_ms: u64,
    /// Attempts that it needed.
    pub attempts: u8,
    /// Size of the decoded body.
    pub bytes: u64,
    /// Size of the body as received.
    pub wire_bytes: u64,
    /// Whether the body was cut at the limit.
    pub truncated: bool,
    /// Hash of the decoded body.
    pub digest: Digest,
    /// `ETag`, for asking again.
    pub etag: Option<String>,
    /// `Last-Modified`, for asking again.
    pub last_modified: Option<String>,
    /// When the page was changed, as a sitemap says.
    pub lastmod: Option<Timestamp>,
    /// What the page or its host asks of search engines.
    pub directives: Directives,
    /// Whether it looks like what its host sends for pages that do not exist, or like many pages
    /// before it that lead to each other: stored, and not to be found.
    pub soft_404: bool,
    /// Why it could not be parsed; then it is kept as it came, and has no title and no links.
    pub parse_failed: Option<String>,
    /// What became of it since the crawl that this one repeats; `None` in other crawls.
    pub change: Option<Change>,
    /// Links on the page.
    pub link_count: u32,
    /// The raw answer, if it is kept.
    pub body: Option<BlobRef>,
    /// What was extracted, if it is kept.
    pub parsed: Option<BlobRef>,
}

impl PageRecord {
    /// The record of a page of which nothing is known but where it is and when it came.
    pub fn bare(crawl: CrawlNo, key: UrlKey, url: PageUrl, at: Timestamp) -> Self {
        Self {
            seq: 0,
            crawl,
            key,
            url,
            redirects: Vec::new(),
            status: 200,
            content_type: None,
            title: None,
            via: Via::Seed,
            found_at: at,
            referrer: None,
            depth: 0,
            requested_at: None,
            fetched_at: at,
            took_ms: 0,
            attempts: 1,
            bytes: 0,
            wire_bytes: 0,
            truncated: false,
            digest: Digest([0; 32]),
            etag: None,
            last_modified: None,
            lastmod: None,
            directives: Directives::default(),
            soft_404: false,
            parse_failed: None,
            change: None,
            link_count: 0,
            body: None,
            parsed: None,
        }
    }

    /// Whether the server gave us what we asked for.
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether it is one of the errors of its crawl: the server answered with one, or the page could
    /// not be parsed, so that it is neither found nor followed.
    pub fn is_error(&self) -> bool {
        !self.is_ok() || self.parse_failed.is_some()
    }
}

/// What a page asks of search engines, in its `X-Robots-Tag` headers and its robots metas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directives {
    /// It is not to be found by searching.
    pub noindex: bool,
    /// Its links are not to be followed.
    pub nofollow: bool,
    /// The words that said so, for people; empty if nothing was asked.
    pub said: String,
}

/// What became of a page since an earlier crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The earlier crawl did not have it.
    New,
    /// Its content is another.
    Changed,
    /// Its content is the same.
    Same,
    /// The server said that it is the same and did not send it again.
    NotSent,
}

words! { Change { New = "new", Changed = "changed", Same = "same", NotSent = "not_sent" } }

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The counters of a crawl. Each step adds to them in the same commit that it counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlStats {
    /// URLs known: always the sum of queued, pages, sitemaps, redirected, failed and skipped.
    pub discovered: u64,
    /// URLs waiting, or under way.
    pub queued: u64,
    /// URLs whose answer is stored as a page, error pages included.
    pub pages: u64,
    /// Pages with a status of 2xx.
    pub ok: u64,
    /// Sitemaps read, or found missing.
    pub sitemaps: u64,
    /// URLs that redirect.
    pub redirected: u64,
    /// URLs without an answer.
    pub failed: u64,
    /// URLs never asked for.
    pub skipped: u64,
    /// Decoded bytes.
    pub bytes: u64,
    /// Bytes received.
    pub wire_bytes: u64,
    /// Visits that ended, retried ones included.
    pub visits: u64,
    /// Time that the crawl has run, in milliseconds.
    pub active_ms: u64,
    /// Answers by HTTP status, redirects included.
    pub statuses: BTreeMap<u16, u64>,
    /// Failures by reason. Pages with a status of 2xx that could not be parsed are in here, too, as
    /// `parse_failed`: their answer is stored, and they are no URLs without one.
    pub failures: BTreeMap<Reason, u64>,
    /// Skipped URLs by reason.
    pub skips: BTreeMap<Reason, u64>,
    /// Pages by depth.
    pub depths: BTreeMap<u16, u64>,
    /// Links that were no http URL, counted once per page and never queued.
    pub other_schemes: u64,
    /// Links beyond every budget, of which only the number is kept. One that is found on several pages
    /// counts as often.
    pub uncounted: u64,
    /// Pages by what became of them since the crawl that this one repeats.
    pub changes: BTreeMap<Change, u64>,
    /// Ids of a linear crawl that answered.
    pub ids: IdCounts,
}

/// Ids of a linear crawl by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdCounts {
    /// Exist and are stored.
    pub content: u64,
    /// Do not exist.
    pub missing: u64,
    /// Failed, with no attempt left.
    pub holes: u64,
    /// Failed, and are asked again.
    pub waiting: u64,
}

impl IdCounts {
    /// The counter of a state.
    pub fn of(&mut self, state: IdState) -> &mut u64 {
        match state {
            IdState::Content => &mut self.content,
            IdState::Missing => &mut self.missing,
            IdState::Hole => &mut self.holes,
            IdState::Waiting { .. } => &mut self.waiting,
        }
    }
}

impl std::ops::AddAssign<&Self> for CrawlStats {
    /// Counters of the parts of a crawl, such as its slots, add up to those of the crawl.
    fn add_assign(&mut self, part: &Self) {
        let Self {
            discovered,
            queued,
            pages,
            ok,
            sitemaps,
            redirected,
            failed,
            skipped,
            bytes,
            wire_bytes,
            visits,
            active_ms,
            statuses,
            failures,
            skips,
            depths,
            other_schemes,
            uncounted,
            changes,
            ids,
        } = part;
        self.discovered += discovered;
        self.queued += queued;
        self.pages += pages;
        self.ok += ok;
        self.sitemaps += sitemaps;
        self.redirected += redirected;
        self.failed += failed;
        self.skipped += skipped;
        self.bytes += bytes;
        self.wire_bytes += wire_bytes;
        self.visits += visits;
        self.active_ms += active_ms;
        add_counts(&mut self.statuses, statuses);
        add_counts(&mut self.failures, failures);
        add_counts(&mut self.skips, skips);
        add_counts(&mut self.depths, depths);
        self.other_schemes += other_schemes;
        self.uncounted += uncounted;
        add_counts(&mut self.changes, changes);
        self.ids.content += ids.content;
        self.ids.missing += ids.missing;
        self.ids.holes += ids.holes;
        self.ids.waiting += ids.waiting;
    }
}

fn add_counts<K: Ord + Copy>(sum: &mut BTreeMap<K, u64>, part: &BTreeMap<K, u64>) {
    for (kind, count) in part {
        *sum.entry(*kind).or_default() += count;
    }
}

impl CrawlStats {
    /// Error pages, URLs without an answer and pages that could not be parsed. A page that does not
    /// exist is no error in a linear crawl: looking for those that do is what it is for.
    pub fn errors(&self) -> u64 {
        self.failed + (self.pages - self.ok) + self.ids.holes + self.parse_failed()
    }

    /// Pages with a status of 2xx that could not be parsed.
    pub fn parse_failed(&self) -> u64 {
        self.failures.get(&Reason::ParseFailed).copied().unwrap_or(0)
    }
}
