//! What came of asking: [`FetchOutcome`]. The web failing is data, not an error.

use std::net::IpAddr;

use bytes::Bytes;

use crate::{Moment, PageUrl, Reason};

/// What came over the wire for one visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawPage {
    /// The URL that was asked for.
    pub url: PageUrl,
    /// The HTTP status.
    pub status: u16,
    /// The headers in the order received, names in lower case, values as text (bytes that are not
    /// visible ASCII are replaced).
    pub headers: Vec<(String, String)>,
    /// The body, decoded from its content coding.
    pub body: Bytes,
    /// Whether the body was cut at the limit.
    pub truncated: bool,
    /// Bytes of the body as received, before decoding.
    pub wire_bytes: u64,
}

impl RawPage {
    /// The first header with this (lower case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The media type without parameters, in lower case: `text/html`. Of several the last that is one
    /// (Fetch standard, "extract a MIME type"); `None` if what is said is no media type.
    pub fn content_type(&self) -> Option<String> {
        self.list("content-type").filter_map(media_type).last()
    }

    /// Whether the server named a content coding that does not exist, such as a charset.
    pub fn has_unknown_coding(&self) -> bool {
        let mut words = self.list("content-encoding").map(|word| word.trim().to_ascii_lowercase());
        words.any(|word| !word.is_empty() && !is_content_coding(&word))
    }

    /// The parts of all headers with this (lower case) name.
    fn list(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.headers.iter().filter(move |(key, _)| key == name);
        values.flat_map(|(_, value)| value.split(','))
    }
}

/// The type and subtype of a `Content-Type`. `*/*` says nothing.
fn media_type(value: &str) -> Option<String> {
    let essence = value.split(';').next().unwrap_or_default().trim();
    let (kind, subkind) = essence.split_once('/')?;
    (essence != "*/*" && is_token(kind) && is_token(subkind)).then(|| essence.to_ascii_lowercase())
}

/// RFC 9110, section 5.6.2.
fn is_token(text: &str) -> bool {
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_byte)
}

/// Whether a (lower case) word is a content coding, known to us or not. The list is IANA's registry
/// of HTTP content codings.
pub fn is_content_coding(word: &str) -> bool {
    const REGISTERED: &[&str] = &[
        "aes128gcm",
        "br",
        "compress",
        "dcb",
        "dcz",
        "deflate",
        "exi",
        "gzip",
        "identity",
        "pack200-gzip",
        "x-compress",
        "x-gzip",
        "zstd",
    ];
    REGISTERED.contains(&word)
}

/// Whether a body holds control characters that no text has, in the part that the MIME Sniffing
/// standard reads. Two byte encodings are full of NULs, but announce themselves by a byte order mark.
pub fn looks_binary(body: &[u8]) -> bool {
    const SNIFFED_BYTES: usize = 1445;
    const BYTE_ORDER_MARKS: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe"];
    if BYTE_ORDER_MARKS.iter().any(|mark| body.starts_with(mark)) {
        return false;
    }
    body.iter()
        .take(SNIFFED_BYTES)
        .any(|byte| matches!(byte, 0..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f))
}

/// What a server said about the version of a page, handed back to it at the next visit, so that an
/// unchanged page need not be sent again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// The `ETag` header, as it came.
    pub etag: Option<String>,
    /// The `Last-Modified` header, as it came.
    pub last_modified: Option<String>,
}

impl Validators {
    /// What this answer says about its version.
    pub fn of(page: &RawPage) -> Self {
        let header = |name| page.header(name).map(str::to_owned);
        Self { etag: header("etag"), last_modified: header("last-modified") }
    }
}

/// What came of one visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchOutcome {
    /// The server answered with anything but a redirect: a page, or an error page.
    Page(RawPage),
    /// The server says that the page is as it was when we got the validators that we sent.
    NotModified,
    /// The server sends us elsewhere.
    Redirected {
        /// The redirecting status.
        status: u16,
        /// Where to.
        to: PageUrl,
    },
    /// We do not ask for it (address guard, port, scheme): no packet was sent.
    Refused {
        /// Why.
        why: Reason,
        /// What exactly, for people.
        detail: String,
    },
    /// The site or the network failed.
    Failed {
        /// Why.
        why: Reason,
        /// What exactly, for people.
        detail: String,
        /// Whether asking again makes sense.
        retry: Retry,
    },
}

/// Whether asking again makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It would fail again.
    Never,
    /// Later, with back-off.
    Later,
    /// The local machine was the cause (no file descriptors, no ports): later, and it does not
    /// count as an attempt.
    NotCounted,
}

/// One finished visit, with what the scheduler needs to know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// What came of it.
    pub outcome: FetchOutcome,
    /// When the request itself was sent (after name lookup and connecting); `None` if none was.
    pub requested_at: Option<Moment>,
    /// From the start of the visit to its end.
    pub took_ms: u64,
    /// The address that was asked.
    pub address: Option<IpAddr>,
    /// How long from now the server asked not to be asked again (`Retry-After`), an hour at most.
    pub retry_after_ms: Option<u64>,
}

impl Fetched {
    /// Size of the body that this visit holds in memory.
    pub fn body_bytes(&self) -> u64 {
        match &self.outcome {
            FetchOutcome::Page(page) => page.body.len() as u64,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[&str], expect: Option<&str>) {
        let header = |value: &&str| ("content-type".to_owned(), (*value).to_owned());
        let page = RawPage {
            url: PageUrl::parse("http://a.org/").unwrap(),
            status: 200,
            headers: values.iter().map(header).collect(),
            body: Bytes::new(),
            truncated: false,
            wire_bytes: 0,
        };
        assert_eq!(page.content_type().as_deref(), expect, "{values:?}");
    }

    #[test]
    fn the_last_media_type_that_is_one() {
        check(&[], None);
        check(&["Text/HTML; charset=utf-8"], Some("text/html"));
        check(&["text/html, text/html"], Some("text/html"));
        check(&["text/plain", "text/html;charset=x"], Some("text/html"));
        check(&["text/html, */*"], Some("text/html"));
        check(&["text/html,"], Some("text/html"));
        check(&["application/xhtml+xml, html"], Some("application/xhtml+xml"));
        for no_type in
            ["", "html", " text / html ", "text/", "/html", "text/html/x", ";;;=/", "*/*"]
        {
            check(&[no_type], None);
        }
    }
}
