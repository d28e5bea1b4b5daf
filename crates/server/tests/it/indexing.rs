//! An index that cannot follow is told of wherever somebody looks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use telusur_engine::{ChangeBatch, FollowError, Follower};
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
    assert!(why.contains("behind by") && why.contains("the disk is full"), "{why}");
    let stats = bench.client.json("/api/v1/stats").await;
    assert!(stats["index_trouble"].as_str().unwrap().contains("the disk is full"), "{stats}");
    assert!(stats["index_lag"].as_u64().unwrap() > 0, "{stats}");
    assert!(stats["index_trouble_since"].is_string(), "{stats}");
    let metrics = bench.client.get("/metrics").await.text();
    assert!(metrics.contains("telusur_index_failing 1\n"), "{metrics}");
    assert!(!metrics.contains("telusur_index_lag_pages 0\n"), "{metrics}");
    for page in ["/crawls/crawl_1", "/crawls/crawl_1/live", "/system"] {
        let html = bench.client.get(page).await.text();
        assert!(
            html.contains("Indexing is behind by") && html.contains("the disk is full"),
            "{html}"
        );
    }
    // Where keys are needed, strangers learn that it is behind, and nothing about the machine.
    let made = bench.client.post("/api/v1/keys", &json!({ "scopes": ["read"] })).await.json();
    let ready = bench.client.json("/readyz").await;
    assert_eq!(ready, json!({ "status": "degraded", "indexing": "indexing is behind" }));
    let reader = bench.client.with_key(made["key"].as_str().unwrap());
    let why = reader.json("/readyz").await["indexing"].to_string();
    assert!(why.contains("the disk is full"), "{why}");
    bench.stop().await;
}

/// A follower whose server may be away.
struct Mirror {
    is_away: Arc<AtomicBool>,
    taken: u64,
    place: u64,
}

impl Follower for Mirror {
    fn name(&self) -> &'static str {
        "mirror"
    }

    fn place(&self) -> u64 {
        self.place
    }

    fn take_in(&mut self, batch: ChangeBatch) -> Result<(), FollowError> {
        self.taken = batch.upto;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), FollowError> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(FollowError::Failed("the mirror does not answer".to_owned()));
        }
        self.place = self.taken;
        Ok(())
    }

    fn reopen(&mut self, _why: &FollowError) -> Result<(), FollowError> {
        self.taken = self.place;
        Ok(())
    }
}

/// What else follows is told of by its name, and neither crawls nor searches mind.
#[tokio::test]
async fn a_follower_that_fails_is_told_of() {
    let is_away = Arc::new(AtomicBool::new(true));
    let mirror = Mirror { is_away: Arc::clone(&is_away), taken: 0, place: 0 };
    let has_ui = |settings: &mut telusur_server::ServiceSettings| settings.has_ui = true;
    let bench = Bench::start_with_follower(small_site, has_ui, Box::new(mirror)).await;
    bench.client.post("/api/v1/crawls", &json!({ "urls": ["http://site.test/"] })).await;
    bench.finished(1).await;
    while bench.client.json("/readyz").await["status"] == "ok" {}
    let ready = bench.client.json("/readyz").await;
    let why = ready["followers"]["mirror"].as_str().unwrap();
    assert!(why.starts_with("mirror is behind by") && why.ends_with("does not answer"), "{why}");
    assert_eq!(ready["indexing"], json!(null));
    while !is_found(&bench, 1).await {}
    let followers = bench.client.json("/api/v1/stats").await["followers"].clone();
    assert_eq!([&followers[0]["name"], &followers[1]["name"]], ["index", "mirror"]);
    assert!(followers[1]["lag"].as_u64() > Some(0), "{followers}");
    assert_eq!(followers[1]["trouble"], "the mirror does not answer");
    let metrics = bench.client.get("/metrics").await.text();
    assert!(metrics.contains("telusur_follower_failing{follower=\"mirror\"} 1\n"), "{metrics}");
    assert!(metrics.contains("telusur_follower_failing{follower=\"index\"} 0\n"), "{metrics}");
    for page in ["/crawls/crawl_1", "/system"] {
        let html = bench.client.get(page).await.text();
        assert!(html.contains("mirror is behind by") && html.contains("not answer"), "{html}");
    }
    is_away.store(false, Ordering::SeqCst);
    while bench.client.json("/readyz").await["status"] != "ok" {}
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
