//! The JSON API: routes, their parameters and their answers. Each handler asks the [`Service`] one thing.
//! Routes are grouped by what a key must allow; each is described where it is written, so that the
//! description at `/api/v1/openapi.json` cannot differ from what is served.

mod crawls;
mod events;
mod keys;
mod lists;
mod operations;
mod pages;
mod s1;
mod search;
mod system;
mod web;

use axum::middleware::from_fn_with_state;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Scope;
use crate::door::permit;
use crate::problem::{Code, Problem};
use crate::service::{Cursor, Service};

/// Items in one page of a list.
const ITEMS_MAX: u32 = 1000;
/// Items in one page of a list, if nobody says how many.
const ITEMS: u32 = 100;

/// All routes of the API.
pub(crate) fn routes(service: &Service) -> OpenApiRouter<Service> {
    let needing = |scope: Scope, routes: OpenApiRouter<Service>| {
        routes.route_layer(from_fn_with_state((service.clone(), scope), permit))
    };
    OpenApiRouter::default()
        .merge(open_routes())
        .merge(needing(Scope::Search, search_routes()))
        .merge(needing(Scope::Read, read_routes()))
        .merge(needing(Scope::Crawl, crawl_routes()))
        .merge(needing(Scope::Metrics, OpenApiRouter::default().routes(routes!(system::metrics))))
        .merge(needing(Scope::Admin, admin_routes()))
}

fn open_routes() -> OpenApiRouter<Service> {
    OpenApiRouter::default()
        .routes(routes!(system::healthz))
        .routes(routes!(system::readyz))
        .routes(routes!(system::openapi))
        .routes(routes!(system::opensearch))
        // What it needs of a key depends on the operation.
        .routes(routes!(operations::run))
}

fn search_routes() -> OpenApiRouter<Service> {
    OpenApiRouter::default()
        .routes(routes!(search::search, search::search_by_post))
        .routes(routes!(search::suggest))
}

fn read_routes() -> OpenApiRouter<Service> {
    OpenApiRouter::default()
        .routes(routes!(s1::job))
        .routes(routes!(crawls::list))
        .routes(routes!(crawls::read))
        .routes(routes!(events::events))
        .routes(routes!(lists::pages))
        .routes(routes!(lists::errors))
        .routes(routes!(lists::skipped))
        .routes(routes!(lists::hosts))
        .routes(routes!(lists::frontier))
        .routes(routes!(lists::coverage))
        .routes(routes!(lists::export))
        .routes(routes!(pages::by_url))
        .routes(routes!(pages::by_id))
        .routes(routes!(pages::raw))
        .routes(routes!(pages::markdown))
        .routes(routes!(pages::links))
        .routes(routes!(web::explain))
        .routes(routes!(system::stats))
}

fn crawl_routes() -> OpenApiRouter<Service> {
    OpenApiRouter::default()
        .routes(routes!(s1::start))
        .routes(routes!(crawls::start))
        .routes(routes!(crawls::change, crawls::delete))
        .routes(routes!(crawls::pause))
        .routes(routes!(crawls::resume))
        .routes(routes!(crawls::recrawl))
        .routes(routes!(crawls::stop))
        .routes(routes!(crawls::cancel))
        .routes(routes!(crawls::retry))
        .routes(routes!(web::fetch))
        .routes(routes!(web::map))
}

fn admin_routes() -> OpenApiRouter<Service> {
    OpenApiRouter::default().routes(routes!(keys::list, keys::create)).routes(routes!(keys::revoke))
}

/// How many items were asked for.
fn items(limit: Option<u32>) -> Result<usize, Problem> {
    let limit = limit.unwrap_or(ITEMS);
    if !(1..=ITEMS_MAX).contains(&limit) {
        let what = format!("write 1 to {ITEMS_MAX}");
        return Err(Problem::new(Code::InvalidField, what).at("limit"));
    }
    Ok(limit as usize)
}

fn cursor(text: Option<String>) -> Result<Option<Cursor>, Problem> {
    text.filter(|text| !text.is_empty()).map(|text| Cursor::read(&text)).transpose()
}
