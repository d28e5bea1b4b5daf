//! What survives the end of the process, in order or not.

use serde_json::json;
use telusur_ledger::{Batch, CrawlStore, Storage, Table, WriteRows};
use telusur_model::{CrawlNo, CrawlState, EngineFault, PauseReason, Timestamp};
use telusur_store_embedded::EmbeddedStore;

use crate::bench::{Bench, endless_site, small_site};

#[tokio::test]
async fn crawls_go_on_by_themselves_after_a_kill_and_counters_never_fall() {
    let bench = Bench::start_gated(endless_site).await;
    let body = json!({ "urls": ["http://site.test/"], "limits": { "max_pages": 60 } });
    bench.client.post("/api/v1/crawls", &body).await;
    bench.client.post("/crawl", &json!({ "url": "http://site.test/1", "max_pages": 30 })).await;
    bench.gate.let_through(20);
    bench.until(CrawlNo(1), |it| it.stats.pages >= 5).await;
    let shown = bench.client.json("/api/v1/crawls/crawl_1").await["stats"].clone();
    let bench = bench.killed().await;
    let after = bench.client.json("/api/v1/crawls/crawl_1").await;
    for counter in ["fetched", "ok", "discovered", "bytes"] {
        let (before, now) =
            (shown[counter].as_u64().unwrap(), after["stats"][counter].as_u64().unwrap());
        assert!(now >= before, "{counter}: {now} < {before}");
    }
    assert!(["running", "queued"].contains(&after["state"].as_str().unwrap()), "{after}");
    bench.gate.let_through(200);
    bench.finished(1).await;
    bench.finished(2).await;
    assert_eq!(bench.client.json("/api/v1/crawls/crawl_1").await["stats"]["fetched"], 60);
    let job = bench.client.json("/crawl/crawl_2").await["job"].clone();
    assert_eq!((&job["status"], job["pages"].as_array().unwrap().len()), (&json!("completed"), 30));
    let next = bench.client.post("/crawl", &json!({ "url": "http://site.test/" })).await;
    assert_eq!(next.json()["job_id"], "crawl_3", "numbers go on, too");
    bench.stop().await;
}

#[tokio::test]
async fn paused_crawls_stay_paused_and_finished_ones_finished() {
    let bench = Bench::start(endless_site).await;
    let body = json!({ "urls": ["http://site.test/"] });
    bench.client.post("/api/v1/crawls", &body).await;
    bench.until(CrawlNo(1), |it| it.stats.pages > 3).await;
    bench.client.post("/api/v1/crawls/crawl_1/pause", &json!({})).await;
    let limited = json!({ "urls": ["http://site.test/"], "limits": { "max_pages": 2 } });
    bench.client.post("/api/v1/crawls", &limited).await;
    bench.finished(2).await;
    let bench = bench.restart().await;
    assert_eq!(bench.client.json("/api/v1/crawls/crawl_1").await["state"], "paused");
    assert_eq!(bench.client.json("/api/v1/crawls/crawl_2").await["state"], "completed");
    let resumed = bench.client.post("/api/v1/crawls/crawl_1/resume", &json!({})).await.json();
    assert!(["running", "queued"].contains(&resumed["state"].as_str().unwrap()), "{resumed}");
    bench.until(CrawlNo(1), |it| it.stats.pages > 10).await;
    bench.stop().await;
}

#[tokio::test]
async fn a_service_that_ends_says_so() {
    let bench = Bench::start(small_site).await;
    assert_eq!(bench.client.json("/readyz").await["status"], "ok");
    let mut kept = bench.client.connect().await;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    // A request that was on its way when the end began is answered.
    kept.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n").await.unwrap();
    bench.service.drain();
    let _ = kept.write_all(b"\r\n").await;
    let mut answer = Vec::new();
    let _ = kept.read_to_end(&mut answer).await;
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 503"), "{answer:?}");
    bench.stop().await;
}

/// What the machine paused needs nobody to go on, also in the next process.
#[tokio::test]
async fn crawls_that_waited_for_the_machine_go_on_by_themselves() {
    let bench = Bench::start(small_site).await;
    let limited = json!({ "urls": ["http://site.test/"], "limits": { "max_pages": 1 } });
    for _ in 0..2 {
        bench.client.post("/api/v1/crawls", &limited).await;
    }
    bench.finished(1).await;
    bench.finished(2).await;
    let bench = bench
        .restart_after(|store| {
            for (no, why) in [(1, PauseReason::DiskFull), (2, PauseReason::NoNetwork)] {
                let mut crawl = store.crawl(CrawlNo(no)).unwrap().unwrap().crawl;
                crawl.limits.pages_max = None;
                store.change(&crawl).unwrap();
                store.set_state(CrawlNo(no), CrawlState::Paused { why }, Timestamp(1)).unwrap();
            }
        })
        .await;
    assert_eq!(bench.finished(1).await.stats.pages, 5);
    assert_eq!(bench.finished(2).await.stats.pages, 5);
    bench.stop().await;
}

#[tokio::test]
async fn a_crawl_that_is_set_aside_says_why_and_can_be_tried_again() {
    let bench = Bench::start(endless_site).await;
    let body = json!({ "urls": ["http://site.test/"], "limits": { "max_pages": 20 } });
    for _ in 0..2 {
        bench.client.post("/api/v1/crawls", &body).await;
    }
    bench.finished(1).await;
    bench.finished(2).await;
    let bench = bench
        .restart_after(|store| {
            let mut crawl = store.crawl(CrawlNo(1)).unwrap().unwrap().crawl;
            crawl.limits.pages_max = Some(30);
            store.change(&crawl).unwrap();
            let aside = CrawlState::Paused { why: PauseReason::EngineStopped };
            store.set_state(CrawlNo(1), aside, Timestamp(1)).unwrap();
            let fault = EngineFault { times: 2, why: "a fault".into(), is_certain: true };
            store.set_fault(CrawlNo(1), Some(fault)).unwrap();
        })
        .await;
    let shown = bench.client.json("/api/v1/crawls/crawl_1").await;
    assert_eq!(
        (&shown["state"], &shown["pause_reason"]),
        (&json!("paused"), &json!("engine_stopped"))
    );
    assert_eq!(shown["pause_detail"], "stopped the engine twice: a fault");
    let resumed = bench.client.post("/api/v1/crawls/crawl_1/resume", &json!({})).await;
    assert_eq!(resumed.status, 200, "{resumed:?}");
    let progress = bench.finished(1).await;
    assert_eq!(progress.stats.pages, 30);
    assert_eq!(bench.client.json("/api/v1/crawls/crawl_1").await["pause_detail"], json!(null));
    bench.stop().await;
}

fn fault_of(bench: &Bench, no: u32) -> Option<EngineFault> {
    bench.store.crawl(CrawlNo(no)).unwrap().unwrap().fault
}

async fn state_of(bench: &Bench, no: u32) -> String {
    let shown = bench.client.json(&format!("/api/v1/crawls/crawl_{no}")).await;
    shown["state"].as_str().unwrap().to_owned()
}

/// An abort leaves no word: it looks like a kill.
#[tokio::test]
async fn a_crawl_whose_trials_end_the_process_is_set_aside_and_the_others_run() {
    let bench = Bench::start_gated(endless_site).await;
    let body = json!({ "urls": ["http://site.test/"] });
    for _ in 0..3 {
        bench.client.post("/api/v1/crawls", &body).await;
    }
    for no in 1..=3 {
        bench.until(CrawlNo(no), |it| it.state == CrawlState::Running).await;
    }
    let bench = bench.killed().await;
    for no in 1..=3 {
        bench.until(CrawlNo(no), |it| it.state == CrawlState::Running).await;
        assert_eq!(fault_of(&bench, no).map(|fault| fault.times), Some(0), "all are watched");
    }
    let bench = bench.killed().await;
    bench.until(CrawlNo(1), |it| it.state == CrawlState::Running).await;
    assert_eq!(fault_of(&bench, 1).map(|fault| fault.times), Some(1));
    for no in 2..=3 {
        assert_eq!(state_of(&bench, no).await, "queued", "they are tried one at a time");
    }
    // The process runs with each of the others before the first one is tried again.
    let bench = bench.killed().await;
    for no in 2..=3 {
        bench.until(CrawlNo(no), |it| it.state == CrawlState::Running).await;
        assert_eq!(state_of(&bench, 1).await, "queued", "it is held");
        half_a_minute().await;
        bench.until(CrawlNo(no), |_| fault_of(&bench, no).is_none()).await;
    }
    bench.until(CrawlNo(1), |it| it.state == CrawlState::Running).await;
    assert_eq!(fault_of(&bench, 1).map(|fault| fault.times), Some(2));
    let bench = bench.killed().await;
    bench.until(CrawlNo(2), |it| it.state == CrawlState::Running).await;
    let shown = bench.client.json("/api/v1/crawls/crawl_1").await;
    assert_eq!(
        (&shown["state"], &shown["pause_reason"]),
        (&json!("paused"), &json!("engine_stopped"))
    );
    let why = shown["pause_detail"].as_str().unwrap();
    assert!(why.starts_with("stopped the engine twice: the service ended suddenly"), "{why}");
    // What is new is not held up by those that are tried.
    bench.client.post("/api/v1/crawls", &body).await;
    bench.until(CrawlNo(4), |it| it.state == CrawlState::Running).await;
    bench.stop().await;
}

async fn half_a_minute() {
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(31)).await;
    tokio::time::resume();
}

/// An operator, or a supervisor, kills the service again and again within seconds of its start.
#[tokio::test]
async fn quick_kills_set_nobody_aside() {
    let mut bench = Bench::start_gated(endless_site).await;
    for _ in 0..2 {
        bench.client.post("/api/v1/crawls", &json!({ "urls": ["http://site.test/"] })).await;
    }
    bench.until(CrawlNo(1), |it| it.state == CrawlState::Running).await;
    for kill in 1..=9 {
        bench = bench.killed().await;
        // One of them runs within a moment, whatever the other one waits for.
        while state_of(&bench, 1).await != "running" && state_of(&bench, 2).await != "running" {}
        for no in 1..=2 {
            assert_ne!(state_of(&bench, no).await, "paused", "kill {kill}, crawl {no}");
        }
    }
    // A user who asks for a crawl that is held does not wait.
    for no in 1..=2 {
        bench.client.post(&format!("/api/v1/crawls/crawl_{no}/resume"), &json!({})).await;
        bench.until(CrawlNo(no), |it| it.state == CrawlState::Running).await;
    }
    bench.gate.let_through(1_000_000);
    bench.stop().await;
}

#[tokio::test]
async fn one_kill_counts_for_nobody() {
    let bench = Bench::start_gated(endless_site).await;
    bench.client.post("/api/v1/crawls", &json!({ "urls": ["http://site.test/"] })).await;
    bench.until(CrawlNo(1), |it| it.state == CrawlState::Running).await;
    let bench = bench.killed().await;
    bench.until(CrawlNo(1), |it| it.state == CrawlState::Running).await;
    // Requests that wait for the test would hold up the end.
    bench.gate.let_through(1_000_000);
    let fault = |store: &EmbeddedStore| store.crawl(CrawlNo(1)).unwrap().unwrap().fault;
    let bench = bench
        .restart_after(|store| assert_eq!(fault(store), None, "an end in order forgets"))
        .await;
    bench.stop().await;
}

/// A service that runs two crawls.
async fn two_running() -> Bench {
    let bench = Bench::start(endless_site).await;
    for _ in 0..2 {
        bench.client.post("/api/v1/crawls", &json!({ "urls": ["http://site.test/"] })).await;
    }
    for no in 1..=2 {
        bench.until(CrawlNo(no), |it| it.state == CrawlState::Running).await;
    }
    bench
}

/// Also a crawl that certainly ended the engine is like any other after half a minute.
#[tokio::test]
async fn a_crawl_that_runs_well_is_cleared() {
    let bench = two_running().await;
    let bench = bench
        .restart_after(|store| {
            for (no, is_certain) in [(1, true), (2, false)] {
                let fault = EngineFault { times: 1, why: "a fault".into(), is_certain };
                store.set_fault(CrawlNo(no), Some(fault)).unwrap();
            }
        })
        .await;
    for no in 1..=2 {
        bench.until(CrawlNo(no), |it| it.state == CrawlState::Running).await;
        assert_eq!(fault_of(&bench, no).map(|fault| fault.times), Some(1));
        half_a_minute().await;
        bench.until(CrawlNo(no), |_| fault_of(&bench, no).is_none()).await;
    }
    bench.stop().await;
}

/// One row of one crawl once kept all crawls from being started.
#[tokio::test]
async fn a_crawl_whose_rows_are_damaged_is_set_aside_and_the_others_run() {
    let bench = two_running().await;
    let bench = bench
        .restart_after(|store| {
            let key = [1_u32.to_be_bytes().as_slice(), b"site.test"].concat();
            let mut batch = Batch::default();
            batch.insert(Table::Hosts, key, b"no row".to_vec());
            store.storage().rows().commit(batch).unwrap();
        })
        .await;
    bench.until(CrawlNo(2), |it| it.state == CrawlState::Running).await;
    while state_of(&bench, 1).await != "paused" {}
    let shown = bench.client.json("/api/v1/crawls/crawl_1").await;
    assert_eq!(shown["pause_reason"], "engine_stopped");
    let why = shown["pause_detail"].as_str().unwrap();
    assert!(why.contains("a row of hosts cannot be read"), "{why}");
    bench.stop().await;
}

/// Limits grow tighter, and stored crawls do not know.
#[tokio::test]
async fn a_crawl_whose_patterns_cannot_be_used_any_more_says_why() {
    let bench = two_running().await;
    let bench = bench
        .restart_after(|store| {
            let mut crawl = store.crawl(CrawlNo(1)).unwrap().unwrap().crawl;
            crawl.scope.exclude = vec!["[!-~]{2000}a".into()];
            store.change(&crawl).unwrap();
        })
        .await;
    // Turns are given in the order of the numbers.
    bench.until(CrawlNo(2), |it| it.state == CrawlState::Running).await;
    let shown = bench.client.json("/api/v1/crawls/crawl_1").await;
    assert_eq!(shown["state"], "paused", "{shown}");
    let why = shown["pause_detail"].as_str().unwrap();
    assert!(why.starts_with("cannot run: ") && why.contains("[!-~]{2000}a"), "{why}");
    // It was once shown as running, until the engine refused it.
    let resumed = bench.client.post("/api/v1/crawls/crawl_1/resume", &json!({})).await;
    assert_eq!(resumed.status, 422, "{resumed:?}");
    let after = bench.client.json("/api/v1/crawls/crawl_1").await;
    assert_eq!(
        (&after["state_since"], &after["pause_detail"]),
        (&shown["state_since"], &json!(why))
    );
    bench.stop().await;
}
