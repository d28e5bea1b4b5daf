//! Clients that hang up. Their requests are dropped at every `await` there is, one after the other: what
//! they asked for happens whole or not at all, and the list of crawls stays that of the store.

use std::future::poll_fn;
use std::task::Poll;

use axum::body::Body;
use axum::response::Response;
use http::Request;
use serde_json::{Value, json};
use telusur_model::{CrawlNo, CrawlState};
use telusur_server::{KeyFile, app};
use tower::Service as _;

use crate::bench::{Bench, endless_site, number, small_site};

/// More than any request here is polled; a request that is not done by then never will be.
const POLLS_MAX: usize = 200;

/// Crawls wait in the line, where they are lost most easily.
async fn waiting_bench() -> Bench {
    Bench::start_with(small_site, |it| it.bounds.running_max = 0).await
}

/// Sends a request and hangs up when its handler has come to its `polls`-th `await`. The answer, if there
/// was one by then.
async fn cut_off(bench: &Bench, request: Request<Body>, polls: usize) -> Option<Response> {
    if polls == 0 {
        return None;
    }
    let mut handling = Box::pin(app(bench.service.clone()).call(request));
    let mut polled = 0;
    let answer = poll_fn(|context| {
        polled += 1;
        match handling.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(answer.ok()),
            Poll::Pending if polled == polls => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    let answer = answer.await;
    drop(handling);
    bench.service.settled().await;
    answer
}

fn request(method: &str, target: &str, body: &Value) -> Request<Body> {
    let request = Request::builder().method(method).uri(target);
    let request = request.header("host", "localhost").header("content-type", "application/json");
    request.body(Body::from(body.to_string())).unwrap()
}

/// The list shows every crawl of the store and no other, and whatever is to run runs or waits for its turn.
async fn check_list(bench: &Bench, at: &str) {
    let listed = bench.client.json("/api/v1/crawls?limit=1000").await;
    let mut listed: Vec<(String, String)> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["alias"].as_str().unwrap().into(), it["state"].as_str().unwrap().into()))
        .collect();
    listed.reverse();
    let stored = bench.store.crawls().unwrap();
    let stored: Vec<(String, String)> = stored
        .iter()
        .map(|it| {
            let word = match (it.state, bench.live_state(it.crawl.no)) {
                (_, Some(state)) => state.word(),
                (CrawlState::Running, None) => "queued",
                (state, None) => state.word(),
            };
            (it.crawl.no.to_string(), word.to_owned())
        })
        .collect();
    assert_eq!(listed, stored, "{at}");
}

#[tokio::test]
async fn a_crawl_is_made_once_whenever_its_client_hangs_up() {
    let bench = waiting_bench().await;
    let body = json!({ "urls": ["http://site.test/"] });
    for polls in 0..POLLS_MAX {
        let start = || {
            let mut start = request("POST", "/api/v1/crawls", &body);
            let key = format!("key {polls}").parse().unwrap();
            start.headers_mut().insert("idempotency-key", key);
            start
        };
        let before = bench.store.crawls().unwrap().len();
        let is_done = cut_off(&bench, start(), polls).await.is_some();
        check_list(&bench, &format!("after {polls} polls")).await;
        // The client asks again with the same key, and gets the same crawl.
        let again = cut_off(&bench, start(), POLLS_MAX).await.unwrap();
        assert!([200, 202].contains(&again.status().as_u16()), "{again:?}");
        let made = bench.store.crawls().unwrap().len() - before;
        assert_eq!(made, 1, "one key, one crawl, after {polls} polls");
        if is_done {
            assert_eq!(again.status(), 200);
            return bench.stop().await;
        }
    }
    panic!("the request was never done");
}

/// Orders something about a crawl that waits, and hangs up at every `await`.
async fn check_order(method: &'static str, word: &str, body: Value) {
    let bench = waiting_bench().await;
    for polls in 0..POLLS_MAX {
        let start = json!({ "urls": ["http://site.test/"] });
        let made = bench.client.post("/api/v1/crawls", &start).await.json();
        let mut target = format!("/api/v1/crawls/{}", made["alias"].as_str().unwrap());
        if word == "resume" {
            bench.client.post(format!("{target}/pause"), &json!({})).await;
        }
        if !word.is_empty() {
            target = format!("{target}/{word}");
        }
        let answer = cut_off(&bench, request(method, &target, &body), polls).await;
        check_list(&bench, &format!("{method} {word} after {polls} polls")).await;
        if let Some(answer) = answer {
            assert!(answer.status().is_success(), "{answer:?}");
            return bench.stop().await;
        }
    }
    panic!("{method} {word} was never done");
}

#[tokio::test]
async fn a_pause_is_whole() {
    check_order("POST", "pause", json!({})).await;
}

#[tokio::test]
async fn a_resume_is_whole() {
    check_order("POST", "resume", json!({})).await;
}

#[tokio::test]
async fn a_stop_is_whole() {
    check_order("POST", "stop", json!({})).await;
}

#[tokio::test]
async fn a_retry_is_whole() {
    let bench = Bench::start_with(endless_site, |it| it.bounds.running_max = 1).await;
    for polls in 0..POLLS_MAX {
        let failing = json!({ "urls": ["http://nowhere.test/"] });
        let failed = number(&bench.client.post("/api/v1/crawls", &failing).await.json()["alias"]);
        bench.finished(failed).await;
        // Another crawl has the only turn: what is retried waits in the line.
        let other = live_crawl(&bench).await;
        let target = format!("/api/v1/crawls/crawl_{failed}/retry");
        let answer = cut_off(&bench, request("POST", &target, &json!({})), polls).await;
        let at = format!("after {polls} polls");
        check_list(&bench, &at).await;
        let is_retried = bench.store.crawl(CrawlNo(failed)).unwrap().unwrap();
        let is_retried = is_retried.state == CrawlState::Running;
        let target = format!("/api/v1/crawls/crawl_{other}/cancel");
        assert_eq!(bench.client.post(target, &json!({})).await.status, 204);
        if let Some(answer) = answer {
            assert!(answer.status().is_success() && is_retried, "{answer:?}");
            return bench.stop().await;
        }
    }
    panic!("the retry was never done");
}

/// A crawl that runs, with nothing under way: it pauses for an hour between two requests.
async fn live_crawl(bench: &Bench) -> u32 {
    let body = json!({ "urls": ["http://site.test/"], "manners": { "delay_ms": 3_600_000 } });
    let no = number(&bench.client.post("/api/v1/crawls", &body).await.json()["alias"]);
    bench.until(CrawlNo(no), |it| it.state == CrawlState::Running).await;
    no
}

/// Orders something about a crawl that runs, and hangs up at every `await`.
async fn check_live_order(method: &'static str, word: &str, body: Value) {
    let bench = Bench::start(endless_site).await;
    for polls in 0..POLLS_MAX {
        let no = live_crawl(&bench).await;
        let mut target = format!("/api/v1/crawls/crawl_{no}");
        let cancel = format!("{target}/cancel");
        if word == "resume" {
            bench.client.post(format!("{target}/pause"), &json!({})).await;
        }
        if !word.is_empty() {
            target = format!("{target}/{word}");
        }
        let answer = cut_off(&bench, request(method, &target, &body), polls).await;
        check_list(&bench, &format!("{method} {word} after {polls} polls")).await;
        if let Some(answer) = answer {
            assert!(answer.status().is_success(), "{answer:?}");
            return bench.stop().await;
        }
        // It makes room for the next one; it may be gone already.
        assert!([204, 404].contains(&bench.client.post(cancel, &json!({})).await.status));
    }
    panic!("{method} {word} was never done");
}

#[tokio::test]
async fn orders_to_a_running_crawl_are_whole() {
    for word in ["pause", "resume", "stop", "cancel"] {
        check_live_order("POST", word, json!({})).await;
    }
    check_live_order("PATCH", "", json!({ "exclude": ["/7$"] })).await;
}

#[tokio::test]
async fn a_cancel_is_whole() {
    check_order("POST", "cancel", json!({})).await;
}

#[tokio::test]
async fn a_deletion_is_whole() {
    check_order("DELETE", "", json!({})).await;
}

#[tokio::test]
async fn a_change_is_whole() {
    check_order("PATCH", "", json!({ "limits": { "max_pages": 7 } })).await;
}

#[tokio::test]
async fn a_call_of_the_first_service_is_whole() {
    let bench = waiting_bench().await;
    for polls in 0..POLLS_MAX {
        let start = request("POST", "/crawl", &json!({ "url": "http://site.test/" }));
        let answer = cut_off(&bench, start, polls).await;
        check_list(&bench, &format!("after {polls} polls")).await;
        if answer.is_some() {
            return bench.stop().await;
        }
    }
    panic!("the request was never done");
}

#[tokio::test]
async fn keys_that_are_made_are_known() {
    let bench = waiting_bench().await;
    let file = KeyFile::new(&bench.dir.path().join("keys.json"));
    let first = json!({ "scopes": ["admin"] });
    let made = bench.client.post("/api/v1/keys", &first).await.json();
    let admin = bench.client.with_key(made["key"].as_str().unwrap());
    for polls in 0..POLLS_MAX {
        let mut create = request("POST", "/api/v1/keys", &json!({ "scopes": ["read"] }));
        let bearer = format!("Bearer {}", made["key"].as_str().unwrap()).parse().unwrap();
        create.headers_mut().insert("authorization", bearer);
        let answer = cut_off(&bench, create, polls).await;
        let listed = admin.json("/api/v1/keys").await.as_array().unwrap().len();
        assert_eq!(listed, file.keys().unwrap().len(), "after {polls} polls");
        if answer.is_some() {
            return bench.stop().await;
        }
    }
    panic!("the request was never done");
}
