//! Bytes to text, by the rules that browsers follow. Never fails: bytes that do not exist in the
//! encoding become U+FFFD.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{EncoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use telusur_model::{PageUrl, RawPage, UrlError};

use crate::prescan;

/// How much of a page without any label the detector reads. It needs a few hundred characters
/// beyond ASCII, which long scripts and styles may precede.
const DETECTED_BYTES: usize = 256 << 10;

/// A page as text.
pub(crate) struct Decoded<'a> {
    /// The text; borrowed from the page where the bytes already were UTF-8.
    pub text: Cow<'a, str>,
    /// The WHATWG name of the encoding.
    pub charset: &'static str,
    /// The charset that queries of its links are written in.
    pub of_queries: QueryCharset,
    /// Whether bytes had to be replaced.
    pub bad_bytes: bool,
}

/// Control characters in a hundred bytes of text beyond which it is no text. Bytes without meaning
/// have five and more in every decoding.
const CONTROLS_PERCENT_MAX: usize = 2;
/// So few say nothing.
const CONTROLS_FREE: usize = 4;

impl Decoded<'_> {
    /// Whether the page is text at all, rather than other bytes under a wrong label. Text in a wrong
    /// charset is text: its markup can be read. NULs do not count, because servers pad with them.
    pub(crate) fn is_text(&self) -> bool {
        let is_control =
            |byte: &&u8| matches!(byte, 0x01..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
        let controls = self.text.as_bytes().iter().filter(is_control).count();
        controls <= CONTROLS_FREE || controls * 100 <= self.text.len() * CONTROLS_PERCENT_MAX
    }
}

/// The charset in which the queries of a page's links go over the wire: that of the page, for
/// historical reasons. Every other part of a URL is UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueryCharset(&'static Encoding);

impl QueryCharset {
    /// Of pages that have no say in it, such as feeds.
    pub(crate) const UTF_8: Self = Self(UTF_8);

    /// Of a page in this encoding. UTF-16 exists in pages only: their links are UTF-8.
    pub(crate) fn of(encoding: &'static Encoding) -> Self {
        Self(encoding.output_encoding())
    }

    /// Resolves a link.
    pub(crate) fn join(self, base: &PageUrl, href: &str) -> Result<PageUrl, UrlError> {
        if self.0 == UTF_8 {
            return base.join(href);
        }
        base.join_encoded(href, &|query| Cow::Owned(self.encode(query)))
    }

    /// The bytes of a query. What the charset lacks becomes a character reference that is percent-encoded
    /// already: encoding it later would leave `&` and `;` as they are.
    fn encode(self, query: &str) -> Vec<u8> {
        let mut encoder = self.0.new_encoder();
        let mut bytes = Vec::with_capacity(2 * query.len());
        let mut left = query;
        loop {
            let needed = encoder.max_buffer_length_from_utf8_without_replacement(left.len());
            bytes.reserve(needed.unwrap_or(4 * left.len()).max(16));
            let (result, read) =
                encoder.encode_from_utf8_to_vec_without_replacement(left, &mut bytes, true);
            left = &left[read..];
            match result {
                EncoderResult::InputEmpty => return bytes,
                EncoderResult::OutputFull => {}
                EncoderResult::Unmappable(letter) => {
                    bytes.extend(format!("%26%23{}%3B", u32::from(letter)).bytes());
                }
            }
        }
    }
}

/// Byte order mark, then the header, then `<meta>`, then the looks of the bytes.
pub(crate) fn decode_html(page: &RawPage) -> Decoded<'_> {
    decode(page, || prescan::declared_encoding(&page.body))
}

/// Byte order mark, then the header, then the looks of the bytes.
pub(crate) fn decode_plain_text(page: &RawPage) -> Decoded<'_> {
    decode(page, || None)
}

fn decode(page: &RawPage, declared: impl FnOnce() -> Option<&'static Encoding>) -> Decoded<'_> {
    let bom = Encoding::for_bom(&page.body);
    let (encoding, body) = match bom {
        Some((encoding, bom_bytes)) => (encoding, &page.body[bom_bytes..]),
        None => {
            let encoding = header_encoding(page)
                .or_else(declared)
                .unwrap_or_else(|| detected_encoding(&page.body, page.url.host_str()));
            (encoding, &page.body[..])
        }
    };
    let (text, bad_bytes) = encoding.decode_without_bom_handling(body);
    Decoded { text, charset: encoding.name(), of_queries: QueryCharset::of(encoding), bad_bytes }
}

fn header_encoding(page: &RawPage) -> Option<&'static Encoding> {
    Encoding::for_label(page.media_type()?.charset?.as_bytes())
}

fn detected_encoding(body: &[u8], host: &str) -> &'static Encoding {
    match body {
        // The detector does not know two byte encodings; a page begins with `<`.
        [b'<', 0, ..] => return UTF_16LE,
        [0, b'<', ..] => return UTF_16BE,
        _ => {}
    }
    if std::str::from_utf8(body).is_ok() {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(&body[..body.len().min(DETECTED_BYTES)], true);
    detector.guess(top_level_domain(host), Utf8Detection::Allow)
}

/// The last label of a host name, which hints at the language of its pages.
fn top_level_domain(host: &str) -> Option<&[u8]> {
    let label = host.rsplit('.').next()?;
    label.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-').then_some(label.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::raw_page;

    #[track_caller]
    fn check(content_type: &str, body: &[u8], charset: &str, text: &str) {
        let page = raw_page(content_type, body);
        let decoded = decode_html(&page);
        assert_eq!((decoded.charset, &*decoded.text), (charset, text));
    }

    #[test]
    fn bom_beats_the_header() {
        check("text/html; charset=latin1", b"\xef\xbb\xbf\xc3\xa9", "UTF-8", "é");
        check("text/html; charset=utf-8", b"\xff\xfe\xe9\0", "UTF-16LE", "é");
        check("text/html", b"\xfe\xff\0\xe9", "UTF-16BE", "é");
        check("text/html", b"\xef\xbb\xbf", "UTF-8", "");
    }

    #[test]
    fn header_beats_meta() {
        let body = b"<meta charset=utf-8>\xe9";
        check("text/html; charset=ISO-8859-1", body, "windows-1252", "<meta charset=utf-8>é");
        check("text/html;Charset=\"latin1\"", b"\xe9", "windows-1252", "é");
        check("text/html;charset=latin1, text/html;charset=utf-8", "é".as_bytes(), "UTF-8", "é");
        check("text/plain;charset=koi8-r, text/html", "é".as_bytes(), "UTF-8", "é");
    }

    #[test]
    fn meta_beats_detection() {
        let text = "<meta charset=koi8-r>\u{43f}";
        check("text/html", b"<meta charset=koi8-r>\xd0", "KOI8-R", text);
        let text = "<meta charset=koi8-r>\u{43f}";
        check("text/html; charset=nonsense", b"<meta charset=koi8-r>\xd0", "KOI8-R", text);
    }

    #[test]
    fn detection_comes_last() {
        check("text/html", "héllo".as_bytes(), "UTF-8", "héllo");
        check("text/html", b"", "UTF-8", "");
        check("text/html", b"<\0p\0>\0", "UTF-16LE", "<p>");
        check("text/html", b"\0<\0p\0>", "UTF-16BE", "<p>");
        let cyrillic = "Съешь же ещё этих мягких французских булок, да выпей чаю";
        let (bytes, _, _) = encoding_rs::WINDOWS_1251.encode(cyrillic);
        check("text/html", &bytes, "windows-1251", cyrillic);
    }

    #[test]
    fn bad_bytes_are_replaced_and_told() {
        for body in [&b"a\xffb"[..], b"a\xc0\xafb", b"a\xed\xa0\x80b"] {
            let page = raw_page("text/html; charset=utf-8", body);
            let decoded = decode_html(&page);
            assert!(decoded.bad_bytes && decoded.text.contains('\u{fffd}'), "{body:?}");
        }
    }

    #[test]
    fn odd_utf_16_is_replaced() {
        check("text/html; charset=utf-16le", b"a\0b", "UTF-16LE", "a\u{fffd}");
    }

    #[test]
    fn good_utf_8_is_not_copied() {
        let page = raw_page("text/html; charset=utf-8", "héllo".as_bytes());
        assert!(matches!(decode_html(&page).text, Cow::Borrowed(_)));
    }
}
