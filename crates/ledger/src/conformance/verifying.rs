//! What `verify` sees while others write.

use std::cell::Cell;

use telusur_model::PageRecord;

use super::{Bench, assert_verified, create, first, step};
use crate::{NewCrawl, Store, VerifyReport};

/// A store with one page and a link that waits.
fn store_of_one_page(bench: &dyn Bench) -> std::sync::Arc<dyn Store> {
    let store = bench.open();
    let record = create(&*store, &["http://a.test/"]);
    let seed = first(&*store, &record, "a.test");
    store.commit(step(&*store, &record, seed, 200, &["http://a.test/1"])).unwrap();
    store
}

/// Verifies, and acts once in the middle of it.
fn verify_and(store: &dyn Store, act: impl Fn()) -> VerifyReport {
    let has_acted = Cell::new(false);
    let links_of = |page: &PageRecord| {
        if !has_acted.replace(true) {
            act();
        }
        Ok(vec![page.url.clone()])
    };
    let report = store.verify(&links_of).unwrap();
    assert!(has_acted.get());
    report
}

/// It once held the writer's lock for as long as it took, which is hours for millions of pages.
pub(super) fn commits_go_through(bench: &dyn Bench) {
    let store = store_of_one_page(bench);
    let record = store.crawls().unwrap().pop().unwrap();
    let report = verify_and(&*store, || {
        let visit = first(&*store, &record, "a.test");
        store.commit(step(&*store, &record, visit, 200, &["http://a.test/2"])).unwrap();
        let crawl = super::crawl(&["http://b.test/"]);
        let other = store.create(NewCrawl { crawl, random: 9 }).unwrap();
        let visit = first(&*store, &other, "b.test");
        store.commit(step(&*store, &other, visit, 200, &[])).unwrap();
    });
    assert!(report.holds(), "{report:#?}");
    let counts = report.counts;
    assert_eq!((counts.crawls, counts.urls, counts.pages), (1, 2, 1), "as it was at the start");
    assert_verified(&*store);
    assert_eq!(store.verify(&|_| Ok(Vec::new())).unwrap().counts.pages, 3);
}

/// The bodies of a removed crawl are gone while its rows are still in the snapshot.
pub(super) fn removals_are_no_damage(bench: &dyn Bench) {
    let store = store_of_one_page(bench);
    let record = store.crawls().unwrap().pop().unwrap();
    let visit = first(&*store, &record, "a.test");
    store.commit(step(&*store, &record, visit, 200, &[])).unwrap();
    let report = verify_and(&*store, || store.remove(record.crawl.no).unwrap());
    assert!(report.holds(), "{report:#?}");
    assert_eq!(report.counts.pages, 2);
    assert_verified(&*store);
}
