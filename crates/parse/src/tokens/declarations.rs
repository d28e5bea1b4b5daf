//! What begins with `<!`: comments, the document type, CDATA. And what only looks like it.

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::Doctype;

use crate::tokens::{Sink, Tokenizer, is_white};

impl<S: Sink> Tokenizer<'_, S> {
    pub(super) fn declaration(&mut self) {
        let behind = &self.bytes[self.at + 2..];
        if behind.starts_with(b"--") {
            self.at = comment_end(self.bytes, self.at + 4);
            self.sink.comment();
        } else if behind.len() >= 7 && behind[..7].eq_ignore_ascii_case(b"doctype") {
            self.at += 9;
            let doctype = self.doctype();
            self.sink.doctype(doctype);
        } else if behind.starts_with(b"[CDATA[") && self.sink.in_foreign_content() {
            self.at += 9;
            self.cdata();
        } else {
            self.bogus_comment();
        }
    }

    /// Everything up to the next `>`.
    pub(super) fn bogus_comment(&mut self) {
        self.skip_behind_greater();
        self.sink.comment();
    }

    fn skip_behind_greater(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += memchr::memchr(b'>', rest).map_or(rest.len(), |offset| offset + 1);
    }

    fn cdata(&mut self) {
        let rest = &self.bytes[self.at..];
        let length = memchr::memmem::find(rest, b"]]>");
        let end = self.at + length.unwrap_or(rest.len());
        while self.at < end {
            let run = &self.bytes[self.at..end];
            let run_end = self.at + memchr::memchr(0, run).unwrap_or(run.len());
            if run_end > self.at {
                self.sink.text(self.piece(self.at, run_end));
            }
            self.at = run_end;
            if run_end < end {
                self.sink.nul();
                self.at += 1;
            }
        }
        self.at = end + length.map_or(0, |_| 3);
    }

    /// The document type behind its keyword. It decides between quirks and standards, and so
    /// whether a table may stand in a paragraph.
    fn doctype(&mut self) -> Doctype {
        let mut doctype = Doctype::default();
        let complete = self.doctype_name(&mut doctype);
        if complete.is_none() {
            // Cut short or malformed where it matters.
            doctype.force_quirks = true;
        }
        self.skip_behind_greater();
        doctype
    }

    fn doctype_name(&mut self, doctype: &mut Doctype) -> Option<()> {
        self.skip_white();
        let start = self.at;
        if *self.bytes.get(start)? == b'>' {
            return None;
        }
        let end = self.find(start, |byte| is_white(byte) || byte == b'>');
        self.at = end.unwrap_or(self.bytes.len());
        let name = self.text[start..self.at].to_ascii_lowercase().replace('\0', "\u{fffd}");
        doctype.name = Some(StrTendril::from(name));
        end?;
        self.skip_white();
        if *self.bytes.get(self.at)? == b'>' {
            return Some(());
        }
        match self.bytes.get(self.at..self.at + 6)? {
            keyword if keyword.eq_ignore_ascii_case(b"public") => {
                self.at += 6;
                self.quoted_id(&mut doctype.public_id)?;
                self.skip_white();
                match self.bytes.get(self.at)? {
                    b'>' => Some(()),
                    b'"' | b'\'' => self.quoted_id(&mut doctype.system_id),
                    _ => None,
                }
            }
            keyword if keyword.eq_ignore_ascii_case(b"system") => {
                self.at += 6;
                self.quoted_id(&mut doctype.system_id)
            }
            _ => None,
        }
    }

    fn quoted_id(&mut self, id: &mut Option<StrTendril>) -> Option<()> {
        self.skip_white();
        let quote = *self.bytes.get(self.at)?;
        if !matches!(quote, b'"' | b'\'') {
            return None;
        }
        self.at += 1;
        let start = self.at;
        let end = self.find(start, |byte| byte == quote || byte == b'>');
        self.at = end.unwrap_or(self.bytes.len());
        *id = Some(StrTendril::from(self.text[start..self.at].replace('\0', "\u{fffd}")));
        if self.bytes[end?] == b'>' {
            return None;
        }
        self.at += 1;
        // Behind the last one only `>` should come; anything else is skipped without harm, but
        // the end of the page is not.
        self.skip_white();
        self.bytes.get(self.at).map(|_| ())
    }
}

/// Behind the end of a comment whose content begins at `start`.
fn comment_end(bytes: &[u8], start: usize) -> usize {
    let content = &bytes[start..];
    if content.starts_with(b">") {
        return start + 1;
    }
    if content.starts_with(b"->") {
        return start + 2;
    }
    let mut at = start;
    while let Some(offset) = memchr::memmem::find(&bytes[at..], b"--") {
        at += offset + 2;
        while bytes.get(at) == Some(&b'-') {
            at += 1;
        }
        match &bytes[at..] {
            [b'>', ..] => return at + 1,
            [b'!', b'>', ..] => return at + 2,
            _ => {}
        }
    }
    bytes.len()
}
