//! Elements whose content is not markup: `<title>`, `<textarea>`, `<style>`, `<script>` and their
//! like. They end at their own end tag, which for scripts is harder to find than it seems.

use html5ever::LocalName;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;

use crate::tokens::char_refs::Place;
use crate::tokens::{Sink, State, Tokenizer, is_tag_end, is_white};

impl<S: Sink> Tokenizer<'_, S> {
    /// Everything up to the end tag of `element`, which is left to be read as markup.
    pub(super) fn raw_text(&mut self, kind: RawKind, element: &LocalName) {
        let end = match kind {
            RawKind::ScriptData | RawKind::ScriptDataEscaped(_) => script_end(self.bytes, self.at),
            RawKind::Rcdata | RawKind::Rawtext => end_tag(self.bytes, self.at, element.as_bytes()),
        };
        if end > self.at {
            let text = match kind {
                RawKind::Rcdata => self.decoded(self.at, end, Place::Text),
                _ => self.verbatim(self.at, end),
            };
            self.sink.text(text);
        }
        self.at = end;
        self.state = State::Markup;
    }

    /// The rest of the page, after `<plaintext>`.
    pub(super) fn plaintext(&mut self) {
        self.sink.text(self.verbatim(self.at, self.bytes.len()));
        self.at = self.bytes.len();
    }

    fn verbatim(&self, start: usize, end: usize) -> StrTendril {
        match memchr::memchr(0, &self.bytes[start..end]) {
            None => self.piece(start, end),
            Some(_) => StrTendril::from(self.text[start..end].replace('\0', "\u{fffd}")),
        }
    }
}

/// Where `</name` stands, or the end of the text.
fn end_tag(bytes: &[u8], start: usize, name: &[u8]) -> usize {
    memchr::memchr_iter(b'<', &bytes[start..])
        .map(|offset| start + offset)
        .find(|at| is_end_tag(bytes, *at, name))
        .unwrap_or(bytes.len())
}

/// Whether an end tag of this name begins at this position.
fn is_end_tag(bytes: &[u8], at: usize, name: &[u8]) -> bool {
    bytes[at..].starts_with(b"</") && is_name(bytes, at + 2, name)
}

fn is_name(bytes: &[u8], start: usize, name: &[u8]) -> bool {
    let end = start + name.len();
    bytes.get(start..end).is_some_and(|written| written.eq_ignore_ascii_case(name))
        && bytes.get(end).is_some_and(|byte| is_white(*byte) || is_tag_end(*byte))
}

/// Where the `</script` stands that ends a script, or the end of the text.
///
/// Pages hide scripts from browsers of 1995 in `<!-- -->`; inside, `<script>` and `</script>` come
/// in pairs (§13.2.5.17 to 31 of the standard).
fn script_end(bytes: &[u8], start: usize) -> usize {
    const SCRIPT: &[u8] = b"script";
    let mut in_comment = false;
    let mut in_pair = false;
    let mut at = start;
    while at < bytes.len() {
        let special = if in_comment {
            memchr::memchr2(b'<', b'-', &bytes[at..])
        } else {
            memchr::memchr(b'<', &bytes[at..])
        };
        let Some(offset) = special else { break };
        at += offset;
        if in_comment && bytes[at..].starts_with(b"-->") {
            (in_comment, in_pair) = (false, false);
        } else if is_end_tag(bytes, at, SCRIPT) {
            if !in_pair {
                return at;
            }
            in_pair = false;
        } else if !in_comment && bytes[at..].starts_with(b"<!--") {
            in_comment = true;
            // The dashes count for the end as well: `<!-->` is a whole comment.
            at += 1;
        } else if in_comment && bytes[at] == b'<' && is_name(bytes, at + 1, SCRIPT) {
            in_pair = true;
        }
        at += 1;
    }
    bytes.len()
}
