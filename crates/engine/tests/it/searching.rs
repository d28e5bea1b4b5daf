//! What is crawled can be found.

use std::sync::Arc;

use telusur_engine::control::{Control, Rank, RankItem, ReadCrawls, RemoveCrawl, Search, Verify};
use telusur_engine::json::SearchView;
use telusur_engine::{ImportLine, Importer, Indexer};
use telusur_index::{DocKey, IndexDoc, IndexLimits, SearchIndex};
use telusur_ledger::{CrawlStore, Store};
use telusur_model::Timestamp;
use telusur_store_embedded::EmbeddedStore;
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, accept, finished, in_process, page, polite_crawl, site_crawl};

fn open_index(bench: &Bench) -> Arc<SearchIndex> {
    let dir = bench.dir.path().join("index");
    Arc::new(SearchIndex::open(&dir, IndexLimits::default()).unwrap())
}

fn search(store: &Arc<EmbeddedStore>, index: &Arc<SearchIndex>, text: &str) -> SearchView {
    let control = Control::of_store(Arc::clone(store) as Arc<dyn Store>, in_process())
        .with_index(Some(index.clone()));
    let search = Search { text: text.to_owned(), limit: 10, ..Search::default() };
    let (_, reply) = control.collect(&search).unwrap();
    reply
}

fn urls(answer: &SearchView) -> Vec<&str> {
    answer.hits.iter().map(|hit| hit.url.as_str()).collect()
}

fn web() -> Bench {
    Bench::of_site(|path| match path {
        "/" => page(&["/coffee", "/tea", "/secret", "/gone"]),
        "/coffee" => FakeAnswer::html("<title>Coffee</title><p>Roasted beans smell of mornings."),
        "/tea" => FakeAnswer::html("<title>Tea</title><p>Leaves and hot water, nothing else."),
        "/secret" => FakeAnswer::html(
            "<title>Secret</title><meta name=robots content=noindex><p>Roasted secrets.",
        ),
        _ => FakeAnswer { status: 404, ..FakeAnswer::html("<p>A zebra was here once.") },
    })
}

#[tokio::test]
async fn pages_are_found_as_soon_as_they_are_crawled() {
    let bench = web();
    let store = bench.open();
    let index = open_index(&bench);
    let engine = bench.engine_with_index(&store, &index);
    let no = accept(&store, site_crawl());
    engine.handle().run(no).await.unwrap();
    finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    let found = search(&store, &index, "roasted");
    assert_eq!(urls(&found), ["http://site.test/coffee"], "noindex pages stay out");
    assert!(found.hits[0].snippet.contains("<mark>"));
    assert_eq!(urls(&search(&store, &index, "intitle:tea")), ["http://site.test/tea"]);
    assert!(search(&store, &index, "zebra").hits.is_empty(), "nor error pages");
}

/// The words of the crawl that came first were once taken for those of every other.
#[tokio::test]
async fn rights_are_those_that_the_origin_gives_to_the_name_of_the_crawl() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => FakeAnswer::plain(
            200,
            "User-agent: One\nContent-Signal: ai-train=no\nAllow: /\n\n\
             User-agent: Two\nContent-Signal: ai-train=yes\nAllow: /\n",
        ),
        "/sitemap.xml" => FakeAnswer::not_found(),
        _ => FakeAnswer::html("<title>Coffee</title><p>Roasted beans smell of mornings."),
    });
    let store = bench.open();
    let index = open_index(&bench);
    let engine = bench.engine_with_index(&store, &index);
    for agent in ["One/1.0", "Two/1.0"] {
        let mut crawl = polite_crawl();
        crawl.fetch.user_agent = agent.to_owned();
        let no = accept(&store, crawl);
        engine.handle().run(no).await.unwrap();
        finished(&engine, no).await;
    }
    engine.shutdown().await.unwrap();
    let crawls_with = |words: &str| {
        let found = search(&store, &index, &format!("roasted rights:{words}"));
        found.hits.into_iter().map(|hit| hit.alias).collect::<Vec<_>>()
    };
    assert_eq!(crawls_with("ai-train=no"), ["crawl_1"]);
    assert_eq!(crawls_with("ai-train=yes"), ["crawl_2"]);
}

#[tokio::test]
async fn a_lost_index_is_made_again_from_the_store() {
    let bench = web();
    let (store, _) = bench.crawl(site_crawl()).await;
    let index = open_index(&bench);
    let indexer =
        Indexer::new(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&index), in_process());
    assert_eq!(indexer.catch_up(&mut |_| {}).unwrap(), 5);
    assert_eq!(indexer.catch_up(&mut |_| {}).unwrap(), 0, "nothing is looked at twice");
    assert_eq!(urls(&search(&store, &index, "leaves")), ["http://site.test/tea"]);
}

#[tokio::test]
async fn a_removed_crawl_is_found_no_more() {
    let bench = web();
    let (store, _) = bench.crawl(site_crawl()).await;
    let index = open_index(&bench);
    let indexer =
        Indexer::new(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&index), in_process());
    indexer.catch_up(&mut |_| {}).unwrap();
    let control = Control::of_store(Arc::clone(&store) as Arc<dyn Store>, in_process())
        .with_index(Some(index.clone()));
    control.collect(&RemoveCrawl { crawl: "last".into() }).unwrap();
    assert!(search(&store, &index, "leaves").hits.is_empty());
}

/// Between the first commit of a removal and that of the index, pages were once found and ranked: after a
/// kill, or as long as the index cannot be written.
#[tokio::test]
async fn a_crawl_whose_removal_has_begun_is_shown_nowhere() {
    let bench = web();
    let (store, _) = bench.crawl(site_crawl()).await;
    let index = open_index(&bench);
    let indexer =
        Indexer::new(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&index), in_process());
    indexer.catch_up(&mut |_| {}).unwrap();
    indexer.digest_links().unwrap();
    assert_eq!(urls(&search(&store, &index, "leaves")).len(), 1);
    store.remove(telusur_model::CrawlNo(1)).unwrap();
    let control = Control::of_store(Arc::clone(&store) as Arc<dyn Store>, in_process())
        .with_index(Some(index.clone()));
    let found = search(&store, &index, "leaves");
    assert_eq!((urls(&found), found.estimated_total), (vec![], 0));
    assert!(urls(&search(&store, &index, "leaves crawl:crawl_1")).is_empty());
    let rank = |sites| control.collect(&Rank { crawl: None, sites, max: 9 }).unwrap().0;
    assert_eq!([rank(false), rank(true)], [[], []]);
    assert_eq!(control.collect(&ReadCrawls::default()).unwrap().0, []);
}

/// A start does not wait for it, and the engine finishes it beside its crawls.
#[tokio::test]
async fn a_removal_that_a_kill_left_is_finished_beside_the_engine() {
    let bench = web();
    let (store, _) = bench.crawl(site_crawl()).await;
    let index = open_index(&bench);
    let indexer =
        Indexer::new(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&index), in_process());
    indexer.catch_up(&mut |_| {}).unwrap();
    store.begin_removal(telusur_model::CrawlNo(1)).unwrap();
    let engine = bench.engine_with_index(&store, &index);
    while !store.removals().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(index.doc_count(), 0, "it is over when the index has let go of it");
    assert!(!bench.dir.path().join("bodies/crawl_1").exists());
    engine.shutdown().await.unwrap();
}

/// What imports into a crawl of its own.
fn importer(store: &EmbeddedStore) -> Importer<'_> {
    let mut crawl = site_crawl();
    crawl.seeds = telusur_model::Seeds::Links(Vec::new());
    crawl.keep = telusur_model::Keep::Text;
    let no = accept(store, crawl);
    let crawl = telusur_ledger::CrawlStore::crawl(store, no).unwrap().unwrap().crawl;
    Importer::new(store, crawl)
}

#[tokio::test]
async fn imported_documents_are_found_by_their_name() {
    let bench = web();
    let store = bench.open();
    let mut importer = importer(&store);
    for text in ["An old text about rivers.", "A new text about mountains."] {
        let line = ImportLine {
            id: Some("doc/1".into()),
            url: None,
            title: "Nature".into(),
            text: text.into(),
            language: None,
        };
        let url = line.address().unwrap();
        importer.add(line, url, Timestamp(1)).unwrap();
        importer.flush().unwrap();
    }
    let index = open_index(&bench);
    let indexer =
        Indexer::new(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&index), in_process());
    indexer.catch_up(&mut |_| {}).unwrap();
    let found = search(&store, &index, "mountains");
    assert_eq!(found.hits[0].id.as_deref(), Some("doc/1"));
    assert!(search(&store, &index, "rivers").hits.is_empty(), "it was replaced");
    crate::bench::assert_verified(&store);
}

#[tokio::test]
async fn imported_documents_are_read_in_the_language_that_they_are_said_to_be_in() {
    let bench = web();
    let store = bench.open();
    let mut importer = importer(&store);
    for (id, language) in [("1", Some("id-ID")), ("2", None), ("3", Some("no such language"))] {
        let line = ImportLine {
            id: Some(id.into()),
            url: None,
            title: String::new(),
            text: "Pembangunan jembatan".into(),
            language: language.map(str::to_owned),
        };
        let url = line.address().unwrap();
        importer.add(line, url, Timestamp(1)).unwrap();
    }
    importer.flush().unwrap();
    let index = open_index(&bench);
    let indexer =
        Indexer::new(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&index), in_process());
    indexer.catch_up(&mut |_| {}).unwrap();
    let ids = |query: &str| {
        let hits = search(&store, &index, query).hits;
        hits.into_iter().filter_map(|hit| hit.id).collect::<Vec<_>>()
    };
    assert_eq!(ids("jembatan lang:id"), ["1"]);
    // Another form of the word, which only its own language knows.
    assert_eq!(ids("membangun"), ["1"]);
    assert_eq!(ids("jembatan").len(), 3);
}

/// A site whose pages call one of them by a word that it does not use itself.
fn linked_web() -> Bench {
    Bench::of_site(|path| match path {
        "/" => {
            FakeAnswer::html("<a href=/a>First</a> <a href=/b>Second</a> <a href=/star>Polaris</a>")
        }
        "/a" | "/b" => {
            FakeAnswer::html("<p>A page. <a href=/star>Polaris</a> <a href=/old>Old</a>")
        }
        "/old" => FakeAnswer::redirect(301, "/star"),
        "/star" => FakeAnswer::html("<title>The star</title><p>It never moves."),
        _ => FakeAnswer { status: 404, ..FakeAnswer::html("<p>Nothing.") },
    })
}

#[tokio::test]
async fn links_are_counted_and_their_words_are_found() {
    let bench = linked_web();
    let store = bench.open();
    let index = open_index(&bench);
    let engine = bench.engine_with_index(&store, &index);
    let no = accept(&store, site_crawl());
    engine.handle().run(no).await.unwrap();
    finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    let found = search(&store, &index, "polaris");
    assert!(urls(&found).contains(&"http://site.test/star"), "it never says its name itself");
    let control = Control::of_store(Arc::clone(&store) as Arc<dyn Store>, in_process())
        .with_index(Some(index));
    let rank = Rank { crawl: Some("last".into()), sites: false, max: 1 };
    let (top, ()) = control.collect(&rank).unwrap();
    let [RankItem::Page(top)] = &top[..] else { panic!("{top:?}") };
    assert_eq!(top.url, "http://site.test/star");
}

/// The check of the index, as `verify` gives it.
fn checked(store: &Arc<EmbeddedStore>, index: &Arc<SearchIndex>) -> telusur_ledger::Check {
    let control = Control::of_store(Arc::clone(store) as Arc<dyn Store>, in_process())
        .with_index(Some(index.clone()));
    let (_, report) = control.collect(&Verify {}).unwrap();
    report.checks.into_iter().find(|check| check.id == "I4").unwrap()
}

#[tokio::test]
async fn verify_compares_the_index_with_the_store() {
    let bench = web();
    let (store, _) = bench.crawl(site_crawl()).await;
    let index = open_index(&bench);
    assert_eq!(checked(&store, &index).broken, 0, "an index that lags is sound");
    let indexer =
        Indexer::new(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&index), in_process());
    indexer.catch_up(&mut |_| {}).unwrap();
    let check = checked(&store, &index);
    assert_eq!((check.broken, check.looked_at > 3), (0, true), "{check:?}");

    let upto = index.applied_upto();
    let mut keys = Vec::new();
    index.each_key(&mut |key| keys.push(key)).unwrap();
    index.apply(&[], &keys[..1], upto).unwrap();
    assert_eq!(checked(&store, &index).broken, 1, "a page is missing");

    let stranger = DocKey { url: telusur_model::UrlKey(7), ..keys[0] };
    let doc = IndexDoc::new(stranger, "http://site.test/stranger", Timestamp(1));
    index.apply(&[doc], &[], upto).unwrap();
    assert_eq!(checked(&store, &index).broken, 2, "and another should not be there");
}

#[tokio::test(start_paused = true)]
async fn pages_that_only_pretend_to_exist_are_not_found() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" | "/sitemap.xml" => FakeAnswer::not_found(),
        "/" => page(&["/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8", "/9", "/10"]),
        // Found one after the other, so that the probe has come back before the last of them.
        "/10" => page(&["/11"]),
        "/11" => page(&["/12"]),
        "/12" => page(&["/gone"]),
        _ if path == "/gone" || path.len() > 30 => {
            FakeAnswer::html("<title>Oops</title><p>A walrus ate what was here.")
        }
        _ => FakeAnswer::html(format!("<title>Page {path}</title><p>Page {path} has a pelican.")),
    });
    let (store, _) = bench.crawl(crate::bench::polite_crawl()).await;
    let index = open_index(&bench);
    let indexer =
        Indexer::new(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&index), in_process());
    indexer.catch_up(&mut |_| {}).unwrap();
    assert!(search(&store, &index, "pelican").estimated_total > 5);
    assert!(search(&store, &index, "walrus").hits.is_empty());
}
