//! An index that cannot follow is told of wherever somebody looks.

use std::sync::atomic::Ordering;

use serde_json::json;
use telusur_model::{CrawlNo, CrawlState};

use crate::bench::{Bench, endless_site, small_site};

#[tokio::test]
async fn an_index_that_cannot_be_written_is_told_of() {
    let bench = Bench::start_with(small_site, |settings| settings.has_ui = true).await;
    let stats = bench.client.json("/api/v1/stats").await;
    assert_eq!(stats["index_trouble"], json!(null));
    bench.index_disk.is_full.store(true, Ordering::SeqCst);
    bench.client.post("/api/v1/crawls", &json!({ "urls": ["http://site.test/"] })).await;
    bench.finished(1).await;
    let ready = loop {
        let ready = bench.client.json("/readyz").await;
        if ready["status"] != "ok" {
            break ready;
        }
    };
    assert_eq!(ready["status"], "degraded");
    let why = ready["indexing"].as_str().unwrap();
    assert!(why.contains("behind by") && why.contains("os error 28"), "{why}");
    let stats = bench.client.json("/api/v1/stats").await;
    assert!(stats["index_trouble"].as_str().unwrap().contains("os error 28"), "{stats}");
    assert!(stats["index_lag"].as_u64().unwrap() > 0, "{stats}");
    assert!(stats["index_trouble_since"].is_string(), "{stats}");
    let metrics = bench.client.get("/metrics").await.text();
    assert!(metrics.contains("telusur_index_failing 1\n"), "{metrics}");
    assert!(!metrics.contains("telusur_index_lag_pages 0\n"), "{metrics}");
    for page in ["/crawls/crawl_1", "/crawls/crawl_1/live", "/system"] {
        let html = bench.client.get(page).await.text();
        assert!(html.contains("Indexing is behind by") && html.contains("os error 28"), "{html}");
    }
    // Where keys are needed, strangers learn that it is behind, and nothing about the machine.
    let made = bench.client.post("/api/v1/keys", &json!({ "scopes": ["read"] })).await.json();
    let ready = bench.client.json("/readyz").await;
    assert_eq!(ready, json!({ "status": "degraded", "indexing": "indexing is behind" }));
    let reader = bench.client.with_key(made["key"].as_str().unwrap());
    let why = reader.json("/readyz").await["indexing"].to_string();
    assert!(why.contains("os error 28"), "{why}");
    bench.stop().await;
}

/// The index follows: what it could not take out is taken out when it works again.
#[tokio::test]
async fn crawls_are_deleted_while_indexing_fails() {
    let bench = Bench::start(endless_site).await;
    let small = json!({ "urls": ["http://site.test/"], "limits": { "max_pages": 3 } });
    bench.client.post("/api/v1/crawls", &small).await;
    bench.finished(1).await;
    while !is_found(&bench, 1).await {
        assert!(bench.client.json("/readyz").await["status"] == "ok", "indexing failed");
    }
    bench.index_disk.is_full.store(true, Ordering::SeqCst);
    bench.client.post("/api/v1/crawls", &small).await;
    bench.finished(2).await;
    // It lives, with nothing under way.
    let live = json!({ "urls": ["http://site.test/"], "manners": { "delay_ms": 3_600_000 } });
    bench.client.post("/api/v1/crawls", &live).await;
    bench.until(CrawlNo(3), |it| it.state == CrawlState::Running).await;
    while bench.client.json("/readyz").await["status"] == "ok" {}
    for crawl in ["crawl_1", "crawl_3"] {
        let target = format!("/api/v1/crawls/{crawl}/cancel");
        let done = bench.client.post(target, &json!({})).await;
        assert!(done.status < 300, "{done:?}");
        let gone = bench.client.get(&format!("/api/v1/crawls/{crawl}")).await;
        assert_eq!(gone.status, 404);
    }
    bench.index_disk.is_full.store(false, Ordering::SeqCst);
    while bench.client.json("/readyz").await["status"] != "ok" {}
    assert!(!is_found(&bench, 1).await, "it is taken out before indexing is well again");
    bench.stop().await;
}

async fn is_found(bench: &Bench, crawl: u32) -> bool {
    let found = bench.client.json(&format!("/api/v1/search?q=crawl:crawl_{crawl}")).await;
    found["hits"].as_array().is_some_and(|hits| !hits.is_empty())
}
