//! Text to tags and characters, by the tokenizer of the HTML standard, §13.2.5.
//!
//! html5ever has a tokenizer too, but it takes four fifths of the time of a page, keeps every
//! attribute of every tag, and is quadratic in the attributes of one tag. This one runs over the
//! bytes, shares the page's buffer instead of copying, and keeps only the attributes that the parser
//! uses. The tests hold it against html5ever's, token by token.

mod attributes;
mod char_refs;
mod declarations;
mod raw_text;

#[cfg(test)]
mod tests;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Doctype, Tag, TagKind};
use html5ever::{LocalName, local_name};

use crate::ParseLimits;
use crate::guard::{Guard, Spent, is_void};
use crate::text;
pub(crate) use crate::tokens::attributes::{Detail, lazy_names};
use crate::tokens::char_refs::Place;
use crate::tree::Tree;

/// Longest text that is read; what lies behind is left out. Positions are kept in 32 bits. Bodies
/// are cut far below this when they are fetched.
const TEXT_BYTES_MAX: usize = 1 << 30;

/// Which rules a page follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    Html,
    /// XHTML is read by the rules of HTML, but here `<script/>` has ended.
    Xhtml,
}

impl Syntax {
    pub(crate) fn of(content_type: Option<&str>) -> Self {
        match content_type {
            Some("application/xhtml+xml" | "application/xml" | "text/xml") => Self::Xhtml,
            _ => Self::Html,
        }
    }
}

/// A page as a tree, and what had to be left out of it.
pub(crate) struct Document {
    pub tree: Tree,
    pub too_deep: bool,
    pub too_many_attributes: bool,
}

/// Reads a whole page.
pub(crate) fn build_tree(
    text: &str,
    syntax: Syntax,
    detail: Detail,
    limits: &ParseLimits,
) -> Document {
    build_piece(text, syntax, detail, limits, &mut Spent::default())
}

/// Reads a piece of markup of a page, within what is left of the page's budget.
pub(crate) fn build_piece(
    text: &str,
    syntax: Syntax,
    detail: Detail,
    limits: &ParseLimits,
    spent: &mut Spent,
) -> Document {
    let text = text::unix_lines(text::cut(text, TEXT_BYTES_MAX));
    let guard = Guard::new(&text, limits, spent);
    let mut tokenizer = Tokenizer::new(&text, syntax, limits.attributes_max, guard);
    tokenizer.detail = detail;
    tokenizer.run();
    let (tree, too_deep) = tokenizer.sink.finish();
    Document { tree, too_deep, too_many_attributes: tokenizer.too_many_attributes }
}

/// Where tokens go: to the [`Guard`], and in tests to a list.
pub(crate) trait Sink {
    fn text(&mut self, text: StrTendril);
    /// A NUL in text, which is ignored or replaced depending on where it stands.
    fn nul(&mut self);
    /// A comment, without its text.
    fn comment(&mut self);
    fn doctype(&mut self, doctype: Doctype);
    fn start_tag(&mut self, tag: Tag) -> Next;
    fn end_tag(&mut self, name: LocalName);
    /// Whether the current element is SVG or MathML, where CDATA exists.
    fn in_foreign_content(&self) -> bool;
}

/// How the tokenizer goes on after a start tag.
pub(crate) enum Next {
    /// With markup.
    Markup,
    /// With text that ends at the end tag of the same name.
    Raw(RawKind),
    /// With text to the end of the page.
    Plaintext,
}

/// What the bytes at the current position are.
enum State {
    Markup,
    /// The content of an element that holds no markup, such as `<script>`.
    Raw(RawKind, LocalName),
    Plaintext,
}

struct Tokenizer<'a, S> {
    text: &'a str,
    bytes: &'a [u8],
    /// The same text; its pieces share this buffer.
    shared: StrTendril,
    at: usize,
    state: State,
    syntax: Syntax,
    detail: Detail,
    attributes_max: usize,
    too_many_attributes: bool,
    sink: S,
}

impl<'a, S: Sink> Tokenizer<'a, S> {
    /// `text` has no carriage returns any more.
    fn new(text: &'a str, syntax: Syntax, attributes_max: usize, sink: S) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            shared: StrTendril::from_slice(text),
            at: 0,
            state: State::Markup,
            syntax,
            detail: Detail::Crawl,
            attributes_max,
            too_many_attributes: false,
            sink,
        }
    }

    fn run(&mut self) {
        while self.at < self.bytes.len() {
            match &self.state {
                State::Markup => {
                    self.characters();
                    self.markup();
                }
                State::Raw(kind, element) => {
                    let (kind, element) = (*kind, element.clone());
                    self.raw_text(kind, &element);
                }
                State::Plaintext => self.plaintext(),
            }
        }
    }

    /// The characters up to the next `<`.
    fn characters(&mut self) {
        let rest = &self.bytes[self.at..];
        let end = self.at + memchr::memchr(b'<', rest).unwrap_or(rest.len());
        while self.at < end {
            let run = &self.bytes[self.at..end];
            let run_end = self.at + memchr::memchr(0, run).unwrap_or(run.len());
            if run_end > self.at {
                let text = self.decoded(self.at, run_end, Place::Text);
                self.sink.text(text);
            }
            self.at = run_end;
            if run_end < end {
                self.sink.nul();
                self.at += 1;
            }
        }
    }

    /// What stands at a `<`: a tag, a comment, a declaration, or just that character.
    fn markup(&mut self) {
        match self.bytes.get(self.at + 1) {
            Some(byte) if byte.is_ascii_alphabetic() => self.tag(TagKind::StartTag, self.at + 1),
            Some(b'/') => match self.bytes.get(self.at + 2) {
                Some(byte) if byte.is_ascii_alphabetic() => self.tag(TagKind::EndTag, self.at + 2),
                Some(b'>') => self.at += 3,
                Some(_) => self.bogus_comment(),
                None => self.literal(2),
            },
            Some(b'!') => self.declaration(),
            Some(b'?') => self.bogus_comment(),
            Some(_) => self.literal(1),
            // Also reached at the end of the text, where no `<` stands.
            None => self.literal(self.bytes.len() - self.at),
        }
    }

    fn literal(&mut self, bytes: usize) {
        if bytes > 0 {
            self.sink.text(self.piece(self.at, self.at + bytes));
            self.at += bytes;
        }
    }

    fn tag(&mut self, kind: TagKind, name_start: usize) {
        let Some(name_end) = self.find(name_start, |byte| is_white(byte) || is_tag_end(byte))
        else {
            return self.abandon();
        };
        let name = element_name(&self.text[name_start..name_end]);
        self.at = name_end;
        let Some(rest) = self.attributes(kind, &name) else {
            return self.abandon();
        };
        match kind {
            TagKind::EndTag => self.sink.end_tag(name),
            TagKind::StartTag => self.start_tag(Tag {
                kind,
                name,
                self_closing: rest.self_closing,
                attrs: rest.kept,
                had_duplicate_attributes: false,
            }),
        }
    }

    fn start_tag(&mut self, tag: Tag) {
        let name = tag.name.clone();
        let has_ended = self.syntax == Syntax::Xhtml && tag.self_closing && !is_void(&name);
        let next = self.sink.start_tag(tag);
        if has_ended {
            return self.sink.end_tag(name);
        }
        match next {
            Next::Markup => {}
            Next::Raw(kind) => self.state = State::Raw(kind, name),
            Next::Plaintext => self.state = State::Plaintext,
        }
    }

    /// The page ended inside a tag: the standard drops the tag.
    fn abandon(&mut self) {
        self.at = self.bytes.len();
    }

    /// The first position from `start` on whose byte is wanted.
    fn find(&self, start: usize, wanted: impl Fn(u8) -> bool) -> Option<usize> {
        let offset = self.bytes[start..].iter().position(|byte| wanted(*byte))?;
        Some(start + offset)
    }

    fn skip_white(&mut self) {
        while self.bytes.get(self.at).is_some_and(|byte| is_white(*byte)) {
            self.at += 1;
        }
    }

    /// A piece of the page with its character references resolved.
    fn decoded(&self, start: usize, end: usize, place: Place) -> StrTendril {
        match memchr::memchr2(b'&', 0, &self.bytes[start..end]) {
            None => self.piece(start, end),
            Some(_) => char_refs::decode(&self.text[start..end], place),
        }
    }

    /// A piece of the page as it stands there, without a copy.
    fn piece(&self, start: usize, end: usize) -> StrTendril {
        self.shared.subtendril(start as u32, (end - start) as u32)
    }
}

/// A text with its character references resolved.
pub(crate) fn decode_references(text: &str) -> StrTendril {
    char_refs::decode(text, Place::Text)
}

/// The name of an element: letters in lower case, NUL replaced.
fn element_name(written: &str) -> LocalName {
    if written.bytes().any(|byte| byte.is_ascii_uppercase() || byte == 0) {
        LocalName::from(written.to_ascii_lowercase().replace('\0', "\u{fffd}"))
    } else if written == "a" {
        // The most common names are worth a comparison before the hash.
        local_name!("a")
    } else {
        LocalName::from(written)
    }
}

/// White space in markup; carriage returns are gone by now.
fn is_white(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b' ')
}

fn is_tag_end(byte: u8) -> bool {
    matches!(byte, b'/' | b'>')
}
