//! [`Crawl`]: what a user asked for, fixed once it is accepted.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::words;
use crate::{FetchRules, PageUrl, Resume, ScopeRules, Timestamp, Walk};

/// A crawl's number in its data directory, counting from 1; people write it `crawl_N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CrawlNo(pub u32);

impl fmt::Display for CrawlNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "crawl_{}", self.0)
    }
}

/// A crawl's name for the outside world, unique everywhere: `c_` and 26 characters that sort by
/// time of creation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CrawlId(String);

impl CrawlId {
    /// An id from the time of creation and 80 random bits, written as a ULID.
    pub fn new(created_at: Timestamp, random: u128) -> Self {
        const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
        let bits = u128::from(created_at.0) << 80 | random & ((1 << 80) - 1);
        let digits = (0..26).rev().map(|place| {
            let digit = (bits >> (place * 5)) & 31;
            char::from(CROCKFORD[usize::try_from(digit).expect("five bits")])
        });
        Self(format!("c_{}", digits.collect::<String>()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CrawlId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the user asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crawl {
    /// Its number here.
    pub no: CrawlNo,
    /// Its name everywhere.
    pub id: CrawlId,
    /// The name that the user gave it.
    pub name: Option<String>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// Where it starts.
    pub seeds: Seeds,
    /// Which links it follows.
    pub scope: ScopeRules,
    /// How it treats the hosts it asks.
    pub politeness: Politeness,
    /// When it ends.
    pub limits: Limits,
    /// How it asks.
    pub fetch: FetchRules,
    /// What is kept of a page.
    pub keep: Keep,
    /// Links whose anchor or address holds one of these words go first within their host.
    pub topic: Vec<String>,
    /// Whether tracking parameters make two URLs different pages.
    pub keep_tracking: bool,
    /// Which sitemaps are read.
    #[serde(default)]
    pub sitemaps: SitemapRules,
    /// The crawl whose pages this one looks at again.
    #[serde(default)]
    pub recrawl_of: Option<CrawlNo>,
    /// What the user wrote on it, to find it by.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

impl Crawl {
    /// Where the crawl is at home: its start pages, and the sitemaps that the user named. Of a
    /// linear crawl one page of each template tells that as well as all of them.
    pub fn home(&self) -> Vec<PageUrl> {
        let templates = self.seeds.walks().iter().map(|walk| walk.rules().template.url_of(0));
        let named = self.seeds.urls().iter().chain(&self.sitemaps.urls).cloned();
        named.chain(templates).collect()
    }

    /// Whether its documents come from a file: there is nothing that it could fetch.
    pub fn is_import(&self) -> bool {
        self.seeds.urls().is_empty()
            && self.seeds.linear().is_none()
            && self.sitemaps.urls.is_empty()
    }

    /// Whether the links of its pages are followed.
    pub fn follows_links(&self) -> bool {
        self.seeds.linear().is_none_or(|linear| linear.follow)
    }
}

/// Which sitemaps are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SitemapRules {
    /// Whether those that robots.txt names are read, or `/sitemap.xml` where it names none.
    pub discover: bool,
    /// Those that the user named.
    pub urls: Vec<PageUrl>,
}

impl Default for SitemapRules {
    fn default() -> Self {
        Self { discover: true, urls: Vec::new() }
    }
}

/// What robots.txt means to a crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RobotsRules {
    /// It is obeyed; where it cannot be read, nothing is asked (RFC 9309).
    #[default]
    Obey,
    /// It is obeyed; where it cannot be read, everything is allowed.
    UnreachableAllows,
    /// It is not read.
    Ignore,
}

words! { RobotsRules { Obey = "obey", UnreachableAllows = "unreachable_allows", Ignore = "ignore" } }

/// Where a crawl starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seeds {
    /// From these pages, along their links.
    Links(Vec<PageUrl>),
    /// From the ids of templates, one after the other.
    Linear(LinearSeeds),
}

/// The ids of a linear crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinearSeeds {
    /// Which ids of which templates. Their number is part of the place of what is stored, so walks
    /// are neither reordered nor taken away.
    #[serde(with = "crate::linear::stored_walks")]
    pub walks: Vec<Walk>,
    /// What this run does about an earlier one.
    pub resume: Resume,
    /// Whether the links of its pages are followed, too.
    pub follow: bool,
}

impl Seeds {
    /// The URLs that are asked first.
    pub fn urls(&self) -> &[PageUrl] {
        match self {
            Self::Links(urls) => urls,
            Self::Linear(_) => &[],
        }
    }

    /// The start URLs and templates, as text.
    pub fn texts(&self) -> Vec<String> {
        let urls = self.urls().iter().map(ToString::to_string);
        urls.chain(self.walks().iter().map(|walk| walk.rules().template.to_string())).collect()
    }

    /// The ids, if it is a linear crawl.
    pub fn linear(&self) -> Option<&LinearSeeds> {
        match self {
            Self::Links(_) => None,
            Self::Linear(linear) => Some(linear),
        }
    }

    /// The walks; none if it is not a linear crawl.
    pub fn walks(&self) -> &[Walk] {
        self.linear().map_or(&[], |linear| linear.walks.as_slice())
    }
}

/// How hosts are treated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Politeness {
    /// Least time between the starts of two requests to one host, and to one address.
    pub delay_ms: u64,
    /// Most requests under way at one host.
    pub per_host: u16,
    /// Most requests under way in the whole crawl.
    pub workers: u16,
    /// Most requests that the whole crawl starts in a second.
    pub rate_per_second: Option<f64>,
    /// Whether a host that struggles (429, 503, slow answers) is asked less often.
    pub adaptive: bool,
    /// How sites share the crawl.
    pub fairness: Fairness,
    /// Most that a crawl-delay of robots.txt can slow us down.
    pub crawl_delay_max_ms: u64,
    /// Attempts at a URL whose fetch failed in a way that may pass.
    pub attempts_max: u8,
    /// What robots.txt means.
    #[serde(default)]
    pub robots: RobotsRules,
    /// Whether links marked `rel=nofollow` are left alone.
    #[serde(default)]
    pub obey_rel_nofollow: bool,
    /// Requests that may wait for a silent server besides the [`workers`](Self::workers).
    #[serde(default)]
    pub silent_max: u16,
}

impl Default for Politeness {
    fn default() -> Self {
        Self {
            delay_ms: 1000,
            per_host: 1,
            workers: 32,
            rate_per_second: None,
            adaptive: true,
            fairness: Fairness::Equal,
            crawl_delay_max_ms: 60_000,
            attempts_max: 3,
            robots: RobotsRules::Obey,
            obey_rel_nofollow: false,
            silent_max: 480,
        }
    }
}

/// How sites share a crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fairness {
    /// Sites advance together: none gets far ahead of the others.
    #[default]
    Equal,
    /// The least served site goes first, but nobody waits for a slower one.
    Weighted,
    /// First come, first served.
    None,
}

words! { Fairness { Equal = "equal", Weighted = "weighted", None = "none" } }

/// When a crawl ends by itself. Zero and `None` mean no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Pages stored.
    pub pages_max: Option<u64>,
    /// Links away from a seed.
    pub depth_max: Option<u16>,
    /// Time that the crawl has run, in milliseconds.
    pub duration_ms_max: Option<u64>,
    /// Bytes received.
    pub bytes_max: Option<u64>,
    /// URLs taken in for one host; beyond it a trap is suspected.
    pub urls_per_host_max: u64,
    /// URLs taken in for one site.
    pub urls_per_site_max: u64,
    /// Decoded bytes of one body that are read.
    pub body_bytes_max: u64,
    /// Failed URLs after which the crawl is ended.
    pub errors_max: Option<u64>,
    /// Longest that a crawl waits for nothing but `Retry-After`, in milliseconds.
    #[serde(default = "patience_ms_default")]
    pub patience_ms: u64,
    /// Ids asked for on one host of a linear crawl.
    #[serde(default)]
    pub ids_per_host_max: Option<u64>,
    /// Space on the disk below which it pauses, if the user named it for this crawl.
    #[serde(default)]
    pub free_bytes_min: Option<u64>,
}

/// Ten minutes: a server that restarts is back by then, and one that names hours is left alone.
fn patience_ms_default() -> u64 {
    600_000
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pages_max: None,
            depth_max: None,
            duration_ms_max: None,
            bytes_max: None,
            urls_per_host_max: 10_000,
            urls_per_site_max: 50_000,
            body_bytes_max: 1 << 20,
            errors_max: None,
            patience_ms: patience_ms_default(),
            ids_per_host_max: None,
            free_bytes_min: None,
        }
    }
}

/// What is kept of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// The record alone.
    None,
    /// The record and what was extracted.
    Text,
    /// Also the body of pages that are parsed.
    #[default]
    Html,
    /// Also the bodies of everything else.
    Raw,
}

words! { Keep { None = "none", Text = "text", Html = "html", Raw = "raw" } }

/// What a crawl is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum CrawlState {
    /// It runs, or goes on at the next start.
    Running,
    /// It waits for `resume`.
    Paused {
        /// Who or what paused it.
        why: PauseReason,
    },
    /// It is over.
    Finished {
        /// Why it is over.
        why: FinishReason,
    },
}

impl CrawlState {
    /// One word: `running`, `paused`, `stopped`, `completed`, `failed`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused { .. } => "paused",
            Self::Finished { why: FinishReason::Stopped } => "stopped",
            Self::Finished { why: FinishReason::NoStart } => "failed",
            Self::Finished { .. } => "completed",
        }
    }
}

/// Why a crawl waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// The user asked for it.
    // Linear crawls were once paused when they had no patience left.
    #[serde(alias = "retry_after")]
    Asked,
    /// Less space is left than the limit.
    DiskFull,
    /// Nothing at all could be reached any more.
    NoNetwork,
    /// Id after id may not be asked: robots.txt forbids it, or cannot be read.
    Refused,
    /// It stopped the engine twice in a row, or what is stored of it cannot be read or written: only `resume`
    /// starts it again.
    EngineStopped,
    /// It is an import that did not come to its end: it can be imported again, not resumed.
    Import,
}

impl PauseReason {
    /// Whether the crawl goes on without being told, when the cause is gone.
    pub fn passes(self) -> bool {
        match self {
            Self::DiskFull | Self::NoNetwork => true,
            Self::Asked | Self::Refused | Self::EngineStopped | Self::Import => false,
        }
    }
}

/// What is known of a crawl that ended the engine, until it has run without doing so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineFault {
    /// How often in a row; 0: not yet, or it cannot even be started.
    pub times: u32,
    /// By what, the last time.
    pub why: String,
    /// Whether it alone can have been the cause. Else others ran as well, and each of them is tried
    /// by itself.
    pub is_certain: bool,
}

impl EngineFault {
    /// In a sentence: `stopped the engine twice: …`.
    pub fn text(&self) -> String {
        let often = match self.times {
            0 => return format!("cannot run: {}", self.why),
            1 => "once".to_owned(),
            2 => "twice".to_owned(),
            times => format!("{times} times"),
        };
        format!("stopped the engine {often}: {}", self.why)
    }
}

/// Why a crawl is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// Every URL in scope has its answer.
    Drained,
    /// The page limit was reached.
    MaxPages,
    /// The time limit was reached.
    MaxDuration,
    /// The byte limit was reached.
    MaxBytes,
    /// The error limit was reached.
    MaxErrors,
    /// The user stopped it.
    Stopped,
    /// No start URL could be fetched.
    NoStart,
    /// Nothing is left but links or ids that a budget left out.
    Budget,
    /// Every host that has ids left asked us to wait for longer than the crawl has patience.
    RetryAfter,
}

impl FinishReason {
    /// One phrase for people.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Drained => "nothing left to fetch",
            Self::MaxPages => "page limit reached",
            Self::MaxDuration => "time limit reached",
            Self::MaxBytes => "byte limit reached",
            Self::MaxErrors => "error limit reached",
            Self::Stopped => "stopped",
            Self::NoStart => "no start URL could be fetched",
            Self::Budget => "budget reached, URLs were left out",
            Self::RetryAfter => "every host that is left asks us to wait",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time() {
        let early = CrawlId::new(Timestamp(1_000), u128::MAX);
        let late = CrawlId::new(Timestamp(1_001), 0);
        assert!(early < late);
        assert_eq!(late.as_str().len(), 28);
    }

    #[test]
    fn numbers_are_written_as_the_first_service_wrote_them() {
        assert_eq!(CrawlNo(7).to_string(), "crawl_7");
    }
}
