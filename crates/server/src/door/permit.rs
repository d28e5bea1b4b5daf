//! The layers that let requests in: first by name and origin, then by key.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::atomic::Ordering;

use crate::access::{LOOK_EVERY, Pass, Scope, check_host, check_origin, key_of};
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
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let pass = service.permit(request.headers(), needed)?;
    request.extensions_mut().insert(pass);
    Ok(next.run(request).await)
}

impl Service {
    /// Whether the sender of these headers may do what needs this scope.
    pub(crate) fn permit(&self, headers: &http::HeaderMap, needed: Scope) -> Result<Pass, Problem> {
        let inner = self.inner();
        if !inner.keys.are_needed() {
            return Ok(Pass::NoKeysNeeded);
        }
        let Some(text) = key_of(headers) else {
            if needed == Scope::Search && inner.settings.public_search {
                return Ok(Pass::PublicSearch);
            }
            if inner.keys.is_empty() {
                let what =
                    "this needs a key, and there is none: all were revoked, or their file is gone";
                return Err(Problem::new(Code::Unauthorized, what)
                    .hint("On the server: telusur key create --scope admin. To do without keys, remove keys.json and keys.lock from the data directory and start it again"));
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
        let pass = Pass::Key(Box::new(key));
        if pass.covers(needed) {
            return Ok(pass);
        }
        let what = format!("this needs a key with the scope {}", needed.word());
        Err(Problem::new(Code::ForbiddenScope, what))
    }

    /// Whether requests need a key.
    pub(crate) fn asks_for_keys(&self) -> bool {
        self.inner().keys.are_needed()
    }

    /// Whether somebody who was let in would still be.
    pub(crate) fn holds(&self, pass: &Pass) -> bool {
        let inner = self.inner();
        match pass {
            Pass::NoKeysNeeded => !inner.keys.are_needed(),
            Pass::PublicSearch => inner.settings.public_search,
            Pass::Key(key) => inner.keys.with_hash(&key.hash, inner.clock.wall()).is_some(),
        }
    }

    /// Waits until somebody who was let in no longer would be: a stream ends with its key.
    pub(crate) async fn no_longer_holds(&self, pass: &Pass) {
        loop {
            let changed = self.inner().keys.changed().notified();
            if !self.holds(pass) {
                return;
            }
            // Keys also change in other processes, and end by the clock.
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }
}
