//! A crawl that ends the engine: once it is started again, twice it is set aside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use telusur_engine::control::{Control, ResumeCrawl};
use telusur_engine::{Engine, EngineOptions, EngineParts};
use telusur_ledger::{CrawlStore, Store};
use telusur_model::{CrawlNo, CrawlState, PauseReason};
use telusur_store_embedded::EmbeddedStore;
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, accept, crawl, finished, page, until, url};
use crate::short_disk::ShortDisk;

/// Every page of a good host has two more.
fn endless(path: &str) -> FakeAnswer {
    let number: u64 = path.trim_start_matches('/').parse().unwrap_or(0);
    page(&[&format!("/{}", 2 * number + 1), &format!("/{}", 2 * number + 2)])
}

/// A crawl of a good host that does not come to an end, however slow the rest of the test is.
fn without_end() -> telusur_model::Crawl {
    let mut crawl = crawl(vec![url("http://good.test/")]);
    crawl.scope.include = vec![".*".to_owned()];
    crawl.limits.urls_per_host_max = u64::MAX;
    crawl.limits.urls_per_site_max = u64::MAX;
    crawl
}

/// Runs both crawls until the engine fails, and gives the store after it.
async fn fail(bench: &Bench, store: Arc<EmbeddedStore>, crawls: &[CrawlNo]) -> Arc<EmbeddedStore> {
    let mut engine = bench.engine(&store);
    for no in crawls {
        engine.handle().run(*no).await.unwrap();
    }
    engine.failed().await;
    drop((engine, store));
    bench.open_again().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_that_ends_the_engine_twice_is_set_aside() {
    static IS_MENDED: AtomicBool = AtomicBool::new(false);
    let bench = Bench::of_hosts(|host, path| match host {
        "bad.test" if IS_MENDED.load(Ordering::Relaxed) => page(&[]),
        "bad.test" => panic!("a fault of ours"),
        _ => endless(path),
    });
    let store = bench.open();
    let good = accept(&store, without_end());
    let bad = accept(&store, crawl(vec![url("http://bad.test/")]));
    let store = fail(&bench, store, &[good, bad]).await;
    let record = store.crawl(bad).unwrap().unwrap();
    assert_eq!(
        (record.state, record.fault.map(|fault| fault.times)),
        (CrawlState::Running, Some(1))
    );
    assert_eq!(store.crawl(good).unwrap().unwrap().fault, None, "nothing is held against it");

    let store = fail(&bench, store, &[good, bad]).await;
    let record = store.crawl(bad).unwrap().unwrap();
    assert_eq!(record.state, CrawlState::Paused { why: PauseReason::EngineStopped });
    assert_eq!(record.fault.unwrap().text(), "stopped the engine twice: a fetch panicked");
    let record = store.crawl(good).unwrap().unwrap();
    assert_eq!((record.state, record.fault), (CrawlState::Running, None));

    IS_MENDED.store(true, Ordering::Relaxed);
    let engine = bench.engine(&store);
    engine.handle().run(good).await.unwrap();
    let control = Control::of_engine(Arc::clone(&store) as Arc<dyn Store>, engine.handle());
    let order = ResumeCrawl { crawl: bad.to_string() };
    let replied = tokio::task::spawn_blocking(move || control.collect(&order)).await.unwrap();
    replied.expect("resume tries it again");
    assert_eq!(finished(&engine, bad).await.stats.ok, 1);
    engine.shutdown().await.unwrap();
    assert_eq!(store.crawl(bad).unwrap().unwrap().fault, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_in_order_forgets_and_a_kill_does_not_count() {
    static IS_MENDED: AtomicBool = AtomicBool::new(false);
    let bench = Bench::of_hosts(|_, path| match IS_MENDED.load(Ordering::Relaxed) {
        true => endless(path),
        false => panic!("a fault of ours"),
    });
    let store = bench.open();
    let no = accept(&store, crawl(vec![url("http://bad.test/")]));
    let store = fail(&bench, store, &[no]).await;
    IS_MENDED.store(true, Ordering::Relaxed);
    let fault = |store: &EmbeddedStore| store.crawl(no).unwrap().unwrap().fault;
    let engine = bench.engine(&store);
    engine.handle().run(no).await.unwrap();
    until(&engine, no, |progress| progress.stats.pages > 5).await;
    engine.vanish().await;
    assert_eq!(fault(&store).map(|fault| fault.times), Some(1), "a kill is nobody's fault");
    drop(store);
    let store = bench.open_again().await;
    let engine = bench.engine(&store);
    engine.handle().run(no).await.unwrap();
    until(&engine, no, |progress| progress.stats.pages > 10).await;
    engine.shutdown().await.unwrap();
    assert_eq!(fault(&store), None);
}

/// Runs crawls on a disk until the engine fails, and gives the store after it.
async fn fail_on(
    bench: &Bench,
    store: Arc<EmbeddedStore>,
    disk: ShortDisk,
    crawls: &[CrawlNo],
) -> Arc<EmbeddedStore> {
    let parts = EngineParts { store: Arc::new(disk), ..bench.parts(&store) };
    let options = EngineOptions { parse_threads: 2, free_bytes_min: 0 };
    let mut engine = Engine::start(parts, &options).unwrap();
    for no in crawls {
        engine.handle().run(*no).await.unwrap();
    }
    engine.failed().await;
    drop((engine, store));
    bench.open_again().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_fails_is_nobodys_fault() {
    let bench = Bench::of_hosts(|_, path| endless(path));
    let store = bench.open();
    let no = accept(&store, crawl(vec![url("http://good.test/")]));
    let disk = ShortDisk { is_read_only: true, ..ShortDisk::of(&store) };
    let store = fail_on(&bench, store, disk, &[no]).await;
    let record = store.crawl(no).unwrap().unwrap();
    assert_eq!((record.state, record.fault), (CrawlState::Running, None));
}
