//! [`Writer`]: puts Markdown on paper. Knows its syntax and nothing of HTML. Every mark is written
//! only when the words that it is for come, so that what holds no words leaves no trace.

use crate::content::Base;
use crate::markdown::Markdown;
use crate::markdown::table::TableText;
use crate::text::{ByteSet, Span, cut, spans};

/// Lists and quotes inside each other that are still shown by indentation.
const NESTING_MAX: usize = 32;

/// What words inside a line can be.
#[derive(Clone, Copy)]
pub(super) enum Inline<'t> {
    Strong,
    Emphasis,
    Code,
    /// A link, resolved when it is written.
    Link {
        href: &'t str,
        base: Base<'t>,
    },
}

pub(super) struct Writer<'t> {
    out: String,
    bytes_max: usize,
    /// Whether the next word begins a block, and whether a space separates it from the last one.
    block_ended: bool,
    space: bool,
    /// Whether it begins a line within its block.
    line_ended: bool,
    heading: Option<u8>,
    nesting: Vec<Nesting>,
    inlines: Vec<OpenInline<'t>>,
    /// The text of the open piece of code, and its language.
    code: Option<(String, Option<&'static str>)>,
    tables: Vec<OpenTable>,
}

/// What the lines of a block begin with, from the outside in.
enum Nesting {
    Quote,
    List {
        next_number: Option<u64>,
    },
    /// The mark of an item, and whether it is written already.
    Item {
        mark: String,
        is_written: bool,
    },
}

struct OpenInline<'t> {
    inline: Inline<'t>,
    /// What closes it, once it was written.
    closing: Option<String>,
}

/// A table, with what was on the paper before it.
struct OpenTable {
    text: TableText,
    outside: String,
    /// What stands beside the cells, such as a caption.
    beside: String,
    cell: Option<(bool, usize)>,
    /// Bytes in all of them.
    bytes: usize,
}

impl<'t> Writer<'t> {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            out: String::new(),
            bytes_max,
            block_ended: false,
            space: false,
            line_ended: false,
            heading: None,
            nesting: Vec::new(),
            inlines: Vec::new(),
            code: None,
            tables: Vec::new(),
        }
    }

    /// Whether nothing more fits.
    pub(super) fn is_full(&self) -> bool {
        self.bytes_written() >= self.bytes_max
    }

    fn bytes_written(&self) -> usize {
        self.out.len() + self.tables.iter().map(|table| table.bytes).sum::<usize>()
    }

    pub(super) fn finish(mut self) -> Markdown {
        self.close_code();
        while !self.tables.is_empty() {
            self.close_table();
        }
        self.close_inlines();
        let truncated = self.out.len() > self.bytes_max;
        self.out.truncate(cut(&self.out, self.bytes_max).trim_end().len());
        Markdown { text: self.out, truncated }
    }

    pub(super) fn end_block(&mut self) {
        self.block_ended = true;
    }

    pub(super) fn space(&mut self) {
        self.space = true;
    }

    pub(super) fn open_heading(&mut self, level: u8) {
        self.end_block();
        self.heading = Some(level);
    }

    pub(super) fn close_heading(&mut self) {
        self.end_block();
        self.heading = None;
    }

    pub(super) fn open_list(&mut self, first_number: Option<u64>) {
        self.end_block();
        self.nesting.push(Nesting::List { next_number: first_number });
    }

    pub(super) fn close_list(&mut self) {
        self.end_block();
        self.close_nesting(|nesting| matches!(nesting, Nesting::List { .. }));
    }

    pub(super) fn open_item(&mut self) {
        self.end_block();
        let list = self.nesting.iter_mut().rev().find_map(|nesting| match nesting {
            Nesting::List { next_number } => Some(next_number),
            _ => None,
        });
        let mark = match list {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", number.saturating_sub(1))
            }
            _ => "- ".to_owned(),
        };
        self.nesting.push(Nesting::Item { mark, is_written: false });
    }

    pub(super) fn close_item(&mut self) {
        self.end_block();
        self.close_nesting(|nesting| matches!(nesting, Nesting::Item { .. }));
    }

    pub(super) fn open_quote(&mut self) {
        self.end_block();
        self.nesting.push(Nesting::Quote);
    }

    pub(super) fn close_quote(&mut self) {
        self.end_block();
        self.close_nesting(|nesting| matches!(nesting, Nesting::Quote));
    }

    fn close_nesting(&mut self, is_wanted: impl Fn(&Nesting) -> bool) {
        if self.nesting.last().is_some_and(is_wanted) {
            self.nesting.pop();
        }
    }

    pub(super) fn open_code(&mut self, language: Option<&'static str>) {
        self.end_block();
        self.code = Some((String::new(), language));
    }

    pub(super) fn close_code(&mut self) {
        let Some((code, language)) = self.code.take() else { return };
        if code.trim().is_empty() {
            return;
        }
        if self.in_cell() {
            // A cell has one line only.
            self.code = None;
            return self.text(&code);
        }
        let fence = "`".repeat(longest_run_of_ticks(&code).max(2) + 1);
        self.begin_block();
        self.out.push_str(&fence);
        self.out.push_str(language.unwrap_or_default());
        for line in code.trim_matches('\n').trim_end().split('\n') {
            self.next_line();
            self.out.push_str(line);
        }
        self.next_line();
        self.out.push_str(&fence);
        self.end_block();
    }

    pub(super) fn open_inline(&mut self, inline: Inline<'t>) {
        self.inlines.push(OpenInline { inline, closing: None });
    }

    pub(super) fn close_inline(&mut self) {
        if let Some(closing) = self.inlines.pop().and_then(|open| open.closing) {
            self.out.push_str(&closing);
        }
    }

    pub(super) fn break_line(&mut self) {
        if let Some((code, _)) = &mut self.code {
            code.push('\n');
        } else if self.in_cell() || self.heading.is_some() {
            self.space();
        } else if self.line_ended {
            // Two breaks are what others use a paragraph for.
            self.end_block();
        } else {
            self.line_ended = true;
        }
    }

    pub(super) fn image(&mut self, alt: &str, url: &str) {
        if self.is_full() || self.code.is_some() {
            return;
        }
        self.begin_words();
        self.out.push_str("![");
        escape(alt, self.in_cell(), &mut self.out);
        self.out.push_str("](");
        push_address(url, &mut self.out);
        self.out.push(')');
    }

    /// Words, with white space as HTML has it.
    pub(super) fn text(&mut self, text: &str) {
        if self.is_full() {
            return;
        }
        if let Some((code, _)) = &mut self.code {
            let room = self.bytes_max.saturating_sub(self.out.len() + code.len());
            code.push_str(cut(text, room));
            return;
        }
        for span in spans(text) {
            match span {
                Span::White => self.space = true,
                Span::Words(words) => self.words(words),
            }
        }
    }

    fn words(&mut self, words: &str) {
        let begins_line = self.begin_words();
        if self.inlines.iter().any(|open| matches!(open.inline, Inline::Code)) {
            return self.out.push_str(words);
        }
        if begins_line && begins_like_a_mark(words) {
            self.out.push('\\');
        }
        escape(words, self.in_cell(), &mut self.out);
    }

    /// Writes everything that comes before a word. Returns whether the word begins a line.
    fn begin_words(&mut self) -> bool {
        let mut begins_line = self.out.is_empty() || self.out.ends_with('\n');
        if self.block_ended || self.out.is_empty() {
            if self.in_cell() {
                self.space = !self.out.is_empty();
            } else {
                self.close_inlines();
                self.begin_block();
                begins_line = true;
            }
        } else if self.line_ended {
            self.close_inlines();
            self.out.push_str("  ");
            self.next_line();
            begins_line = true;
        }
        (self.block_ended, self.line_ended) = (false, false);
        if self.space && !begins_line {
            self.out.push(' ');
        }
        self.space = false;
        self.open_inlines();
        begins_line
    }

    fn open_inlines(&mut self) {
        for at in 0..self.inlines.len() {
            if self.inlines[at].closing.is_some() {
                continue;
            }
            let inline = self.inlines[at].inline;
            let is_open = |open: &OpenInline<'_>| {
                std::mem::discriminant(&open.inline) == std::mem::discriminant(&inline)
            };
            // Bold in bold would end it.
            let closing = if self.inlines[..at].iter().any(is_open) {
                String::new()
            } else {
                match inline {
                    Inline::Strong => self.mark("**"),
                    Inline::Emphasis => self.mark("*"),
                    Inline::Code => self.mark("`"),
                    Inline::Link { href, base } => self.open_link(href, base),
                }
            };
            self.inlines[at].closing = Some(closing);
        }
    }

    fn mark(&mut self, mark: &str) -> String {
        self.out.push_str(mark);
        mark.to_owned()
    }

    fn open_link(&mut self, href: &str, base: Base<'_>) -> String {
        let is_absolute = href.starts_with("https://") || href.starts_with("http://");
        let resolved = if is_absolute { None } else { base.join(href) };
        // Links to a place on the page, to scripts and to mailboxes lead nowhere on paper.
        let is_elsewhere = is_absolute || (resolved.is_some() && !href.starts_with('#'));
        if !is_elsewhere {
            return String::new();
        }
        self.out.push('[');
        let mut closing = "](".to_owned();
        push_address(resolved.as_ref().map_or(href, |url| url.as_str()), &mut closing);
        closing.push(')');
        closing
    }

    /// Closes what is open; the next text opens it again.
    fn close_inlines(&mut self) {
        for open in self.inlines.iter_mut().rev() {
            if let Some(closing) = open.closing.take() {
                self.out.push_str(&closing);
            }
        }
    }

    /// Begins a block with its marks: an empty line between blocks, none between items.
    fn begin_block(&mut self) {
        if !self.out.is_empty() {
            let begins_item =
                matches!(self.nesting.last(), Some(Nesting::Item { is_written: false, .. }));
            let follows_item = self.last_line_is_item();
            self.out.push('\n');
            if !(begins_item && follows_item) {
                self.push_prefixes(false);
                self.out.truncate(self.out.trim_end_matches([' ', '\t']).len());
                self.out.push('\n');
            }
        }
        self.push_prefixes(true);
        if let Some(level) = self.heading {
            self.out.push_str(&"#".repeat(usize::from(level)));
            self.out.push(' ');
        }
        self.block_ended = false;
        self.space = false;
    }

    fn last_line_is_item(&self) -> bool {
        let line = self.out.rsplit('\n').next().unwrap_or_default();
        let line = line.trim_start_matches([' ', '>']);
        let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        line.starts_with("- ") || (number.len() < line.len() && number.starts_with(". "))
    }

    /// Goes on in the same block on a new line.
    fn next_line(&mut self) {
        self.out.push('\n');
        self.push_prefixes(true);
    }

    /// Writes what the line begins with; the marks of items only if words follow.
    fn push_prefixes(&mut self, with_marks: bool) {
        for nesting in self.nesting.iter_mut().take(NESTING_MAX) {
            match nesting {
                Nesting::Quote => self.out.push_str("> "),
                Nesting::List { .. } => {}
                Nesting::Item { mark, is_written: false } => {
                    if with_marks {
                        self.out.push_str(mark);
                        let spaces = " ".repeat(mark.len());
                        *nesting = Nesting::Item { mark: spaces, is_written: true };
                    }
                }
                Nesting::Item { mark, is_written: true } => self.out.push_str(mark),
            }
        }
    }

    pub(super) fn open_table(&mut self) {
        self.close_inlines();
        self.end_block();
        let outside = std::mem::take(&mut self.out);
        let bytes = outside.len();
        let (text, beside) = Default::default();
        self.tables.push(OpenTable { text, outside, beside, cell: None, bytes });
    }

    pub(super) fn open_row(&mut self) {
        self.end_block();
        if let Some(table) = self.tables.last_mut() {
            table.text.end_row();
        }
    }

    pub(super) fn close_row(&mut self) {
        self.open_row();
    }

    pub(super) fn open_cell(&mut self, is_header: bool, columns: usize) {
        self.end_block();
        self.close_inlines();
        let Some(table) = self.tables.last_mut() else { return };
        let beside = std::mem::take(&mut self.out);
        table.bytes += beside.len();
        table.beside.push_str(&beside);
        table.cell = Some((is_header, columns));
    }

    pub(super) fn close_cell(&mut self) {
        self.end_block();
        if !self.in_cell() {
            return;
        }
        self.close_inlines();
        let text = std::mem::take(&mut self.out);
        let Some(table) = self.tables.last_mut() else { return };
        if let Some((is_header, columns)) = table.cell.take() {
            table.bytes += text.len();
            table.text.add_cell(text, is_header, columns);
        }
    }

    fn in_cell(&self) -> bool {
        self.tables.last().is_some_and(|table| table.cell.is_some())
    }

    pub(super) fn close_table(&mut self) {
        self.close_cell();
        self.close_inlines();
        let Some(mut table) = self.tables.pop() else { return };
        table.beside.push_str(&std::mem::replace(&mut self.out, table.outside));
        let beside = table.beside;
        self.end_block();
        if !beside.trim().is_empty() {
            self.begin_block();
            self.out.push_str(beside.trim());
        }
        let mut lines = table.text.into_lines().into_iter();
        if let Some(first) = lines.next() {
            self.begin_block();
            self.out.push_str(&first);
            for line in lines {
                self.next_line();
                self.out.push_str(&line);
            }
        }
        self.end_block();
    }
}

fn longest_run_of_ticks(code: &str) -> usize {
    code.split(|letter| letter != '`').map(str::len).max().unwrap_or_default()
}

/// Whether the first word of a line would be read as the mark of a heading, list or quote.
fn begins_like_a_mark(words: &str) -> bool {
    let word = words.split(' ').next().unwrap_or_default();
    let digits = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    matches!(word, "-" | "+" | "=")
        || word.starts_with(['#', '>'])
        || (digits.len() < word.len() && matches!(digits, "." | ")"))
}

/// Words with the letters that Markdown would take for marks made harmless.
fn escape(words: &str, in_cell: bool, out: &mut String) {
    static MARKS: ByteSet = ByteSet::new(b"\\`*[]<|_");
    let mut done = 0;
    // The last word with an underscore: where it ends, and whether those inside it mean nothing.
    let (mut word_end, mut is_name) = (0, false);
    while let Some(next) = MARKS.find(&words[done..]) {
        let at = done + next;
        let mark = words.as_bytes()[at];
        if mark == b'_' && at >= word_end {
            let start = words[..at].rfind(' ').map_or(0, |space| space + 1);
            word_end = words[at..].find(' ').map_or(words.len(), |space| at + space);
            is_name = is_name_with_underscores(&words[start..word_end]);
        }
        out.push_str(&words[done..at]);
        if !(mark == b'|' && !in_cell || mark == b'_' && is_name) {
            out.push('\\');
        }
        out.push(char::from(mark));
        done = at + 1;
    }
    out.push_str(&words[done..]);
}

/// Whether the underscores of a word are all between letters, where they mean nothing.
fn is_name_with_underscores(word: &str) -> bool {
    !word.starts_with('_') && !word.ends_with('_')
}

/// An address; brackets and spaces would end it.
fn push_address(mut url: &str, out: &mut String) {
    static SPECIAL: ByteSet = ByteSet::new(b"()<> ").with_controls();
    while let Some(at) = SPECIAL.find(url) {
        out.push_str(&url[..at]);
        out.push_str(match url.as_bytes()[at] {
            b'(' => "%28",
            b')' => "%29",
            b' ' => "%20",
            b'<' => "%3C",
            b'>' => "%3E",
            _ => "",
        });
        url = &url[at + 1..];
    }
    out.push_str(url);
}
