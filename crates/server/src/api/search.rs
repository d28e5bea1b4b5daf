//! Searching.

use axum::extract::State;
use axum::response::Response;
use http::header::ACCEPT;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::json;
use telusur_engine::control::Rank;
use telusur_engine::control::RankItem;
use utoipa::IntoParams;

use super::items;
use crate::door::{JsonBody, Params, answer, created, text_answer};
use crate::json::{SearchBody, SearchView, SuggestView};
use crate::problem::Problem;
use crate::service::Service;

/// Ways to go on that are shown.
const WAYS_MAX: usize = 10;
/// What browsers ask for that complete searches by themselves.
const SUGGESTIONS: &str = "application/x-suggestions+json";

/// What was typed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Typed {
    /// What was typed so far.
    #[serde(default)]
    #[param(required = false)]
    q: String,
}

/// Search everything that was crawled
#[utoipa::path(get, path = "/api/v1/search", tag = "search", operation_id = "search",
    params(SearchBody),
    responses((status = 200, body = SearchView, description = "What was found, best first.")))]
pub(super) async fn search(
    State(service): State<Service>,
    Params(query): Params<SearchBody>,
) -> Result<Response, Problem> {
    created(StatusCode::OK, None, &service.search(query).await?)
}

/// Search everything that was crawled, asked in JSON
#[utoipa::path(post, path = "/api/v1/search", tag = "search", operation_id = "search_by_post",
    request_body = SearchBody,
    responses((status = 200, body = SearchView, description = "What was found, best first.")))]
pub(super) async fn search_by_post(
    State(service): State<Service>,
    JsonBody { value, .. }: JsonBody<SearchBody>,
) -> Result<Response, Problem> {
    created(StatusCode::OK, None, &service.search(value).await?)
}

/// Ways to go on typing
#[utoipa::path(get, path = "/api/v1/suggest", tag = "search", operation_id = "suggest",
    params(Typed),
    responses((status = 200, body = SuggestView, description = "Up to ten ways to go on."),
              (status = 304)))]
pub(super) async fn suggest(
    State(service): State<Service>,
    headers: HeaderMap,
    Params(typed): Params<Typed>,
) -> Result<Response, Problem> {
    let found = service.suggest(typed.q, WAYS_MAX).await?;
    let wants = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if wants.contains(SUGGESTIONS) {
        return Ok(text_answer(SUGGESTIONS, json!([found.query, found.suggestions]).to_string()));
    }
    answer(&headers, &found, None)
}

/// Which of the well linked.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Ranked {
    /// Only pages of this crawl: its id, crawl_N or its name.
    crawl: Option<String>,
    /// Sites instead of pages.
    sites: Option<bool>,
    /// How many, from 1 to 1000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// The best linked pages, or sites
#[utoipa::path(get, path = "/api/v1/rank", tag = "search", operation_id = "rank",
    params(Ranked),
    responses((status = 200, body = Vec<RankItem>, description = "The best linked first."),
              (status = 304), (status = 404)))]
pub(super) async fn rank(
    State(service): State<Service>,
    headers: HeaderMap,
    Params(ranked): Params<Ranked>,
) -> Result<Response, Problem> {
    let Ranked { crawl, sites, limit } = ranked;
    let rank = Rank { crawl, sites: sites.unwrap_or(false), max: items(limit)? };
    answer(&headers, &service.rank(rank).await?, None)
}
