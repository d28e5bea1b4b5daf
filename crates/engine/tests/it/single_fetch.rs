//! Single fetches: visits like those of a crawl, stored nowhere.

use std::collections::HashMap;

use telusur_engine::{Arrived, Engine, FetchError, FetchRequest};
use telusur_ledger::CrawlStore;
use telusur_model::{FetchRules, Politeness, Reason};
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, accept, assert_verified, crawl, page, until, url};

/// Longer than a paused clock runs ahead while threads of the engine are at work.
const HALF_AN_HOUR_MS: u64 = 30 * 60 * 1000;

fn request(text: &str) -> FetchRequest {
    FetchRequest {
        url: url(text),
        named: url(text),
        fetch: FetchRules::default(),
        politeness: Politeness { delay_ms: HALF_AN_HOUR_MS, ..Politeness::default() },
        body_bytes_max: 1 << 20,
        wait_ms_max: u64::MAX,
    }
}

async fn fetch(engine: &Engine, text: &str) -> Result<Arrived, FetchError> {
    engine.handle().fetch(request(text)).await
}

/// The answer was a refusal with this reason.
#[track_caller]
fn refused(result: Result<Arrived, FetchError>) -> (Reason, String) {
    match result.unwrap_err() {
        FetchError::NotFetched(failed) => (failed.why, failed.detail),
        other => panic!("{other}"),
    }
}

/// Requests to one host were this far apart.
#[track_caller]
fn assert_apart(bench: &Bench, delay_ms: u64) {
    let mut last = HashMap::new();
    for request in bench.fetcher.log().requests() {
        if let Some(before) = last.insert(request.host.clone(), request.started_at) {
            let gap_ms = request.started_at.ms_since(before);
            assert!(gap_ms >= delay_ms, "{}{} after {gap_ms} ms", request.host, request.target);
        }
    }
}

fn site(host: &str, path: &str) -> FakeAnswer {
    match (host, path) {
        ("a.test", "/robots.txt") => FakeAnswer::plain(200, "User-agent: *\nDisallow: /private\n"),
        ("a.test", "/moved") => FakeAnswer::redirect(301, "/here"),
        ("a.test", "/away") => FakeAnswer::redirect(302, "http://b.test/secret"),
        ("a.test", "/round") => FakeAnswer::redirect(302, "/round"),
        ("b.test", "/robots.txt") => FakeAnswer::plain(200, "User-agent: *\nDisallow: /secret\n"),
        (_, "/robots.txt") => FakeAnswer::not_found(),
        _ => page(&["/next"]),
    }
}

/// robots.txt, the page and every hop once followed each other at once, and robots.txt was read each time.
#[tokio::test(start_paused = true)]
async fn robots_txt_page_and_hops_keep_the_delay() {
    let bench = Bench::of_hosts(site);
    let store = bench.open();
    let engine = bench.engine(&store);
    let arrived = fetch(&engine, "http://a.test/moved").await.unwrap();
    assert_eq!(arrived.page.url, url("http://a.test/here"));
    assert_eq!(arrived.redirects, ["http://a.test/moved"]);
    fetch(&engine, "http://a.test/again").await.unwrap();
    assert_eq!(
        bench.asked(),
        ["a.test/robots.txt", "a.test/moved", "a.test/here", "a.test/again"],
        "robots.txt is read once for two fetches"
    );
    assert_apart(&bench, HALF_AN_HOUR_MS);
    assert!(store.crawls().unwrap().is_empty(), "nothing is stored");
    engine.shutdown().await.unwrap();
    assert_verified(&store);
}

#[tokio::test(start_paused = true)]
async fn fetches_at_the_same_time_share_the_delay_and_robots_txt() {
    let bench = Bench::of_hosts(site);
    let store = bench.open();
    let engine = bench.engine(&store);
    let (one, two, three) = tokio::join!(
        fetch(&engine, "http://a.test/1"),
        fetch(&engine, "http://a.test/2"),
        fetch(&engine, "http://a.test/3"),
    );
    assert!(one.is_ok() && two.is_ok() && three.is_ok());
    assert_apart(&bench, HALF_AN_HOUR_MS);
    let mut asked = bench.asked();
    assert_eq!(asked.remove(0), "a.test/robots.txt");
    asked.sort();
    assert_eq!(asked, ["a.test/1", "a.test/2", "a.test/3"]);
    engine.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_hop_is_judged() {
    let bench = Bench::of_hosts(site);
    let store = bench.open();
    let engine = bench.engine(&store);
    let (why, detail) = refused(fetch(&engine, "http://a.test/private").await);
    assert_eq!(why, Reason::RobotsDisallowed);
    assert!(detail.contains("line 2: Disallow: /private"), "{detail}");
    let (why, detail) = refused(fetch(&engine, "http://a.test/away").await);
    assert_eq!(why, Reason::RobotsDisallowed);
    assert!(detail.contains("/secret"), "{detail}");
    assert_eq!(refused(fetch(&engine, "http://a.test/round").await).0, Reason::RedirectLoop);
    assert_eq!(refused(fetch(&engine, "http://nowhere.invalid/").await).0, Reason::DnsError);
    let mut few = request("http://a.test/moved");
    few.fetch.redirects_max = 0;
    let (why, _) = refused(engine.handle().fetch(few).await);
    assert_eq!(why, Reason::TooManyRedirects);
    assert!(
        bench
            .asked()
            .iter()
            .all(|asked| !asked.ends_with("/private") && !asked.ends_with("/secret"))
    );
    assert_apart(&bench, HALF_AN_HOUR_MS);
    engine.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_crawl_and_a_fetch_share_the_delay() {
    let bench = Bench::of_hosts(|host, path| match path {
        "/" => page(&["/1", "/2", "/3", "/4", "/5", "/6"]),
        path => site(host, path),
    });
    let store = bench.open();
    let engine = bench.engine(&store);
    let mut crawl = crawl(vec![url("http://a.test/")]);
    crawl.politeness.delay_ms = HALF_AN_HOUR_MS;
    let no = accept(&store, crawl);
    engine.handle().run(no).await.unwrap();
    until(&engine, no, |progress| progress.stats.pages >= 1).await;
    // The fetch itself would not wait.
    let mut quick = request("http://a.test/mine");
    quick.politeness.delay_ms = 0;
    engine.handle().fetch(quick).await.unwrap();
    let asked = bench.asked();
    assert!(asked.len() < 5, "it does not wait for the end of the crawl: {asked:?}");
    until(&engine, no, |progress| progress.stats.pages >= 6).await;
    assert_apart(&bench, HALF_AN_HOUR_MS);
    engine.shutdown().await.unwrap();
}

/// Whoever would wait for too long is told when to come again, at once.
#[tokio::test(start_paused = true)]
async fn nobody_waits_for_longer_than_he_wants() {
    // A paused clock runs ahead of threads at work; this one stands still.
    let (bench, _clock) = Bench::of_hosts_by_hand(site);
    let store = bench.open();
    let engine = bench.engine(&store);
    let impatient = || FetchRequest { wait_ms_max: 10_000, ..request("http://a.test/page") };
    // The page would have to wait for robots.txt, which was just asked for.
    for _ in 0..2 {
        match engine.handle().fetch(impatient()).await.unwrap_err() {
            FetchError::MustWait { host, retry_after_ms } => {
                assert_eq!(host.as_str(), "a.test");
                assert!((1..=HALF_AN_HOUR_MS).contains(&retry_after_ms), "{retry_after_ms}");
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(bench.asked(), ["a.test/robots.txt"]);
    // Another host owes nothing, and a first request is not delayed.
    let mut other = request("http://c.test/page");
    other.politeness.robots = telusur_model::RobotsRules::Ignore;
    other.wait_ms_max = 0;
    engine.handle().fetch(other).await.unwrap();
    engine.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_host_asks_for_holds_for_the_next_fetch() {
    let bench = Bench::of_hosts(|host, path| match path {
        "/busy" => {
            let mut answer = FakeAnswer::plain(429, "too fast");
            answer.headers.push(("retry-after", "1800".into()));
            answer
        }
        path => site(host, path),
    });
    let store = bench.open();
    let engine = bench.engine(&store);
    let at_once = |text: &str| {
        let mut request = request(text);
        request.politeness.delay_ms = 0;
        request.politeness.robots = telusur_model::RobotsRules::Ignore;
        request
    };
    let busy = engine.handle().fetch(at_once("http://c.test/busy")).await.unwrap();
    assert_eq!(busy.page.status, 429, "the answer is told as it is, and not asked for again");
    engine.handle().fetch(at_once("http://c.test/page")).await.unwrap();
    assert_apart(&bench, HALF_AN_HOUR_MS);
    engine.shutdown().await.unwrap();
}

/// A host that a fetch asked is owed its delay by the next process, whether the first was closed or killed.
#[tokio::test(start_paused = true)]
async fn the_delay_holds_from_process_to_process() {
    let bench = Bench::of_hosts(site);
    for is_closed in [true, false, true] {
        let store = bench.open_again().await;
        let engine = bench.engine(&store);
        fetch(&engine, "http://a.test/page").await.unwrap();
        if is_closed {
            engine.shutdown().await.unwrap();
        } else {
            engine.vanish().await;
        }
    }
    assert_apart(&bench, HALF_AN_HOUR_MS);
    let asked = bench.asked();
    assert_eq!(asked.iter().filter(|asked| asked.ends_with("/robots.txt")).count(), 1, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn rules_that_were_read_are_there_for_others() {
    let bench = Bench::of_hosts(site);
    let store = bench.open();
    let engine = bench.engine(&store);
    let home = url("http://a.test/");
    assert!(engine.handle().stored_rules(&home, "telusur").unwrap().is_none());
    fetch(&engine, "http://a.test/").await.unwrap();
    let rules = engine.handle().stored_rules(&home, "telusur").unwrap().unwrap();
    assert!(!rules.verdict(&url("http://a.test/private")).allowed);
    engine.shutdown().await.unwrap();
}
