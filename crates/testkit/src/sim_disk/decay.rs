//! Corruption at rest: what was synced is changed behind everybody's back.

use super::{Entry, FileNo, SimDisk};
use crate::random::Dice;

const SECTOR_BYTES: usize = 512;

/// What a disk did to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decay {
    /// One bit is the other one.
    BitFlip,
    /// A sector reads as zeros.
    ZeroedSector,
    /// The file ends early.
    Cut,
    /// The file is gone.
    Lost,
}

/// Which bytes of which file have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decayed {
    /// The file.
    pub path: String,
    /// What happened to it.
    pub decay: Decay,
    /// The first byte that is not what was written.
    pub from: u64,
    /// The first behind them that is.
    pub to: u64,
}

impl SimDisk {
    /// Changes one file of the disk, as the dice decide; `None` if there is none with bytes in it.
    pub fn decay(&self, dice: &mut Dice) -> Option<Decayed> {
        let mut state = self.lock();
        let files: Vec<(String, FileNo)> = state
            .entries
            .iter()
            .filter_map(|(path, entry)| match entry {
                Entry::File(no) if !state.files[no.0].content().is_empty() => {
                    Some((path.clone(), *no))
                }
                Entry::File(_) | Entry::Dir => None,
            })
            .collect();
        if files.is_empty() {
            return None;
        }
        let (path, no) = files[dice.index(files.len())].clone();
        let mut content = state.files[no.0].content().to_vec();
        let (len, at) = (content.len(), dice.index(content.len()));
        let sector = at / SECTOR_BYTES * SECTOR_BYTES;
        let sector_end = (sector + SECTOR_BYTES).min(len);
        let (decay, from, to) = match dice.below(4) {
            0 => (Decay::BitFlip, at, at + 1),
            1 => (Decay::ZeroedSector, sector, sector_end),
            2 => (Decay::Cut, at, len),
            _ => (Decay::Lost, 0, len),
        };
        match decay {
            Decay::BitFlip => content[at] ^= 1 << dice.below(8),
            Decay::ZeroedSector => content[sector..sector_end].fill(0),
            Decay::Cut => content.truncate(at),
            Decay::Lost => {
                state.entries.remove(&path);
                state.entries_synced.remove(&path);
            }
        }
        state.files[no.0].replace(content);
        Some(Decayed { path, decay, from: from as u64, to: to as u64 })
    }
}
