//! Pages that cannot be parsed, and days on which nothing can.

use std::sync::Arc;

use telusur_engine::EngineError;
use telusur_engine::control::{self, ErrorItem, ListErrors, ReparseCrawl, ReparseItem};
use telusur_ledger::{CrawlStore, FrontierStore, PageStore};
use telusur_model::{Crawl, Keep, PageContent, PageRecord, ParsedPage, RawPage, SearchPage};
use telusur_parse_pool::{InProcess, Parser, PoolError, ReadPage, Reading, VisibleText};
use telusur_store_embedded::EmbeddedStore;
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, accept, assert_verified, finished, run, site_crawl};

/// Breaks on pages whose path begins with `/bad`.
struct Fussy;

fn fuss<T>(page: &RawPage, read: ReadPage<T>) -> ReadPage<T> {
    match page.url.path().starts_with("/bad") {
        true => {
            let reading = Reading::Failed { why: "the parser died".to_owned() };
            ReadPage { reading, ..read }
        }
        false => read,
    }
}

impl Parser for Fussy {
    fn parse_all(
        &self,
        pages: &[&RawPage],
        text: VisibleText,
    ) -> Result<Vec<ReadPage<ParsedPage>>, PoolError> {
        let readings = InProcess::default().parse_all(pages, text)?.into_iter();
        Ok(pages.iter().zip(readings).map(|(page, reading)| fuss(page, reading)).collect())
    }

    fn read_for_search(
        &self,
        pages: &[&RawPage],
        text: VisibleText,
    ) -> Result<Vec<ReadPage<SearchPage>>, PoolError> {
        let readings = InProcess::default().read_for_search(pages, text)?.into_iter();
        Ok(pages.iter().zip(readings).map(|(page, reading)| fuss(page, reading)).collect())
    }

    fn read_all(&self, pages: &[&RawPage]) -> Result<Vec<ReadPage<PageContent>>, PoolError> {
        let readings = InProcess::default().read_all(pages)?.into_iter();
        Ok(pages.iter().zip(readings).map(|(page, reading)| fuss(page, reading)).collect())
    }
}

/// Cannot read anything.
struct Broken;

fn no_children() -> PoolError {
    PoolError::ChildrenDie { times: 12, why: "killed".to_owned() }
}

impl Parser for Broken {
    fn parse_all(
        &self,
        _: &[&RawPage],
        _: VisibleText,
    ) -> Result<Vec<ReadPage<ParsedPage>>, PoolError> {
        Err(no_children())
    }

    fn read_for_search(
        &self,
        _: &[&RawPage],
        _: VisibleText,
    ) -> Result<Vec<ReadPage<SearchPage>>, PoolError> {
        Err(no_children())
    }

    fn read_all(&self, _: &[&RawPage]) -> Result<Vec<ReadPage<PageContent>>, PoolError> {
        Err(no_children())
    }
}

fn web() -> Bench {
    Bench::of_site(|path| match path {
        "/" => FakeAnswer::html("<title>Home</title><a href=/bad>bad</a><a href=/good>good</a>"),
        "/bad" => FakeAnswer::html("<title>Bad</title><a href=/never>never</a>"),
        "/good" => FakeAnswer::html("<title>Good</title><a href=/last>last</a>"),
        "/last" => FakeAnswer::html("<title>Last</title>"),
        _ => FakeAnswer::not_found(),
    })
}

async fn fussy_crawl(bench: &Bench, crawl: Crawl) -> (Arc<EmbeddedStore>, Vec<PageRecord>) {
    let store = bench.open();
    let engine = bench.engine_with_parser(&store, Arc::new(Fussy));
    let no = accept(&store, crawl);
    engine.handle().run(no).await.unwrap();
    finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    assert_verified(&store);
    let pages = store.pages_after(no, 0, 10).unwrap();
    (store, pages)
}

fn bad_page(pages: &[PageRecord]) -> &PageRecord {
    pages.iter().find(|page| page.url.path() == "/bad").unwrap()
}

#[tokio::test]
async fn a_page_that_breaks_the_parser_costs_one_page() {
    let bench = web();
    let (store, pages) = fussy_crawl(&bench, site_crawl()).await;
    assert_eq!(pages.len(), 4, "the crawl goes on: {pages:?}");
    let bad = bad_page(&pages);
    assert_eq!(bad.parse_failed.as_deref(), Some("the parser died"));
    assert_eq!((bad.title.as_deref(), bad.link_count), (None, 0));
    let body = store.body(bad.crawl, bad.body.expect("it is kept as it came")).unwrap();
    assert!(body.bytes.starts_with(b"<title>Bad"));
    assert!(pages.iter().filter(|page| page.parse_failed.is_some()).count() == 1);
}

#[tokio::test]
async fn a_page_that_breaks_the_parser_is_an_error_that_is_counted_and_listed() {
    let bench = web();
    let (store, pages) = fussy_crawl(&bench, site_crawl()).await;
    let no = pages[0].crawl;
    let stats = store.crawl(no).unwrap().unwrap().stats;
    assert_eq!((stats.errors(), stats.parse_failed(), stats.failed), (1, 1, 0));
    let errors = |store| run(store, &ListErrors { crawl: "last".into() }).0;
    let listed = errors(&store);
    let [ErrorItem::Page(page)] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!((page.url.path(), page.parse_failed.as_deref()), ("/bad", Some("the parser died")));
    let host = store.hosts(no).unwrap().remove(0);
    assert_eq!((host.pages, host.errors), (4, 1));
    // Read again by a parser that can, it is no error any more.
    run(&store, &ReparseCrawl { crawl: "last".into(), free_bytes_min: 0 });
    let stats = store.crawl(no).unwrap().unwrap().stats;
    assert_eq!((stats.errors(), stats.failures.len()), (0, 0));
    assert_eq!(errors(&store), []);
}

#[tokio::test]
async fn a_page_that_breaks_the_parser_is_kept_raw_where_only_text_is_kept() {
    for (keep, is_kept) in [(Keep::Text, true), (Keep::None, false)] {
        let bench = web();
        let (_, pages) = fussy_crawl(&bench, Crawl { keep, ..site_crawl() }).await;
        assert_eq!(bad_page(&pages).body.is_some(), is_kept, "{keep:?}");
    }
}

#[tokio::test]
async fn a_page_that_broke_the_parser_is_read_again_when_it_is_asked_for() {
    let bench = web();
    let (store, pages) = fussy_crawl(&bench, site_crawl()).await;
    let no = bad_page(&pages).crawl;
    // Not by the way.
    let url = "http://site.test/bad".to_owned();
    let (_, shown) = run(&store, &control::ReadPage { url, crawl: None, with_body: false });
    assert_eq!(shown.expect("it is stored").content, None);
    // The parser of this control is not fussy.
    let (items, _) = run(&store, &ReparseCrawl { crawl: "last".into(), free_bytes_min: 0 });
    let ReparseItem::Reread(page) = &items[0] else { panic!("{items:?}") };
    assert_eq!(page.url, "http://site.test/bad");
    let what: Vec<_> = page.changes.iter().map(|change| change.what.as_str()).collect();
    assert_eq!(what, ["title", "links", "parse_failed"]);
    let again = store.pages_after(no, 0, 10).unwrap();
    assert_eq!(bad_page(&again).parse_failed, None);
    assert_eq!(bad_page(&again).title.as_deref(), Some("Bad"));
}

#[tokio::test]
async fn without_parsers_the_engine_stops_and_says_why() {
    let bench = web();
    let store = bench.open();
    let mut engine = bench.engine_with_parser(&store, Arc::new(Broken));
    let no = accept(&store, site_crawl());
    engine.handle().run(no).await.unwrap();
    let error = engine.failed().await;
    assert!(matches!(error, EngineError::Parser(_)), "{error}");
    assert!(error.to_string().contains("--parsers 0"), "{error}");
    drop(engine);
    // Nothing is lost: the page waits for a better day.
    let record = store.crawl(no).unwrap().unwrap();
    assert_eq!((record.stats.ok, record.stats.queued), (0, 1));
}
