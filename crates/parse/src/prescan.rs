//! The encoding that an HTML page declares in its own first bytes: `<meta charset>`, `<meta
//! http-equiv=content-type>` or `<?xml encoding?>`. Reads bytes, since nothing is text yet.
//!
//! This is "prescan a byte stream to determine its encoding" of the HTML standard, §13.2.3.2.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// How much of a page is looked at: the number that the standard sets.
const PRESCAN_BYTES: usize = 1024;

/// The declared encoding, if the declaration can be believed.
pub(crate) fn declared_encoding(body: &[u8]) -> Option<&'static Encoding> {
    let bytes = &body[..body.len().min(PRESCAN_BYTES)];
    Prescan { bytes, at: 0 }.meta_encoding().or_else(|| xml_encoding(bytes)).map(believable)
}

/// A declaration that could be read as ASCII is not in a two byte encoding, even if it says so.
fn believable(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16LE || encoding == UTF_16BE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    }
}

struct Prescan<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// One attribute, name and value in lower case.
struct PrescanAttribute {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Prescan<'_> {
    fn meta_encoding(&mut self) -> Option<&'static Encoding> {
        while let Some(offset) = memchr::memchr(b'<', self.rest()) {
            self.at += offset;
            let rest = self.rest();
            if rest.starts_with(b"<!--") {
                // `<!-->` is a whole comment, so the dashes may be those of the beginning.
                self.at += memchr::memmem::find(&rest[2..], b"-->")? + 5;
            } else if is_meta(rest) {
                self.at += 5;
                if let Some(encoding) = self.encoding_of_meta() {
                    return Some(encoding);
                }
            } else if begins_tag(rest) {
                self.at += rest.iter().position(|byte| is_white(*byte) || *byte == b'>')?;
                while self.attribute().is_some() {}
            } else if matches!(rest.get(1), Some(b'!' | b'/' | b'?')) {
                self.at += memchr::memchr(b'>', rest)?;
            } else {
                self.at += 1;
            }
        }
        None
    }

    fn encoding_of_meta(&mut self) -> Option<&'static Encoding> {
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut is_content_type = false;
        let mut from_charset = None;
        let mut from_content = None;
        while let Some(attribute) = self.attribute() {
            if seen.contains(&attribute.name) {
                continue;
            }
            match attribute.name.as_slice() {
                b"http-equiv" => is_content_type = attribute.value == b"content-type",
                b"charset" => from_charset = Some(Encoding::for_label(&attribute.value)),
                b"content" => from_content = encoding_in_content(&attribute.value),
                _ => {}
            }
            seen.push(attribute.name);
        }
        match from_charset {
            Some(encoding) => encoding,
            None if is_content_type => from_content,
            None => None,
        }
    }

    /// "Get an attribute" of the same section; `None` at the end of the tag.
    fn attribute(&mut self) -> Option<PrescanAttribute> {
        self.skip(|byte| is_white(byte) || byte == b'/');
        if matches!(self.peek(), None | Some(b'>')) {
            return None;
        }
        let mut name = vec![self.next()?.to_ascii_lowercase()];
        name.extend(self.take(|byte| !is_white(byte) && !matches!(byte, b'/' | b'>' | b'=')));
        self.skip(is_white);
        if self.peek() != Some(b'=') {
            return Some(PrescanAttribute { name, value: Vec::new() });
        }
        self.at += 1;
        self.skip(is_white);
        let value = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => {
                self.at += 1;
                let value = self.take(|byte| byte != quote);
                self.next()?;
                value
            }
            _ => self.take(|byte| !is_white(byte) && byte != b'>'),
        };
        Some(PrescanAttribute { name, value })
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.at.min(self.bytes.len())..]
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn skip(&mut self, mut wanted: impl FnMut(u8) -> bool) {
        while self.peek().is_some_and(&mut wanted) {
            self.at += 1;
        }
    }

    fn take(&mut self, wanted: impl FnMut(u8) -> bool) -> Vec<u8> {
        let start = self.at;
        self.skip(wanted);
        self.bytes[start..self.at].to_ascii_lowercase()
    }
}

fn is_meta(rest: &[u8]) -> bool {
    rest.len() > 5
        && rest[..5].eq_ignore_ascii_case(b"<meta")
        && (is_white(rest[5]) || rest[5] == b'/')
}

fn begins_tag(rest: &[u8]) -> bool {
    let name = rest.strip_prefix(b"</").or_else(|| rest.strip_prefix(b"<"));
    name.and_then(<[u8]>::first).is_some_and(u8::is_ascii_alphabetic)
}

/// `text/html; charset=…`: the label behind the first `charset` that has an equals sign.
fn encoding_in_content(content: &[u8]) -> Option<&'static Encoding> {
    let mut rest = content;
    loop {
        rest = &rest[memchr::memmem::find(rest, b"charset")? + b"charset".len()..];
        let Some(value) = rest.trim_ascii_start().strip_prefix(b"=") else { continue };
        let value = value.trim_ascii_start();
        let label = match value.first()? {
            quote @ (b'"' | b'\'') => value[1..].split(|byte| byte == quote).next()?,
            _ => value.split(|byte| is_white(*byte) || *byte == b';').next()?,
        };
        return Encoding::for_label(label);
    }
}

/// `<?xml version="1.0" encoding="…"?>`.
fn xml_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let declaration = bytes.strip_prefix(b"<?xml")?;
    let declaration = &declaration[..memchr::memchr(b'>', declaration)?];
    let behind = &declaration[memchr::memmem::find(declaration, b"encoding")? + 8..];
    let value = behind.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let quote = value.first().filter(|byte| matches!(byte, b'"' | b'\''))?;
    Encoding::for_label(value[1..].split(|byte| byte == quote).next()?)
}

fn is_white(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, expect: &str) {
        let name = declared_encoding(body.as_bytes()).map(Encoding::name);
        assert_eq!(name.unwrap_or("none"), expect, "{body}");
    }

    #[test]
    fn meta_charset() {
        check("<meta charset=utf-8>", "UTF-8");
        check("<html><HEAD><META CharSet='Shift_JIS'/>", "Shift_JIS");
        check("<meta/charset=\"gb2312\">", "GBK");
        check("<meta charset=latin1 charset=utf-8>", "windows-1252");
        check("<meta charset=", "none");
        check("<meta charset=nonsense><meta charset=big5>", "Big5");
        check("<metacharset=utf-8>", "none");
    }

    #[test]
    fn meta_http_equiv() {
        check("<meta http-equiv=Content-Type content='text/html; charset=euc-kr'>", "EUC-KR");
        check("<meta content='text/html;charset = \"koi8-u\"' http-equiv=content-type>", "KOI8-U");
        check("<meta content='text/html; charset=utf-8'>", "none");
        check("<meta http-equiv=content-type content='charset charset=big5;x'>", "Big5");
    }

    #[test]
    fn what_only_looks_like_a_declaration() {
        check("<!-- <meta charset=big5> --><meta charset=utf-8>", "UTF-8");
        check("<!--><meta charset=big5>", "Big5");
        check("<a title='<meta charset=big5>'><meta charset=utf-8>", "UTF-8");
        check("<? <meta charset=big5> <meta charset=utf-8>", "UTF-8");
        check("< <meta charset=big5>", "Big5");
        check("<!-- <meta charset=big5>", "none");
    }

    #[test]
    fn two_byte_encodings_cannot_be_declared() {
        check("<meta charset=utf-16>", "UTF-8");
        check("<meta charset=x-user-defined>", "windows-1252");
    }

    #[test]
    fn only_the_first_kilobyte_counts() {
        check(&format!("{}<meta charset=big5>", " ".repeat(1010)), "none");
        check(&format!("{}<meta charset=big5>", " ".repeat(1000)), "Big5");
    }

    #[test]
    fn xml_declaration() {
        check("<?xml version='1.0' encoding='iso-8859-2'?><html>", "ISO-8859-2");
        check("<?xml encoding='big5'?><meta charset=utf-8>", "UTF-8");
        check("<?xml version='1.0'?>", "none");
    }
}
