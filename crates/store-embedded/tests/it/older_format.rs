//! Directories of older formats are brought up to date when they are opened.

use std::fs;
use std::path::Path;

use telusur_ledger::{CrawlStore, FrontierStore, PageStore, StoreChange};
use telusur_model::{CrawlNo, PageUrl};
use telusur_store_embedded::{RecoverInto, Recovery};

/// Format 3, with two crawls called `mills` (11 and 2 pages) and the linear crawl `numbers` (5 pages,
/// 2 missing ids) between them, without lock and index. Read it with `tar --zstd -tf`.
const FORMAT_3: &[u8] = include_bytes!("../fixtures/format_3.tar.zst");
/// Format 4, with the crawl `mills` (5 pages) and the linear crawl `stones`, whose 4 ids were redirected to
/// other addresses; a crawl before them was removed. Without lock and index.
const FORMAT_4: &[u8] = include_bytes!("../fixtures/format_4.tar.zst");
const BLOCK_BYTES: usize = 512;

/// Unpacks the files of a ustar archive.
fn unpack(archive: &[u8], dir: &Path) {
    let archive = zstd::decode_all(archive).unwrap();
    let mut rest = archive.as_slice();
    while rest.first().is_some_and(|byte| *byte != 0) {
        let (header, data) = rest.split_at(BLOCK_BYTES);
        let text = |bytes: &[u8]| {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8(bytes[..end].to_vec()).unwrap()
        };
        let (path, is_file) = (dir.join(text(&header[..100])), header[156] == b'0');
        let length = usize::from_str_radix(text(&header[124..136]).trim(), 8).unwrap();
        match is_file {
            true => fs::write(path, &data[..length]).unwrap(),
            false => fs::create_dir_all(path).unwrap(),
        }
        rest = &data[length.next_multiple_of(BLOCK_BYTES)..];
    }
}

fn format_3() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    unpack(FORMAT_3, dir.path());
    dir
}

fn check(dir: &Path) {
    let store = telusur_store_embedded::open(dir).unwrap();
    let changes = store.changes_after(0, 100).unwrap();
    let pages: Vec<_> = changes.iter().filter_map(StoreChange::page).collect();
    assert_eq!(pages.len(), 18);
    assert!(pages.is_sorted_by_key(|page| page.seq));
    let of_crawl = |no| pages.iter().filter(|page| page.crawl == CrawlNo(no)).count();
    assert_eq!([1, 2, 3].map(of_crawl), [11, 5, 2]);
    let find = |text| store.find(text).unwrap().map(|record| record.crawl.no);
    assert_eq!(find("mills"), Some(CrawlNo(3)));
    assert_eq!(find("numbers"), Some(CrawlNo(2)));
    assert_eq!(
        store.runs(CrawlNo(2), 0).unwrap().len(),
        2,
        "five pages, then two that are missing"
    );
    let body = store.body(CrawlNo(1), pages[0].body.unwrap()).unwrap();
    assert!(body.bytes.starts_with(b"<html>"));
    let report = store.verify(&|_| Ok(Vec::new())).unwrap();
    assert!(report.checks.iter().all(|check| check.broken == 0), "{report:?}");
}

#[test]
fn a_directory_of_format_3_is_brought_up_to_date() {
    let dir = format_3();
    check(dir.path());
    let version = fs::read_to_string(dir.path().join("telusur.version")).unwrap();
    assert!(version.contains("\"format\":6"), "{version}");
    check(dir.path());
}

/// What is new in format 5 is derived: removals have a place, and ids are found where they ended.
#[test]
fn a_directory_of_format_4_is_brought_up_to_date() {
    let dir = tempfile::tempdir().unwrap();
    unpack(FORMAT_4, dir.path());
    for _opened in 0..2 {
        let store = telusur_store_embedded::open(dir.path()).unwrap();
        let changes = store.changes_after(0, 100).unwrap();
        assert_eq!(changes.iter().filter_map(StoreChange::page).count(), 9);
        let removed: Vec<_> = changes.iter().filter(|change| change.page().is_none()).collect();
        assert!(matches!(removed[..], [StoreChange::Removed { crawl: CrawlNo(1), .. }]));
        let end = PageUrl::parse("http://127.0.0.1:8931/named/stone-3").unwrap();
        let page = store.page_of(CrawlNo(3), &end).unwrap().expect("found where it ended");
        assert_eq!(page.redirects, ["http://127.0.0.1:8931/item/3"]);
        let report = store.verify(&|_| Ok(Vec::new())).unwrap();
        assert!(report.checks.iter().all(|check| check.broken == 0), "{report:?}");
    }
    let version = fs::read_to_string(dir.path().join("telusur.version")).unwrap();
    assert!(version.contains("\"format\":6"), "{version}");
}

/// What the older program wrote after an attempt that was killed is there as well.
#[test]
fn an_update_that_was_cut_short_is_done_again() {
    let dir = format_3();
    let version = dir.path().join("telusur.version");
    let before = fs::read(&version).unwrap();
    let store = telusur_store_embedded::open(dir.path()).unwrap();
    store.remove(CrawlNo(3)).unwrap();
    drop(store);
    // Its new version file did not get its name.
    fs::rename(&version, dir.path().join("telusur.version.new")).unwrap();
    fs::write(&version, before).unwrap();
    let store = telusur_store_embedded::open(dir.path()).unwrap();
    let changes = store.changes_after(0, 100).unwrap();
    assert_eq!(changes.len(), 17, "pages, and the removal");
    assert!(matches!(changes[16], StoreChange::Removed { crawl: CrawlNo(3), .. }));
    assert!(!dir.path().join("telusur.version.new").exists());
}

/// The pages of a directory that was brought up to date come back from its bodies, and so do those of one that
/// was not.
#[test]
fn an_older_directory_is_recovered() {
    for is_up_to_date in [true, false] {
        let dir = format_3();
        if is_up_to_date {
            drop(telusur_store_embedded::open(dir.path()).unwrap());
        }
        fs::remove_dir_all(dir.path().join("state")).unwrap();
        let target = tempfile::tempdir().unwrap();
        let target = target.path().join("new");
        let into = RecoverInto::New(&target);
        let recovery = Recovery::begin(dir.path(), into, &mut |_| {}).unwrap();
        let recovered = recovery.recovered().clone();
        assert_eq!((recovered.crawls, recovered.pages), (3, 18), "{recovered:?}");
        let unread: u64 = recovered.unread.values().sum();
        assert_eq!(unread, if is_up_to_date { 0 } else { 18 });
        assert_eq!(recovered.without_settings.len(), if is_up_to_date { 0 } else { 3 });
        recovery.finish().unwrap();
        if is_up_to_date {
            check(&target);
        } else {
            let store = telusur_store_embedded::open(&target).unwrap();
            let page = &store.pages_after(CrawlNo(1), 0, 1).unwrap()[0];
            let body = store.body(CrawlNo(1), page.body.unwrap()).unwrap();
            assert!(body.bytes.starts_with(b"<html>"));
            let report = store.verify(&|_| Ok(Vec::new())).unwrap();
            assert!(report.checks.iter().all(|check| check.broken == 0), "{report:?}");
        }
    }
}
