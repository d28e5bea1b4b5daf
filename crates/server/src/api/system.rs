//! Health, totals, metrics, and the description of the API itself.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::HOST;
use http::{HeaderMap, StatusCode};

use crate::access::Scope;
use crate::door::{answer, created, text_answer};
use crate::json::{HealthView, StatsOfAll};
use crate::openapi::description;
use crate::problem::Problem;
use crate::service::Service;

/// Whether the process lives
#[utoipa::path(get, path = "/healthz", tag = "system", operation_id = "check_health",
    responses((status = 200, body = HealthView, description = "It does.")))]
pub(super) async fn healthz() -> Result<Response, Problem> {
    let (status, followers) = ("ok".to_owned(), BTreeMap::new());
    let health = HealthView { status, indexing: None, followers, damage: None };
    created(StatusCode::OK, None, &health)
}

/// Whether the service takes requests
///
/// It is `degraded` while new pages cannot be indexed, or followed by something else, or if reading everything
/// has found damage. Why is said to keys with the scope `read`.
#[utoipa::path(get, path = "/readyz", tag = "system", operation_id = "check_readiness",
    responses((status = 200, body = HealthView, description = "It does."),
              (status = 503)))]
pub(super) async fn readyz(
    State(service): State<Service>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if service.is_draining() {
        return Err(crate::problem::draining());
    }
    // Health is asked for without a key; paths and errors of the machine are not for strangers.
    let is_told_why = || service.permit(&headers, Scope::Read).is_ok();
    let (mut indexing, mut followers) = (None, BTreeMap::new());
    for report in service.followers() {
        let Some(trouble) = &report.trouble else { continue };
        let subject = report.subject();
        let behind = match is_told_why() {
            true => format!("{subject} is behind by {} pages: {}", report.lag, trouble.why),
            false => format!("{subject} is behind"),
        };
        if report.is_index() {
            indexing = Some(behind);
        } else {
            followers.insert(report.name, behind);
        }
    }
    let damaged = service.damaged().await?;
    let damage = (damaged > 0).then(|| match is_told_why() {
        true => format!("{damaged} things that are stored are damaged"),
        false => "stored data is damaged".to_owned(),
    });
    let is_well = indexing.is_none() && followers.is_empty() && damage.is_none();
    let status = if is_well { "ok" } else { "degraded" }.to_owned();
    created(StatusCode::OK, None, &HealthView { status, indexing, followers, damage })
}

/// Totals over everything
#[utoipa::path(get, path = "/api/v1/stats", tag = "system", operation_id = "read_stats",
    responses((status = 200, body = StatsOfAll, description = "The totals."), (status = 304)))]
pub(super) async fn stats(
    State(service): State<Service>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    answer(&headers, &service.totals().await?, None)
}

/// Metrics, for Prometheus
#[utoipa::path(get, path = "/metrics", tag = "system", operation_id = "read_metrics",
    responses((status = 200, body = String, content_type = "text/plain",
        description = "The metrics in the text format of Prometheus, version 0.0.4.")))]
pub(super) async fn metrics(State(service): State<Service>) -> Result<Response, Problem> {
    let text = service.metrics_text().await?;
    Ok(text_answer("text/plain; version=0.0.4; charset=utf-8", text))
}

/// This description of the API
#[utoipa::path(get, path = "/api/v1/openapi.json", tag = "system", operation_id = "read_description",
    responses((status = 200, body = crate::openapi::DescriptionView,
        description = "An OpenAPI 3.1 document."), (status = 304)))]
pub(super) async fn openapi(
    State(service): State<Service>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    answer(&headers, description(&service), None)
}

/// How a browser adds this service to its search engines
#[utoipa::path(get, path = "/opensearch.xml", tag = "system", operation_id = "read_opensearch",
    responses((status = 200, body = String, content_type = "application/opensearchdescription+xml",
        description = "An OpenSearch description.")))]
pub(super) async fn opensearch(headers: HeaderMap) -> Response {
    // The guard let only names and addresses through that hold nothing to escape.
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let is_plain =
        host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-[]".contains(&byte));
    if !is_plain {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <OpenSearchDescription xmlns=\"http://a9.com/-/spec/opensearch/1.1/\">\n\
         <ShortName>Telusur</ShortName>\n\
         <Description>Search what was crawled</Description>\n\
         <InputEncoding>UTF-8</InputEncoding>\n\
         <Url type=\"text/html\" template=\"http://{host}/search?q={{searchTerms}}\"/>\n\
         <Url type=\"application/x-suggestions+json\" template=\"http://{host}/api/v1/suggest?q={{searchTerms}}\"/>\n\
         </OpenSearchDescription>\n"
    );
    text_answer("application/opensearchdescription+xml", text)
}
