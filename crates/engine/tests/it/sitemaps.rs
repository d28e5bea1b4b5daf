//! How sitemaps are found, read and followed.

use telusur_ledger::{FrontierStore, UrlState};
use telusur_model::{CrawlNo, Reason, Timestamp, Via};
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, known, page, polite_crawl, url};

fn xml(body: impl Into<String>) -> FakeAnswer {
    FakeAnswer::ok("application/xml", body.into())
}

fn urlset(locs: &[&str]) -> FakeAnswer {
    let entries: String = locs.iter().map(|loc| format!("<url><loc>{loc}</loc></url>")).collect();
    xml(format!("<urlset>{entries}</urlset>"))
}

fn index(locs: &[&str]) -> FakeAnswer {
    let entries: String =
        locs.iter().map(|loc| format!("<sitemap><loc>{loc}</loc></sitemap>")).collect();
    xml(format!("<sitemapindex>{entries}</sitemapindex>"))
}

#[tokio::test(start_paused = true)]
async fn sitemaps_that_robots_txt_names_are_read() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => FakeAnswer::ok("text/plain", "Sitemap: /maps/index.xml\n"),
        "/maps/index.xml" => index(&["http://site.test/maps/1.xml", "/maps/2.txt"]),
        "/maps/1.xml" => xml("<urlset><url><loc>/dated</loc><lastmod>1970-01-02</lastmod></url>\
             <url><loc>http://elsewhere.test/</loc></url></urlset>"),
        "/maps/2.txt" => FakeAnswer::ok("text/plain", "http://site.test/listed\n"),
        "/" | "/dated" | "/listed" => page(&[]),
        other => panic!("{other} was asked for"),
    });
    let (store, record) = bench.crawl(polite_crawl()).await;
    assert_eq!((record.stats.ok, record.stats.sitemaps), (3, 3));
    assert_eq!(record.stats.skips[&Reason::OutOfScope], 1);
    let dated = known(&store, "http://site.test/dated");
    assert_eq!((dated.via, dated.depth), (Via::Sitemap, 1));
    assert_eq!(dated.lastmod, Some(Timestamp(86_400_000)));
    assert_eq!(dated.referrer.as_deref(), Some("http://site.test/maps/1.xml"));
}

#[tokio::test(start_paused = true)]
async fn without_a_word_the_usual_place_is_tried_and_its_absence_is_no_error() {
    let bench = Bench::of_site(|path| match path {
        "/" => page(&[]),
        _ => FakeAnswer::not_found(),
    });
    let (store, record) = bench.crawl(polite_crawl()).await;
    assert_eq!((record.stats.sitemaps, record.stats.errors(), record.stats.pages), (1, 0, 1));
    let guessed = store.sitemap(CrawlNo(1), &url("http://site.test/sitemap.xml")).unwrap().unwrap();
    assert!(matches!(
        guessed.state,
        UrlState::Sitemap { trouble: Some(why), .. } if why == "status 404"
    ));
}

#[tokio::test(start_paused = true)]
async fn sitemaps_can_be_left_out_or_named() {
    let bench = Bench::of_site(|path| match path {
        "/feed" => FakeAnswer::ok(
            "application/rss+xml",
            "<rss><channel><item><link>http://site.test/news</link></item></channel></rss>",
        ),
        "/news" | "/" => page(&[]),
        "/robots.txt" => FakeAnswer::ok("text/plain", "Sitemap: /named.xml"),
        other => panic!("{other} was asked for"),
    });
    let mut crawl = polite_crawl();
    crawl.sitemaps.discover = false;
    crawl.sitemaps.urls = vec![url("http://site.test/feed")];
    crawl.seeds = telusur_model::Seeds::Links(Vec::new());
    let (_, record) = bench.crawl(crawl).await;
    assert_eq!((record.stats.ok, record.stats.sitemaps), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_index_that_lists_itself_and_others_without_end_is_bounded() {
    let bench = Bench::of_site(|path| match path {
        "/" => page(&[]),
        "/robots.txt" => FakeAnswer::not_found(),
        "/sitemap.xml" => index(&["/sitemap.xml", "/a", "/b"]),
        deeper => index(&[&format!("{deeper}a"), &format!("{deeper}b")]),
    });
    let (_, record) = bench.crawl(polite_crawl()).await;
    // The first, its two children, and the four below them, whose entries are left out.
    assert_eq!(record.stats.sitemaps, 7);
}

#[tokio::test(start_paused = true)]
async fn hostile_sitemaps_cost_themselves() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => FakeAnswer::ok(
            "text/plain",
            "Sitemap: /bomb.xml\nSitemap: /html\nSitemap: /cut.xml\nSitemap: /odd.xml\n\
             Sitemap: file:///etc/passwd\nSitemap: javascript:alert(1)\n",
        ),
        "/bomb.xml" => xml("<!DOCTYPE x [<!ENTITY a \"b\">]><urlset><url><loc>/x</loc></url>"),
        "/html" => page(&["/not-a-list"]),
        "/cut.xml" => xml("<urlset><url><loc>/before</loc></url><url><loc>/aft"),
        "/odd.xml" => urlset(&["file:///etc/passwd", "javascript:alert(1)", " /odd\n"]),
        "/" | "/before" | "/odd" => page(&[]),
        other => panic!("{other} was asked for"),
    });
    let (store, record) = bench.crawl(polite_crawl()).await;
    assert_eq!((record.stats.ok, record.stats.sitemaps), (3, 4));
    let trouble = |path: &str| {
        let file = url(&format!("http://site.test{path}"));
        match store.sitemap(CrawlNo(1), &file).unwrap().unwrap().state {
            UrlState::Sitemap { trouble, dropped, .. } => (trouble.unwrap_or_default(), dropped),
            other => panic!("{other:?}"),
        }
    };
    assert!(trouble("/bomb.xml").0.starts_with("doctype_refused"));
    assert!(trouble("/html").0.starts_with("not_a_sitemap"));
    assert_eq!(trouble("/odd.xml").1, 2);
}

#[tokio::test(start_paused = true)]
async fn robots_txt_also_speaks_about_sitemaps() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => FakeAnswer::ok("text/plain", "User-agent: *\nDisallow: /*.xml$\n"),
        "/" => page(&[]),
        other => panic!("{other} was asked for"),
    });
    let (store, record) = bench.crawl(polite_crawl()).await;
    assert_eq!(record.stats.skips[&Reason::RobotsDisallowed], 1);
    let skipped = store.sitemap(CrawlNo(1), &url("http://site.test/sitemap.xml")).unwrap().unwrap();
    assert!(matches!(skipped.state, UrlState::Skipped { .. }));
}
