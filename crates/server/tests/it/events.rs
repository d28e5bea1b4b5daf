//! Server-sent events.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use telusur_model::CrawlNo;
use telusur_server::{EventKind, EventKinds};

use crate::bench::{Bench, endless_site, small_site};

/// Reads events one by one.
struct Events {
    body: Incoming,
    text: String,
}

struct Event {
    kind: String,
    id: u64,
    data: Value,
}

impl Events {
    async fn open(bench: &Bench, target: &str, last_id: Option<u64>) -> Self {
        let mut ask = bench.client.ask("GET", target);
        if let Some(id) = last_id {
            ask = ask.header("last-event-id", &id.to_string());
        }
        let response = ask.begin().await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), text: String::new() }
    }

    /// The next event; `None` at the end.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
                };
                // Only a comment: a sign of life.
                let Some(kind) = field("event") else { continue };
                return Some(Event {
                    kind: kind.to_owned(),
                    id: field("id").unwrap().parse().unwrap(),
                    data: serde_json::from_str(field("data").unwrap()).unwrap(),
                });
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(bytes) = frame.into_data() {
                self.text.push_str(std::str::from_utf8(&bytes).unwrap());
            }
        }
    }

    /// The next event of a kind.
    async fn next_of(&mut self, kind: &str) -> Event {
        loop {
            let event = self.next().await.expect("the stream goes on");
            if event.kind == kind {
                return event;
            }
        }
    }

    /// All that is left.
    async fn rest(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

const EVENTS: &str = "/api/v1/crawls/crawl_1/events";

async fn start(bench: &Bench) {
    bench.client.post("/api/v1/crawls", &json!({ "urls": ["http://site.test/"] })).await;
}

#[tokio::test]
async fn a_crawl_is_watched_from_its_first_page_to_its_end() {
    let bench = Bench::start_gated(small_site).await;
    start(&bench).await;
    let mut events = Events::open(&bench, EVENTS, None).await;
    let first = events.next().await.unwrap();
    assert_eq!((first.kind.as_str(), &first.data["alias"]), ("snapshot", &json!("crawl_1")));
    bench.gate.let_through(10);
    let events = events.rest().await;
    let pages: Vec<_> = events.iter().filter(|event| event.kind == "page").collect();
    assert_eq!(pages.len(), 5);
    assert_eq!(pages[0].data["url"], "http://site.test/");
    assert!(events.iter().any(|event| event.kind == "stats" && event.data["fetched"].is_u64()));
    let last = events.last().unwrap();
    assert_eq!((last.kind.as_str(), &last.data["state"]), ("done", &json!("completed")));
    assert!(events.iter().map(|event| event.id).is_sorted(), "ids never go back");
    bench.stop().await;
}

#[tokio::test]
async fn who_comes_back_gets_what_was_missed() {
    let bench = Bench::start_gated(small_site).await;
    start(&bench).await;
    let mut events = Events::open(&bench, EVENTS, None).await;
    bench.gate.let_through(2);
    events.next_of("page").await;
    let second = events.next_of("page").await;
    drop(events);
    bench.gate.let_through(10);
    bench.finished(1).await;
    // Also from another process.
    let bench = bench.restart().await;
    let mut events = Events::open(&bench, EVENTS, Some(second.id)).await;
    let missed = events.rest().await;
    let kinds: Vec<_> = missed.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["snapshot", "page", "page", "page", "done"]);
    assert!(missed[1].id > second.id);
    let last = missed.last().unwrap().id.to_string();
    let told = bench.client.ask("GET", EVENTS).header("last-event-id", &last).send().await;
    assert_eq!(told.status, 204, "a browser stops coming back");
    bench.stop().await;
}

#[tokio::test]
async fn a_reader_chooses_its_events() {
    let bench = Bench::start_gated(small_site).await;
    start(&bench).await;
    let mut events = Events::open(&bench, &format!("{EVENTS}?types=state"), None).await;
    bench.gate.let_through(10);
    let kinds: Vec<_> = events.rest().await.into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds.first().map(String::as_str), Some("snapshot"));
    assert_eq!(kinds.last().map(String::as_str), Some("done"));
    assert!(!kinds.iter().any(|kind| kind == "page" || kind == "stats"), "{kinds:?}");
    bench.client.get(format!("{EVENTS}?types=gossip")).await.problem(422, "invalid_field");
    bench.stop().await;
}

#[tokio::test]
async fn a_slow_reader_gets_a_snapshot_instead_of_everything() {
    let bench = Bench::start_gated(endless_site).await;
    start(&bench).await;
    let kinds = EventKinds::read(None).unwrap();
    let mut slow = bench.service.events(CrawlNo(1), kinds.clone(), None).await.unwrap().unwrap();
    let mut quick = bench.service.events(CrawlNo(1), kinds, None).await.unwrap().unwrap();
    assert_eq!(slow.next().await.unwrap().kind, EventKind::Snapshot);
    assert_eq!(quick.next().await.unwrap().kind, EventKind::Snapshot);
    // More than is kept for a reader that does not read.
    bench.gate.let_through(1500);
    let mut pages = 0;
    while pages < 1500 {
        pages += u64::from(quick.next().await.unwrap().kind == EventKind::Page);
    }
    assert_eq!(slow.next().await.unwrap().kind, EventKind::Snapshot, "not everything one by one");
    bench.stop().await;
}

#[tokio::test]
async fn watching_ends_when_the_crawl_is_thrown_away_and_when_the_service_ends() {
    let bench = Bench::start_gated(endless_site).await;
    start(&bench).await;
    start(&bench).await;
    let mut first = Events::open(&bench, EVENTS, None).await;
    let mut second = Events::open(&bench, "/api/v1/crawls/crawl_2/events", None).await;
    first.next().await.unwrap();
    second.next().await.unwrap();
    bench.gate.let_through(100);
    bench.client.post("/api/v1/crawls/crawl_1/cancel", &json!({})).await;
    let end = first.next_of("done").await.data["state"].to_string();
    assert!(["\"deleted\"", "\"stopped\""].contains(&end.as_str()), "{end}");
    bench.stop().await;
    second.rest().await;
}
