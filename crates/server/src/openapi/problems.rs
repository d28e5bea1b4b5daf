//! Problems as the description names them: one response for each status, with the codes that come with it.

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;
use serde_json::Value;
use utoipa::openapi::{
    Content, ContentBuilder, Paths, Ref, RefOr, Response, ResponseBuilder, Schema,
};
use utoipa::{PartialSchema, ToSchema};

use super::operations;
use crate::problem::{Code, PROBLEM_JSON, Problem, ProblemBody};

/// The response for whatever is not named.
pub(super) const OTHER: &str = "OtherProblem";

/// Adds what a problem looks like.
pub(super) fn add_schema(schemas: &mut BTreeMap<String, RefOr<Schema>>) {
    schemas.insert(ProblemBody::name().into_owned(), ProblemBody::schema());
}

/// The name of the response with this status, if there is a problem that has it: `NotFound`.
pub(super) fn response_name(status: u16) -> Option<String> {
    let code = Code::ALL.iter().find(|code| code.status().as_u16() == status)?;
    Some(name_of(code.status()))
}

/// One response for each status that an operation names, and one for the rest.
pub(super) fn responses(paths: &Paths) -> BTreeMap<String, RefOr<Response>> {
    let operations = paths.paths.values().flat_map(operations);
    let named: BTreeSet<&str> = operations
        .flat_map(|(_, operation)| operation.responses.responses.keys().map(String::as_str))
        .collect();
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in Code::ALL.iter().filter(|code| named.contains(code.status().as_str())) {
        by_status.entry(code.status().as_u16()).or_default().push(*code);
    }
    let mut responses: BTreeMap<String, RefOr<Response>> = by_status
        .values()
        .map(|codes| (name_of(codes[0].status()), RefOr::T(response(&text_of(codes), codes[0]))))
        .collect();
    let other = "Anything else that went wrong, as the status and `code` say.";
    responses.insert(OTHER.to_owned(), RefOr::T(response(other, Code::Internal)));
    responses
}

fn name_of(status: StatusCode) -> String {
    status.canonical_reason().unwrap_or_default().split(' ').collect()
}

/// Its codes, each with what it means.
fn text_of(codes: &[Code]) -> String {
    let sentences: Vec<String> =
        codes.iter().map(|code| format!("`{}`: {}.", code.word(), code.title())).collect();
    sentences.join(" ")
}

fn response(text: &str, example: Code) -> Response {
    ResponseBuilder::new().description(text).content(PROBLEM_JSON, content(example)).build()
}

fn content(code: Code) -> Content {
    let schema = Ref::from_schema_name(ProblemBody::name());
    let problem = Problem::new(code, "what exactly happened, in a sentence");
    let example: Option<Value> = serde_json::from_slice(&problem.body("r_4f2a9c01")).ok();
    ContentBuilder::new().schema(Some(schema)).example(example).build()
}
