//! From an answer's head to what comes of the visit: a page, a redirect, or neither.

use std::borrow::Cow;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};
use percent_encoding::{AsciiSet, percent_encode};
use telusur_model::{FetchOutcome, PageUrl, Reason, UrlError};

use crate::decode::words;
use crate::failure::Failure;

/// Longest value of a header that is kept. Honest ones were seen up to 6 KiB (content policies).
const VALUE_BYTES_MAX: usize = 8 * 1024;

/// Where an answer sends us, if it does.
pub(crate) fn redirect(
    url: &PageUrl,
    status: StatusCode,
    headers: &HeaderMap,
) -> Option<Result<FetchOutcome, Failure>> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let target = location(headers).and_then(|location| join(url, &location));
    Some(target.map(|to| FetchOutcome::Redirected { status: status.as_u16(), to }))
}

fn location(headers: &HeaderMap) -> Result<Cow<'_, str>, Failure> {
    let mut locations = headers.get_all(LOCATION).iter();
    let Some(location) = locations.next() else {
        return Err(bad_redirect("a redirect without a target"));
    };
    if locations.any(|other| other != location) {
        return Err(bad_redirect("a redirect with several targets"));
    }
    let text = as_url_text(location.as_bytes());
    if text.is_empty() || text.starts_with('#') {
        return Err(bad_redirect(format!("the redirect's target is {text:?}")));
    }
    Ok(text)
}

/// Servers do send bare UTF-8 in `Location`, and bytes of older encodings. Browsers follow both: the
/// latter are escaped one by one, so that the server gets its own bytes back.
fn as_url_text(location: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(location) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(percent_encode(location, &NOTHING_IN_ASCII).to_string()),
    }
}

/// Bytes beyond ASCII are always escaped.
const NOTHING_IN_ASCII: AsciiSet = AsciiSet::EMPTY;

fn join(url: &PageUrl, location: &str) -> Result<PageUrl, Failure> {
    url.join(location).map_err(|error| match error {
        UrlError::TooLong(_) => Failure::never(Reason::UrlTooLong, error.to_string()),
        UrlError::Bad(_) | UrlError::Scheme(_) => {
            bad_redirect(format!("the redirect's target is {location:?}: {error}"))
        }
    })
}

fn bad_redirect(detail: impl Into<String>) -> Failure {
    Failure::never(Reason::BadRedirect, detail)
}

/// The headers as they are kept: names in lower case, values printable and not endless.
pub(crate) fn kept_headers(headers: &HeaderMap) -> Result<Vec<(String, String)>, Failure> {
    // A cut content type would be another content type.
    if headers.get(CONTENT_TYPE).is_some_and(|value| value.len() > VALUE_BYTES_MAX) {
        return Err(Failure::never(Reason::HeaderTooLarge, "the content type is too long"));
    }
    let kept = headers.iter().map(|(name, value)| (name.as_str().to_owned(), printable(value)));
    Ok(kept.collect())
}

fn printable(value: &http::HeaderValue) -> String {
    let bytes = value.as_bytes();
    let kept = &bytes[..bytes.len().min(VALUE_BYTES_MAX)];
    match std::str::from_utf8(kept) {
        // Nearly always: hyper lets no control character but the tab through.
        Ok(text) if kept.is_ascii() => text.replace('\t', " "),
        _ => kept.iter().map(|&byte| printable_char(byte)).collect(),
    }
}

fn printable_char(byte: u8) -> char {
    match byte {
        b' '..=b'~' => char::from(byte),
        b'\t' => ' ',
        _ => char::REPLACEMENT_CHARACTER,
    }
}

/// Whether two ways of counting the body were announced at once. RFC 9112 says which one holds, but
/// a sender that contradicts itself does not get a second request on the connection.
pub(crate) fn has_ambiguous_framing(headers: &HeaderMap) -> bool {
    let lengths = headers.get_all(CONTENT_LENGTH).iter().count();
    let has_transfer_coding = headers.contains_key(TRANSFER_ENCODING);
    lengths > 1 || lengths > 0 && has_transfer_coding
}

/// What tells where a body of HTTP/1.1 ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// Its length or its chunks, as hyper reads them.
    Framed,
    /// A length that hyper does not see, because of a `Transfer-Encoding` that means nothing.
    Length(u64),
    /// The end of the connection.
    Close,
}

impl BodyEnd {
    pub(crate) fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        // Nothing can be cut off that is not there.
        if has_no_body(status) {
            return Self::Framed;
        }
        let mut transfer_codings = words(headers, &TRANSFER_ENCODING).peekable();
        let has_transfer_coding = transfer_codings.peek().is_some();
        if transfer_codings.any(|word| word != "identity") {
            return Self::Framed;
        }
        let length = headers.get(CONTENT_LENGTH);
        match length.and_then(|length| length.to_str().ok()?.trim().parse().ok()) {
            Some(length) if has_transfer_coding => Self::Length(length),
            None if length.is_none() || has_transfer_coding => Self::Close,
            Some(_) | None => Self::Framed,
        }
    }
}

/// RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5.
fn has_no_body(status: StatusCode) -> bool {
    use StatusCode as Status;
    matches!(status, Status::NO_CONTENT | Status::RESET_CONTENT | Status::NOT_MODIFIED)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(locations: &[&[u8]], expect: Result<&str, Reason>) {
        let url = PageUrl::parse("http://a.org/x/y").unwrap();
        let mut headers = HeaderMap::new();
        for location in locations {
            headers.append(LOCATION, HeaderValue::from_bytes(location).unwrap());
        }
        let outcome = redirect(&url, StatusCode::FOUND, &headers).unwrap();
        let to = outcome.map(|outcome| match outcome {
            FetchOutcome::Redirected { status: 302, to } => to.to_string(),
            other => panic!("{other:?}"),
        });
        assert_eq!(to.as_deref().map_err(|failure| failure.why), expect);
    }

    #[test]
    fn targets_are_resolved() {
        check(&[b"z"], Ok("http://a.org/x/z"));
        check(&[b"//b.org/#f"], Ok("http://b.org/"));
        check(&[b"https://a.org/x/y"], Ok("https://a.org/x/y"));
        check(&["/é".as_bytes()], Ok("http://a.org/%C3%A9"));
        check(&[b"/z", b"/z"], Ok("http://a.org/z"));
        // Latin-1 and other bytes that are no UTF-8 go back to the server as they came.
        check(&[b"/caf\xe9 x?q=\xfc%20"], Ok("http://a.org/caf%E9%20x?q=%FC%20"));
    }

    #[test]
    fn unusable_targets() {
        // R4, U14.
        const BAD: Result<&str, Reason> = Err(Reason::BadRedirect);
        check(&[], BAD);
        check(&[b""], BAD);
        check(&[b"#x"], BAD);
        check(&[b"/y", b"/z"], BAD);
        check(&[b"http://"], BAD);
        check(&[b"http://caf\xe9.test/"], BAD);
        check(&[b"mailto:a@b.org"], BAD);
    }

    #[test]
    fn an_endless_target_is_too_long() {
        // R3, U2.
        check(&["z".repeat(5000).as_bytes()], Err(Reason::UrlTooLong));
    }

    #[test]
    fn other_statuses_are_no_redirects() {
        let url = PageUrl::parse("http://a.org/").unwrap();
        for status in [200, 300, 304, 305, 404, 999] {
            let status = StatusCode::from_u16(status).unwrap();
            assert!(redirect(&url, status, &HeaderMap::new()).is_none());
        }
    }

    #[test]
    fn kept_values_are_printable_and_short() {
        let mut headers = HeaderMap::new();
        headers.insert("x-a", HeaderValue::from_bytes(b"a\xffb\tc").unwrap());
        headers.insert("etag", HeaderValue::from_str(&"e".repeat(60_000)).unwrap());
        let kept = kept_headers(&headers).unwrap();
        assert_eq!(kept[0], ("x-a".to_owned(), "a\u{fffd}b c".to_owned()));
        assert_eq!(kept[1].1.len(), VALUE_BYTES_MAX);
    }

    #[test]
    fn an_endless_content_type_is_no_content_type() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_str(&"t".repeat(60_000)).unwrap());
        assert_eq!(kept_headers(&headers).unwrap_err().why, Reason::HeaderTooLarge);
    }
}
