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

    /// The media type: of several the last that is one, which keeps the charset of the first in a row of
    /// the same type (Fetch standard, "extract a MIME type"). `None` if what is said is no media type.
    pub fn media_type(&self) -> Option<MediaType> {
        let headers = self.headers.iter().filter(|(key, _)| key == "content-type");
        let types =
            headers.flat_map(|(_, value)| split_unquoted(value, ',')).filter_map(MediaType::parse);
        let mut last: Option<MediaType> = None;
        let mut carried = None;
        for mut found in types {
            if last.as_ref().is_none_or(|last| last.essence != found.essence) {
                carried.clone_from(&found.charset);
            } else if found.charset.is_none() {
                found.charset.clone_from(&carried);
            }
            last = Some(found);
        }
        last
    }

    /// The media type without parameters, in lower case: `text/html`.
    pub fn content_type(&self) -> Option<String> {
        self.media_type().map(|found| found.essence)
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

/// What a `Content-Type` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaType {
    /// Type and subtype, in lower case: `text/html`.
    pub essence: String,
    /// The label of the charset, as it came: `utf-8`. Not checked: it may not exist.
    pub charset: Option<String>,
}

impl MediaType {
    /// Reads one type with its parameters. `*/*` says nothing.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = split_unquoted(text, ';');
        let essence = parts.next().unwrap_or_default().trim();
        let (kind, subkind) = essence.split_once('/')?;
        if essence == "*/*" || !is_token(kind) || !is_token(subkind) {
            return None;
        }
        let charset = parts.find_map(|parameter| {
            let (name, label) = parameter.split_once('=')?;
            let label = label.trim().trim_matches(['"', '\'']);
            let is_charset = name.trim().eq_ignore_ascii_case("charset") && !label.is_empty();
            is_charset.then(|| label.to_owned())
        });
        Some(Self { essence: essence.to_ascii_lowercase(), charset })
    }
}

/// The parts between separators that stand outside of quotes. A quote that is never closed reaches to
/// the end.
fn split_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |char: char| {
        let was_escaped = std::mem::replace(&mut is_escaped, is_quoted && char == '\\');
        if was_escaped {
            is_escaped = false;
        } else if char == '"' {
            is_quoted = !is_quoted;
        }
        char == separator && !is_quoted
    })
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

/// What a visit shows about the network on this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkSign {
    /// It works: there was an answer. A machine that refuses the connection and a resolver that knows no
    /// such name are answers, too.
    Alive,
    /// Nothing: no answer came in time, and the fault may be on either side.
    Unknown,
    /// It does not work: there is no route, or no resolver.
    Down,
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
    /// What it shows about the network here.
    pub network: NetworkSign,
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
        assert_eq!(page(values).content_type().as_deref(), expect, "{values:?}");
    }

    fn page(values: &[&str]) -> RawPage {
        let header = |value: &&str| ("content-type".to_owned(), (*value).to_owned());
        RawPage {
            url: PageUrl::parse("http://a.org/").unwrap(),
            status: 200,
            headers: values.iter().map(header).collect(),
            body: Bytes::new(),
            truncated: false,
            wire_bytes: 0,
        }
    }

    #[track_caller]
    fn check_charset(values: &[&str], expect: Option<&str>) {
        let charset = page(values).media_type().and_then(|found| found.charset);
        assert_eq!(charset.as_deref(), expect, "{values:?}");
    }

    #[test]
    fn the_charset_is_that_of_the_last_media_type() {
        check_charset(&["text/html"], None);
        check_charset(&["text/html; charset=utf-8"], Some("utf-8"));
        check_charset(&["text/html;a=b; Charset = \"utf-8\";charset=x"], Some("utf-8"));
        check_charset(&["text/html;charset='latin1'"], Some("latin1"));
        check_charset(
            &["text/html; charset=iso-8859-1", "text/html; charset=utf-8"],
            Some("utf-8"),
        );
        check_charset(&["text/plain;charset=x, text/html"], None);
        check_charset(&["text/html;charset=x, text/html"], Some("x"));
        check_charset(&["text/html;charset=x", "TEXT/HTML;a=b", "*/*"], Some("x"));
        check_charset(&["text/html;charset=x, text/plain, text/html"], None);
        check_charset(&["text/html;charset=x, text/html;charset=y, text/html"], Some("x"));
        check_charset(&["text/html;charset=x, nonsense;charset=y"], Some("x"));
        check_charset(&["text/html;a=\"b;charset=x, text/plain;\\\";\";charset=y"], Some("y"));
        check_charset(&["charset=x"], None);
        check_charset(&["text/html;charset="], None);
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
