//! Questions about a data directory.

use std::sync::Arc;

use telusur_engine::control::{Control, Reply, Request};
use telusur_model::Reason;
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, ask, page, site_crawl};

fn site(path: &str) -> FakeAnswer {
    match path {
        "/" => page(&["/a", "/missing", "http://elsewhere.test/", "mailto:me@site.test"]),
        "/a" => page(&["/"]),
        _ => FakeAnswer::not_found(),
    }
}

async fn crawled() -> (Bench, std::sync::Arc<telusur_store_embedded::EmbeddedStore>) {
    let bench = Bench::of_site(site);
    let mut crawl = site_crawl();
    crawl.name = Some("mine".into());
    crawl.scope.kind = telusur_model::ScopeKind::Domain;
    let (store, _) = bench.crawl(crawl).await;
    (bench, store)
}

#[tokio::test]
async fn a_crawl_is_found_by_id_alias_name_and_last() {
    let (_bench, store) = crawled().await;
    let id = |text: &str| {
        let lines = ask(&store, &Request::Crawl { crawl: text.into() });
        match &lines[0] {
            Reply::Crawl(shown) => Some(shown.record.crawl.id.to_string()),
            _ => None,
        }
    };
    let by_alias = id("crawl_1").unwrap();
    assert_eq!(id(&by_alias), Some(by_alias.clone()));
    assert_eq!(id("mine"), Some(by_alias.clone()));
    assert_eq!(id("last"), Some(by_alias));
    assert_eq!(id("crawl_2"), None);
}

#[tokio::test]
async fn errors_and_skipped_urls_are_listed() {
    let (_bench, store) = crawled().await;
    let errors = ask(&store, &Request::Errors { crawl: "last".into() });
    assert!(matches!(&errors[0], Reply::ErrorPage(page) if page.status == 404), "{errors:?}");
    assert_eq!(errors.len(), 2);
    let skipped = Request::Skipped { crawl: "last".into(), reason: Some("out_of_scope".into()) };
    let skipped = ask(&store, &skipped);
    assert!(matches!(&skipped[0], Reply::Url(url) if url.url == "http://elsewhere.test/"));
    let other = Request::Skipped { crawl: "last".into(), reason: Some("excluded".into()) };
    assert_eq!(ask(&store, &other), [Reply::End]);
    let wrong = Request::Skipped { crawl: "last".into(), reason: Some("no_reason".into()) };
    assert!(matches!(&ask(&store, &wrong)[0], Reply::Error { .. }));
}

#[tokio::test]
async fn every_url_has_an_answer_to_why() {
    let (_bench, store) = crawled().await;
    let explain = |url: &str| {
        let lines = ask(&store, &Request::Explain { url: url.into(), crawl: None });
        match lines.into_iter().next() {
            Some(Reply::Explanation(explanation)) => *explanation,
            other => panic!("{other:?}"),
        }
    };
    let a = explain("http://site.test/a?utm_source=x");
    assert_eq!(a.page.unwrap().referrer.as_deref(), Some("http://site.test/"));
    assert!(a.judged.admitted);
    let elsewhere = explain("http://elsewhere.test/");
    assert_eq!(elsewhere.judged.reason, Some(Reason::OutOfScope));
    assert_eq!(elsewhere.known.unwrap().referrer.as_deref(), Some("http://site.test/"));
    let never_seen = explain("http://site.test/never");
    assert!(never_seen.known.is_none() && never_seen.judged.admitted);
}

/// Sixteen silent connections once held up every command.
#[tokio::test(start_paused = true)]
async fn silent_clients_hold_nobody_up() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let dir = tempfile::tempdir().unwrap();
    let store = telusur_store_embedded::open(&dir.path().join("data")).unwrap();
    let socket = dir.path().join("control.sock");
    let guard =
        telusur_engine::control::serve(&socket, Control::of_store(Arc::new(store))).unwrap();
    let connect = || tokio::net::UnixStream::connect(&socket);
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(connect().await.unwrap());
    }
    let mut client = connect().await.unwrap();
    client.write_all(b"\"crawls\"\n").await.unwrap();
    let mut answer = String::new();
    let read = client.read_to_string(&mut answer);
    tokio::time::timeout(std::time::Duration::from_secs(600), read).await.unwrap().unwrap();
    assert_eq!(answer, "\"end\"\n");
    drop(guard);
}
