//! The web pages. They ask the same [`Service`] as the JSON API and know nothing that it does not know.

use axum::Router;
use axum::response::Html;
use axum::routing::get;

use crate::service::Service;

/// All pages.
pub(crate) fn routes(_: &Service) -> Router<Service> {
    Router::new().route("/", get(home))
}

/// Where people arrive who open the address in a browser.
async fn home() -> Html<&'static str> {
    Html(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Telusur</title>\
         <h1>Telusur</h1><p>The service runs. Its API is described at \
         <a href=/api/v1/openapi.json>/api/v1/openapi.json</a>.",
    )
}
