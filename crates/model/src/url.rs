//! [`PageUrl`]: an address that Telusur could ask for. Parsed once, at the edge.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

use crate::{Host, Site};

/// Longest URL that is followed, in bytes. Common servers refuse requests of 8 KiB, and real links
/// beyond 4 KiB are nearly always a trap that grows its own address.
pub const URL_BYTES_MAX: usize = 4096;

/// An absolute http or https URL by the WHATWG standard, without fragment and without credentials.
///
/// It is the URL *as found*: this is what is requested. Whether two of them are the same page is
/// decided by their [`UrlKey`](crate::UrlKey).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageUrl(Url);

/// Why a text is not a [`PageUrl`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The text is no URL at all.
    #[error("{0}")]
    Bad(String),
    /// A URL of another kind: `mailto:`, `javascript:`, `ftp:` …
    #[error("the scheme {0:?} is not http or https")]
    Scheme(String),
    /// Longer than [`URL_BYTES_MAX`].
    #[error("the URL is {0} bytes long, {URL_BYTES_MAX} is the limit")]
    TooLong(usize),
}

impl PageUrl {
    /// Reads an absolute URL.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        check_length(text.len())?;
        Self::from_url(Url::parse(text).map_err(bad)?)
    }

    /// Resolves a link that was found on this page.
    pub fn join(&self, href: &str) -> Result<Self, UrlError> {
        check_length(href.len())?;
        Self::from_url(join(&self.0, href).map_err(bad)?)
    }

    fn from_url(mut url: Url) -> Result<Self, UrlError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlError::Scheme(url.scheme().to_owned()));
        }
        if url.fragment().is_some() {
            url.set_fragment(None);
        }
        if !url.username().is_empty() || url.password().is_some() {
            // A page must not make us log in somewhere: credentials come from the user alone.
            let _ = url.set_username("");
            let _ = url.set_password(None);
        }
        check_length(url.as_str().len())?;
        Ok(Self(url))
    }

    /// The whole address as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The parsed form, for the code that opens connections.
    pub fn as_url(&self) -> &Url {
        &self.0
    }

    /// The host: the unit of politeness.
    pub fn host(&self) -> Host {
        Host::new(self.host_str())
    }

    /// The host's name or address as it stands in the URL (IPv6 in brackets).
    pub fn host_str(&self) -> &str {
        self.0.host_str().expect("http and https URLs always have a host")
    }

    /// The port that a request goes to.
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().expect("http and https have default ports")
    }

    /// The site: the unit of fairness.
    pub fn site(&self) -> Site {
        Site::of_host(self.host_str())
    }

    /// Scheme, host and port, as `https://example.org` or `http://example.org:8080`: the unit of
    /// robots.txt.
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }

    /// The path, beginning with a slash.
    pub fn path(&self) -> &str {
        self.0.path()
    }
}

/// Resolves a link against a base of any scheme, as the URL standard says.
pub fn join(base: &Url, href: &str) -> Result<Url, url::ParseError> {
    match base.scheme() {
        "http" | "https" => base.join(&with_two_slashes(href)),
        _ => base.join(href),
    }
}

/// A link that begins with three or more slashes leads to another host, like one with two: that is
/// what the standard says of http, and what the url crate refuses (`///host/path` has an empty host).
fn with_two_slashes(href: &str) -> Cow<'_, str> {
    // Blanks around a link and line breaks inside do not count.
    let is_ignored = |c: char| c <= ' ';
    let rest = href.trim_start_matches(is_ignored);
    let is_slash = |c: char| matches!(c, '/' | '\\' | '\t' | '\n' | '\r');
    let path = rest.trim_start_matches(is_slash);
    let slashes = rest[..rest.len() - path.len()].matches(['/', '\\']).count();
    if slashes <= 2 { Cow::Borrowed(href) } else { Cow::Owned(format!("//{path}")) }
}

fn check_length(bytes: usize) -> Result<(), UrlError> {
    if bytes > URL_BYTES_MAX { Err(UrlError::TooLong(bytes)) } else { Ok(()) }
}

fn bad(error: url::ParseError) -> UrlError {
    UrlError::Bad(error.to_string())
}

impl fmt::Display for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageUrl({})", self.as_str())
    }
}

impl Serialize for PageUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for PageUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base: &str, href: &str, expect: &str) {
        assert_eq!(PageUrl::parse(base).unwrap().join(href).unwrap().to_string(), expect);
    }

    #[track_caller]
    fn refused(text: &str) -> UrlError {
        PageUrl::parse(text).unwrap_err()
    }

    #[test]
    fn fragment_is_dropped() {
        check("http://a.org/x", "y#z", "http://a.org/y");
    }

    #[test]
    fn relative_links() {
        check("http://a.org/x/y", "../z", "http://a.org/z");
        check("http://a.org/x/y", "?q=1", "http://a.org/x/y?q=1");
        check("https://a.org/x", "//b.org/", "https://b.org/");
        check("http://a.org/x", "  y\n", "http://a.org/y");
    }

    #[test]
    fn many_slashes_lead_to_another_host() {
        check("http://example.org/", "///test", "http://test/");
        check("http://example.org/", "///\\//\\//test", "http://test/");
        check("http://example.org/", " ///example.org/../../path", "http://example.org/path");
        check("http://example.org/x/", "/path", "http://example.org/path");
    }

    #[test]
    fn credentials_are_dropped() {
        check("http://a.org/", "http://me:secret@b.org/", "http://b.org/");
    }

    #[test]
    fn line_breaks_never_survive() {
        check("http://a.org/", "/a\r\nX-Injected: 1", "http://a.org/aX-Injected:%201");
        check("http://a.org/", "/a%0d%0aX: 1", "http://a.org/a%0d%0aX:%201");
    }

    #[test]
    fn every_spelling_of_an_address_is_the_address() {
        for text in
            ["2130706433", "0x7f.1", "017700000001", "①②⑦.⓪.⓪.①", "127。0。0。1", "%31%32%37.0.0.1"]
        {
            let url = PageUrl::parse(&format!("http://{text}/")).unwrap();
            assert_eq!(url.host_str(), "127.0.0.1", "{text}");
        }
    }

    #[test]
    fn other_schemes_are_refused() {
        for text in ["mailto:a@b.org", "javascript:alert(1)", "data:text/html,x", "ftp://a.org/"] {
            assert!(matches!(refused(text), UrlError::Scheme(_)), "{text}");
        }
    }

    #[test]
    fn no_url_at_all_is_refused() {
        for text in
            ["", " ", "#", "?", "http:", "http://", "://x", "🦀", "http://[::1", "http://h:99999/"]
        {
            assert!(matches!(refused(text), UrlError::Bad(_)), "{text:?}");
        }
    }

    #[test]
    fn endless_urls_are_refused() {
        let long = format!("http://a.org/{}", "x".repeat(URL_BYTES_MAX));
        assert_eq!(refused(&long), UrlError::TooLong(long.len()));
    }
}
