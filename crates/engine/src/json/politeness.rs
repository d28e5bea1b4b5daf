//! What was asked of a host, and by which rules.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Everything about one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolitenessView {
    /// The host.
    pub host: String,
    /// Its robots.txt files, as they were read.
    pub origins: Vec<RobotsFileView>,
    /// The crawls that asked it.
    pub crawls: Vec<HostHistoryView>,
}

/// One robots.txt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RobotsFileView {
    /// Whose it is.
    pub origin: String,
    /// When it was asked for.
    pub asked_at: String,
    /// The URLs that redirected to it.
    pub redirects: Vec<String>,
    /// What came of it, in words.
    pub said: String,
    /// The lines that concern us.
    pub rules: Vec<String>,
    /// The delay that it asks for.
    pub crawl_delay_ms: Option<u64>,
    /// Its `Content-Signal` lines.
    pub content_signals: Vec<String>,
    /// Its `Sitemap` lines.
    pub sitemaps: Vec<String>,
}

/// How one crawl treated the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostHistoryView {
    /// The crawl's id.
    pub crawl: String,
    /// Its alias.
    pub alias: String,
    /// How it named itself.
    pub user_agent: String,
    /// What robots.txt meant to it: `obey`, `unreachable_allows` or `ignore`.
    pub robots: String,
    /// The least time between two requests that it was told to keep.
    pub delay_ms: u64,
    /// The longer one that the host taught it or asks for.
    pub learned_delay_ms: Option<u64>,
    /// Requests sent, those for robots.txt included.
    pub requests: u64,
    /// When the first was sent.
    pub first_request_at: Option<String>,
    /// When the last was sent.
    pub last_request_at: Option<String>,
    /// The shortest time between two of them.
    pub gap_ms_min: Option<u64>,
    /// How long the others were.
    pub gaps: Vec<GapView>,
    /// Pages stored.
    pub fetched: u64,
    /// Failures and error pages.
    pub errors: u64,
    /// The latest requests for pages, the youngest first.
    pub recent: Vec<RecentRequestView>,
}

/// How many requests followed the one before them after less than a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GapView {
    /// Less than this, and not less than that of the row before; `null` is longer than all.
    pub below_ms: Option<u64>,
    /// How many.
    pub count: u64,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecentRequestView {
    /// When it was sent.
    pub at: String,
    /// What was asked for.
    pub url: String,
    /// What came of it: a status or a reason.
    pub outcome: String,
}
