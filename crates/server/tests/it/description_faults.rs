//! What is wrong with a description, by rules that no schema of OpenAPI knows. Each rule is shown to find a
//! planted fault.

use std::collections::BTreeMap;

use serde_json::Value;

/// Objects whose fields are not described, with the reason.
const FREE_FORM: &[(&str, &str)] = &[("Description", "an OpenAPI document describes itself")];

/// Every operation of a description, with its method and path.
pub(crate) fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            found.push((method.as_str(), path.as_str(), operation));
        }
    }
    found
}

/// Everything that is wrong.
pub(crate) fn faults(document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut ids: BTreeMap<&str, usize> = BTreeMap::new();
    let tags = document["tags"].as_array().cloned().unwrap_or_default();
    for tag in &tags {
        if is_empty(&tag["description"]) {
            found.push(format!("the tag {} has no description", tag["name"]));
        }
    }
    for (method, path, operation) in operations(document) {
        let name = format!("{} {path}", method.to_uppercase());
        let mut say = |what: &str| found.push(format!("{name}: {what}"));
        match operation["operationId"].as_str() {
            None => say("no operation id"),
            Some(id) => {
                *ids.entry(id).or_default() += 1;
                if !id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
                    say("its operation id is not in snake_case");
                }
            }
        }
        if is_empty(&operation["summary"]) {
            say("no summary");
        }
        let named = operation["tags"].as_array().cloned().unwrap_or_default();
        if named.is_empty() {
            say("no tag");
        }
        if named.iter().any(|name| !tags.iter().any(|tag| tag["name"] == *name)) {
            say("a tag that is not described");
        }
        if !operation["security"].is_array() {
            say("not said which scope it needs");
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            if is_empty(&parameter["description"]) {
                say(&format!("the parameter {} has no description", parameter["name"]));
            }
        }
        faults_of_body(&operation["requestBody"], &mut say);
        faults_of_responses(document, &operation["responses"], &mut say);
    }
    for (id, count) in ids.into_iter().filter(|(_, count)| *count > 1) {
        found.push(format!("{count} operations have the id {id}"));
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let is_known = FREE_FORM.iter().any(|(known, _)| known == name);
        if holds_free_form(schema) && !is_known {
            found.push(format!("{name} holds an object without fields"));
        }
    }
    found
}

fn faults_of_body(body: &Value, say: &mut impl FnMut(&str)) {
    if body.is_null() {
        return;
    }
    for (kind, content) in body["content"].as_object().unwrap() {
        if !has_example(content) {
            say(&format!("its body has no example as {kind}"));
        }
        if !content["schema"].is_object() {
            say(&format!("its body has no schema as {kind}"));
        }
    }
}

fn faults_of_responses(document: &Value, responses: &Value, say: &mut impl FnMut(&str)) {
    let responses = responses.as_object().unwrap();
    if !responses.contains_key("default") {
        say("not said what a problem looks like");
    }
    for (status, response) in responses {
        let response = match response["$ref"].as_str() {
            Some(reference) => {
                let name = reference.rsplit('/').next().unwrap();
                &document["components"]["responses"][name]
            }
            None => response,
        };
        if is_empty(&response["description"]) {
            say(&format!("the response {status} has no description"));
        }
        for (kind, content) in response["content"].as_object().into_iter().flatten() {
            if !content["schema"].is_object() {
                say(&format!("the response {status} has no schema as {kind}"));
            }
            if kind.ends_with("json") && !has_example(content) {
                say(&format!("the response {status} has no example as {kind}"));
            }
        }
    }
}

fn is_empty(text: &Value) -> bool {
    text.as_str().is_none_or(|text| text.trim().is_empty())
}

fn has_example(content: &Value) -> bool {
    content.get("example").is_some() || content.get("examples").is_some()
}

/// Whether somewhere in a schema is an object of which nothing is said.
fn holds_free_form(schema: &Value) -> bool {
    let is_object = match &schema["type"] {
        Value::Array(types) => types.iter().any(|it| it == "object"),
        only => only == "object",
    };
    let is_free = is_object
        && schema.get("properties").is_none()
        && schema.get("additionalProperties").is_none_or(Value::is_boolean);
    let is_anything = schema.as_object().is_some_and(|it| {
        !it.contains_key("type")
            && !["$ref", "oneOf", "allOf", "anyOf"].iter().any(|key| it.contains_key(*key))
    });
    let mut parts: Vec<&Value> = Vec::new();
    parts.extend(schema["properties"].as_object().into_iter().flat_map(|it| it.values()));
    parts.extend(["items", "additionalProperties"].iter().filter_map(|key| schema.get(*key)));
    for key in ["oneOf", "allOf", "anyOf"] {
        parts.extend(schema[key].as_array().into_iter().flatten());
    }
    is_free || is_anything || parts.into_iter().any(holds_free_form)
}

mod planted {
    use serde_json::json;

    use super::*;
    use crate::bench::{Bench, small_site};

    /// A change to the description, and what must be found then.
    type Planted = (fn(&mut Value), &'static str);

    const LIST: &str = "/api/v1/crawls";

    const PLANTED: &[Planted] = &[
        (
            |it| it["paths"][LIST]["get"]["responses"]["200"]["description"] = json!(""),
            "GET /api/v1/crawls: the response 200 has no description",
        ),
        (
            |it| it["components"]["responses"]["NotFound"]["description"] = json!(" "),
            "GET /api/v1/crawls/{id}: the response 404 has no description",
        ),
        (
            |it| without(&mut it["paths"][LIST]["get"], "operationId"),
            "GET /api/v1/crawls: no operation id",
        ),
        (
            |it| it["paths"][LIST]["get"]["operationId"] = json!("start_crawl"),
            "2 operations have the id start_crawl",
        ),
        (
            |it| it["paths"][LIST]["get"]["operationId"] = json!("listCrawls"),
            "GET /api/v1/crawls: its operation id is not in snake_case",
        ),
        (|it| without(&mut it["paths"][LIST]["get"], "summary"), "GET /api/v1/crawls: no summary"),
        (|it| without(&mut it["paths"][LIST]["get"], "tags"), "GET /api/v1/crawls: no tag"),
        (
            |it| it["paths"][LIST]["get"]["tags"] = json!(["crawl"]),
            "GET /api/v1/crawls: a tag that is not described",
        ),
        (|it| without(&mut it["tags"][0], "description"), "the tag \"search\" has no description"),
        (
            |it| without(&mut it["paths"][LIST]["get"], "security"),
            "GET /api/v1/crawls: not said which scope it needs",
        ),
        (
            |it| without(&mut it["paths"][LIST]["get"]["parameters"][0], "description"),
            "GET /api/v1/crawls: the parameter \"state\" has no description",
        ),
        (
            |it| {
                let content = &mut it["paths"][LIST]["post"]["requestBody"]["content"];
                without(&mut content["application/json"], "examples");
            },
            "POST /api/v1/crawls: its body has no example as application/json",
        ),
        (
            |it| {
                let content = &mut it["paths"][LIST]["get"]["responses"]["200"]["content"];
                without(&mut content["application/json"], "example");
            },
            "GET /api/v1/crawls: the response 200 has no example as application/json",
        ),
        (
            |it| without(&mut it["paths"][LIST]["get"]["responses"], "default"),
            "GET /api/v1/crawls: not said what a problem looks like",
        ),
        (
            |it| {
                let fields = &mut it["components"]["schemas"]["CrawlView"]["properties"];
                fields["stats"] = json!({ "type": ["object", "null"] });
            },
            "CrawlView holds an object without fields",
        ),
    ];

    fn without(object: &mut Value, field: &str) {
        assert!(object.as_object_mut().unwrap().remove(field).is_some(), "there is no {field}");
    }

    #[tokio::test]
    async fn faults_are_found() {
        let bench = Bench::start(small_site).await;
        let document = bench.client.json("/api/v1/openapi.json").await;
        for (plant, expect) in PLANTED {
            let mut planted = document.clone();
            plant(&mut planted);
            let found = faults(&planted);
            assert!(found.iter().any(|fault| fault == expect), "{expect} is not in {found:?}");
        }
        bench.stop().await;
    }

    /// What is listed as free of form still is.
    #[tokio::test]
    async fn no_exception_is_out_of_date() {
        let bench = Bench::start(small_site).await;
        let document = bench.client.json("/api/v1/openapi.json").await;
        for (name, _) in FREE_FORM {
            let schema = &document["components"]["schemas"][name];
            assert!(holds_free_form(schema), "{name} has fields everywhere");
        }
        bench.stop().await;
    }
}
