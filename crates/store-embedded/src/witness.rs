//! [`Witness`]: how far the state database had come, in small files of their own beside its files.
//!
//! The database believes whatever its files say: an empty journal is a new one, an older list of
//! tables is the newest, and a table is not compared with the list that names it. The witness says what they
//! must have reached at least. `telusur.witness` is written and synced when the database is opened and
//! closed; `telusur.reach` follows every batch and is not synced: after a kill it is exact, after a power loss it may
//! be behind, and it is never ahead, because whatever it tells of was synced before. Both are in `state/`, so
//! that whoever replaces that directory as a whole replaces them with it. A missing or damaged one proves nothing.
//!
//! `telusur.reach` is written in place, and says which file it is: elsewhere it is a copy, and so is what is
//! beside it. Files that were copied while they were written are of different moments.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::private_files::private_file;

pub(crate) const WITNESS_FILE: &str = "telusur.witness";
const WITNESS_FILE_NEW: &str = "telusur.witness.new";
pub(crate) const REACH_FILE: &str = "telusur.reach";
/// Room for one witness in [`REACH_FILE`]: with fourteen keyspaces and three journals it is 700 bytes.
const SLOT_BYTES: usize = 4096;
/// Written in turn: a write that a power loss tears leaves the one before.
const SLOTS: u64 = 2;
/// Length and checksum.
const SLOT_HEAD_BYTES: usize = 4 + 8;

/// What the files of the state database must have reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Witness {
    /// Whether the database was closed after this was written: then nothing may be missing.
    pub is_closed: bool,
    /// The journals.
    pub journals: BTreeMap<u64, JournalReach>,
    /// The keyspaces.
    pub keyspaces: BTreeMap<u64, KeyspaceReach>,
}

/// How far a journal reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JournalReach {
    /// The number of its last batch, if it has one.
    pub last: Option<u64>,
    /// Per keyspace the number of its last batch that changes it.
    pub keyspaces: BTreeMap<u64, u64>,
}

/// How far the tables of a keyspace reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyspaceReach {
    /// The number of its list of tables.
    pub version: u64,
    /// Tells the table files of that list from others of the same names.
    pub tables: u64,
    /// The highest number of a batch that was ever seen in its tables. A compaction may drop it again.
    pub flushed: Option<u64>,
}

/// What falls short of a witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shortfall {
    /// A file, relative to `state/`, and what is missing of it.
    File(String, String),
    /// One of the tables of this keyspace is another one.
    Table(u64),
}

#[derive(Serialize, Deserialize)]
struct Signed {
    witness: Witness,
    /// xxh3 of the witness as JSON, in hexadecimal.
    checksum: String,
}

impl Witness {
    /// Reads the witness of a state directory. `None` if there is none that can be believed.
    pub(crate) fn read(state: &Path) -> Option<Self> {
        let bytes = fs::read(state.join(WITNESS_FILE)).ok()?;
        let signed: Signed = serde_json::from_slice(&bytes).ok()?;
        let checksum = checksum(&signed.witness).ok()?;
        (checksum == signed.checksum).then_some(signed.witness)
    }

    /// Replaces the witness of a state directory. It is there whole, or the old one is.
    pub(crate) fn write(&self, state: &Path) -> io::Result<()> {
        let signed = Signed { witness: self.clone(), checksum: checksum(self)? };
        let text = serde_json::to_string(&signed)?;
        let new = state.join(WITNESS_FILE_NEW);
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) | Ok(()) => {}
        }
        let mut file = private_file().write(true).create_new(true).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, state.join(WITNESS_FILE))?;
        File::open(state)?.sync_all()
    }

    /// The first thing that `found` lacks of this witness.
    pub(crate) fn missing_from(&self, found: &Self) -> Option<Shortfall> {
        for (keyspace, reach) in &self.keyspaces {
            let version = reach.version;
            let Some(is) = found.keyspaces.get(keyspace) else {
                let what = "it is gone, and holds rows".to_owned();
                return Some(Shortfall::File(format!("keyspaces/{keyspace}"), what));
            };
            if is.version < version {
                let is = is.version;
                let what =
                    format!("it names list {is} of its tables, and list {version} was written");
                return Some(Shortfall::File(format!("keyspaces/{keyspace}/current"), what));
            }
            if is.version == version && is.tables != reach.tables {
                return Some(Shortfall::Table(*keyspace));
            }
        }
        self.missing_journal(found).map(|(file, what)| Shortfall::File(file, what))
    }

    /// Whether `found` is what was there when this was written, and neither older nor newer.
    pub(crate) fn is_same_moment(&self, found: &Self) -> bool {
        let lasts = |witness: &Self| -> Vec<(u64, Option<u64>)> {
            witness.journals.iter().map(|(journal, reach)| (*journal, reach.last)).collect()
        };
        lasts(self) == lasts(found)
            && self.keyspaces.iter().all(|(keyspace, reach)| {
                found
                    .keyspaces
                    .get(keyspace)
                    .is_some_and(|is| (is.version, is.tables) == (reach.version, reach.tables))
            })
    }

    fn missing_journal(&self, found: &Self) -> Option<(String, String)> {
        let name = |journal: &u64| format!("{journal}.jnl");
        let gone = || "the file is gone, and holds the newest rows".to_owned();
        let newest = self.journals.keys().next_back()?;
        if found.journals.keys().next_back().is_none_or(|is| is < newest) {
            return Some((name(newest), gone()));
        }
        let went_on = self.is_behind(found);
        for (journal, reach) in &self.journals {
            let Some(is) = found.journals.get(journal) else {
                if (self.is_closed && !went_on) || self.needs(reach, found) {
                    return Some((name(journal), gone()));
                }
                continue;
            };
            if is.last < reach.last {
                let is = is
                    .last
                    .map_or("it holds no batch".into(), |is| format!("its last batch is {is}"));
                let last = reach.last.unwrap_or(0);
                return Some((name(journal), format!("{is}, and batch {last} was written")));
            }
        }
        None
    }

    /// Whether a journal that is gone held rows that were in no table, and are in none now: while the
    /// database runs it deletes journals, but only those whose rows are all in tables.
    fn needs(&self, journal: &JournalReach, found: &Self) -> bool {
        journal.keyspaces.iter().any(|(keyspace, last)| {
            let then = self.keyspaces.get(keyspace).copied().unwrap_or_default();
            let is_same =
                found.keyspaces.get(keyspace).is_some_and(|now| now.version == then.version);
            is_same && then.flushed.is_none_or(|flushed| flushed < *last)
        })
    }

    /// Whether the database has written something since.
    fn is_behind(&self, found: &Self) -> bool {
        let last = |witness: &Self| {
            witness.journals.iter().next_back().map(|(id, reach)| (*id, reach.last))
        };
        let versions = |witness: &Self| -> Vec<u64> {
            witness.keyspaces.values().map(|reach| reach.version).collect()
        };
        last(self) < last(found) || versions(self) != versions(found)
    }
}

fn checksum(witness: &Witness) -> io::Result<String> {
    let text = serde_json::to_string(witness)?;
    Ok(format!("{:016x}", xxh3_64(text.as_bytes())))
}

/// The file of the witness that follows every batch.
pub(crate) struct ReachFile {
    file: File,
    identity: FileIdentity,
    /// Of the last witness that was written.
    number: u64,
}

/// What was found in such a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundReach {
    /// The newest witness that can be believed.
    pub witness: Witness,
    /// Whether it was written into another file than the one that it is in.
    pub is_elsewhere: bool,
}

/// Tells a file from its copies. It stays the same when the directory is renamed, or the machine starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileIdentity {
    inode: u64,
    /// When the file was made, in nanoseconds since 1970; 0 where the file system does not know.
    made_ns: u64,
}

impl FileIdentity {
    fn of(about: &Metadata) -> Self {
        let made = about.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        let made_ns = made.and_then(|made| u64::try_from(made.as_nanos()).ok()).unwrap_or(0);
        Self { inode: about.ino(), made_ns }
    }
}

#[derive(Serialize, Deserialize)]
struct Slot {
    number: u64,
    identity: FileIdentity,
    witness: Witness,
}

impl ReachFile {
    /// Opens the file of a state directory to write to it. What is in it stays until it is overwritten, unless
    /// it is another file's.
    pub(crate) fn open(state: &Path) -> io::Result<Self> {
        let mut options = private_file();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(state.join(REACH_FILE))?;
        let identity = FileIdentity::of(&file.metadata()?);
        let newest = newest_slot(&fs::read(state.join(REACH_FILE))?);
        let number = newest.filter(|slot| slot.identity == identity).map(|slot| slot.number);
        if number.is_none() {
            file.set_len(0)?;
        }
        file.set_len(SLOTS * SLOT_BYTES as u64)?;
        Ok(Self { file, identity, number: number.unwrap_or(0) })
    }

    /// Writes down how far the files have come. It is not synced. One that is too long is left out: the
    /// last one still holds.
    pub(crate) fn write(&mut self, witness: &Witness) -> io::Result<()> {
        self.number += 1;
        let Self { number, identity, .. } = *self;
        let written = Slot { number, identity, witness: witness.clone() };
        let bytes = postcard::to_stdvec(&written).map_err(io::Error::other)?;
        let mut slot = Vec::with_capacity(SLOT_HEAD_BYTES + bytes.len());
        slot.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
        slot.extend(xxh3_64(&bytes).to_le_bytes());
        slot.extend(bytes);
        if slot.len() > SLOT_BYTES {
            return Ok(());
        }
        self.file.write_all_at(&slot, self.number % SLOTS * SLOT_BYTES as u64)
    }

    /// The newest witness in the file of a state directory that can be believed.
    pub(crate) fn read(state: &Path) -> Option<FoundReach> {
        let path = state.join(REACH_FILE);
        let identity = FileIdentity::of(&fs::metadata(&path).ok()?);
        let Slot { identity: written, witness, .. } = newest_slot(&fs::read(path).ok()?)?;
        Some(FoundReach { witness, is_elsewhere: written != identity })
    }
}

fn newest_slot(bytes: &[u8]) -> Option<Slot> {
    bytes.chunks(SLOT_BYTES).filter_map(slot_of).max_by_key(|slot| slot.number)
}

fn slot_of(slot: &[u8]) -> Option<Slot> {
    let (len, rest) = slot.split_first_chunk()?;
    let (checksum, rest) = rest.split_first_chunk()?;
    let bytes = rest.get(..usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
    let is_whole = !bytes.is_empty() && xxh3_64(bytes) == u64::from_le_bytes(*checksum);
    postcard::from_bytes(is_whole.then_some(bytes)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(last: Option<u64>, keyspaces: &[(u64, u64)]) -> JournalReach {
        JournalReach { last, keyspaces: keyspaces.iter().copied().collect() }
    }

    fn witness(journals: &[(u64, JournalReach)], flushed: Option<u64>) -> Witness {
        let reach = KeyspaceReach { version: 3, tables: 7, flushed };
        Witness {
            is_closed: false,
            journals: journals.iter().cloned().collect(),
            keyspaces: [(1, reach)].into(),
        }
    }

    #[test]
    fn a_journal_may_go_only_when_its_rows_are_in_tables() {
        let sealed = (4, journal(Some(20), &[(1, 18)]));
        let newest = (5, journal(Some(30), &[]));
        let found = witness(std::slice::from_ref(&newest), Some(10));
        let gone = |flushed| {
            witness(&[sealed.clone(), newest.clone()], flushed).missing_from(&found).is_some()
        };
        assert!(gone(None) && gone(Some(17)), "its rows were in no table");
        assert!(!gone(Some(18)), "they were");
        // A flush since then may have brought them into one.
        let reach = KeyspaceReach { version: 4, ..found.keyspaces[&1] };
        let flushed = Witness { keyspaces: [(1, reach)].into(), ..found.clone() };
        assert_eq!(witness(&[sealed, newest], Some(17)).missing_from(&flushed), None);
    }

    #[test]
    fn what_is_older_than_the_witness_is_named() {
        let then = witness(&[(0, journal(Some(9), &[]))], None);
        assert_eq!(then.missing_from(&then), None);
        let shorter = witness(&[(0, journal(Some(8), &[]))], None);
        assert!(
            matches!(then.missing_from(&shorter), Some(Shortfall::File(file, _)) if file == "0.jnl")
        );
        let with = |version, tables| {
            let reach = KeyspaceReach { version, tables, flushed: None };
            then.missing_from(&Witness { keyspaces: [(1, reach)].into(), ..then.clone() })
        };
        assert!(
            matches!(with(2, 7), Some(Shortfall::File(file, _)) if file == "keyspaces/1/current")
        );
        assert_eq!(with(3, 8), Some(Shortfall::Table(1)));
        assert_eq!(with(4, 8), None, "a newer list names other tables");
    }

    /// After a power loss the last write may be torn; the one before it is still there.
    #[test]
    fn a_torn_reach_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = ReachFile::open(dir.path()).unwrap();
        assert_eq!(ReachFile::read(dir.path()), None);
        for last in 1..=5 {
            file.write(&witness(&[(0, journal(Some(last), &[]))], None)).unwrap();
        }
        let last = || ReachFile::read(dir.path()).and_then(|found| found.witness.journals[&0].last);
        assert_eq!(last(), Some(5));
        let path = dir.path().join(REACH_FILE);
        let mut bytes = fs::read(&path).unwrap();
        bytes[SLOT_BYTES + SLOT_HEAD_BYTES + 2] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(last(), Some(4));
        fs::write(&path, [0xff; 100]).unwrap();
        assert_eq!(last(), None);
    }
}
