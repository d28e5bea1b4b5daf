//! Crawls that wait for the machine: for a network, or for space on the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use telusur_engine::{Engine, EngineOptions, EngineParts};
use telusur_ledger::{CrawlStore, FrontierStore};
use telusur_model::{CrawlState, FinishReason, PauseReason, Seeds};
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, accept, crawl, finished, page, polite_crawl, site_crawl, until, url};
use crate::short_disk::ShortDisk;

fn offline() -> CrawlState {
    CrawlState::Paused { why: PauseReason::NoNetwork }
}

/// Dead crawls are cut off by their own failures. One that comes later is asked at once, and its
/// answer lets the others go on, which then fail by themselves.
#[tokio::test(start_paused = true)]
async fn dead_crawls_are_paused_alone_and_go_on_when_somebody_answers() {
    let bench = Bench::of_hosts(|host, _| match host {
        "good.test" => page(&[]),
        _ => FakeAnswer::silence().after(std::time::Duration::from_secs(5)),
    });
    let store = bench.open();
    let engine = bench.engine(&store);
    let handle = engine.handle();
    let mut dead = Vec::new();
    for number in 0..4 {
        let seeds = (0..8).map(|path| url(&format!("http://dead{number}.test/{path}"))).collect();
        let no = accept(&store, crawl(seeds));
        handle.run(no).await.unwrap();
        dead.push(no);
    }
    for no in &dead {
        until(&engine, *no, |progress| progress.state == offline()).await;
    }
    assert_eq!(handle.holds_back(), None, "nobody is left to suspect the network");
    let good = accept(&store, crawl(vec![url("http://good.test/")]));
    handle.run(good).await.unwrap();
    let progress = finished(&engine, good).await;
    assert_eq!((progress.stats.ok, progress.suspects_network), (1, false));
    for no in &dead {
        let progress = finished(&engine, *no).await;
        assert_eq!(progress.state, CrawlState::Finished { why: FinishReason::NoStart });
        assert_eq!(progress.stats.failed, 8);
    }
    engine.shutdown().await.unwrap();
}

/// With nobody else to ask, a crawl that was cut off tries by itself.
#[tokio::test(start_paused = true)]
async fn a_crawl_without_a_network_goes_on_by_itself_when_it_is_back() {
    static IS_BACK: AtomicBool = AtomicBool::new(false);
    let bench = Bench::of_hosts(|_, _| match IS_BACK.load(Ordering::Relaxed) {
        true => page(&[]),
        false => FakeAnswer::silence(),
    });
    let store = bench.open();
    let engine = bench.engine(&store);
    let seeds = (0..40).map(|host| url(&format!("http://h{}.test/{host}", host % 4))).collect();
    let no = accept(&store, crawl(seeds));
    engine.handle().run(no).await.unwrap();
    until(&engine, no, |progress| progress.state == offline()).await;
    assert_eq!(store.crawl(no).unwrap().unwrap().state, offline());
    IS_BACK.store(true, Ordering::Relaxed);
    let progress = finished(&engine, no).await;
    assert_eq!(progress.stats.ok, 40, "no page was given up");
    engine.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_crawl_without_a_network_can_be_resumed() {
    static IS_BACK: AtomicBool = AtomicBool::new(false);
    let bench = Bench::of_hosts(|_, _| match IS_BACK.load(Ordering::Relaxed) {
        true => page(&[]),
        false => FakeAnswer::silence(),
    });
    let store = bench.open();
    let engine = bench.engine(&store);
    let seeds = (0..40).map(|host| url(&format!("http://h{}.test/{host}", host % 4))).collect();
    let no = accept(&store, crawl(seeds));
    engine.handle().run(no).await.unwrap();
    until(&engine, no, |progress| progress.state == offline()).await;
    IS_BACK.store(true, Ordering::Relaxed);
    engine.handle().resume(no).await.unwrap();
    assert_eq!(finished(&engine, no).await.stats.ok, 40);
    engine.shutdown().await.unwrap();
}

/// A 503 with Retry-After to an invented address once silenced the site, a stalled one slowed it down.
#[tokio::test(start_paused = true)]
async fn a_probe_that_stalls_or_is_refused_costs_the_site_nothing() {
    static PROBES: AtomicU32 = AtomicU32::new(0);
    let bench = Bench::of_hosts(|host, path| match (host, path) {
        (_, "/robots.txt" | "/sitemap.xml") => FakeAnswer::not_found(),
        (_, "/") => {
            let links: Vec<String> = (0..60).map(|number| format!("/p{number}")).collect();
            page(&links.iter().map(String::as_str).collect::<Vec<_>>())
        }
        (_, path) if path.starts_with("/p") => page(&[]),
        ("busy.test", _) => {
            PROBES.fetch_add(1, Ordering::Relaxed);
            let mut answer = FakeAnswer::plain(503, "no");
            answer.headers.push(("retry-after", "3600".into()));
            answer
        }
        _ => {
            PROBES.fetch_add(1, Ordering::Relaxed);
            FakeAnswer::silence().after(std::time::Duration::from_secs(25))
        }
    });
    let mut both = polite_crawl();
    both.seeds = Seeds::Links(vec![url("http://busy.test/"), url("http://stall.test/")]);
    both.politeness.per_host = 1;
    let (store, record) = bench.crawl(both).await;
    assert_eq!(PROBES.load(Ordering::Relaxed), 2, "each origin once");
    assert_eq!((record.stats.ok, record.stats.failed), (122, 0));
    for row in store.hosts(record.crawl.no).unwrap() {
        assert_eq!((row.delay_ms, row.errors), (None, 0), "{}", row.host);
    }
    let longest_ms = |host: &str| {
        let requests = bench.fetcher.log().requests();
        let times: Vec<_> =
            requests.iter().filter(|it| it.host == host).map(|it| it.started_at).collect();
        times.windows(2).map(|pair| pair[1].ms_since(pair[0])).max().unwrap()
    };
    assert!(longest_ms("busy.test") < 3_600_000, "nobody waited for what the probe was told");
}

/// A crawl that a full disk paused could once not be resumed, and did not go on when there was space.
#[tokio::test]
async fn a_crawl_goes_on_by_itself_when_there_is_space_again() {
    let bench = Bench::of_site(|path| {
        let number: u64 = path.trim_start_matches('/').parse().unwrap_or(0);
        let links = [format!("/{}", 2 * number + 1), format!("/{}", 2 * number + 2)];
        FakeAnswer::page_about(number, &[&links[0], &links[1]])
    });
    let store = bench.open();
    let disk = Arc::new(ShortDisk::of(&store));
    disk.free_bytes.store(999, Ordering::Relaxed);
    let parts = EngineParts { store: Arc::clone(&disk) as _, ..bench.parts(&store) };
    let options = EngineOptions { parse_threads: 2, free_bytes_min: 1_000 };
    let engine = Engine::start(parts, &options).unwrap();
    let mut crawl = site_crawl();
    crawl.limits.pages_max = Some(2_000);
    let no = accept(&store, crawl);
    engine.handle().run(no).await.unwrap();
    let full = CrawlState::Paused { why: PauseReason::DiskFull };
    until(&engine, no, |progress| progress.state == full).await;
    let record = store.crawl(no).unwrap().unwrap();
    assert_eq!(record.state, full);
    assert_eq!(record.stats.pages, 0, "no step is begun without space");
    disk.free_bytes.store(1_100, Ordering::Relaxed);
    assert_eq!(finished(&engine, no).await.stats.pages, 2_000);
    let mut asked = bench.asked();
    asked.sort();
    let requests = asked.len();
    asked.dedup();
    assert_eq!(requests, asked.len(), "what was fetched meanwhile is kept, not asked for again");
    assert_eq!(engine.handle().holds_back(), None);
    engine.shutdown().await.unwrap();
}
