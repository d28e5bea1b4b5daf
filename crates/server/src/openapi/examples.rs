//! Examples of replies, made from their schemas: so they have every field, and none that there is not.
//!
//! A request is only worth showing if it means something: those are written where their types or routes are.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{AdditionalProperties, ArrayItems, Object, SchemaType, Type};
use utoipa::openapi::{RefOr, Response, Schema};

type Schemas = BTreeMap<String, RefOr<Schema>>;

const JSON: &str = "application/json";

/// Objects inside of objects, at most: no type of ours holds itself, and this keeps it harmless if one does.
const DEPTH_MAX: usize = 20;

/// What a field of this name holds, in JSON. One that does not fit the type of a field is not used for it.
/// `Type.field` goes before `field`.
const SAMPLES: &[(&str, &str)] = &[
    ("active_s", "61.4"),
    ("alias", "\"crawl_1\""),
    ("allow_hosts", "[]"),
    ("alt", "\"A map of the site\""),
    ("anchor", "\"Next page\""),
    ("asked_at", "\"2026-01-31T09:15:02Z\""),
    ("at", "\"2026-01-31T09:16:40Z\""),
    ("attempts", "1"),
    ("bytes", "48213"),
    ("charset", "\"UTF-8\""),
    ("code", "\"not_found\""),
    ("content_type", "\"text/html\""),
    ("count", "42"),
    ("crawl", "\"crawl_1\""),
    ("crawl_alias", "\"crawl_1\""),
    ("crawled_at", "1769850902000"),
    ("CrawlLinks.coverage", "null"),
    ("CrawlLinks.errors", "\"/api/v1/crawls/crawl_1/errors\""),
    ("CrawlLinks.events", "\"/api/v1/crawls/crawl_1/events\""),
    ("CrawlLinks.export", "\"/api/v1/crawls/crawl_1/export\""),
    ("CrawlLinks.frontier", "\"/api/v1/crawls/crawl_1/frontier\""),
    ("CrawlLinks.hosts", "\"/api/v1/crawls/crawl_1/hosts\""),
    ("CrawlLinks.pages", "\"/api/v1/crawls/crawl_1/pages\""),
    ("CrawlLinks.self", "\"/api/v1/crawls/crawl_1\""),
    ("CrawlLinks.skipped", "\"/api/v1/crawls/crawl_1/skipped\""),
    ("crawls", "{\"completed\": 3, \"running\": 1}"),
    ("CrawlView.id", "\"c_01M7R602BA00000000000009QQ\""),
    ("CrawlView.keep", "\"html\""),
    ("CrawlView.state", "\"running\""),
    ("created_at", "\"2026-01-31T09:15:00Z\""),
    ("data", "\"{\\\"state\\\":\\\"running\\\"}\""),
    ("delay_ms", "1000"),
    ("depth", "1"),
    ("depths", "{\"0\": 1, \"1\": 24, \"2\": 75}"),
    ("detail", "\"connection refused\""),
    ("digest", "\"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262\""),
    ("discovered", "312"),
    ("ErrorView.reason", "\"timeout_connect\""),
    ("ErrorView.status", "null"),
    ("estimated_total", "42"),
    ("eta_s", "12"),
    ("EventBody.id", "\"42\""),
    ("exclude", "[\"/archive/\"]"),
    ("facets", "{\"site\": [{\"value\": \"example.org\", \"count\": 42}]}"),
    ("failures", "{\"timeout_connect\": 1}"),
    ("fairness_index", "1"),
    ("fetched", "100"),
    ("fetched_at", "\"2026-01-31T09:15:02Z\""),
    ("first", "1"),
    ("flag", "\"--max-per-host\""),
    ("followers", "{}"),
    ("headers", "[[\"content-type\", \"text/html; charset=utf-8\"]]"),
    ("help", "\"the crawl's scope does not include it\""),
    ("host", "\"example.org\""),
    ("html", "\"<table><tr><th>Name</th></tr></table>\""),
    ("include", "[]"),
    ("index_lag", "0"),
    ("indexed", "100"),
    ("info", "{\"title\": \"Telusur\", \"version\": \"0.1.0\"}"),
    ("job_id", "\"crawl_1\""),
    ("keep", "\"html\""),
    ("key", "\"tlk_…\""),
    ("KeyView.id", "\"k_5e2f09ab31c7\""),
    ("KeyView.name", "\"dashboard\""),
    ("labels", "{\"team\": \"docs\"}"),
    ("lang", "\"en\""),
    ("language", "\"en\""),
    ("last", "100"),
    ("last_request_at", "\"2026-01-31T09:16:40Z\""),
    ("lastmod", "\"2026-01-30T00:00:00Z\""),
    ("LeftOutView.reason", "\"host_budget\""),
    ("level", "1"),
    ("limit", "10"),
    ("link_count", "17"),
    ("links", "[\"https://example.org/about\"]"),
    ("listen", "\"127.0.0.1:8088\""),
    ("MannersView.fairness", "\"equal\""),
    ("MannersView.robots", "\"obey\""),
    ("markdown", "\"# Example\\n\\nThe main content.\""),
    ("max", "100"),
    ("max_depth", "12"),
    ("max_pages", "500"),
    ("media", "\"screen\""),
    ("min", "1"),
    ("name", "\"docs\""),
    ("next", "101"),
    ("normal_form", "\"https://example.org/\""),
    ("ok", "97"),
    ("openapi", "\"3.1.0\""),
    ("page", "\"p_1_42\""),
    ("pages", "100"),
    ("pages_per_s", "1.6"),
    ("PageView.id", "\"p_1_42\""),
    ("paths", "{}"),
    ("per_host", "1"),
    ("published", "\"2026-01-30\""),
    ("published_at", "\"2026-01-30T00:00:00Z\""),
    ("query", "\"polite crawler\""),
    ("queued", "212"),
    ("rank", "0.0123"),
    ("reason", "\"out_of_scope\""),
    ("redirects", "[]"),
    ("referrer", "\"https://example.org/\""),
    ("rel", "\"next\""),
    ("request_id", "\"r_4f2a9c01\""),
    ("requests", "101"),
    ("retried", "3"),
    ("retry", "2000"),
    ("rule", "\"scope: host\""),
    ("S1Job.id", "\"crawl_1\""),
    ("S1Job.max_pages", "10"),
    ("S1Job.started_at", "1769850900000"),
    ("S1Page.status_code", "200"),
    ("scopes", "[\"search\", \"read\"]"),
    ("score", "11.25"),
    ("seed_url", "\"https://example.org/\""),
    ("seeds", "[\"https://example.org/\"]"),
    ("seeds_total", "1"),
    ("seq", "42"),
    ("site", "\"example.org\""),
    ("sites_total", "1"),
    ("skips", "{\"out_of_scope\": 14}"),
    ("snippet", "\"A <mark>polite</mark> <mark>crawler</mark> waits.\""),
    ("snippet_text", "\"A polite crawler waits.\""),
    ("start", "1"),
    ("started_at", "\"2026-01-31T09:15:00Z\""),
    ("state_since", "\"2026-01-31T09:15:01Z\""),
    ("status", "200"),
    ("status_code", "200"),
    ("status_codes", "{\"200\": 97, \"404\": 3}"),
    ("suggestions", "[\"polite crawler\", \"polite crawling\"]"),
    ("template", "\"https://example.org/item/{id}\""),
    ("text", "\"The main content.\""),
    ("title", "\"Example\""),
    ("took_ms", "84"),
    ("total", "100"),
    ("type", "\"html\""),
    ("uptime_s", "86400"),
    ("url", "\"https://example.org/\""),
    ("urls", "14"),
    ("value", "\"example.org\""),
    ("version", "\"0.1.0\""),
    ("visible_text", "\"The main content.\""),
    ("warnings", "[]"),
    ("why", "[]"),
    ("workers", "16"),
];

/// Where an id leads, by the beginning of the path that holds it.
const IDS: [(&str, &str); 4] = [
    ("/api/v1/crawls/", "crawl_1"),
    ("/crawl/", "crawl_1"),
    ("/api/v1/pages/", "p_1_42"),
    ("/api/v1/keys/", "k_5e2f09ab31c7"),
];

/// The example of a parameter in a path.
pub(super) fn of_path_parameter(path: &str, name: &str) -> Option<Value> {
    if name == "operation" {
        return Some("ReadCrawl".into());
    }
    let known = IDS.iter().find(|(start, _)| path.starts_with(start));
    known.filter(|_| name == "id").map(|(_, id)| (*id).into())
}

/// The example of a parameter without which there is nothing to ask for. The others are choices.
pub(super) fn of_query_parameter(name: &str) -> Option<Value> {
    match name {
        "q" => Some("polite crawler".into()),
        "url" => sample("", name),
        _ => None,
    }
}

/// Adds examples of what is sent and replied.
pub(super) fn add(operation: &mut Operation, schemas: &Schemas) {
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        for content in body.content.values_mut() {
            let RefOr::T(content) = content else { continue };
            if content.example.is_none() && content.examples.is_empty() {
                content.example = content.schema.as_ref().and_then(|it| written(it, schemas));
            }
        }
    }
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            add_to(response, schemas);
        }
    }
}

fn add_to(response: &mut Response, schemas: &Schemas) {
    for (kind, content) in &mut response.content {
        let RefOr::T(content) = content else { continue };
        let has_one = content.example.is_some() || !content.examples.is_empty();
        let is_made = kind == JSON || kind == "text/event-stream";
        if !has_one && is_made {
            content.example = content.schema.as_ref().and_then(|it| of_schema(it, schemas));
        }
    }
}

/// The example that somebody wrote on a type.
fn written(schema: &RefOr<Schema>, schemas: &Schemas) -> Option<Value> {
    let Schema::Object(object) = resolved(schema, schemas)? else { return None };
    object.example.clone()
}

/// A value that fits a schema.
pub(super) fn of_schema(schema: &RefOr<Schema>, schemas: &Schemas) -> Option<Value> {
    Maker { schemas }.value(schema, "", "", 0)
}

/// The schema that is meant.
pub(crate) fn resolved<'a>(schema: &'a RefOr<Schema>, schemas: &'a Schemas) -> Option<&'a Schema> {
    match schema {
        RefOr::T(schema) => Some(schema),
        RefOr::Ref(to) => match schemas.get(name_in(&to.ref_location))? {
            RefOr::T(schema) => Some(schema),
            RefOr::Ref(_) => None,
        },
    }
}

/// The name of the schema that a reference leads to.
pub(crate) fn name_in(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or_default()
}

struct Maker<'a> {
    schemas: &'a Schemas,
}

impl Maker<'_> {
    /// `owner` is the type that has the field `name`.
    fn value(
        &self,
        schema: &RefOr<Schema>,
        owner: &str,
        name: &str,
        depth: usize,
    ) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        let owner_of_fields = match schema {
            RefOr::Ref(to) => name_in(&to.ref_location),
            RefOr::T(_) => owner,
        };
        match resolved(schema, self.schemas)? {
            Schema::Object(object) => self.object(object, owner, owner_of_fields, name, depth),
            Schema::Array(array) => {
                let ArrayItems::RefOrSchema(items) = &array.items else { return None };
                let sample = sample(owner, name).filter(|it| self.fits_items(it, items));
                let item = || self.value(items, owner, "", depth + 1);
                Some(sample.unwrap_or_else(|| Value::Array(item().into_iter().collect())))
            }
            Schema::AllOf(parts) => {
                let mut whole = Map::new();
                for part in &parts.items {
                    if let Value::Object(fields) = self.value(part, owner, name, depth + 1)? {
                        whole.extend(fields);
                    }
                }
                Some(Value::Object(whole))
            }
            Schema::OneOf(choice) => self.first(&choice.items, owner, name, depth),
            Schema::AnyOf(choice) => self.first(&choice.items, owner, name, depth),
            _ => None,
        }
    }

    /// The first choice that is something.
    fn first(
        &self,
        choices: &[RefOr<Schema>],
        owner: &str,
        name: &str,
        depth: usize,
    ) -> Option<Value> {
        let mut made = choices.iter().filter_map(|it| self.value(it, owner, name, depth + 1));
        made.find(|it| !it.is_null()).or(Some(Value::Null))
    }

    fn object(
        &self,
        object: &Object,
        owner: &str,
        owner_of_fields: &str,
        name: &str,
        depth: usize,
    ) -> Option<Value> {
        if !object.properties.is_empty() {
            let mut whole = Map::new();
            for (field, schema) in &object.properties {
                let value = self.value(schema, owner_of_fields, field, depth + 1);
                whole.extend(value.map(|value| (field.clone(), value)));
            }
            return Some(Value::Object(whole));
        }
        if let Some(values) = &object.enum_values {
            return values.first().cloned();
        }
        let (kind, is_optional) = kind_of(&object.schema_type)?;
        let words = first_word(object.description.as_deref().unwrap_or_default());
        let word = words.filter(|_| kind == Type::String && of_type(owner, name).is_none());
        let sample =
            sample(owner, name).filter(|it| fits(it, &kind) || it.is_null() && is_optional);
        if let Some(value) = word.map(Value::from).or(sample) {
            return Some(value);
        }
        if is_optional {
            return Some(Value::Null);
        }
        Some(match kind {
            Type::String => name.into(),
            Type::Integer | Type::Number => 0.into(),
            Type::Boolean => false.into(),
            Type::Null => Value::Null,
            Type::Array => Value::Array(Vec::new()),
            Type::Object => self.map(object, owner, depth),
        })
    }

    /// A map with one entry, if it is known what it holds.
    fn map(&self, object: &Object, owner: &str, depth: usize) -> Value {
        let mut whole = Map::new();
        if let Some(AdditionalProperties::RefOr(values)) = object.additional_properties.as_deref() {
            let value = self.value(values, owner, "", depth + 1);
            whole.extend(value.map(|value| ("example".to_owned(), value)));
        }
        Value::Object(whole)
    }

    /// Whether a sample is a list of what the items are. Lists of objects are made from their schema.
    fn fits_items(&self, sample: &Value, items: &RefOr<Schema>) -> bool {
        let Value::Array(values) = sample else { return false };
        match resolved(items, self.schemas) {
            Some(Schema::Object(item)) if item.properties.is_empty() => {
                let kind = kind_of(&item.schema_type);
                kind.is_some_and(|(kind, _)| values.iter().all(|it| fits(it, &kind)))
            }
            Some(Schema::Array(_)) => values.iter().all(Value::is_array),
            _ => values.is_empty(),
        }
    }
}

fn sample(owner: &str, name: &str) -> Option<Value> {
    let of_any = || Some(SAMPLES.iter().find(|(field, _)| *field == name)?.1);
    serde_json::from_str(of_type(owner, name).or_else(of_any)?).ok()
}

/// The sample of this field of this type alone.
fn of_type(owner: &str, name: &str) -> Option<&'static str> {
    let is_it = |(kind, field): (&str, &str)| kind == owner && field == name;
    Some(SAMPLES.iter().find(|(field, _)| field.split_once('.').is_some_and(is_it))?.1)
}

/// The type that is not null, and whether null is one, too.
fn kind_of(kind: &SchemaType) -> Option<(Type, bool)> {
    match kind {
        SchemaType::Type(only) => Some((only.clone(), false)),
        SchemaType::Array(types) => {
            let kind = types.iter().find(|it| **it != Type::Null)?;
            Some((kind.clone(), types.contains(&Type::Null)))
        }
        SchemaType::AnyValue => None,
    }
}

fn fits(value: &Value, kind: &Type) -> bool {
    match kind {
        Type::String => value.is_string(),
        Type::Integer => value.is_i64() || value.is_u64(),
        Type::Number => value.is_number(),
        Type::Boolean => value.is_boolean(),
        Type::Null => value.is_null(),
        Type::Array => value.is_array(),
        Type::Object => value.is_object(),
    }
}

/// Descriptions of fields that hold one of several words begin with them: "`queued`, `running` or …".
fn first_word(description: &str) -> Option<&str> {
    let (word, _) = description
        .strip_prefix("Such as ")
        .unwrap_or(description)
        .strip_prefix('`')?
        .split_once('`')?;
    let is_word = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte));
    is_word.then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_json_and_each_is_there_once() {
        let mut names: Vec<&str> = SAMPLES.iter().map(|(name, _)| *name).collect();
        for (name, text) in SAMPLES {
            assert!(serde_json::from_str::<Value>(text).is_ok(), "{name}: {text}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SAMPLES.len());
    }
}
