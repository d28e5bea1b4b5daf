//! RSS and Atom: the title of the feed, and the title, address, date and text of each entry.
//!
//! Read forgivingly: a feed that is broken in the middle gives the entries before that place.
//! Entities that a feed defines itself are never expanded.

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use telusur_model::{FeedEntry, PageUrl};

use crate::ContentLimits;
use crate::text::{cut, one_line};
use crate::tokens::decode_references;

/// A feed, read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadFeed {
    pub title: Option<String>,
    pub description: Option<String>,
    pub language: Option<String>,
    /// The texts of the entries are markup as often as not.
    pub entries: Vec<FeedEntry>,
    pub dropped: u32,
}

/// Reads a feed. Links are resolved against the feed's own address.
pub(crate) fn read_feed(text: &str, url: &PageUrl, limits: &ContentLimits) -> ReadFeed {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    let mut feed = FeedReader { url, limits, feed: ReadFeed::default(), entry: None, text: None };
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => feed.open(&tag),
            Ok(Event::Empty(tag)) => {
                feed.open(&tag);
                feed.close(tag.local_name().as_ref());
            }
            Ok(Event::End(tag)) => feed.close(tag.local_name().as_ref()),
            Ok(Event::Text(text)) => feed.write(&text.xml10_content()),
            Ok(Event::CData(text)) => feed.write(&text.xml10_content()),
            Ok(Event::GeneralRef(reference)) => feed.write_reference(&reference),
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    feed.end_entry();
    feed.feed
}

struct FeedReader<'t> {
    url: &'t PageUrl,
    limits: &'t ContentLimits,
    feed: ReadFeed,
    entry: Option<FeedEntry>,
    /// What stands in the open element, if it is one whose text is wanted.
    text: Option<String>,
}

impl FeedReader<'_> {
    fn open(&mut self, tag: &BytesStart<'_>) {
        match tag.local_name().as_ref() {
            "item" | "entry" => {
                self.end_entry();
                self.entry = Some(FeedEntry::default());
            }
            "title" | "description" | "summary" | "content" | "encoded" | "language"
            | "pubDate" | "published" | "updated" | "date" | "subtitle" => {
                self.text = Some(String::new());
            }
            "link" => {
                self.text = Some(String::new());
                self.take_atom_link(tag);
            }
            _ => {}
        }
    }

    /// `<link href=… rel=alternate>`.
    fn take_atom_link(&mut self, tag: &BytesStart<'_>) {
        let attribute = |name: &str| {
            let attribute = tag.try_get_attribute(name).ok().flatten()?;
            attribute.normalized_value(XmlVersion::Implicit1_0).ok().map(|value| value.into_owned())
        };
        let rel = attribute("rel").unwrap_or_else(|| "alternate".to_owned());
        let Some(entry) = self.entry.as_mut().filter(|_| rel == "alternate") else { return };
        if entry.url.is_none() {
            entry.url = attribute("href").and_then(|href| self.url.join(&href).ok());
        }
    }

    fn write(&mut self, piece: &str) {
        if let Some(text) = &mut self.text {
            let room = self.limits.entry_bytes_max.saturating_sub(text.len());
            text.push_str(cut(piece, room));
        }
    }

    fn write_reference(&mut self, reference: &BytesRef<'_>) {
        if let Ok(Some(letter)) = reference.resolve_char_ref() {
            return self.write(letter.encode_utf8(&mut [0; 4]));
        }
        // Feeds use the entities of HTML without declaring them.
        let written = format!("&{};", reference.xml10_content());
        self.write(&decode_references(&written));
    }

    fn close(&mut self, name: &str) {
        if matches!(name, "item" | "entry") {
            return self.end_entry();
        }
        let is_wanted = matches!(
            name,
            "title"
                | "description"
                | "summary"
                | "content"
                | "encoded"
                | "language"
                | "link"
                | "pubDate"
                | "published"
                | "updated"
                | "date"
                | "subtitle"
        );
        if !is_wanted {
            return;
        }
        let Some(text) = self.text.take() else { return };
        let line = || one_line([text.as_str()].into_iter(), self.limits.meta_bytes_max);
        match (&mut self.entry, name) {
            (None, "title") => self.feed.title = self.feed.title.take().or_else(line),
            (None, "description" | "subtitle") => {
                self.feed.description = self.feed.description.take().or_else(line);
            }
            (None, "language") => self.feed.language = self.feed.language.take().or_else(line),
            (None, _) => {}
            (Some(entry), "title") if entry.title.is_empty() => {
                entry.title = line().unwrap_or_default();
            }
            (Some(entry), "link") if entry.url.is_none() && !text.trim().is_empty() => {
                entry.url = self.url.join(text.trim()).ok();
            }
            (Some(entry), "pubDate" | "published" | "date") => {
                entry.published = entry.published.take().or_else(line);
            }
            (Some(entry), "description" | "summary" | "content" | "encoded") => {
                // The longest of the texts is the whole one.
                if text.len() > entry.text.len() {
                    entry.text = text;
                }
            }
            (Some(_), _) => {}
        }
    }

    fn end_entry(&mut self) {
        let Some(entry) = self.entry.take() else { return };
        if self.feed.entries.len() < self.limits.feed_entries_max {
            self.feed.entries.push(entry);
        } else {
            self.feed.dropped += 1;
        }
    }
}
