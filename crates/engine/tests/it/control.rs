//! Pausing, stopping, excluding, cancelling, running out of space.

use std::path::Path;
use std::sync::Arc;

use telusur_engine::control::{
    self, CancelCrawl, Control, CrawlDone, ErrorCode, ErrorReply, Operation, PauseCrawl, ReadCrawl,
    RemoveCrawl, Verify,
};
use telusur_engine::{RequestError, SystemClock};
use telusur_ledger::conformance::{first, step};
use telusur_ledger::{Asking, CrawlStore, FrontierStore, Store};
use telusur_model::{Clock, CrawlNo, CrawlState, FinishReason, PauseReason, Reason, Timestamp};
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, accept, finished, in_process, page, site_crawl, until};

/// An endless site: every page has two more.
fn endless(path: &str) -> FakeAnswer {
    let number: u64 = path.trim_start_matches('/').parse().unwrap_or(0);
    FakeAnswer::page_about(
        number,
        &[&format!("/{}", 2 * number + 1), &format!("/{}", 2 * number + 2)],
    )
}

#[tokio::test]
async fn a_paused_crawl_asks_for_nothing_until_it_is_resumed() {
    let bench = Bench::of_site(endless);
    let store = bench.open();
    let engine = bench.engine(&store);
    let no = accept(&store, site_crawl());
    let handle = engine.handle();
    handle.run(no).await.unwrap();
    until(&engine, no, |progress| progress.stats.pages > 10).await;
    handle.pause(no).await.unwrap();
    let paused = CrawlState::Paused { why: PauseReason::Asked };
    assert_eq!(store.crawl(no).unwrap().unwrap().state, paused);
    let asked = bench.fetcher.log().len() as u64;
    assert_eq!(store.crawl(no).unwrap().unwrap().stats.visits, asked);
    handle.resume(no).await.unwrap();
    until(&engine, no, |progress| progress.stats.visits > asked + 10).await;
    handle.stop(no).await.unwrap();
    let stopped = CrawlState::Finished { why: FinishReason::Stopped };
    assert_eq!(store.crawl(no).unwrap().unwrap().state, stopped);
    assert!(matches!(handle.pause(no).await, Err(RequestError::WrongState(_))));
    engine.shutdown().await.unwrap();
}

/// It once hung: the state "running" of the resume arrived late and was taken for that of the stop.
#[tokio::test]
async fn a_crawl_that_is_resumed_and_stopped_at_once_is_over() {
    let bench = Bench::of_site(endless);
    let store = bench.open();
    let engine = bench.engine(&store);
    let handle = engine.handle();
    let no = accept(&store, site_crawl());
    handle.run(no).await.unwrap();
    until(&engine, no, |progress| progress.stats.pages > 5).await;
    handle.pause(no).await.unwrap();
    let (resumed, stopped) = tokio::join!(handle.resume(no), handle.stop(no));
    resumed.unwrap();
    stopped.unwrap();
    let progress = finished(&engine, no).await;
    assert_eq!(progress.state, CrawlState::Finished { why: FinishReason::Stopped });
    engine.shutdown().await.unwrap();
}

/// The pause once got no answer at all, which looked like the end of the engine.
#[tokio::test]
async fn a_pause_that_is_overtaken_by_a_resume_is_told_so() {
    let bench = Bench::of_site(endless);
    let store = bench.open();
    let engine = bench.engine(&store);
    let handle = engine.handle();
    let no = accept(&store, site_crawl());
    handle.run(no).await.unwrap();
    until(&engine, no, |progress| progress.stats.pages > 5).await;
    let (paused, resumed) = tokio::join!(handle.pause(no), handle.resume(no));
    resumed.unwrap();
    assert!(matches!(paused, Err(RequestError::WrongState(_))), "{paused:?}");
    let visits = bench.fetcher.log().len() as u64;
    until(&engine, no, |progress| progress.stats.visits > visits + 5).await;
    engine.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_carried_out_although_its_terminal_is_gone() {
    use std::io::Write;
    let bench = Bench::of_site(endless);
    let store = bench.open();
    let engine = bench.engine(&store);
    let no = accept(&store, site_crawl());
    engine.handle().run(no).await.unwrap();
    let path = bench.dir.path().join("control.sock");
    let served: Arc<dyn Store> = store.clone();
    let _socket = control::serve(&path, Control::of_engine(served, engine.handle())).unwrap();
    let mut terminal = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let request = r#"{"run":{"operation":"stop_crawl","request":{"crawl":"crawl_1"}}}"#;
    writeln!(terminal, "{request}").unwrap();
    drop(terminal);
    let progress = finished(&engine, no).await;
    assert_eq!(progress.state, CrawlState::Finished { why: FinishReason::Stopped });
    engine.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_exclusion_reaches_urls_that_already_wait() {
    let bench = Bench::of_site(|path| match path {
        "/" => page(&["/keep", "/drop/1", "/drop/2"]),
        _ => page(&[]),
    });
    let store = bench.open();
    let engine = bench.engine(&store);
    let mut crawl = site_crawl();
    crawl.politeness.delay_ms = 200;
    let no = accept(&store, crawl);
    let handle = engine.handle();
    handle.run(no).await.unwrap();
    until(&engine, no, |progress| progress.stats.queued == 3).await;
    assert!(matches!(handle.exclude(no, "(".into()).await, Err(RequestError::BadArgument(_))));
    handle.exclude(no, "/drop/".into()).await.unwrap();
    let progress = finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    assert_eq!(progress.stats.pages, 2);
    assert_eq!(progress.stats.skips[&Reason::Excluded], 2);
}

#[tokio::test]
async fn a_shutdown_leaves_running_crawls_running() {
    let bench = Bench::of_site(endless);
    let store = bench.open();
    let engine = bench.engine(&store);
    let no = accept(&store, site_crawl());
    engine.handle().run(no).await.unwrap();
    until(&engine, no, |progress| progress.stats.pages > 5).await;
    engine.shutdown().await.unwrap();
    assert_eq!(store.crawl(no).unwrap().unwrap().state, CrawlState::Running);
    drop(store);
    assert!(bench.open().was_closed());
}

#[tokio::test]
async fn little_space_pauses_the_crawl() {
    let bench = Bench::of_site(endless);
    let store = bench.open();
    let engine = bench.engine_with(&store, u64::MAX);
    let no = accept(&store, site_crawl());
    engine.handle().run(no).await.unwrap();
    let full = CrawlState::Paused { why: PauseReason::DiskFull };
    until(&engine, no, |progress| progress.state == full).await;
    assert_eq!(engine.handle().holds_back(), Some(PauseReason::DiskFull), "no other is started");
    // It stays here and can be resumed; there is still no space, so it waits again.
    engine.handle().resume(no).await.unwrap();
    until(&engine, no, |progress| progress.state == CrawlState::Running).await;
    until(&engine, no, |progress| progress.state == full).await;
    engine.shutdown().await.unwrap();
    assert_eq!(store.crawl(no).unwrap().unwrap().state, full);
}

/// The reply that another process gets.
async fn replied<O>(socket: &Path, operation: O) -> Result<O::Reply, ErrorReply>
where
    O: Operation<Reply: Send> + Send + 'static,
{
    let socket = socket.to_owned();
    let asked = move || control::ask(&socket, &operation, &mut |_| true).unwrap();
    let replied = tokio::task::spawn_blocking(asked).await.unwrap();
    replied.map(|reply| reply.expect("every item was wanted"))
}

#[tokio::test(flavor = "multi_thread")]
async fn another_terminal_reaches_the_owner() {
    let bench = Bench::of_site(endless);
    let store = bench.open();
    let engine = bench.engine(&store);
    let no = accept(&store, site_crawl());
    engine.handle().run(no).await.unwrap();
    until(&engine, no, |progress| progress.stats.pages > 5).await;
    let control = Control::of_engine(Arc::clone(&store) as Arc<dyn Store>, engine.handle());
    let path = bench.dir.path().join("control.sock");
    let guard = control::serve(&path, control).unwrap();
    let id = store.crawl(no).unwrap().unwrap().crawl.id.to_string();
    let shown = replied(&path, ReadCrawl { crawl: "crawl_1".into() }).await.unwrap();
    assert!(shown.is_live && shown.state == "running" && shown.stats.sites_total == 1);
    let report = replied(&path, Verify {}).await.unwrap();
    assert!(report.holds(), "{report:?}");
    let refused = replied(&path, RemoveCrawl { crawl: "last".into() }).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::WrongState, "{refused:?}");
    let cancelled = replied(&path, CancelCrawl { crawl: "last".into() }).await;
    assert_eq!(cancelled, Ok(CrawlDone { crawl: id }));
    assert!(store.crawl(CrawlNo(1)).unwrap().is_none());
    let refused = replied(&path, PauseCrawl { crawl: "last".into() }).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::NoSuchCrawl, "{refused:?}");
    drop(guard);
    assert!(!path.exists());
    engine.shutdown().await.unwrap();
}

/// What its rows said about the last requests is gone with it, and the next crawl would ask at once.
#[tokio::test]
async fn a_removed_crawl_is_remembered_by_those_who_ask_its_hosts_next() {
    let bench = Bench::of_site(endless);
    let store = bench.open();
    let now = SystemClock::new().wall();
    let day_ago = Timestamp(now.0 - 24 * 60 * 60 * 1000);
    let over = CrawlState::Finished { why: FinishReason::Drained };
    let [lately, long_ago, not_over, never_begun] = [0; 4].map(|_| accept(&store, site_crawl()));
    for no in [lately, long_ago, not_over] {
        let record = store.crawl(no).unwrap().unwrap();
        let visit = first(store.as_ref(), &record, "site.test");
        store.commit(step(store.as_ref(), &record, visit, 200, &[])).unwrap();
    }
    store.set_state(lately, over, now).unwrap();
    store.set_state(long_ago, over, day_ago).unwrap();
    let control = Control::of_store(store.clone(), in_process());
    for no in [lately, long_ago, not_over, never_begun] {
        control.collect(&RemoveCrawl { crawl: no.to_string() }).unwrap();
    }
    assert_eq!(store.crawls().unwrap(), []);
    let asking = [(lately, Asking::Until(now)), (not_over, Asking::Now)];
    assert_eq!(store.asking().unwrap(), asking);
}
