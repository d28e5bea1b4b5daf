//! A search, as it is asked for.

use serde::Deserialize;
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
    /// Only pages that are not older: how long ago, as `30d` or `12h`, or a date, as `2026-01-31` or `2026`.
    pub since: Option<String>,
    /// Only pages published, or else fetched, in this year.
    pub year: Option<u16>,
    /// The columns that the words must be in: `title`, `description`, `keywords`, `text`, `url`, with commas
    /// between them.
    #[serde(rename = "in")]
    #[param(rename = "in")]
    pub columns: Option<String>,
    /// Whether the query is a regular expression, matched in the stored columns.
    pub regex: Option<bool>,
    /// What to count by: `site`, `lang`, `type`, `year`, `crawl`, with commas between them.
    pub facets: Option<String>,
    /// `relevance`, `newest` or `url`.
    pub sort: Option<String>,
    /// Whether each hit says why it stands where it stands.
    pub explain: Option<bool>,
}
