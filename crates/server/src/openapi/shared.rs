//! What operations have in common, and follows from what each of them says of itself.

use std::collections::{BTreeMap, BTreeSet};

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ArrayItems, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Header, OpenApi, Ref, RefOr, Response, Schema};

use super::{examples, name_in, operations_mut, problems};
use crate::access::Scope;

/// The name of the way in which a key is sent.
pub(crate) const KEY: &str = "key";

/// How the names of types begin that are lists in parts.
const PAGED: &str = "Paged_";

/// Problems that any request may meet.
const ALWAYS: [u16; 1] = [421];
/// Problems of requests that need a key.
const WITH_KEY: [u16; 3] = [401, 403, 429];
/// Problems of requests with a body.
const WITH_BODY: [u16; 5] = [400, 408, 413, 415, 422];

/// Says of all operations which scope they need.
pub(crate) fn say_scope(routes: &mut OpenApi, scope: Scope) {
    for item in routes.paths.paths.values_mut() {
        for (_, operation) in operations_mut(item) {
            // Without any keys on the service none is needed.
            operation.security = Some(vec![
                SecurityRequirement::default(),
                SecurityRequirement::new(KEY, [scope.word()]),
            ]);
            let sentence = format!("A key needs the scope `{}`.", scope.word());
            operation.description = Some(match operation.description.take() {
                Some(text) if !text.is_empty() => format!("{text}\n\n{sentence}"),
                _ => sentence,
            });
        }
    }
}

/// What is listed in parts is one type, named where it is listed.
pub(super) fn name_items(schemas: &mut BTreeMap<String, RefOr<Schema>>) {
    let names: BTreeSet<String> = schemas.keys().cloned().collect();
    for (name, schema) in schemas {
        let listed = name.strip_prefix(PAGED).filter(|listed| names.contains(*listed));
        let (Some(listed), RefOr::T(Schema::Object(paged))) = (listed, schema) else { continue };
        if let Some(RefOr::T(Schema::Array(items))) = paged.properties.get_mut("items") {
            let item = RefOr::Ref(Ref::from_schema_name(listed));
            items.items = ArrayItems::RefOrSchema(Box::new(item));
        }
    }
}

/// Completes one operation.
pub(super) fn complete(path: &str, method: &str, operation: &mut Operation) {
    let needs_key = operation.security.is_some();
    operation.security.get_or_insert_default();
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter {
            complete_parameter(path, parameter);
        }
    }
    add_problems(path, method, operation, needs_key);
    if operation.responses.responses.contains_key("304") {
        add_conditions(operation);
    }
    add_links(operation);
}

/// A parameter that is not sent is left out: it is never null.
fn complete_parameter(path: &str, parameter: &mut Parameter) {
    let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema else { return };
    if let SchemaType::Array(types) = &mut schema.schema_type {
        types.retain(|it| *it != Type::Null);
        if let [only] = types.as_slice() {
            schema.schema_type = SchemaType::Type(only.clone());
        }
    }
    if schema.example.is_none() {
        schema.example = match parameter.parameter_in {
            ParameterIn::Path => examples::of_path_parameter(path, &parameter.name),
            ParameterIn::Query => examples::of_query_parameter(&parameter.name),
            ParameterIn::QueryString | ParameterIn::Header | ParameterIn::Cookie => None,
        };
    }
}

/// Names the problems that follow from what the operation takes. Whatever else happens is a problem, too.
fn add_problems(path: &str, method: &str, operation: &mut Operation, needs_key: bool) {
    let takes = |place: ParameterIn| {
        let mut parameters = operation.parameters.iter().flatten();
        parameters.any(|it| matches!(it, RefOr::T(it) if it.parameter_in == place))
    };
    let mut statuses = ALWAYS.to_vec();
    if needs_key {
        statuses.extend(WITH_KEY);
    }
    if operation.request_body.is_some() {
        statuses.extend(WITH_BODY);
    }
    if takes(ParameterIn::Query) {
        statuses.push(422);
    }
    if takes(ParameterIn::Path) {
        statuses.push(404);
    }
    let responses = &mut operation.responses.responses;
    let said = responses.keys().filter_map(|status| status.parse::<u16>().ok());
    statuses.extend(said.filter(|status| *status >= 400));
    for status in statuses {
        let Some(name) = problems::response_name(status) else {
            unreachable!("{method} {path} answers {status}, which no problem has");
        };
        responses.insert(status.to_string(), RefOr::Ref(Ref::from_response_name(name)));
    }
    let other = Ref::from_response_name(problems::OTHER);
    responses.insert("default".to_owned(), RefOr::Ref(other));
}

/// The reply is not sent again to those who have it.
fn add_conditions(operation: &mut Operation) {
    let known = ParameterBuilder::new()
        .name("If-None-Match")
        .parameter_in(ParameterIn::Header)
        .description(Some("The `ETag` of an earlier reply"))
        .schema(Some(text()))
        .build();
    operation.parameters.get_or_insert_default().push(RefOr::T(known));
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        if status == "304" {
            response.description = "Not changed since the reply with this `ETag`.".to_owned();
        }
        if status == "304" || status == "200" {
            add_header(response, "ETag", "Names this content.");
        }
    }
}

/// Lists in parts name the next part in a header, too.
fn add_links(operation: &mut Operation) {
    let Some(RefOr::T(response)) = operation.responses.responses.get_mut("200") else { return };
    let is_paged = response.content.values().any(|content| match content {
        RefOr::T(content) => {
            let schema = content.schema.as_ref();
            matches!(schema, Some(RefOr::Ref(to)) if name_in(&to.ref_location).starts_with(PAGED))
        }
        RefOr::Ref(_) => false,
    });
    if is_paged {
        add_header(response, "Link", "`rel=\"next\"` leads to the next part, if there is one.");
    }
}

fn add_header(response: &mut Response, name: &str, text_of: &str) {
    let header: Header =
        HeaderBuilder::new().schema(Some(text())).description(Some(text_of)).build();
    response.headers.insert(name.to_owned(), RefOr::T(header));
}

fn text() -> Schema {
    Schema::Object(ObjectBuilder::new().schema_type(Type::String).build())
}
