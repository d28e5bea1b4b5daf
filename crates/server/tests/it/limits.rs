//! How much can be asked for.

use serde_json::json;
use telusur_model::CrawlNo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::bench::{Bench, endless_site, small_site};

#[tokio::test]
async fn crawls_wait_for_their_turn_and_too_many_are_refused() {
    let bench = Bench::start_gated(endless_site).await;
    let bench = {
        bench.stop().await;
        Bench::start_with(endless_site, |it| {
            it.bounds.running_max = 1;
            it.bounds.queued_max = 2;
        })
        .await
    };
    let body = json!({ "urls": ["http://site.test/"] });
    let start = || bench.client.post("/api/v1/crawls", &body);
    assert_eq!(start().await.status, 202);
    bench.until(CrawlNo(1), |it| it.stats.pages > 0).await;
    assert_eq!((start().await.status, start().await.status), (202, 202));
    let refused = start().await;
    refused.problem(429, "too_many_crawls");
    assert!(refused.header("retry-after").parse::<u64>().unwrap() > 0);
    let s1 = bench.client.post("/crawl", &json!({ "url": "http://site.test/" })).await;
    assert!(s1.problem(429, "too_many_crawls")["error"].is_string());
    assert_eq!(bench.client.json("/api/v1/crawls/crawl_2").await["state"], "queued");
    assert_eq!(bench.client.json("/crawl/crawl_2").await["job"]["status"], "running");
    // One that waits can be paused, resumed, stopped and thrown away.
    let order = async |no: u32, word: &str| {
        let target = format!("/api/v1/crawls/crawl_{no}/{word}");
        bench.client.post(target, &json!({})).await
    };
    assert_eq!(order(2, "pause").await.json()["state"], "paused");
    assert_eq!(order(2, "resume").await.json()["state"], "queued");
    assert_eq!(order(3, "stop").await.json()["state"], "stopped");
    assert_eq!(order(1, "stop").await.json()["state"], "stopped");
    bench.until(CrawlNo(2), |it| it.stats.pages > 0).await;
    assert_eq!(start().await.status, 202);
    assert_eq!(order(4, "cancel").await.status, 204);
    bench.stop().await;
}

#[tokio::test]
async fn crawls_that_come_at_once_do_not_slip_past_the_limit() {
    let bench = Bench::start_with(endless_site, |it| {
        it.bounds.running_max = 0;
        it.bounds.queued_max = 5;
    });
    let bench = bench.await;
    let body = json!({ "url": "http://site.test/" });
    let started = (0..40).map(|_| bench.client.post("/crawl", &body));
    let replies = futures_util::future::join_all(started).await;
    let accepted = replies.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(accepted, 5);
    for refused in replies.iter().filter(|reply| reply.status != 200) {
        refused.problem(429, "too_many_crawls");
        assert!(refused.header("retry-after").parse::<u64>().unwrap() > 0);
    }
    assert_eq!(bench.client.json("/api/v1/crawls").await["total"], 5);
    bench.stop().await;
}

#[tokio::test]
async fn bodies_and_lists_have_limits() {
    let bench = Bench::start_with(small_site, |it| {
        it.bounds.body_bytes_max = 10_000;
        it.bounds.seeds_max = 3;
        it.bounds.pattern_bytes_max = 50;
    });
    let bench = bench.await;
    let huge = "x".repeat(10_001);
    for target in ["/crawl", "/api/v1/crawls", "/api/v1/search"] {
        let ask = bench.client.ask("POST", target).header("content-type", "application/json");
        ask.body(huge.clone()).send().await.problem(413, "body_too_large");
    }
    let check = async |body: serde_json::Value, pointer: &str| {
        let reply = bench.client.post("/api/v1/crawls", &body).await;
        assert_eq!(reply.problem(422, "invalid_field")["pointer"], pointer);
    };
    check(
        json!({ "urls": ["http://a.test/", "http://b.test/", "http://c.test/", "http://d.test/"] }),
        "/urls",
    )
    .await;
    check(
        json!({ "urls": ["http://a.test/"], "scope": { "exclude": ["x".repeat(51)] } }),
        "/scope/exclude/0",
    )
    .await;
    check(
        json!({ "urls": ["http://a.test/"], "scope": { "include": ["(a{1000}){1000}"] } }),
        "/scope/include/0",
    )
    .await;
    check(json!({ "urls": ["http://a.test/"], "name": "x".repeat(201) }), "/name").await;
    check(json!({ "urls": ["http://a.test/"], "name": "crawl_1" }), "/name").await;
    check(json!({ "urls": [] }), "/urls").await;
    check(json!({}), "/urls").await;
    check(
        json!({ "urls": ["http://a.test/"], "limits": { "max_body": 10_000_000_000_000_u64 } }),
        "/limits/max_body",
    )
    .await;
    bench.stop().await;
}

#[tokio::test]
async fn a_body_that_never_ends_is_cut_off() {
    let bench = Bench::start_with(small_site, |it| it.bounds.body_bytes_max = 10_000).await;
    let mut stream = bench.client.connect().await;
    let head = "POST /crawl HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(4096));
    for _ in 0..1000 {
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut answer = [0; 12];
    if stream.read_exact(&mut answer).await.is_ok() {
        assert_eq!(&answer, b"HTTP/1.1 413");
    }
    bench.stop().await;
}

#[tokio::test]
async fn slow_clients_are_cut_off_and_others_are_served() {
    let bench = Bench::start_with(small_site, |it| {
        it.bounds.header_time_max = std::time::Duration::from_millis(200);
    });
    let bench = bench.await;
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut stream = bench.client.connect().await;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: loc").await.unwrap();
        slow.push(stream);
    }
    assert_eq!(bench.client.get("/healthz").await.status, 200);
    for mut stream in slow {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{rest:?}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_place() {
    let bench = Bench::start_with(small_site, |it| {
        it.bounds.connections_max = 1;
        it.bounds.header_time_max = std::time::Duration::from_millis(200);
    });
    let bench = bench.await;
    // Says nothing, and is cut off; the next one gets its place.
    let silent = bench.client.connect().await;
    assert_eq!(bench.client.get("/healthz").await.status, 200);
    drop(silent);
    bench.stop().await;
}

#[tokio::test]
async fn huge_heads_are_refused() {
    let bench = Bench::start(small_site).await;
    let mut stream = bench.client.connect().await;
    let head =
        format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(200_000));
    let _ = stream.write_all(head.as_bytes()).await;
    let mut answer = [0; 12];
    if stream.read_exact(&mut answer).await.is_ok() {
        assert_eq!(&answer, b"HTTP/1.1 431");
    }
    assert_eq!(bench.client.get("/healthz").await.status, 200);
    bench.stop().await;
}

#[tokio::test]
async fn exports_and_readers_of_events_are_few() {
    let bench = Bench::start_with(small_site, |it| {
        it.bounds.exports_max = 0;
        it.bounds.event_readers_max = 0;
    });
    let bench = bench.await;
    bench.crawled().await;
    for target in ["/api/v1/crawls/crawl_1/export", "/api/v1/crawls/crawl_1/events"] {
        let refused = bench.client.get(target).await;
        refused.problem(429, "too_many_requests");
        assert!(!refused.header("retry-after").is_empty());
    }
    bench.stop().await;
}

#[tokio::test]
async fn small_bodies_cost_little() {
    let bench = Bench::start_with(small_site, |it| it.bounds.running_max = 0).await;
    let check = async |body: serde_json::Value, pointer: &str| {
        let reply = bench.client.post("/api/v1/crawls", &body).await;
        assert_eq!(reply.problem(422, "invalid_field")["pointer"], pointer);
        assert!(reply.body.len() < 2000, "{} bytes", reply.body.len());
    };
    let urls = ["http://site.test/"];
    check(json!({ "urls": urls, "scope": { "exclude": vec![r"\w{200}"; 90] } }), "/scope").await;
    check(
        json!({ "urls": urls, "scope": { "exclude": [r"\w".repeat(30_000)] } }),
        "/scope/exclude/0",
    )
    .await;
    // The first that is too much ends it: nothing is done for the rest, so that the mistake is not reached.
    let costly = format!("(?i){}", r"\w".repeat(199));
    let mut patterns = vec![costly.as_str(); 99];
    patterns.push("(");
    let scope = json!({ "include": vec![&costly; 100], "exclude": patterns });
    check(json!({ "urls": urls, "scope": scope }), "/scope").await;
    let scope = json!({ "include": ["a", "b"], "exclude": ["c", "("] });
    check(json!({ "urls": urls, "scope": scope }), "/scope/exclude/1").await;
    let scope = json!({ "include": ["a", "["], "exclude": ["c"] });
    check(json!({ "urls": urls, "scope": scope }), "/scope/include/1").await;
    let slow = ["http", "[!-~]{999}a|[!-~]{999}b"];
    check(json!({ "urls": urls, "scope": { "exclude": slow } }), "/scope").await;
    let linear = |missing: String| {
        json!({ "linear": { "template": "http://site.test/{id}", "from": 1, "to": 9,
                            "missing": missing } })
    };
    check(linear(vec!["RX:a"; 20_000].join(",")), "/linear/missing").await;
    let folded = format!(r#"RX:"(?i){}""#, r"\w".repeat(90));
    check(linear(vec![folded; 20].join("\",") + "\""), "/linear/missing").await;
    check(linear(format!("\"{}", "a".repeat(500_000))), "/linear/missing").await;
    let mut list = linear(String::new());
    list["linear"]["ids"] = "x".repeat(500_000).into();
    list["linear"].as_object_mut().unwrap().remove("missing");
    check(list, "/linear/ids").await;
    // Ids are shared by all templates: what is stored is little more than the list.
    let templates: Vec<String> =
        (0..1000).map(|number| format!("http://site.test/{number}/{{id}}")).collect();
    let ids: String = (0..20_000).map(|id| format!("{}\n", id * 2)).collect();
    let body = json!({ "linear": { "templates": templates, "ids": ids } });
    let made = bench.client.post("/api/v1/crawls", &body).await;
    assert_eq!(made.status, 202, "{made:?}");
    let record = bench.store.crawls().unwrap().pop().unwrap();
    let walks = record.crawl.seeds.walks();
    let ids = walks[0].legs()[0].positions.as_slice().as_ptr();
    assert_eq!(walks.len(), 1000);
    assert!(walks.iter().all(|walk| walk.legs()[0].positions.as_slice().as_ptr() == ids));
    assert!(serde_json::to_vec(&record.crawl).unwrap().len() < 1_500_000);
    bench.stop().await;
}

#[tokio::test]
async fn added_exclusions_count_with_those_before() {
    let bench = Bench::start_with(small_site, |it| it.bounds.running_max = 0).await;
    let body = json!({ "urls": ["http://site.test/"], "scope": { "exclude": [r"[a-z]{400}"] } });
    assert_eq!(bench.client.post("/api/v1/crawls", &body).await.status, 202);
    let change = json!({ "exclude": [r"[a-z]{400}"] });
    let reply = bench.client.ask("PATCH", "/api/v1/crawls/crawl_1").json(&change).send().await;
    assert_eq!(reply.problem(422, "invalid_field")["pointer"], "/exclude");
    let change = json!({ "exclude": ["a", "("] });
    let reply = bench.client.ask("PATCH", "/api/v1/crawls/crawl_1").json(&change).send().await;
    assert_eq!(reply.problem(422, "invalid_field")["pointer"], "/exclude/1");
    bench.stop().await;
}
