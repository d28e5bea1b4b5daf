//! What users ask of the web beside crawls. Unknown fields are refused.

use serde::{Deserialize, Serialize};
use telusur_engine::request::{LimitsRequest, PolitenessRequest};
use telusur_model::Resume;
use utoipa::ToSchema;

/// How a crawl goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"limits": {"max_pages": 1000}}))]
pub struct ResumeRequest {
    /// Limits that are changed first.
    pub limits: LimitsRequest,
    /// How it treats hosts from now on.
    pub politeness: PolitenessRequest,
    /// Exclusions that are added.
    pub exclude: Vec<String>,
    /// Of a linear crawl, what is done about the ids of earlier runs: `all`, `new` or `holes`.
    #[schema(value_type = Option<String>)]
    pub ids: Option<Resume>,
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
