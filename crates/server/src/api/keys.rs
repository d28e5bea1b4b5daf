//! Keys: made, listed, revoked.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};

use crate::door::{JsonBody, answer, created};
use crate::json::{KeyBody, KeyView, NewKeyView};
use crate::problem::Problem;
use crate::service::Service;

/// Make a key; it is shown this once
#[utoipa::path(post, path = "/api/v1/keys", tag = "keys", request_body = KeyBody,
    responses((status = 201, body = NewKeyView)))]
pub(super) async fn create(
    State(service): State<Service>,
    JsonBody { value, .. }: JsonBody<KeyBody>,
) -> Result<Response, Problem> {
    created(StatusCode::CREATED, None, &service.create_key(value).await?)
}

/// List keys
#[utoipa::path(get, path = "/api/v1/keys", tag = "keys",
    responses((status = 200, body = Vec<KeyView>)))]
pub(super) async fn list(
    State(service): State<Service>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    answer(&headers, &service.keys(), None)
}

/// Revoke a key
#[utoipa::path(delete, path = "/api/v1/keys/{id}", tag = "keys",
    params(("id" = String, Path, description = "The key's id")),
    responses((status = 204, description = "revoked")))]
pub(super) async fn revoke(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    service.revoke_key(id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
