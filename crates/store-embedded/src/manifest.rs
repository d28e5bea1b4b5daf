//! Reads the lists of tables of the state database, and changes nothing. `current` of a keyspace holds
//! the number of its newest list and the checksum of that file, `v` and the number; the list holds the
//! number and the checksum of each table file. Whatever no list names is deleted at the next opening.
//!
//! (lsm-tree 3, `version/persist.rs`; the file is an archive of sections, sfa 1, `toc/` and `trailer/`.)

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

pub(crate) const CURRENT: &str = "current";
pub(crate) const TABLES: &str = "tables";
/// Number, checksum, and kind of checksum.
const CURRENT_BYTES: usize = 8 + 16 + 1;
const ARCHIVE_TRAILER_BYTES: usize = 4 + 1 + 1 + 16 + 8 + 8;

/// The newest list of tables of a keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Its number. It only grows.
    pub version: u64,
    /// The checksum of the list.
    pub checksum: u128,
    /// Numbers and checksums of the table files.
    pub tables: Vec<(u64, u128)>,
}

/// A file that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadFile {
    pub path: PathBuf,
    pub byte: Option<u64>,
    pub what: String,
}

/// Reads the newest list of a keyspace, and looks whether the files that it names are there.
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
    for (table, _) in &tables {
        let path = keyspace.join(TABLES).join(table.to_string());
        if !path.try_exists()? {
            return bad(path, "the file is gone, and holds rows");
        }
    }
    Ok(Ok(Manifest { version, checksum, tables }))
}

/// The first table file of a keyspace that is not what was written. Reads all of them.
pub(crate) fn damaged_table(keyspace: &Path) -> io::Result<Option<BadFile>> {
    let manifest = match read(keyspace)? {
        Ok(manifest) => manifest,
        Err(bad) => return Ok(Some(bad)),
    };
    for (table, checksum) in manifest.tables {
        let path = keyspace.join(TABLES).join(table.to_string());
        if file_checksum(&path)? != checksum {
            let byte = first_bad_block(&path)?;
            let what = "its checksum is not the one that was written".to_owned();
            return Ok(Some(BadFile { path, byte, what }));
        }
    }
    Ok(None)
}

fn file_checksum(path: &Path) -> io::Result<u128> {
    let mut file = File::open(path)?;
    let mut hash = Xxh3Default::new();
    let mut bytes = vec![0; 1 << 20];
    loop {
        match file.read(&mut bytes)? {
            0 => return Ok(hash.digest128()),
            count => hash.update(&bytes[..count]),
        }
    }
}

/// Where the first block of a table file begins that is not what was written: a table is a row of
/// blocks, each with a head of its own, and an index behind them.
fn first_bad_block(path: &Path) -> io::Result<Option<u64>> {
    const HEAD_BYTES: usize = 4 + 1 + 16 + 4 + 4 + 4;
    let mut file = io::BufReader::new(File::open(path)?);
    let len = file.get_ref().metadata()?.len();
    let (mut at, mut head, mut data) = (0, [0; HEAD_BYTES], Vec::new());
    while at + HEAD_BYTES as u64 <= len {
        file.read_exact(&mut head)?;
        let sum = xxh3_128(&head[..HEAD_BYTES - 4]).to_le_bytes();
        if sum[..4] != head[HEAD_BYTES - 4..] {
            break;
        }
        let mut size = [0; 4];
        size.copy_from_slice(&head[21..25]);
        let size = u32::from_le_bytes(size);
        data.clear();
        let read = (&mut file).take(u64::from(size)).read_to_end(&mut data)?;
        if read as u64 != u64::from(size) || xxh3_128(&data) != le_u128(&head, 5) {
            break;
        }
        at += HEAD_BYTES as u64 + u64::from(size);
    }
    Ok(Some(at))
}

/// The tables that a list names.
fn tables_of(list: &[u8]) -> Option<Vec<(u64, u128)>> {
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

fn tables_of_section(mut section: Bytes<'_>) -> Option<Vec<(u64, u128)>> {
    let mut tables = Vec::new();
    for _level in 0..section.u8()? {
        for _run in 0..section.u8()? {
            for _table in 0..section.u32()? {
                let number = section.u64()?;
                section.u8()?;
                let checksum = le_u128(section.take(16)?, 0);
                section.u64()?;
                tables.push((number, checksum));
            }
        }
    }
    Some(tables)
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8).map(|bytes| le_u64(bytes, 0))
    }
}

fn le_u64(bytes: &[u8], at: usize) -> u64 {
    let mut taken = [0; 8];
    taken.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(taken)
}

fn le_u128(bytes: &[u8], at: usize) -> u128 {
    let mut taken = [0; 16];
    taken.copy_from_slice(&bytes[at..at + 16]);
    u128::from_le_bytes(taken)
}
