//! The web pages. They ask the same [`Service`] as the JSON API and know nothing that it does not know.
//! Every page works without scripts; scripts only make some of them move. What comes from the web is
//! shown as text: templates escape it, and nothing is ever loaded from another site.

mod frame;
mod words;

mod search;

mod crawls;
mod new_crawl;

mod live;

mod crawl_lists;
mod orders;

mod coverage;
mod page;

mod api;
mod explain;
mod system;

mod assets;
mod bars;
mod forms;
mod numbers;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};

use crate::access::Scope;
use crate::door::permit;
use crate::service::Service;

pub(crate) use self::frame::as_page_for_people;

/// All pages, grouped by what a key must allow.
pub(crate) fn routes(service: &Service) -> Router<Service> {
    let needing = |scope: Scope, routes: Router<Service>| {
        routes.route_layer(from_fn_with_state((service.clone(), scope), permit))
    };
    Router::new()
        .merge(needing(Scope::Search, search_routes()))
        .merge(needing(Scope::Read, read_routes()))
        .merge(needing(Scope::Crawl, crawl_routes()))
        .route("/docs/api", get(api::api))
        .route("/look", get(frame::look))
        .route("/key", post(frame::give_key))
        .route("/assets/{name}", get(assets::asset))
        .layer(from_fn(frame::as_page))
}

fn search_routes() -> Router<Service> {
    Router::new().route("/", get(search::home)).route("/search", get(search::results))
}

fn read_routes() -> Router<Service> {
    Router::new()
        .route("/crawls", get(crawls::list))
        .route("/crawls/{id}", get(live::overview))
        .route("/crawls/{id}/live", get(live::moving_part))
        .route("/crawls/{id}/pages", get(crawl_lists::pages))
        .route("/crawls/{id}/queue", get(crawl_lists::queue))
        .route("/crawls/{id}/hosts", get(crawl_lists::hosts))
        .route("/crawls/{id}/errors", get(crawl_lists::errors))
        .route("/crawls/{id}/skipped", get(crawl_lists::skipped))
        .route("/crawls/{id}/coverage", get(coverage::coverage))
        .route("/page", get(page::by_url))
        .route("/pages/{id}", get(page::page))
        .route("/pages/{id}/preview", get(page::preview))
        .route("/explain", get(explain::explain))
        .route("/system", get(system::system))
}

fn crawl_routes() -> Router<Service> {
    Router::new()
        .route("/crawls/new", get(new_crawl::form).post(new_crawl::start))
        .route("/crawls/{id}/settings", get(orders::settings).post(orders::change))
        .route("/crawls/{id}/delete", get(orders::are_you_sure).post(orders::delete))
        .route("/crawls/{id}/{order}", post(orders::order))
}
