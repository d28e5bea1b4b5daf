//! Bodies of requests: JSON, of a bounded size, in a bounded time. A mistake names its field.

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::HeaderMap;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::access::is_json;
use crate::problem::{Code, Problem};
use crate::service::Service;

/// A body that was read as JSON, and its bytes.
pub(crate) struct JsonBody<T> {
    pub(crate) value: T,
    pub(crate) bytes: Bytes,
}

impl<T: DeserializeOwned> FromRequest<Service> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, service: &Service) -> Result<Self, Problem> {
        is_json_request(request.headers())?;
        let bytes = read_body(request, service).await?;
        Ok(Self { value: read_json(&bytes)?, bytes })
    }
}

/// A body that may be missing: then everything in it has its default.
pub(crate) struct MaybeJsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> FromRequest<Service> for MaybeJsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, service: &Service) -> Result<Self, Problem> {
        let checked = is_json_request(request.headers());
        let bytes = read_body(request, service).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        checked?;
        Ok(Self(read_json(&bytes)?))
    }
}

pub(crate) fn is_json_request(headers: &HeaderMap) -> Result<(), Problem> {
    if is_json(headers) {
        return Ok(());
    }
    Err(Problem::new(Code::UnsupportedType, "the body must be JSON")
        .hint("Send the header Content-Type: application/json"))
}

/// Reads a whole body.
pub(crate) async fn read_body(request: Request, service: &Service) -> Result<Bytes, Problem> {
    read_body_up_to(request, service, service.settings().bounds.body_bytes_max).await
}

/// Reads a whole body that may be larger or smaller than usual.
pub(crate) async fn read_body_up_to(
    request: Request,
    service: &Service,
    bytes_max: usize,
) -> Result<Bytes, Problem> {
    let bounds = &service.settings().bounds;
    let too_large =
        || Problem::new(Code::BodyTooLarge, format!("the body is larger than {bytes_max} bytes"));
    let announced = request.headers().get(http::header::CONTENT_LENGTH);
    let announced = announced.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|bytes| bytes > bytes_max as u64) {
        return Err(too_large());
    }
    let body = Limited::new(request.into_body(), bytes_max).collect();
    match tokio::time::timeout(bounds.body_time_max, body).await {
        Err(_) => Err(Problem::new(Code::RequestTimeout, "the body did not arrive in time")),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => {
            Err(Problem::new(Code::BadRequest, format!("the body broke off: {error}")))
        }
    }
}

/// Reads JSON. A value that does not fit is told apart from text that is no JSON.
pub(crate) fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let is_object = bytes.trim_ascii_start().starts_with(b"{");
    // A list would be taken for an object whose fields have no names.
    if !is_object && serde_json::from_slice::<IgnoredAny>(bytes).is_ok() {
        return Err(Problem::field("", "the body must be a JSON object"));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let pointer = pointer_of(error.path());
        let cause = error.into_inner();
        match cause.classify() {
            serde_json::error::Category::Data => Problem::field(&pointer, without_place(&cause)),
            _ => Problem::new(Code::InvalidJson, cause.to_string()),
        }
    })?;
    reader.end().map_err(|error| Problem::new(Code::InvalidJson, error.to_string()))?;
    Ok(value)
}

/// Serde's message without the line and column, which say less than the pointer.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// The path as a JSON pointer (RFC 6901).
fn pointer_of(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            Segment::Unknown => {}
        }
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;
    use telusur_engine::request::CrawlRequest;

    #[track_caller]
    fn check(text: &str, code: Code, expect: &str) {
        let problem = read_json::<CrawlRequest>(text.as_bytes()).unwrap_err();
        let body: serde_json::Value = serde_json::from_slice(&problem.body("r")).unwrap();
        assert_eq!(
            (problem.code(), body["pointer"].as_str().unwrap_or("-")),
            (code, expect),
            "{body}"
        );
    }

    #[test]
    fn mistakes_name_their_field() {
        check("{", Code::InvalidJson, "-");
        check("{} {}", Code::InvalidJson, "-");
        check("[]", Code::InvalidField, "");
        check("[\"a\"]", Code::InvalidField, "");
        check("7", Code::InvalidField, "");
        check(&format!("{{\"urls\":{}", "[".repeat(100_000)), Code::InvalidField, "/urls/0");
        check("{\"urls\":[1]}", Code::InvalidField, "/urls/0");
        check("{\"limits\":{\"max_pages\":-1}}", Code::InvalidField, "/limits/max_pages");
        check("{\"limits\":{\"max_page\":1}}", Code::InvalidField, "/limits/max_page");
        check("{\"limits\":{\"max_pages\":NaN}}", Code::InvalidJson, "-");
    }
}
