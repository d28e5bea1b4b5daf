//! [`app`]: all routes behind all layers.

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;

use crate::door::{finish, guard, no_such_method, no_such_route};
use crate::problem::{Code, Problem};
use crate::service::Service;
use crate::{api, ui};

/// The service as something that answers requests.
pub fn app(service: Service) -> Router {
    let mut routes: Router<Service> = api::routes(&service).into();
    if service.settings().has_ui {
        routes = routes.merge(ui::routes(&service));
    }
    routes
        .fallback(no_such_route)
        .method_not_allowed_fallback(no_such_method)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(service.clone(), guard))
        .layer(from_fn_with_state(service.clone(), finish))
        .layer(CompressionLayer::new())
        .with_state(service)
}

/// A fault of ours costs one request, and is told without what it was.
fn panicked(_: Box<dyn std::any::Any + Send + 'static>) -> Response {
    Problem::new(Code::Internal, "the request failed in the middle").into_response()
}
