//! Reads the lists of tables of the state database, and changes nothing. `current` of a keyspace holds
//! the number of its newest list and the checksum of that file, `v` and the number; the list holds the
//! number and the checksum of each table file. Whatever no list names is deleted at the next opening.
//!
//! (lsm-tree 3, `version/persist.rs`; the file is an archive of sections, sfa 1, `toc/` and `trailer/`.)

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use crate::table_file;

pub(crate) const CURRENT: &str = "current";
pub(crate) const TABLES: &str = "tables";
/// Number, checksum, and kind of checksum.
const CURRENT_BYTES: usize = 8 + 16 + 1;
pub(crate) const ARCHIVE_TRAILER_BYTES: usize = 4 + 1 + 1 + 16 + 8 + 8;

/// The newest list of tables of a keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Its number. It only grows.
    pub version: u64,
    /// The tables that it names.
    pub tables: Vec<ListedTable>,
}

/// A table that a list names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedTable {
    /// Its file.
    pub number: u64,
    /// The checksum of all of the file.
    pub checksum: u128,
    /// What the numbers of batches in the table are counted from.
    pub seqno_base: u64,
}

impl ListedTable {
    /// Its file.
    pub(crate) fn path(&self, keyspace: &Path) -> PathBuf {
        keyspace.join(TABLES).join(self.number.to_string())
    }
}

/// A file that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadFile {
    pub path: PathBuf,
    pub byte: Option<u64>,
    pub what: String,
}

/// Reads the newest list of a keyspace.
pub(crate) fn read(keyspace: &Path) -> io::Result<Result<Manifest, BadFile>> {
    let path = keyspace.join(CURRENT);
    let current = fs::read(&path)?;
    let bad =
        |path: PathBuf, what: &str| Ok(Err(BadFile { path, byte: None, what: what.to_owned() }));
    if current.len() != CURRENT_BYTES || current[CURRENT_BYTES - 1] != 0 {
        return bad(path, &format!("{} bytes that name no list of tables", current.len()));
    }
    let (version, checksum) = (le_u64(&current, 0), le_u128(&current, 8));
    let list_path = keyspace.join(format!("v{version}"));
    let list = match fs::read(&list_path) {
        Ok(list) => list,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return bad(list_path, "the file is gone, and is the newest list of tables");
        }
        Err(error) => return Err(error),
    };
    if xxh3_128(&list) != checksum {
        return bad(list_path, "its checksum is not the one that was written");
    }
    let Some(tables) = tables_of(&list) else {
        return bad(list_path, "it is no list of tables");
    };
    Ok(Ok(Manifest { version, tables }))
}

/// The first table file of a keyspace that is not what was written. Reads all of them.
pub(crate) fn damaged_table(keyspace: &Path) -> io::Result<Option<BadFile>> {
    let manifest = match read(keyspace)? {
        Ok(manifest) => manifest,
        Err(bad) => return Ok(Some(bad)),
    };
    for table in manifest.tables {
        let path = table.path(keyspace);
        let (byte, what) = match file_checksum(&path) {
            Ok(checksum) if checksum == table.checksum => continue,
            Ok(_) => {
                let what = "its checksum is not the one that was written".to_owned();
                (table_file::first_bad_block(&path)?, what)
            }
            // The device does not give it back.
            Err((byte, error)) => (Some(byte), error.to_string()),
        };
        return Ok(Some(BadFile { path, byte, what }));
    }
    Ok(None)
}

/// The checksum of a file, or where reading it failed.
fn file_checksum(path: &Path) -> Result<u128, (u64, io::Error)> {
    let mut file = File::open(path).map_err(|error| (0, error))?;
    let (mut hash, mut at) = (Xxh3Default::new(), 0);
    let mut bytes = vec![0; 1 << 20];
    loop {
        match file.read(&mut bytes).map_err(|error| (at, error))? {
            0 => return Ok(hash.digest128()),
            count => {
                hash.update(&bytes[..count]);
                at += count as u64;
            }
        }
    }
}

/// The tables that a list names.
fn tables_of(list: &[u8]) -> Option<Vec<ListedTable>> {
    let trailer = list.len().checked_sub(ARCHIVE_TRAILER_BYTES)?;
    let mut toc = Bytes(list.get(usize::try_from(le_u64(list, trailer + 22)).ok()?..)?);
    toc.take(4)?;
    for _ in 0..toc.u32()? {
        let (begin, len, name) = (toc.u64()?, toc.u64()?, toc.u16()?);
        if toc.take(usize::from(name))? == b"tables" {
            let (begin, len) = (usize::try_from(begin).ok()?, usize::try_from(len).ok()?);
            return tables_of_section(Bytes(list.get(begin..begin.checked_add(len)?)?));
        }
    }
    None
}

fn tables_of_section(mut section: Bytes<'_>) -> Option<Vec<ListedTable>> {
    let mut tables = Vec::new();
    for _level in 0..section.u8()? {
        for _run in 0..section.u8()? {
            for _table in 0..section.u32()? {
                let number = section.u64()?;
                section.u8()?;
                let checksum = le_u128(section.take(16)?, 0);
                tables.push(ListedTable { number, checksum, seqno_base: section.u64()? });
            }
        }
    }
    Some(tables)
}

/// Numbers and names out of bytes, from the first on. All numbers are little-endian.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take(8).map(|bytes| le_u64(bytes, 0))
    }
}

pub(crate) fn le_u64(bytes: &[u8], at: usize) -> u64 {
    let mut taken = [0; 8];
    taken.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(taken)
}

pub(crate) fn le_u128(bytes: &[u8], at: usize) -> u128 {
    let mut taken = [0; 16];
    taken.copy_from_slice(&bytes[at..at + 16]);
    u128::from_le_bytes(taken)
}
