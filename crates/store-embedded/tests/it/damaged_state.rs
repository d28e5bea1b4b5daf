//! Damage in `state/` is named, and a directory that is refused stays as it is.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use telusur_ledger::{CrawlStore, NewCrawl, StateDamage, StoreError};
use telusur_model::Timestamp;
use telusur_store_embedded::{RecoverInto, Recovery};

use crate::directory::{a_crawl, files};

/// A closed directory whose journal holds some hundred steps.
fn with_steps() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = telusur_store_embedded::open(dir.path()).unwrap();
    for random in 0..300 {
        store.create(NewCrawl { crawl: a_crawl(), random }).unwrap();
    }
    store.close().unwrap();
    dir
}

#[track_caller]
fn refused(dir: &Path) -> StateDamage {
    let before = files(dir);
    let damage = match telusur_store_embedded::open(dir) {
        Err(StoreError::StateDamaged(damage)) => *damage,
        Err(error) => panic!("refused for another reason: {error}"),
        Ok(_) => panic!("opened"),
    };
    let after = files(dir);
    let changed = |(path, bytes): &(&PathBuf, &Vec<u8>)| after.get(*path) != Some(*bytes);
    assert_eq!(before.iter().filter(changed).map(|(path, _)| path).next(), None, "changed");
    assert_eq!(before.len(), after.len());
    assert!(damage.help().contains("telusur recover "), "{damage}");
    damage
}

fn put_back(dir: &Path, whole: &BTreeMap<PathBuf, Vec<u8>>) {
    fs::remove_dir_all(dir.join("state")).unwrap();
    for (path, bytes) in whole {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// The end of the journal that was written: the rest of the file is zeros.
fn written(journal: &[u8]) -> usize {
    journal.iter().rposition(|byte| *byte != 0).unwrap() + 1
}

/// One zeroed block in the journal of a finished crawl once cost everything behind it, silently.
#[test]
fn a_zeroed_block_in_the_journal_is_named_wherever_it_is() {
    let dir = with_steps();
    let path = dir.path().join("state/0.jnl");
    let mut whole = fs::read(&path).unwrap();
    whole.truncate(written(&whole));
    assert!(whole.len() > 64 << 10, "{}", whole.len());
    for place in 0..32 {
        let at = (whole.len() - 4096) * place / 31;
        let mut damaged = whole.clone();
        damaged[at..at + 4096].fill(0);
        fs::write(&path, &damaged).unwrap();
        let damage = refused(dir.path());
        assert_eq!(damage.file, "state/0.jnl");
        if place < 31 {
            assert!(
                damage.byte.unwrap() <= at as u64 && damage.what.contains("behind it"),
                "{damage}"
            );
        }
    }
    fs::write(&path, &whole).unwrap();
    telusur_store_embedded::open(dir.path()).unwrap();
}

#[test]
fn a_journal_that_is_empty_cut_or_gone_is_named() {
    let dir = with_steps();
    let path = dir.path().join("state/0.jnl");
    let whole = fs::read(&path).unwrap();
    for len in [0, 1, written(&whole) / 2, written(&whole) - 1] {
        fs::write(&path, &whole[..len]).unwrap();
        let damage = refused(dir.path());
        assert!(damage.what.contains("was written"), "{damage}");
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(refused(dir.path()).file, "state/0.jnl");
}

/// Small files of the database: the lists of tables, and what names them.
#[test]
fn damaged_lists_of_tables_are_named() {
    let dir = with_steps();
    let whole: BTreeMap<_, _> = files(&dir.path().join("state"));
    // Older lists may be left over; the next opening deletes them.
    let is_newest = |path: &Path, name: &str| {
        let current = whole.get(&path.with_file_name("current"));
        current.is_some_and(|current| name == format!("v{}", current[0]))
    };
    let small = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name == "version" || name == "current" || is_newest(path, &name)
    };
    for (path, bytes) in whole.iter().filter(|(path, _)| small(path)) {
        for damaged in [vec![], vec![0; bytes.len()], vec![0xff; bytes.len()], {
            let mut flipped = bytes.clone();
            flipped[bytes.len() / 2] ^= 4;
            flipped
        }] {
            fs::write(path, damaged).unwrap();
            refused(dir.path());
        }
        fs::remove_file(path).unwrap();
        refused(dir.path());
        fs::write(path, bytes).unwrap();
    }
    put_back(dir.path(), &whole);
    telusur_store_embedded::open(dir.path()).unwrap();
}

/// Every table file, damaged at many places: opened or refused with its name, and never a panic.
#[test]
fn damaged_tables_are_named() {
    let dir = with_steps();
    let whole: BTreeMap<_, _> = files(&dir.path().join("state"));
    let tables = whole.iter().filter(|(path, _)| path.parent().unwrap().ends_with("tables"));
    let mut named = 0;
    for (place, (path, bytes)) in tables.enumerate() {
        for at in (0..bytes.len()).step_by((bytes.len() / 12).max(1)) {
            let mut damaged = bytes.clone();
            match at % 3 {
                0 => damaged.truncate(at),
                _ => damaged[at] ^= 1 << (place % 8),
            }
            fs::write(path, damaged).unwrap();
            match telusur_store_embedded::open(dir.path()) {
                Ok(store) => drop(store),
                Err(StoreError::StateDamaged(damage)) => {
                    assert!(path.ends_with(&damage.file), "{damage}");
                    named += 1;
                }
                Err(StoreError::Unreadable { damage: Some(damage), .. }) => {
                    assert!(path.ends_with(&damage.file), "{damage}");
                    named += 1;
                }
                Err(error) => panic!("{error}"),
            }
            put_back(dir.path(), &whole);
        }
    }
    assert!(named > 0, "no damage was found");
}

#[test]
fn a_copy_without_locks_and_witness_opens() {
    let dir = with_steps();
    for file in ["state/lock", "telusur.lock", "state/telusur.witness"] {
        fs::remove_file(dir.path().join(file)).unwrap();
    }
    telusur_store_embedded::open(dir.path()).unwrap();
}

#[test]
fn a_damaged_version_file_names_the_way_out() {
    let dir = with_steps();
    let path = dir.path().join("telusur.version");
    for bytes in [&b""[..], b"{", b"\xff\xfe", b"null"] {
        fs::write(&path, bytes).unwrap();
        assert_eq!(refused(dir.path()).file, "telusur.version");
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(refused(dir.path()).file, "telusur.version");
}

/// A directory as a kill leaves it: nobody wrote down how far it came when it was closed.
fn copied(from: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for (path, bytes) in files(from) {
        let path = copy.path().join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    copy
}

const REACH: &str = "state/telusur.reach";

/// Makes a copy the original, as far as it can be told: damage is refused then, and not taken for the trace of
/// copying.
fn make_original(copy: &Path, of: &Path) {
    let (reach, original) = (copy.join(REACH), of.join(REACH));
    fs::write(&original, fs::read(&reach).unwrap()).unwrap();
    fs::remove_file(&reach).unwrap();
    fs::hard_link(original, reach).unwrap();
}

/// Until the witness followed every step, a journal that had lost its newest steps was taken for one that
/// never had them.
#[test]
fn after_a_kill_a_journal_that_lost_its_newest_steps_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let store = telusur_store_embedded::open(dir.path()).unwrap();
    // The rest of it is room.
    let journal = |dir: &Path| {
        let mut written = vec![0; 1 << 20];
        let file = fs::File::open(dir.join("state/0.jnl")).unwrap();
        file.read_exact_at(&mut written, 0).unwrap();
        written
    };
    let (mut steps, mut older) = (Vec::new(), Vec::new());
    for random in 0..40 {
        store.create(NewCrawl { crawl: a_crawl(), random }).unwrap();
        let bytes = journal(dir.path());
        steps.push(written(&bytes));
        if random == 20 {
            older = bytes;
        }
    }
    let whole = journal(dir.path());
    let killed = copied(dir.path());
    store.close().unwrap();
    make_original(killed.path(), dir.path());
    // At the end of a whole step: nothing in the journal itself says that there was more.
    for end in [steps[10], steps[38]] {
        let mut shorter = whole.clone();
        shorter[end..].fill(0);
        fs::write(killed.path().join("state/0.jnl"), &shorter).unwrap();
        let damage = refused(killed.path());
        assert!(damage.file == "state/0.jnl" && damage.what.contains("was written"), "{damage}");
    }
    fs::write(killed.path().join("state/0.jnl"), &older).unwrap();
    assert_eq!(refused(killed.path()).file, "state/0.jnl");
    fs::write(killed.path().join("state/0.jnl"), &whole).unwrap();
    let store = telusur_store_embedded::open(killed.path()).unwrap();
    assert_eq!(store.crawls().unwrap().len(), 40);
}

/// Files of a directory in which crawls are made one after the other: what is copied first is older.
struct InUse {
    dir: tempfile::TempDir,
    early: BTreeMap<PathBuf, Vec<u8>>,
    late: BTreeMap<PathBuf, Vec<u8>>,
}

const EARLY: usize = 20;
const LATE: usize = 40;

impl InUse {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = telusur_store_embedded::open(dir.path()).unwrap();
        let make = |random| drop(store.create(NewCrawl { crawl: a_crawl(), random }).unwrap());
        (0..EARLY as u128).for_each(make);
        let early = files(dir.path());
        (EARLY as u128..LATE as u128).for_each(make);
        let late = files(dir.path());
        Self { dir, early, late }
    }

    /// A copy with the later ones of some files, and the earlier ones of all others.
    fn copy(&self, is_late: impl Fn(&str) -> bool) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        for path in self.late.keys() {
            let inside = path.strip_prefix(self.dir.path()).unwrap();
            let from = if is_late(inside.to_str().unwrap()) { &self.late } else { &self.early };
            let Some(bytes) = from.get(path) else { continue };
            let to = copy.path().join(inside);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::write(to, bytes).unwrap();
        }
        copy
    }

    /// How many crawls a copy has, and whether its state had to be rebuilt.
    #[track_caller]
    fn crawls_of(&self, is_late: impl Fn(&str) -> bool) -> (usize, bool) {
        let copy = self.copy(is_late);
        let (store, is_rebuilt) = match telusur_store_embedded::open(copy.path()) {
            Ok(store) => (store, false),
            Err(StoreError::StateDamaged(damage)) if damage.is_torn_copy => {
                let recovery = Recovery::begin(copy.path(), RecoverInto::Place, &mut |_| {});
                recovery.unwrap().finish().unwrap();
                (telusur_store_embedded::open(copy.path()).unwrap(), true)
            }
            Err(error) => panic!("{error}"),
        };
        let report = store.verify(&|_| Ok(Vec::new())).unwrap();
        assert!(report.holds(), "{report:?}");
        (store.crawls().unwrap().len(), is_rebuilt)
    }
}

/// Of sixty copies of directories in use 22 were once refused, because the witness had been copied last.
#[test]
fn a_copy_of_a_directory_in_use_has_what_its_bodies_have() {
    let in_use = InUse::new();
    let is_body = |path: &str| path.starts_with("bodies/");
    let check = |is_late: &dyn Fn(&str) -> bool, crawls, is_rebuilt| {
        assert_eq!(in_use.crawls_of(is_late), (crawls, is_rebuilt));
    };
    check(&|_| false, EARLY, false);
    check(&|_| true, LATE, false);
    check(&|path| path == REACH, EARLY, true);
    check(&|path| path == "state/0.jnl", EARLY, true);
    check(&|path| path == REACH || is_body(path), LATE, true);
    // Steps that the rows lack are done again.
    check(&is_body, LATE, false);
    // Rows tell of bodies that were not there yet.
    check(&|path| !is_body(path), EARLY, true);
    // A step in between is of a crawl that was copied before it.
    check(&|path| is_body(path) && !path.contains("crawl_30/"), LATE - 1, true);
}

/// One zeroed block is a hole, and so are blocks of a journal that were read before they were written.
#[test]
fn a_hole_in_the_journal_of_a_copy_costs_nothing() {
    let in_use = InUse::new();
    let copy = in_use.copy(|_| true);
    let path = copy.path().join("state/0.jnl");
    let mut journal = fs::read(&path).unwrap();
    let middle = written(&journal) / 2;
    journal[middle..middle + 4096].fill(0);
    fs::write(&path, journal).unwrap();
    let Err(StoreError::StateDamaged(damage)) = telusur_store_embedded::open(copy.path()) else {
        panic!("opened")
    };
    assert!(damage.is_torn_copy && damage.what.contains("behind it"), "{damage}");
    Recovery::begin(copy.path(), RecoverInto::Place, &mut |_| {}).unwrap().finish().unwrap();
    let store = telusur_store_embedded::open(copy.path()).unwrap();
    assert_eq!(store.crawls().unwrap().len(), LATE);
}

/// A backup of a directory that was closed lacks nothing: what is missing is damage, and is said.
#[test]
fn damage_of_a_copy_of_a_closed_directory_is_refused() {
    let dir = with_steps();
    let copy = copied(dir.path());
    let path = copy.path().join("state/0.jnl");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..written(&whole) / 2]).unwrap();
    assert!(!refused(copy.path()).is_torn_copy);
}

/// Without any witness the rest still has to fit together, and no witness stops a whole directory.
#[test]
fn a_damaged_witness_stops_nobody() {
    let dir = with_steps();
    for file in ["state/telusur.witness", "state/telusur.reach"] {
        let path = dir.path().join(file);
        let whole = fs::read(&path).unwrap();
        for damaged in [vec![], vec![0xff; whole.len()], whole[..whole.len() / 2].to_vec()] {
            fs::write(&path, damaged).unwrap();
            telusur_store_embedded::open(dir.path()).unwrap().close().unwrap();
        }
    }
}

/// A digit of the seed, and every URL would be a new one.
#[test]
fn every_bit_of_the_version_file_counts() {
    let dir = with_steps();
    let path = dir.path().join("telusur.version");
    let whole = fs::read(&path).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &damaged).unwrap();
        match telusur_store_embedded::DataDir::open(dir.path()) {
            Err(StoreError::StateDamaged(damage)) => assert_eq!(damage.file, "telusur.version"),
            Err(error) => panic!("{error}"),
            // The name of the checksum itself: it is as if an older version had written it.
            Ok(_) => {
                let text = String::from_utf8(damaged).unwrap();
                assert!(!text.contains("\"checksum\""), "{text}");
            }
        }
    }
}

/// A journal is read by the next opening only: what is damaged meanwhile was found then, too late for a copy of it.
#[test]
fn scrub_reads_the_journals() {
    let dir = tempfile::tempdir().unwrap();
    let store = telusur_store_embedded::open(dir.path()).unwrap();
    for random in 0..200 {
        store.create(NewCrawl { crawl: a_crawl(), random }).unwrap();
    }
    let scrub = || loop {
        let state = store.scrub(1 << 20, Timestamp(1)).unwrap();
        if state.ended_at.is_some() {
            break state;
        }
    };
    assert_eq!(scrub().damaged, 0);
    let file = fs::File::options().write(true).open(dir.path().join("state/0.jnl")).unwrap();
    file.write_all_at(&[0; 4096], 32 << 10).unwrap();
    let state = scrub();
    assert_eq!(state.damaged, 1);
    let found = &state.found[0];
    assert!(found.starts_with("state/0.jnl is damaged at byte"), "{found}");
}
