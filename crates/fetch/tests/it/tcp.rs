//! Connections that are refused, cut, silent or not HTTP at all.

use std::time::Duration;

use socket2::{Domain, Socket, Type};
use telusur_fetch::FetchSettings;
use telusur_model::{FetchOutcome, Reason, Retry};
use tokio::net::TcpListener;

use crate::bench::{Bench, outcome, outcome_on, reason};
use crate::script::{Act, Hold, Read, Reset, ScriptedServer, send, send_endlessly};

#[tokio::test]
async fn a_closed_port_refuses() {
    // T1.
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let fetched = Bench::new().fetch(&format!("http://{closed}/")).await;
    let FetchOutcome::Failed { why: Reason::Refused, retry: Retry::Later, .. } = fetched.outcome
    else {
        panic!("{fetched:?}");
    };
    assert_eq!(fetched.requested_at, None);
}

#[tokio::test]
async fn a_reset_on_accept() {
    // T1.
    let outcome = outcome(vec![Reset]).await;
    // The request may be on its way before the reset arrives, or after.
    assert!(matches!(reason(&outcome), Reason::ConnectionReset | Reason::EmptyReply));
}

#[tokio::test]
async fn a_close_on_accept() {
    // T1.
    let outcome = outcome(vec![]).await;
    assert!(matches!(reason(&outcome), Reason::ConnectionReset | Reason::EmptyReply));
}

#[tokio::test]
async fn a_reset_before_the_answer() {
    // H16.
    assert_eq!(reason(&outcome(vec![Read, Reset]).await), Reason::ConnectionReset);
}

#[tokio::test]
async fn a_close_without_an_answer() {
    // T1.
    assert_eq!(reason(&outcome(vec![Read]).await), Reason::EmptyReply);
}

/// Listens, but never takes a connection, and its queue is full.
fn black_hole() -> (Socket, Vec<Socket>, std::net::SocketAddr) {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let fill = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        let _ = socket.connect(&address);
        socket
    };
    let queued = (0..8).map(|_| fill()).collect();
    (listener, queued, address.as_socket().unwrap())
}

#[tokio::test]
async fn a_black_hole_is_given_up() {
    // T2.
    let (_listener, _queued, address) = black_hole();
    let connect_time_max = Duration::from_millis(50);
    let bench =
        Bench::with_settings(FetchSettings { connect_time_max, ..FetchSettings::default() });
    let fetched = bench.fetch(&format!("http://{address}/")).await;
    assert_eq!(reason(&fetched.outcome), Reason::TimeoutConnect);
}

#[tokio::test]
async fn silence_after_the_request() {
    // T3.
    let first_byte_time_max = Duration::from_millis(50);
    let settings = FetchSettings { first_byte_time_max, ..FetchSettings::default() };
    let outcome = outcome_on(&Bench::with_settings(settings), vec![Read, Hold]).await;
    assert_eq!(reason(&outcome), Reason::TimeoutFirstByte);
}

#[tokio::test]
async fn silence_within_the_head() {
    // H1.
    // Long enough for the first bytes to arrive, also on a busy machine.
    let first_byte_time_max = Duration::from_millis(500);
    let settings = FetchSettings { first_byte_time_max, ..FetchSettings::default() };
    let script = vec![Read, send("HTTP/1.1 200 OK\r\nX-"), Hold];
    let outcome = outcome_on(&Bench::with_settings(settings), script).await;
    assert_eq!(reason(&outcome), Reason::TimeoutBody);
}

#[tokio::test]
async fn silence_within_the_body() {
    // H1.
    let idle_time_max = Duration::from_millis(50);
    let settings = FetchSettings { idle_time_max, ..FetchSettings::default() };
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun";
    let outcome = outcome_on(&Bench::with_settings(settings), vec![Read, send(head), Hold]).await;
    assert_eq!(reason(&outcome), Reason::TimeoutBody);
}

#[tokio::test]
async fn banners_of_other_services() {
    // T4.
    for banner in
        ["SSH-2.0-OpenSSH_9.6\r\n", "220 mail ESMTP\r\n", "-ERR unknown\r\n", "\0\x01\x02"]
    {
        let outcome = outcome(vec![Read, send(banner), Hold]).await;
        assert_eq!(reason(&outcome), Reason::ProtocolError, "{banner:?}");
    }
}

#[tokio::test]
async fn an_echo() {
    // T4.
    let outcome = outcome(vec![Read, send("GET / HTTP/1.1\r\n\r\n"), Hold]).await;
    assert_eq!(reason(&outcome), Reason::ProtocolError);
}

#[tokio::test]
async fn endless_noise() {
    // T4.
    let outcome = outcome(vec![Read, send_endlessly("\x07noise")]).await;
    assert_eq!(reason(&outcome), Reason::ProtocolError);
}

#[tokio::test]
async fn a_dripping_head_ends_at_its_deadline() {
    // H1: each byte comes in time, the head does not.
    let first_byte_time_max = Duration::from_millis(500);
    let settings = FetchSettings { first_byte_time_max, ..FetchSettings::default() };
    let head = send("HTTP/1.1 200 OK\r\n");
    let script = vec![Read, head, Act::Drip(b"X-A: 1\r\n".to_vec())];
    let mut server = ScriptedServer::start(vec![script]).await;
    let fetched = Bench::with_settings(settings).fetch(&server.url("/")).await;
    assert_eq!(reason(&fetched.outcome), Reason::TimeoutBody);
    server.connection_ended().await;
}

#[tokio::test]
async fn a_dripping_body_is_too_slow() {
    // H1: never idle, but far below the least rate.
    let settings = FetchSettings {
        rate_window: Duration::from_millis(200),
        rate_window_bytes_min: 1 << 20,
        ..FetchSettings::default()
    };
    let head = send("HTTP/1.1 200 OK\r\n\r\n");
    let mut server = ScriptedServer::start(vec![vec![Read, head, Act::Drip(b"x".to_vec())]]).await;
    let fetched = Bench::with_settings(settings).fetch(&server.url("/")).await;
    assert_eq!(reason(&fetched.outcome), Reason::TimeoutBody);
    server.connection_ended().await;
}

#[tokio::test]
async fn half_a_body_and_then_a_proper_end() {
    // T3, H5.
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun";
    assert_eq!(reason(&outcome(vec![Read, send(head)]).await), Reason::Truncated);
}
