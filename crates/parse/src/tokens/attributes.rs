//! The inside of a tag behind its name. Only attributes that somebody reads are kept; the others
//! are skipped at the speed of a search for the closing quote.

use html5ever::interface::Attribute;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::TagKind;
use html5ever::{LocalName, QualName, local_name, ns};

use crate::tokens::char_refs::Place;
use crate::tokens::{Sink, Tokenizer, is_tag_end, is_white};

/// What stood behind the name of a tag.
pub(super) struct TagRest {
    pub kept: Vec<Attribute>,
    pub self_closing: bool,
}

/// Where an attribute stands in the page.
struct Span {
    name_start: usize,
    name_end: usize,
    value_start: usize,
    value_end: usize,
}

impl<S: Sink> Tokenizer<'_, S> {
    /// Reads to the end of the tag; `None` if the page ends before it.
    pub(super) fn attributes(&mut self, kind: TagKind, element: &LocalName) -> Option<TagRest> {
        let wanted = match kind {
            TagKind::StartTag => attributes_of(element),
            TagKind::EndTag => &[],
        };
        let mut kept: Vec<Attribute> = Vec::new();
        let mut seen = 0;
        loop {
            self.skip_white();
            match self.bytes.get(self.at)? {
                b'>' => {
                    self.at += 1;
                    return Some(TagRest { kept, self_closing: false });
                }
                b'/' if *self.bytes.get(self.at + 1)? == b'>' => {
                    self.at += 2;
                    return Some(TagRest { kept, self_closing: true });
                }
                b'/' => self.at += 1,
                _ => {
                    let span = self.attribute()?;
                    seen += 1;
                    if seen > self.attributes_max {
                        self.too_many_attributes = true;
                    } else if !wanted.is_empty() {
                        self.keep_wanted(&span, wanted, &mut kept);
                    }
                }
            }
        }
    }

    fn attribute(&mut self) -> Option<Span> {
        let name_start = self.at;
        // An equals sign is part of the name if it comes first.
        let behind_first = name_start + 1;
        let name_end = self.find(behind_first, |b| is_white(b) || is_tag_end(b) || b == b'=')?;
        self.at = name_end;
        self.skip_white();
        let mut span = Span { name_start, name_end, value_start: name_end, value_end: name_end };
        if *self.bytes.get(self.at)? != b'=' {
            return Some(span);
        }
        self.at += 1;
        self.skip_white();
        span.value_start = self.at;
        match *self.bytes.get(self.at)? {
            quote @ (b'"' | b'\'') => {
                span.value_start += 1;
                let length = memchr::memchr(quote, &self.bytes[span.value_start..])?;
                span.value_end = span.value_start + length;
                self.at = span.value_end + 1;
            }
            _ => {
                span.value_end = self.find(self.at, |byte| is_white(byte) || byte == b'>')?;
                self.at = span.value_end;
            }
        }
        Some(span)
    }

    fn keep_wanted(&self, span: &Span, wanted: &[LocalName], kept: &mut Vec<Attribute>) {
        let written = &self.bytes[span.name_start..span.name_end];
        let Some(name) = wanted.iter().find(|name| written.eq_ignore_ascii_case(name.as_bytes()))
        else {
            return;
        };
        // The first one counts, as in browsers.
        if kept.iter().any(|attribute| attribute.name.local == *name) {
            return;
        }
        kept.push(Attribute {
            name: QualName::new(None, ns!(), name.clone()),
            value: self.value(span, name),
        });
    }

    fn value(&self, span: &Span, name: &LocalName) -> StrTendril {
        if is_of_font(name) {
            // Different values would make different formatting elements, without any bound.
            return StrTendril::new();
        }
        self.decoded(span.value_start, span.value_end, Place::Attribute)
    }
}

/// The attributes that are read: by [`extract`](crate::extract), and a few by the tree builder.
pub(super) fn attributes_of(element: &LocalName) -> &'static [LocalName] {
    static LINK: [LocalName; 3] =
        [local_name!("href"), local_name!("rel"), local_name!("xlink:href")];
    static FRAME: [LocalName; 1] = [local_name!("src")];
    static META: [LocalName; 3] =
        [local_name!("name"), local_name!("content"), local_name!("http-equiv")];
    static HTML: [LocalName; 2] = [local_name!("lang"), local_name!("xml:lang")];
    static INPUT: [LocalName; 1] = [local_name!("type")];
    static FONT: [LocalName; 3] = [local_name!("color"), local_name!("face"), local_name!("size")];
    static ANNOTATION: [LocalName; 1] = [local_name!("encoding")];
    match *element {
        local_name!("a") | local_name!("area") | local_name!("base") | local_name!("link") => &LINK,
        local_name!("frame") | local_name!("iframe") => &FRAME,
        local_name!("meta") => &META,
        local_name!("html") => &HTML,
        local_name!("input") => &INPUT,
        local_name!("font") => &FONT,
        local_name!("annotation-xml") => &ANNOTATION,
        _ => &[],
    }
}

/// Whether the tree builder only asks if the attribute is there: `<font color>` ends SVG.
pub(super) fn is_of_font(name: &LocalName) -> bool {
    matches!(*name, local_name!("color") | local_name!("face") | local_name!("size"))
}
