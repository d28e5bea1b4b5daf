//! The words of the first service, exactly: `POST /crawl` and `GET /crawl/{id}`. Times are Unix
//! milliseconds; the statuses are `started`, `running`, `completed` and `failed`, and never others.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A site to crawl.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"url": "https://example.com", "max_pages": 10}))]
pub struct S1Request {
    /// Where it starts.
    pub url: String,
    /// How many pages, at most.
    #[serde(default = "pages_max_default")]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub max_pages: i64,
}

fn pages_max_default() -> i64 {
    10
}

/// The crawl was accepted.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct S1Started {
    /// Its name: `crawl_1`, `crawl_2` …
    pub job_id: String,
    /// `started`.
    pub status: String,
}

/// A crawl.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct S1Answer {
    /// The crawl.
    pub job: S1Job,
}

/// A crawl.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct S1Job {
    /// Its name.
    pub id: String,
    /// `running`, `completed` or `failed`.
    pub status: String,
    /// Where it started.
    pub seed_url: String,
    /// How many pages, at most; 0 is no limit.
    pub max_pages: u64,
    /// Its pages so far.
    pub pages: Vec<S1Page>,
    /// When it began.
    pub started_at: u64,
    /// When it ended; `null` while it has not.
    pub ended_at: Option<u64>,
    /// There are more pages than fit here: see `/api/v1/crawls/{id}/pages`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub truncated: bool,
}

/// A page of a crawl.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct S1Page {
    /// Its URL.
    pub url: String,
    /// The HTTP status; 0 if there was no answer.
    pub status_code: u16,
    /// Its title; only pages with status 200 have one.
    pub title: String,
    /// The URLs that it links to; only pages with status 200 have them.
    pub links: Vec<String>,
    /// When the answer came.
    pub crawled_at: u64,
    /// What went wrong, if the fetch failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
