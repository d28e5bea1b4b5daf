//! A plain list: one URL per line.

use super::{EntryKind, Format, Reading, entries::Entries};

pub(super) fn read(text: &str, is_cut: bool, entries: &mut Entries) -> Reading {
    // Half an address is another address.
    let lines_end = if is_cut { text.rfind(['\n', '\r']).unwrap_or(0) } else { text.len() };
    for line in text[..lines_end].split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty())
    {
        if is_absolute(line) {
            entries.push(EntryKind::Page, line, None);
        } else {
            entries.drop_without_address();
        }
    }
    // An error message, a script, a picture: lines enough, but not one address among them.
    if entries.is_empty() {
        entries.clear();
        return Reading::not_a_sitemap();
    }
    Reading { format: Some(Format::TextList), trouble: None }
}

/// Whether a line begins like `https://`, with any scheme: which ones are followed is for the scope
/// to say.
pub(super) fn is_absolute(line: &str) -> bool {
    let Some((scheme, _)) = line.split_once("://") else { return false };
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(is_scheme)
}
