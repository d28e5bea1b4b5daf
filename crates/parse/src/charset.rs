//! Bytes to text, by the rules that browsers follow. Never fails: bytes that do not exist in the
//! encoding become U+FFFD.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use telusur_model::RawPage;

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
    /// Whether bytes had to be replaced.
    pub bad_bytes: bool,
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
    Decoded { text, charset: encoding.name(), bad_bytes }
}

fn header_encoding(page: &RawPage) -> Option<&'static Encoding> {
    let value = page.header("content-type")?;
    // A list of types may hold parameters in every part.
    value.split([';', ',']).skip(1).find_map(|parameter| {
        let (name, label) = parameter.split_once('=')?;
        if !name.trim().eq_ignore_ascii_case("charset") {
            return None;
        }
        Encoding::for_label(label.trim().trim_matches(['"', '\'']).as_bytes())
    })
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
