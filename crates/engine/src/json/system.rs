//! Keys, health and totals.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether the service works.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HealthView {
    /// `ok`, or `degraded` if something that it can do without for a while does not work.
    pub status: String,
    /// That indexing is behind, if it fails, and to keys with the scope `read` also why: what is crawled
    /// meanwhile is found later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indexing: Option<String>,
    /// The same of whatever else is derived from pages, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub followers: BTreeMap<String, String>,
    /// That stored data is damaged, if that was found; `/api/v1/stats` says what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// Something that is derived from pages, such as the search index.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FollowerView {
    /// Which: `index` is the search index.
    pub name: String,
    /// Pages that are stored and that it does not have yet.
    pub lag: u64,
    /// Why it is behind, if it fails. It is tried again by itself.
    pub trouble: Option<String>,
    /// Since when it fails.
    pub trouble_since: Option<String>,
}

/// Totals over everything.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StatsOfAll {
    /// The version of the program.
    pub version: String,
    /// Seconds since the service started.
    pub uptime_s: u64,
    /// Crawls by state.
    pub crawls: BTreeMap<String, u64>,
    /// Pages stored.
    pub pages: u64,
    /// URLs that wait.
    pub queued: u64,
    /// Pages that can be found by searching.
    pub indexed: u64,
    /// Pages per second, all crawls together.
    pub pages_per_s: f64,
    /// Bytes of the search index.
    pub index_bytes: u64,
    /// Pages that are stored and cannot be found yet.
    pub index_lag: u64,
    /// Why indexing is behind, if it fails. It is tried again by itself.
    pub index_trouble: Option<String>,
    /// Since when it fails.
    pub index_trouble_since: Option<String>,
    /// Whatever is derived from pages: the search index, and others.
    pub followers: Vec<FollowerView>,
    /// Bytes left on the disk, where that is known.
    pub free_bytes: Option<u64>,
    /// How far everything that is stored was read to find damage; nothing if that was never done.
    pub scrub: Option<ScrubView>,
}

/// What reading everything that is stored has found.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScrubView {
    /// When it began.
    pub started_at: String,
    /// When it came to the end; nothing while it goes on.
    pub ended_at: Option<String>,
    /// Bytes read.
    pub bytes: u64,
    /// Pages whose bodies were read.
    pub pages: u64,
    /// Things that are damaged.
    pub damaged: u64,
    /// The first of them.
    pub found: Vec<String>,
}

/// What failed is asked again.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RetriedView {
    /// How many URLs or ids.
    pub retried: u64,
    /// The state of the crawl.
    pub state: String,
}

/// A key to make.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "dashboard", "scopes": ["search", "read"]}))]
pub struct KeyBody {
    /// What it is for.
    #[serde(default)]
    pub name: String,
    /// What it allows: `search`, `read`, `crawl`, `metrics`, `admin`.
    pub scopes: Vec<String>,
    /// Days until it ends; for ever if it is not said.
    #[schema(minimum = 1, maximum = 3660)]
    pub expires_in_days: Option<u32>,
}

/// A key, without what proves it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct KeyView {
    /// Names it.
    pub id: String,
    /// What it is for.
    pub name: String,
    /// What it allows.
    pub scopes: Vec<String>,
    /// When it was made.
    pub created_at: String,
    /// When it ends.
    pub expires_at: Option<String>,
}

/// A key that was just made. It is shown this once.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NewKeyView {
    /// The key itself: `Authorization: Bearer tlk_…`.
    pub key: String,
    /// What is kept of it.
    #[serde(flatten)]
    pub about: KeyView,
}

/// One of the server-sent events, as a browser reads them.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EventBody {
    /// `snapshot`, `stats`, `page`, `state` or `done`.
    pub event: String,
    /// What to come back with as `Last-Event-ID`.
    pub id: String,
    /// What happened, as JSON: a crawl, its counters, or a page.
    pub data: String,
    /// With the first event: how many milliseconds to wait before coming back.
    #[schema(required = false)]
    pub retry: u64,
}
