//! Answers that send us elsewhere.

use telusur_model::{FetchOutcome, FetchRules, PageUrl, Reason, Retry, Secret};

use crate::bench::{Bench, outcome, reason};
use crate::script::{Hold, Read, ScriptedServer, page, send, send_endlessly};

#[tokio::test]
async fn a_redirect_is_told_and_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let answer = format!("HTTP/1.1 {status} X\r\nLocation: http://127.0.0.2/y#f\r\n\r\n");
        let outcome = outcome(vec![Read, send(answer)]).await;
        let to = PageUrl::parse("http://127.0.0.2/y").unwrap();
        assert_eq!(outcome, FetchOutcome::Redirected { status, to });
    }
}

#[tokio::test]
async fn bad_targets() {
    // R4.
    for location in ["", "Location:\r\n", "Location: #x\r\n", "Location: /a\r\nLocation: /b\r\n"] {
        let answer = format!("HTTP/1.1 302 Found\r\n{location}\r\n");
        let outcome = outcome(vec![Read, send(answer)]).await;
        let FetchOutcome::Failed { why, retry: Retry::Never, .. } = outcome else {
            panic!("{location:?} gives {outcome:?}");
        };
        assert_eq!(why, Reason::BadRedirect, "{location:?}");
    }
}

#[tokio::test]
async fn control_characters_in_a_target() {
    // R4.
    for location in ["/a\0b", "/a\rb"] {
        let answer = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\n\r\n");
        assert_eq!(reason(&outcome(vec![Read, send(answer)]).await), Reason::ProtocolError);
    }
}

#[tokio::test]
async fn the_body_of_a_redirect_does_not_matter() {
    let head = "HTTP/1.1 302 Found\r\nLocation: /y\r\nContent-Encoding: x-evil\r\n\r\n";
    for body in [send_endlessly("x".repeat(1000)), send("short")] {
        let outcome = outcome(vec![Read, send(head), body]).await;
        assert!(matches!(outcome, FetchOutcome::Redirected { .. }), "{outcome:?}");
    }
}

#[tokio::test]
async fn the_connection_of_a_redirect_is_used_again() {
    let moved = "HTTP/1.1 302 Found\r\nLocation: /y\r\nContent-Length: 5\r\n\r\nmoved";
    let scripts = vec![vec![Read, send(moved), Read, page("same connection"), Hold]];
    let server = ScriptedServer::start(scripts).await;
    let bench = Bench::new();
    bench.fetch(&server.url("/x")).await;
    assert_eq!(bench.page(&server.url("/y")).await.body, "same connection");
}

/// Sends everybody away until they show the cookie.
async fn cookie_wall() -> ScriptedServer {
    let moved = "HTTP/1.1 302 Found\r\nLocation: /\r\nSet-Cookie: seen=yes; Path=/\r\n\
                 Content-Length: 0\r\n\r\n";
    ScriptedServer::start(vec![vec![Read, send(moved), Read, page("inside"), Hold]]).await
}

#[tokio::test]
async fn a_redirect_can_set_a_cookie() {
    // R7: the way back to the same page is a loop for the engine, but its next pages come with the cookie.
    let server = cookie_wall().await;
    let bench = Bench::new();
    assert!(matches!(bench.fetch(&server.url("/")).await.outcome, FetchOutcome::Redirected { .. }));
    bench.page(&server.url("/")).await;
    assert!(server.requests()[1].contains("\r\ncookie: seen=yes\r\n"));
}

#[tokio::test]
async fn cookies_can_be_left_out() {
    let server = cookie_wall().await;
    let rules = FetchRules {
        cookies: false,
        cookies_txt: Some(Secret::new("127.0.0.1\tFALSE\t/\tFALSE\t0\town\t1")),
        ..FetchRules::default()
    };
    let bench = Bench::with_rules(rules);
    bench.fetch(&server.url("/")).await;
    bench.page(&server.url("/")).await;
    assert!(server.requests()[1].contains("\r\ncookie: own=1\r\n"), "the operator's own are sent");
}

#[tokio::test]
async fn a_thousand_cookies_make_a_short_request() {
    // H19.
    let cookies: String =
        (0..40).map(|n| format!("Set-Cookie: c{n}={}\r\n", "v".repeat(3000))).collect();
    let answer = format!("HTTP/1.1 200 OK\r\n{cookies}Content-Length: 0\r\n\r\n");
    let server = ScriptedServer::start(vec![vec![Read, send(answer), Read, page(""), Hold]]).await;
    let bench = Bench::new();
    bench.page(&server.url("/")).await;
    bench.page(&server.url("/")).await;
    let request = &server.requests()[1];
    assert!(request.contains("cookie: c0="));
    assert!(request.len() < 16 * 1024, "{}", request.len());
}

#[tokio::test]
async fn targets_that_grow() {
    // R3, U2: told by their length, and not repeated in full.
    for (bytes, expect) in [
        (8_193, Reason::UrlTooLong),
        (65_000, Reason::UrlTooLong),
        (2_000_000, Reason::HeaderTooLarge),
    ] {
        let location = "x".repeat(bytes);
        let answer = format!("HTTP/1.1 302 Found\r\nLocation: /{location}\r\n\r\n");
        let outcome = outcome(vec![Read, send(answer)]).await;
        let FetchOutcome::Failed { why, detail, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(why, expect);
        assert!(detail.len() < 1000);
    }
}

#[tokio::test]
async fn a_step_down_to_clear_text_is_told() {
    // R8: the engine sees the scheme of the target, and neither cookie nor password goes along.
    let answer = "HTTP/1.1 301 Moved\r\nLocation: http://a.test/\r\nContent-Length: 0\r\n\r\n";
    let outcome = outcome(vec![Read, send(answer)]).await;
    let FetchOutcome::Redirected { to, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(to.scheme(), "http");
}
