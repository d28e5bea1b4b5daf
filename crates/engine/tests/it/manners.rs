//! How hosts are treated while crawls run, stop and start again.

use std::collections::HashMap;

use telusur_model::Moment;
use telusur_testkit::FakeWebSpec;
use telusur_testkit::fake_web::PageCounts;

use crate::bench::{Bench, accept, crawl, finished, until};

fn web() -> FakeWebSpec {
    FakeWebSpec {
        hosts: 4,
        pages: PageCounts::Even { total: 40 },
        links_per_page: 10,
        page_bytes: 2_000,
        ..Default::default()
    }
}

#[tokio::test(start_paused = true)]
async fn the_delay_holds_also_across_a_crash() {
    let (bench, web) = Bench::of_web(web());
    let mut crawl = crawl(web.seeds());
    crawl.politeness.delay_ms = 1_000;
    {
        let store = bench.open();
        let engine = bench.engine(&store);
        let no = accept(&store, crawl);
        engine.handle().run(no).await.unwrap();
        until(&engine, no, |progress| progress.stats.pages > 12).await;
        engine.vanish().await;
    }
    let store = bench.open();
    let engine = bench.engine(&store);
    engine.handle().run(telusur_model::CrawlNo(1)).await.unwrap();
    finished(&engine, telusur_model::CrawlNo(1)).await;
    engine.shutdown().await.unwrap();
    let mut by_host: HashMap<String, Vec<Moment>> = HashMap::new();
    for request in bench.fetcher.log().requests() {
        by_host.entry(request.host).or_default().push(request.started_at);
    }
    assert_eq!(by_host.len(), 4);
    for (host, times) in by_host {
        for pair in times.windows(2) {
            assert!(pair[1].ms_since(pair[0]) >= 1_000, "{host}: {pair:?}");
        }
    }
}
