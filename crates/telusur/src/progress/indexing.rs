//! [`Indexing`] and [`Imported`]: how far an indexer or an import has come, in words.

use super::drawing::spinner;
use crate::terminal::Terminal;
use crate::units::{show_count, show_size};

/// How far an indexer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indexing {
    /// Pages that it made searchable.
    pub indexed: u64,
    /// Pages that it knows of and has not yet made searchable.
    pub behind: u64,
}

impl Indexing {
    /// One line without any escape: `1240 pages indexed to_index=12`.
    pub fn plain_line(self) -> String {
        format!("{} pages indexed to_index={}", self.indexed, self.behind)
    }

    /// One line for a terminal.
    pub(super) fn live_line(self, terminal: &Terminal, ticks: usize) -> String {
        let behind = match self.behind {
            0 => String::new(),
            pages => format!("   to index {}", show_count(pages)),
        };
        let words = format!("{} pages indexed{behind}", show_count(self.indexed));
        live_line(&words, terminal, ticks)
    }
}

/// How many documents an import has stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imported(pub u64);

impl Imported {
    /// One line without any escape: `1240 documents stored`.
    pub(super) fn plain_line(self) -> String {
        format!("{} documents stored", self.0)
    }

    /// One line for a terminal.
    pub(super) fn live_line(self, terminal: &Terminal, ticks: usize) -> String {
        live_line(&format!("{} documents stored", show_count(self.0)), terminal, ticks)
    }
}

/// How much was read to find damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scrubbed {
    /// Bytes that were read.
    pub bytes: u64,
    /// Things that are damaged.
    pub damaged: u64,
}

impl Scrubbed {
    /// One line without any escape: `52428800 bytes read damaged=0`.
    pub(super) fn plain_line(self) -> String {
        format!("{} bytes read damaged={}", self.bytes, self.damaged)
    }

    /// One line for a terminal.
    pub(super) fn live_line(self, terminal: &Terminal, ticks: usize) -> String {
        let damaged = match self.damaged {
            0 => String::new(),
            damaged => format!("   damaged {}", show_count(damaged)),
        };
        live_line(&format!("{} read{damaged}", show_size(self.bytes)), terminal, ticks)
    }
}

pub(super) fn live_line(words: &str, terminal: &Terminal, ticks: usize) -> String {
    let line = format!("  {} {words}", spinner(ticks, terminal.is_unicode));
    // A line that fills the last column makes many terminals wrap.
    line.chars().take(terminal.columns.saturating_sub(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_read_well() {
        let indexing = Indexing { indexed: 1_240, behind: 0 };
        assert_eq!(indexing.plain_line(), "1240 pages indexed to_index=0");
        let mut terminal = Terminal {
            is_live: true,
            is_attended: true,
            columns: 80,
            is_unicode: false,
            is_colored: false,
        };
        assert_eq!(&indexing.live_line(&terminal, 0)[3..], " 1,240 pages indexed");
        let late = Indexing { behind: 12, ..indexing };
        assert_eq!(&late.live_line(&terminal, 3)[3..], " 1,240 pages indexed   to index 12");
        assert_eq!(Imported(1_240).plain_line(), "1240 documents stored");
        assert_eq!(&Imported(1_240).live_line(&terminal, 0)[3..], " 1,240 documents stored");
        let read = Scrubbed { bytes: 52_400_000, damaged: 2 };
        assert_eq!(read.plain_line(), "52400000 bytes read damaged=2");
        assert_eq!(&read.live_line(&terminal, 0)[3..], " 52 MB read   damaged 2");
        terminal.columns = 20;
        assert_eq!(late.live_line(&terminal, 3).len(), 19);
    }
}
