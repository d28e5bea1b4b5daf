//! Single pages from the web, the URLs of a site, and why a URL was crawled or not.

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::door::{JsonBody, Params, answer, created};
use crate::json::{ExplanationView, FetchBody, FetchedView, MapBody, MapView, PolitenessView};
use crate::problem::Problem;
use crate::service::Service;

/// Which URL.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// The URL.
    url: String,
    /// In this crawl only.
    crawl: Option<String>,
}

/// Fetch one page and read it, with the manners of a crawl; nothing is stored
#[utoipa::path(post, path = "/api/v1/fetch", tag = "web", operation_id = "fetch_page",
    request_body = FetchBody,
    responses((status = 200, body = FetchedView, description = "The page, whatever its status is.")))]
pub(super) async fn fetch(
    State(service): State<Service>,
    JsonBody { value, .. }: JsonBody<FetchBody>,
) -> Result<Response, Problem> {
    created(StatusCode::OK, None, &service.fetch(&value.url).await?)
}

/// List the URLs of a site, from its sitemaps and one of its pages
#[utoipa::path(post, path = "/api/v1/map", tag = "web", operation_id = "map_site",
    request_body = MapBody,
    responses((status = 200, body = MapView, description = "The URLs that were found.")))]
pub(super) async fn map(
    State(service): State<Service>,
    JsonBody { value, .. }: JsonBody<MapBody>,
) -> Result<Response, Problem> {
    created(StatusCode::OK, None, &service.map(value).await?)
}

/// Why a URL was crawled, or not: what each crawl knows of it
#[utoipa::path(get, path = "/api/v1/explain", tag = "content", operation_id = "explain_url",
    params(Which),
    responses((status = 200, body = Vec<ExplanationView>,
                  description = "One explanation for each crawl that was asked about."),
              (status = 304), (status = 404)))]
pub(super) async fn explain(
    State(service): State<Service>,
    headers: HeaderMap,
    Params(which): Params<Which>,
) -> Result<Response, Problem> {
    let crawl = which.crawl.map(|id| service.crawl_no(&id)).transpose()?;
    answer(&headers, &service.explain(which.url, crawl).await?, None)
}

/// Which host.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WhichHost {
    /// Its name.
    host: String,
}

/// What was asked of a host, when, at what gaps, by which rules
///
/// Something to show a webmaster.
#[utoipa::path(get, path = "/api/v1/politeness", tag = "content", operation_id = "report_politeness",
    params(WhichHost),
    responses((status = 200, body = PolitenessView, description = "The report."), (status = 304)))]
pub(super) async fn politeness(
    State(service): State<Service>,
    headers: HeaderMap,
    Params(which): Params<WhichHost>,
) -> Result<Response, Problem> {
    answer(&headers, &service.politeness(which.host).await?, None)
}
