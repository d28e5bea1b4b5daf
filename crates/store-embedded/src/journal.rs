//! Reads the journals of the state database, and changes nothing: which batches are whole, and
//! whether what cannot be read is the torn end of the last write or a hole.
//!
//! The database itself cuts a journal at the first thing that is no batch, wherever that is. A write
//! that a kill or a power loss cut short is the last one: each batch is synced before the next
//! begins. So a whole batch behind something unreadable means that the disk lost what was there.
//!
//! A batch is `1, items: u32, seqno: u64`, its items, and `3, xxh3 of the items: u64, "FJL\x03"`. An
//! item is `2, value type: u8, compression: u8, keyspace: u64, key bytes: u16, value bytes: u32,
//! stored bytes: u32`, key and value, or `4, keyspace: u64` for a keyspace that is emptied. All
//! numbers are little-endian. A new file is 64 MiB of zeros (fjall 3, `journal/entry.rs` and `writer.rs`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use xxhash_rust::xxh3::Xxh3Default;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const TRAILER: &[u8; 4] = b"FJL\x03";
const START_BYTES: usize = 1 + 4 + 8;
const ITEM_HEAD_BYTES: usize = 1 + 1 + 1 + 8 + 2 + 4 + 4;
const END_BYTES: usize = 1 + 8 + TRAILER.len();
const CLEAR_BYTES: usize = 1 + 8;
/// What is read at once. Large enough that most batches need one read.
const WINDOW_BYTES: usize = 1 << 20;
/// A batch behind a hole is believed if its number is at most this far from the last one. Damaged bytes
/// that happen to look like the beginning of a batch are passed over at once.
const SEQNO_STEP_MAX: u64 = 1 << 40;

/// What one journal holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Journal {
    /// Per keyspace the number of the last whole batch that changes it.
    pub keyspaces: BTreeMap<u64, u64>,
    /// The number of the last whole batch before anything unreadable.
    pub last_seqno: Option<u64>,
    /// Whole batches up to there.
    pub batches: u64,
    /// Where they end.
    pub whole_bytes: u64,
    /// How long the file is.
    pub file_bytes: u64,
    /// What is behind them.
    pub rest: Rest,
}

/// What is behind the last whole batch of a journal that can be read without a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Nothing was ever written there.
    #[default]
    Empty,
    /// Something that is no batch, and no batch behind it.
    Torn,
    /// Something that is no batch, and whole batches behind it.
    Hole {
        /// How many.
        batches_behind: u64,
    },
    /// A whole batch whose number is not above the one before.
    Backwards {
        /// Its number.
        seqno: u64,
    },
}

/// Reads a journal. `after` is the number of the last batch of the journal before.
pub(crate) fn read(path: &Path, after: Option<u64>) -> io::Result<Journal> {
    let mut window = Window::open(path)?;
    let mut found = Journal { last_seqno: after, file_bytes: window.len, ..Journal::default() };
    while let Some(batch) = window.batch_at(found.whole_bytes)? {
        if found.last_seqno.is_some_and(|last| batch.seqno <= last) {
            found.rest = Rest::Backwards { seqno: batch.seqno };
            return Ok(of_this_journal(found));
        }
        found.last_seqno = Some(batch.seqno);
        found.keyspaces.extend(batch.keyspaces.iter().map(|keyspace| (*keyspace, batch.seqno)));
        found.batches += 1;
        found.whole_bytes = batch.end;
    }
    found.rest = rest_of(&mut window, found.whole_bytes, found.last_seqno)?;
    Ok(of_this_journal(found))
}

/// A journal without batches has no last number, whatever the one before had.
fn of_this_journal(found: Journal) -> Journal {
    Journal { last_seqno: found.last_seqno.filter(|_| found.batches > 0), ..found }
}

fn rest_of(window: &mut Window, begin: u64, last: Option<u64>) -> io::Result<Rest> {
    let Some(mut at) = window.next_written(begin)? else {
        return Ok(Rest::Empty);
    };
    let (mut last, mut batches_behind) = (last.unwrap_or(0), 0);
    while let Some(start) = window.next_start(at, last)? {
        at = match window.batch_at(start)? {
            Some(batch) => {
                batches_behind += 1;
                last = batch.seqno;
                batch.end
            }
            None => start + 1,
        };
    }
    Ok(if batches_behind == 0 { Rest::Torn } else { Rest::Hole { batches_behind } })
}

/// A whole batch.
struct WholeBatch {
    seqno: u64,
    /// The keyspaces that it changes, in the order of its items.
    keyspaces: Vec<u64>,
    end: u64,
}

/// A change of one keyspace.
struct Item {
    keyspace: u64,
    end: u64,
}

/// A file of which a part is in memory.
struct Window {
    file: File,
    len: u64,
    begin: u64,
    bytes: Vec<u8>,
}

impl Window {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(Self { file, len, begin: 0, bytes: Vec::new() })
    }

    /// The bytes from `at` on, at least `count` of them, or `None` if the file ends before.
    fn at(&mut self, at: u64, count: usize) -> io::Result<Option<&[u8]>> {
        debug_assert!(count <= WINDOW_BYTES, "more than is ever in memory");
        let end = match at.checked_add(count as u64) {
            Some(end) if end <= self.len => end,
            _ => return Ok(None),
        };
        if at < self.begin || end > self.begin + self.bytes.len() as u64 {
            let left = self.len - at;
            let size = usize::try_from(left).map_or(WINDOW_BYTES, |left| left.min(WINDOW_BYTES));
            self.bytes.resize(size, 0);
            self.begin = at;
            if let Err(error) = self.file.read_exact_at(&mut self.bytes, at) {
                self.bytes.clear();
                return Err(error);
            }
        }
        let from = usize::try_from(at - self.begin).unwrap_or(usize::MAX);
        Ok(self.bytes.get(from..))
    }

    /// The batch that begins at `at`, if all of it is there and is what was written.
    fn batch_at(&mut self, at: u64) -> io::Result<Option<WholeBatch>> {
        let Some(head) = self.at(at, START_BYTES)? else { return Ok(None) };
        if head[0] != START {
            return Ok(None);
        }
        let (items, seqno) = (u32_at(head, 1), u64_at(head, 5));
        let (mut checksum, mut keyspaces) = (Xxh3Default::new(), Vec::new());
        let mut at = at + START_BYTES as u64;
        for _ in 0..items {
            match self.item_at(at)? {
                Some(item) => {
                    self.hash(&mut checksum, at, item.end)?;
                    // Items come sorted by keyspace.
                    if keyspaces.last() != Some(&item.keyspace) {
                        keyspaces.push(item.keyspace);
                    }
                    at = item.end;
                }
                None => return Ok(None),
            }
        }
        let Some(tail) = self.at(at, END_BYTES)? else { return Ok(None) };
        let is_whole =
            tail[0] == END && u64_at(tail, 1) == checksum.digest() && &tail[9..13] == TRAILER;
        Ok(is_whole.then(|| WholeBatch { seqno, keyspaces, end: at + END_BYTES as u64 }))
    }

    /// The item that begins at `at`, if there can be one.
    fn item_at(&mut self, at: u64) -> io::Result<Option<Item>> {
        let Some(tag) = self.at(at, 1)?.map(|bytes| bytes[0]) else { return Ok(None) };
        let (keyspace, bytes) = match tag {
            CLEAR => {
                let Some(head) = self.at(at, CLEAR_BYTES)? else { return Ok(None) };
                (u64_at(head, 1), CLEAR_BYTES as u64)
            }
            ITEM => {
                let Some(head) = self.at(at, ITEM_HEAD_BYTES)? else { return Ok(None) };
                if !is_item_head(head) {
                    return Ok(None);
                }
                let (key, value) = (u16_at(head, 11), u32_at(head, 17));
                let bytes = ITEM_HEAD_BYTES as u64 + u64::from(key) + u64::from(value);
                (u64_at(head, 3), bytes)
            }
            _ => return Ok(None),
        };
        let end = at.checked_add(bytes).filter(|end| *end <= self.len);
        Ok(end.map(|end| Item { keyspace, end }))
    }

    fn hash(&mut self, checksum: &mut Xxh3Default, begin: u64, end: u64) -> io::Result<()> {
        let mut at = begin;
        while at < end {
            let Some(bytes) = self.at(at, 1)? else { return Ok(()) };
            let left = usize::try_from(end - at).unwrap_or(usize::MAX);
            let part = &bytes[..bytes.len().min(left)];
            checksum.update(part);
            at += part.len() as u64;
        }
        Ok(())
    }

    /// The first byte from `at` on that is no zero.
    fn next_written(&mut self, mut at: u64) -> io::Result<Option<u64>> {
        while at < self.len {
            // What was never written takes no time.
            at = match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(at)) {
                Ok(data) => data.max(at),
                Err(rustix::io::Errno::NXIO) => return Ok(None),
                // A file system that does not know holes.
                Err(_) => at,
            };
            let Some(bytes) = self.at(at, 1)? else { return Ok(None) };
            match bytes.iter().position(|byte| *byte != 0) {
                Some(found) => return Ok(Some(at + found as u64)),
                None => at += bytes.len() as u64,
            }
        }
        Ok(None)
    }

    /// The next place from `at` on where a batch with a number above `last` may begin.
    fn next_start(&mut self, mut at: u64, last: u64) -> io::Result<Option<u64>> {
        const NEEDED: usize = START_BYTES + CLEAR_BYTES;
        while let Some(written) = self.next_written(at)? {
            at = written;
            let Some(bytes) = self.at(at, NEEDED)? else { return Ok(None) };
            let heads = bytes.windows(NEEDED);
            let places = heads.len() as u64;
            if let Some(found) = heads.into_iter().position(|head| is_start(head, last)) {
                return Ok(Some(at + found as u64));
            }
            at += places;
        }
        Ok(None)
    }
}

/// Whether a batch with a number above `last` may begin with these bytes.
fn is_start(head: &[u8], last: u64) -> bool {
    if head[0] != START || u32_at(head, 1) == 0 {
        return false;
    }
    let seqno = u64_at(head, 5);
    let is_next = seqno >= last && seqno - last <= SEQNO_STEP_MAX;
    is_next && matches!(head[START_BYTES], ITEM | CLEAR)
}

/// Whether the first three bytes of an item have values that are written.
fn is_item_head(head: &[u8]) -> bool {
    matches!(head[1], 0..=2 | 4) && matches!(head[2], 0 | 1)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut taken = [0; 4];
    taken.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(taken)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut taken = [0; 8];
    taken.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(taken)
}

#[cfg(test)]
mod tests;
