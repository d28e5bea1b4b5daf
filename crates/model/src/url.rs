//! [`PageUrl`]: an address that Telusur could ask for. Parsed once, at the edge.

mod plain;

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::{Position, Url};

use crate::{Host, Site};

/// Longest URL that is followed, in bytes. Common servers refuse requests of 8 KiB, and real links
/// beyond 4 KiB are nearly always a trap that grows its own address.
pub const URL_BYTES_MAX: usize = 4096;

/// An absolute http or https URL by the WHATWG standard, without fragment and without credentials.
///
/// It is the URL *as found*: this is what is requested. Whether two of them are the same page is
/// decided by their [`UrlKey`](crate::UrlKey).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageUrl {
    text: Box<str>,
    places: Places,
}

/// Where the parts of a URL begin and end, in bytes. The host begins behind the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Places {
    host_end: u16,
    path_start: u16,
    /// The place of the question mark, or the end.
    query_start: u16,
}

impl Places {
    /// `None` for places beyond any URL that is followed.
    fn new(host_end: usize, path_start: usize, query_start: usize) -> Option<Self> {
        Some(Self {
            host_end: host_end.try_into().ok()?,
            path_start: path_start.try_into().ok()?,
            query_start: query_start.try_into().ok()?,
        })
    }
}

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
        match plain::places(text) {
            Some(places) => Ok(Self { text: text.into(), places }),
            None => Self::from_url(Url::parse(text).map_err(bad)?),
        }
    }

    /// Resolves a link that was found on this page.
    pub fn join(&self, href: &str) -> Result<Self, UrlError> {
        check_length(href.len())?;
        if let Some(places) = plain::places(href) {
            return Ok(Self { text: href.into(), places });
        }
        if let Some(joined) = self.join_plain(href) {
            return Ok(joined);
        }
        let base = Url::parse(&self.text).map_err(bad)?;
        Self::from_url(join(&base, href).map_err(bad)?)
    }

    /// Resolves a link that was found on this page, whose query is written in the page's own charset
    /// (URL standard, "encoding-parse a URL"). `encode`: the bytes of a query in that charset; each
    /// character that it lacks stands there as `%26%23…%3B`.
    pub fn join_encoded(
        &self,
        href: &str,
        encode: &dyn Fn(&str) -> Cow<'_, [u8]>,
    ) -> Result<Self, UrlError> {
        // ASCII is the same in every charset that a link can be written in.
        if href.is_ascii() {
            return self.join(href);
        }
        check_length(href.len())?;
        let base = Url::parse(&self.text).map_err(bad)?;
        let options = Url::options().base_url(Some(&base)).encoding_override(Some(encode));
        Self::from_url(options.parse(&with_two_slashes(href)).map_err(bad)?)
    }

    /// Resolves a link to this host in which nothing is left to normalise but `../` in front; `None`
    /// if it is another one.
    fn join_plain(&self, href: &str) -> Option<Self> {
        let mut kept = usize::from(self.places.path_start);
        let mut rest = href;
        if href.starts_with('?') {
            kept = usize::from(self.places.query_start);
        } else if !href.starts_with('/') {
            let name = &href[..href.find(['/', '?']).unwrap_or(href.len())];
            if name.is_empty() || name.contains(':') {
                return None;
            }
            let mut directory = directory(self.path());
            loop {
                if let Some(above) = rest.strip_prefix("../") {
                    (directory, rest) = (parent(directory), above);
                } else if let Some(here) = rest.strip_prefix("./") {
                    rest = here;
                } else {
                    break;
                }
            }
            kept += directory.len();
        } else if href.starts_with("//") {
            return None;
        }
        let query_start = kept + plain::path_bytes(rest)?;
        let text = [&self.text[..kept], rest].concat();
        check_length(text.len()).ok()?;
        let Places { host_end, path_start, .. } = self.places;
        let places = Places::new(host_end.into(), path_start.into(), query_start)?;
        Some(Self { text: text.into(), places })
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
        let end = |position| url[..position].len();
        let places = Places::new(
            end(Position::AfterHost),
            end(Position::BeforePath),
            end(Position::AfterPath),
        );
        let places = places.ok_or(UrlError::TooLong(url.as_str().len()))?;
        Ok(Self { text: String::from(url).into(), places })
    }

    /// The whole address as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is https.
    pub fn is_secure(&self) -> bool {
        self.text.starts_with("https:")
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.is_secure() { "https" } else { "http" }
    }

    fn host_start(&self) -> usize {
        self.scheme().len() + "://".len()
    }

    /// Host and port, as they stand in the URL and in the field `Host` of a request.
    pub fn authority(&self) -> &str {
        &self.text[self.host_start()..usize::from(self.places.path_start)]
    }

    /// The host: the unit of politeness.
    pub fn host(&self) -> Host {
        Host::new(self.host_str())
    }

    /// The host's name or address as it stands in the URL (IPv6 in brackets).
    pub fn host_str(&self) -> &str {
        &self.text[self.host_start()..usize::from(self.places.host_end)]
    }

    /// The port that a request goes to.
    pub fn port(&self) -> u16 {
        let stands_there = &self.authority()[self.host_str().len()..];
        let default = if self.is_secure() { 443 } else { 80 };
        stands_there.strip_prefix(':').and_then(|port| port.parse().ok()).unwrap_or(default)
    }

    /// The site: the unit of fairness.
    pub fn site(&self) -> Site {
        Site::of_host(self.host_str())
    }

    /// Scheme, host and port, as `https://example.org` or `http://example.org:8080`: the unit of
    /// robots.txt.
    pub fn origin(&self) -> String {
        self.text[..usize::from(self.places.path_start)].to_owned()
    }

    /// The path, beginning with a slash.
    pub fn path(&self) -> &str {
        &self.text[usize::from(self.places.path_start)..usize::from(self.places.query_start)]
    }

    /// The query, without its question mark.
    pub fn query(&self) -> Option<&str> {
        self.text[usize::from(self.places.query_start)..].strip_prefix('?')
    }

    /// Path and query: what a request asks the host for.
    pub fn target(&self) -> &str {
        &self.text[usize::from(self.places.path_start)..]
    }
}

/// A path up to its last slash.
fn directory(path: &str) -> &str {
    &path[..path.rfind('/').map_or(0, |slash| slash + 1)]
}

/// The directory that holds a directory; the root holds itself.
fn parent(path: &str) -> &str {
    match directory(path.strip_suffix('/').unwrap_or(path)) {
        "" => path,
        above => above,
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
        /// Reads the text where it lies, without a copy of its own.
        struct UrlVisitor;

        impl Visitor<'_> for UrlVisitor {
            type Value = PageUrl;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a URL")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<PageUrl, E> {
                PageUrl::parse(text).map_err(E::custom)
            }
        }

        deserializer.deserialize_str(UrlVisitor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    /// Reads a URL by the url crate alone.
    fn read_slowly(text: &str) -> Result<PageUrl, UrlError> {
        PageUrl::from_url(Url::parse(text).map_err(bad)?)
    }

    fn join_slowly(base: &PageUrl, href: &str) -> Result<PageUrl, UrlError> {
        let base = Url::parse(base.as_str()).map_err(bad)?;
        PageUrl::from_url(join(&base, href).map_err(bad)?)
    }

    #[track_caller]
    fn is_plain(text: &str, expect: bool) {
        assert_eq!(plain::places(text).is_some(), expect, "{text}");
        assert_eq!(PageUrl::parse(text), read_slowly(text), "{text}");
    }

    #[test]
    fn usual_urls_are_plain() {
        is_plain("http://a.org/", true);
        is_plain("https://www.example.co.id/2024/05/a-page_1.html", true);
        is_plain("http://127.0.0.1:8080/p/7?x=1&y=%20z", true);
        is_plain("https://a.org/?q=a?b/./..", true);
        is_plain("https://a.org:8443/a;b=1/(c)/~d/e.f./%41%2F", true);
    }

    #[test]
    fn whatever_would_be_spelled_otherwise_is_not_plain() {
        for text in [
            "http://a.org",
            "HTTP://a.org/",
            "http://A.org/",
            "http://a.org:80/",
            "https://a.org:443/",
            "http://a.org:/",
            "http://a.org:080/",
            "http://a.org:99999/",
            "http://me@a.org/",
            "http://a..org/",
            "http://a.org./",
            "http://xn--a/",
            "http://xn--nxasmq6b/",
            "http://0x7f.1/",
            "http://127.1/",
            "http://127.0.0.01/",
            "http://a.1/",
            "http://[::1]/",
            "http://a.org/./b",
            "http://a.org/b/..",
            "http://a.org/.well-known/x",
            "http://a.org/b/%2E%2e/c",
            "http://a.org/a b",
            "http://a.org/\u{e9}",
            "http://a.org/a\\b",
            "http://a.org/?a'b",
            "http://a.org/?a\"b",
            "http://a.org/#x",
            "http://a.org/\t",
        ] {
            is_plain(text, false);
        }
    }

    #[test]
    fn parts_are_where_they_stand() {
        let url = PageUrl::parse("https://[::1]:8443/a/b?c=d").unwrap();
        assert_eq!((url.scheme(), url.is_secure()), ("https", true));
        assert_eq!((url.host_str(), url.port(), url.authority()), ("[::1]", 8443, "[::1]:8443"));
        assert_eq!((url.path(), url.query(), url.target()), ("/a/b", Some("c=d"), "/a/b?c=d"));
        assert_eq!(url.origin(), "https://[::1]:8443");
        let url = PageUrl::parse("http://a.org?").unwrap();
        assert_eq!((url.scheme(), url.port(), url.authority()), ("http", 80, "a.org"));
        assert_eq!((url.path(), url.query(), url.target()), ("/", Some(""), "/?"));
        assert_eq!(PageUrl::parse("http://a.org/").unwrap().query(), None);
    }

    /// Texts that are URLs, nearly URLs, and worse.
    fn address() -> impl Strategy<Value = String> {
        let scheme =
            prop::sample::select(vec!["http://", "https://", "http:", "HTTP://", "//", ""]);
        let host =
            "([a-cx0-9.%A-]{0,9}|127\\.0\\.0\\.[0-9]{1,3}|xn--[a-z0-9]{1,6}|a\\.org)(:[0-9]{0,5})?";
        let path = "(/[a-cA./%2eE \\\\'~?&=#@:;\\[\"\u{e9}-]{0,12})?";
        (scheme, host, path).prop_map(|(scheme, host, path)| format!("{scheme}{host}{path}"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// The short way is only a short way.
        #[test]
        fn plain_urls_are_read_as_the_standard_says(text in address(), base in address()) {
            prop_assert_eq!(PageUrl::parse(&text), read_slowly(&text));
            if let Ok(base) = PageUrl::parse(&base) {
                prop_assert_eq!(base.join(&text), join_slowly(&base, &text));
            }
        }

        #[test]
        fn paths_are_joined_as_the_standard_says(
            base in "/[a-c./]{0,8}[?a-c]{0,2}",
            href in "((\\.\\./|\\./){0,3}|/)[a-cA./%2eE?&=:]{0,8}",
        ) {
            let base = PageUrl::parse(&format!("https://a.org:8443{base}")).unwrap();
            prop_assert_eq!(base.join(&href), join_slowly(&base, &href));
        }
    }
}
