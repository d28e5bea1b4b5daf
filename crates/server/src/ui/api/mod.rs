//! The description of the API as a page for people, made from the description itself.

mod curl;
mod schemas;
mod text;

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use http::header::HOST;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::{Content, OpenApi, RefOr, Schema};

use self::curl::{SentBody, curl};
use self::schemas::{Field, Kind, fields, fields_within, kind_of};
use self::text::{Span, paragraphs, spans};
use super::frame::{Frame, Viewer, render};
use crate::openapi::{KEY, description, name_in, operations};
use crate::problem::Problem;
use crate::service::Service;

#[derive(Template)]
#[template(path = "api.html")]
struct ApiPage {
    frame: Frame,
    about: Vec<Vec<Span>>,
    groups: Vec<Group>,
    problems: Vec<ReplyPart>,
    types: Vec<TypePart>,
}

/// Operations that belong together.
struct Group {
    anchor: String,
    name: String,
    about: Vec<Span>,
    operations: Vec<OperationPart>,
}

/// One operation.
struct OperationPart {
    id: String,
    method: &'static str,
    path: String,
    summary: String,
    about: Vec<Vec<Span>>,
    parameters: Vec<Field>,
    body: Option<BodyPart>,
    replies: Vec<ReplyPart>,
    curl: String,
}

/// What is sent with a request.
struct BodyPart {
    kind: Kind,
    fields: Vec<Field>,
    /// Each with what it shows.
    examples: Vec<(String, String)>,
}

/// One reply.
struct ReplyPart {
    status: String,
    /// Media types with what they hold.
    content: Vec<(String, Kind)>,
    about: Vec<Span>,
    example: Option<String>,
    /// Where it is said what the problem is.
    problem: Option<String>,
}

/// One type.
struct TypePart {
    name: String,
    about: Vec<Span>,
    fields: Vec<Field>,
}

/// The page. It needs no key, as the description itself.
pub(crate) async fn api(
    State(service): State<Service>,
    headers: HeaderMap,
    viewer: Viewer,
) -> Result<Response, Problem> {
    let document = description(&service);
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1:8088");
    let reader = Reader { document, host, sends_key: service.asks_for_keys() };
    render(&ApiPage {
        frame: viewer.frame("api", viewer.words().api_title),
        about: paragraphs(document.info.description.as_deref().unwrap_or_default()),
        groups: reader.groups(),
        problems: reader.problems(),
        types: reader.types(),
    })
}

/// Reads the description.
struct Reader<'a> {
    document: &'a OpenApi,
    /// The name and port that the page was asked for by.
    host: &'a str,
    sends_key: bool,
}

impl Reader<'_> {
    fn schemas(&self) -> &BTreeMap<String, RefOr<Schema>> {
        static NONE: BTreeMap<String, RefOr<Schema>> = BTreeMap::new();
        self.document.components.as_ref().map_or(&NONE, |components| &components.schemas)
    }

    fn groups(&self) -> Vec<Group> {
        let tags = self.document.tags.iter().flatten();
        tags.map(|tag| Group {
            anchor: format!("group-{}", tag.name.replace(' ', "-")),
            name: tag.name.clone(),
            about: spans(tag.description.as_deref().unwrap_or_default()),
            operations: self.operations_of(&tag.name),
        })
        .collect()
    }

    fn operations_of(&self, tag: &str) -> Vec<OperationPart> {
        let mut found = Vec::new();
        for (path, item) in &self.document.paths.paths {
            for (method, operation) in operations(item) {
                if operation.tags.iter().flatten().any(|it| it == tag) {
                    found.push(self.operation(method, path, operation));
                }
            }
        }
        found
    }

    fn operation(&self, method: &'static str, path: &str, operation: &Operation) -> OperationPart {
        let parameters: Vec<&Parameter> = operation
            .parameters
            .iter()
            .flatten()
            .filter_map(|parameter| match parameter {
                RefOr::T(parameter) => Some(parameter),
                RefOr::Ref(_) => None,
            })
            .collect();
        let body = self.body(operation);
        let needs_key = operation.security.iter().flatten().any(names_key);
        let example = body.as_ref().and_then(|(_, sent)| sent.as_ref());
        let is_stream = replies_with(operation, "text/event-stream");
        let curl = curl(&curl::Call {
            method,
            path,
            parameters: &parameters,
            body: example,
            host: self.host,
            sends_key: self.sends_key && needs_key,
            is_stream,
        });
        OperationPart {
            id: operation.operation_id.clone().unwrap_or_default(),
            method,
            path: path.to_owned(),
            summary: operation.summary.clone().unwrap_or_default(),
            about: paragraphs(operation.description.as_deref().unwrap_or_default()),
            parameters: parameters.iter().map(|parameter| self.parameter(parameter)).collect(),
            body: body.map(|(body, _)| body),
            replies: self.replies(operation),
            curl,
        }
    }

    fn parameter(&self, parameter: &Parameter) -> Field {
        let place = match parameter.parameter_in {
            ParameterIn::Path => "path",
            ParameterIn::Query | ParameterIn::QueryString => "query",
            ParameterIn::Header => "header",
            ParameterIn::Cookie => "cookie",
        };
        let is_required = parameter.required == utoipa::openapi::Required::True;
        let about = parameter.description.as_deref().unwrap_or_default();
        let kind = parameter.schema.as_ref().map(kind_of).unwrap_or_default();
        Field { name: parameter.name.clone(), place, kind, is_required, about: spans(about) }
    }

    /// What is sent, and its example as one line.
    fn body(&self, operation: &Operation) -> Option<(BodyPart, Option<SentBody>)> {
        let RefOr::T(body) = operation.request_body.as_ref()? else { return None };
        let (kind, RefOr::T(content)) = body.content.iter().next()? else { return None };
        let schema = content.schema.as_ref()?;
        let values = examples_of(content);
        let compact =
            values.first().map(|(_, value)| SentBody { kind: kind.clone(), text: text_of(value) });
        let examples = values.into_iter().map(|(about, value)| (about, shown(&value))).collect();
        let fields = fields_within(schema, self.schemas());
        Some((BodyPart { kind: kind_of(schema), fields, examples }, compact))
    }

    /// Replies that are no problems are said in full; problems are said once for all operations.
    fn replies(&self, operation: &Operation) -> Vec<ReplyPart> {
        let replies = operation.responses.responses.iter();
        replies
            .map(|(status, reply)| match reply {
                RefOr::T(reply) => self.reply(status, reply),
                RefOr::Ref(to) => ReplyPart {
                    status: status.clone(),
                    content: Vec::new(),
                    about: Vec::new(),
                    example: None,
                    problem: Some(name_in(&to.ref_location).to_owned()),
                },
            })
            .collect()
    }

    fn reply(&self, status: &str, reply: &utoipa::openapi::Response) -> ReplyPart {
        let mut content = Vec::new();
        let mut example = None;
        for (media_type, of_type) in &reply.content {
            let RefOr::T(of_type) = of_type else { continue };
            let kind = of_type.schema.as_ref().map(kind_of).unwrap_or_default();
            content.push((media_type.clone(), kind));
            let first = examples_of(of_type).into_iter().next();
            example = example.or(first.map(|(_, value)| pretty(&value)));
        }
        ReplyPart {
            status: status.to_owned(),
            content,
            about: spans(&reply.description),
            example,
            problem: None,
        }
    }

    /// The problems that operations name, each once, by status.
    fn problems(&self) -> Vec<ReplyPart> {
        let operations = self.document.paths.paths.values().flat_map(operations);
        let named: BTreeMap<&str, &str> = operations
            .flat_map(|(_, operation)| &operation.responses.responses)
            .filter_map(|(status, reply)| match reply {
                RefOr::Ref(to) => Some((status.as_str(), name_in(&to.ref_location))),
                RefOr::T(_) => None,
            })
            .collect();
        let components = self.document.components.as_ref();
        let described = named.into_iter().filter_map(|(status, name)| {
            let RefOr::T(response) = components?.responses.get(name)? else { return None };
            Some(ReplyPart { problem: Some(name.to_owned()), ..self.reply(status, response) })
        });
        described.collect()
    }

    fn types(&self) -> Vec<TypePart> {
        let schemas = self.schemas();
        let schemas = schemas.iter().map(|(name, schema)| {
            let (about, fields) = (schemas::about(schema), fields(schema, schemas));
            TypePart { name: name.clone(), about: spans(about), fields }
        });
        schemas.collect()
    }
}

fn names_key(requirement: &utoipa::openapi::SecurityRequirement) -> bool {
    let names = serde_json::to_value(requirement).unwrap_or_default();
    names.get(KEY).is_some()
}

fn replies_with(operation: &Operation, media_type: &str) -> bool {
    operation.responses.responses.values().any(|reply| match reply {
        RefOr::T(reply) => reply.content.contains_key(media_type),
        RefOr::Ref(_) => false,
    })
}

/// The examples of a content, each with what it shows.
fn examples_of(content: &Content) -> Vec<(String, serde_json::Value)> {
    let named = content.examples.values().filter_map(|example| match example {
        RefOr::T(example) => Some((example.summary.clone(), example.value.clone()?)),
        RefOr::Ref(_) => None,
    });
    let only = content.example.iter().map(|value| (String::new(), value.clone()));
    only.chain(named).collect()
}

fn pretty(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// What is sent as a body: lines and other text as they are, everything else as JSON on one line.
fn text_of(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The same for readers.
fn shown(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| pretty(value), str::to_owned)
}
