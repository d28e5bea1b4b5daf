//! The layers that let requests in: first by name and origin, then by key.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::atomic::Ordering;

use crate::access::{Scope, check_host, check_origin, key_of};
use crate::problem::{Code, Problem};
use crate::service::Service;

/// Keeps out what was meant for somebody else, or comes from another website.
pub(crate) async fn guard(
    State(service): State<Service>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    check_host(request.headers(), service.settings())?;
    check_origin(request.method(), request.headers())?;
    Ok(next.run(request).await)
}

/// Lets a request through whose key allows what the route needs.
pub(crate) async fn permit(
    State((service, needed)): State<(Service, Scope)>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    service.permit(request.headers(), needed)?;
    Ok(next.run(request).await)
}

impl Service {
    /// Whether the sender of these headers may do what needs this scope.
    pub fn permit(&self, headers: &http::HeaderMap, needed: Scope) -> Result<(), Problem> {
        let inner = self.inner();
        if inner.keys.is_empty() {
            // Without keys only this machine reaches us: any other address was refused at the start.
            return match inner.settings.listen.ip().is_loopback() {
                true => Ok(()),
                false => Err(Problem::new(Code::Unauthorized, "every key was revoked")),
            };
        }
        let Some(text) = key_of(headers) else {
            if needed == Scope::Search && inner.settings.public_search {
                return Ok(());
            }
            return Err(Problem::new(Code::Unauthorized, "this needs a key")
                .hint("Send the header Authorization: Bearer tlk_…"));
        };
        let key = inner.keys.find(text, inner.clock.wall());
        let key = key.ok_or_else(|| {
            Problem::new(Code::Unauthorized, "this key is not known, was revoked or has ended")
        })?;
        let bounds = &inner.settings.bounds;
        let (per_s, burst) = (bounds.key_requests_per_s, bounds.key_burst);
        inner.rates.take(&key.id, per_s, burst, inner.clock.now()).map_err(|seconds| {
            inner.metrics.refused_by_rate.fetch_add(1, Ordering::Relaxed);
            Problem::new(Code::TooManyRequests, "this key makes too many requests")
                .retry_after_s(seconds)
        })?;
        if key.scopes.iter().any(|scope| scope.covers(needed)) {
            return Ok(());
        }
        let what = format!("this needs a key with the scope {}", needed.word());
        Err(Problem::new(Code::ForbiddenScope, what))
    }
}
