//! Answers that break HTTP, or stretch it.

use std::sync::Arc;
use std::time::Duration;

use telusur_fetch::{Fetch, FetchOrder, FetchProfile, REQUESTS_PER_VISIT_MAX};
use telusur_model::{BasicAuth, FetchOutcome, FetchRules, Moment, PageUrl, Reason, Retry, Secret};
use tokio::sync::mpsc;

use crate::bench::{Bench, outcome, outcome_on, reason};
use crate::script::{Act, Hold, Read, Reset, ScriptedServer, page, send, send_endlessly};

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What comes of an answer after which the server closes.
async fn answered(answer: impl AsRef<[u8]>) -> FetchOutcome {
    outcome(vec![Read, send(answer)]).await
}

async fn check(answer: impl AsRef<[u8]>, expect: Reason) {
    let shown = String::from_utf8_lossy(answer.as_ref()).chars().take(120).collect::<String>();
    let outcome = answered(answer).await;
    assert!(
        matches!(outcome, FetchOutcome::Failed { why, .. } if why == expect),
        "{shown:?} gives {outcome:?}"
    );
}

async fn check_body(answer: impl AsRef<[u8]>, expect: &str) {
    match answered(answer).await {
        FetchOutcome::Page(page) => assert_eq!(page.body, expect.as_bytes()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_page() {
    let server = ScriptedServer::start(vec![vec![Read, page("Halo"), Hold]]).await;
    let bench = Bench::new();
    let fetched = bench.fetch(&server.url("/a?b=c|d#e")).await;
    let FetchOutcome::Page(page) = fetched.outcome else { panic!("{fetched:?}") };
    assert_eq!((page.status, &page.body[..], page.truncated), (200, &b"Halo"[..], false));
    assert_eq!(page.header("content-length"), Some("4"));
    assert_eq!(page.wire_bytes, 4);
    assert_eq!(fetched.address, Some("127.0.0.1".parse().unwrap()));
    let expect = format!(
        "GET /a?b=c|d HTTP/1.1\r\nhost: {}\r\nuser-agent: Telusur/0.1.0\r\naccept: \
         text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
         accept-encoding: gzip, br, zstd, deflate\r\n\r\n",
        server.address
    );
    assert_eq!(server.requests(), [expect]);
}

#[tokio::test]
async fn whoever_counts_delays_is_told_of_the_request() {
    let server = ScriptedServer::start(vec![vec![Read, page("")]]).await;
    let bench = Bench::new();
    bench.clock.advance(Duration::from_millis(7));
    let (on_request, mut told) = mpsc::channel(REQUESTS_PER_VISIT_MAX);
    let url = PageUrl::parse(&server.url("/")).unwrap();
    let profile = Arc::new(bench.profile.clone());
    let order = FetchOrder { on_request: Some(on_request), ..FetchOrder::new(url, profile) };
    let fetched = bench.fetcher.fetch(order).await;
    assert_eq!(fetched.requested_at, Some(Moment(7)));
    assert_eq!(told.recv().await, Some(Moment(7)));
    assert_eq!(told.recv().await, None);
}

#[tokio::test]
async fn extra_headers_stay_with_their_origin() {
    // R5, G8.
    let server = ScriptedServer::start(vec![vec![Read, page("")]]).await;
    let rules = FetchRules {
        headers: vec![("Authorization".to_owned(), "Bearer s3cret".to_owned())],
        allow_private: vec!["127.0.0.1".to_owned()],
        ..FetchRules::default()
    };
    let mut bench = Bench::new();
    for (origin, expect) in [(server.url(""), true), ("http://a.org".to_owned(), false)] {
        bench.profile = FetchProfile::new(&rules, 100, vec![origin]).unwrap();
        bench.page(&server.url("/")).await;
        let request = server.requests().pop().unwrap();
        assert_eq!(request.contains("authorization: Bearer s3cret\r\n"), expect);
    }
}

#[tokio::test]
async fn a_password_stays_with_its_origin() {
    // R5, G8: another port of the same host is another origin.
    let script = || vec![vec![Read, page("")]];
    let (seed, other) =
        (ScriptedServer::start(script()).await, ScriptedServer::start(script()).await);
    let auth = BasicAuth {
        host: "127.0.0.1".to_owned(),
        user: "me".to_owned(),
        password: Secret::new("s3cret"),
    };
    let rules = FetchRules {
        basic_auth: vec![auth],
        allow_private: vec!["127.0.0.1".to_owned()],
        ..FetchRules::default()
    };
    let mut bench = Bench::new();
    bench.profile = FetchProfile::new(&rules, 100, vec![seed.url("")]).unwrap();
    bench.page(&seed.url("/")).await;
    bench.page(&other.url("/")).await;
    assert!(seed.requests()[0].contains("\r\nauthorization: Basic bWU6czNjcmV0\r\n"));
    assert!(!other.requests()[0].contains("authorization"));
}

#[tokio::test]
async fn an_endless_body_is_cut_and_the_connection_closed() {
    // H2.
    for head in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"] {
        let script = vec![Read, send(head), send_endlessly("x".repeat(1000))];
        let mut server = ScriptedServer::start(vec![script]).await;
        let page = Bench::new().page(&server.url("/")).await;
        assert_eq!((page.body.len(), page.wire_bytes, page.truncated), (1 << 20, 1 << 20, true));
        server.connection_ended().await;
    }
}

#[tokio::test]
async fn endless_chunks_are_cut_too() {
    // H2.
    let script = vec![Read, send(CHUNKED), send_endlessly("5\r\nabcde\r\n".repeat(1000))];
    let mut server = ScriptedServer::start(vec![script]).await;
    let page = Bench::new().page(&server.url("/")).await;
    assert_eq!((page.body.len(), page.truncated), (1 << 20, true));
    server.connection_ended().await;
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_whole() {
    let body = "x".repeat(1 << 20);
    let server = ScriptedServer::start(vec![vec![Read, page(&body)]]).await;
    let page = Bench::new().page(&server.url("/")).await;
    assert_eq!((page.body.len(), page.truncated), (1 << 20, false));
}

#[tokio::test]
async fn a_million_chunks_of_one_byte() {
    // H3.
    let chunks = "1\r\nx\r\n".repeat(1_000_000) + "0\r\n\r\n";
    check_body([CHUNKED, &chunks].concat(), &"x".repeat(1_000_000)).await;
}

#[tokio::test]
async fn the_time_for_a_visit_is_limited() {
    // Long enough for the head to arrive, also on a busy machine.
    let rules = FetchRules { timeout_ms: 500, ..FetchRules::default() };
    let bench = Bench::with_rules(rules);
    let script = |answer: &str| vec![Read, send(answer), Hold];
    let no_head = outcome_on(&bench, script("")).await;
    assert_eq!(reason(&no_head), Reason::TimeoutFirstByte);
    let no_end = outcome_on(&bench, script(CHUNKED)).await;
    assert_eq!(reason(&no_end), Reason::TimeoutBody);
}

#[tokio::test]
async fn broken_chunks() {
    // H4.
    for chunk in ["ZZZ\r\n", "11111111111111111\r\n", "-1\r\n", "5\nabcde\n", "5\r\nabcdeXX"] {
        check([CHUNKED, chunk].concat(), Reason::ProtocolError).await;
    }
    check([CHUNKED, "1;", &"e".repeat(100_000)].concat(), Reason::ProtocolError).await;
}

#[tokio::test]
async fn an_announced_size_is_not_allocated() {
    // H4.
    check([CHUNKED, "7fffffffffffffff\r\nabc"].concat(), Reason::Truncated).await;
    check("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nabc", Reason::Truncated)
        .await;
}

#[tokio::test]
async fn bodies_that_end_early() {
    // H5.
    check("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", Reason::Truncated).await;
    check([CHUNKED, "3\r\nabc\r\n"].concat(), Reason::Truncated).await;
    check([CHUNKED, "5\r\nabc"].concat(), Reason::Truncated).await;
    check("HTTP/1.1 200 OK\r\nContent-Le", Reason::Truncated).await;
}

#[tokio::test]
async fn a_reset_within_the_body() {
    // H16.
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
    let outcome = outcome(vec![Read, send(head), Reset]).await;
    let FetchOutcome::Failed { why, retry: Retry::Later, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(why, Reason::ConnectionReset);
}

#[tokio::test]
async fn broken_lengths() {
    // H6.
    for length in ["-1", "+5", "5, 6", "999999999999999999999999", "abc", ""] {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nabcde");
        check(answer, Reason::ProtocolError).await;
    }
    let twice = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef";
    check(twice, Reason::ProtocolError).await;
}

#[tokio::test]
async fn heads_that_are_too_large() {
    // H7.
    let many = "X-A: 1\r\n".repeat(10_000);
    check(format!("HTTP/1.1 200 OK\r\n{many}\r\n"), Reason::HeaderTooLarge).await;
    let long = "x".repeat(8 << 20);
    check(format!("HTTP/1.1 200 OK\r\nX-A: {long}\r\n\r\n"), Reason::HeaderTooLarge).await;
    let endless = vec![Read, send("HTTP/1.1 200 OK\r\n"), send_endlessly("X-A: 1\r\n")];
    assert_eq!(reason(&outcome(endless).await), Reason::HeaderTooLarge);
    let long = "t".repeat(60_000);
    check(format!("HTTP/1.1 200 OK\r\nContent-Type: {long}\r\n\r\n"), Reason::HeaderTooLarge).await;
}

#[tokio::test]
async fn endless_interim_answers() {
    // H7.
    let script = vec![Read, send_endlessly("HTTP/1.1 103 Early Hints\r\n\r\n")];
    assert_eq!(reason(&outcome(script).await), Reason::HeaderTooLarge);
}

#[tokio::test]
async fn interim_answers_are_skipped() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
    check_body(format!("{hints}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), "ok").await;
}

#[tokio::test]
async fn a_hundred_and_fifty_honest_headers() {
    // H8.
    let many: String = (0..150).map(|n| format!("X-{n}: {n}\r\n")).collect();
    check_body(format!("HTTP/1.1 200 OK\r\n{many}Content-Length: 2\r\n\r\nok"), "ok").await;
}

#[tokio::test]
async fn broken_headers() {
    // H9.
    let broken: [&[u8]; 6] =
        [b"X: a\0b", b"X: a\r\n folded", b": no name", b"X : space", b"X: \x1b[2J", b"no colon"];
    for header in broken {
        let answer = [b"HTTP/1.1 200 OK\r\n", header, b"\r\n\r\n"].concat();
        check(answer, Reason::ProtocolError).await;
    }
}

#[tokio::test]
async fn bytes_beyond_ascii_are_replaced() {
    // H9.
    let outcome = answered(b"HTTP/1.1 200 OK\r\nX-A: a\xff\xc3\xa9b\r\n\r\n").await;
    let FetchOutcome::Page(page) = outcome else { panic!("{outcome:?}") };
    assert_eq!(page.header("x-a"), Some("a\u{fffd}\u{fffd}\u{fffd}b"));
}

#[tokio::test]
async fn strange_versions_and_statuses() {
    // H10.
    for line in [
        "<html>0.9</html>",
        "HTTP/9.9 200 OK",
        "HTTP/2 200",
        "HTTP/1.1 000 Zero",
        "HTTP/1.1 99999 Much",
        "HTTP/1.1 abc",
        "HTTP/1.1 101 Switching Protocols",
    ] {
        check(format!("{line}\r\n\r\n"), Reason::ProtocolError).await;
    }
}

#[tokio::test]
async fn status_lines_that_cannot_be_read_are_said_to_be_broken() {
    for line in ["HTTP/1.1  200 OK", "HTTP/1.1 200OK", "http/1.1 200 OK", "HTTP/1.0200 OK"] {
        let outcome = answered(format!("{line}\r\nContent-Length: 2\r\n\r\nok")).await;
        let FetchOutcome::Failed { why: Reason::ProtocolError, detail, .. } = outcome else {
            panic!("{line}: {outcome:?}");
        };
        assert!(detail.starts_with("broken server: "), "{line}: {detail}");
    }
}

#[tokio::test]
async fn a_part_that_nobody_asked_for_is_no_page() {
    let part = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/9\r\n\
                Content-Length: 2\r\n\r\nok";
    check(part, Reason::ProtocolError).await;
}

#[tokio::test]
async fn any_status_with_a_valid_answer_is_a_page() {
    // H10.
    for status in [203, 204, 300, 404, 418, 500, 503, 999] {
        let answer = format!("HTTP/1.1 {status} X\r\nRetry-After: -1\r\nContent-Length: 0\r\n\r\n");
        let outcome = answered(answer).await;
        let FetchOutcome::Page(page) = outcome else { panic!("{outcome:?}") };
        assert_eq!((page.status, page.header("retry-after")), (status, Some("-1")));
    }
}

#[tokio::test]
async fn an_endless_reason_phrase_is_passed_over() {
    // H20.
    let phrase = "p".repeat(64 * 1024);
    check_body(format!("HTTP/1.1 200 {phrase}\r\nContent-Length: 2\r\n\r\nok"), "ok").await;
}

#[tokio::test]
async fn a_hundred_thousand_trailers() {
    // H21.
    let trailers = "X-A: 1\r\n".repeat(100_000);
    check([CHUNKED, "1\r\nx\r\n0\r\n", &trailers, "\r\n"].concat(), Reason::ProtocolError).await;
}

#[tokio::test]
async fn line_breaks_never_reach_the_wire() {
    // U1, G13.
    let server = ScriptedServer::start(vec![vec![Read, page("")] as Vec<Act>]).await;
    Bench::new().page(&server.url("/a\r\nX-Injected: 1")).await;
    Bench::new().page(&server.url("/a%0d%0aX-Injected: 1")).await;
    for request in server.requests() {
        assert!(!request.contains("\nX-Injected"), "{request}");
    }
}

#[tokio::test]
async fn escapes_in_a_reason_phrase_are_not_kept() {
    // H20: the phrase is nowhere in what is kept, so it cannot reach a terminal.
    let outcome = answered("HTTP/1.1 503 \u{1b}[2J busy\r\nContent-Length: 2\r\n\r\nno").await;
    match outcome {
        FetchOutcome::Page(page) => {
            assert_eq!((page.status, &page.body[..]), (503, &b"no"[..]));
            assert!(!format!("{page:?}").contains('\u{1b}'));
        }
        other => assert_eq!(reason(&other), Reason::ProtocolError),
    }
}

#[tokio::test]
async fn strange_dates_and_ages_are_only_kept() {
    // H23.
    let answer = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nAge: -1\r\n\
                  Last-Modified: Mon, 01 Jan 1601 00:00:00 GMT\r\nContent-Length: 2\r\n\r\nok";
    check_body(answer, "ok").await;
}

#[tokio::test]
async fn nothing_but_whole_pages_is_asked_for() {
    // H24: no HEAD whose word could differ, no range that could be ignored.
    let server = ScriptedServer::start(vec![vec![Read, page("")]]).await;
    Bench::new().page(&server.url("/")).await;
    let request = server.requests().pop().unwrap();
    assert!(request.starts_with("GET ") && !request.contains("range"), "{request}");
}

#[tokio::test]
async fn a_length_that_is_too_short_hides_nothing() {
    // H6, H13: what lies behind the announced end is neither page nor next answer.
    let short = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\
                 Content-Length: 6\r\n\r\nforged";
    let scripts = vec![vec![Read, send(short), Hold], vec![Read, page("honest"), Hold]];
    let server = ScriptedServer::start(scripts).await;
    let bench = Bench::new();
    assert_eq!(bench.page(&server.url("/")).await.body, "ok");
    assert_eq!(bench.page(&server.url("/")).await.body, "honest");
}

#[tokio::test]
async fn a_type_that_is_missing_or_garbage_is_left_to_the_reader() {
    // H18: what a page is, its bytes decide later.
    for content_type in ["", "Content-Type: \r\n", "Content-Type: ;;;=/\r\n"] {
        let answer = format!("HTTP/1.1 200 OK\r\n{content_type}Content-Length: 2\r\n\r\nok");
        check_body(answer, "ok").await;
    }
}
