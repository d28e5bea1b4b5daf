//! [`Reason`]: the one vocabulary for why a URL was not fetched, or why its fetch failed.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+) => {
        /// Why a URL was skipped, or why a fetch failed. The words are stable: they are stored,
        /// exported and shown.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[doc = $doc])+ $variant,)+ }

        impl Reason {
            /// Every reason there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The stable word, such as `timeout_connect`.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// One line for people.
            pub fn help(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii(),)+ }
            }

            /// The reason with this word.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

reasons! {
    /// no connection within the connect time limit
    TimeoutConnect = "timeout_connect",
    /// connected, but no answer began within the first-byte time limit
    TimeoutFirstByte = "timeout_first_byte",
    /// the answer began but did not end in time, or came too slowly
    TimeoutBody = "timeout_body",
    /// larger than the body limit
    TooLarge = "too_large",
    /// the header block is larger than its limit
    HeaderTooLarge = "header_too_large",
    /// the compressed body could not be decoded
    DecodeError = "decode_error",
    /// compressed in a way we do not know
    UnsupportedEncoding = "unsupported_encoding",
    /// not a kind of content that is read
    UnsupportedType = "unsupported_type",
    /// the server did not speak valid HTTP
    ProtocolError = "protocol_error",
    /// the server refused the connection
    Refused = "refused",
    /// the server cut the connection
    ConnectionReset = "connection_reset",
    /// the server closed the connection without an answer
    EmptyReply = "empty_reply",
    /// the answer ended before its announced end
    Truncated = "truncated",
    /// the TLS handshake failed
    TlsError = "tls_error",
    /// the proxy did not pass the request on
    ProxyError = "proxy_error",
    /// the name could not be resolved
    DnsError = "dns_error",
    /// not a public address, and not opened by --allow-private
    BlockedAddress = "blocked_address",
    /// not an http or https URL
    BlockedScheme = "blocked_scheme",
    /// a port that is not used for the web
    BlockedPort = "blocked_port",
    /// not a valid URL
    BadUrl = "bad_url",
    /// a redirect without a usable target
    BadRedirect = "bad_redirect",
    /// longer than the URL limit
    UrlTooLong = "url_too_long",
    /// the redirects lead in a circle
    RedirectLoop = "redirect_loop",
    /// more redirects than allowed
    TooManyRedirects = "too_many_redirects",
    /// robots.txt forbids it
    RobotsDisallowed = "robots_disallowed",
    /// robots.txt could not be read, so nothing is asked yet
    RobotsUnreachable = "robots_unreachable",
    /// a limit of the parser was hit: the pages of this host keep stopping it
    ParseLimit = "parse_limit",
    /// the page could not be parsed and is kept raw
    ParseFailed = "parse_failed",
    /// too many links away from the start
    DepthLimit = "depth_limit",
    /// the address looks like an endless maze
    TrapSuspected = "trap_suspected",
    /// the same page is known under another address
    Duplicate = "duplicate",
    /// the disk is full
    DiskFull = "disk_full",
    /// its stored body was damaged or lost: it is asked for again
    BodyLost = "body_lost",
    /// outside the crawl's scope
    OutOfScope = "out_of_scope",
    /// matches an --exclude pattern
    Excluded = "excluded",
    /// matches no --include pattern
    NotIncluded = "not_included",
    /// the host has used up its share of URLs
    HostBudget = "host_budget",
    /// the site has used up its share of URLs
    SiteBudget = "site_budget",
    /// the server answered with an error status
    HttpError = "http_error",
    /// the host asked us to wait for longer than the crawl has patience
    RetryAfter = "retry_after",
    /// answered like a page that does not exist
    SoftNotFound = "soft_404",
    /// the page asked not to follow this link
    Nofollow = "nofollow",
    /// the local machine could not open a connection
    LocalTrouble = "local_trouble",
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::from_word(&word)
            .ok_or_else(|| serde::de::Error::custom(format!("unknown reason {word:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_back_to_their_reason() {
        for &reason in Reason::ALL {
            assert_eq!(Reason::from_word(reason.word()), Some(reason));
            assert!(!reason.help().is_empty());
        }
    }
}
