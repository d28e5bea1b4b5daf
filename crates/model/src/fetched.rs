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

    /// The media type without parameters, in lower case: `text/html`.
    pub fn content_type(&self) -> Option<String> {
        let value = self.header("content-type")?;
        let essence = value.split(';').next().unwrap_or_default().trim();
        (!essence.is_empty()).then(|| essence.to_ascii_lowercase())
    }
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
