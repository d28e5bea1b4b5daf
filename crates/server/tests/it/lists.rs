//! What a crawl holds, read in pages.

use serde_json::{Value, json};
use telusur_model::CrawlNo;

use crate::bench::{Bench, endless_site, small_site};

fn urls(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["url"].as_str().unwrap()).collect()
}

/// Reads a whole list in pages of this size.
async fn all(bench: &Bench, list: &str, limit: usize) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let target = format!("/api/v1/crawls/crawl_1/{list}?limit={limit}&cursor={cursor}");
        let page = bench.client.json(target).await;
        let found = page["items"].as_array().unwrap().clone();
        assert!(found.len() <= limit);
        items.extend(found);
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => return items,
        }
    }
}

#[tokio::test]
async fn pages_errors_and_skipped_urls() {
    let bench = Bench::start(small_site).await;
    bench.crawled().await;
    let pages = bench.client.json("/api/v1/crawls/crawl_1/pages").await;
    assert_eq!((pages["total"].as_u64(), urls(&pages)[0]), (Some(5), "http://site.test/"));
    assert_eq!(pages["items"][0]["title"], "A page");
    let errors = bench.client.json("/api/v1/crawls/crawl_1/errors").await;
    assert_eq!((urls(&errors), &errors["total"]), (vec!["http://site.test/gone"], &json!(1)));
    assert_eq!(errors["items"][0]["status"], 404);
    let skipped = bench.client.json("/api/v1/crawls/crawl_1/skipped").await;
    assert_eq!(urls(&skipped), ["http://elsewhere.test/"]);
    assert_eq!(skipped["items"][0]["reason"], "out_of_scope");
    assert!(!skipped["items"][0]["rule"].as_str().unwrap().is_empty());
    let none = bench.client.json("/api/v1/crawls/crawl_1/skipped?reason=excluded").await;
    assert_eq!((&none["items"], &none["total"]), (&json!([]), &json!(0)));
    let wrong = bench.client.get("/api/v1/crawls/crawl_1/skipped?reason=whim").await;
    wrong.problem(422, "invalid_field");
    let hosts = bench.client.json("/api/v1/crawls/crawl_1/hosts").await;
    assert_eq!(
        (&hosts["items"][0]["host"], &hosts["items"][0]["fetched"]),
        (&json!("site.test"), &json!(5))
    );
    bench.client.get("/api/v1/crawls/crawl_1/coverage").await.problem(409, "wrong_state");
    bench.stop().await;
}

#[tokio::test]
async fn every_page_is_listed_once_however_small_the_parts() {
    let bench = Bench::start(endless_site).await;
    let body = json!({ "urls": ["http://site.test/"], "limits": { "max_pages": 23 } });
    bench.client.post("/api/v1/crawls", &body).await;
    bench.finished(1).await;
    for limit in [1, 4, 23, 100] {
        let pages = all(&bench, "pages", limit).await;
        let mut urls: Vec<_> = pages.iter().map(|page| page["url"].to_string()).collect();
        urls.sort();
        urls.dedup();
        assert_eq!((pages.len(), urls.len()), (23, 23), "{limit}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn the_queue_is_listed_in_its_order() {
    let bench = Bench::start_gated(endless_site).await;
    bench.client.post("/api/v1/crawls", &json!({ "urls": ["http://site.test/"] })).await;
    bench.gate.let_through(6);
    let wanted = |it: &telusur_model::Progress| it.stats.pages == 6 && it.stats.queued == 7;
    bench.until(CrawlNo(1), wanted).await;
    let whole = all(&bench, "frontier", 100).await;
    let depths: Vec<_> = whole.iter().map(|it| it["depth"].as_u64().unwrap()).collect();
    assert_eq!(whole.len(), 7);
    assert!(depths.is_sorted(), "breadth first: {depths:?}");
    for limit in [1, 2, 7] {
        assert_eq!(all(&bench, "frontier", limit).await, whole, "{limit}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_stored_page_with_everything_in_it() {
    let bench = Bench::start(small_site).await;
    bench.crawled().await;
    let page = bench.client.json("/api/v1/pages?url=http://site.test/a").await;
    assert_eq!((&page["title"], &page["crawl_alias"]), (&json!("Coffee"), &json!("crawl_1")));
    assert!(page["content"]["visible_text"].as_str().unwrap().contains("Roasted"));
    let id = page["id"].as_str().unwrap();
    assert_eq!(bench.client.json(format!("/api/v1/pages/{id}")).await["url"], "http://site.test/a");
    let raw = bench.client.get(format!("/api/v1/pages/{id}/raw")).await;
    assert_eq!(raw.header("content-type"), "text/plain; charset=utf-8");
    assert!(raw.header("content-disposition").starts_with("attachment"));
    assert!(raw.header("content-security-policy").contains("sandbox"));
    assert_eq!(raw.header("x-content-type-options"), "nosniff");
    assert!(raw.text().starts_with("<title>Coffee"));
    let markdown = bench.client.get(format!("/api/v1/pages/{id}/markdown")).await;
    assert!(markdown.text().contains("Roasted beans"), "{markdown:?}");
    let home = bench.client.json("/api/v1/pages?url=http://site.test/").await;
    let links =
        bench.client.json(format!("/api/v1/pages/{}/links", home["id"].as_str().unwrap())).await;
    assert_eq!(links[0], json!({ "url": "http://site.test/a", "text": "x" }));
    for id in ["p_1_999", "p_x_1", "x", "p_1_", "%2e%2e%2f"] {
        bench.client.get(format!("/api/v1/pages/{id}")).await.problem(404, "not_found");
    }
    bench.client.get("/api/v1/pages?url=http://site.test/none").await.problem(404, "not_found");
    bench.client.get("/api/v1/pages?url=nonsense").await.problem(422, "invalid_field");
    bench.client.get("/api/v1/pages").await.problem(422, "invalid_field");
    bench.stop().await;
}

#[tokio::test]
async fn a_url_is_explained() {
    let bench = Bench::start(small_site).await;
    bench.crawled().await;
    let explain =
        async |url: &str| bench.client.json(format!("/api/v1/explain?url={url}")).await[0].clone();
    let page = explain("http://site.test/c").await;
    assert_eq!(
        (&page["state"], &page["known"]["referrer"]),
        (&json!("page"), &json!("http://site.test/b"))
    );
    assert_eq!(explain("http://elsewhere.test/").await["reason"], "out_of_scope");
    assert_eq!(explain("http://site.test/never").await["state"], "unknown");
    bench.stop().await;
}

#[tokio::test]
async fn exports_are_streams() {
    let bench = Bench::start(small_site).await;
    bench.crawled().await;
    let lines = bench.client.get("/api/v1/crawls/crawl_1/export").await;
    assert_eq!(lines.header("content-type"), "application/x-ndjson");
    assert_eq!(lines.header("content-disposition"), "attachment; filename=\"crawl_1.jsonl\"");
    let urls: Vec<Value> =
        lines.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((urls.len(), &urls[0]["url"]), (5, &json!("http://site.test/")));
    let ask = bench.client.ask("GET", "/api/v1/crawls/crawl_1/export");
    let packed = ask.header("accept-encoding", "gzip").send().await;
    assert_eq!((packed.header("content-encoding"), &packed.body[..2]), ("gzip", &b"\x1f\x8b"[..]));
    let csv = bench.client.get("/api/v1/crawls/crawl_1/export?format=csv").await.text();
    assert!(csv.starts_with("url,final_url,status,title,"), "{csv}");
    // Texts have several lines.
    let pages = csv.lines().filter(|line| line.starts_with("http://site.test/"));
    assert_eq!(pages.count(), 5, "{csv}");
    let list = bench.client.get("/api/v1/crawls/crawl_1/export?format=urls").await.text();
    assert_eq!(list.lines().count(), 5);
    bench
        .client
        .get("/api/v1/crawls/crawl_1/export?format=exe")
        .await
        .problem(422, "invalid_field");
    bench.client.get("/api/v1/crawls/crawl_9/export").await.problem(404, "not_found");
    bench.stop().await;
}
