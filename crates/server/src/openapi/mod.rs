//! The description of the API (OpenAPI 3.1), made from the routes themselves.
//!
//! What only one route can say is written where the route is. What routes have in common is added here: keys
//! and their scopes, problems, conditional requests, lists in parts, and examples of replies.

mod shared;

mod problems;

mod page_content;

mod examples;

use std::sync::OnceLock;

use utoipa::ToSchema;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder};
use utoipa::openapi::{ServerBuilder, Tag};

use crate::api;
use crate::service::Service;

pub(crate) use self::examples::{name_in, resolved};
pub(crate) use self::shared::{KEY, say_scope};

const ABOUT: &str = "\
Crawls sites, and searches what was crawled.

**Keys.** A service without keys answers only its own machine, and needs none. Once there is a key, requests \
carry one: `Authorization: Bearer tlk_…`. Each operation names the scope that it needs. `read` includes `search`, \
`crawl` includes `read`, `metrics` only reads `/metrics`, and `admin` includes everything.

**Errors** are `application/problem+json` (RFC 9457). Programs compare `code`, whose words are stable; `detail` is \
for people, and `request_id` names the request in the service's log. Every reply carries it as `X-Request-Id`, too.

**Lists** come in parts: `next_cursor` of one part is the `cursor` of the next, and so is the header `Link` with \
`rel=\"next\"`.

**Conditional requests.** Replies that say so carry an `ETag`; sent back as `If-None-Match`, it gets 304 if \
nothing changed.

**Times** are RFC 3339 in UTC, where a field does not say otherwise.";

/// The groups of operations, in reading order.
const TAGS: [(&str, &str); 8] = [
    ("search", "Full-text search over the pages of all crawls."),
    ("crawls", "Crawls: started, listed, watched, changed, paused, resumed, stopped and deleted."),
    (
        "content",
        "What a crawl holds: pages, URLs that failed, were skipped or wait, hosts, exports.",
    ),
    ("web", "Single pages and sites, asked at once and without a crawl."),
    ("keys", "The keys of this API."),
    ("system", "Health, totals, metrics, and this description."),
    ("terminal", "What `telusur --server URL` asks. It changes with the program."),
    (
        "first service",
        "The two calls of the first service, for clients that were written for it. Times are Unix milliseconds.",
    ),
];

/// Describes every route. It is made once: it is the same for every service.
pub(crate) fn description(service: &Service) -> &'static OpenApi {
    static DESCRIPTION: OnceLock<OpenApi> = OnceLock::new();
    DESCRIPTION.get_or_init(|| complete(api::routes(service).into_openapi()))
}

/// Adds what all routes have in common.
fn complete(routes: OpenApi) -> OpenApi {
    let mut paths = routes.paths;
    let mut schemas = routes.components.unwrap_or_default().schemas;
    problems::add_schema(&mut schemas);
    page_content::put_in_place(&mut schemas);
    shared::name_items(&mut schemas);
    for (path, item) in &mut paths.paths {
        for (method, operation) in operations_mut(item) {
            shared::complete(path, method, operation);
            examples::add(operation, &schemas);
        }
    }
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A key that `telusur key create` or `POST /api/v1/keys` made."))
        .build();
    let components = ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .responses_from_iter(problems::responses(&paths))
        .security_scheme(KEY, SecurityScheme::Http(bearer))
        .build();
    let license = LicenseBuilder::new()
        .name("MIT OR Apache-2.0")
        .identifier(Some("MIT OR Apache-2.0"))
        .build();
    let info = InfoBuilder::new()
        .title("Telusur")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .license(Some(license))
        .build();
    let here = ServerBuilder::new().url("/").description(Some("Where this description is served"));
    let usual = ServerBuilder::new()
        .url("http://127.0.0.1:8088")
        .description(Some("Where `telusur serve` listens if it is not told otherwise"));
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([here.build(), usual.build()]))
        .tags(Some(TAGS.map(tag)))
        .paths(paths)
        .components(Some(components))
        .build()
}

fn tag((name, text): (&str, &str)) -> Tag {
    TagBuilder::new().name(name).description(Some(text)).build()
}

/// The operations of a path with their methods, in reading order.
pub(crate) fn operations(item: &PathItem) -> impl Iterator<Item = (&'static str, &Operation)> {
    let all = [
        ("GET", &item.get),
        ("POST", &item.post),
        ("PUT", &item.put),
        ("PATCH", &item.patch),
        ("DELETE", &item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_ref()?)))
}

fn operations_mut(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let all = [
        ("GET", &mut item.get),
        ("POST", &mut item.post),
        ("PUT", &mut item.put),
        ("PATCH", &mut item.patch),
        ("DELETE", &mut item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// An OpenAPI document. What its parts hold is said by the OpenAPI specification.
#[derive(ToSchema)]
#[schema(as = Description)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct DescriptionView {
    /// The version of OpenAPI.
    openapi: String,
    /// The title and the version of the API.
    info: DescriptionInfo,
    /// The operations: by path, then by method.
    paths:
        std::collections::BTreeMap<String, std::collections::BTreeMap<String, serde_json::Value>>,
}

/// The title and the version of an API.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct DescriptionInfo {
    /// The name of the API.
    title: String,
    /// The version of the program that serves it.
    version: String,
}
