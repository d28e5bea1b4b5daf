//! What hostile pages, robots.txt and sitemaps make of a crawl. The numbers in comments are those of
//! the public list of bad inputs.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use telusur_engine::control::ReadCrawl;
use telusur_ledger::{CrawlStore, UrlState};
use telusur_model::{CrawlNo, Reason};
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, export, known, page, polite_crawl, run, site_crawl};

#[tokio::test(start_paused = true)]
async fn links_that_differ_in_nothing_that_matters_are_one() {
    // U10.
    let bench = Bench::of_site(|path| match path {
        "/" => {
            let mut links = vec!["HTTP://SITE.TEST:80/x".to_owned(), "/y/../x".to_owned()];
            for number in 0..1_000 {
                links.push(format!("/x#{number}"));
                links.push(format!("/x?utm_source={number}&fbclid={number}"));
                links.push(format!("/x?a=1&b=2&utm_id={number}"));
                links.push(format!("/x?b=2&utm_id={number}&a=1"));
            }
            page(&links.iter().map(String::as_str).collect::<Vec<_>>())
        }
        _ => page(&[]),
    });
    let (_, record) = bench.crawl(site_crawl()).await;
    assert_eq!((record.stats.discovered, record.stats.ok), (3, 3));
    assert_eq!(bench.asked().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn links_that_nobody_can_fetch_are_counted_and_not_stored() {
    // U2, U9, U14.
    let bench = Bench::of_site(|path| match path {
        "/" => {
            let data = format!("data:text/html,{}", "x".repeat(3_000));
            let long = format!("/{}", "x".repeat(8_193));
            let longer = format!("/{}", "x".repeat(65_536));
            let other = ["javascript:alert(1)", "mailto:a@b.org", "tel:1", "ftp://a.org/"];
            let more = ["file:///etc/passwd", "http+unix://x/", &data];
            let none = ["", "#", " ", "http:///x:y:z", "http://[::1", &long, &longer];
            page(&[&other[..], &more[..], &none[..]].concat())
        }
        other => panic!("{other} was asked for"),
    });
    let (_, record) = bench.crawl(site_crawl()).await;
    assert_eq!((record.stats.ok, record.stats.other_schemes), (1, 7));
    assert_eq!(record.stats.discovered, 1);
}

#[tokio::test(start_paused = true)]
async fn two_errors_and_then_a_page_are_one_page_of_three_attempts() {
    // H17.
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let bench = Bench::of_site(|_| match ASKED.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => FakeAnswer::plain(500, "not yet"),
        _ => page(&[]),
    });
    let (store, record) = bench.crawl(site_crawl()).await;
    assert_eq!((record.stats.ok, record.stats.pages), (1, 1));
    let lines = export(&store);
    assert_eq!((lines.len(), lines[0].status, lines[0].attempts), (1, 200, 3));
}

#[tokio::test(start_paused = true)]
async fn ten_redirects_lead_somewhere_and_all_are_on_record() {
    // R2.
    let bench = Bench::of_site(|path| match path.strip_prefix("/hop/") {
        Some("10") => page(&[]),
        Some(hop) => FakeAnswer::redirect(302, format!("/hop/{}", hop.parse::<u32>().unwrap() + 1)),
        None => FakeAnswer::redirect(301, "/hop/1"),
    });
    let (store, record) = bench.crawl(site_crawl()).await;
    assert_eq!((record.stats.ok, record.stats.redirected), (1, 10));
    assert_eq!(known(&store, "http://site.test/hop/10").redirects.len(), 10);

    let bench = Bench::of_site(|path| {
        let hop: u32 = path.trim_start_matches("/hop/").parse().unwrap_or(0);
        FakeAnswer::redirect(302, format!("/hop/{}", hop + 1))
    });
    let (store, record) = bench.crawl(site_crawl()).await;
    assert_eq!(record.stats.failures[&Reason::TooManyRedirects], 1);
    assert_eq!(known(&store, "http://site.test/hop/10").redirects.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn pages_that_refresh_in_circles_are_asked_once_each() {
    // R9.
    let bench = Bench::of_site(|path| match path {
        "/" => FakeAnswer::html("<meta http-equiv=refresh content='0'><a href=/a>a</a>"),
        "/a" => FakeAnswer::html("<meta http-equiv=refresh content='0;url=/b'>"),
        "/b" => FakeAnswer::html(
            "<meta http-equiv=refresh content='0;url=/a'><script>location='/script'</script>",
        ),
        other => panic!("{other} was asked for"),
    });
    let (_, record) = bench.crawl(site_crawl()).await;
    assert_eq!(record.stats.ok, 3);
    assert_eq!(bench.asked(), ["site.test/", "site.test/a", "site.test/b"]);
}

#[tokio::test(start_paused = true)]
async fn a_start_url_that_moved_to_another_host_is_named() {
    // R12.
    let bench = Bench::of_hosts(|host, path| match (host, path) {
        ("site.test", "/") => FakeAnswer::redirect(301, "http://elsewhere.test/"),
        ("site.test", _) => FakeAnswer::not_found(),
        other => panic!("{other:?} was asked for"),
    });
    let (store, _) = bench.crawl(polite_crawl()).await;
    let (_, crawl) = run(&store, &ReadCrawl { crawl: "last".into() });
    let moved = ("http://site.test/".to_owned(), "http://elsewhere.test/".to_owned());
    assert_eq!(crawl.moved_seeds, [moved]);
}

#[tokio::test(start_paused = true)]
async fn robots_txt_is_read_to_its_limit_and_no_further() {
    // B1: what lies beyond half a mebibyte of ten is not read.
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => {
            let padding = "# nothing to say\n".repeat(600_000);
            let text = format!("User-agent: *\nDisallow: /early\n{padding}Disallow: /late\n");
            FakeAnswer::ok("text/plain", text)
        }
        "/" => page(&["/early", "/late"]),
        "/early" => panic!("it is forbidden"),
        _ => page(&[]),
    });
    let (_, record) = bench.crawl(polite_crawl()).await;
    assert_eq!((record.stats.ok, record.stats.skips[&Reason::RobotsDisallowed]), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_sitemap_that_shrinks_takes_nothing_back() {
    // S11.
    static LATER: AtomicBool = AtomicBool::new(false);
    let bench = Bench::of_site(|path| match (path, LATER.load(Ordering::Relaxed)) {
        ("/sitemap.xml", false) => FakeAnswer::ok("text/plain", "/a\nhttp://site.test/b\n/c\n"),
        ("/sitemap.xml", true) => FakeAnswer::ok("text/plain", "http://site.test/a\n"),
        ("/robots.txt", _) => FakeAnswer::not_found(),
        _ => page(&[]),
    });
    let (store, first) = bench.crawl(polite_crawl()).await;
    drop(store);
    LATER.store(true, Ordering::Relaxed);
    let mut again = polite_crawl();
    again.recrawl_of = Some(first.crawl.no);
    let (store, _) = bench.crawl(again).await;
    let kept = store.crawl(CrawlNo(1)).unwrap().unwrap();
    assert_eq!(kept.stats, first.stats);
    let state = known(&store, "http://site.test/b").state;
    assert!(matches!(state, UrlState::Page { .. }), "{state:?}");
}
