//! [`app`]: all routes behind all layers.

use axum::Router;
use axum::handler::Handler;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;

use crate::door::{finish, guard, no_such_method, no_such_route};
use crate::problem::{Code, Problem};
use crate::service::Service;
use crate::{api, ui};

/// The service as something that answers requests.
pub fn app(service: Service) -> Router {
    let routes: Router<Service> = api::routes(&service).into();
    let routes = match service.settings().has_ui {
        true => routes
            .merge(ui::routes(&service))
            .fallback(no_such_route.layer(from_fn(ui::as_page_for_people)))
            .method_not_allowed_fallback(no_such_method.layer(from_fn(ui::as_page_for_people))),
        false => routes.fallback(no_such_route).method_not_allowed_fallback(no_such_method),
    };
    routes
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
