//! What links say: ranks of pages and sites, and the words that others call a page by.

use telusur_index::{IndexDoc, IndexLimits, OfCrawls, OutLink, Query, SearchIndex};
use telusur_model::CrawlNo;

use crate::web::{Web, key, link, page};

const HUB: &str = "https://hub.example/start";
const SHOP: &str = "https://shop.example/p/17";

fn linking(url: &str, links: Vec<OutLink>) -> IndexDoc {
    IndexDoc { links, ..page(url, "A page", "Some text about nothing in particular.") }
}

/// Three sites; everybody links to the hub, and calls the shop by a word that it does not use.
fn pages() -> Vec<IndexDoc> {
    let to_both = || vec![link(HUB, "Start"), link(SHOP, "Cheap umbrellas")];
    vec![
        page(HUB, "The hub", "Everything begins here."),
        page(SHOP, "Item 17", "Keeps the rain away."),
        linking("https://a.example/1", to_both()),
        linking("https://a.example/2", to_both()),
        linking(
            "https://b.example/1",
            vec![link(HUB, "Start"), link("https://gone.example/", "x")],
        ),
    ]
}

fn digested() -> Web {
    let web = Web::of(&pages());
    web.index.digest_links().unwrap();
    web
}

#[test]
fn a_page_is_found_by_what_others_call_it() {
    let web = Web::of(&pages());
    web.check("umbrella", &[]);
    web.index.digest_links().unwrap();
    web.check("umbrella", &["17"]);
    web.check("umbrella site:shop.example", &["17"]);
    web.check("umbrella site:a.example", &[]);
    web.check("rain umbrella", &["17"]);
    web.check("\"cheap umbrellas\"", &[]);
    let mut query = Query::new("umbrella");
    query.explain = true;
    let results = web.index.search(&query).unwrap();
    let parts = &results.hits[0].explanation.as_ref().unwrap().parts;
    let linked = parts.iter().find(|part| part.what.contains("words of links")).unwrap();
    assert!(linked.value > 0.0);
    assert_eq!(results.estimated_total, 1);
}

#[test]
fn the_best_linked_come_first() {
    let web = digested();
    let top = web.index.top_pages(&OfCrawls::default(), 2).unwrap();
    assert_eq!((top[0].url.as_str(), top[0].linked_from), (HUB, 3));
    assert_eq!((top[1].url.as_str(), top[1].linked_from), (SHOP, 2));
    assert!(top[0].times_average > top[1].times_average);
    let sites = web.index.top_sites(&OfCrawls::default(), 10).unwrap();
    assert_eq!((sites[0].site.as_str(), sites[0].pages), ("hub.example", 1));
    assert_eq!(sites.len(), 4);
    let no_crawl = OfCrawls { only: Some(CrawlNo(9)), ..OfCrawls::default() };
    assert!(web.index.top_pages(&no_crawl, 10).unwrap().is_empty());
    assert!(web.index.top_sites(&no_crawl, 10).unwrap().is_empty());
}

#[test]
fn a_link_to_an_address_that_redirects_is_a_link_to_the_page() {
    let old = "https://hub.example/old";
    let hub = IndexDoc { aliases: vec![key(old).url], ..page(HUB, "The hub", "Begin.") };
    let web = Web::of(&[hub, linking("https://a.example/1", vec![link(old, "Portal")])]);
    web.index.digest_links().unwrap();
    web.check("portal", &["start"]);
}

#[test]
fn links_that_nobody_vouches_for_count_for_nothing() {
    let spam = OutLink { nofollow: true, ..link(HUB, "Casino") };
    let web =
        Web::of(&[page(HUB, "The hub", "Begin."), linking("https://a.example/1", vec![spam])]);
    web.index.digest_links().unwrap();
    web.check("casino", &[]);
    web.check(&format!("link:{HUB}"), &["1"]);
}

#[test]
fn the_last_word_about_a_page_counts() {
    let web = Web::of(&pages());
    web.index.apply(&[linking("https://a.example/1", Vec::new())], &[], 2).unwrap();
    web.index.apply(&[], &[key("https://a.example/2").to_owned()], 3).unwrap();
    web.index.digest_links().unwrap();
    web.check("umbrella", &[]);
    assert_eq!(web.index.top_pages(&OfCrawls::default(), 1).unwrap()[0].url, HUB);
}

#[test]
fn a_removed_crawl_takes_its_links_along() {
    let web = digested();
    assert_eq!(web.index.link_lag().pages_since, 0);
    web.index.remove_crawl(CrawlNo(1)).unwrap();
    assert_eq!(web.index.link_lag().pages, 0);
    web.index.digest_links().unwrap();
    assert!(web.index.top_pages(&OfCrawls::default(), 10).unwrap().is_empty());
}

#[test]
fn what_links_say_survives_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let open = || SearchIndex::open(dir.path(), IndexLimits::default()).unwrap();
    let index = open();
    index.apply(&pages(), &[], 1).unwrap();
    let lag = index.link_lag();
    assert_eq!((lag.pages, lag.pages_since), (5, 5));
    index.digest_links().unwrap();
    drop(index);
    let index = open();
    assert_eq!(index.link_lag().pages_since, 0);
    assert_eq!(index.search(&Query::new("umbrellas")).unwrap().hits.len(), 1);
    assert_eq!(index.top_pages(&OfCrawls::default(), 1).unwrap()[0].url, HUB);
}

/// Lost or damaged, it is computed again; the index itself is as good as before.
#[test]
fn what_links_say_can_be_lost() {
    let dir = tempfile::tempdir().unwrap();
    let open = || SearchIndex::open(dir.path(), IndexLimits::default()).unwrap();
    let index = open();
    index.apply(&pages(), &[], 1).unwrap();
    index.digest_links().unwrap();
    drop(index);
    std::fs::write(dir.path().join("link-ranks.bin"), b"nonsense").unwrap();
    let index = open();
    assert_eq!(index.link_lag().pages_since, 5);
    assert!(index.search(&Query::new("umbrellas")).unwrap().hits.is_empty());
    index.digest_links().unwrap();
    assert_eq!(index.search(&Query::new("umbrellas")).unwrap().hits.len(), 1);
}

#[test]
fn lost_words_of_links_are_worked_out_again() {
    let dir = tempfile::tempdir().unwrap();
    let open = || SearchIndex::open(dir.path(), IndexLimits::default()).unwrap();
    let index = open();
    index.apply(&pages(), &[], 1).unwrap();
    index.digest_links().unwrap();
    drop(index);
    for entry in std::fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
        if entry.file_name().to_string_lossy().starts_with("anchors-") {
            std::fs::remove_dir_all(entry.path()).unwrap();
        }
    }
    assert_eq!(open().link_lag().pages_since, 5);
}
