//! Why a URL was crawled or not.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{HostView, PageView};

/// What one crawl knows of a URL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExplanationView {
    /// The crawl's id.
    pub crawl: String,
    /// Its alias.
    pub alias: String,
    /// Its name.
    pub name: Option<String>,
    /// The URL as asked.
    pub url: String,
    /// The form by which it is told apart.
    pub normal_form: String,
    /// `unknown`, `queued`, `page`, `sitemap`, `redirected`, `failed` or `skipped`.
    pub state: String,
    /// What is known of it.
    pub known: Option<KnownUrlView>,
    /// The stored page.
    pub page: Option<PageView>,
    /// What is known of it as a sitemap, if it is one.
    pub sitemap: Option<KnownUrlView>,
    /// Whether the rules of the crawl would let it be followed.
    pub admitted: bool,
    /// The rule that decides.
    pub rule: String,
    /// Why it would not be followed.
    pub reason: Option<String>,
    /// What its robots.txt says, if it was read.
    pub robots: Option<RobotsView>,
    /// What is known of its host.
    pub host: Option<HostView>,
    /// Its id, if it is one of a linear crawl.
    pub id: Option<IdView>,
    /// Why its host is not asked at present, if it is parked.
    pub parked: Option<String>,
}

/// What a crawl knows of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KnownUrlView {
    /// The URL as found.
    pub url: String,
    /// `queued`, `page`, `sitemap`, `redirected`, `failed` or `skipped`.
    pub state: String,
    /// How it was found: `seed`, `link`, `redirect`, `sitemap` or `linear`.
    pub via: String,
    /// The page or sitemap that it was found on.
    pub referrer: Option<String>,
    /// The URLs that redirected to it.
    pub redirects: Vec<String>,
    /// Links away from a start URL.
    pub depth: u16,
    /// When it was found.
    pub found_at: String,
    /// When it was changed, as a sitemap says.
    pub lastmod: Option<String>,
    /// When it came to its state; `null` where that is not recorded.
    pub at: Option<String>,
    /// Of one that waits, the attempt that comes next, from 1; of a failed one, the attempts made.
    pub attempts: Option<u8>,
    /// Why it failed, why its last attempt did, or why it was never asked for.
    pub reason: Option<String>,
    /// What exactly went wrong; of a sitemap, why it was not read to its end.
    pub detail: Option<String>,
    /// The rule by which it was never asked for.
    pub rule: Option<String>,
    /// The redirecting status.
    pub status: Option<u16>,
    /// Where it redirects to.
    pub to: Option<String>,
    /// Entries of a sitemap that were followed up.
    pub entries: Option<u32>,
    /// Entries of a sitemap that were left out.
    pub dropped: Option<u64>,
}

/// What is known of an id of a linear crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IdView {
    /// The template that it belongs to.
    pub template: String,
    /// The id.
    pub id: u64,
    /// `content`, `missing`, `hole` or `waiting`; `null` if it was not asked yet.
    pub state: Option<String>,
    /// Failed attempts of one that is asked again.
    pub attempts: Option<u8>,
    /// Why, if it failed.
    pub reason: Option<String>,
    /// Whether it is between the bounds.
    pub is_within: bool,
}

/// What a robots.txt says about a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RobotsView {
    /// Whether it may be asked for.
    pub allowed: bool,
    /// The line that decides, or why there is none.
    pub rule: Option<String>,
    /// When it was read.
    pub asked_at: String,
}
