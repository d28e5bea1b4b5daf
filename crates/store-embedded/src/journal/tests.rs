//! Journals that the database itself wrote, damaged in every way.

use std::fs;
use std::path::PathBuf;

use fjall::{Database, KeyspaceCreateOptions, PersistMode};

use super::*;

const BATCHES: u64 = 40;

/// A journal of [`BATCHES`] batches of one to twenty rows, and the places where they end.
fn written() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::builder(dir.path()).open().unwrap();
    let rows = database.keyspace("rows", KeyspaceCreateOptions::default).unwrap();
    for batch_no in 0..BATCHES {
        let mut batch = database.batch().durability(Some(PersistMode::SyncData));
        for row in 0..=batch_no % 20 {
            // Some values are long enough to be compressed.
            let value = vec![b'a' + (row as u8 % 26); (row * 400) as usize];
            batch.insert(&rows, format!("{batch_no}/{row}"), value);
        }
        batch.remove(&rows, format!("{batch_no}/gone"));
        batch.commit().unwrap();
    }
    drop((rows, database));
    let path = dir.path().join("0.jnl");
    let whole = read(&path, None).unwrap();
    let bytes = fs::read(&path).unwrap()[..whole.whole_bytes as usize].to_vec();
    (dir, path, bytes)
}

/// Where each batch ends.
fn ends(bytes: &[u8]) -> Vec<usize> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("0.jnl");
    fs::write(&path, bytes).unwrap();
    let mut window = Window::open(&path).unwrap();
    let mut ends = vec![0];
    while let Some(batch) = window.batch_at(*ends.last().unwrap() as u64).unwrap() {
        ends.push(batch.end as usize);
    }
    ends
}

#[test]
fn a_journal_of_the_database_is_whole() {
    let (_dir, path, bytes) = written();
    let found = read(&path, None).unwrap();
    assert_eq!((found.batches, found.rest), (BATCHES, Rest::Empty));
    assert_eq!(ends(&bytes).len() as u64, BATCHES + 1);
    assert_eq!(ends(&bytes).last(), Some(&bytes.len()));
}

/// Bit flips, zeros, ones and cuts at many places: what is before the damage is whole, and what is
/// behind it decides whether it is a hole.
#[test]
fn holes_are_told_from_torn_ends() {
    let (_dir, path, bytes) = written();
    let ends = ends(&bytes);
    let step = bytes.len() / 150;
    for (place, at) in (0..bytes.len()).step_by(step).enumerate() {
        let kinds: [(&str, usize, u8); 4] =
            [("flip", 1, 0), ("zero", 512, 0), ("zero", 4096, 0), ("ones", 512, 0xff)];
        let (kind, len, fill) = kinds[place % kinds.len()];
        let mut damaged = bytes.clone();
        let end = (at + len).min(bytes.len());
        match kind {
            "flip" => damaged[at] ^= 1 << (place % 8),
            _ => damaged[at..end].fill(fill),
        }
        if damaged == bytes {
            continue;
        }
        fs::write(&path, &damaged).unwrap();
        let found = read(&path, None).unwrap();
        let first = (at..end).find(|byte| damaged[*byte] != bytes[*byte]).unwrap();
        let last = (at..end).rfind(|byte| damaged[*byte] != bytes[*byte]).unwrap();
        let before = ends.iter().rposition(|end| *end <= first).unwrap();
        let behind = ends[..ends.len() - 1].iter().filter(|begin| **begin > last).count() as u64;
        // The number of a batch has no checksum: a flip in it is seen at the next batch.
        let in_seqno = (ends[before] + 5..ends[before] + 13).contains(&first) && kind == "flip";
        if in_seqno {
            assert_ne!(found, read_bytes(&path, &bytes), "{kind} at {at}");
            continue;
        }
        assert_eq!(found.whole_bytes as usize, ends[before], "{kind} at {at}");
        let is_empty = damaged[ends[before]..].iter().all(|byte| *byte == 0);
        let expected = match behind {
            0 if is_empty => Rest::Empty,
            0 => Rest::Torn,
            batches_behind => Rest::Hole { batches_behind },
        };
        assert_eq!(found.rest, expected, "{kind} at {at}");
    }
}

#[test]
fn a_cut_is_a_torn_end() {
    let (_dir, path, bytes) = written();
    let ends = ends(&bytes);
    for at in (0..bytes.len()).step_by(bytes.len() / 100) {
        for zeros in [0, 5000] {
            let cut = [&bytes[..at], &vec![0; zeros]].concat();
            let found = read_bytes(&path, &cut);
            let before = ends.iter().rposition(|end| *end <= at).unwrap();
            assert_eq!(found.whole_bytes as usize, ends[before], "{at}");
            let rest = if ends[before] == at { Rest::Empty } else { Rest::Torn };
            assert_eq!(found.rest, rest, "{at}");
        }
    }
}

#[test]
fn numbers_go_up() {
    let (_dir, path, bytes) = written();
    let twice = [&bytes[..], &bytes[..]].concat();
    let found = read_bytes(&path, &twice);
    assert_eq!(found.whole_bytes as usize, bytes.len());
    assert!(matches!(found.rest, Rest::Backwards { .. }), "{:?}", found.rest);
    let after = read(&path, found.last_seqno).unwrap();
    assert_eq!((after.batches, after.last_seqno), (0, None));
}

fn read_bytes(path: &Path, bytes: &[u8]) -> Journal {
    fs::write(path, bytes).unwrap();
    read(path, None).unwrap()
}
