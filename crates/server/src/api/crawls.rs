//! Crawls: started, listed, read, changed, ordered about, deleted.

use axum::extract::{Extension, OriginalUri, Path, State};
use axum::response::{IntoResponse, Response};
use http::header::IF_MATCH;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use telusur_engine::request::{ChangeRequest, CrawlRequest};
use utoipa::IntoParams;

use super::{cursor, items};
use crate::access::Pass;
use crate::door::{JsonBody, MaybeJsonBody, Params, answer, created, paged};
use crate::json::{CrawlView, Paged, ResumeRequest, RetriedView};
use crate::problem::{Code, Problem};
use crate::service::{Accepted, Order, RequestMark, Service};

/// Longest `Idempotency-Key`.
const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;

/// Which crawls are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct CrawlFilter {
    /// Only those in this state.
    state: Option<String>,
    /// Only those with this label: `name`, or `name=value`.
    label: Option<String>,
    /// How many, from 1 to 1000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Start a crawl
///
/// It is accepted when this answers, survives restarts, and runs when its turn comes. The same
/// `Idempotency-Key` with the same body makes no second crawl.
#[utoipa::path(post, path = "/api/v1/crawls", tag = "crawls", request_body = CrawlRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A name for this request")),
    responses((status = 202, body = CrawlView, description = "accepted"),
              (status = 200, body = CrawlView, description = "made before, or a dry run")))]
pub(super) async fn start(
    State(service): State<Service>,
    Extension(pass): Extension<Pass>,
    headers: HeaderMap,
    JsonBody { value, bytes }: JsonBody<CrawlRequest>,
) -> Result<Response, Problem> {
    let mark = match headers.get("idempotency-key") {
        Some(key) if key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES_MAX => {
            let what = format!("an Idempotency-Key has 1 to {IDEMPOTENCY_KEY_BYTES_MAX} bytes");
            return Err(Problem::new(Code::BadRequest, what));
        }
        Some(key) => Some(RequestMark::new(&String::from_utf8_lossy(key.as_bytes()), &bytes)),
        None => None,
    };
    match service.accept(value, mark, pass.rights()).await? {
        Accepted::New(crawl) => created(StatusCode::ACCEPTED, Some(&crawl.links.this), &crawl),
        Accepted::Before(crawl) => created(StatusCode::OK, Some(&crawl.links.this), &crawl),
        Accepted::DryRun(crawl) => created(StatusCode::OK, None, &crawl),
    }
}

/// List crawls, the youngest first
#[utoipa::path(get, path = "/api/v1/crawls", tag = "crawls", params(CrawlFilter),
    responses((status = 200, body = Paged<CrawlView>)))]
pub(super) async fn list(
    State(service): State<Service>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    Params(filter): Params<CrawlFilter>,
) -> Result<Response, Problem> {
    let CrawlFilter { state, label, limit, cursor: after } = filter;
    let found = service.crawls(state, label, items(limit)?, cursor(after)?).await?;
    paged(&headers, &uri, &found)
}

/// Read a crawl: its state, its settings, its counters
#[utoipa::path(get, path = "/api/v1/crawls/{id}", tag = "crawls",
    params(("id" = String, Path, description = "The id, or crawl_N")),
    responses((status = 200, body = CrawlView), (status = 304, description = "as you know it")))]
pub(super) async fn read(
    State(service): State<Service>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (crawl, version) = service.tagged_crawl(service.crawl_no(&id)?).await?;
    answer(&headers, &crawl, Some(&version))
}

/// Change limits, manners and exclusions, also while it runs
///
/// With `If-Match` and the ETag of a GET, nothing is changed if somebody else changed the crawl's settings
/// or state in between. Counters do not matter to it.
#[utoipa::path(patch, path = "/api/v1/crawls/{id}", tag = "crawls", request_body = ChangeRequest,
    params(("id" = String, Path, description = "The id, or crawl_N"),
           ("If-Match" = Option<String>, Header, description = "The ETag that you read")),
    responses((status = 200, body = CrawlView)))]
pub(super) async fn change(
    State(service): State<Service>,
    Extension(pass): Extension<Pass>,
    Path(id): Path<String>,
    headers: HeaderMap,
    JsonBody { value, .. }: JsonBody<ChangeRequest>,
) -> Result<Response, Problem> {
    let no = service.crawl_no(&id)?;
    let crawl = service.change(no, value, version_of(&headers), pass.rights()).await?;
    created(StatusCode::OK, None, &crawl)
}

/// Delete a crawl and everything it stored; a running one is refused
#[utoipa::path(delete, path = "/api/v1/crawls/{id}", tag = "crawls",
    params(("id" = String, Path, description = "The id, or crawl_N")),
    responses((status = 204, description = "deleted")))]
pub(super) async fn delete(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    service.delete(service.crawl_no(&id)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Pause a crawl
#[utoipa::path(post, path = "/api/v1/crawls/{id}/pause", tag = "crawls",
    params(("id" = String, Path, description = "The id, or crawl_N")),
    responses((status = 200, body = CrawlView)))]
pub(super) async fn pause(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    order(&service, &id, Order::Pause).await
}

/// Go on with a crawl that is paused, was stopped, or has new limits
///
/// The body may be left out. It can change limits, politeness and exclusions first, and say what is done about the
/// ids of a linear crawl.
#[utoipa::path(post, path = "/api/v1/crawls/{id}/resume", tag = "crawls",
    request_body = Option<ResumeRequest>,
    params(("id" = String, Path, description = "The id, or crawl_N")),
    responses((status = 200, body = CrawlView)))]
pub(super) async fn resume(
    State(service): State<Service>,
    Extension(pass): Extension<Pass>,
    Path(id): Path<String>,
    MaybeJsonBody(request): MaybeJsonBody<ResumeRequest>,
) -> Result<Response, Problem> {
    let crawl = service.resume(service.crawl_no(&id)?, request, pass.rights()).await?;
    created(StatusCode::OK, None, &crawl)
}

/// Crawl the same again and store only what changed since
///
/// Pages are asked for with `If-None-Match` and `If-Modified-Since`. The body may be left out; it can change limits,
/// politeness and exclusions.
#[utoipa::path(post, path = "/api/v1/crawls/{id}/recrawl", tag = "crawls",
    request_body = Option<ChangeRequest>,
    params(("id" = String, Path, description = "The id, or crawl_N")),
    responses((status = 202, body = CrawlView, description = "the new crawl")))]
pub(super) async fn recrawl(
    State(service): State<Service>,
    Extension(pass): Extension<Pass>,
    Path(id): Path<String>,
    MaybeJsonBody(change): MaybeJsonBody<ChangeRequest>,
) -> Result<Response, Problem> {
    let crawl = service.recrawl(service.crawl_no(&id)?, change, pass.rights()).await?;
    created(StatusCode::ACCEPTED, Some(&crawl.links.this), &crawl)
}

/// End a crawl and keep what it has
#[utoipa::path(post, path = "/api/v1/crawls/{id}/stop", tag = "crawls",
    params(("id" = String, Path, description = "The id, or crawl_N")),
    responses((status = 200, body = CrawlView)))]
pub(super) async fn stop(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    order(&service, &id, Order::Stop).await
}

/// End a crawl and throw away what it has
#[utoipa::path(post, path = "/api/v1/crawls/{id}/cancel", tag = "crawls",
    params(("id" = String, Path, description = "The id, or crawl_N")),
    responses((status = 204, description = "thrown away")))]
pub(super) async fn cancel(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    service.cancel(service.crawl_no(&id)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Ask again for what failed: URLs without an answer, or the holes of a linear crawl
#[utoipa::path(post, path = "/api/v1/crawls/{id}/retry", tag = "crawls",
    params(("id" = String, Path, description = "The id, or crawl_N")),
    responses((status = 200, body = RetriedView)))]
pub(super) async fn retry(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let retried = service.retry(service.crawl_no(&id)?).await?;
    created(StatusCode::OK, None, &retried)
}

async fn order(service: &Service, id: &str, order: Order) -> Result<Response, Problem> {
    let crawl = service.order(service.crawl_no(id)?, order).await?;
    created(StatusCode::OK, None, &crawl)
}

/// The version in `If-Match`: the part of a crawl's tag that stands for its settings.
fn version_of(headers: &HeaderMap) -> Option<String> {
    let tag = headers.get(IF_MATCH)?.to_str().unwrap_or_default().trim();
    if tag == "*" {
        return None;
    }
    let tag = tag.trim_start_matches("W/").trim_matches('"');
    Some(tag.split('-').next().unwrap_or_default().to_owned())
}
