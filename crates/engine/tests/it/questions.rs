//! Questions about a data directory.

use std::sync::Arc;

use telusur_engine::RequestError;
use telusur_engine::control::{Control, ExplainUrl, ListErrors, ListSkipped, ReadCrawl};
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, in_process, page, run, site_crawl, try_run};

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
    let id = |text: &str| match try_run(&store, &ReadCrawl { crawl: text.into() }) {
        Ok((_, shown)) => Some(shown.id),
        Err(RequestError::NoSuchCrawl(_)) => None,
        Err(other) => panic!("{other:?}"),
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
    let errors = ListErrors { crawl: "last".into(), ..ListErrors::default() };
    let (errors, end) = run(&store, &errors);
    assert!(matches!(&errors[..], [error] if error.status == Some(404)), "{errors:?}");
    assert_eq!((end.total, end.next), (Some(1), None));
    let skipped = |reason: &str| ListSkipped {
        crawl: "last".into(),
        reason: Some(reason.into()),
        ..ListSkipped::default()
    };
    let (out_of_scope, end) = run(&store, &skipped("out_of_scope"));
    assert_eq!(out_of_scope[0].url, "http://elsewhere.test/");
    assert_eq!(end.total, Some(out_of_scope.len() as u64));
    assert_eq!(run(&store, &skipped("excluded")).0, []);
    let refused = try_run(&store, &skipped("no_reason")).unwrap_err();
    assert!(matches!(refused, RequestError::BadRequest(_)), "{refused:?}");
}

#[tokio::test]
async fn every_url_has_an_answer_to_why() {
    let (_bench, store) = crawled().await;
    let explain = |url: &str| {
        let (explanations, ()) = run(&store, &ExplainUrl { url: url.into(), crawl: None });
        explanations.into_iter().next().unwrap()
    };
    let a = explain("http://site.test/a?utm_source=x");
    assert_eq!(a.page.unwrap().referrer.as_deref(), Some("http://site.test/"));
    assert!(a.admitted);
    let elsewhere = explain("http://elsewhere.test/");
    assert_eq!(elsewhere.reason.as_deref(), Some("out_of_scope"));
    assert_eq!(elsewhere.known.unwrap().referrer.as_deref(), Some("http://site.test/"));
    let never_seen = explain("http://site.test/never");
    assert!(never_seen.known.is_none() && never_seen.admitted);
}

/// Sixteen silent connections once held up every command.
#[tokio::test(start_paused = true)]
async fn silent_clients_hold_nobody_up() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let dir = tempfile::tempdir().unwrap();
    let store = telusur_store_embedded::open(&dir.path().join("data")).unwrap();
    let socket = dir.path().join("control.sock");
    let guard =
        telusur_engine::control::serve(&socket, Control::of_store(Arc::new(store), in_process()))
            .unwrap();
    let connect = || tokio::net::UnixStream::connect(&socket);
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(connect().await.unwrap());
    }
    let mut client = connect().await.unwrap();
    let request = r#"{"run":{"operation":"read_crawls","request":{}}}"#;
    client.write_all(format!("{request}\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = client.read_to_string(&mut answer);
    tokio::time::timeout(std::time::Duration::from_secs(600), read).await.unwrap().unwrap();
    assert_eq!(answer, "{\"reply\":{\"next\":null,\"total\":0}}\n");
    drop(guard);
}
