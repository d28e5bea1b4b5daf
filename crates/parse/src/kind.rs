//! [`PageKind`]: which bodies are read, and as what. Looks at the label and at the first bytes
//! only; never decodes anything.

use telusur_model::looks_binary;

/// How a body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// As a tree: HTML and XHTML.
    Html,
    /// As a list of entries: RSS and Atom.
    Feed,
    /// As text without structure and without links.
    PlainText,
    /// Not at all.
    Other,
}

/// The first bytes of formats that are often labelled as HTML by careless servers.
const BINARY_MAGIC: &[&[u8]] = &[
    b"%PDF-",
    b"PK\x03\x04",                       // zip, and every office format in it
    b"\x89PNG\r\n",                      //
    b"\xff\xd8\xff",                     // JPEG
    b"GIF87a",                           //
    b"GIF89a",                           //
    b"\x1f\x8b",                         // gzip
    b"7z\xbc\xaf\x27\x1c",               //
    b"Rar!\x1a\x07",                     //
    b"\x7fELF",                          //
    b"OggS",                             //
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", // office formats before 2007
];

/// How an unlabelled HTML page begins, in lower case. The list is that of the WHATWG MIME
/// Sniffing standard, §7.1.
const HTML_BEGINNINGS: &[&[u8]] = &[
    b"<!doctype html",
    b"<html",
    b"<head",
    b"<script",
    b"<iframe",
    b"<h1",
    b"<div",
    b"<font",
    b"<table",
    b"<a",
    b"<style",
    b"<title",
    b"<b",
    b"<body",
    b"<br",
    b"<p",
    b"<!--",
];

/// How far into a body sniffing looks: what the MIME Sniffing standard reads.
const SNIFFED_BYTES: usize = 1445;

/// Decides how a body is read.
///
/// 1. A body with the first bytes of a PDF, zip, image, film or gzip file is [`PageKind::Other`],
///    with any label.
/// 2. `text/html` and `application/xhtml+xml` are HTML; `text/plain` is plain text unless it holds
///    bytes that no text has; XML is HTML if its first element is `<html>`, and a feed if that is
///    `<rss>`, `<feed>` or `<rdf:RDF>`.
/// 3. Without a label, or with one that says nothing (`unknown/unknown`), the body is HTML if it
///    begins like HTML, else plain text if it holds no binary bytes. The labels are those of the MIME
///    Sniffing standard: `application/octet-stream` is none of them, its bytes are for saving.
/// 4. Everything else is [`PageKind::Other`].
pub fn is_parsed(content_type: Option<&str>, body: &[u8]) -> PageKind {
    if has_binary_magic(body) {
        return PageKind::Other;
    }
    let essence = content_type.and_then(|value| value.split(';').next()).unwrap_or_default();
    match essence.trim().to_ascii_lowercase().as_str() {
        "text/html" | "application/xhtml+xml" => PageKind::Html,
        "text/plain" if looks_binary(body) => PageKind::Other,
        "text/plain" => PageKind::PlainText,
        "application/rss+xml" | "application/atom+xml" => PageKind::Feed,
        "text/xml" | "application/xml" | "application/rdf+xml" if is_feed(body) => PageKind::Feed,
        "text/xml" | "application/xml" if is_xhtml(body) => PageKind::Html,
        "" | "*/*" | "application/unknown" | "unknown/unknown" => sniff(body),
        _ => PageKind::Other,
    }
}

fn sniff(body: &[u8]) -> PageKind {
    if is_feed(body) {
        PageKind::Feed
    } else if begins_like_html(body) || is_xhtml(body) {
        PageKind::Html
    } else if looks_binary(body) {
        PageKind::Other
    } else {
        PageKind::PlainText
    }
}

fn has_binary_magic(body: &[u8]) -> bool {
    // An MP4 file begins with the length of its first box, so its name comes at the fifth byte.
    BINARY_MAGIC.iter().any(|magic| body.starts_with(magic)) || body.get(4..8) == Some(b"ftyp")
}

fn begins_like_html(body: &[u8]) -> bool {
    let start = without_bom(body).trim_ascii_start();
    HTML_BEGINNINGS.iter().any(|beginning| {
        let Some((head, rest)) = start.split_at_checked(beginning.len()) else { return false };
        // `<b` must not match `<bibliography>`: the standard asks for a space or `>` behind.
        let ends = *beginning == b"<!--" || matches!(rest.first(), Some(b' ' | b'>'));
        ends && head.eq_ignore_ascii_case(beginning)
    })
}

fn is_xhtml(body: &[u8]) -> bool {
    first_element_is(body, &["html"])
}

fn is_feed(body: &[u8]) -> bool {
    first_element_is(body, &["rss", "feed", "rdf:rdf"])
}

/// Whether the first element of an XML document is one of these.
fn first_element_is(body: &[u8], names: &[&str]) -> bool {
    let mut rest = without_bom(body);
    rest = &rest[..rest.len().min(SNIFFED_BYTES)];
    while let Some(open) = memchr::memchr(b'<', rest) {
        rest = &rest[open + 1..];
        match rest.first() {
            // Declarations, comments and the document type stand before the first element.
            Some(b'?' | b'!') => {}
            _ => {
                let name = rest.split(|byte| is_name_end(*byte)).next().unwrap_or_default();
                return names.iter().any(|wanted| name.eq_ignore_ascii_case(wanted.as_bytes()));
            }
        }
    }
    false
}

fn is_name_end(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/')
}

fn without_bom(body: &[u8]) -> &[u8] {
    match encoding_rs::Encoding::for_bom(body) {
        Some((_, bom_bytes)) => &body[bom_bytes..],
        None => body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content_type: &str, body: &[u8], expect: PageKind) {
        let content_type = (!content_type.is_empty()).then_some(content_type);
        assert_eq!(is_parsed(content_type, body), expect);
    }

    #[test]
    fn labels() {
        check("text/html", b"anything", PageKind::Html);
        check("Text/HTML; charset=utf-8", b"", PageKind::Html);
        check("application/xhtml+xml", b"<html/>", PageKind::Html);
        check("text/plain", b"<html>", PageKind::PlainText);
        check("text/css", b"a{}", PageKind::Other);
        check("application/json", b"{}", PageKind::Other);
    }

    #[test]
    fn magic_bytes_beat_the_label() {
        check("text/html", b"%PDF-1.7", PageKind::Other);
        check("text/html", b"PK\x03\x04...", PageKind::Other);
        check("text/html", b"\x89PNG\r\n\x1a\n", PageKind::Other);
        check("text/html", b"\xff\xd8\xff\xe0", PageKind::Other);
        check("text/html", b"GIF89a", PageKind::Other);
        check("text/html", b"\x1f\x8b\x08", PageKind::Other);
        check("text/html", b"\0\0\0\x18ftypmp42", PageKind::Other);
        check("text/plain", b"%PDF-1.7", PageKind::Other);
    }

    #[test]
    fn nothing_said_is_sniffed() {
        check("", b"  <!DOCTYPE HTML><p>", PageKind::Html);
        check("unknown/unknown", b"<html>", PageKind::Html);
        check("", b"\xef\xbb\xbf<body >", PageKind::Html);
        check("", b"<!-- x -->", PageKind::Html);
        check("", b"<bibliography>", PageKind::PlainText);
        check("", b"hello", PageKind::PlainText);
        check("", b"", PageKind::PlainText);
        check("", b"a\0b", PageKind::Other);
        check("", b"\xff\xfeh\0i\0", PageKind::PlainText);
    }

    #[test]
    fn what_is_for_saving_is_not_read() {
        check("application/octet-stream", b"<!DOCTYPE html><p>hello", PageKind::Other);
        check("Binary/Octet-Stream", b"<html>", PageKind::Other);
        check("application/octet-stream", b"hello", PageKind::Other);
    }

    #[test]
    fn binary_is_not_plain_text() {
        check("text/plain", b"\x01\x02", PageKind::Other);
        check("text/plain", b"a\tb\r\n\x1b[1m", PageKind::PlainText);
    }

    #[test]
    fn xml_is_html_if_its_root_says_so() {
        check(
            "text/xml",
            b"<?xml version='1.0'?>\n<!DOCTYPE html>\n<html xmlns=''>",
            PageKind::Html,
        );
        check("application/xml", b"<urlset><html>", PageKind::Other);
        check("application/xml", b"", PageKind::Other);
    }
}
