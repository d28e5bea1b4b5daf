//! How hosts are treated while crawls run, stop and start again.

use std::collections::HashMap;
use std::time::Duration;

use telusur_ledger::CrawlStore;
use telusur_model::{Clock, CrawlState, Moment};
use telusur_testkit::clock::ManualClock;
use telusur_testkit::fake_web::PageCounts;
use telusur_testkit::{FakeAnswer, FakeWebSpec};

use crate::bench::{Bench, accept, crawl, finished, polite_crawl, until, url};

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
    assert_spaced(&bench, 1_000);
}

/// Longer than the minutes by which the paused clock runs ahead while a directory is opened.
const HALF_AN_HOUR_MS: u64 = 30 * 60 * 1000;

/// The same hosts are asked by one crawl after another, two in each process.
#[tokio::test(start_paused = true)]
async fn the_delay_holds_from_crawl_to_crawl() {
    let (bench, web) = Bench::of_web(FakeWebSpec { pages: PageCounts::Even { total: 4 }, ..web() });
    for is_closed in [true, false, true] {
        let store = bench.open();
        let engine = bench.engine(&store);
        for _ in 0..2 {
            let mut crawl = crawl(web.seeds());
            crawl.politeness.delay_ms = HALF_AN_HOUR_MS;
            let no = accept(&store, crawl);
            engine.handle().run(no).await.unwrap();
            finished(&engine, no).await;
        }
        if is_closed {
            engine.shutdown().await.unwrap();
        } else {
            engine.vanish().await;
        }
    }
    assert_spaced(&bench, HALF_AN_HOUR_MS);
}

/// Longer than a paused clock runs ahead while threads of the engine are at work.
const SLOW: Duration = Duration::from_secs(10_000_000);

/// A page that was under way when the engine was stopped left no trace: its host was asked again as soon
/// as the next engine ran.
#[tokio::test(start_paused = true)]
async fn the_delay_holds_after_a_stop_with_visits_under_way() {
    let (bench, clock) =
        Bench::of_hosts_by_hand(|_, _| FakeAnswer::html("<title>Slow</title>").after(SLOW));
    let mut crawl = crawl(vec![url("http://a.test/")]);
    crawl.politeness.delay_ms = HALF_AN_HOUR_MS;
    crawl.fetch.timeout_ms = u64::MAX;
    let mut no = None;
    for requests in 1..=2 {
        let store = bench.open();
        let engine = bench.engine(&store);
        let no = *no.get_or_insert_with(|| accept(&store, crawl.clone()));
        engine.handle().run(no).await.unwrap();
        while bench.fetcher.log().len() < requests {
            tokio::time::sleep(Duration::from_secs(10)).await;
            clock.advance_ms(60_000);
        }
        // The visit has its time to end, and does not.
        let (stopped, ()) = tokio::join!(engine.shutdown(), async {
            tokio::task::yield_now().await;
            while clock.now() < stop_by(&bench) {
                tokio::time::sleep(Duration::from_secs(1)).await;
                clock.advance_ms(1_000);
            }
        });
        stopped.unwrap();
        // Its task has the directory open until it ends. Nobody's clock but its own goes on.
        tokio::time::sleep(2 * SLOW).await;
    }
    assert_spaced(&bench, HALF_AN_HOUR_MS);
}

/// Some time after the last request: longer than an ending crawl waits for its visits.
fn stop_by(bench: &Bench) -> Moment {
    bench.fetcher.log().requests().last().unwrap().started_at.plus_ms(90_000)
}

/// What is done to a directory between a kill and the next crawl.
#[derive(Clone, Copy)]
enum Meanwhile {
    /// It is opened and closed, as by an import.
    Closed,
    /// Another crawl is removed.
    Removed,
    /// A crawl of another host runs to its end.
    Crawled,
}

/// Kills an engine with a request to `a.test` under way, does something else, and starts a crawl that asks
/// `a.test` again: the one that was killed, or another one.
async fn ask_after_kill(meanwhile: Meanwhile, is_resumed: bool) {
    let (bench, clock) = Bench::of_hosts_by_hand(|host, _| match host {
        "a.test" => FakeAnswer::html("<title>Slow</title>").after(SLOW),
        _ => FakeAnswer::html("<title>Quick</title>"),
    });
    let crawl_of = |seed: &str, delay_ms| {
        let mut crawl = crawl(vec![url(seed)]);
        crawl.politeness.delay_ms = delay_ms;
        crawl.fetch.timeout_ms = u64::MAX;
        crawl
    };
    let store = bench.open();
    let other = accept(&store, crawl_of("http://b.test/", 1_000));
    let killed = accept(&store, crawl_of("http://a.test/", HALF_AN_HOUR_MS));
    // The directory was closed in order before.
    store.close().unwrap();
    drop(store);
    let store = bench.open();
    let engine = bench.engine(&store);
    engine.handle().run(killed).await.unwrap();
    wait_for_requests(&bench, &clock, 1).await;
    engine.vanish().await;
    drop(store);
    // Its task has the directory open until it ends. Nobody's clock but its own goes on.
    tokio::time::sleep(2 * SLOW).await;
    let asked_at = bench.fetcher.log().requests()[0].started_at;
    let store = bench.open();
    match meanwhile {
        Meanwhile::Closed => store.close().unwrap(),
        Meanwhile::Removed => {
            store.remove(other).unwrap();
            store.close().unwrap();
        }
        Meanwhile::Crawled => {
            let engine = bench.engine(&store);
            engine.handle().run(other).await.unwrap();
            while !matches!(store.crawl(other).unwrap().unwrap().state, CrawlState::Finished { .. })
            {
                tokio::time::sleep(Duration::from_secs(10)).await;
                clock.advance_ms(60_000);
            }
            engine.shutdown().await.unwrap();
        }
    }
    drop(store);
    let reopened_at = clock.now();
    let store = bench.open();
    let engine = bench.engine(&store);
    let no = if is_resumed {
        killed
    } else {
        accept(&store, crawl_of("http://a.test/", HALF_AN_HOUR_MS))
    };
    engine.handle().run(no).await.unwrap();
    let before = bench.fetcher.log().len();
    wait_for_requests(&bench, &clock, before + 1).await;
    let next_at = bench.fetcher.log().requests().last().unwrap().started_at;
    engine.vanish().await;
    assert!(next_at.ms_since(asked_at) >= HALF_AN_HOUR_MS, "{asked_at:?} {next_at:?}");
    // Nobody waits for longer than for the delay.
    assert!(next_at.ms_since(reopened_at) <= HALF_AN_HOUR_MS + 10 * 60_000, "{next_at:?}");
}

async fn wait_for_requests(bench: &Bench, clock: &ManualClock, count: usize) {
    while bench.fetcher.log().len() < count {
        tokio::time::sleep(Duration::from_secs(10)).await;
        clock.advance_ms(60_000);
    }
}

/// The next request once came at once: the import had closed the directory in order, and the kill was
/// forgotten.
#[tokio::test(start_paused = true)]
async fn the_delay_holds_when_the_directory_was_closed_after_a_kill() {
    ask_after_kill(Meanwhile::Closed, true).await;
    ask_after_kill(Meanwhile::Closed, false).await;
}

#[tokio::test(start_paused = true)]
async fn the_delay_holds_when_a_crawl_was_removed_after_a_kill() {
    ask_after_kill(Meanwhile::Removed, true).await;
    ask_after_kill(Meanwhile::Removed, false).await;
}

#[tokio::test(start_paused = true)]
async fn the_delay_holds_when_another_crawl_ran_after_a_kill() {
    ask_after_kill(Meanwhile::Crawled, true).await;
    ask_after_kill(Meanwhile::Crawled, false).await;
}

/// What an earlier crawl learned about a host counts as well as what it was told.
#[tokio::test(start_paused = true)]
async fn a_delay_that_the_host_asked_for_holds_from_crawl_to_crawl() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => FakeAnswer::plain(200, "User-agent: *\nCrawl-delay: 1800\n"),
        "/" => FakeAnswer::html("<title>Home</title>"),
        _ => FakeAnswer::not_found(),
    });
    for _ in 0..2 {
        let store = bench.open();
        let engine = bench.engine(&store);
        for _ in 0..2 {
            let mut crawl = polite_crawl();
            crawl.sitemaps.discover = false;
            crawl.politeness.delay_ms = 10;
            crawl.politeness.crawl_delay_max_ms = HALF_AN_HOUR_MS;
            let no = accept(&store, crawl);
            engine.handle().run(no).await.unwrap();
            finished(&engine, no).await;
        }
        engine.shutdown().await.unwrap();
    }
    assert_spaced(&bench, HALF_AN_HOUR_MS);
}

/// A host that asked one crawl to wait once was asked by the next crawl at once.
#[tokio::test(start_paused = true)]
async fn a_wait_that_the_host_asked_for_holds_from_crawl_to_crawl() {
    let (bench, clock) = Bench::of_hosts_by_hand(|_, _| {
        let mut answer = FakeAnswer::plain(429, "too fast");
        answer.headers.push(("retry-after", "1800".into()));
        answer
    });
    let mut asked_at = Vec::new();
    for requests in 1..=2 {
        let store = bench.open();
        let engine = bench.engine(&store);
        let mut crawl = crawl(vec![url("http://a.test/")]);
        crawl.politeness.delay_ms = 10;
        // It waits for as long as it is asked to.
        crawl.limits.patience_ms = 0;
        let no = accept(&store, crawl);
        engine.handle().run(no).await.unwrap();
        wait_for_requests(&bench, &clock, requests).await;
        asked_at.push(bench.fetcher.log().requests().last().unwrap().started_at);
        // The answer is in the store before the engine ends.
        while store.crawl(no).unwrap().unwrap().stats.visits == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            clock.advance_ms(1);
        }
        engine.shutdown().await.unwrap();
    }
    assert!(asked_at[1].ms_since(asked_at[0]) >= HALF_AN_HOUR_MS, "{asked_at:?}");
}

/// No host was asked twice within the delay, by anybody.
#[track_caller]
fn assert_spaced(bench: &Bench, delay_ms: u64) {
    let mut by_host: HashMap<String, Vec<Moment>> = HashMap::new();
    for request in bench.fetcher.log().requests() {
        by_host.entry(request.host).or_default().push(request.started_at);
    }
    assert!(by_host.values().all(|times| times.len() > 1), "{by_host:?}");
    for (host, times) in by_host {
        for pair in times.windows(2) {
            assert!(pair[1].ms_since(pair[0]) >= delay_ms, "{host}: {pair:?}");
        }
    }
}
