//! The URLs that a site lists about itself: sitemaps and their indexes, plain lists, RSS, Atom and
//! JSON feeds. Bytes in, [`Sitemap`] out.
//!
//! This module fetches nothing, builds no tree and resolves no entity but the five of XML and
//! numbers. All bytes give an answer: the entries up to the first trouble, the
//! trouble, and a count of what was left out. Entries are not judged: they may point anywhere.

mod unpack;

mod json_feed;
mod text_list;
mod xml;

mod dates;
mod entries;

use std::fmt;

use telusur_model::Timestamp;

use self::entries::Entries;

/// Decoded bytes that are read of one file: the limit of the sitemaps.org protocol.
pub const BYTES_MAX: usize = 50 * 1024 * 1024;

/// Pages and further sitemaps that are kept of one file: the limit of the sitemaps.org protocol.
/// Images, videos and alternates have a limit of their own, of the same size, so that a page with
/// many pictures does not push out other pages.
pub const ENTRIES_MAX: usize = 50_000;

/// What some editors put before the text, sometimes twice.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// What one file lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sitemap {
    /// How the list is written; unknown if it is no list.
    pub format: Option<Format>,
    /// The entries in the order of the file, a page before its images, videos and alternates.
    pub entries: Vec<Entry>,
    /// What was left out.
    pub dropped: Dropped,
    /// Why the file was not read, or not to its end. The entries before that are good.
    pub trouble: Option<Trouble>,
}

/// How a list of URLs is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An XML sitemap of pages.
    UrlSet,
    /// An XML sitemap of sitemaps.
    Index,
    /// RSS 2.0 and its forerunners, also the RDF of RSS 1.0.
    Rss,
    /// An Atom feed.
    Atom,
    /// A JSON feed.
    JsonFeed,
    /// One URL per line.
    TextList,
}

/// One URL of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The address as written, trimmed and unescaped. It may be relative to the file, and need not
    /// be a URL at all.
    pub loc: String,
    /// When the page was changed, as the site says; for a feed or news, else when it was published.
    pub lastmod: Option<LastMod>,
    /// What the address leads to.
    pub kind: EntryKind,
}

/// What an entry leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A page.
    Page,
    /// Another sitemap.
    Sitemap,
    /// A picture on a page, or of a video.
    Image,
    /// A video on a page, or its player.
    Video,
    /// The same page in another language, or for another device.
    Alternate {
        /// The language, such as `de-ch` or `x-default`.
        hreflang: Option<String>,
    },
}

/// A date of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastMod {
    /// As written.
    pub raw: String,
    /// As a time, if it could be understood. A date without a time is its first moment, and a time
    /// without a zone is taken as UTC.
    pub at: Option<Timestamp>,
}

/// How many entries were left out, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Beyond [`ENTRIES_MAX`].
    pub beyond_limit: u64,
    /// The address is longer than any URL may be.
    pub too_long: u64,
    /// The address is not valid text in the encoding of the file.
    pub bad_text: u64,
    /// There is no address.
    pub no_address: u64,
}

/// Why a file was not read, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Something else altogether, such as an error page with status 200.
    NotASitemap,
    /// It declares a document type. No sitemap needs one, and entity bombs do.
    Doctype,
    /// It broke the rules of its format, with the words of the parser.
    Malformed(String),
    /// It ends in the middle.
    Truncated,
    /// It is larger than [`BYTES_MAX`].
    TooLarge,
    /// The compressed bytes mean nothing.
    DecodeError(String),
}

/// Reads a date as sites write it: RFC 3339 and its parts, RFC 2822, and the usual variations.
pub fn parse_date(text: &str) -> Option<Timestamp> {
    dates::parse(text)
}

/// Reads a list of URLs of any known format, compressed with gzip or not.
pub fn read(bytes: &[u8]) -> Sitemap {
    let unpacked = unpack::unpack(bytes);
    let is_blank = |c: char| c.is_whitespace() || c == BYTE_ORDER_MARK;
    let text = unpacked.text.trim_start_matches(is_blank);
    let mut entries = Entries::default();
    let reading = match text.as_bytes().first() {
        Some(b'<') => xml::read(text, &mut entries),
        Some(b'{') => json_feed::read(text, &mut entries),
        _ => text_list::read(text, unpacked.trouble.is_some(), &mut entries),
    };
    // What went wrong earlier explains why the text ends early, or why there is none.
    let trouble = match (reading.trouble, unpacked.trouble) {
        (Some(Trouble::Truncated) | None, Some(unpacking)) => Some(unpacking),
        (Some(Trouble::NotASitemap), Some(unpacking)) if text.is_empty() => Some(unpacking),
        (reading, _) => reading,
    };
    entries.into_sitemap(reading.format, trouble)
}

/// How far the reader of one format came.
struct Reading {
    format: Option<Format>,
    trouble: Option<Trouble>,
}

impl Reading {
    fn not_a_sitemap() -> Self {
        Self { format: None, trouble: Some(Trouble::NotASitemap) }
    }
}

impl EntryKind {
    /// The stable word, such as `page`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Sitemap => "sitemap",
            Self::Image => "image",
            Self::Video => "video",
            Self::Alternate { .. } => "alternate",
        }
    }

    /// The language of an alternate.
    pub fn hreflang(&self) -> Option<&str> {
        match self {
            Self::Alternate { hreflang } => hreflang.as_deref(),
            Self::Page | Self::Sitemap | Self::Image | Self::Video => None,
        }
    }
}

impl Dropped {
    /// All that was left out.
    pub fn total(&self) -> u64 {
        self.beyond_limit + self.too_long + self.bad_text + self.no_address
    }
}

impl Trouble {
    /// The stable word, such as `not_a_sitemap`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::NotASitemap => "not_a_sitemap",
            Self::Doctype => "doctype_refused",
            Self::Malformed(_) => "malformed",
            Self::Truncated => "truncated",
            Self::TooLarge => "too_large",
            Self::DecodeError(_) => "decode_error",
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotASitemap => f.write_str("this is no sitemap, feed or list of URLs"),
            Self::Doctype => f.write_str("a sitemap with a document type is not read"),
            Self::Malformed(detail) => write!(f, "the rest cannot be read: {detail}"),
            Self::Truncated => f.write_str("the file ends in the middle"),
            Self::TooLarge => write!(f, "only the first {BYTES_MAX} bytes were read"),
            Self::DecodeError(detail) => write!(f, "the rest cannot be decompressed: {detail}"),
        }
    }
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
