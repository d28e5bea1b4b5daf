//! How much of a bad answer is read before it is given up.

use std::sync::Arc;

use telusur_model::{FetchRules, PageUrl};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{Duration, Instant, sleep_until};

use super::*;
use crate::connector::{Connector, Road, Target};
use crate::profile::FetchProfile;
use crate::settings::FetchSettings;

/// Asks a server that begins like this and goes on like that for ever.
async fn check(begin: &'static str, again: &'static str, expect: Reason, received_max: u64) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
        stream.write_all(begin.as_bytes()).await.unwrap();
        let again = again.repeat(1000);
        while stream.write_all(again.as_bytes()).await.is_ok() {}
    });
    let rules = FetchRules { allow_private: vec!["127.0.0.1".to_owned()], ..FetchRules::default() };
    let profile = FetchProfile::new(&rules, 1 << 20, Vec::new()).unwrap();
    let url = PageUrl::parse(&format!("http://{address}/")).unwrap();
    let checked = profile.guard.check("127.0.0.1", address).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let settings = FetchSettings::default();
    let connector = Connector::new(&settings);
    let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    let target = Target { url: &url, profile: &profile, http: profile.http, addresses: &[checked] };
    let opened = connector.open(&target, &Road::Direct, place, deadline).await;
    let Ok(mut connection) = opened else { panic!("the server takes connections") };
    let mut request = Request::new(Empty::new());
    request.headers_mut().insert("host", "a.test".parse().unwrap());
    let head_bytes_max = u64::try_from(settings.head_bytes_max).unwrap();
    let alarm = std::pin::pin!(sleep_until(deadline));
    let failure = connection.ask(request, head_bytes_max, alarm).await.unwrap_err();
    assert_eq!(failure.why, expect, "{begin:?}");
    assert!(connection.received() <= received_max, "{begin:?}: {}", connection.received());
    drop(connection);
    server.await.unwrap();
}

#[tokio::test]
async fn noise_is_read_no_further_than_needed() {
    // T4.
    check("", "\x07noise", Reason::ProtocolError, 64 * 1024).await;
    check("SSH-2.0-OpenSSH\r\n", "x", Reason::ProtocolError, 64 * 1024).await;
}

#[tokio::test]
async fn an_endless_head_is_read_up_to_its_limit() {
    // H7.
    check("HTTP/1.1 200 OK\r\n", "X-A: 1\r\n", Reason::HeaderTooLarge, 512 * 1024).await;
    check("HTTP/1.1 200 OK\r\nX-A: ", "x", Reason::HeaderTooLarge, 512 * 1024).await;
    // Each of these heads is complete and forgotten before the next one is read.
    let hints = "HTTP/1.1 103 Early Hints\r\n\r\n";
    check("", hints, Reason::HeaderTooLarge, 1024 * 1024).await;
}
