//! The two calls of the first service, exactly as they were.

use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::header::{CONTENT_TYPE, HeaderValue, LINK};
use http::{HeaderMap, StatusCode};

use crate::access::{is_json, may_be_browser};
use crate::door::{answer, created, read_body, read_json};
use crate::json::{S1Answer, S1Request, S1Started};
use crate::problem::{Code, Problem};
use crate::service::{Accepted, Service};

/// Crawl a site, as the first service did
#[utoipa::path(post, path = "/crawl", tag = "first service", operation_id = "start_job",
    request_body = S1Request,
    responses((status = 200, body = S1Started, description = "The crawl was accepted."), (status = 429)))]
pub(super) async fn start(
    State(service): State<Service>,
    request: Request,
) -> Result<Response, Problem> {
    start_job(&service, request).await.map_err(Problem::for_s1)
}

async fn start_job(service: &Service, request: Request) -> Result<Response, Problem> {
    check_type(request.headers())?;
    service.check_writable()?;
    let bytes = read_body(request, service).await?;
    let asked: S1Request = read_json(&bytes)?;
    let crawl = service.check(move |service| service.crawl_of_s1(&asked)).await?;
    let Accepted::New(crawl) = service.accept_crawl(crawl, None, Vec::new()).await? else {
        return Err(Problem::new(Code::Internal, "the crawl was not made"));
    };
    let started = S1Started { job_id: crawl.alias, status: "started".to_owned() };
    created(StatusCode::OK, None, &started)
}

/// A crawl with its pages, as the first service showed it
#[utoipa::path(get, path = "/crawl/{id}", tag = "first service", operation_id = "read_job",
    params(("id" = String, Path, description = "crawl_N")),
    responses((status = 200, body = S1Answer, description = "The crawl and its pages so far."),
              (status = 304)))]
pub(super) async fn job(
    State(service): State<Service>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = match service.crawl_no(&id) {
        Ok(no) => service.s1_job(no).await,
        Err(problem) => Err(problem),
    };
    let job = job.map_err(Problem::for_s1)?;
    let more = job.truncated.then(|| format!("</api/v1/crawls/{}/pages>; rel=\"next\"", job.id));
    let mut response = answer(&headers, &S1Answer { job }, None)?;
    if let Some(more) = more.and_then(|more| HeaderValue::from_str(&more).ok()) {
        response.headers_mut().insert(LINK, more);
    }
    Ok(response)
}

/// `curl -d` calls everything a form. That is borne with from programs, which the first service took at
/// their word, too; a browser must say that it sends JSON, which the form of another website cannot.
fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_curl = kind.is_empty() || kind.starts_with("application/x-www-form-urlencoded");
    if is_json(headers) || is_curl && !may_be_browser(headers) {
        return Ok(());
    }
    Err(Problem::new(Code::UnsupportedType, "the body must be JSON")
        .hint("Send the header Content-Type: application/json"))
}
