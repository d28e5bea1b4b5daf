//! Keys: made, listed, revoked.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};

use crate::door::{JsonBody, answer, created};
use crate::json::{KeyBody, KeyView, NewKeyView};
use crate::problem::Problem;
use crate::service::Service;

/// Make a key; it is shown this once
#[utoipa::path(post, path = "/api/v1/keys", tag = "keys", operation_id = "create_key",
    request_body = KeyBody,
    responses((status = 201, body = NewKeyView, description = "The key. It is not shown again.")))]
pub(super) async fn create(
    State(service): State<Service>,
    JsonBody { value, .. }: JsonBody<KeyBody>,
) -> Result<Response, Problem> {
    created(StatusCode::CREATED, None, &service.create_key(value).await?)
}

/// List keys
#[utoipa::path(get, path = "/api/v1/keys", tag = "keys", operation_id = "list_keys",
    responses((status = 200, body = Vec<KeyView>, description = "All keys, without their secrets."),
              (status = 304)))]
pub(super) async fn list(
    State(service): State<Service>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    answer(&headers, &service.keys(), None)
}

/// Revoke a key
#[utoipa::path(delete, path = "/api/v1/keys/{id}", tag = "keys", operation_id = "revoke_key",
    params(("id" = String, Path, description = "The key's id")),
    responses((status = 204, description = "Revoked. Streams opened with it end.")))]
pub(super) async fn revoke(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    service.revoke_key(id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
