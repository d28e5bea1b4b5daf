//! What users ask for, field by field: the JSON of the API and of the control socket. Unknown fields are refused: a
//! misspelt limit would be no limit. What is not named is as the defaults say.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use telusur_model::Resume;
use utoipa::ToSchema;

/// A crawl to start: `urls` (or `sitemaps`) along links, or `linear` along numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"urls": ["https://example.org/"], "limits": {"max_pages": 100}}))]
pub struct CrawlRequest {
    /// A name for people.
    pub name: Option<String>,
    /// Pages to start from.
    pub urls: Vec<String>,
    /// Sitemaps, feeds or lists to start from.
    pub sitemaps: Vec<String>,
    /// Whether the sitemaps that robots.txt names are read, or `/sitemap.xml` where it names none.
    pub discover_sitemaps: Option<bool>,
    /// Numbered pages instead.
    pub linear: Option<LinearRequest>,
    /// When it ends.
    pub limits: LimitsRequest,
    /// Which links it follows.
    pub scope: ScopeRequest,
    /// How it treats hosts.
    #[serde(alias = "manners")]
    pub politeness: PolitenessRequest,
    /// How it asks.
    pub fetch: FetchRequest,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsRequest {
    /// Pages stored.
    pub max_pages: Option<u64>,
    /// Links away from a start URL.
    pub max_depth: Option<u16>,
    /// Seconds that it runs.
    pub max_duration_s: Option<f64>,
    /// Bytes received.
    pub max_bytes: Option<u64>,
    /// Failed URLs.
    pub max_errors: Option<u64>,
    /// URLs admitted for one host.
    pub max_per_host: Option<u64>,
    /// URLs admitted for one registrable domain.
    pub max_per_site: Option<u64>,
    /// Seconds that it waits for nothing but Retry-After; 0 is no limit.
    pub patience_s: Option<f64>,
    /// Bytes read of one body. Fixed once the crawl is accepted.
    pub max_body: Option<u64>,
    /// Bytes of free disk space below which it pauses.
    pub min_free_disk: Option<u64>,
}

/// Which links are followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScopeRequest {
    /// `page`, `prefix`, `host`, `domain` or `any`.
    pub kind: Option<String>,
    /// Where there are any, a URL must match one of them.
    pub include: Vec<String>,
    /// A URL must match none of them. They are added to the default exclusions.
    pub exclude: Vec<String>,
    /// `false` leaves the default exclusions out. The owner's choice only.
    pub default_exclude: Option<bool>,
    /// Hosts that are in scope besides the start URLs' own.
    pub allow_hosts: Vec<String>,
    /// Links followed beyond the scope.
    pub extra_hops: Option<u8>,
    /// The part of a link after `?`: `keep`, `drop` or `drop=name,name`.
    pub query_params: Option<String>,
    /// Whether `utm_source` and other tracking parameters make two URLs different pages.
    pub keep_tracking: Option<bool>,
}

/// How hosts are treated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PolitenessRequest {
    /// Least time between the starts of two requests to one host.
    pub delay_ms: Option<u64>,
    /// Most requests in flight at one host.
    pub per_host: Option<u16>,
    /// Most requests in flight in all.
    pub workers: Option<u16>,
    /// Most requests in a second; 0 is no limit.
    pub rate_per_s: Option<f64>,
    /// Whether a host that struggles is asked less often.
    pub adaptive: Option<bool>,
    /// `equal`, `weighted` or `none`.
    pub fairness: Option<String>,
    /// Further attempts at a URL after a failure that may pass.
    pub retries: Option<u8>,
    /// Most that robots.txt or 429 answers can slow the crawl down.
    pub crawl_delay_max_ms: Option<u64>,
    /// What robots.txt means: `obey`, `unreachable_allows` or `ignore`. To ignore it is the owner's choice only.
    pub robots: Option<String>,
    /// Whether links marked `rel=nofollow` are left alone.
    pub nofollow: Option<bool>,
}

/// How pages are asked for.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FetchRequest {
    /// The `User-Agent` header. The owner's choice only.
    pub user_agent: Option<String>,
    /// Longest that one visit may take.
    pub timeout_ms: Option<u64>,
    /// Redirects followed one after the other.
    pub max_redirects: Option<u8>,
    /// Version of HTTP: `auto`, `1` or `2`.
    pub http: Option<String>,
    /// Whether cookies that a site sets are sent back to it.
    pub cookies: Option<bool>,
    /// Cookies to begin with: the text of a `cookies.txt` file.
    pub cookies_txt: Option<String>,
    /// Extra headers, names and values, sent to the origins of the start URLs only. A name that begins with an
    /// origin, `https://example.org=Authorization`, goes to that origin only.
    #[schema(value_type = Vec<Vec<String>>)]
    pub headers: Vec<(String, String)>,
    /// Logins.
    pub basic_auth: Vec<LoginRequest>,
    /// Ask through this proxy: `http://host:3128` or `socks5://host:1080`. The owner's choice only.
    pub proxy: Option<String>,
    /// Addresses that are asked although they are not public: `10.1.2.0/24`, `localhost:8080`. The owner's choice
    /// only.
    pub allow_private: Vec<String>,
    /// Hosts whose TLS certificates are not verified. The owner's choice only.
    pub insecure_hosts: Vec<String>,
}

/// May hold secrets, which no message repeats.
impl std::fmt::Debug for FetchRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FetchRequest").finish_non_exhaustive()
    }
}

/// A user name and password for one host.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginRequest {
    /// The host, `example.org` or `example.org:8080`, or an origin `https://example.org`.
    pub host: String,
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

/// Numbered pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"template": "https://example.org/item/{id}", "from": 1, "to": 100}))]
pub struct LinearRequest {
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
    pub cooldown_s: Option<f64>,
    /// How many ids each direction asks in its turn.
    pub rate: Option<RatesRequest>,
    /// The same for each template, in their order; then `rate` means nothing.
    pub rates: Vec<RatesRequest>,
    /// What counts as missing: `404,410,empty,RX:"no data"`. Patterns look at the first 64 KiB of a page's
    /// text.
    pub missing: Option<String>,
    /// How far the links of its pages are followed, if they are: `prefix`, `host`, `domain` or `any`.
    pub follow: Option<String>,
    /// What is done about the ids of an earlier run: `all`, `new` or `holes`.
    #[schema(value_type = Option<String>)]
    pub resume: Option<Resume>,
}

/// How many ids each direction asks in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RatesRequest {
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

/// What is changed about a crawl. What is not named stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"politeness": {"delay_ms": 2000}, "exclude": ["/archive/"]}))]
pub struct ChangeRequest {
    /// Limits; `max_body` cannot change.
    pub limits: LimitsRequest,
    /// How it treats hosts.
    #[serde(alias = "manners")]
    pub politeness: PolitenessRequest,
    /// Exclusions that are added.
    pub exclude: Vec<String>,
}

impl ChangeRequest {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
