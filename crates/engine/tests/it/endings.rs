//! How visits and crawls end.

use std::time::Duration;

use telusur_engine::control::ListChanges;
use telusur_ledger::{CrawlStore, UrlState};
use telusur_model::{CrawlState, FinishReason, PauseReason, Reason};
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, accept, crawl, export, known, page, run, site_crawl, url};

fn finished(why: FinishReason) -> CrawlState {
    CrawlState::Finished { why }
}

#[tokio::test]
async fn redirects_lead_to_their_target() {
    let bench = Bench::of_site(|path| match path {
        "/" => page(&["/old"]),
        "/old" => FakeAnswer::redirect(301, "/middle"),
        "/middle" => FakeAnswer::redirect(302, "/new"),
        "/new" => page(&[]),
        _ => FakeAnswer::not_found(),
    });
    let (store, record) = bench.crawl(site_crawl()).await;
    assert_eq!((record.stats.ok, record.stats.redirected), (2, 2));
    let new = known(&store, "http://site.test/new");
    assert_eq!(new.redirects, ["http://site.test/old", "http://site.test/middle"]);
    assert_eq!(new.depth, 1);
    let old = export(&store).into_iter().find(|line| line.url.ends_with("/old")).unwrap();
    assert_eq!((old.status, old.final_url.as_str()), (301, "http://site.test/new"));
}

#[tokio::test]
async fn a_redirect_loop_ends_at_the_first_repeat() {
    let bench = Bench::of_site(|path| match path {
        "/" => page(&["/a", "/self"]),
        "/a" => FakeAnswer::redirect(302, "/b"),
        "/b" => FakeAnswer::redirect(302, "/a"),
        "/self" => FakeAnswer::redirect(302, "/self"),
        _ => FakeAnswer::not_found(),
    });
    let (_, record) = bench.crawl(site_crawl()).await;
    assert_eq!(record.stats.failures[&Reason::RedirectLoop], 2);
    assert_eq!(bench.fetcher.log().len(), 4);
}

#[tokio::test]
async fn endless_redirects_end_at_the_limit() {
    let bench = Bench::of_site(|path| match path {
        "/" => page(&["/hop/0"]),
        _ => {
            let number: u32 = path.trim_start_matches("/hop/").parse().unwrap();
            FakeAnswer::redirect(302, format!("/hop/{}", number + 1))
        }
    });
    let (_, record) = bench.crawl(site_crawl()).await;
    assert_eq!(record.stats.failures[&Reason::TooManyRedirects], 1);
    // The page, ten hops that were followed, and the one that was one too many.
    assert_eq!(bench.fetcher.log().len(), 12);
}

#[tokio::test]
async fn error_pages_are_kept_and_their_links_are_not_followed() {
    let bench = Bench::of_site(|path| match path {
        "/" => page(&["/gone"]),
        "/gone" => FakeAnswer { status: 410, ..page(&["/behind"]) },
        _ => panic!("asked for {path}"),
    });
    let (_, record) = bench.crawl(site_crawl()).await;
    assert_eq!((record.stats.pages, record.stats.ok), (2, 1));
    assert_eq!(record.stats.statuses[&410], 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_error_is_tried_three_times_and_then_kept() {
    let bench = Bench::of_site(|path| match path {
        "/" => page(&["/broken"]),
        _ => FakeAnswer::plain(500, "broken"),
    });
    let (store, record) = bench.crawl(site_crawl()).await;
    assert_eq!(record.stats.statuses[&500], 1);
    assert_eq!(bench.fetcher.log().counts()["site.test/broken"], 3);
    let line = export(&store).into_iter().find(|line| line.status == 500).unwrap();
    assert_eq!(line.attempts, 3);
}

#[tokio::test]
async fn no_more_pages_than_asked_for() {
    let bench = Bench::of_site(|path| {
        let number: u32 = path.trim_start_matches('/').parse().unwrap_or(0);
        page(&[&format!("/{}", 2 * number + 1), &format!("/{}", 2 * number + 2)])
    });
    let mut crawl = site_crawl();
    crawl.limits.pages_max = Some(25);
    crawl.politeness.per_host = 16;
    let (_, record) = bench.crawl(crawl).await;
    assert_eq!(record.stats.pages, 25);
    assert_eq!(record.state, finished(FinishReason::MaxPages));
    assert!(record.stats.queued > 0);
}

#[tokio::test]
async fn links_beyond_the_depth_are_skipped_with_the_reason() {
    let bench = Bench::of_site(|path| page(&[&format!("{path}x")]));
    let mut crawl = site_crawl();
    crawl.limits.depth_max = Some(3);
    let (store, record) = bench.crawl(crawl).await;
    assert_eq!(record.stats.pages, 4);
    let state = known(&store, "http://site.test/xxxx").state;
    assert!(matches!(state, UrlState::Skipped { reason: Reason::DepthLimit, .. }), "{state:?}");
}

#[tokio::test]
async fn the_duration_ends_a_crawl_gracefully() {
    let bench = Bench::of_site(|path| page(&[&format!("{path}x")]).after(SHORT));
    let mut crawl = site_crawl();
    crawl.limits.duration_ms_max = Some(300);
    let (_, record) = bench.crawl(crawl).await;
    assert_eq!(record.state, finished(FinishReason::MaxDuration));
    assert!(record.stats.active_ms >= 300, "{}", record.stats.active_ms);
    assert!(record.stats.queued > 0, "what was under way or waiting is still there");
}

const SHORT: std::time::Duration = std::time::Duration::from_millis(20);

#[tokio::test]
async fn a_start_url_that_cannot_be_fetched_is_said_so() {
    let bench = Bench::of_site(|_| FakeAnswer::not_found());
    let (_, record) = bench.crawl(site_crawl()).await;
    assert_eq!(record.state, finished(FinishReason::NoStart));
}

#[tokio::test]
async fn topic_pages_go_first() {
    let bench = Bench::of_site(|path| match path {
        "/" => page(&["/1", "/2", "/3", "/flood-news"]),
        _ => page(&[]),
    });
    let mut crawl = site_crawl();
    crawl.topic = vec!["Flood".into()];
    crawl.politeness.per_host = 1;
    bench.crawl(crawl).await;
    let order: Vec<String> =
        bench.fetcher.log().requests().into_iter().map(|request| request.target).collect();
    assert_eq!(order, ["/", "/flood-news", "/1", "/2", "/3"]);
}

#[tokio::test(start_paused = true)]
async fn pages_that_only_pretend_to_exist_are_told_by_a_probe() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" | "/sitemap.xml" => FakeAnswer::not_found(),
        "/" => page(&["/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8", "/9", "/10"]),
        // Found one after the other, so that the probe has come back before the last of them.
        "/10" => page(&["/11"]),
        "/11" => page(&["/12"]),
        "/12" => page(&["/gone"]),
        "/gone" => FakeAnswer::html("<title>Oops</title><p>There is nothing under this name."),
        _ if path.len() > 30 => {
            FakeAnswer::html("<title>Oops</title><p>There is nothing under this name.")
        }
        _ => FakeAnswer::html(format!("<title>Page {path}</title><p>This is page {path} of many.")),
    });
    let (store, record) = bench.crawl(crate::bench::polite_crawl()).await;
    assert_eq!(record.stats.ok, 14);
    let pages = telusur_ledger::PageStore::pages_after(&*store, record.crawl.no, 0, 100).unwrap();
    let soft: Vec<_> = pages.iter().filter(|page| page.soft_404).collect();
    assert_eq!(soft.iter().map(|page| page.url.path()).collect::<Vec<_>>(), ["/gone"]);
    assert_eq!(bench.asked().iter().filter(|target| target.len() > 40).count(), 1, "one probe");
}

#[tokio::test(start_paused = true)]
async fn a_crawl_that_is_repeated_says_what_changed() {
    use std::sync::atomic::{AtomicBool, Ordering};
    use telusur_model::Change;
    static LATER: AtomicBool = AtomicBool::new(false);
    let bench = Bench::of_site(|path| match (path, LATER.load(Ordering::Relaxed)) {
        ("/", false) => page(&["/same", "/changed", "/gone"]),
        ("/", true) => page(&["/same", "/changed", "/new"]),
        ("/changed", later) => FakeAnswer::html(if later { "new words" } else { "old words" }),
        ("/gone", true) => FakeAnswer::not_found(),
        _ => page(&[]),
    });
    let (store, record) = bench.crawl(site_crawl()).await;
    drop(store);
    LATER.store(true, Ordering::Relaxed);
    let mut again = site_crawl();
    again.recrawl_of = Some(record.crawl.no);
    let (store, record) = bench.crawl(again).await;
    let changes = &record.stats.changes;
    assert_eq!(
        (changes[&Change::New], changes[&Change::Changed], changes[&Change::Same]),
        (1, 2, 1)
    );
    let pages = telusur_ledger::PageStore::pages_after(&*store, record.crawl.no, 0, 100).unwrap();
    let new = pages.iter().find(|page| page.url.path() == "/new").unwrap();
    assert_eq!(new.change, Some(Change::New));
    let (changed, ()) = run(&store, &ListChanges { crawl: "last".into() });
    let mut listed: Vec<_> = changed.into_iter().map(|page| (page.what, page.url)).collect();
    listed.sort();
    let expected = [("changed", "/"), ("changed", "/changed"), ("gone", "/gone"), ("new", "/new")];
    let expected =
        expected.map(|(what, path)| (what.to_owned(), format!("http://site.test{path}")));
    assert_eq!(listed, expected);
}

/// An end that comes while a crawl is being stopped has one deadline for both, not one after the other.
#[tokio::test(start_paused = true)]
async fn the_end_waits_no_longer_than_it_is_told_to() {
    let silent = |_: &str, _: &str| page(&[]).after(Duration::from_secs(1_000_000));
    let (bench, clock) = Bench::of_hosts_by_hand(silent);
    let store = bench.open();
    let engine = bench.engine(&store);
    let hosts = ["http://a.test/", "http://b.test/", "http://c.test/"];
    let crawls = hosts.map(|it| accept(&store, crawl(vec![url(it)])));
    for no in crawls {
        engine.handle().run(no).await.unwrap();
    }
    while bench.fetcher.log().len() < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let ([stopped, paused, kept], handle) = (crawls, engine.handle());
    let (_, is_paused, ended, ()) = tokio::join!(
        handle.stop(stopped),
        handle.pause(paused),
        engine.shutdown_within(500),
        async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            // Far from the eight seconds that a crawl has otherwise.
            clock.advance_ms(1_000);
        }
    );
    ended.unwrap();
    is_paused.unwrap();
    let state = |no| store.crawl(no).unwrap().unwrap().state;
    assert_eq!(state(kept), CrawlState::Running);
    assert_eq!(state(stopped), finished(FinishReason::Stopped));
    // The next start once went on with it, although the pause had been promised.
    assert_eq!(state(paused), CrawlState::Paused { why: PauseReason::Asked });
}
