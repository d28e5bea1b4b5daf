//! Threads and tasks that die: the engine stops and says which one, and no crawl waits for ever.

use std::sync::Arc;

use telusur_engine::control::{self, Control};
use telusur_engine::{Engine, EngineError, EngineOptions, EngineParts, Part};
use telusur_ledger::{CrawlStore, Store};
use telusur_model::{CrawlNo, PageContent, ParsedPage, RawPage, SearchPage};
use telusur_parse_pool::{Parser, PoolError, ReadPage, VisibleText};
use telusur_store_embedded::EmbeddedStore;

use crate::bench::{Bench, accept, crawl, page, url};
use crate::short_disk::ShortDisk;

fn bench() -> Bench {
    Bench::of_hosts(|host, _| match host {
        "bad.test" => panic!("a fault of ours"),
        _ => page(&[]),
    })
}

/// Runs a crawl of one page until the engine fails.
async fn fail(parts: EngineParts, no: CrawlNo) -> EngineError {
    let options = EngineOptions { parse_threads: 2, free_bytes_min: 0 };
    let mut engine = Engine::start(parts, &options).unwrap();
    engine.handle().run(no).await.unwrap();
    engine.failed().await
}

/// A parser whose threads come to an end.
struct Ending(fn() -> PoolError);

impl Parser for Ending {
    fn parse_all(
        &self,
        _: &[&RawPage],
        _: VisibleText,
    ) -> Result<Vec<ReadPage<ParsedPage>>, PoolError> {
        Err(self.0())
    }

    fn read_for_search(
        &self,
        _: &[&RawPage],
        _: VisibleText,
    ) -> Result<Vec<ReadPage<SearchPage>>, PoolError> {
        Err(self.0())
    }

    fn read_all(&self, _: &[&RawPage]) -> Result<Vec<ReadPage<PageContent>>, PoolError> {
        Err(self.0())
    }
}

async fn fail_to_parse(how: fn() -> PoolError) -> EngineError {
    let bench = bench();
    let store = bench.open();
    let no = accept(&store, crawl(vec![url("http://good.test/")]));
    fail(EngineParts { parser: Arc::new(Ending(how)), ..bench.parts(&store) }, no).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parse_thread_that_panics_is_named() {
    let error = fail_to_parse(|| panic!("a fault of ours")).await;
    assert!(matches!(error, EngineError::StageDied("parse")), "{error:?}");
}

/// Its crawl once waited for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_parse_thread_that_ends_early_is_named() {
    let error = fail_to_parse(|| PoolError::Interrupted).await;
    assert!(matches!(error, EngineError::StageDied("parse")), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_thread_said_before_it_ended_is_the_cause() {
    let error = fail_to_parse(|| PoolError::Start { why: "no children".into() }).await;
    assert!(matches!(error, EngineError::Parser(PoolError::Start { .. })), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_panics_is_named() {
    let bench = bench();
    let store = bench.open();
    let no = accept(&store, crawl(vec![url("http://good.test/")]));
    let disk = ShortDisk { is_faulty: true, ..ShortDisk::of(&store) };
    let error = fail(EngineParts { store: Arc::new(disk), ..bench.parts(&store) }, no).await;
    assert!(matches!(error, EngineError::StageDied("commit")), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_that_panics_is_named() {
    let bench = bench();
    let store = bench.open();
    let no = accept(&store, crawl(vec![url("http://bad.test/")]));
    let error = fail(bench.parts(&store), no).await;
    assert!(matches!(error, EngineError::StageDied("fetch")), "{error:?}");
}

/// Whatever the service runs beside the engine stops it, too; no crawl is to blame for that.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_the_service_that_dies_stops_the_engine() {
    let die: [fn(&Engine); 4] = [
        |engine| drop(supervise(engine).task(HTTP, async { panic!("a fault of ours") })),
        |engine| drop(supervise(engine).task(HTTP, async {})),
        |engine| supervise(engine).work(HTTP, async { panic!("a fault of ours") }),
        |engine| supervise(engine).blocking_work(HTTP, || panic!("a fault of ours")),
    ];
    for die in die {
        let bench = bench();
        let store = bench.open();
        let no = accept(&store, crawl(vec![url("http://good.test/")]));
        let mut engine = bench.engine(&store);
        engine.handle().run(no).await.unwrap();
        die(&engine);
        let error = engine.failed().await;
        assert!(matches!(error, EngineError::PartDied("http")), "{error:?}");
        assert_eq!(store.crawl(no).unwrap().unwrap().fault, None);
    }
}

const HTTP: Part = Part::Service("http");

fn supervise(engine: &Engine) -> telusur_engine::Supervisor {
    engine.handle().supervisor().clone()
}

/// Closing the control socket is no death, before the engine ends or after.
#[tokio::test(flavor = "multi_thread")]
async fn a_control_socket_that_is_closed_is_no_death() {
    let bench = bench();
    let store: Arc<EmbeddedStore> = bench.open();
    let engine = bench.engine(&store);
    let control = Control::of_engine(Arc::clone(&store) as Arc<dyn Store>, engine.handle());
    drop(control::serve(&bench.dir.path().join("control.sock"), control).unwrap());
    engine.shutdown().await.unwrap();
}
