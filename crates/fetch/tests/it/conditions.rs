//! Visits to pages that we already have.

use std::sync::Arc;

use telusur_fetch::{Fetch, FetchOrder};
use telusur_model::{FetchOutcome, PageUrl, Reason, Validators};

use crate::bench::{Bench, outcome, reason};
use crate::script::{Hold, Read, ScriptedServer, page, send};

const NOT_MODIFIED: &str = "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n";

async fn revisit(bench: &Bench, server: &ScriptedServer, if_changed: Validators) -> FetchOutcome {
    let url = PageUrl::parse(&server.url("/")).unwrap();
    let order = FetchOrder { if_changed, ..FetchOrder::new(url, Arc::new(bench.profile.clone())) };
    bench.fetcher.fetch(order).await.outcome
}

fn validators(etag: &str, last_modified: &str) -> Validators {
    Validators { etag: Some(etag.to_owned()), last_modified: Some(last_modified.to_owned()) }
}

#[tokio::test]
async fn an_unchanged_page_is_not_sent_again() {
    let first = "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
                 Content-Length: 4\r\n\r\nHalo";
    let script = vec![Read, send(first), Read, send(NOT_MODIFIED), Read, page("new"), Hold];
    let server = ScriptedServer::start(vec![script]).await;
    let bench = Bench::new();
    let if_changed = Validators::of(&bench.page(&server.url("/")).await);
    assert_eq!(revisit(&bench, &server, if_changed.clone()).await, FetchOutcome::NotModified);
    let request = &server.requests()[1];
    assert!(request.contains("\r\nif-none-match: \"v1\"\r\n"), "{request}");
    let date = "\r\nif-modified-since: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    assert!(request.contains(date), "{request}");
    // The connection is as good as after any other answer.
    let outcome = revisit(&bench, &server, if_changed).await;
    assert!(matches!(outcome, FetchOutcome::Page(page) if page.body == "new"));
}

#[tokio::test]
async fn not_modified_out_of_nowhere() {
    let outcome = outcome(vec![Read, send(NOT_MODIFIED)]).await;
    assert_eq!(reason(&outcome), Reason::ProtocolError);
}

#[tokio::test]
async fn validators_that_make_no_sense_are_not_sent() {
    // H23, G13.
    let server = ScriptedServer::start(vec![vec![Read, send(NOT_MODIFIED)]]).await;
    let bench = Bench::new();
    for (etag, last_modified) in [
        (&*"e".repeat(60_000), "Mon, 01 Jan 1601 00:00:00 GMT"),
        ("\"a\"\r\nX-Injected: 1", "Fri, 31 Dec 9999 23:59:59 GMT"),
        ("*", "Sun, 06 Nov 1994 08:49:37 GMT\r\nX-Injected: 1"),
    ] {
        let outcome = revisit(&bench, &server, validators(etag, last_modified)).await;
        assert_eq!(reason(&outcome), Reason::ProtocolError, "the 304 was not asked for");
        let request = server.requests().pop().unwrap();
        assert!(!request.contains("if-") && !request.contains("X-Injected"), "{request}");
    }
}

#[tokio::test]
async fn a_server_that_asks_for_rest_is_heard() {
    // H15.
    for (value, expect) in [
        ("1", Some(1_000)),
        ("Sun, 15 Nov 2026 18:00:26 GMT", Some(60_000)),
        ("99999999999999999999", Some(3_600_000)),
        ("-1", None),
        ("1e9", None),
    ] {
        let answer =
            format!("HTTP/1.1 503 Busy\r\nRetry-After: {value}\r\nContent-Length: 0\r\n\r\n");
        let server = ScriptedServer::start(vec![vec![Read, send(answer)]]).await;
        let fetched = Bench::new().fetch(&server.url("/")).await;
        assert_eq!(fetched.retry_after_ms, expect, "{value}");
    }
}
