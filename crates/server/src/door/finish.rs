//! The outermost layer: gives every request a name, writes problems, counts, and puts on every answer the
//! headers that keep browsers from doing more with it than was meant.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};

use crate::problem::{Code, Problem};
use crate::service::Service;

/// What answers have unless they say otherwise.
const HEADERS: [(&str, &str); 6] = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'; sandbox"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// Requests so far, for their names.
static REQUESTS: AtomicU64 = AtomicU64::new(0);

pub(crate) async fn finish(
    State(service): State<Service>,
    request: Request,
    next: Next,
) -> Response {
    let number = REQUESTS.fetch_add(1, Ordering::Relaxed);
    let request_id = format!("r_{:x}_{number:x}", std::process::id());
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let route = route.unwrap_or_else(|| "none".to_owned());
    let (method, is_api) = (request.method().clone(), is_for_programs(request.uri().path()));
    let mut response = next.run(request).await;
    let problem = response.extensions_mut().remove::<Problem>();
    let problem = problem.or_else(|| stray_problem(&response).filter(|_| is_api));
    if let Some(problem) = problem {
        let allow = response.headers().get(http::header::ALLOW).cloned();
        response = written(&problem, &request_id);
        if let Some(allow) = allow {
            response.headers_mut().insert(http::header::ALLOW, allow);
        }
    }
    let status = response.status();
    service.inner().metrics.answered(&route, status.as_u16());
    tracing::debug!(request_id, %method, route, status = status.as_u16(), "request answered");
    add_headers(response.headers_mut(), &request_id);
    response
}

/// Whether an address is one that programs ask, and people do not look at.
pub(crate) fn is_for_programs(path: &str) -> bool {
    ["/api/", "/crawl", "/healthz", "/readyz", "/metrics"].iter().any(|it| path.starts_with(it))
        && !path.starts_with("/crawls")
}

/// A refusal of the router or of a library, which knows nothing of our problems.
fn stray_problem(response: &Response) -> Option<Problem> {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return None;
    }
    let code = match status {
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::METHOD_NOT_ALLOWED => Code::MethodNotAllowed,
        StatusCode::PAYLOAD_TOO_LARGE => Code::BodyTooLarge,
        status if status.is_client_error() => Code::BadRequest,
        _ => Code::Internal,
    };
    Some(Problem::new(code, code.title().to_lowercase()))
}

fn written(problem: &Problem, request_id: &str) -> Response {
    let mut response = Response::new(Body::from(problem.body(request_id)));
    *response.status_mut() = problem.code().status();
    *response.headers_mut() = problem.headers();
    response
}

fn add_headers(headers: &mut HeaderMap, request_id: &str) {
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    if let Ok(value) = HeaderValue::from_str(request_id) {
        headers.insert(HeaderName::from_static("x-request-id"), value);
    }
}

/// Nothing is at this address.
pub(crate) async fn no_such_route() -> Problem {
    Problem::new(Code::NotFound, "there is nothing at this address")
        .hint("The API is described at /api/v1/openapi.json")
}

/// Something is at this address, but not for this method.
pub(crate) async fn no_such_method() -> Problem {
    Problem::new(Code::MethodNotAllowed, "this address does not take that method")
}
