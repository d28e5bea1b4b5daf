//! Stored pages are read again.

use std::sync::Arc;

use telusur_engine::control::{ReparseCrawl, ReparseItem, RereadChange, RereadPage, RereadTotal};
use telusur_ledger::{CrawlStore, Event, FrontierStore, PageStore, Step, UrlState};
use telusur_model::{Crawl, CrawlNo, Keep, PageRecord, PageUrl};
use telusur_store_embedded::EmbeddedStore;
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, assert_verified, finished, run, site_crawl, url};

fn reparse(store: &Arc<EmbeddedStore>) -> (Vec<RereadPage>, RereadTotal) {
    let (items, total) = run(store, &ReparseCrawl { crawl: "last".into(), free_bytes_min: 0 });
    let pages = items.into_iter().map(|item| match item {
        ReparseItem::Reread(page) => *page,
        damaged => panic!("{damaged:?}"),
    });
    (pages.collect(), total)
}

fn page(store: &EmbeddedStore, crawl: CrawlNo, url: &PageUrl) -> PageRecord {
    let UrlState::Page { seq } = store.url(crawl, url).unwrap().unwrap().state else {
        panic!("{url} is no page");
    };
    store.page(crawl, seq).unwrap().unwrap()
}

fn web() -> Bench {
    Bench::of_site(|path| match path {
        "/" => FakeAnswer::html("<title>Now</title><a href=/a>a</a><a href=/b rel=nofollow>b</a>"),
        "/a" | "/b" => FakeAnswer::html("<p>A leaf."),
        _ => FakeAnswer::not_found(),
    })
}

#[tokio::test]
async fn a_page_that_reads_the_same_stays_as_it_is() {
    let bench = web();
    let (store, record) = bench.crawl(site_crawl()).await;
    let no = record.crawl.no;
    let before = store.pages_after(no, 0, 10).unwrap();
    let (pages, total) = reparse(&store);
    assert_eq!((pages, total), (vec![], RereadTotal { pages: 3, ..RereadTotal::default() }));
    assert_eq!(store.pages_after(no, 0, 10).unwrap(), before);
}

#[tokio::test]
async fn what_an_older_extractor_overlooked_is_recorded_and_queued() {
    let bench = web();
    let mut crawl = site_crawl();
    crawl.politeness.obey_rel_nofollow = true;
    let (store, record) = bench.crawl(crawl).await;
    let no = record.crawl.no;
    // As if an older version had not seen the title, and had taken a link for one that must not be
    // followed.
    let home = url("http://site.test/");
    let now = page(&store, no, &home);
    let old = PageRecord { title: None, link_count: 1, ..now.clone() };
    store.commit(Step::of(Event::PageReadAgain(Box::new(old)))).unwrap();
    let mut crawl = record.crawl;
    crawl.politeness.obey_rel_nofollow = false;
    store.change(&crawl).unwrap();

    let (pages, total) = reparse(&store);
    let change = |what: &str, before: &str, now: &str| RereadChange {
        what: what.into(),
        before: before.into(),
        now: now.into(),
    };
    let changes = vec![change("title", "", "Now"), change("links", "1", "2")];
    assert_eq!(pages, [RereadPage { url: home.to_string(), changes }]);
    assert_eq!(total, RereadTotal { pages: 2, changed: 1, not_kept: 0, queued: 1 });
    let again = page(&store, no, &home);
    assert_eq!(again, PageRecord { seq: again.seq, ..now });
    let found = url("http://site.test/b");
    let known = store.url(no, &found).unwrap().unwrap();
    assert!(matches!(known.state, UrlState::Queued { .. }));
    assert_eq!((known.depth, known.referrer.as_deref()), (1, Some(home.as_str())));
    assert_verified(&store);
    assert_eq!(reparse(&store).1, RereadTotal { pages: 2, ..RereadTotal::default() });

    let engine = bench.engine(&store);
    engine.handle().run(no).await.unwrap();
    finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    assert_eq!(page(&store, no, &found).status, 200, "a resumed crawl fetches it");
}

#[tokio::test]
async fn pages_without_a_body_are_counted() {
    let bench = web();
    let crawl = Crawl { keep: Keep::Text, ..site_crawl() };
    let (store, _) = bench.crawl(crawl).await;
    let (pages, total) = reparse(&store);
    assert_eq!((pages, total), (vec![], RereadTotal { not_kept: 3, ..RereadTotal::default() }));
}
