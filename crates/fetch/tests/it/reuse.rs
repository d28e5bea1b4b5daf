//! Connections that serve several visits, and those that must not.

use std::future::{Future as _, poll_fn};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::Duration;

use telusur_fetch::{Fetch, FetchOrder, FetchProfile, FetchSettings, REQUESTS_PER_VISIT_MAX};
use telusur_model::{FetchOutcome, FetchRules, PageUrl, Reason, Retry};

use crate::bench::{Bench, reason};
use crate::script::{Act, Hold, Meet, Read, ScriptedServer, page, send};

/// Asks twice, of a server whose second connection answers "second".
async fn second_visit(first: Vec<Act>) -> String {
    let scripts = vec![first, vec![Read, page("second"), Hold]];
    let server = ScriptedServer::start(scripts).await;
    let bench = Bench::new();
    bench.page(&server.url("/")).await;
    let page = bench.page(&server.url("/")).await;
    String::from_utf8(page.body.to_vec()).unwrap()
}

#[tokio::test]
async fn a_clean_connection_is_used_again() {
    let body = second_visit(vec![Read, page("a"), Read, page("first"), Hold]).await;
    assert_eq!(body, "first");
}

#[tokio::test]
async fn a_connection_that_the_server_closes_is_not_missed() {
    assert_eq!(second_visit(vec![Read, page("a")]).await, "second");
}

#[tokio::test]
async fn a_connection_that_is_closed_on_the_second_request_is_no_failure() {
    assert_eq!(second_visit(vec![Read, page("a"), Read]).await, "second");
    assert_eq!(second_visit(vec![Read, page("a"), Read, Act::Reset]).await, "second");
}

/// How a server may treat the second request on a connection without having answered it.
fn no_answers() -> Vec<(&'static str, Vec<Act>)> {
    let refused = |status: &str| {
        send(format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"))
    };
    vec![
        ("closed", vec![]),
        ("reset", vec![Act::Reset]),
        ("408", vec![refused("408 Request Timeout")]),
        ("421", vec![refused("421 Misdirected Request")]),
        ("a cut head", vec![send("HTTP/1.1 200 OK\r\nContent-Le")]),
        ("late stray bytes", vec![send("0\r\n\r\nstray"), page("forged"), Hold]),
        ("a head without an end", vec![send("HTTP/1.1 200 OK\r\nX: \x07\r\n\r\n"), Hold]),
    ]
}

/// Asks for 31 pages of a server whose every connection is good for one answer.
async fn thirty_one_pages(on_reuse: Vec<Act>, tells_requests: bool) -> Vec<String> {
    let mut script = vec![Read, page("whole"), Read];
    script.extend(on_reuse);
    let server = ScriptedServer::start(vec![script]).await;
    let bench = Bench::new();
    let mut bodies = Vec::new();
    for number in 0..31 {
        let url = PageUrl::parse(&server.url(&format!("/{number}"))).unwrap();
        let (on_request, mut told) = tokio::sync::mpsc::channel(REQUESTS_PER_VISIT_MAX);
        let order = FetchOrder::new(url, Arc::new(bench.profile.clone()));
        let on_request = tells_requests.then_some(on_request);
        let fetched = bench.fetcher.fetch(FetchOrder { on_request, ..order }).await;
        bodies.push(match fetched.outcome {
            FetchOutcome::Page(page) if page.status == 200 => {
                String::from_utf8(page.body.to_vec()).unwrap()
            }
            other => format!("{other:?}"),
        });
        if tells_requests {
            // The last request that was sent is the one that the delay counts from.
            let mut last_told = None;
            while let Some(at) = told.recv().await {
                last_told = Some(at);
            }
            assert_eq!(last_told, fetched.requested_at);
        }
    }
    bodies
}

#[tokio::test]
async fn a_kept_connection_that_brings_no_answer_costs_no_page() {
    for (case, on_reuse) in no_answers() {
        for tells_requests in [false, true] {
            let bodies = thirty_one_pages(on_reuse.clone(), tells_requests).await;
            assert_eq!(bodies, vec!["whole"; 31], "{case}, requests told: {tells_requests}");
        }
    }
}

#[tokio::test]
async fn the_same_on_a_fresh_connection_is_the_servers_answer() {
    for (case, acts) in no_answers() {
        let script = [vec![Read], acts].concat();
        let server = ScriptedServer::start(vec![script]).await;
        let fetched = Bench::new().fetch(&server.url("/")).await;
        match fetched.outcome {
            FetchOutcome::Page(page) => assert_eq!(page.status.to_string(), case),
            FetchOutcome::Failed { .. } => {}
            other => panic!("{case}: {other:?}"),
        }
        assert_eq!(server.requests().len(), 1, "{case}");
    }
}

/// The server has the request; that it does not answer in time is its own affair.
#[tokio::test]
async fn silence_on_a_kept_connection_is_not_asked_twice() {
    let first_byte_time_max = Duration::from_millis(50);
    let settings = FetchSettings { first_byte_time_max, ..FetchSettings::default() };
    let server = ScriptedServer::start(vec![vec![Read, page("a"), Read, Hold]]).await;
    let bench = Bench::with_settings(settings);
    bench.page(&server.url("/")).await;
    let fetched = bench.fetch(&server.url("/")).await;
    assert_eq!(reason(&fetched.outcome), Reason::TimeoutFirstByte);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_second_failure_counts() {
    let server = ScriptedServer::start(vec![vec![Read, page("a"), Read], vec![Read]]).await;
    let bench = Bench::new();
    bench.page(&server.url("/")).await;
    let fetched = bench.fetch(&server.url("/")).await;
    assert_eq!(reason(&fetched.outcome), Reason::EmptyReply);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_forged_second_answer_is_never_taken() {
    // H13.
    let forged = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\n\
                  Content-Length: 6\r\n\r\nforged";
    assert_eq!(second_visit(vec![Read, send(forged), Hold]).await, "second");
}

#[tokio::test]
async fn stray_bytes_on_an_idle_connection_end_it() {
    // H14.
    let scripts =
        vec![vec![Read, page("a"), Meet, send("!"), Meet, Hold], vec![Read, page("second"), Hold]];
    let server = ScriptedServer::start(scripts).await;
    let bench = Bench::new();
    bench.page(&server.url("/")).await;
    server.meet().await;
    server.meet().await;
    assert_eq!(bench.page(&server.url("/")).await.body, "second");
}

#[tokio::test]
async fn a_forged_answer_that_the_runtime_has_not_seen_is_not_taken_either() {
    // H13.
    let (forge, asked_to_forge) = mpsc::channel();
    let (tell_forged, forged) = mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    // A thread, because the test holds the runtime still while the forged answer comes in.
    let server = std::thread::spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        answer(&mut first, "a");
        asked_to_forge.recv().unwrap();
        first.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged").unwrap();
        tell_forged.send(()).unwrap();
        let (mut second, _) = listener.accept().unwrap();
        answer(&mut second, "second");
    });
    let bench = Bench::new();
    bench.page(&url).await;
    forge.send(()).unwrap();
    forged.recv().unwrap();
    assert_eq!(bench.page(&url).await.body, "second");
    server.join().unwrap();
}

fn answer(stream: &mut TcpStream, body: &str) {
    assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
    let length = body.len();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
}

#[tokio::test]
async fn ambiguous_framing_is_not_reused() {
    // H6.
    let both = "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n\
                1\r\na\r\n0\r\n\r\n";
    let twice = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na";
    for answer in [both, twice] {
        let body = second_visit(vec![Read, send(answer), Read, page("first"), Hold]).await;
        assert_eq!(body, "second", "{answer}");
    }
}

#[tokio::test]
async fn connection_close_is_obeyed() {
    let last = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na";
    assert_eq!(second_visit(vec![Read, send(last), Read, page("first")]).await, "second");
}

#[tokio::test]
async fn unused_connections_are_closed_in_time() {
    let idle_connection_time_max = Duration::from_millis(20);
    let settings = FetchSettings { idle_connection_time_max, ..FetchSettings::default() };
    let mut server = ScriptedServer::start(vec![vec![Read, page("a"), Hold]]).await;
    let bench = Bench::with_settings(settings);
    bench.page(&server.url("/")).await;
    server.connection_ended().await;
}

/// With few file descriptors, idle connections are closed to make room, and visits wait for each other.
#[tokio::test]
async fn no_more_connections_are_open_than_there_may_be() {
    let settings = FetchSettings { connections_max: 2, ..FetchSettings::default() };
    let bench = Arc::new(Bench::with_settings(settings));
    let mut servers = Vec::new();
    for _ in 0..8 {
        servers.push(ScriptedServer::start(vec![vec![Read, page("a"), Hold]]).await);
    }
    let mut visits = tokio::task::JoinSet::new();
    for server in &servers {
        let (bench, url) = (Arc::clone(&bench), server.url("/"));
        visits.spawn(async move { bench.page(&url).await.body });
    }
    assert_eq!(visits.join_all().await, vec!["a"; 8]);
    // Eight were opened; all but the two that may be kept are closed again.
    let mut ended = tokio::task::JoinSet::new();
    for mut server in servers {
        ended.spawn(async move { server.connection_ended().await });
    }
    for _ in 0..6 {
        ended.join_next().await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn no_room_for_a_connection_is_not_the_fault_of_the_site() {
    let room_time_max = Duration::from_millis(100);
    let settings = FetchSettings { connections_max: 1, room_time_max, ..FetchSettings::default() };
    let bench = Bench::with_settings(settings);
    let busy = ScriptedServer::start(vec![vec![Read, Meet, Hold]]).await;
    let other = ScriptedServer::start(vec![vec![Read, page("a")]]).await;
    let patient = FetchRules { allow_private: vec!["127.0.0.1".to_owned()], ..Default::default() };
    let patient = Arc::new(FetchProfile::new(&patient, 100, Vec::new()).unwrap());
    let held =
        bench.fetcher.fetch(FetchOrder::new(PageUrl::parse(&busy.url("/")).unwrap(), patient));
    tokio::select! {
        biased;
        fetched = held => panic!("{fetched:?}"),
        fetched = async {
            busy.meet().await;
            bench.fetch(&other.url("/")).await
        } => {
            let FetchOutcome::Failed { why, retry, .. } = fetched.outcome else {
                panic!("{fetched:?}");
            };
            assert_eq!((why, retry), (Reason::LocalTrouble, Retry::NotCounted));
            assert_eq!(fetched.requested_at, None);
        }
    }
}

/// Time goes by only where the test says so.
#[tokio::test(start_paused = true)]
async fn waiting_for_room_is_no_part_of_the_time_that_a_site_has() {
    // The runtime's clock does not run ahead by itself while a blocking task is under way.
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let still = tokio::task::spawn_blocking(move || ended.recv());
    let settings = FetchSettings { connections_max: 1, ..FetchSettings::default() };
    let rules = FetchRules { timeout_ms: 1000, ..FetchRules::default() };
    let bench = Bench::with(settings, rules);
    let busy = ScriptedServer::start(vec![vec![Read, Meet, Meet, page("a"), Hold]]).await;
    let other = ScriptedServer::start(vec![vec![Read, page("b"), Hold]]).await;
    let patient = FetchRules { allow_private: vec!["127.0.0.1".to_owned()], ..Default::default() };
    let patient = Arc::new(FetchProfile::new(&patient, 100, Vec::new()).unwrap());
    let held =
        bench.fetcher.fetch(FetchOrder::new(PageUrl::parse(&busy.url("/")).unwrap(), patient));
    let waiting = async {
        busy.meet().await;
        let url = other.url("/");
        let mut visit = pin!(bench.fetch(&url));
        // One look at it brings it to where it waits for room.
        assert!(poll_fn(|cx| Poll::Ready(visit.as_mut().poll(cx).is_pending())).await);
        let passed = Duration::from_secs(5);
        tokio::time::advance(passed).await;
        bench.clock.advance(passed);
        busy.meet().await;
        visit.await
    };
    let (_, fetched) = tokio::join!(held, waiting);
    let FetchOutcome::Page(answer) = &fetched.outcome else { panic!("{fetched:?}") };
    assert_eq!((&answer.body[..], fetched.took_ms), (&b"b"[..], 0));
    end.send(()).unwrap();
    still.await.unwrap().unwrap();
}

#[tokio::test]
async fn another_crawl_does_not_inherit_a_connection_that_its_guard_forbids() {
    let server = ScriptedServer::start(vec![vec![Read, page("a"), Read, page("b"), Hold]]).await;
    let mut bench = Bench::new();
    bench.page(&server.url("/")).await;
    let rules = FetchRules { allow_private: vec!["10.0.0.0/8".to_owned()], ..Default::default() };
    bench.profile = telusur_fetch::FetchProfile::new(&rules, 100, Vec::new()).unwrap();
    let fetched = bench.fetch(&server.url("/")).await;
    assert_eq!(reason(&fetched.outcome), Reason::BlockedAddress);
}
