//! What a search found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HitView {
    /// The name of an imported document.
    pub id: Option<String>,
    /// Names its page in `/api/v1/pages?url=`.
    pub url: String,
    /// Its title.
    pub title: String,
    /// The best piece of its text, as HTML: escaped, with `<mark>` around what was found.
    pub snippet: String,
    /// The same as plain text.
    pub snippet_text: String,
    /// Where what was found begins and ends in `snippet_text`, in bytes.
    #[schema(value_type = Vec<Vec<u64>>)]
    pub marks: Vec<(usize, usize)>,
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
    /// Its crawl's id.
    pub crawl: String,
    /// Its crawl's alias.
    pub alias: String,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FacetView {
    /// The value.
    pub value: String,
    /// How many pages.
    pub count: u64,
}

/// Ways to go on typing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SuggestView {
    /// What was typed.
    pub query: String,
    /// Ways to go on.
    pub suggestions: Vec<String>,
}

/// A well linked page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RankedPageView {
    /// Its URL.
    pub url: String,
    /// Its title.
    pub title: String,
    /// How many times as well linked as the average page.
    pub times_average: f32,
    /// How many indexed pages link to it.
    pub linked_from: u64,
}

/// A well linked site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RankedSiteView {
    /// The registrable domain.
    pub site: String,
    /// How many times as well linked as the average site, by links from other sites.
    pub times_average: f32,
    /// How many of its pages are indexed.
    pub pages: u32,
}
