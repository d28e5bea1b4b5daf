//! [`UrlRecord`]: everything known about one URL of a crawl. It is in exactly one [`UrlState`].

use serde::{Deserialize, Serialize};
use telusur_model::{QueuePlace, Reason, Timestamp, Via};

/// Everything known about one URL of a crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlRecord {
    /// The URL as found.
    pub url: String,
    /// Links away from a seed.
    pub depth: u16,
    /// How it was found.
    pub via: Via,
    /// When it was found.
    pub found_at: Timestamp,
    /// The page that it was found on.
    pub referrer: Option<String>,
    /// The URLs that redirected here, first to last.
    pub redirects: Vec<String>,
    /// When the page was changed, as a sitemap says.
    pub lastmod: Option<Timestamp>,
    /// Its state.
    pub state: UrlState,
}

/// The state of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UrlState {
    /// It waits, or is under way.
    Queued {
        /// Where it stands.
        place: QueuePlace,
        /// The attempt that comes next, from 1.
        attempt: u8,
        /// What went wrong at the last attempt.
        last_failure: Option<Reason>,
    },
    /// Its answer is stored as a page.
    Page {
        /// The page's place in the crawl's order.
        seq: u64,
    },
    /// It is a sitemap.
    Sitemap {
        /// Entries that were followed up.
        entries: u32,
        /// Entries that were left out.
        dropped: u64,
        /// Why it was not read, or not to its end.
        trouble: Option<String>,
        /// When it was asked for.
        at: Timestamp,
    },
    /// It redirects.
    Redirected {
        /// The redirecting status.
        status: u16,
        /// Where to.
        to: String,
        /// When it said so.
        at: Timestamp,
    },
    /// There was no answer.
    Failed {
        /// Why.
        reason: Reason,
        /// What exactly.
        detail: String,
        /// Attempts made.
        attempts: u8,
        /// When the last one ended.
        at: Timestamp,
    },
    /// It was never asked for.
    Skipped {
        /// Why.
        reason: Reason,
        /// By which rule.
        rule: String,
    },
}

impl UrlState {
    /// The stable word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Queued { .. } => "queued",
            Self::Page { .. } => "page",
            Self::Sitemap { .. } => "sitemap",
            Self::Redirected { .. } => "redirected",
            Self::Failed { .. } => "failed",
            Self::Skipped { .. } => "skipped",
        }
    }
}
