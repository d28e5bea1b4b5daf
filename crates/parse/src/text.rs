//! Text as people see it: white space collapsed, one line per block. Knows nothing of elements.

use std::borrow::Cow;

/// Most empty lines that are kept between two lines, plus one. A page of ten thousand `<br>` says
/// no more than a page with one empty line.
const BREAKS_MAX: u8 = 2;

/// Writes visible text piece by piece.
#[derive(Debug, Default)]
pub(crate) struct TextWriter {
    out: String,
    bytes_max: usize,
    /// What separates the next word from the last one. It is written only when that word comes,
    /// so that nothing ends with white space.
    breaks: u8,
    tab: bool,
    space: bool,
    full: bool,
}

impl TextWriter {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    /// What was written so far.
    pub(crate) fn as_str(&self) -> &str {
        &self.out
    }

    /// What was written so far, in bytes: a place to cut at later.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether something did not fit.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    pub(crate) fn into_string(self) -> String {
        self.out
    }

    /// Forgets everything, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.out.clear();
        (self.breaks, self.tab, self.space, self.full) = (0, false, false, false);
    }

    /// A block begins or ends: what follows stands on its own line.
    pub(crate) fn block(&mut self) {
        self.breaks = self.breaks.max(1);
    }

    /// A forced line break.
    pub(crate) fn line(&mut self) {
        self.breaks = (self.breaks + 1).min(BREAKS_MAX);
    }

    /// A table cell begins or ends.
    pub(crate) fn cell(&mut self) {
        self.tab = true;
    }

    /// Text in which any run of white space means one space.
    pub(crate) fn flowing(&mut self, text: &str) {
        for span in spans(text) {
            match span {
                Span::White => self.space = true,
                Span::Words(words) => self.write(words),
            }
        }
    }

    /// Text in which all white space counts, as in `<pre>`.
    pub(crate) fn verbatim(&mut self, text: &str) {
        if !text.is_empty() {
            self.write(text);
        }
    }

    fn write(&mut self, text: &str) {
        if self.full {
            return;
        }
        let separator = self.separator();
        let room = self.bytes_max.saturating_sub(self.out.len() + separator.len());
        let fits = cut(text, room);
        self.full = fits.len() < text.len();
        if !fits.is_empty() {
            self.out.push_str(separator);
            self.out.push_str(fits);
        }
    }

    /// What stands between the last word and the next one.
    fn separator(&mut self) -> &'static str {
        let (mut breaks, tab, space) = (self.breaks, self.tab, self.space);
        (self.breaks, self.tab, self.space) = (0, false, false);
        if self.out.is_empty() {
            return "";
        }
        let on_new_line = self.out.ends_with('\n');
        if on_new_line {
            // `<pre>` often brings its own line end.
            breaks = breaks.saturating_sub(1);
        }
        match breaks {
            0 if on_new_line => "",
            0 if tab => "\t",
            0 if space => " ",
            0 => "",
            1 => "\n",
            _ => "\n\n",
        }
    }
}

/// A piece of flowing text.
pub(crate) enum Span<'t> {
    /// White space that means one space, if words stand on both of its sides.
    White,
    /// Words with single spaces between them.
    Words(&'t str),
}

/// Cuts flowing text into pieces as long as can be.
pub(crate) fn spans(text: &str) -> impl Iterator<Item = Span<'_>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        if !is_white(*bytes.get(start)?) {
            at = span_end(bytes, start);
            return Some(Span::Words(&text[start..at]));
        }
        let white = bytes[start..].iter().position(|byte| !is_white(*byte));
        at = white.map_or(bytes.len(), |white| start + white);
        Some(Span::White)
    })
}

/// The end of the longest run from `start` on that needs no change: all of its white space is
/// single spaces between words.
fn span_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    // Prose is nearly always fine as it is: whole blocks are checked without branching, which the
    // compiler turns into vector instructions.
    while bytes.get(at..=at + BLOCK).is_some_and(needs_no_change) {
        at += BLOCK;
    }
    while at < bytes.len() {
        let is_single_space =
            bytes[at] == b' ' && bytes.get(at + 1).is_some_and(|next| !is_white(*next));
        if is_white(bytes[at]) && !is_single_space {
            break;
        }
        at += 1;
    }
    at
}

/// Bytes looked at in one go.
const BLOCK: usize = 32;

/// Whether all white space of a block, but for its last byte, is single spaces.
fn needs_no_change(block: &[u8]) -> bool {
    let pairs = block.iter().zip(&block[1..]);
    !pairs.fold(false, |found, (byte, next)| {
        let is_break = (*byte == b'\t') | (*byte == b'\n') | (*byte == b'\x0c') | (*byte == b'\r');
        let next_is_break =
            (*next == b'\t') | (*next == b'\n') | (*next == b'\x0c') | (*next == b'\r');
        found | is_break | ((*byte == b' ') & ((*next == b' ') | next_is_break))
    })
}

/// Bytes that are looked for.
pub(crate) struct ByteSet([bool; 256]);

impl ByteSet {
    pub(crate) const fn new(bytes: &[u8]) -> Self {
        let mut set = [false; 256];
        let mut at = 0;
        while at < bytes.len() {
            set[bytes[at] as usize] = true;
            at += 1;
        }
        Self(set)
    }

    /// These, and all control characters of ASCII.
    pub(crate) const fn with_controls(mut self) -> Self {
        let mut byte = 0;
        while byte < 0x80u8 {
            if byte.is_ascii_control() {
                self.0[byte as usize] = true;
            }
            byte += 1;
        }
        self
    }

    /// The first place in a text where one of them stands.
    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        text.bytes().position(|byte| self.0[usize::from(byte)])
    }
}

/// White space that HTML collapses. A no-break space is not among it.
fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0c' | b'\r')
}

/// One line of text: white space collapsed, cut at a limit. `None` if nothing is left.
pub(crate) fn one_line<'a>(
    pieces: impl Iterator<Item = &'a str>,
    bytes_max: usize,
) -> Option<String> {
    let mut line = TextWriter::new(bytes_max);
    pieces.for_each(|piece| line.flowing(piece));
    Some(line.into_string()).filter(|line| !line.is_empty())
}

/// The beginning of a text, as long as fits without breaking a character.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// Text with every line end as one line feed.
pub(crate) fn unix_lines(text: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'\r', text.as_bytes()) else { return Cow::Borrowed(text) };
    let mut lines = String::with_capacity(text.len());
    lines.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(offset) = memchr::memchr(b'\r', rest.as_bytes()) {
        lines.push_str(&rest[..offset]);
        lines.push('\n');
        rest = &rest[offset + 1..];
        rest = rest.strip_prefix('\n').unwrap_or(rest);
    }
    lines.push_str(rest);
    Cow::Owned(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], expect: &str) {
        let mut writer = TextWriter::new(1000);
        for piece in pieces {
            match *piece {
                "<p>" => writer.block(),
                "<br>" => writer.line(),
                "<td>" => writer.cell(),
                text => writer.flowing(text),
            }
        }
        assert_eq!(writer.as_str(), expect);
    }

    #[test]
    fn white_space_collapses() {
        check(&["  a \n\t b  c "], "a b c");
        check(&["a", " ", "b", "c", "  "], "a bc");
        check(&["", " ", "\n"], "");
        check(&["a\u{a0} b"], "a\u{a0} b");
    }

    #[test]
    fn blocks_and_lines() {
        check(&["a", "<p>", "<p>", " b"], "a\nb");
        check(&["a", "<br>", "b", "<br>", "<br>", "<br>", "c"], "a\nb\n\nc");
        check(&["<p>", "<br>", "a", "<p>"], "a");
        check(&["a ", "<td>", " b", "<td>", "<p>", "c"], "a\tb\nc");
        check(&["a", "<br>", "<p>", "b"], "a\nb");
    }

    #[test]
    fn verbatim_keeps_white_space() {
        let mut writer = TextWriter::new(1000);
        writer.flowing("a ");
        writer.block();
        writer.verbatim("  x\n    y\n");
        writer.block();
        writer.flowing(" b");
        assert_eq!(writer.as_str(), "a\n  x\n    y\nb");
    }

    #[test]
    fn a_full_writer_says_so_and_stays_whole() {
        let mut writer = TextWriter::new(4);
        writer.flowing("abé");
        assert!(!writer.is_full());
        writer.flowing("é");
        assert!(writer.is_full());
        writer.flowing("z");
        assert_eq!(writer.as_str(), "abé");
    }

    #[test]
    fn line_ends() {
        assert_eq!(unix_lines("a\r\nb\rc\r\r\n\r"), "a\nb\nc\n\n\n");
        assert!(matches!(unix_lines("a\nb"), Cow::Borrowed(_)));
    }

    #[test]
    fn bytes_are_found() {
        let set = ByteSet::new(b"<&");
        assert_eq!(set.find(""), None);
        assert_eq!(set.find("abcé"), None);
        assert_eq!(set.find("é&<"), Some(2));
    }

    #[test]
    fn cutting_keeps_characters_whole() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("aé", 99), "aé");
    }
}
