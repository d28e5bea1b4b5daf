//! Removals that are cut short, on a directory and on a disk that fails or loses power.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use telusur_ledger::conformance::{assert_verified, create, first, step};
use telusur_ledger::{
    Bodies, BodiesEnd, CrawlStore, FrontierStore, PageStore, Storage, StoreChange,
};
use telusur_model::CrawlNo;
use telusur_store_embedded::{DataDir, Disk, EmbeddedStore, RecoverInto, Recovery, Segments};
use telusur_testkit::SimDisk;
use telusur_testkit::sim_disk::{DiskCall, DiskFailure, DiskFault};

use crate::power_loss::append;

fn open(dir: &Path, disk: &SimDisk) -> EmbeddedStore {
    telusur_store_embedded::open_on(DataDir::open(dir).unwrap(), Arc::new(disk.clone())).unwrap()
}

/// A crawl with one stored page.
fn crawl_with_page(store: &EmbeddedStore) -> CrawlNo {
    let record = create(store, &["http://a.test/"]);
    let visit = first(store, &record, "a.test");
    store.commit(step(store, &record, visit, 200, &["http://a.test/1"])).unwrap();
    record.crawl.no
}

/// Every command once failed until somebody deleted the bodies by hand.
#[test]
fn bodies_that_cannot_be_deleted_keep_nobody_from_opening() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), SimDisk::new());
    let store = open(dir.path(), &disk);
    let [gone, kept] = [0, 1].map(|_| crawl_with_page(&store));
    let (call, failure) = (DiskCall::RemoveDir, DiskFailure::Device);
    disk.fail(DiskFault { call, nth: 1, lasting: true, failure });
    assert!(store.remove(gone).is_err());
    drop(store);
    let store = open(dir.path(), &disk);
    assert!(store.crawl(gone).unwrap().is_none());
    assert_eq!(store.crawls().unwrap().len(), 1);
    assert!(store.crawl(kept).unwrap().is_some());
    assert_verified(&store);
}

/// Deleted entries of a directory come back if nobody syncs it.
#[test]
fn bodies_of_a_removed_crawl_do_not_come_back_with_a_power_loss() {
    for seed in 0..20 {
        let (dir, disk) = (tempfile::tempdir().unwrap(), SimDisk::new());
        let store = open(dir.path(), &disk);
        let gone = crawl_with_page(&store);
        store.remove(gone).unwrap();
        drop(store);
        let disk = disk.crash(seed);
        assert_eq!(disk.dirs().unwrap(), Vec::<String>::new(), "seed {seed}");
        assert_verified(&open(dir.path(), &disk));
    }
}

/// What a deletion that was cut short left is no crawl's, also after a power loss.
#[test]
fn half_deleted_bodies_stay_set_aside_after_a_power_loss() {
    for seed in 0..50 {
        let disk = SimDisk::new();
        let segments = Segments::new(Arc::new(disk.clone()));
        let (_, end) = append(&segments, BodiesEnd::default(), &[b"one"]).unwrap();
        // A second segment, because the first is full.
        let full = BodiesEnd { len: u64::MAX, ..end };
        append(&segments, full, &[b"two"]).unwrap();
        assert!(!segments.remove(CrawlNo(1), 1).unwrap());
        let segments = Segments::new(Arc::new(disk.crash(seed)));
        assert_eq!(segments.crawls().unwrap(), Vec::<String>::new(), "seed {seed}");
        assert_eq!(segments.half_removed().unwrap(), [CrawlNo(1)], "seed {seed}");
        assert!(segments.remove(CrawlNo(1), 9).unwrap());
    }
}

/// The bodies are nobody's from the first piece on: some of them must not be taken for all.
#[test]
fn bodies_are_deleted_piece_by_piece() {
    let dir = tempfile::tempdir().unwrap();
    let store = telusur_store_embedded::open(dir.path()).unwrap();
    let no = crawl_with_page(&store);
    let bodies = store.storage().bodies();
    for name in ["00000002.warc.zst", "00000003.warc.zst"] {
        fs::write(dir.path().join("bodies/crawl_1").join(name), "more").unwrap();
    }
    assert_eq!(bodies.crawls().unwrap(), ["crawl_1"]);
    // Three segments and the settings.
    for left in [3, 2, 1] {
        assert!(!bodies.remove(no, 1).unwrap());
        assert_eq!(bodies.crawls().unwrap(), Vec::<String>::new());
        assert_eq!(bodies.half_removed().unwrap(), [no]);
        let aside = fs::read_dir(dir.path().join("bodies/crawl_1.removed")).unwrap();
        assert_eq!(aside.count(), left);
    }
    assert!(bodies.remove(no, 1).unwrap());
    assert!(bodies.remove(no, 1).unwrap(), "once more does no harm");
    assert_eq!(fs::read_dir(dir.path().join("bodies")).unwrap().count(), 0);
}

/// The rows were lost and made again from the bodies. The index may still have its pages.
#[test]
fn a_removal_of_which_only_bodies_tell_is_taken_up() {
    let dir = tempfile::tempdir().unwrap();
    drop(telusur_store_embedded::open(dir.path()).unwrap());
    let aside = dir.path().join("bodies/crawl_7.removed");
    fs::create_dir(&aside).unwrap();
    fs::write(aside.join("00000001.warc.zst"), "some").unwrap();
    let store = telusur_store_embedded::open(dir.path()).unwrap();
    let removed = CrawlNo(7);
    let [removal] = store.removals().unwrap()[..] else { panic!("one removal") };
    assert_eq!(removal.crawl, removed);
    let [StoreChange::Removed { crawl, .. }] = store.changes_after(0, 9).unwrap()[..] else {
        panic!("followers hear of it");
    };
    assert_eq!(crawl, removed);
    assert_verified(&store);
    store.end_removal(removed).unwrap();
    assert!(!aside.exists());
    assert_verified(&store);
}

/// Between the commit that began a removal and its first piece, only `state/` knew of it.
#[test]
fn a_recovery_does_not_bring_a_removed_crawl_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = telusur_store_embedded::open(dir.path()).unwrap();
    let [gone, kept] = [0, 1].map(|_| crawl_with_page(&store));
    store.begin_removal(gone).unwrap();
    drop(store);
    fs::remove_dir_all(dir.path().join("state")).unwrap();
    let recovery = Recovery::begin(dir.path(), RecoverInto::Place, &mut |_| {}).unwrap();
    recovery.finish().unwrap();
    let store = telusur_store_embedded::open(dir.path()).unwrap();
    let left: Vec<_> = store.crawls().unwrap().iter().map(|crawl| crawl.crawl.no).collect();
    assert_eq!(left, [kept]);
    store.remove(gone).unwrap();
    assert_verified(&store);
}
