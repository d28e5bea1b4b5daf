//! The lists that are written in XML: sitemaps, their indexes and extensions, RSS and Atom.
//!
//! Elements are known by their local name: half of the files on the web declare a wrong namespace,
//! or none. Names of end tags are not compared either, so that a slip in one entry costs that entry
//! and not all that follow. There is no tree and no recursion: depth costs nothing.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::errors::{Error, SyntaxError};
use quick_xml::escape::{resolve_xml_entity, unescape_with};
use quick_xml::events::{BytesRef, BytesStart, Event};
use telusur_model::URL_BYTES_MAX;

use super::entries::Entries;
use super::text_list::is_absolute;
use super::{EntryKind, Format, Reading, Trouble};

/// Text beyond this is thrown away. It is well above the longest URL, so that a cut one still is too
/// long and gets counted as such.
const TEXT_BYTES_MAX: usize = 2 * URL_BYTES_MAX;

/// Elements within an entry whose own `loc`, `link` or date is not that of the entry.
const ASIDES: [&str; 5] = ["image", "video", "news", "source", "content"];

pub(super) fn read(text: &str, entries: &mut Entries) -> Reading {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    // A bare "&" between two query parameters is the most frequent mistake in sitemaps.
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    config.check_end_names = false;
    config.expand_empty_elements = true;

    let mut walk = Walk::new(entries);
    let trouble = loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) if walk.format.is_none() => {
                if !walk.open_root(&tag) {
                    break Some(Trouble::NotASitemap);
                }
            }
            Ok(Event::Start(tag)) => walk.open(&tag),
            Ok(Event::End(tag)) => {
                if walk.close(&lower_case(tag.local_name().into_inner())) == Walked::All {
                    break None;
                }
            }
            Ok(Event::Text(text)) => walk.push_text(&text),
            Ok(Event::CData(text)) => walk.push_text(&text),
            Ok(Event::GeneralRef(name)) => walk.push_reference(&name),
            // Empty elements come as a start and an end.
            Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::Empty(_)) => {}
            Ok(Event::DocType(declared)) => break Some(refusal(&declared)),
            Ok(Event::Eof) => break Some(Trouble::Truncated),
            Err(error) => break Some(trouble_of(&error)),
        }
    };
    walk.finish(trouble)
}

/// Why a file with this document type is not read.
fn refusal(declared: &str) -> Trouble {
    let name = declared.trim_start().get(..4).unwrap_or_default();
    if name.eq_ignore_ascii_case("html") { Trouble::NotASitemap } else { Trouble::Doctype }
}

fn trouble_of(error: &Error) -> Trouble {
    match error {
        Error::Syntax(SyntaxError::UnclosedDoctype) => Trouble::Doctype,
        Error::Syntax(SyntaxError::InvalidBangMarkup) => Trouble::Malformed(error.to_string()),
        // All others of this kind say that something was not closed before the end.
        Error::Syntax(_) => Trouble::Truncated,
        _ => Trouble::Malformed(error.to_string()),
    }
}

/// Where in the file we are.
struct Walk<'e> {
    entries: &'e mut Entries,
    format: Option<Format>,
    root: String,
    draft: Option<Draft>,
    /// The one of [`ASIDES`] that is open.
    aside: Option<String>,
    /// What the text is that is being collected.
    field: Option<Field>,
    text: String,
}

/// An entry whose end has not come yet.
struct Draft {
    /// Where it goes: before its own images, videos and alternates.
    place: usize,
    element: String,
    kind: EntryKind,
    loc: Option<String>,
    /// The address to take if there is no `loc`.
    loc_instead: Option<String>,
    modified: Option<String>,
    published: Option<String>,
}

#[derive(Clone, Copy)]
enum Field {
    /// Text directly in the element of the entry: some indexes leave out the `loc` around it.
    Own,
    Loc,
    LocInstead,
    Modified,
    Published,
    Image,
    Video,
}

#[derive(PartialEq, Eq)]
enum Walked {
    OneElement,
    All,
}

impl<'e> Walk<'e> {
    fn new(entries: &'e mut Entries) -> Self {
        Self {
            entries,
            format: None,
            root: String::new(),
            draft: None,
            aside: None,
            field: None,
            text: String::new(),
        }
    }

    /// Takes the first element; says whether it is that of a known list.
    fn open_root(&mut self, tag: &BytesStart<'_>) -> bool {
        let name = lower_case(tag.local_name().into_inner()).into_owned();
        self.format = match name.as_str() {
            "urlset" => Some(Format::UrlSet),
            "sitemapindex" => Some(Format::Index),
            "rss" | "rdf" => Some(Format::Rss),
            "feed" => Some(Format::Atom),
            _ => None,
        };
        self.root = name;
        self.format.is_some()
    }

    fn open(&mut self, tag: &BytesStart<'_>) {
        let name = lower_case(tag.local_name().into_inner());
        // Text before a child is not the text of its parent.
        self.field = None;
        if let Some(kind) = self.entry_kind(&name) {
            self.close_draft();
            self.draft = Some(Draft {
                place: self.entries.place(),
                element: name.into_owned(),
                kind,
                loc: None,
                loc_instead: attribute(tag, "about"),
                modified: None,
                published: None,
            });
            self.collect(Field::Own);
            return;
        }
        let Some(draft) = &mut self.draft else { return };
        if self.aside.is_none() && ASIDES.contains(&&*name) {
            self.aside = Some(name.into_owned());
            return;
        }
        match (self.format, self.aside.as_deref(), &*name) {
            (Some(Format::Atom), None, "link") => draft.add_atom_link(tag),
            (Some(Format::UrlSet), None, "link") if draft.kind == EntryKind::Page => {
                self.push_alternate(tag);
            }
            (Some(Format::Rss), None, "guid") if !is_permanent_link(tag) => {}
            (Some(format), aside, name) => {
                if let Some(field) = field(format, aside, name) {
                    self.collect(field);
                }
            }
            (None, ..) => {}
        }
    }

    fn close(&mut self, name: &str) -> Walked {
        if let Some(field) = self.field.take() {
            self.keep(field);
        }
        if self.aside.as_deref() == Some(name) {
            self.aside = None;
        }
        if self.draft.as_ref().is_some_and(|draft| draft.element == name) {
            self.close_draft();
        }
        if name == self.root { Walked::All } else { Walked::OneElement }
    }

    fn finish(mut self, trouble: Option<Trouble>) -> Reading {
        if self.format.is_none() || matches!(trouble, Some(Trouble::Doctype | Trouble::NotASitemap))
        {
            self.entries.clear();
            let trouble = trouble.filter(|trouble| *trouble == Trouble::Doctype);
            return Reading { format: None, trouble: trouble.or(Some(Trouble::NotASitemap)) };
        }
        // The file broke off within an entry, but behind its address.
        if self.draft.as_ref().is_some_and(|draft| draft.loc.is_some()) {
            self.close_draft();
        }
        Reading { format: self.format, trouble }
    }

    /// What an element of this name lists, if it is an entry.
    fn entry_kind(&self, name: &str) -> Option<EntryKind> {
        match (self.format?, name) {
            // Pages and sitemaps are mixed in some files, against the protocol but plainly meant.
            (Format::UrlSet | Format::Index, "url") => Some(EntryKind::Page),
            (Format::UrlSet | Format::Index, "sitemap") => Some(EntryKind::Sitemap),
            (Format::Rss, "item") | (Format::Atom, "entry") => Some(EntryKind::Page),
            _ => None,
        }
    }

    fn collect(&mut self, field: Field) {
        self.field = Some(field);
        self.text.clear();
    }

    fn push_text(&mut self, text: &str) {
        if self.field.is_none() {
            return;
        }
        let text = if self.text.is_empty() { text.trim_start() } else { text };
        let room = TEXT_BYTES_MAX.saturating_sub(self.text.len());
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
    }

    /// One of the five entities of XML, or a character by its number. Any other name stays as it is:
    /// it was a bare "&" in a query.
    fn push_reference(&mut self, name: &BytesRef<'_>) {
        match name.resolve_char_ref() {
            Ok(Some(character)) => self.push_text(character.encode_utf8(&mut [0; 4])),
            // There is no such character, so the address is no text.
            Err(_) => self.push_text(char::REPLACEMENT_CHARACTER.encode_utf8(&mut [0; 4])),
            Ok(None) => match resolve_xml_entity(name) {
                Some(text) => self.push_text(text),
                None => self.push_text(&format!("&{};", &**name)),
            },
        }
    }

    /// Takes the text that was collected, at the end of its element.
    fn keep(&mut self, field: Field) {
        let text = std::mem::take(&mut self.text);
        let Some(draft) = &mut self.draft else { return };
        if text.trim_end().is_empty() {
            return;
        }
        let place = match field {
            Field::Image => return self.entries.push(EntryKind::Image, &text, None),
            Field::Video => return self.entries.push(EntryKind::Video, &text, None),
            Field::Own if !is_absolute(&text) => return,
            Field::Own | Field::LocInstead => &mut draft.loc_instead,
            Field::Loc => &mut draft.loc,
            Field::Modified => &mut draft.modified,
            Field::Published => &mut draft.published,
        };
        // The first one counts: a later one is an extension that we do not know.
        place.get_or_insert(text);
    }

    fn push_alternate(&mut self, tag: &BytesStart<'_>) {
        if attribute(tag, "rel").as_deref() != Some("alternate") {
            return;
        }
        if let Some(href) = attribute(tag, "href") {
            let hreflang = attribute(tag, "hreflang");
            self.entries.push(EntryKind::Alternate { hreflang }, &href, None);
        }
    }

    fn close_draft(&mut self) {
        self.aside = None;
        self.field = None;
        let Some(draft) = self.draft.take() else { return };
        let date = draft.modified.or(draft.published);
        match draft.loc.or(draft.loc_instead) {
            Some(loc) => self.entries.insert(draft.place, draft.kind, &loc, date.as_deref()),
            None => self.entries.drop_without_address(),
        }
    }
}

impl Draft {
    /// RFC 4287, 4.2.7.2: without a relation a link is the page. Some feeds give the entry itself
    /// only.
    fn add_atom_link(&mut self, tag: &BytesStart<'_>) {
        let place = match attribute(tag, "rel").as_deref() {
            None | Some("alternate") => &mut self.loc,
            Some("self") => &mut self.loc_instead,
            Some(_) => return,
        };
        if place.is_none() {
            *place = attribute(tag, "href");
        }
    }
}

/// What the text of an element within an entry is.
fn field(format: Format, aside: Option<&str>, name: &str) -> Option<Field> {
    match (format, aside, name) {
        (Format::UrlSet | Format::Index, None, "loc") => Some(Field::Loc),
        (Format::UrlSet | Format::Index, None, "lastmod") => Some(Field::Modified),
        (Format::UrlSet, Some("image"), "loc") => Some(Field::Image),
        (Format::UrlSet, Some("video"), "thumbnail_loc") => Some(Field::Image),
        (Format::UrlSet, Some("video"), "content_loc" | "player_loc") => Some(Field::Video),
        (Format::UrlSet, Some("news"), "publication_date") => Some(Field::Published),
        (Format::Rss, None, "link") => Some(Field::Loc),
        (Format::Rss, None, "guid") => Some(Field::LocInstead),
        (Format::Rss, None, "pubdate" | "date") => Some(Field::Published),
        (Format::Atom, None, "published" | "issued") => Some(Field::Published),
        (Format::Rss | Format::Atom, None, "updated" | "modified") => Some(Field::Modified),
        _ => None,
    }
}

/// RSS 2.0: a `guid` is the address of the page unless it says that it is not.
fn is_permanent_link(guid: &BytesStart<'_>) -> bool {
    attribute(guid, "isPermaLink").is_none_or(|value| !value.eq_ignore_ascii_case("false"))
}

/// The value of an attribute, with any prefix.
fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = tag.attributes();
    // Looking for duplicates takes memory for each of 200,000 attributes; the first one counts.
    let found = attributes
        .with_checks(false)
        .map_while(Result::ok)
        .find(|attribute| attribute.key.local_name().into_inner().eq_ignore_ascii_case(name))?;
    let value = found.value.trim();
    Some(unescape_with(value, resolve_xml_entity).unwrap_or(Cow::Borrowed(value)).into_owned())
}

fn lower_case(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}
