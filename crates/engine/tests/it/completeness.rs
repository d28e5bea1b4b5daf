//! Everything that can be reached is stored, once, whatever happens on the way.

use std::collections::HashSet;

use telusur_model::{CrawlNo, CrawlState, FinishReason};
use telusur_testkit::FakeWebSpec;
use telusur_testkit::fake_web::{DelayRange, FaultShares, PageCounts};

use crate::bench::{Bench, accept, assert_verified, crawl, export, finished, until};

fn small_web(pages: u64) -> FakeWebSpec {
    FakeWebSpec {
        hosts: 5,
        pages: PageCounts::Even { total: pages },
        links_per_page: 10,
        page_bytes: 2_000,
        ..Default::default()
    }
}

async fn finds_everything(workers: u16) {
    let (bench, web) = Bench::of_web(small_web(600));
    let mut crawl = crawl(web.seeds());
    crawl.politeness.workers = workers;
    crawl.politeness.per_host = workers;
    let (store, record) = bench.crawl(crawl).await;
    assert_eq!(record.stats.ok, 600);
    assert_eq!(record.state, CrawlState::Finished { why: FinishReason::Drained });
    let stored: HashSet<String> = export(&store).into_iter().map(|line| line.url).collect();
    let expected: HashSet<String> = web.urls().map(|url| url.to_string()).collect();
    assert_eq!(stored, expected);
    assert!(bench.fetcher.log().counts().values().all(|times| *times == 1));
}

#[tokio::test]
async fn finds_everything_with_3_workers() {
    finds_everything(3).await;
}

#[tokio::test]
async fn finds_everything_with_64_workers() {
    finds_everything(64).await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_crawl_is_never_cut_off() {
    // The first service closed its queue two seconds after the start.
    let spec = FakeWebSpec { delay_ms: DelayRange::fixed(5_000), ..small_web(60) };
    let (bench, web) = Bench::of_web(spec);
    let (_, record) = bench.crawl(crawl(web.seeds())).await;
    assert_eq!(record.stats.ok, 60);
}

#[tokio::test(start_paused = true)]
async fn passing_faults_cost_attempts_and_no_pages() {
    let faults = FaultShares { error_once: 0.2, reset_once: 0.2, ..Default::default() };
    let (bench, web) = Bench::of_web(FakeWebSpec { faults, ..small_web(100) });
    let (store, record) = bench.crawl(crawl(web.seeds())).await;
    assert_eq!(record.stats.ok, 100);
    assert!(record.stats.visits > 100);
    assert!(export(&store).iter().any(|line| line.attempts == 2));
}

#[tokio::test]
async fn a_stopped_crawl_goes_on_where_it_was() {
    let (bench, web) = Bench::of_web(small_web(400));
    let no = {
        let store = bench.open();
        let engine = bench.engine(&store);
        let no = accept(&store, crawl(web.seeds()));
        engine.handle().run(no).await.unwrap();
        until(&engine, no, |progress| progress.stats.pages > 20).await;
        engine.handle().stop(no).await.unwrap();
        engine.shutdown().await.unwrap();
        assert_verified(&store);
        no
    };
    let store = bench.open();
    let engine = bench.engine(&store);
    engine.handle().run(no).await.unwrap();
    let progress = finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    assert_eq!(progress.stats.ok, 400);
    assert!(bench.fetcher.log().counts().values().all(|times| *times == 1));
    assert_verified(&store);
}

#[tokio::test]
async fn a_crawl_whose_engine_vanished_goes_on_where_it_was() {
    let (bench, web) = Bench::of_web(small_web(400));
    let no = CrawlNo(1);
    {
        let store = bench.open();
        let engine = bench.engine(&store);
        accept(&store, crawl(web.seeds()));
        engine.handle().run(no).await.unwrap();
        until(&engine, no, |progress| progress.stats.pages > 50).await;
        engine.vanish().await;
    }
    let store = bench.open_again().await;
    assert_verified(&store);
    let engine = bench.engine(&store);
    engine.handle().run(no).await.unwrap();
    let progress = finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    assert_eq!(progress.stats.ok, 400);
    assert_eq!(export(&store).len(), 400);
    assert_verified(&store);
}
