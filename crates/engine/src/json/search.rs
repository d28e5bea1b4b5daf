//! What a search found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a search found.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SearchView {
    /// The query.
    pub query: String,
    /// How long it took.
    pub took_ms: u64,
    /// How many pages match.
    pub estimated_total: u64,
    /// Hits left out at the beginning.
    pub offset: u32,
    /// Hits asked for.
    pub limit: u32,
    /// The hits, best first.
    pub hits: Vec<HitView>,
    /// Counts, by what was asked for.
    pub facets: BTreeMap<String, Vec<FacetView>>,
    /// What was left out of the query.
    pub ignored: Vec<String>,
    /// A query that probably finds more.
    pub did_you_mean: Option<String>,
}

/// One hit.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HitView {
    /// Names its page in `/api/v1/pages?url=`.
    pub url: String,
    /// Its title.
    pub title: String,
    /// The best piece of its text, as HTML: escaped, with `<mark>` around what was found.
    pub snippet: String,
    /// The same as plain text.
    pub snippet_text: String,
    /// Its site.
    pub site: Option<String>,
    /// Its language.
    pub lang: Option<String>,
    /// What it was made from.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it was fetched.
    pub fetched_at: String,
    /// When it was published.
    pub published_at: Option<String>,
    /// How well it fits.
    pub score: f32,
    /// Its crawl.
    pub crawl: String,
    /// How many more of its site there are.
    pub more_from_site: u64,
    /// How many pages say nearly the same.
    pub similar: u64,
    /// Why it stands where it stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub why: Vec<String>,
}

/// How many pages have a value.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FacetView {
    /// The value.
    pub value: String,
    /// How many pages.
    pub count: u64,
}
