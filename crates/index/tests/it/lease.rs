//! Another process writes for a while. Here it is another index on the same files: it has the same
//! locks to go by.

use telusur_index::{IndexDoc, IndexError, IndexLimits, OfCrawls, Query, SearchIndex};
use telusur_model::CrawlNo;

use crate::web::{link, page};

fn open(dir: &tempfile::TempDir) -> Result<SearchIndex, IndexError> {
    SearchIndex::open(dir.path(), IndexLimits::default())
}

fn numbered(number: u64) -> IndexDoc {
    let url = format!("https://a.example/{number}");
    IndexDoc {
        links: vec![link("https://a.example/0", "Hub")],
        ..page(&url, &format!("Page {number}"), "a walrus")
    }
}

fn count(index: &SearchIndex) -> usize {
    index.search(&Query { limit: 1000, ..Query::batch("walrus", 1000) }).unwrap().hits.len()
}

/// Every document is there once.
#[track_caller]
fn assert_keys(index: &SearchIndex, expect: u64) {
    let mut keys = Vec::new();
    index.each_key(&mut |key| keys.push(key)).unwrap();
    assert_eq!(keys.len() as u64, expect);
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len() as u64, expect);
}

#[test]
fn what_the_holder_commits_is_found_by_the_owner() {
    let dir = tempfile::tempdir().unwrap();
    let owner = open(&dir).unwrap();
    owner.take_in(&[numbered(0)], &[], 1).unwrap();
    owner.release().unwrap();
    assert_eq!((count(&owner), owner.applied_upto()), (1, 1), "nothing taken in is lost");
    let holder = open(&dir).unwrap();
    assert_eq!(holder.taken_upto(), 1);
    holder.apply(&[numbered(1)], &[], 2).unwrap();
    holder.digest_links().unwrap();
    assert_eq!(count(&owner), 1);
    owner.refresh().unwrap();
    owner.refresh_links();
    assert_eq!((count(&owner), owner.applied_upto()), (2, 2));
    assert!(!owner.top_pages(&OfCrawls::default(), 1).unwrap().is_empty());
}

#[test]
fn the_owner_writes_nothing_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let owner = open(&dir).unwrap();
    owner.release().unwrap();
    assert!(matches!(owner.apply(&[numbered(0)], &[], 1), Err(IndexError::Leased)));
    assert!(matches!(owner.remove_crawl(CrawlNo(1)), Err(IndexError::Leased)));
    assert!(matches!(owner.digest_links(), Err(IndexError::Leased)));
    assert!(matches!(owner.validate(), Err(IndexError::Leased)));
    let holder = open(&dir).unwrap();
    assert!(matches!(owner.take_back(), Err(IndexError::Locked)));
    drop(holder);
    owner.take_back().unwrap();
    owner.apply(&[numbered(0)], &[], 1).unwrap();
    assert_eq!(count(&owner), 1);
}

/// To and fro through several merges: each side replaces what the other wrote.
#[test]
fn the_right_to_write_goes_from_hand_to_hand() {
    const ROUNDS: u64 = 40;
    let dir = tempfile::tempdir().unwrap();
    let owner = open(&dir).unwrap();
    for round in 0..ROUNDS {
        owner.apply(&[numbered(2 * round), numbered(0)], &[], 2 * round + 1).unwrap();
        owner.release().unwrap();
        let holder = open(&dir).unwrap();
        holder.apply(&[numbered(2 * round + 1), numbered(1)], &[], 2 * round + 2).unwrap();
        holder.release().unwrap();
        owner.take_back().unwrap();
        assert_eq!(owner.applied_upto(), 2 * round + 2);
    }
    assert_keys(&owner, 2 * ROUNDS);
    assert_eq!(count(&owner), 80);
    owner.validate().unwrap();
    drop(owner);
    assert_keys(&open(&dir).unwrap(), 2 * ROUNDS);
}

fn of_ten_commits(dir: &tempfile::TempDir) -> SearchIndex {
    let index = open(dir).unwrap();
    for number in 0..10 {
        index.apply(&[numbered(number)], &[], number + 1).unwrap();
    }
    index
}

#[test]
fn an_index_at_rest_has_few_segments() {
    let dir = tempfile::tempdir().unwrap();
    let index = of_ten_commits(&dir);
    index.take_in(&[numbered(10)], &[], 11).unwrap();
    assert_eq!((index.segment_count(), index.uncompacted_pages().unwrap()), (10, 10));
    index.compact().unwrap();
    assert!(index.segment_count() <= 2, "what was taken in may stand beside the rest");
    assert_eq!(index.uncompacted_pages().unwrap(), 0);
    assert_eq!(
        (index.applied_upto(), count(&index)),
        (11, 11),
        "what was taken in is there as well"
    );
    assert_keys(&index, 11);
    index.apply(&[numbered(0)], &[], 12).unwrap();
    index.compact().unwrap();
    assert_keys(&index, 11);
    drop(index);
    assert_keys(&open(&dir).unwrap(), 11);
}

/// Merging goes on beside everything else; what comes in later is merged as usual.
#[test]
fn an_index_is_compacted_beside_its_work() {
    let dir = tempfile::tempdir().unwrap();
    let index = of_ten_commits(&dir);
    assert_eq!(index.uncompacted_pages().unwrap(), 10);
    while index.segment_count() > 1 {
        index.compact_in_background().unwrap();
        std::thread::yield_now();
    }
    assert_eq!(index.applied_upto(), 10);
    assert_keys(&index, 10);
    assert!(!index.compact_in_background().unwrap(), "there is nothing left to do");
    index.take_in(&[numbered(10)], &[], 11).unwrap();
    assert_eq!(index.applied_upto(), 10);
    index.commit().unwrap();
    assert_eq!((index.applied_upto(), index.segment_count()), (11, 2));
    assert_keys(&index, 11);
}
