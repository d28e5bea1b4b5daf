//! What a power loss leaves behind. Synced bytes and entries stay; each change since then is
//! decided sector by sector, each entry for itself.

use std::collections::BTreeMap;

use super::sim_file::{Change, SimFile, put};
use super::{DiskState, Entry, FileNo, parent};
use crate::random::Dice;

/// The unit in which disks write all or nothing.
const SECTOR_BYTES: usize = 512;

/// Shares of unsynced sectors that survive. One of them holds for a whole crash: with an even
/// chance for each sector, the cases where all or none arrive would never be seen.
const SURVIVAL_SHARES: [f64; 5] = [0.0, 0.1, 0.5, 0.9, 1.0];

pub(super) fn after_power_loss(before: &DiskState, dice: &mut Dice) -> DiskState {
    let share = SURVIVAL_SHARES[dice.index(SURVIVAL_SHARES.len())];
    let mut after = DiskState::default();
    for (path, entry) in surviving_entries(before, share, dice) {
        let entry = match entry {
            Entry::Dir => Entry::Dir,
            Entry::File(no) => {
                let content = surviving_content(&before.files[no.0], share, dice);
                after.files.push(SimFile::found(content));
                Entry::File(FileNo(after.files.len() - 1))
            }
        };
        after.entries.insert(path, entry);
    }
    after.entries_synced = after.entries.clone();
    after
}

/// Where the synced and the present entry of a path differ, chance takes one of the two.
fn surviving_entries(before: &DiskState, share: f64, dice: &mut Dice) -> BTreeMap<String, Entry> {
    let mut surviving = BTreeMap::new();
    let mut paths: Vec<&String> =
        before.entries.keys().chain(before.entries_synced.keys()).collect();
    paths.sort_unstable();
    paths.dedup();
    for path in paths {
        let now = before.entries.get(path).copied();
        let synced = before.entries_synced.get(path).copied();
        let found = if now == synced || dice.chance(share) { now } else { synced };
        // Sorted paths name a directory before what is in it.
        let dir = parent(path);
        let has_dir = dir.is_empty() || surviving.get(dir) == Some(&Entry::Dir);
        if let (Some(entry), true) = (found, has_dir) {
            surviving.insert(path.clone(), entry);
        }
    }
    surviving
}

fn surviving_content(file: &SimFile, share: f64, dice: &mut Dice) -> Vec<u8> {
    let mut content = file.synced().to_vec();
    for change in file.changes() {
        match change {
            Change::Write { offset, bytes } => {
                put_surviving_sectors(&mut content, *offset, bytes, share, dice);
                // The new length may arrive without the bytes: they read as zeros then.
                let end = offset + bytes.len();
                if content.len() < end && dice.chance(share) {
                    content.resize(end, 0);
                }
            }
            Change::Truncate { len } if dice.chance(share) => content.resize(*len, 0),
            Change::Truncate { .. } => {}
        }
    }
    content
}

fn put_surviving_sectors(
    content: &mut Vec<u8>,
    offset: usize,
    bytes: &[u8],
    share: f64,
    dice: &mut Dice,
) {
    let mut start = offset;
    let end = offset + bytes.len();
    while start < end {
        let sector_end = (start / SECTOR_BYTES + 1) * SECTOR_BYTES;
        let stop = sector_end.min(end);
        if dice.chance(share) {
            put(content, start, &bytes[start - offset..stop - offset]);
        }
        start = stop;
    }
}
