//! The API's description says what is served, and nothing else is served.

use serde_json::{Value, json};

use crate::bench::{Bench, small_site};
use crate::client::Client;
use crate::description_faults::{faults, operations};

/// Every route, as `METHOD path`.
const ROUTES: &[&str] = &[
    "DELETE /api/v1/crawls/{id}",
    "DELETE /api/v1/keys/{id}",
    "GET /api/v1/crawls",
    "GET /api/v1/crawls/{id}",
    "GET /api/v1/crawls/{id}/changes",
    "GET /api/v1/crawls/{id}/coverage",
    "GET /api/v1/crawls/{id}/errors",
    "GET /api/v1/crawls/{id}/events",
    "GET /api/v1/crawls/{id}/export",
    "GET /api/v1/crawls/{id}/frontier",
    "GET /api/v1/crawls/{id}/hosts",
    "GET /api/v1/crawls/{id}/pages",
    "GET /api/v1/crawls/{id}/skipped",
    "GET /api/v1/explain",
    "GET /api/v1/keys",
    "GET /api/v1/openapi.json",
    "GET /api/v1/pages",
    "GET /api/v1/pages/{id}",
    "GET /api/v1/pages/{id}/links",
    "GET /api/v1/pages/{id}/markdown",
    "GET /api/v1/pages/{id}/raw",
    "GET /api/v1/politeness",
    "GET /api/v1/rank",
    "GET /api/v1/search",
    "GET /api/v1/stats",
    "GET /api/v1/suggest",
    "GET /crawl/{id}",
    "GET /healthz",
    "GET /metrics",
    "GET /opensearch.xml",
    "GET /readyz",
    "PATCH /api/v1/crawls/{id}",
    "POST /api/v1/crawls",
    "POST /api/v1/crawls/{id}/cancel",
    "POST /api/v1/crawls/{id}/pause",
    "POST /api/v1/crawls/{id}/recrawl",
    "POST /api/v1/crawls/{id}/resume",
    "POST /api/v1/crawls/{id}/retry",
    "POST /api/v1/crawls/{id}/stop",
    "POST /api/v1/fetch",
    "POST /api/v1/imports",
    "POST /api/v1/keys",
    "POST /api/v1/map",
    "POST /api/v1/operations/{operation}",
    "POST /api/v1/search",
    "POST /crawl",
];

fn described(document: &Value) -> Vec<String> {
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            routes.push(format!("{} {path}", method.to_uppercase()));
        }
    }
    routes.sort();
    routes
}

#[tokio::test]
async fn every_route_is_described_and_every_description_is_served() {
    let bench = Bench::start(small_site).await;
    let document = bench.client.json("/api/v1/openapi.json").await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    assert_eq!(described(&document), ROUTES);
    for route in ROUTES {
        let (method, path) = route.split_once(' ').unwrap();
        let method: &'static str =
            ["GET", "POST", "PATCH", "DELETE"].into_iter().find(|it| *it == method).unwrap();
        let reply = bench
            .client
            .ask(method, path.replace("{id}", "none").replace("{operation}", "none"))
            .send()
            .await;
        assert_ne!(reply.status, 405, "{route}");
        if reply.status == 404 {
            let detail = reply.problem(404, "not_found")["detail"].as_str().unwrap().to_owned();
            assert!(detail.contains("none"), "{route} is not served: {detail}");
        }
    }
    bench.stop().await;
}

#[tokio::test]
async fn every_name_in_the_description_leads_somewhere() {
    let bench = Bench::start(small_site).await;
    let document = bench.client.json("/api/v1/openapi.json").await;
    let text = document.to_string();
    for reference in text.split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(document["components"]["schemas"].get(name).is_some(), "{name} is not described");
    }
    for reference in text.split("\"#/components/responses/").skip(1) {
        let name = reference.split('"').next().unwrap();
        let problem = &document["components"]["responses"][name]["content"];
        let schema = &problem["application/problem+json"]["schema"]["$ref"];
        assert!(schema.is_string(), "{name} is not described");
    }
    bench.stop().await;
}

#[tokio::test]
async fn the_description_has_no_faults() {
    let bench = Bench::start(small_site).await;
    let document = bench.client.json("/api/v1/openapi.json").await;
    assert_eq!(faults(&document), Vec::<String>::new());
    bench.stop().await;
}

#[tokio::test]
async fn every_operation_is_on_the_page_for_people() {
    let bench = Bench::start_with(small_site, |settings| settings.has_ui = true).await;
    let document = bench.client.json("/api/v1/openapi.json").await;
    let page = bench.client.get("/docs/api").await.text();
    for (method, path, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap();
        let start = page.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("{id} is missing"));
        let part = page[start..].split("</article>").next().unwrap();
        let address = format!("http://{}{}", bench.client.address, path.split('{').next().unwrap());
        for expect in [method.to_uppercase().as_str(), path, address.as_str(), "curl -s"] {
            assert!(part.contains(expect), "{id} lacks {expect}: {part}");
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = format!("<code>{}</code>", parameter["name"].as_str().unwrap());
            assert!(part.contains(&name), "{id} lacks {name}: {part}");
        }
        for status in operation["responses"].as_object().unwrap().keys() {
            assert!(
                part.contains(&format!("<code>{status}</code>")),
                "{id} lacks {status}: {part}"
            );
        }
        let has_body = operation.get("requestBody").is_some();
        assert_eq!(part.contains("Request body"), has_body, "{id}: {part}");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(page.contains(&format!("id=\"type-{name}\"")), "{name} is missing");
    }
    // Links within the page lead to a place on it.
    for target in page.split("href=\"#").skip(1).map(|it| it.split('"').next().unwrap()) {
        assert!(page.contains(&format!("id=\"{target}\"")), "#{target} leads nowhere");
    }
    assert!(page.contains("href=\"/api/v1/openapi.json\""));
    bench.stop().await;
}

#[tokio::test]
async fn the_scope_that_is_said_is_the_one_that_is_asked_for() {
    let bench = Bench::start(small_site).await;
    let document = bench.client.json("/api/v1/openapi.json").await;
    let key_for = async |client: &Client, scope: &str| {
        let made = client.post("/api/v1/keys", &json!({ "scopes": [scope], "name": scope })).await;
        client.with_key(made.json()["key"].as_str().unwrap())
    };
    let admin = key_for(&bench.client, "admin").await;
    let (search, metrics) = (key_for(&admin, "search").await, key_for(&admin, "metrics").await);
    let mut asked = 0;
    for (method, path, operation) in operations(&document) {
        let Some(scope) = operation["security"][1]["key"][0].as_str() else { continue };
        let other = if scope == "metrics" { &search } else { &metrics };
        let method = ["GET", "POST", "PATCH", "DELETE"]
            .into_iter()
            .find(|it| it.eq_ignore_ascii_case(method))
            .unwrap();
        let reply = other.ask(method, path.replace("{id}", "none")).send().await;
        let detail = reply.problem(403, "forbidden_scope")["detail"].as_str().unwrap().to_owned();
        assert!(detail.ends_with(&format!("the scope {scope}")), "{method} {path}: {detail}");
        asked += 1;
    }
    assert!(asked > 30, "only {asked} operations name a scope");
    bench.stop().await;
}

/// The page shows how a key is sent once there is one, and is itself shown without.
#[tokio::test]
async fn the_page_says_how_a_key_is_sent() {
    let bench = Bench::start_with(small_site, |settings| settings.has_ui = true).await;
    let before = bench.client.get("/docs/api").await.text();
    assert!(!before.contains("-H &#39;Authorization"), "{before}");
    bench.client.post("/api/v1/keys", &json!({ "scopes": ["admin"], "name": "first" })).await;
    let after = bench.client.get("/docs/api").await;
    assert_eq!(after.status, 200);
    assert!(after.text().contains("-H &#39;Authorization: Bearer tlk_"), "{}", after.text());
    bench.stop().await;
}

#[tokio::test]
async fn totals_and_metrics() {
    let bench = Bench::start(small_site).await;
    bench.crawled().await;
    let totals = bench.client.json("/api/v1/stats").await;
    assert_eq!((&totals["pages"], &totals["crawls"]), (&json!(5), &json!({ "completed": 1 })));
    let metrics = bench.client.get("/metrics").await;
    assert!(metrics.header("content-type").starts_with("text/plain; version=0.0.4"));
    let text = metrics.text();
    for line in [
        "telusur_pages 5",
        "telusur_crawl_state{state=\"completed\"} 1",
        "telusur_http_requests_total{route=\"/api/v1/crawls\",code=\"202\"} 1",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("site.test"), "no host is a label");
    bench.stop().await;
}

#[tokio::test]
async fn browsers_learn_how_to_search_here() {
    let bench = Bench::start(small_site).await;
    let reply = bench.client.get("/opensearch.xml").await;
    assert!(
        reply.text().contains(&format!("http://{}/search?q={{searchTerms}}", bench.client.address))
    );
    bench.stop().await;
}
