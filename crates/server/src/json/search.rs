//! Searching.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A search: as parameters of a GET, or as the body of a POST.
#[derive(Clone, Debug, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
#[schema(example = json!({"q": "polite crawler", "facets": "site"}))]
pub struct SearchBody {
    /// The query: words, "phrases", -word, OR, site:, intitle:, inurl:, lang:, filetype:, before:, after: …
    #[param(required = false)]
    pub q: String,
    /// How many hits, from 0 to 100.
    #[param(minimum = 0, maximum = 100)]
    #[schema(minimum = 0, maximum = 100)]
    pub limit: Option<u32>,
    /// How many hits are left out at the beginning; the deepest hit is the 1000th.
    #[param(minimum = 0, maximum = 1000)]
    #[schema(minimum = 0, maximum = 1000)]
    pub offset: Option<u32>,
    /// Only this site.
    pub site: Option<String>,
    /// Only this language.
    pub lang: Option<String>,
    /// Only this kind: `html`, `text`, `feed`, `pdf`.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    pub kind: Option<String>,
    /// Only pages of this crawl.
    pub crawl: Option<String>,
    /// Only pages that are not older: `2026-01-31`, or days as `30d`.
    pub since: Option<String>,
    /// What to count by: `site`, `lang`, `type`, `year`, `crawl`, with commas between them.
    pub facets: Option<String>,
    /// `relevance`, `newest` or `url`.
    pub sort: Option<String>,
    /// Whether each hit says why it stands where it stands.
    pub explain: Option<bool>,
}

/// What a search found.
#[derive(Clone, Debug, Serialize, ToSchema)]
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
#[derive(Clone, Debug, Serialize, ToSchema)]
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub why: Vec<String>,
}

/// How many pages have a value.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FacetView {
    /// The value.
    pub value: String,
    /// How many pages.
    pub count: u64,
}
