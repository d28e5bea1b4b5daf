//! Pages and URLs of crawls, and single pages from the web.

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use telusur_model::PageContent;
use utoipa::ToSchema;

/// A stored page, in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PageView {
    /// Names it in `/api/v1/pages/{id}`.
    pub id: String,
    /// Its place in the order of pages.
    pub seq: u64,
    /// Its URL.
    pub url: String,
    /// The HTTP status.
    pub status: u16,
    /// Its title.
    pub title: Option<String>,
    /// Links away from a start URL.
    pub depth: u16,
    /// The page that it was found on.
    pub referrer: Option<String>,
    /// The media type.
    pub content_type: Option<String>,
    /// Size of the decoded body.
    pub bytes: u64,
    /// How long the visit took.
    pub took_ms: u64,
    /// When the answer came.
    pub fetched_at: String,
    /// Links on it.
    pub link_count: u32,
    /// Attempts that it needed.
    pub attempts: u8,
    /// Whether its body was cut at the limit.
    pub truncated: bool,
    /// What became of it since the crawl that this one repeats: `new`, `changed`, `same` or `not_sent`.
    pub change: Option<String>,
    /// What the page or its host asks of search engines.
    pub asks: Option<String>,
    /// When it was changed, as a sitemap says.
    pub lastmod: Option<String>,
    /// Whether it looks like what its host sends for pages that do not exist: stored, and not to be found.
    pub soft_404: bool,
    /// Why it could not be parsed; then it is neither found nor are its links followed.
    pub parse_failed: Option<String>,
}

/// A stored page with everything that is in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StoredPageView {
    /// The page.
    #[serde(flatten)]
    pub page: PageView,
    /// Its crawl's id.
    pub crawl: String,
    /// Its crawl's alias.
    pub alias: String,
    /// The URLs that redirected to it.
    pub redirects: Vec<String>,
    /// The headers that came with it, if its body is kept. What `set-cookie` sets is shown to keys with the
    /// scope `crawl` only.
    #[schema(value_type = Vec<Vec<String>>)]
    pub headers: Vec<(String, String)>,
    /// BLAKE3 of the decoded body.
    pub digest: String,
    /// Whether its body is kept.
    pub has_body: bool,
    /// Everything in it, by kind; `null` if nothing of it is kept.
    #[schema(value_type = Option<Object>)]
    pub content: Option<Box<PageContent>>,
    /// Its body in base 64, where that is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

impl StoredPageView {
    /// The body as it was decoded from its content coding, if it was asked for.
    pub fn body_bytes(&self) -> Option<Vec<u8>> {
        BASE64.decode(self.body.as_deref()?.as_bytes()).ok()
    }
}

/// A link of a page.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PageLink {
    /// Where it leads.
    pub url: String,
    /// Its text.
    pub text: String,
}

/// A URL that failed, or answered with an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorView {
    /// The URL.
    pub url: String,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// Why there was none, or `parse_failed` if there was and it could not be parsed.
    pub reason: Option<String>,
    /// What exactly.
    pub detail: Option<String>,
    /// Attempts made.
    pub attempts: u8,
    /// Links away from a start URL.
    pub depth: u16,
    /// The page that it was found on.
    pub referrer: Option<String>,
    /// When the last attempt ended.
    pub at: String,
}

/// A URL that was never asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SkippedView {
    /// The URL.
    pub url: String,
    /// Why.
    pub reason: String,
    /// The same for people.
    pub help: String,
    /// By which rule.
    pub rule: String,
    /// Links away from a start URL.
    pub depth: u16,
    /// The page that it was found on.
    pub referrer: Option<String>,
}

/// A page that is not as it was in the crawl that its crawl repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangedView {
    /// Its URL.
    pub url: String,
    /// `new`, `changed` or `gone`.
    pub change: String,
}

/// A host of a crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostView {
    /// Its name.
    pub host: String,
    /// Its site.
    pub site: String,
    /// Pages stored.
    pub fetched: u64,
    /// URLs that wait.
    pub queued: u64,
    /// Failures and error pages.
    pub errors: u64,
    /// The delay that it is asked with.
    pub delay_ms: u64,
    /// `ok`, `slowed` if it taught the crawl a longer delay, or `parked` if it is not asked at present.
    pub state: String,
    /// Why it is parked.
    pub parked: Option<String>,
    /// Requests sent, those for robots.txt included.
    pub requests: u64,
    /// The shortest time between two of them.
    pub gap_ms_min: Option<u64>,
    /// When the last was sent.
    pub last_request_at: Option<String>,
}

/// A URL that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueuedView {
    /// The URL.
    pub url: String,
    /// Its host.
    pub host: String,
    /// Links away from a start URL.
    pub depth: u16,
    /// The page that it was found on.
    pub referrer: Option<String>,
    /// The attempt that comes next, from 1.
    pub attempt: u8,
    /// Not before this time.
    pub due: Option<String>,
}

/// A page that was fetched on its own.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FetchedView {
    /// Where it is.
    pub url: String,
    /// The HTTP status.
    pub status: u16,
    /// The URLs that redirected to it.
    pub redirects: Vec<String>,
    /// The media type.
    pub content_type: Option<String>,
    /// How long it took.
    pub took_ms: u64,
    /// Size of the decoded body.
    pub bytes: u64,
    /// Whether its body was cut at the limit.
    pub truncated: bool,
    /// How it broke the parser, if it did. Then nothing is known of its content.
    pub parse_failed: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its main content as Markdown.
    pub markdown: String,
    /// Its main content as text.
    pub text: String,
    /// Its links.
    pub links: Vec<PageLink>,
    /// Everything in it, by kind.
    #[schema(value_type = Object)]
    pub content: Value,
}

/// The URLs of a site.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MapView {
    /// The page that was named.
    pub url: String,
    /// What was found.
    pub links: Vec<FoundLink>,
    /// Whether there are more.
    pub truncated: bool,
    /// What could not be read.
    pub warnings: Vec<String>,
}

/// A URL of a site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FoundLink {
    /// The URL.
    pub url: String,
    /// `sitemap` or `link`.
    pub via: String,
}
