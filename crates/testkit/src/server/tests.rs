use super::*;
use crate::clock::TokioClock;
use crate::fake_web::FakeWebSpec;
use crate::test_client::Client;

async fn served(spec: &str, log: Option<Arc<RequestLog>>) -> ServedWeb {
    let spec: FakeWebSpec = spec.parse().unwrap();
    serve(&FakeWeb::new(spec).unwrap(), log).await.unwrap()
}

#[tokio::test]
async fn the_served_web_is_the_web_in_memory() {
    let served = served("hosts=3,pages=30,dead-links=0.1,redirects=0.2", None).await;
    let web = served.web();
    for host in 0..3 {
        let name = web.host_name(host);
        let mut client = Client::connect(&name).await;
        let pages = (0..10).map(|page| format!("/p/{page}"));
        for target in pages.chain(["/", "/old/3", "/gone/1", "/robots.txt"].map(str::to_owned)) {
            let expect = web.answer(host, &target);
            let reply = client.get(&name, &target).await.unwrap();
            assert_eq!(reply.status, expect.status, "{target}");
            assert_eq!(reply.body, expect.body, "{target}");
            for (header, value) in &expect.headers {
                assert!(
                    reply.head.contains(&format!("\r\n{header}: {value}\r\n")),
                    "{}",
                    reply.head
                );
            }
        }
    }
    served.stop().await;
}

#[tokio::test]
async fn a_reset_is_a_reset_and_passes() {
    let served = served("hosts=1,pages=3,reset-once=1", None).await;
    let name = served.web().host_name(0);
    let cut = Client::connect(&name).await.get(&name, "/p/1").await.unwrap_err();
    assert_eq!(cut.kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(Client::connect(&name).await.get(&name, "/p/1").await.unwrap().status, 200);
}

#[tokio::test]
async fn the_host_header_decides() {
    let served = served("hosts=2,pages=10", None).await;
    let web = served.web();
    let mut client = Client::connect(&web.host_name(0)).await;
    let other = client.get(&web.host_name(1), "/p/2").await.unwrap();
    assert_eq!(other.body, web.answer(1, "/p/2").body);
    assert_eq!(client.get("elsewhere.test", "/p/2").await.unwrap().status, 421);
}

#[tokio::test]
async fn requests_may_be_pipelined_or_come_in_pieces() {
    let served = served("hosts=1,pages=10,bytes=0", None).await;
    let name = served.web().host_name(0);
    let mut client = Client::connect(&name).await;
    let request = |page| format!("GET /p/{page} HTTP/1.1\r\nhost:{name}\r\n\r\n");
    let both = request(1) + &request(2);
    let (first, rest) = both.split_at(9);
    client.send(first).await.unwrap();
    tokio::task::yield_now().await;
    client.send(rest).await.unwrap();
    assert_eq!(client.reply().await.unwrap().body, served.web().answer(0, "/p/1").body);
    assert_eq!(client.reply().await.unwrap().body, served.web().answer(0, "/p/2").body);
}

#[tokio::test]
async fn a_client_may_ask_to_close() {
    let served = served("hosts=1,pages=1,bytes=0", None).await;
    let name = served.web().host_name(0);
    let mut client = Client::connect(&name).await;
    client
        .send(&format!("GET /p/0 HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n"))
        .await
        .unwrap();
    assert!(client.reply().await.unwrap().head.contains("connection: close"));
    assert_eq!(client.reply().await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn nonsense_is_refused() {
    let served = served("hosts=1,pages=1,bytes=0", None).await;
    let name = served.web().host_name(0);
    for (text, status) in [
        ("hello\r\n\r\n", 400),
        ("GET x HTTP/1.1\r\n\r\n", 400),
        ("PUT /p/0 HTTP/1.1\r\n\r\n", 405),
    ] {
        let mut client = Client::connect(&name).await;
        client.send(text).await.unwrap();
        assert_eq!(client.reply().await.unwrap().status, status, "{text}");
    }
}

#[tokio::test]
async fn requests_are_logged_if_wanted() {
    let log = Arc::new(RequestLog::new(Arc::new(TokioClock::new())));
    let served = served("hosts=1,pages=10,bytes=0", Some(log.clone())).await;
    let name = served.web().host_name(0);
    let mut client = Client::connect(&name).await;
    for target in ["/p/1", "/p/1", "/nowhere"] {
        client.get(&name, target).await.unwrap();
    }
    assert_eq!(log.counts()[&format!("{name}/p/1")], 2);
    assert_eq!(log.counts()[&format!("{name}/nowhere")], 1);
    assert!(log.requests().iter().all(|request| request.ended_at.is_some()));
}

#[tokio::test]
async fn stopping_closes_idle_connections_and_the_port() {
    let served = served("hosts=2,pages=10,bytes=0", None).await;
    let name = served.web().host_name(1);
    let mut client = Client::connect(&name).await;
    client.get(&name, "/p/1").await.unwrap();
    served.stop().await;
    assert!(client.get(&name, "/p/2").await.is_err());
    let port = name.split_once(':').unwrap().1.parse().unwrap();
    TcpListener::bind(SocketAddrV4::new(host_address(1), port)).await.unwrap();
}

#[tokio::test]
async fn stopping_lets_an_answer_under_way_arrive() {
    let log = Arc::new(RequestLog::new(Arc::new(TokioClock::new())));
    let served = served("hosts=1,pages=1,bytes=0,delay=30", Some(log.clone())).await;
    let name = served.web().host_name(0);
    let mut client = Client::connect(&name).await;
    client.send(&format!("GET /p/0 HTTP/1.1\r\nHost: {name}\r\n\r\n")).await.unwrap();
    while log.is_empty() {
        tokio::task::yield_now().await;
    }
    let (reply, ()) = tokio::join!(client.reply(), served.stop());
    assert_eq!(reply.unwrap().status, 200);
}
