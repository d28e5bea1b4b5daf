//! A disk that fails at one moment and works again: the writer is opened again, and nothing is lost or
//! doubled.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use telusur_index::{IndexError, IndexLimits, SearchIndex, SyncHook};

use crate::web::page;

/// Fails at one of its syncs.
#[derive(Debug, Default)]
struct FailsOnce {
    syncs: AtomicU64,
    fails_at: AtomicU64,
}

impl SyncHook for FailsOnce {
    fn before_sync(&self) -> io::Result<()> {
        let sync = self.syncs.fetch_add(1, Ordering::SeqCst) + 1;
        if sync == self.fails_at.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

fn take_in(index: &SearchIndex, from: u64, upto: u64) -> Result<(), IndexError> {
    let docs: Vec<_> = (from..upto)
        .map(|number| page(&format!("https://a.example/{number}"), "Page", "a walrus"))
        .collect();
    index.take_in(&docs, &[], upto)?;
    index.commit()
}

fn keys(index: &SearchIndex) -> usize {
    let mut keys = Vec::new();
    index.each_key(&mut |key| keys.push(key)).unwrap();
    keys.sort_unstable();
    let all = keys.len();
    keys.dedup();
    assert_eq!(keys.len(), all, "something is there twice");
    all
}

#[test]
fn one_failed_sync_costs_one_commit() {
    let mut failures = 0;
    for nth in 1..40 {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(FailsOnce::default());
        let index =
            SearchIndex::open_with(dir.path(), IndexLimits::default(), disk.clone()).unwrap();
        take_in(&index, 0, 10).unwrap();
        disk.fails_at.store(disk.syncs.load(Ordering::SeqCst) + nth, Ordering::SeqCst);
        if take_in(&index, 10, 20).is_ok() {
            continue;
        }
        failures += 1;
        index.reopen().unwrap();
        // The commit may have been made before the disk failed.
        let upto = index.taken_upto();
        assert!(upto == 10 || upto == 20, "sync {nth}: {upto}");
        assert_eq!(keys(&index) as u64, upto, "sync {nth}");
        take_in(&index, upto, 30).unwrap();
        assert_eq!(keys(&index), 30, "sync {nth}");
        index.validate().unwrap();
        drop(index);
        let index = SearchIndex::open(dir.path(), IndexLimits::default()).unwrap();
        assert_eq!(keys(&index), 30, "sync {nth}");
    }
    assert!(failures > 5, "the disk failed only {failures} times");
}

/// A commit that was cut short while it replaced pages once made every later one fail: it left a file behind
/// that the next wanted to make under the same name.
#[test]
fn a_commit_that_was_cut_short_does_not_stand_in_the_way_of_the_next() {
    let mut failures = 0;
    for nth in 1..40 {
        let dir = tempfile::tempdir().unwrap();
        let index = SearchIndex::open(dir.path(), IndexLimits::default()).unwrap();
        take_in(&index, 0, 10).unwrap();
        drop(index);
        // A writer counts on from the last commit, as its predecessor did.
        let disk = Arc::new(FailsOnce::default());
        let index =
            SearchIndex::open_with(dir.path(), IndexLimits::default(), disk.clone()).unwrap();
        disk.fails_at.store(disk.syncs.load(Ordering::SeqCst) + nth, Ordering::SeqCst);
        if take_in(&index, 0, 5).is_ok() {
            continue;
        }
        failures += 1;
        drop(index);
        let index = open_when_free(dir.path());
        take_in(&index, 0, 5).unwrap_or_else(|error| panic!("sync {nth}: {error}"));
        assert_eq!(keys(&index), 10, "sync {nth}");
        index.validate().unwrap();
    }
    assert!(failures > 5, "the disk failed only {failures} times");
}

/// Opens an index whose last writer failed: its threads may still be ending, and hold the lock until then.
fn open_when_free(dir: &std::path::Path) -> SearchIndex {
    loop {
        match SearchIndex::open(dir, IndexLimits::default()) {
            Err(IndexError::Locked) => std::thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
}

#[test]
fn a_writer_that_could_not_be_opened_again_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(FailsOnce::default());
    let index = SearchIndex::open_with(dir.path(), IndexLimits::default(), disk.clone()).unwrap();
    disk.fails_at.store(disk.syncs.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
    assert!(index.release().is_err());
    assert!(matches!(take_in(&index, 0, 1), Err(IndexError::Unwritable)), "it is not leased");
    index.reopen().unwrap();
    take_in(&index, 0, 1).unwrap();
}

#[test]
fn a_damaged_index_is_begun_anew_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let index = SearchIndex::open(dir.path(), IndexLimits::default()).unwrap();
    take_in(&index, 0, 10).unwrap();
    index.begin_anew().unwrap();
    assert_eq!((keys(&index), index.taken_upto(), index.applied_upto()), (0, 0, 0));
    take_in(&index, 0, 20).unwrap();
    assert_eq!(keys(&index), 20);
    drop(index);
    let index = SearchIndex::open(dir.path(), IndexLimits::default()).unwrap();
    assert_eq!((keys(&index), index.applied_upto()), (20, 20));
    index.validate().unwrap();
}
