//! What is done to one file of a copy.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::files::copy_file;

/// Places in a file that are tried, from its first byte to its last.
pub(super) const PLACES: u64 = 8;

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Damage {
    /// One bit is the other one.
    BitFlip,
    /// 512 bytes are zero: a sector.
    ZeroedSector,
    /// 4 KiB are zero: a page.
    ZeroedPage,
    /// 512 bytes are 0xff: erased flash.
    Ones,
    /// The file ends early.
    Cut,
    /// The file has no bytes.
    Emptied,
    /// The file is gone.
    Removed,
    /// The file is as it was earlier.
    SetBack,
}

impl Damage {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::BitFlip,
        Self::ZeroedSector,
        Self::ZeroedPage,
        Self::Ones,
        Self::Cut,
        Self::Emptied,
        Self::Removed,
        Self::SetBack,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::BitFlip => "bit flip",
            Self::ZeroedSector => "512 B zeroed",
            Self::ZeroedPage => "4 KiB zeroed",
            Self::Ones => "512 B 0xff",
            Self::Cut => "cut",
            Self::Emptied => "emptied",
            Self::Removed => "removed",
            Self::SetBack => "set back",
        }
    }

    /// Whether the place in the file matters.
    pub fn has_place(self) -> bool {
        match self {
            Self::BitFlip | Self::ZeroedSector | Self::ZeroedPage | Self::Ones | Self::Cut => true,
            Self::Emptied | Self::Removed | Self::SetBack => false,
        }
    }
}

/// The bytes of a file that were changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wound {
    /// The first of them.
    pub from: u64,
    /// The first behind them.
    pub to: u64,
}

/// Damages a file at one of [`PLACES`] places. `older` is an earlier copy of it. `None` if the file is as
/// it was: a place without bytes, zeros that were zeros before, no earlier copy, or the same.
pub(super) fn damage_file(
    path: &Path,
    older: &Path,
    damage: Damage,
    place: u64,
) -> io::Result<Option<Wound>> {
    let before = fs::read(path)?;
    let len = before.len() as u64;
    // A journal is mostly room for what is not yet written.
    let written = before.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
    let at = written.saturating_sub(1) * place / (PLACES - 1).max(1);
    let (from, to) = match damage {
        Damage::BitFlip if written > 0 => (at, at + 1),
        Damage::BitFlip => return Ok(None),
        Damage::ZeroedSector | Damage::Ones => block(at, 512, written),
        Damage::ZeroedPage => block(at, 4096, written),
        Damage::Cut => (at, len),
        Damage::Emptied | Damage::Removed | Damage::SetBack => (0, len),
    };
    match damage {
        Damage::BitFlip => {
            let byte = before[usize::try_from(at).unwrap_or(0)] ^ (1 << (place % 8));
            write_at(path, at, &[byte])?;
        }
        Damage::ZeroedSector | Damage::ZeroedPage => {
            write_at(path, from, &vec![0; length(from, to)])?
        }
        Damage::Ones => write_at(path, from, &vec![0xff; length(from, to)])?,
        Damage::Cut | Damage::Emptied => {
            OpenOptions::new().write(true).open(path)?.set_len(from)?;
        }
        Damage::Removed => {
            fs::remove_file(path)?;
            return Ok(Some(Wound { from, to }));
        }
        Damage::SetBack if older.is_file() => copy_file(older, path)?,
        Damage::SetBack => return Ok(None),
    }
    let is_changed = fs::read(path)? != before;
    Ok(is_changed.then_some(Wound { from, to }))
}

/// The aligned block around a byte, as far as the file was written.
fn block(at: u64, bytes: u64, written: u64) -> (u64, u64) {
    let from = at / bytes * bytes;
    (from, (from + bytes).min(written))
}

fn length(from: u64, to: u64) -> usize {
    usize::try_from(to.saturating_sub(from)).unwrap_or(0)
}

fn write_at(path: &Path, at: u64, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all_at(bytes, at)
}
