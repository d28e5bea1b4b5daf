//! An index that cannot follow is told of wherever somebody looks.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::bench::{Bench, small_site};

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
    bench.stop().await;
}
