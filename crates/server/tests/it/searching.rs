//! Searching while and after crawling.

use serde_json::{Value, json};
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, small_site};

/// What is stored becomes searchable a moment later: asks until it is.
async fn found(bench: &Bench, target: &str) -> Value {
    loop {
        let found = bench.client.json(target).await;
        if found["estimated_total"] != 0 {
            return found;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn words_are_found_in_pages() {
    let bench = Bench::start(small_site).await;
    bench.crawled().await;
    let answer = found(&bench, "/api/v1/search?q=roasted&facets=site,lang").await;
    assert_eq!(
        (&answer["query"], &answer["offset"], &answer["limit"]),
        (&json!("roasted"), &json!(0), &json!(10))
    );
    let hit = &answer["hits"][0];
    assert_eq!((&hit["url"], &hit["title"]), (&json!("http://site.test/a"), &json!("Coffee")));
    assert!(hit["snippet"].as_str().unwrap().contains("<mark>"), "{hit}");
    assert_eq!(answer["facets"]["site"][0], json!({ "value": "site.test", "count": 1 }));
    let by_post = bench.client.post("/api/v1/search", &json!({ "q": "roasted" })).await.json();
    assert_eq!(by_post["hits"], answer["hits"]);
    for (filter, count) in [
        ("site=site.test", 1),
        ("site=other.test", 0),
        ("crawl=crawl_1", 1),
        ("since=1d", 1),
        ("since=2999-01-01", 0),
    ] {
        let found = bench.client.json(format!("/api/v1/search?q=roasted&{filter}")).await;
        assert_eq!(found["hits"].as_array().unwrap().len(), count, "{filter}");
    }
    let suggestions = bench.client.json("/api/v1/suggest?q=roas").await;
    assert_eq!(suggestions["query"], "roas");
    let ask = bench.client.ask("GET", "/api/v1/suggest?q=roas");
    let plain = ask.header("accept", "application/x-suggestions+json").send().await;
    assert_eq!(plain.json()[0], "roas");
    bench.stop().await;
}

/// Filters were once pasted into the text of the query: behind an open quote they became words of a phrase.
#[tokio::test]
async fn filters_hold_whatever_the_query_is() {
    let bench = Bench::start(small_site).await;
    bench.crawled().await;
    found(&bench, "/api/v1/search?q=roasted").await;
    for query in ["roasted", "%22roasted", "-x%20%22roasted", "roasted%20OR", "(roasted", "roas*"] {
        for (filter, count) in [
            ("site=site.test", 1),
            ("site=other.test", 0),
            ("type=html", 1),
            ("type=pdf", 0),
            ("crawl=crawl_1", 1),
            ("since=1d", 1),
            ("since=2999-01-01", 0),
            ("year=1970", 0),
            ("in=text", 1),
            ("in=url", 0),
        ] {
            let found = bench.client.json(format!("/api/v1/search?q={query}&{filter}")).await;
            let hits = found["hits"].as_array().unwrap();
            assert_eq!(hits.len(), count, "{query} {filter}: {found}");
            assert_eq!(found["query"], json!(query.replace("%22", "\"").replace("%20", " ")));
        }
    }
    let by_pattern = bench.client.json("/api/v1/search?q=%5Eroast(er%7Cing)%24&regex=true").await;
    assert_eq!(by_pattern["hits"], json!([]));
    bench.stop().await;
}

#[tokio::test]
async fn odd_queries_are_answered_or_refused_but_never_break() {
    let bench = Bench::start(small_site).await;
    bench.crawled().await;
    for query in
        ["", "%22", "(((((", "a%7E99", "field:x", "*", "-", "OR", "site:", "%00", "site:%22%22"]
    {
        assert_eq!(
            bench.client.get(format!("/api/v1/search?q={query}")).await.status,
            200,
            "{query}"
        );
    }
    let nested = "(".repeat(4000);
    assert_eq!(bench.client.get(format!("/api/v1/search?q={nested}")).await.status, 200);
    for wrong in [
        "q=x&limit=101",
        "q=x&limit=-1",
        "q=x&offset=1000",
        "q=x&offset=4294967295&limit=100",
        "q=x&sort=up",
        "q=x&facets=colour",
        "q=x&page=2",
        "q=x&site=a%20b",
        "q=x&since=soon",
    ] {
        bench.client.get(format!("/api/v1/search?{wrong}")).await.problem(422, "invalid_field");
    }
    let long = "x".repeat(5000);
    bench.client.get(format!("/api/v1/search?q={long}")).await.problem(422, "invalid_field");
    bench.client.get("/api/v1/search?q=x&crawl=crawl_77").await.problem(404, "not_found");
    bench.stop().await;
}

/// A page goes by the address of its id, and is listed and found by the one where it ended: neither its
/// number nor a hit once opened it.
#[tokio::test]
async fn pages_of_redirected_ids_are_opened_by_number_and_from_a_hit() {
    let bench = Bench::start(|path| match path {
        "/item/1" => FakeAnswer::redirect(302, "/coffee"),
        "/coffee" => FakeAnswer::html("<title>Coffee</title><p>Roasted beans."),
        _ => FakeAnswer::not_found(),
    });
    let bench = bench.await;
    let linear = json!({ "template": "http://site.test/item/{id}", "from": 1, "to": 1 });
    let reply = bench.client.post("/api/v1/crawls", &json!({ "linear": linear })).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    bench.finished(1).await;
    let listed = bench.client.json("/api/v1/crawls/crawl_1/pages").await;
    let id = listed["items"][0]["id"].as_str().unwrap();
    let by_number = bench.client.json(format!("/api/v1/pages/{id}")).await;
    assert_eq!(by_number["url"], "http://site.test/coffee");
    assert_eq!(by_number["redirects"], json!(["http://site.test/item/1"]));
    let found = found(&bench, "/api/v1/search?q=roasted").await;
    let hit = found["hits"][0]["url"].as_str().unwrap();
    let from_hit = bench.client.json(format!("/api/v1/pages?url={hit}")).await;
    assert_eq!(from_hit, by_number);
    bench.stop().await;
}
