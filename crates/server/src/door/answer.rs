//! Answers in JSON. Each carries a tag of its content: a client that has it already gets 304.

use axum::body::Body;
use axum::response::Response;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH, LINK,
};
use http::{HeaderMap, StatusCode};
use serde::Serialize;

use crate::json::Paged;
use crate::problem::{Code, Problem};

const JSON: &str = "application/json";

/// An answer to a GET. `version` is put before the hash of the content.
pub(crate) fn answer(
    asked: &HeaderMap,
    value: &impl Serialize,
    version: Option<&str>,
) -> Result<Response, Problem> {
    let body = body_of(value)?;
    let hash = &blake3::hash(&body).to_hex()[..16];
    let tag = match version {
        Some(version) => format!("\"{version}-{hash}\""),
        None => format!("\"{hash}\""),
    };
    let known = asked.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut known = known.flat_map(|tags| tags.split(','));
    let is_known = known.any(|it| matches!(it.trim().trim_start_matches("W/"), it if it == tag));
    let mut response = match is_known {
        true => with_status(StatusCode::NOT_MODIFIED, Body::empty()),
        false => json_response(StatusCode::OK, body),
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// A page of a list, with a link to the next one.
pub(crate) fn paged<T: Serialize>(
    asked: &HeaderMap,
    uri: &http::Uri,
    page: &Paged<T>,
) -> Result<Response, Problem> {
    let mut response = answer(asked, page, None)?;
    if let Some(cursor) = &page.next_cursor {
        let rest = uri.query().unwrap_or_default().split('&');
        let rest: Vec<&str> =
            rest.filter(|part| !part.is_empty() && !part.starts_with("cursor=")).collect();
        let mut query = rest.join("&");
        if !query.is_empty() {
            query.push('&');
        }
        let link = format!("<{}?{query}cursor={cursor}>; rel=\"next\"", uri.path());
        if let Ok(link) = HeaderValue::from_str(&link) {
            response.headers_mut().insert(LINK, link);
        }
    }
    Ok(response)
}

/// Something came of a POST.
pub(crate) fn created(
    status: StatusCode,
    location: Option<&str>,
    value: &impl Serialize,
) -> Result<Response, Problem> {
    let mut response = json_response(status, body_of(value)?);
    if let Some(location) = location.and_then(|location| HeaderValue::from_str(location).ok()) {
        response.headers_mut().insert(HeaderName::from_static("location"), location);
    }
    Ok(response)
}

/// Plain text of some kind.
pub(crate) fn text_answer(content_type: &'static str, text: impl Into<Body>) -> Response {
    let mut response = with_status(StatusCode::OK, text.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn body_of(value: &impl Serialize) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(value).map_err(|error| {
        tracing::error!(%error, "an answer cannot be written");
        Problem::new(Code::Internal, "the answer cannot be written")
    })
}

fn json_response(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = with_status(status, body.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

fn with_status(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}
