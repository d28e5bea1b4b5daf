//! One order of changes over all crawls, and crawls found by what people call them.

use telusur_model::{Crawl, PageRecord};

use super::{Bench, assert_verified, crawl, create, first, step};
use crate::{CrawlRecord, Event, NewCrawl, Step, Store, StoreChange};

/// Stores the page of a crawl's seed, and gives its place.
fn store_seed(store: &dyn Store, record: &CrawlRecord) -> u64 {
    let seed = first(store, record, "a.test");
    store.commit(step(store, record, seed, 200, &[])).unwrap().stored[0].seq
}

fn places(store: &dyn Store, after: u64, max: usize) -> Vec<u64> {
    let changes = store.changes_after(after, max).unwrap();
    changes.iter().map(StoreChange::seq).collect()
}

pub(super) fn gives_pages_in_one_order(bench: &dyn Bench) {
    let store = bench.open();
    assert_eq!(store.last_change().unwrap(), 0);
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
    assert_eq!(store.last_change().unwrap(), moved);
    let count = |after, upto| store.changes_count(after, upto).unwrap();
    assert_eq!([count(0, moved), count(stored[1], moved), count(0, stored[1])], [3, 2, 1]);
    assert_eq!([count(moved, 0), count(moved, u64::MAX), count(u64::MAX, u64::MAX)], [0; 3]);
    // A removed crawl leaves no gap to stumble over.
    store.remove(crawls[0].crawl.no).unwrap();
    assert_eq!(places(&*store, 0, 1), [stored[2]]);
    assert_eq!(last(0), 0);
    assert_verified(&*store);
}

pub(super) fn tells_of_removals_in_order(bench: &dyn Bench) {
    let store = bench.open();
    let [gone, kept] = [0, 1].map(|_| create(&*store, &["http://a.test/"]));
    store_seed(&*store, &gone);
    let before = store_seed(&*store, &kept);
    let no = gone.crawl.no;
    store.remove(no).unwrap();
    let [StoreChange::Removed { seq, crawl }] = store.changes_after(before, 9).unwrap()[..] else {
        panic!("the removal is the only change behind the last page");
    };
    assert_eq!(crawl, no);
    // Nothing of it comes back, and it is told of once, also after the next start.
    store.remove(no).unwrap();
    drop(store);
    let store = bench.open();
    assert_eq!(places(&*store, 0, 9), [before, seq]);
    // What is stored later has its place behind the removal.
    let later = create(&*store, &["http://a.test/"]);
    let after = store_seed(&*store, &later);
    assert_eq!(places(&*store, 0, 9), [before, seq, after]);
    assert_eq!(places(&*store, before, 1), [seq]);
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
