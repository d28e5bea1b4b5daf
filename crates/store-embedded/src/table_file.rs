//! Reads the end of a table file of the state database, and changes nothing: what the database believes
//! when it opens the table.
//!
//! A table is an archive of sections (sfa 1): rows of blocks, and behind them `meta`, which holds what is
//! known of the table, a list of the sections, and a trailer that says where the list is. A block is a head with
//! two checksums, and its bytes (lsm-tree 3, `table/block/header.rs`, `table/writer/mod.rs`).

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use crate::manifest::{ARCHIVE_TRAILER_BYTES, BadFile, Bytes, le_u64, le_u128};

/// Magic, kind, checksum of the data, length of the data, its length uncompressed, checksum of the head.
const HEAD_BYTES: usize = 4 + 1 + 16 + 4 + 4 + 4;
/// The list of sections: magic, how many, and for each place, length and name.
const SECTIONS_BYTES_MAX: u64 = 64 << 10;
/// Sections that are read when a table is opened, and that are one block each.
const OPENED: [&[u8]; 3] = [b"meta", b"tli", b"filter_tli"];

/// The end of a table file that can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableEnd {
    /// The highest number of a batch whose row is in the table.
    pub seqno_max: u64,
    /// Tells this file from any other of the same name: it covers when the table was made.
    pub hash: u64,
}

/// Reads the end of a table file.
pub(crate) fn read_end(path: &Path) -> io::Result<Result<TableEnd, BadFile>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Err(bad(path, None, "the file is gone, and holds rows")));
        }
        Err(error) => return Err(error),
    };
    let len = file.metadata()?.len();
    let Some(sections_end) = len.checked_sub(ARCHIVE_TRAILER_BYTES as u64) else {
        return Ok(Err(bad(path, Some(len), "the end of the file is missing")));
    };
    let mut trailer = [0; ARCHIVE_TRAILER_BYTES];
    file.read_exact_at(&mut trailer, sections_end)?;
    let begin = le_u64(&trailer, 22);
    let is_trailer = &trailer[..6] == b"SFA!\x01\0" && begin < sections_end;
    let sections_bytes = sections_end.saturating_sub(begin);
    if !is_trailer || sections_bytes > SECTIONS_BYTES_MAX {
        return Ok(Err(bad(path, Some(sections_end), "its last bytes are not those of a table")));
    }
    let mut sections = vec![0; usize::try_from(sections_bytes).unwrap_or(0)];
    file.read_exact_at(&mut sections, begin)?;
    if xxh3_128(&sections) != le_u128(&trailer, 6) {
        return Ok(Err(bad(path, Some(begin), "its list of sections is not what was written")));
    }
    let mut hash = Xxh3Default::new();
    hash.update(&sections);
    end_of(path, &file, &sections, hash)
}

/// Checks the sections that the database reads when it opens a table.
fn end_of(
    path: &Path,
    file: &File,
    sections: &[u8],
    mut hash: Xxh3Default,
) -> io::Result<Result<TableEnd, BadFile>> {
    let no_list = || Ok(Err(bad(path, None, "its list of sections cannot be read")));
    let Some(sections) = sections_of(sections) else { return no_list() };
    let mut seqno_max = None;
    for (name, begin, bytes) in sections {
        if !OPENED.contains(&name) {
            continue;
        }
        let Some(block) = block_at(file, begin, bytes)? else {
            return Ok(Err(bad(path, Some(begin), "a block is not what was written")));
        };
        if name == b"meta" {
            hash.update(&block);
            seqno_max = seqno_max_of(&block);
        }
    }
    match seqno_max {
        Some(seqno_max) => Ok(Ok(TableEnd { seqno_max, hash: hash.digest() })),
        None => no_list(),
    }
}

fn sections_of(list: &[u8]) -> Option<Vec<(&[u8], u64, u64)>> {
    let mut list = Bytes(list);
    list.take(4).filter(|magic| *magic == b"TOC!")?;
    let mut sections = Vec::new();
    for _ in 0..list.u32()? {
        let (begin, bytes, name) = (list.u64()?, list.u64()?, list.u16()?);
        sections.push((list.take(usize::from(name))?, begin, bytes));
    }
    Some(sections)
}

/// The block that fills a section, if it is what was written.
fn block_at(file: &File, begin: u64, bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let len = file.metadata()?.len();
    if bytes < HEAD_BYTES as u64 || begin.checked_add(bytes).is_none_or(|end| end > len) {
        return Ok(None);
    }
    let mut block = vec![0; usize::try_from(bytes).unwrap_or(0)];
    file.read_exact_at(&mut block, begin)?;
    let is_whole = head_of(&block).is_some_and(|head| {
        head.data_bytes == bytes - HEAD_BYTES as u64
            && xxh3_128(&block[HEAD_BYTES..]) == head.checksum
    });
    Ok(is_whole.then_some(block))
}

struct Head {
    checksum: u128,
    data_bytes: u64,
}

/// The head at the beginning of these bytes, if it is what was written.
fn head_of(bytes: &[u8]) -> Option<Head> {
    let head = bytes.get(..HEAD_BYTES)?;
    let checksum = xxh3_128(&head[..HEAD_BYTES - 4]).to_le_bytes();
    let data_bytes = Bytes(&head[21..]).u32()?;
    (checksum[..4] == head[HEAD_BYTES - 4..])
        .then(|| Head { checksum: le_u128(head, 5), data_bytes: data_bytes.into() })
}

/// The rows of the block have their whole keys in them, each followed by the length of its value.
fn seqno_max_of(meta: &[u8]) -> Option<u64> {
    const KEY: &[u8] = b"seqno#max\x08";
    let at = meta.windows(KEY.len()).position(|bytes| bytes == KEY)? + KEY.len();
    meta.get(at..at + 8).map(|value| le_u64(value, 0))
}

/// Where the first block of a table file begins that is not what was written.
pub(crate) fn first_bad_block(path: &Path) -> io::Result<Option<u64>> {
    let mut file = io::BufReader::new(File::open(path)?);
    let len = file.get_ref().metadata()?.len();
    let (mut at, mut head, mut data) = (0, [0; HEAD_BYTES], Vec::new());
    while at + HEAD_BYTES as u64 <= len {
        file.read_exact(&mut head)?;
        let Some(found) = head_of(&head) else { break };
        data.clear();
        let read = (&mut file).take(found.data_bytes).read_to_end(&mut data)?;
        if read as u64 != found.data_bytes || xxh3_128(&data) != found.checksum {
            break;
        }
        at += HEAD_BYTES as u64 + found.data_bytes;
    }
    Ok(Some(at))
}

fn bad(path: &Path, byte: Option<u64>, what: &str) -> BadFile {
    BadFile { path: path.to_owned(), byte, what: what.to_owned() }
}
