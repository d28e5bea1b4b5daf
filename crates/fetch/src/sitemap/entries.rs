//! [`Entries`]: what was found so far, within the limits. Knows no format.

use telusur_model::URL_BYTES_MAX;

use super::dates;
use super::{Dropped, ENTRIES_MAX, Entry, EntryKind, Format, LastMod, Sitemap, Trouble};

/// 64 bytes: the longest dates in use, with a spelt-out weekday and zone, have about 35.
const DATE_BYTES_MAX: usize = 64;
/// RFC 5646, 4.4.1 promises that 35 characters hold every language tag that makes sense.
const HREFLANG_BYTES_MAX: usize = 35;

#[derive(Default)]
pub(super) struct Entries {
    entries: Vec<Entry>,
    pages: usize,
    extras: usize,
    dropped: Dropped,
}

impl Entries {
    /// Keeps an entry, or counts it as dropped.
    pub(super) fn push(&mut self, kind: EntryKind, loc: &str, date: Option<&str>) {
        self.insert(self.entries.len(), kind, loc, date);
    }

    /// The place of the next entry.
    pub(super) fn place(&self) -> usize {
        self.entries.len()
    }

    /// As [`push`](Self::push), but before those that were kept since `place` was the next one. Each
    /// of them moves once, so this stays linear.
    pub(super) fn insert(&mut self, place: usize, kind: EntryKind, loc: &str, date: Option<&str>) {
        let loc = loc.trim();
        if loc.is_empty() {
            self.dropped.no_address += 1;
        } else if loc.len() > URL_BYTES_MAX {
            self.dropped.too_long += 1;
        } else if loc.contains(char::REPLACEMENT_CHARACTER) {
            self.dropped.bad_text += 1;
        } else if *self.count_of(&kind) == ENTRIES_MAX {
            self.dropped.beyond_limit += 1;
        } else {
            *self.count_of(&kind) += 1;
            let lastmod = date.and_then(lastmod);
            self.entries.insert(place, Entry { loc: loc.to_owned(), lastmod, kind: tidy(kind) });
        }
    }

    /// Counts an entry that cannot be kept because it says no address.
    pub(super) fn drop_without_address(&mut self) {
        self.dropped.no_address += 1;
    }

    /// Forgets everything: the file turned out to be one that is not read.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn into_sitemap(self, format: Option<Format>, trouble: Option<Trouble>) -> Sitemap {
        Sitemap { format, entries: self.entries, dropped: self.dropped, trouble }
    }

    fn count_of(&mut self, kind: &EntryKind) -> &mut usize {
        match kind {
            EntryKind::Page | EntryKind::Sitemap => &mut self.pages,
            EntryKind::Image | EntryKind::Video | EntryKind::Alternate { .. } => &mut self.extras,
        }
    }
}

fn lastmod(raw: &str) -> Option<LastMod> {
    let raw = raw.trim();
    if raw.is_empty() || raw.len() > DATE_BYTES_MAX {
        return None;
    }
    Some(LastMod { raw: raw.to_owned(), at: dates::parse(raw) })
}

/// A language that is none must not be kept fifty thousand times.
fn tidy(kind: EntryKind) -> EntryKind {
    match kind {
        EntryKind::Alternate { hreflang } => EntryKind::Alternate {
            hreflang: hreflang.filter(|tag| !tag.is_empty() && tag.len() <= HREFLANG_BYTES_MAX),
        },
        kind => kind,
    }
}
