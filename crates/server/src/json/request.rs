//! What users ask for. Unknown fields are refused: a misspelt limit would be no limit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A crawl to start: `urls` (or `sitemaps`) along links, or `linear` along numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"urls": ["https://example.org/"], "limits": {"max_pages": 100}}))]
pub struct NewCrawlBody {
    /// A name for people.
    pub name: Option<String>,
    /// Pages to start from.
    pub urls: Vec<String>,
    /// Sitemaps, feeds or lists to start from.
    pub sitemaps: Vec<String>,
    /// Numbered pages instead.
    pub linear: Option<LinearBody>,
    /// When it ends.
    pub limits: LimitsBody,
    /// Which links it follows.
    pub scope: ScopeBody,
    /// How it treats hosts.
    pub manners: MannersBody,
    /// What is kept of a page: `none`, `text`, `html` or `raw`.
    pub keep: Option<String>,
    /// Links with one of these words go first.
    pub topic: Vec<String>,
    /// Words to find it by.
    pub labels: BTreeMap<String, String>,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// Limits. 0 is none; what is not named is as the operator set it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsBody {
    /// Pages stored.
    pub max_pages: Option<u64>,
    /// Links away from a start URL.
    pub max_depth: Option<u16>,
    /// Seconds that it runs.
    pub max_duration_s: Option<u64>,
    /// Bytes received.
    pub max_bytes: Option<u64>,
    /// Failed URLs.
    pub max_errors: Option<u64>,
    /// URLs taken in for one host.
    pub max_per_host: Option<u64>,
    /// URLs taken in for one registrable domain.
    pub max_per_site: Option<u64>,
    /// Seconds that it waits for nothing but Retry-After; 0 is no limit.
    pub patience_s: Option<u64>,
    /// Bytes read of one body. Fixed once the crawl is accepted.
    pub max_body: Option<u64>,
}

/// Which links are followed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScopeBody {
    /// `page`, `prefix`, `host`, `domain` or `any`.
    pub kind: Option<String>,
    /// Where there are any, a URL must match one of them.
    pub include: Vec<String>,
    /// A URL must match none of them. To those of a crawl, these are added.
    pub exclude: Vec<String>,
    /// Hosts that are in scope besides the start URLs' own.
    pub allow_hosts: Vec<String>,
    /// Links followed beyond the scope.
    pub extra_hops: Option<u8>,
}

/// How hosts are treated.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MannersBody {
    /// Least time between the starts of two requests to one host.
    pub delay_ms: Option<u64>,
    /// Most requests under way at one host.
    pub per_host: Option<u16>,
    /// Most requests under way in all.
    pub workers: Option<u16>,
    /// Most requests in a second; 0 is no limit.
    pub rate_per_s: Option<f64>,
    /// Whether a host that struggles is asked less often.
    pub adaptive: Option<bool>,
    /// `equal`, `weighted` or `none`.
    pub fairness: Option<String>,
}

/// Numbered pages.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"template": "https://example.org/item/{id}", "from": 1, "to": 100}))]
pub struct LinearBody {
    /// A URL with `{id}`.
    pub template: Option<String>,
    /// Several of them, which take turns.
    pub templates: Vec<String>,
    /// The lowest id; the same as `min`.
    pub from: Option<u64>,
    /// The highest id; the same as `max`.
    pub to: Option<u64>,
    /// The lowest id.
    pub min: Option<u64>,
    /// The highest id.
    pub max: Option<u64>,
    /// The first id that is asked.
    pub start: Option<u64>,
    /// `ascending` or `descending`; both ways from `start` if it is not said.
    pub direction: Option<String>,
    /// Only these: ids and ranges `10-20`, one per line.
    pub ids: Option<String>,
    /// From one id to the next.
    pub step: Option<u64>,
    /// Missing ids in a row after which a direction stops; 0 is never.
    pub margin: Option<u64>,
    /// How often an id is asked that fails.
    pub attempts: Option<u8>,
    /// Seconds from a failure to the next attempt.
    pub cooldown_s: Option<u64>,
    /// How many ids each direction asks in its turn.
    pub rate: Option<RatesBody>,
    /// What counts as missing: `404,410,empty,RX:"no data"`. Patterns look at the first 64 KiB of a page's
    /// text.
    pub missing: Option<String>,
    /// How far the links of its pages are followed, if they are: `prefix`, `host`, `domain` or `any`.
    pub follow: Option<String>,
}

/// How many ids each direction asks in its turn.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RatesBody {
    /// Upwards.
    #[serde(default = "one")]
    pub asc: u32,
    /// Downwards.
    #[serde(default = "one")]
    pub desc: u32,
}

fn one() -> u32 {
    1
}

/// What becomes other about a crawl. What is not named stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"manners": {"delay_ms": 2000}, "exclude": ["/archive/"]}))]
pub struct ChangeBody {
    /// Limits; `max_body` cannot change.
    pub limits: LimitsBody,
    /// Manners.
    pub manners: MannersBody,
    /// Exclusions that are added.
    pub exclude: Vec<String>,
}

/// One page to fetch.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"url": "https://example.org/"}))]
pub struct FetchBody {
    /// Its URL.
    pub url: String,
}

/// A site whose URLs are listed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"url": "https://example.org/", "limit": 100}))]
pub struct MapBody {
    /// One of its pages.
    pub url: String,
    /// How many URLs, at most.
    #[serde(default = "map_limit")]
    pub limit: usize,
}

fn map_limit() -> usize {
    1000
}
