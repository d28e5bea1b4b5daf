use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// Enough to see every kind of survival several times.
fn seeds() -> std::ops::Range<u64> {
    0..200
}

fn open(disk: &SimDisk, path: &str) -> Arc<dyn DiskFile> {
    disk.create(path).unwrap()
}

/// A disk with the synced file `d/f` of these bytes.
fn disk_with(bytes: &[u8]) -> (SimDisk, Arc<dyn DiskFile>) {
    let disk = SimDisk::new();
    disk.create_dir("d").unwrap();
    let file = open(&disk, "d/f");
    file.write_at(0, bytes).unwrap();
    file.sync().unwrap();
    disk.sync_dir("d").unwrap();
    (disk, file)
}

/// Every content that `path` can have after a power loss.
fn outcomes(disk: &SimDisk, path: &str) -> HashSet<Option<Vec<u8>>> {
    seeds().map(|seed| disk.crash(seed).content(path)).collect()
}

#[test]
fn what_is_written_can_be_read() {
    let (disk, file) = disk_with(b"hello");
    file.write_at(8, b"you").unwrap();
    assert_eq!(file.len().unwrap(), 11);
    let mut bytes = [1; 5];
    file.read_at(4, &mut bytes).unwrap();
    assert_eq!(&bytes, b"o\0\0\0y");
    file.truncate(2).unwrap();
    assert_eq!(file.read_at(0, &mut bytes).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(disk.content("d/f").unwrap(), b"he");
}

#[test]
fn synced_bytes_always_survive() {
    let (disk, _) = disk_with(&[7; 3000]);
    assert_eq!(outcomes(&disk, "d/f"), HashSet::from([Some(vec![7; 3000])]));
}

#[test]
fn unsynced_writes_are_torn_at_sectors_and_reordered() {
    let (disk, file) = disk_with(&[0; 2048]);
    file.write_at(0, &[1; 1024]).unwrap();
    file.write_at(1024, &[2; 1024]).unwrap();
    let mut sectors_seen = HashSet::new();
    for content in outcomes(&disk, "d/f") {
        let content = content.unwrap();
        let sectors: Vec<u8> = content.chunks(512).map(|sector| sector[0]).collect();
        for (sector, chunk) in content.chunks(512).enumerate() {
            assert!(chunk.iter().all(|byte| *byte == sectors[sector]), "a sector is torn");
        }
        sectors_seen.insert(sectors);
    }
    for possible in [[0, 0, 0, 0], [1, 1, 2, 2], [0, 0, 2, 2], [0, 1, 2, 0]] {
        assert!(sectors_seen.contains(possible.as_slice()), "{possible:?} in {sectors_seen:?}");
    }
}

#[test]
fn an_append_may_arrive_as_zeros_or_not_at_all() {
    let (disk, file) = disk_with(b"old");
    file.write_at(3, b"new").unwrap();
    let expect = ["old", "oldnew", "old\0\0\0"].map(|text| Some(text.as_bytes().to_vec()));
    assert_eq!(outcomes(&disk, "d/f"), HashSet::from(expect));
}

#[test]
fn an_unsynced_cut_may_not_hold() {
    let (disk, file) = disk_with(b"long");
    file.truncate(1).unwrap();
    let expect = [Some(b"l".to_vec()), Some(b"long".to_vec())];
    assert_eq!(outcomes(&disk, "d/f"), HashSet::from(expect));
    file.sync().unwrap();
    assert_eq!(outcomes(&disk, "d/f"), HashSet::from([Some(b"l".to_vec())]));
}

#[test]
fn a_new_file_may_vanish_until_its_directory_is_synced() {
    let (disk, _) = disk_with(b"");
    let file = open(&disk, "d/new");
    file.write_at(0, b"x").unwrap();
    file.sync().unwrap();
    assert_eq!(outcomes(&disk, "d/new"), HashSet::from([None, Some(b"x".to_vec())]));
    disk.sync_dir("d").unwrap();
    assert_eq!(outcomes(&disk, "d/new"), HashSet::from([Some(b"x".to_vec())]));
}

#[test]
fn a_synced_name_does_not_sync_the_content() {
    let (disk, _) = disk_with(b"");
    open(&disk, "d/new").write_at(0, b"x").unwrap();
    disk.sync_dir("d").unwrap();
    let expect = ["", "x", "\0"].map(|text| Some(text.as_bytes().to_vec()));
    assert_eq!(outcomes(&disk, "d/new"), HashSet::from(expect));
}

#[test]
fn a_deleted_directory_may_come_back_in_part() {
    let (disk, _) = disk_with(b"1");
    open(&disk, "d/g").sync().unwrap();
    disk.sync_dir("d").unwrap();
    assert!(disk.remove_dir("d", usize::MAX).unwrap());
    assert!(disk.remove_dir("d", usize::MAX).unwrap());
    assert_eq!(disk.paths(), Vec::<String>::new());
    let outcomes: HashSet<Vec<String>> = seeds().map(|seed| disk.crash(seed).paths()).collect();
    assert!(outcomes.contains(&vec![]) && outcomes.contains(&vec!["d/f".into(), "d/g".into()]));
    assert!(outcomes.contains(&vec!["d/g".to_owned()]), "{outcomes:?}");
    disk.sync_dir("").unwrap();
    assert!(seeds().all(|seed| disk.crash(seed).paths().is_empty()));
}

#[test]
fn a_name_that_was_taken_over_leads_to_the_old_or_the_new_file() {
    let (disk, old) = disk_with(b"old");
    assert!(disk.remove_dir("d", usize::MAX).unwrap());
    disk.create_dir("d").unwrap();
    let new = open(&disk, "d/f");
    assert!(new.is_empty().unwrap());
    new.write_at(0, b"new").unwrap();
    new.sync().unwrap();
    assert_eq!(old.len().unwrap(), 3, "the handle keeps its file");
    let outcomes = outcomes(&disk, "d/f");
    assert!(outcomes.contains(&Some(b"new".to_vec())));
    assert!(outcomes.iter().all(|it| it.as_deref() != Some(b"".as_slice())), "{outcomes:?}");
}

#[test]
fn similar_names_are_not_within_a_directory() {
    let (disk, _) = disk_with(b"1");
    disk.create_dir("dd/e").unwrap();
    open(&disk, "dd/e/f");
    assert!(disk.remove_dir("d", usize::MAX).unwrap());
    assert_eq!(disk.paths(), ["dd/e/f"]);
}

#[test]
fn files_need_their_directory() {
    let disk = SimDisk::new();
    assert_eq!(disk.create("a/f").err().unwrap().kind(), io::ErrorKind::NotFound);
    assert_eq!(disk.sync_dir("a").unwrap_err().kind(), io::ErrorKind::NotFound);
    disk.create_dir("a/b").unwrap();
    assert_eq!(disk.create("a/b").err().unwrap().kind(), io::ErrorKind::IsADirectory);
    assert!(seeds().all(|seed| disk.crash(seed).create("a/b/f").is_ok()));
}

#[test]
fn one_seed_gives_one_crash() {
    let (disk, file) = disk_with(&[0; 5000]);
    file.write_at(100, &[1; 4000]).unwrap();
    for seed in seeds() {
        assert_eq!(disk.crash(seed).content("d/f"), disk.crash(seed).content("d/f"));
    }
}

#[test]
fn a_disk_after_a_crash_is_a_disk() {
    let (disk, file) = disk_with(b"kept");
    file.write_at(4, &[1; 2000]).unwrap();
    let after = disk.crash(3);
    let found = after.content("d/f").unwrap();
    assert!(seeds().all(|seed| after.crash(seed).content("d/f").as_ref() == Some(&found)));
    open(&after, "d/f").truncate(4).unwrap();
    assert_eq!(after.content("d/f").unwrap(), b"kept");
    assert_eq!(disk.content("d/f").unwrap().len(), 2004, "the old disk is another one");
}

#[test]
fn the_nth_write_finds_the_disk_full() {
    let (disk, file) = disk_with(b"");
    let nth = disk.calls(DiskCall::Write) + 2;
    let failure = DiskFailure::NoSpace;
    disk.fail(DiskFault { call: DiskCall::Write, nth, lasting: false, failure });
    file.write_at(0, b"first").unwrap();
    let full = file.write_at(5, b"second").unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    assert_eq!(disk.content("d/f").unwrap(), b"firstsec");
    file.write_at(5, b"third").unwrap();
    assert_eq!(disk.content("d/f").unwrap(), b"firstthird");
}

#[test]
fn a_lasting_fault_lasts() {
    let (disk, file) = disk_with(b"");
    let nth = disk.calls(DiskCall::Write) + 1;
    let failure = DiskFailure::NoSpace;
    disk.fail(DiskFault { call: DiskCall::Write, nth, lasting: true, failure });
    assert!((0..3).all(|_| file.write_at(0, b"x").is_err()));
    file.sync().unwrap();
}

#[test]
fn a_failed_sync_loses_what_it_should_have_kept() {
    let (disk, file) = disk_with(b"");
    file.write_at(0, b"lost").unwrap();
    let nth = disk.calls(DiskCall::Sync) + 1;
    let failure = DiskFailure::Device;
    disk.fail(DiskFault { call: DiskCall::Sync, nth, lasting: false, failure });
    assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(5));
    file.write_at(4, b"kept").unwrap();
    file.sync().unwrap();
    assert_eq!(disk.content("d/f").unwrap(), b"lostkept");
    assert_eq!(outcomes(&disk, "d/f"), HashSet::from([Some(b"\0\0\0\0kept".to_vec())]));
}

#[test]
fn events_tell_the_order() {
    let (disk, file) = disk_with(b"ab");
    file.truncate(1).unwrap();
    disk.fail(DiskFault {
        call: DiskCall::SyncDir,
        nth: 2,
        lasting: false,
        failure: DiskFailure::Device,
    });
    disk.sync_dir("d").unwrap_err();
    assert!(disk.remove_dir("d", usize::MAX).unwrap());
    let path = || "d/f".to_owned();
    let dir = || "d".to_owned();
    let expect = [
        DiskEvent::CreateDir { dir: dir() },
        DiskEvent::Open { path: path(), is_new: true },
        DiskEvent::Write { path: path(), offset: 0, bytes: 2 },
        DiskEvent::Sync { path: path() },
        DiskEvent::SyncDir { dir: dir() },
        DiskEvent::Truncate { path: path(), len: 1 },
        DiskEvent::Failed { call: DiskCall::SyncDir, path: dir() },
        DiskEvent::RemoveDir { dir: dir() },
    ];
    assert_eq!(disk.events(), expect);
}

#[derive(Clone, Debug)]
enum FileOp {
    Write { offset: usize, len: usize, byte: u8 },
    Truncate { len: usize },
    Sync,
}

fn file_op() -> impl Strategy<Value = FileOp> {
    prop_oneof![
        4 => (0..3000_usize, 0..1500_usize, 1..=255_u8)
            .prop_map(|(offset, len, byte)| FileOp::Write { offset, len, byte }),
        1 => (0..3000_usize).prop_map(|len| FileOp::Truncate { len }),
        1 => Just(FileOp::Sync),
    ]
}

proptest! {
    #[test]
    fn bytes_untouched_since_the_last_sync_survive(
        ops in prop::collection::vec(file_op(), 0..20),
        seed: u64,
    ) {
        let (disk, file) = disk_with(b"");
        let mut synced = Vec::new();
        let mut touched: Vec<std::ops::Range<usize>> = Vec::new();
        for op in ops {
            match op {
                FileOp::Write { offset, len, byte } => {
                    file.write_at(offset as u64, &vec![byte; len]).unwrap();
                    touched.push(offset..offset + len);
                }
                FileOp::Truncate { len } => {
                    file.truncate(len as u64).unwrap();
                    touched.push(len..usize::MAX);
                }
                FileOp::Sync => {
                    file.sync().unwrap();
                    synced = disk.content("d/f").unwrap();
                    touched.clear();
                }
            }
        }
        let found = disk.crash(seed).content("d/f").unwrap();
        for (place, byte) in synced.iter().enumerate() {
            if !touched.iter().any(|range| range.contains(&place)) {
                prop_assert_eq!(found.get(place), Some(byte), "at {}", place);
            }
        }
    }
}
