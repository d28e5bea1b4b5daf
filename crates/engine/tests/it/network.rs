//! Visits that come back late, hosts that are down for a while, and services that start before their
//! network.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use telusur_engine::Engine;
use telusur_model::{
    Crawl, CrawlNo, CrawlState, PauseReason, Progress, Reason, RobotsAnswer, Seeds,
};
use telusur_store::{CrawlStore, FrontierStore};
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, accept, crawl, finished, page, polite_crawl, until, url};

/// Far more than anything here takes, by the clock of the test.
const LONG: Duration = Duration::from_secs(100_000);

async fn finished_in_time(engine: &Engine, no: CrawlNo) -> Progress {
    let ended = tokio::time::timeout(LONG, finished(engine, no)).await;
    ended.unwrap_or_else(|_| panic!("not over: {:?}", engine.handle().progress().borrow()[&no]))
}

fn slow(_: &str, path: &str) -> FakeAnswer {
    match path {
        "/slow" => page(&[]).after(Duration::from_secs(10_000)),
        _ => page(&[]),
    }
}

fn slow_crawl(path: &str, per_host: u16) -> Crawl {
    let mut crawl = crawl(vec![url(&format!("http://a.test{path}"))]);
    crawl.politeness.per_host = per_host;
    crawl.fetch.timeout_ms = 20_000_000;
    crawl
}

/// Starts a crawl of a page that takes hours, and stops it while the page is under way.
async fn stopped_crawl(bench: &Bench, engine: &Engine, no: CrawlNo) {
    engine.handle().run(no).await.unwrap();
    while bench.fetcher.log().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    engine.handle().stop(no).await.unwrap();
}

/// Its host was once taken for good: later crawls of it asked nothing and never ended.
#[tokio::test(start_paused = true)]
async fn a_visit_that_ends_after_its_crawl_leaves_its_host_to_others() {
    let bench = Bench::of_hosts(slow);
    let store = bench.open();
    let engine = bench.engine(&store);
    let first = accept(&store, slow_crawl("/slow", 1));
    stopped_crawl(&bench, &engine, first).await;
    let second = accept(&store, slow_crawl("/", 1));
    engine.handle().run(second).await.unwrap();
    assert_eq!(finished_in_time(&engine, second).await.stats.ok, 1);
    engine.shutdown().await.unwrap();
}

/// A visit of the run that was stopped once ended the engine.
#[tokio::test(start_paused = true)]
async fn a_crawl_that_runs_again_takes_in_what_its_earlier_run_had_under_way() {
    for per_host in [1, 2] {
        let bench = Bench::of_hosts(slow);
        let store = bench.open();
        let engine = bench.engine(&store);
        let again = accept(&store, slow_crawl("/slow", per_host));
        stopped_crawl(&bench, &engine, again).await;
        engine.handle().run(again).await.unwrap();
        let progress = finished_in_time(&engine, again).await;
        assert_eq!((progress.stats.ok, progress.stats.failed), (1, 0), "{per_host} at once");
        engine.shutdown().await.unwrap();
    }
}

/// A host whose rules are known was once barred, with all its pages, because it did not bear witness.
#[tokio::test(start_paused = true)]
async fn a_witness_that_is_down_keeps_its_rules() {
    static UP: AtomicU8 = AtomicU8::new(2);
    let bench = Bench::of_hosts(|host, path| {
        let is_up = match host {
            "a.test" => UP.load(Ordering::Relaxed) > 1,
            _ => UP.load(Ordering::Relaxed) > 0,
        };
        match path {
            _ if !is_up => FakeAnswer::cut(),
            "/robots.txt" => FakeAnswer::plain(200, "User-agent: *\nDisallow: /no\n"),
            "/sitemap.xml" => FakeAnswer::not_found(),
            _ => page(&[]),
        }
    });
    let store = bench.open();
    let engine = bench.engine(&store);
    let handle = engine.handle();
    let of_host = |host: &str| {
        let mut crawl = polite_crawl();
        let seeds = (0..400).map(|number| url(&format!("http://{host}/{number}"))).collect();
        crawl.seeds = Seeds::Links(seeds);
        crawl.politeness.delay_ms = 1_000;
        accept(&store, crawl)
    };
    let (a, b) = (of_host("a.test"), of_host("b.test"));
    handle.run(a).await.unwrap();
    handle.run(b).await.unwrap();
    until(&engine, a, |progress| progress.stats.ok >= 5).await;
    until(&engine, b, |progress| progress.stats.ok >= 5).await;
    UP.store(0, Ordering::Relaxed);
    until(&engine, a, |progress| progress.suspects_network).await;
    UP.store(1, Ordering::Relaxed);
    let ok_before = until(&engine, b, |progress| !progress.suspects_network).await.stats.ok;
    until(&engine, b, |progress| progress.stats.ok >= ok_before + 200).await;
    let row = store.origin(&url("http://a.test/").origin()).unwrap().unwrap();
    assert!(matches!(row.robots, RobotsAnswer::Text { .. }), "{:?}", row.robots);
    UP.store(2, Ordering::Relaxed);
    let progress = finished_in_time(&engine, a).await;
    let barred = progress.stats.failures.get(&Reason::RobotsUnreachable);
    assert_eq!(barred, None, "no page is lost with the rules");
    engine.shutdown().await.unwrap();
}

/// What was refused once stood in the store as running.
#[tokio::test(start_paused = true)]
async fn a_crawl_that_is_refused_keeps_its_state() {
    let bench = Bench::of_hosts(slow);
    let store = bench.open();
    let engine = bench.engine(&store);
    let mut unusable = crawl(vec![url("http://a.test/")]);
    unusable.scope.exclude = vec!["(".into()];
    let no = accept(&store, unusable);
    let paused = CrawlState::Paused { why: PauseReason::Asked };
    store.set_state(no, paused, bench.clock.wall()).unwrap();
    engine.handle().run(no).await.unwrap_err();
    assert_eq!(store.crawl(no).unwrap().unwrap().state, paused);
    engine.shutdown().await.unwrap();
}
