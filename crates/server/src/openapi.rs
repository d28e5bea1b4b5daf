//! The description of the API (OpenAPI 3.1), made from the routes themselves.

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr,
    ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use crate::api;
use crate::problem::{PROBLEM_JSON, ProblemBody};
use crate::service::Service;

/// Describes every route.
pub(crate) fn description(service: &Service) -> OpenApi {
    complete(api::routes(service).into_openapi())
}

/// Adds what all routes have in common: how a key is sent, and what a problem looks like.
fn complete(routes: OpenApi) -> OpenApi {
    let mut schemas = routes.components.unwrap_or_default().schemas;
    schemas.insert(ProblemBody::name().into_owned(), ProblemBody::schema());
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .security_scheme("key", SecurityScheme::Http(bearer))
        .build();
    let info = InfoBuilder::new()
        .title("Telusur")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Crawls sites, and searches what was crawled."))
        .build();
    let mut paths = routes.paths;
    for item in paths.paths.values_mut() {
        let operations = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
            &mut item.patch,
            &mut item.head,
            &mut item.options,
        ];
        for operation in operations.into_iter().flatten() {
            let problem = ResponseBuilder::new()
                .description("what went wrong (RFC 9457)")
                .content(PROBLEM_JSON, problem_content())
                .build();
            operation.responses.responses.insert("default".to_owned(), RefOr::T(problem));
        }
    }
    OpenApiBuilder::new()
        .info(info)
        .paths(paths)
        .components(Some(components))
        .security(Some([
            SecurityRequirement::default(),
            SecurityRequirement::new("key", std::iter::empty::<String>()),
        ]))
        .build()
}

fn problem_content() -> utoipa::openapi::Content {
    ContentBuilder::new().schema(Some(Ref::from_schema_name(ProblemBody::name()))).build()
}
