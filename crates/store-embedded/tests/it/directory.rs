//! Whose directory is it?

use std::fs;

use telusur_store::StoreError;
use telusur_store_embedded::{DataDir, EmbeddedStore};

#[test]
fn a_second_owner_is_refused_and_told_who_the_first_is() {
    let dir = tempfile::tempdir().unwrap();
    let _owner = EmbeddedStore::open(dir.path()).unwrap();
    let Err(StoreError::Locked { pid }) = EmbeddedStore::open(dir.path()) else {
        panic!("two owners")
    };
    assert_eq!(pid, std::process::id().to_string());
    assert_eq!(DataDir::owner(dir.path()), Some(pid));
}

#[test]
fn the_lock_is_free_when_its_owner_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    drop(EmbeddedStore::open(dir.path()).unwrap());
    assert_eq!(DataDir::owner(dir.path()), None);
    EmbeddedStore::open(dir.path()).unwrap();
}

#[track_caller]
fn refused(dir: &std::path::Path) -> String {
    match EmbeddedStore::open(dir) {
        Err(error @ (StoreError::Unusable(_) | StoreError::Damaged(_))) => error.to_string(),
        Err(error) => panic!("refused for another reason: {error}"),
        Ok(_) => panic!("opened"),
    }
}

#[test]
fn other_peoples_directories_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.tex"), "years of work").unwrap();
    assert!(refused(dir.path()).contains("thesis.tex"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_later_format_is_refused_with_both_numbers() {
    let dir = tempfile::tempdir().unwrap();
    drop(EmbeddedStore::open(dir.path()).unwrap());
    let version = dir.path().join("telusur.version");
    let text = fs::read_to_string(&version).unwrap().replace("\"format\":3", "\"format\":99");
    fs::write(&version, text).unwrap();
    let message = refused(dir.path());
    assert!(message.contains("99") && message.contains("format 3"), "{message}");
}

#[test]
fn a_damaged_version_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    drop(EmbeddedStore::open(dir.path()).unwrap());
    fs::write(dir.path().join("telusur.version"), "{").unwrap();
    assert!(refused(dir.path()).contains("telusur.version"));
}

/// A kill in the middle of the first start once left a directory that could never be opened.
#[test]
fn a_database_whose_making_was_cut_short_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    drop(EmbeddedStore::open(dir.path()).unwrap());
    fs::remove_file(dir.path().join("telusur.version")).unwrap();
    for entry in fs::read_dir(dir.path().join("state")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::write(path, "half").unwrap();
        }
    }
    EmbeddedStore::open(dir.path()).unwrap();
}

#[test]
fn a_lost_database_is_not_an_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    drop(EmbeddedStore::open(dir.path()).unwrap());
    fs::remove_dir_all(dir.path().join("state")).unwrap();
    assert!(refused(dir.path()).contains("state is gone"));
}

#[test]
fn bodies_of_a_forgotten_crawl_are_reported() {
    use telusur_store::CrawlStore;
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let old = dir.path().join("bodies/crawl_1");
    fs::create_dir(&old).unwrap();
    let report = store.verify(&|_| Ok(Vec::new())).unwrap();
    assert_eq!(report.checks[8].broken, 1, "{report:?}");
}

#[test]
fn a_directory_whose_making_was_cut_short_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("bodies")).unwrap();
    fs::write(dir.path().join("telusur.version.new"), "{\"prod").unwrap();
    EmbeddedStore::open(dir.path()).unwrap();
}
