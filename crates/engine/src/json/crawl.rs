//! A crawl, as it is shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A crawl.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CrawlView {
    /// Its name everywhere.
    pub id: String,
    /// Its name here: `crawl_N`. Accepted wherever the id is.
    pub alias: String,
    /// The name that the user gave it.
    pub name: Option<String>,
    /// `queued`, `running`, `paused`, `stopped`, `completed` or `failed`.
    pub state: String,
    /// `bfs` along links, or `linear` along numbers.
    pub kind: String,
    /// When it was accepted.
    pub created_at: String,
    /// When its state last changed.
    pub state_since: String,
    /// When it ended; `null` while it has not.
    pub ended_at: Option<String>,
    /// Where it starts: URLs or templates, the first of them.
    pub seeds: Vec<String>,
    /// How many of them there are.
    pub seeds_total: u64,
    /// When it ends by itself. 0 is no limit.
    pub limits: LimitsView,
    /// How it treats the hosts it asks.
    pub manners: MannersView,
    /// Which links it follows.
    pub scope: ScopeView,
    /// What is kept of a page: `none`, `text`, `html` or `raw`.
    pub keep: String,
    /// What the user wrote on it.
    pub labels: BTreeMap<String, String>,
    /// Its counters. They never fall below what was shown.
    pub stats: StatsView,
    /// Why it is over.
    pub finish_reason: Option<String>,
    /// Why it waits.
    pub pause_reason: Option<String>,
    /// The same in a sentence, where there is more to say: what ended the engine.
    pub pause_detail: Option<String>,
    /// What is worth a second look about the request.
    pub warnings: Vec<String>,
    /// Where there is more.
    pub links: CrawlLinks,
}

/// When a crawl ends by itself. 0 is no limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LimitsView {
    /// Pages stored.
    pub max_pages: u64,
    /// Links away from a start URL.
    pub max_depth: u64,
    /// Seconds that it runs.
    pub max_duration_s: u64,
    /// Bytes received.
    pub max_bytes: u64,
    /// Failed URLs.
    pub max_errors: u64,
    /// URLs taken in for one host.
    pub max_per_host: u64,
    /// URLs taken in for one registrable domain.
    pub max_per_site: u64,
    /// Seconds that it waits for nothing but Retry-After; 0 is no limit.
    pub patience_s: u64,
    /// Bytes read of one body.
    pub max_body: u64,
}

/// How hosts are treated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MannersView {
    /// Least time between the starts of two requests to one host.
    pub delay_ms: u64,
    /// Most requests under way at one host.
    pub per_host: u64,
    /// Most requests under way in all.
    pub workers: u64,
    /// Most requests in a second; `null` is no limit.
    pub rate_per_s: Option<f64>,
    /// Whether a host that struggles is asked less often.
    pub adaptive: bool,
    /// How sites share the crawl: `equal`, `weighted` or `none`.
    pub fairness: String,
    /// What robots.txt means: `obey`, `unreachable_allows` or `ignore`.
    pub robots: String,
}

/// Which links are followed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScopeView {
    /// `page`, `prefix`, `host`, `domain` or `any`.
    pub kind: String,
    /// Where there are any, a URL must match one of them.
    pub include: Vec<String>,
    /// A URL must match none of them.
    pub exclude: Vec<String>,
    /// Hosts that are in scope besides the start URLs' own.
    pub allow_hosts: Vec<String>,
}

/// The counters of a crawl.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatsView {
    /// URLs known.
    pub discovered: u64,
    /// Answers stored as pages, error pages included.
    pub fetched: u64,
    /// Pages with a status of 2xx.
    pub ok: u64,
    /// URLs that redirect.
    pub redirected: u64,
    /// URLs without an answer.
    pub failed: u64,
    /// URLs never asked for.
    pub skipped: u64,
    /// URLs that wait, or are under way.
    pub queued: u64,
    /// Requests under way.
    pub in_flight: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Pages per second over the last seconds.
    pub pages_per_s: f64,
    /// Seconds left, where a guess is possible.
    pub eta_s: Option<u64>,
    /// Seconds that the crawl has run.
    pub active_s: f64,
    /// Jain's index over the pages of all sites: 1 is perfectly even.
    pub fairness_index: f64,
    /// Answers by status.
    pub status_codes: BTreeMap<String, u64>,
    /// Failures by reason; `parse_failed` counts pages that are stored and could not be parsed.
    pub failures: BTreeMap<String, u64>,
    /// Skipped URLs by reason.
    pub skips: BTreeMap<String, u64>,
    /// The budgets that were reached, and what they left out.
    pub left_out: Vec<LeftOutView>,
    /// Pages by their distance from a start URL.
    pub depths: BTreeMap<String, u64>,
    /// The most served sites.
    pub sites: Vec<SiteView>,
    /// How many sites there are.
    pub sites_total: u64,
    /// The most served hosts; only where one crawl is asked for.
    pub hosts: Vec<HostStats>,
    /// Nothing answers any more, on any host: the fault may be on this side.
    pub suspects_network: bool,
    /// Nothing can be asked for this many seconds, because every host that is left said so with
    /// Retry-After; `null` if the crawl does not wait for that.
    pub retry_after_s: Option<u64>,
    /// Pages of all running crawls that are stored and cannot be found yet.
    pub index_lag: u64,
}

/// Links that a budget left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LeftOutView {
    /// The budget: `host_budget`, `site_budget` or `trap_suspected`.
    pub reason: String,
    /// URLs that were left out.
    pub urls: u64,
    /// There may be more of them: ids of a walk whose end nobody knows.
    pub at_least: bool,
    /// The flag of the command line that lets them in: of `telusur resume` for `host_budget` and
    /// `site_budget`, which are `max_per_host` and `max_per_site` here; of a new crawl for
    /// `trap_suspected`.
    pub flag: String,
}

/// A site's share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SiteView {
    /// The registrable domain.
    pub site: String,
    /// Its pages.
    pub fetched: u64,
}

/// A host's share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostStats {
    /// Its name.
    pub host: String,
    /// Its pages.
    pub fetched: u64,
    /// URLs that wait.
    pub queued: u64,
    /// The delay that it is asked with.
    pub delay_ms: u64,
    /// `ok`, or `slowed` if it taught the crawl a longer delay.
    pub state: String,
}

/// Where there is more about a crawl.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[expect(missing_docs, reason = "each is the route of its name")]
pub struct CrawlLinks {
    #[serde(rename = "self")]
    pub this: String,
    pub pages: String,
    pub errors: String,
    pub skipped: String,
    pub hosts: String,
    pub frontier: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<String>,
    pub events: String,
    pub export: String,
}
