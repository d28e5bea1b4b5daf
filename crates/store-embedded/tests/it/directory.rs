//! Whose directory is it?

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use telusur_ledger::StoreError;
use telusur_model::{
    Crawl, CrawlId, CrawlNo, FetchRules, Keep, Limits, PageUrl, Politeness, ScopeRules, Seeds,
    SitemapRules, Timestamp,
};
use telusur_store_embedded::{DataDir, Found};

#[test]
fn a_second_owner_is_refused_and_told_who_the_first_is() {
    let dir = tempfile::tempdir().unwrap();
    let _owner = telusur_store_embedded::open(dir.path()).unwrap();
    let Err(StoreError::Locked { pid }) = telusur_store_embedded::open(dir.path()) else {
        panic!("two owners")
    };
    assert_eq!(pid, std::process::id().to_string());
    assert_eq!(DataDir::owner(dir.path()), Some(pid));
}

#[test]
fn the_lock_is_free_when_its_owner_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    drop(telusur_store_embedded::open(dir.path()).unwrap());
    assert_eq!(DataDir::owner(dir.path()), None);
    telusur_store_embedded::open(dir.path()).unwrap();
}

#[track_caller]
fn refused(dir: &std::path::Path) -> String {
    match telusur_store_embedded::open(dir) {
        Err(error @ (StoreError::Unusable(_) | StoreError::StateDamaged(_))) => error.to_string(),
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
    drop(telusur_store_embedded::open(dir.path()).unwrap());
    let version = dir.path().join("telusur.version");
    fs::write(&version, r#"{"product":"telusur","format":99,"key_seed":1}"#).unwrap();
    let message = refused(dir.path());
    assert!(message.contains("99") && message.contains("formats 3 to 6"), "{message}");
}

#[test]
fn a_damaged_version_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    drop(telusur_store_embedded::open(dir.path()).unwrap());
    fs::write(dir.path().join("telusur.version"), "{").unwrap();
    assert!(refused(dir.path()).contains("telusur.version"));
}

/// A kill in the middle of the first start once left a directory that could never be opened.
#[test]
fn a_database_whose_making_was_cut_short_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    drop(telusur_store_embedded::open(dir.path()).unwrap());
    // The version file gets its name last.
    let version = dir.path().join("telusur.version");
    fs::rename(&version, dir.path().join("telusur.version.new")).unwrap();
    for entry in fs::read_dir(dir.path().join("state")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::write(path, "half").unwrap();
        }
    }
    telusur_store_embedded::open(dir.path()).unwrap();
    assert!(!dir.path().join("telusur.version.new").exists());
}

/// A kill between two attempts to make a directory once left state with nothing that says whose it is, and
/// the directory was refused from then on: the mark of the first attempt went before what it had made.
#[test]
fn the_mark_of_an_earlier_attempt_goes_last() {
    let dir = tempfile::tempdir().unwrap();
    drop(telusur_store_embedded::open(dir.path()).unwrap());
    fs::remove_file(dir.path().join("telusur.version")).unwrap();
    // A mark that cannot be removed: the second attempt ends there.
    fs::create_dir_all(dir.path().join("telusur.version.new/x")).unwrap();
    assert!(telusur_store_embedded::open(dir.path()).is_err());
    assert!(!dir.path().join("state").exists(), "what the mark stands for is still there");
    // Killed there, it has neither, and is made as a new one is.
    fs::remove_dir_all(dir.path().join("telusur.version.new")).unwrap();
    telusur_store_embedded::open(dir.path()).unwrap();
}

/// Every file below a directory with its bytes.
pub(crate) fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

pub(crate) fn a_crawl() -> Crawl {
    Crawl {
        no: CrawlNo(0),
        id: CrawlId::new(Timestamp(0), 0),
        name: None,
        created_at: Timestamp(1_000),
        seeds: Seeds::Links(vec![PageUrl::parse("http://a.test/").unwrap()]),
        scope: ScopeRules::default(),
        politeness: Politeness::default(),
        limits: Limits::default(),
        fetch: FetchRules::default(),
        keep: Keep::Html,
        topic: Vec::new(),
        keep_tracking: false,
        sitemaps: SitemapRules::default(),
        recrawl_of: None,
        labels: Default::default(),
    }
}

/// A directory that holds a crawl, closed.
fn with_a_crawl() -> tempfile::TempDir {
    use telusur_ledger::CrawlStore;
    let dir = tempfile::tempdir().unwrap();
    let store = telusur_store_embedded::open(dir.path()).unwrap();
    store.create(telusur_ledger::NewCrawl { crawl: a_crawl(), random: 7 }).unwrap();
    store.close().unwrap();
    dir
}

/// The next open once took a directory without its version file for a new one, and deleted the
/// state of all crawls.
#[test]
fn a_lost_version_file_costs_nothing_but_a_refusal() {
    let dir = with_a_crawl();
    let version = dir.path().join("telusur.version");
    let copy = fs::read(&version).unwrap();
    fs::remove_file(&version).unwrap();
    let before = files(&dir.path().join("state"));
    let message = refused(dir.path());
    assert!(message.contains("telusur.version") && message.contains("from a backup"), "{message}");
    assert_eq!(files(&dir.path().join("state")), before, "nothing is touched");
    fs::write(&version, copy).unwrap();
    use telusur_ledger::CrawlStore;
    assert_eq!(telusur_store_embedded::open(dir.path()).unwrap().crawls().unwrap().len(), 1);
}

#[test]
fn bodies_without_state_and_version_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let bodies = dir.path().join("bodies/crawl_1");
    fs::create_dir_all(&bodies).unwrap();
    fs::write(bodies.join("00000001.warc.zst"), "pages").unwrap();
    // Not even if it looks like a making that was cut short.
    for name in [None, Some("telusur.version.new")] {
        if let Some(name) = name {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert!(refused(dir.path()).contains("bodies"));
        assert_eq!(fs::read(bodies.join("00000001.warc.zst")).unwrap(), b"pages");
    }
}

/// The database takes its own files for half-made when a marker is missing, and begins anew over
/// them or deletes them.
#[test]
fn a_database_without_one_of_its_markers_is_refused() {
    for marker in ["version", "keyspaces/0/current", "keyspaces/0", "keyspaces"] {
        let dir = with_a_crawl();
        let path = dir.path().join("state").join(marker);
        if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.unwrap();
        let before = files(&dir.path().join("state"));
        let message = refused(dir.path());
        assert!(message.contains(marker), "{marker}: {message}");
        assert_eq!(files(&dir.path().join("state")), before, "{marker}");
    }
}

#[test]
fn tables_without_their_list_are_not_deleted() {
    let dir = with_a_crawl();
    let keyspace = dir.path().join("state/keyspaces/5");
    fs::remove_file(keyspace.join("current")).unwrap();
    fs::write(keyspace.join("tables/7"), "rows").unwrap();
    assert!(refused(dir.path()).contains("keyspaces/5/current"));
    assert_eq!(fs::read(keyspace.join("tables/7")).unwrap(), b"rows");
}

#[test]
fn what_is_there_is_told_apart_from_what_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(DataDir::find(&dir.path().join("none")).unwrap(), Found::Nothing);
    assert_eq!(DataDir::find(dir.path()).unwrap(), Found::Nothing);
    let with_crawl = with_a_crawl();
    assert_eq!(DataDir::find(with_crawl.path()).unwrap(), Found::Data);
    fs::remove_file(with_crawl.path().join("telusur.version")).unwrap();
    assert!(matches!(DataDir::find(with_crawl.path()), Err(StoreError::StateDamaged(_))));
    // A file where a directory should be: the system refuses, whoever asks.
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(DataDir::find(&file), Err(StoreError::Io { .. })));
    assert!(matches!(DataDir::find(dir.path()), Err(StoreError::Unusable(_))));
}

#[test]
fn a_lost_database_is_not_an_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    drop(telusur_store_embedded::open(dir.path()).unwrap());
    fs::remove_dir_all(dir.path().join("state")).unwrap();
    assert!(refused(dir.path()).contains("state is damaged: it is gone"));
}

#[test]
fn bodies_of_a_forgotten_crawl_are_reported() {
    use telusur_ledger::CrawlStore;
    let dir = tempfile::tempdir().unwrap();
    let store = telusur_store_embedded::open(dir.path()).unwrap();
    let old = dir.path().join("bodies/crawl_1");
    fs::create_dir(&old).unwrap();
    let report = store.verify(&|_| Ok(Vec::new())).unwrap();
    assert_eq!(report.checks[8].broken, 1, "{report:?}");
}

#[test]
fn bodies_that_were_cut_do_not_reach_their_end() {
    use telusur_ledger::{Bodies, BodiesEnd, Storage};
    let dir = tempfile::tempdir().unwrap();
    let store = telusur_store_embedded::open(dir.path()).unwrap();
    let (bodies, crawl) = (store.storage().bodies(), telusur_model::CrawlNo(1));
    let check = |end, expect| assert_eq!(bodies.reach(crawl, end).unwrap(), expect, "{end:?}");
    check(BodiesEnd::default(), true);
    let end = bodies.append(crawl, BodiesEnd::default(), &[], |_| b"four".to_vec()).unwrap();
    check(end, true);
    check(BodiesEnd { len: end.len + 1, ..end }, false);
    let segment = fs::read_dir(dir.path().join("bodies/crawl_1")).unwrap().next().unwrap();
    fs::File::options().write(true).open(segment.unwrap().path()).unwrap().set_len(3).unwrap();
    check(end, false);
    assert!(bodies.remove(crawl, usize::MAX).unwrap());
    check(end, false);
}

#[test]
fn a_directory_whose_making_was_cut_short_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("bodies")).unwrap();
    fs::write(dir.path().join("telusur.version.new"), "{\"prod").unwrap();
    telusur_store_embedded::open(dir.path()).unwrap();
}

#[test]
fn a_link_in_the_place_of_the_lock_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (data, target) = (dir.path().join("data"), dir.path().join("precious"));
    fs::create_dir(&data).unwrap();
    fs::write(&target, "years of work").unwrap();
    std::os::unix::fs::symlink(&target, data.join("telusur.lock")).unwrap();
    assert!(refused(&data).contains("symbolic link"));
    assert_eq!(fs::read_to_string(&target).unwrap(), "years of work");
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// A directory of an older version, or one that somebody made for us.
#[test]
fn a_directory_that_others_may_read_is_closed() {
    use std::os::unix::fs::PermissionsExt;
    let dir = with_a_crawl();
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let state = dir.path().join("state");
    for file in files(dir.path()).keys() {
        open(file, 0o644);
    }
    open(&state, 0o755);
    open(dir.path(), 0o755);
    drop(telusur_store_embedded::open(dir.path()).unwrap());
    assert_eq!((mode(dir.path()), mode(&state)), (0o700, 0o700));
    assert_eq!(mode(&dir.path().join("telusur.version")), 0o600);
    assert_eq!(mode(&state.join("version")), 0o600);
}

/// A crawl of an older version may have more patterns than are accepted today: that is no damage, and
/// the other crawls are verified all the same.
#[test]
fn a_crawl_with_patterns_beyond_the_limit_is_noted_and_the_rest_verified() {
    use telusur_ledger::CrawlStore;
    let dir = with_a_crawl();
    let store = telusur_store_embedded::open(dir.path()).unwrap();
    let mut crawl = a_crawl();
    crawl.scope.exclude = (0..90).map(|number| format!(r"{number}\w{{200}}")).collect();
    store.create(telusur_ledger::NewCrawl { crawl, random: 8 }).unwrap();
    let report = store.verify(&|_| Ok(Vec::new())).unwrap();
    assert!(report.holds(), "{report:?}");
    assert_eq!(report.counts.crawls, 2);
    let links = report.checks.iter().find(|check| check.id == "I3").unwrap();
    assert!(links.notes.iter().any(|note| note.contains("links not checked")), "{links:?}");
}
