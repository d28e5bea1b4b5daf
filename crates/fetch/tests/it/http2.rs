//! Servers that speak HTTP/2, well or badly.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use http::Response;
use telusur_fetch::FetchSettings;
use telusur_model::{FetchOutcome, FetchRules, HttpVersion, Reason, Retry};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::authority::{Authority, certificate_for};
use crate::bench::{Bench, reason};

/// What the server does with one request.
#[derive(Clone)]
enum Reply {
    Page(&'static str),
    /// A page with this many headers of this many bytes.
    Headers {
        count: usize,
        bytes: usize,
    },
    /// Sends until the stream is reset.
    EndlessBody,
    /// Never answers.
    Silence,
    /// Begins a body and never ends it.
    HalfBody,
    ResetWithinBody,
    ResetAtOnce(h2::Reason),
    /// An answer with nothing but this status.
    Status(u16),
    /// A body in more very small frames than h2 takes. The only reply of its connection.
    FinelyCutBody,
    /// Ends the connection within a body.
    CloseWithinBody,
    /// Answers, and says that it takes no more requests on this connection.
    LastPage(&'static str),
}

use Reply::{
    CloseWithinBody, EndlessBody, FinelyCutBody, HalfBody, Headers, LastPage, Page, ResetAtOnce,
    ResetWithinBody, Silence, Status,
};

/// Pieces of one byte each: h2 takes some hundreds before it calls them too many.
const FINE_PIECES: usize = 20_000;

/// Where a server takes connections, of clients that speak HTTP/2.
struct Door {
    authority: Authority,
    acceptor: TlsAcceptor,
    listener: TcpListener,
    port: u16,
}

impl Door {
    async fn open() -> Self {
        Self::offering(&[b"h2"]).await
    }

    async fn offering(versions: &[&[u8]]) -> Self {
        let authority = Authority::trusted();
        let mut config = authority.sign(&certificate_for("secure.test"));
        config.alpn_protocols = versions.iter().map(|version| version.to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        Self { authority, acceptor, listener, port }
    }
}

/// A server with a list of replies for each connection; the last list, and the last reply of each, go
/// on for ever.
struct Http2Server {
    port: u16,
    connections: Arc<AtomicUsize>,
    requests: mpsc::UnboundedReceiver<http::request::Parts>,
    ended: mpsc::UnboundedReceiver<()>,
    authority: Authority,
}

impl Http2Server {
    async fn start(replies: Vec<Vec<Reply>>) -> Self {
        Self::at(Door::open().await, replies)
    }

    fn at(door: Door, replies: Vec<Vec<Reply>>) -> Self {
        let Door { authority, acceptor, listener, port } = door;
        let connections = Arc::new(AtomicUsize::new(0));
        let (tell_request, requests) = mpsc::unbounded_channel();
        let (tell_end, ended) = mpsc::unbounded_channel();
        let accepted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = accepted.fetch_add(1, Ordering::Relaxed);
                let replies = replies[number.min(replies.len() - 1)].clone();
                let (acceptor, tell_request) = (acceptor.clone(), tell_request.clone());
                let tell_end = tell_end.clone();
                tokio::spawn(async move {
                    let stream = acceptor.accept(stream).await.unwrap();
                    match stream.get_ref().1.alpn_protocol() {
                        Some(b"h2") if matches!(replies[..], [FinelyCutBody]) => {
                            serve_finely_cut(stream, tell_request).await;
                        }
                        Some(b"h2") => serve(stream, replies, tell_request).await,
                        _ => serve_http1(stream).await,
                    }
                    let _ = tell_end.send(());
                });
            }
        });
        Self { port, connections, requests, ended, authority }
    }

    fn bench(&self) -> Bench {
        self.authority.bench()
    }

    fn url(&self) -> String {
        format!("https://secure.test:{}/a?b=c", self.port)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

type Served = Connection<TlsStream<TcpStream>, Bytes>;

async fn serve(
    stream: TlsStream<TcpStream>,
    replies: Vec<Reply>,
    tell_request: mpsc::UnboundedSender<http::request::Parts>,
) {
    let mut connection: Served = h2::server::handshake(stream).await.unwrap();
    let mut number = 0;
    while let Some(Ok((request, respond))) = connection.accept().await {
        let _ = tell_request.send(request.into_parts().0);
        let reply = replies[number.min(replies.len() - 1)].clone();
        number += 1;
        match reply {
            LastPage(_) => connection.graceful_shutdown(),
            CloseWithinBody => {
                tokio::spawn(answer(reply, respond));
                // Long enough for head and body to be on their way.
                for _ in 0..20 {
                    tokio::select! {
                        biased;
                        _ = connection.accept() => {}
                        () = tokio::task::yield_now() => {}
                    }
                }
                return;
            }
            _ => {}
        }
        tokio::spawn(answer(reply, respond));
    }
}

/// Reads one request and sends the whole answer in one piece: the reader has hundreds of frames before it
/// can take the first of them out, however quick it is.
async fn serve_finely_cut(
    stream: TlsStream<TcpStream>,
    tell_request: mpsc::UnboundedSender<http::request::Parts>,
) {
    const PREFACE_BYTES: usize = 24;
    const HEADERS: u8 = 1;
    let (mut from, mut to) = tokio::io::split(stream);
    from.read_exact(&mut [0; PREFACE_BYTES]).await.unwrap();
    let mut head = [0; 9];
    while head[3] != HEADERS {
        from.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        from.read_exact(&mut vec![0; length as usize]).await.unwrap();
    }
    let _ = tell_request.send(http::Request::new(()).into_parts().0);
    let mut answer = [settings(), frame(HEADERS, 4, 1, &[0x88])].concat();
    answer.extend(frame(0, 0, 1, b"x").repeat(FINE_PIECES));
    answer.extend(frame(0, 1, 1, b""));
    // What the client says is read, so that it never waits for us.
    let reading = async { while from.read(&mut [0; 4096]).await.is_ok_and(|n| n > 0) {} };
    let writing = async {
        // The client leaves in the middle of it.
        let _ = to.write_all(&answer).await;
        let _ = to.flush().await;
    };
    tokio::join!(reading, writing);
}

/// Answers everybody alike.
async fn serve_http1(mut stream: TlsStream<TcpStream>) {
    while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {
        let page = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nin 1.1!";
        stream.write_all(page).await.unwrap();
    }
}

async fn answer(reply: Reply, mut respond: SendResponse<Bytes>) {
    let mut head = Response::new(());
    match reply {
        Page(body) | LastPage(body) => {
            let mut stream = respond.send_response(head, false).unwrap();
            stream.send_data(Bytes::from(body), true).unwrap();
        }
        Headers { count, bytes } => {
            for number in 0..count {
                let name = http::HeaderName::try_from(format!("x-{number}")).unwrap();
                head.headers_mut().insert(name, "v".repeat(bytes).try_into().unwrap());
            }
            let _ = respond.send_response(head, true);
        }
        EndlessBody => {
            let mut stream = respond.send_response(head, false).unwrap();
            loop {
                stream.reserve_capacity(16_384);
                let room = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
                let Some(Ok(room)) = room else { return };
                if stream.send_data(Bytes::from(vec![b'x'; room]), false).is_err() {
                    return;
                }
            }
        }
        Silence => std::future::pending().await,
        HalfBody | CloseWithinBody => {
            let mut stream = respond.send_response(head, false).unwrap();
            stream.send_data(Bytes::from("begun"), false).unwrap();
            std::future::pending().await
        }
        ResetWithinBody => {
            let mut stream = respond.send_response(head, false).unwrap();
            stream.send_data(Bytes::from("begun"), false).unwrap();
            tokio::task::yield_now().await;
            stream.send_reset(h2::Reason::INTERNAL_ERROR);
        }
        ResetAtOnce(why) => respond.send_reset(why),
        Status(status) => {
            *head.status_mut() = status.try_into().unwrap();
            respond.send_response(head, true).unwrap();
        }
        FinelyCutBody => unreachable!("written without a library"),
    }
}

#[tokio::test]
async fn a_page_and_another_on_the_same_connection() {
    let mut server = Http2Server::start(vec![vec![Page("Halo"), Page("lagi")]]).await;
    let bench = server.bench();
    assert_eq!(bench.page(&server.url()).await.body, "Halo");
    assert_eq!(bench.page(&server.url()).await.body, "lagi");
    assert_eq!(server.connections(), 1);
    let request = server.requests.recv().await.unwrap();
    assert_eq!(request.uri.to_string(), server.url());
    assert_eq!(request.headers.get("host"), None);
    assert_eq!(request.headers["user-agent"], "Telusur/0.1.0");
    assert_eq!(request.headers["accept-encoding"], "gzip, br, zstd, deflate");
}

#[tokio::test]
async fn visits_at_the_same_time_share_a_connection() {
    let server = Http2Server::start(vec![vec![Page("Halo")]]).await;
    let bench = server.bench();
    bench.page(&server.url()).await;
    let url = server.url();
    let (first, second) = tokio::join!(bench.page(&url), bench.page(&url));
    assert_eq!((first.body, second.body), ("Halo".into(), "Halo".into()));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn one_slow_answer_does_not_hold_up_another() {
    let server = Http2Server::start(vec![vec![Page("first"), Silence, Page("Halo")]]).await;
    let bench = server.bench();
    bench.page(&server.url()).await;
    let url = server.url();
    let slow = bench.fetch(&url);
    tokio::select! {
        biased;
        fetched = slow => panic!("{fetched:?}"),
        page = async {
            // The slow one has to be on its way first.
            while server.requests.len() < 2 {
                tokio::task::yield_now().await;
            }
            bench.page(&url).await
        } => assert_eq!(page.body, "Halo"),
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_crowd_does_not_share_one_connection() {
    // Visits on the first connection get no answer, all others are served.
    let server = Http2Server::start(vec![vec![Page("a"), Silence], vec![Page("b")]]).await;
    let first_byte_time_max = Duration::from_millis(500);
    let settings = FetchSettings { first_byte_time_max, ..FetchSettings::default() };
    let bench = Arc::new(server.authority.bench_with(settings, FetchRules::default()));
    bench.page(&server.url()).await;
    let mut crowd = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let (bench, url) = (Arc::clone(&bench), server.url());
        crowd.spawn(async move { bench.fetch(&url).await.outcome });
    }
    let outcomes = crowd.join_all().await;
    let served = outcomes.iter().filter(|outcome| matches!(outcome, FetchOutcome::Page(_)));
    assert!((8..40).contains(&served.count()), "{outcomes:?}");
}

#[tokio::test]
async fn the_version_can_be_chosen() {
    let http = |http| FetchRules { http, ..FetchRules::default() };
    let server = Http2Server::start(vec![vec![Page("Halo")]]).await;
    let bench = server.authority.bench_with(FetchSettings::default(), http(HttpVersion::One));
    // The server speaks nothing else, and says so in the handshake.
    assert_eq!(reason(&bench.fetch(&server.url()).await.outcome), Reason::TlsError);
    let bench = server.authority.bench_with(FetchSettings::default(), http(HttpVersion::Two));
    assert_eq!(bench.page(&server.url()).await.body, "Halo");
}

#[tokio::test]
async fn a_server_without_http2_when_nothing_else_will_do() {
    let authority = Authority::trusted();
    let acceptor = TlsAcceptor::from(Arc::new(authority.sign(&certificate_for("secure.test"))));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(stream).await.unwrap();
        let _ = stream.read(&mut [0; 100]).await;
    });
    let rules = FetchRules { http: HttpVersion::Two, ..FetchRules::default() };
    let bench = authority.bench_with(FetchSettings::default(), rules);
    let fetched = bench.fetch(&format!("https://secure.test:{port}/")).await;
    assert_eq!(reason(&fetched.outcome), Reason::ProtocolError);
    assert_eq!(fetched.requested_at, None);
}

#[tokio::test]
async fn a_connection_that_the_server_ends_is_not_missed() {
    for first in [
        vec![LastPage("a"), Page("never")],
        vec![Page("a"), ResetAtOnce(h2::Reason::REFUSED_STREAM)],
        vec![Page("a"), ResetAtOnce(h2::Reason::INTERNAL_ERROR)],
        vec![Page("a"), Status(408)],
        vec![Page("a"), Status(421)],
    ] {
        let server = Http2Server::start(vec![first, vec![Page("second")]]).await;
        let bench = server.bench();
        assert_eq!(bench.page(&server.url()).await.body, "a");
        assert_eq!(bench.page(&server.url()).await.body, "second");
        assert_eq!(server.connections(), 2);
    }
}

#[tokio::test]
async fn an_endless_body_is_cut() {
    let mut server = Http2Server::start(vec![vec![EndlessBody]]).await;
    let bench = server.bench();
    for _ in 0..2 {
        let page = bench.page(&server.url()).await;
        assert_eq!((page.body.len(), page.truncated), (1 << 20, true));
    }
    // Cutting one answer does not cost the connection.
    assert_eq!(server.connections(), 1);
    drop(bench);
    server.ended.recv().await.unwrap();
}

#[tokio::test]
async fn answers_that_break_off() {
    for (reply, expect) in [
        (ResetWithinBody, Reason::ConnectionReset),
        (ResetAtOnce(h2::Reason::INTERNAL_ERROR), Reason::ConnectionReset),
        (CloseWithinBody, Reason::Truncated),
    ] {
        let server = Http2Server::start(vec![vec![reply]]).await;
        let outcome = server.bench().fetch(&server.url()).await.outcome;
        assert_eq!(reason(&outcome), expect, "{outcome:?}");
    }
}

/// Of the host, the first page is asked for twice; all others go out in HTTP/1.1 at once.
#[tokio::test]
async fn what_cannot_be_answered_in_http2_is_asked_again_in_http1() {
    let replies = [
        vec![ResetAtOnce(h2::Reason::HTTP_1_1_REQUIRED)],
        vec![Page("a"), ResetAtOnce(h2::Reason::HTTP_1_1_REQUIRED)],
        vec![FinelyCutBody],
    ];
    for replies in replies {
        let pages_in_http2 = replies.len() - 1;
        let door = Door::offering(&[b"h2", b"http/1.1"]).await;
        let server = Http2Server::at(door, vec![replies]);
        let bench = server.bench();
        for _ in 0..pages_in_http2 {
            assert_eq!(bench.page(&server.url()).await.body, "a");
        }
        for _ in 0..3 {
            assert_eq!(bench.page(&server.url()).await.body, "in 1.1!");
        }
        assert_eq!(server.requests.len(), pages_in_http2 + 1);
        assert_eq!(server.connections(), 2);
    }
}

#[tokio::test]
async fn a_crawl_that_allows_http2_only_is_told_what_the_server_wants() {
    let rules = FetchRules { http: HttpVersion::Two, ..FetchRules::default() };
    for reply in [ResetAtOnce(h2::Reason::HTTP_1_1_REQUIRED), FinelyCutBody] {
        let door = Door::offering(&[b"h2", b"http/1.1"]).await;
        let server = Http2Server::at(door, vec![vec![reply]]);
        let bench = server.authority.bench_with(FetchSettings::default(), rules.clone());
        let outcome = bench.fetch(&server.url()).await.outcome;
        assert_eq!(reason(&outcome), Reason::ProtocolError, "{outcome:?}");
    }
}

#[tokio::test]
async fn answers_that_do_not_come() {
    let short = Duration::from_millis(50);
    for (reply, settings, expect) in [
        (
            Silence,
            FetchSettings { first_byte_time_max: short, ..FetchSettings::default() },
            Reason::TimeoutFirstByte,
        ),
        (
            HalfBody,
            FetchSettings { idle_time_max: short, ..FetchSettings::default() },
            Reason::TimeoutBody,
        ),
    ] {
        let mut server = Http2Server::start(vec![vec![reply]]).await;
        let bench = server.authority.bench_with(settings, FetchRules::default());
        assert_eq!(reason(&bench.fetch(&server.url()).await.outcome), expect);
        // A connection that failed a visit is not kept for the next.
        server.ended.recv().await.unwrap();
    }
}

#[tokio::test]
async fn heads_that_are_too_large() {
    for (count, bytes) in [(300, 1), (20, 10_000), (10, 60_000), (100, 60_000)] {
        let server = Http2Server::start(vec![vec![Headers { count, bytes }]]).await;
        let outcome = server.bench().fetch(&server.url()).await.outcome;
        assert_eq!(reason(&outcome), Reason::HeaderTooLarge, "{count} of {bytes} bytes");
    }
    let server = Http2Server::start(vec![vec![Headers { count: 200, bytes: 100 }]]).await;
    assert_eq!(server.bench().page(&server.url()).await.headers.len(), 200);
}

#[tokio::test]
async fn a_connection_ends_with_its_fetcher() {
    let mut server = Http2Server::start(vec![vec![Page("Halo")]]).await;
    let bench = server.bench();
    bench.page(&server.url()).await;
    assert!(server.ended.try_recv().is_err());
    drop(bench);
    server.ended.recv().await.unwrap();
}

#[tokio::test]
async fn an_unused_connection_is_closed_in_time() {
    let mut server = Http2Server::start(vec![vec![Page("Halo")]]).await;
    let idle_connection_time_max = Duration::from_millis(20);
    let settings = FetchSettings { idle_connection_time_max, ..FetchSettings::default() };
    let bench = server.authority.bench_with(settings, FetchRules::default());
    bench.page(&server.url()).await;
    server.ended.recv().await.unwrap();
}

/// A server without any library: reads our greeting and request, then sends these bytes, and then
/// the others again and again until the client is gone.
async fn raw_server(first: Vec<u8>, again: Vec<u8>) -> (Authority, u16, mpsc::Receiver<()>) {
    let Door { authority, acceptor, listener, port } = Door::open().await;
    let (tell_end, ended) = mpsc::channel(1);
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (mut from, mut to) = tokio::io::split(acceptor.accept(stream).await.unwrap());
        // What the client says is read, so that it never waits for us.
        tokio::spawn(async move { while from.read(&mut [0; 4096]).await.is_ok_and(|n| n > 0) {} });
        to.write_all(&first).await.unwrap();
        to.flush().await.unwrap();
        while !again.is_empty() && to.write_all(&again).await.is_ok() {}
        tell_end.send(()).await.unwrap();
        std::future::pending::<()>().await;
    });
    (authority, port, ended)
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

fn settings() -> Vec<u8> {
    frame(4, 0, 0, &[])
}

/// Status 200, no body.
fn empty_page() -> Vec<u8> {
    frame(1, 5, 1, &[0x88])
}

fn ping() -> Vec<u8> {
    frame(6, 0, 0, &[0; 8])
}

#[tokio::test]
async fn what_is_not_http2_at_all() {
    let push = frame(5, 4, 1, &[0, 0, 0, 2, 0x82, 0x84, 0x86]);
    for answer in [
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_vec(),
        [settings(), frame(1, 5, 1, b"\xff\xff\xff\xff\xff\xff")].concat(),
        [settings(), frame(0, 0, 1, b"a body without a head")].concat(),
        [settings(), push].concat(),
    ] {
        let (authority, port, _ended) = raw_server(answer.clone(), Vec::new()).await;
        let fetched = authority.bench().fetch(&format!("https://secure.test:{port}/")).await;
        assert_eq!(reason(&fetched.outcome), Reason::ProtocolError, "{answer:?}");
    }
}

#[tokio::test]
async fn a_flood_on_an_unused_connection_ends_it() {
    let unknown = frame(0xfa, 0, 0, &[0; 16_000]);
    for flood in [unknown, ping().repeat(1000)] {
        let (authority, port, mut ended) =
            raw_server([settings(), empty_page()].concat(), flood).await;
        let bench = authority.bench();
        assert_eq!(bench.page(&format!("https://secure.test:{port}/")).await.status, 200);
        ended.recv().await.unwrap();
    }
}

#[tokio::test]
async fn a_flood_of_frames_that_are_no_answer_is_read_no_further_than_a_head() {
    let priority = frame(2, 0, 3, &[0, 0, 0, 0, 16]);
    let window_update = frame(8, 0, 0, &[0, 0, 0, 1]);
    let unknown = frame(0xfa, 0, 0, &[0; 100]);
    let head = frame(1, 4, 1, &[0x88]);
    let half_a_page = [settings(), head, frame(0, 0, 1, b"begun")].concat();
    for first in [settings(), half_a_page] {
        for again in [priority.clone(), window_update.clone(), unknown.clone(), ping()] {
            let (authority, port, mut ended) = raw_server(first.clone(), again.repeat(100)).await;
            let fetched = authority.bench().fetch(&format!("https://secure.test:{port}/")).await;
            let FetchOutcome::Failed { why, retry, detail } = fetched.outcome else {
                panic!("{fetched:?}");
            };
            // Asked again it would only cost the same again.
            assert_eq!((why, retry), (Reason::HeaderTooLarge, Retry::Never), "{detail}");
            ended.recv().await.unwrap();
        }
    }
}

/// A server may send some of them for every page, however many pages a connection serves.
#[tokio::test]
async fn frames_that_need_no_answer_do_no_harm_by_themselves() {
    let some = frame(0xfa, 0, 0, &[0; 16_000]).repeat(10);
    let (authority, port, _ended) =
        raw_server([settings(), some, empty_page()].concat(), Vec::new()).await;
    assert_eq!(authority.bench().page(&format!("https://secure.test:{port}/")).await.status, 200);
}
