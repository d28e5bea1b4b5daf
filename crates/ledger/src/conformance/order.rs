//! One order of pages over all crawls, and crawls found by what people call them.

use telusur_model::{Crawl, PageRecord};

use super::{Bench, assert_verified, crawl, create, first, step};
use crate::{CrawlRecord, Event, NewCrawl, Step, Store};

/// Stores the page of a crawl's seed, and gives its place.
fn store_seed(store: &dyn Store, record: &CrawlRecord) -> u64 {
    let seed = first(store, record, "a.test");
    store.commit(step(store, record, seed, 200, &[])).unwrap().stored[0].seq
}

fn places(store: &dyn Store, after: u64, max: usize) -> Vec<u64> {
    let pages = store.pages_of_all_after(after, max).unwrap();
    pages.into_iter().map(|page| page.seq).collect()
}

pub(super) fn gives_pages_in_one_order(bench: &dyn Bench) {
    let store = bench.open();
    let crawls: Vec<_> = (0..3).map(|_| create(&*store, &["http://a.test/"])).collect();
    // Not in the order of the crawls' numbers.
    let stored = [2, 0, 1].map(|crawl: usize| store_seed(&*store, &crawls[crawl]));
    assert!(stored.is_sorted());
    drop(store);
    let store = bench.open();
    assert_eq!(places(&*store, 0, 9), stored);
    assert_eq!(places(&*store, 0, 2), stored[..2]);
    assert_eq!(places(&*store, stored[0], 9), stored[1..]);
    assert!(places(&*store, stored[2], 9).is_empty());
    assert!(places(&*store, u64::MAX, 9).is_empty());
    let last = |index: usize| store.last_place(crawls[index].crawl.no).unwrap();
    assert_eq!([2, 0, 1].map(last), stored);
    // A page that was read again moves to the end.
    let page = store.page(crawls[2].crawl.no, stored[0]).unwrap().unwrap();
    let again = PageRecord { title: Some("Again".into()), ..page };
    store.commit(Step::of(Event::PageReadAgain(Box::new(again)))).unwrap();
    let moved = last(2);
    assert_eq!(places(&*store, 0, 9), [stored[1], stored[2], moved]);
    // A removed crawl leaves no gap to stumble over.
    store.remove(crawls[0].crawl.no).unwrap();
    assert_eq!(places(&*store, 0, 1), [stored[2]]);
    assert_eq!(last(0), 0);
    assert_verified(&*store);
}

pub(super) fn finds_crawls_by_name(bench: &dyn Bench) {
    let store = bench.open();
    assert!(store.find("last").unwrap().is_none());
    let named = |name: &str, random| {
        let crawl = Crawl { name: Some(name.into()), ..crawl(&["http://a.test/"]) };
        store.create(NewCrawl { crawl, random }).unwrap().crawl
    };
    let [old, young, other] = [named("news", 1), named("news", 2), named("news\0letters", 3)];
    let alias = named("crawl_1", 4);
    let check = |text: &str, expect: Option<&Crawl>| {
        let found = store.find(text).unwrap().map(|record| record.crawl.no);
        assert_eq!(found, expect.map(|crawl| crawl.no), "{text}");
    };
    check(old.id.as_str(), Some(&old));
    check("crawl_2", Some(&young));
    check("crawl_02", None);
    check("crawl_9", None);
    check("news", Some(&young));
    check("news\0letters", Some(&other));
    check("new", None);
    check("", None);
    // The youngest of those that are called so, by whichever kind of name.
    check("crawl_1", Some(&alias));
    check("last", Some(&alias));
    store.change(&Crawl { name: Some("olds".into()), ..young.clone() }).unwrap();
    check("olds", Some(&young));
    check("news", Some(&old));
    store.remove(old.no).unwrap();
    store.remove(alias.no).unwrap();
    check("news", None);
    check("crawl_1", None);
    check("last", Some(&other));
}
