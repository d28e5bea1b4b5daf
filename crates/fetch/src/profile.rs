//! [`FetchProfile`]: how a crawl asks, checked and compiled once, before its first request.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use telusur_model::{
    BasicAuth, FetchRules, Host, HttpVersion, PageUrl, Timestamp, origin_of, split_origin,
};

use crate::basic::basic_authorization;
use crate::cookies::CookieJar;
use crate::guard::{AddressGuard, GuardError};
use crate::proxy::Proxy;

/// How a crawl asks: the same for all its visits.
///
/// All input of the user has been checked here, so that no later step can fail on it: a header
/// value in a profile has no line break, an address rule in it is a rule.
#[derive(Clone, Debug)]
pub struct FetchProfile {
    pub(crate) user_agent: HeaderValue,
    pub(crate) timeout: Duration,
    pub(crate) body_bytes_max: u64,
    pub(crate) guard: AddressGuard,
    pub(crate) http: HttpVersion,
    pub(crate) proxy: Option<Arc<Proxy>>,
    insecure_hosts: Vec<Host>,
    /// What is sent to one origin each, the passwords of `basic_auth` among it.
    headers: Vec<BoundHeader>,
    learns_cookies: bool,
    /// Shared by all copies of the profile. Held to read or change it, never while waiting.
    cookies: Arc<Mutex<CookieJar>>,
}

/// A header that goes to one origin.
#[derive(Clone, Debug)]
struct BoundHeader {
    /// As [`PageUrl::origin`] writes it.
    origin: String,
    name: HeaderName,
    value: HeaderValue,
}

/// Why the user's rules cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// An `--allow-private` entry is no address rule.
    #[error(transparent)]
    AllowPrivate(#[from] GuardError),
    /// The user agent cannot stand in a header.
    #[error("the user agent {0:?} holds characters that cannot stand in a header")]
    UserAgent(String),
    /// An extra header is not valid. Its value may be a secret and is not repeated.
    #[error("the header {0:?} has a name or value with characters that cannot stand in a header")]
    Header(String),
    /// An extra header would break the conversation.
    #[error("the header {0:?} is set by the fetcher itself; leave it out")]
    ReservedHeader(String),
    /// An `--insecure-host` entry is not one host.
    #[error("{0:?} is not the name of one host; write it without scheme, port or pattern")]
    InsecureHost(String),
    /// The proxy is not one that we can use. Its address may hold a password and is not repeated.
    #[error(
        "the proxy must be http://host:port or socks5://host:port, with user:password@ if needed"
    )]
    Proxy,
    /// A password is for a host that the crawl does not start from.
    #[error("no start URL is at {0:?}, so its password would never be sent")]
    BasicAuth(String),
    /// The operator's cookies cannot be read. They are secrets and not repeated.
    #[error("line {0} of the cookies is no cookie: seven fields with tabs between them")]
    Cookies(usize),
}

/// A visit that may take longer than this may take for ever, and far beyond it clocks overflow.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Headers on which the framing of messages depends: a second opinion on them is how requests are
/// smuggled.
const RESERVED_HEADERS: &[HeaderName] = &[
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::RANGE,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    // Meant for the proxy; given here it would go to the site.
    header::PROXY_AUTHORIZATION,
    header::UPGRADE,
    header::USER_AGENT,
];

impl FetchProfile {
    /// The profile of a crawl: its rules, the decoded bytes of a body that are read, and the origins
    /// (`https://example.org`) that get the extra headers which name no origin themselves.
    pub fn new(
        rules: &FetchRules,
        body_bytes_max: u64,
        header_origins: Vec<String>,
    ) -> Result<Self, ProfileError> {
        let user_agent = HeaderValue::from_str(&rules.user_agent)
            .map_err(|_| ProfileError::UserAgent(rules.user_agent.clone()))?;
        let mut headers = Vec::new();
        for (name, value) in &rules.headers {
            let (own_origin, name) = split_origin(name);
            let (name, value) = extra_header(name, value)?;
            let origins = own_origin.as_ref().map_or(&header_origins[..], std::slice::from_ref);
            headers.extend(origins.iter().map(|origin| BoundHeader {
                origin: origin.clone(),
                name: name.clone(),
                value: value.clone(),
            }));
        }
        for auth in &rules.basic_auth {
            headers.extend(password_headers(auth, &header_origins)?);
        }
        let proxy = rules.proxy.as_ref().map(|text| Proxy::parse(text.reveal()));
        let insecure_hosts = rules.insecure_hosts.iter().map(one_host).collect::<Result<_, _>>()?;
        let cookies_txt = rules.cookies_txt.as_ref().map_or("", |text| text.reveal());
        let cookies = CookieJar::from_cookies_txt(cookies_txt).map_err(ProfileError::Cookies)?;
        Ok(Self {
            user_agent,
            timeout: Duration::from_millis(rules.timeout_ms).min(TIMEOUT_MAX),
            body_bytes_max,
            guard: AddressGuard::new(&rules.allow_private)?,
            http: rules.http,
            proxy: proxy.map(|proxy| proxy.ok_or(ProfileError::Proxy)).transpose()?.map(Arc::new),
            insecure_hosts,
            headers,
            learns_cookies: rules.cookies,
            cookies: Arc::new(Mutex::new(cookies)),
        })
    }

    /// The `User-Agent` header.
    pub fn user_agent(&self) -> &str {
        self.user_agent.to_str().unwrap_or_default()
    }

    /// Longest that one visit may take, in milliseconds.
    pub fn timeout_ms(&self) -> u64 {
        u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX)
    }

    /// Decoded bytes of a body that are read.
    pub fn body_bytes_max(&self) -> u64 {
        self.body_bytes_max
    }

    /// The same profile with another limit on bodies, for files such as robots.txt.
    pub fn with_body_bytes_max(&self, body_bytes_max: u64) -> Self {
        Self { body_bytes_max, ..self.clone() }
    }

    /// The same profile with less time for a visit.
    pub fn with_timeout_max(&self, timeout_max: Duration) -> Self {
        Self { timeout: self.timeout.min(timeout_max), ..self.clone() }
    }

    /// Whether the certificate of this URL's host is verified.
    pub(crate) fn is_verified(&self, url: &PageUrl) -> bool {
        !self.insecure_hosts.iter().any(|host| host.as_str() == url.host_str())
    }

    /// The `Cookie` header of a request to this URL.
    pub(crate) fn cookies_for(&self, url: &PageUrl, now: Timestamp) -> Option<HeaderValue> {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner).header_for(url, now)
    }

    /// Takes in the cookies that an answer sets, if this crawl wants them.
    pub(crate) fn learn_cookies(&self, url: &PageUrl, answer: &HeaderMap, now: Timestamp) {
        if self.learns_cookies && answer.contains_key(header::SET_COOKIE) {
            let mut cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
            cookies.learn(url, answer, now);
        }
    }

    /// The extra headers that this URL's origin gets.
    pub(crate) fn headers_for(
        &self,
        url: &PageUrl,
    ) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        let origin = if self.headers.is_empty() { String::new() } else { url.origin() };
        let bound = self.headers.iter().filter(move |header| header.origin == origin);
        bound.map(|header| (&header.name, &header.value))
    }
}

/// The origins of a password: the one that it names; else those of the seeds that are at its host, so
/// that neither another port nor the same host in clear gets it.
fn password_headers(
    auth: &BasicAuth,
    seed_origins: &[String],
) -> Result<Vec<BoundHeader>, ProfileError> {
    let is_at_host = |origin: &&String| {
        let url = PageUrl::parse(origin).ok();
        url.is_some_and(|url| {
            let host = url.host_str();
            auth.host.eq_ignore_ascii_case(host)
                || auth.host.eq_ignore_ascii_case(&format!("{host}:{}", url.port()))
        })
    };
    let value = basic_authorization(&auth.user, auth.password.reveal());
    if let Some(origin) = origin_of(&auth.host) {
        return Ok(vec![BoundHeader { origin, name: header::AUTHORIZATION, value }]);
    }
    let bound = seed_origins.iter().filter(is_at_host).map(|origin| BoundHeader {
        origin: origin.clone(),
        name: header::AUTHORIZATION,
        value: value.clone(),
    });
    let bound: Vec<_> = bound.collect();
    if bound.is_empty() {
        return Err(ProfileError::BasicAuth(auth.host.clone()));
    }
    Ok(bound)
}

/// A host as it is spelled in URLs.
fn one_host(host: &Host) -> Result<Host, ProfileError> {
    let text = host.as_str();
    let refused = || ProfileError::InsecureHost(text.to_owned());
    let url = PageUrl::parse(&format!("https://{text}/")).map_err(|_| refused())?;
    let has_port = url.authority() != url.host_str() || text.ends_with(":443");
    if has_port || url.path() != "/" || text.contains(['*', '/', '\\', '@', '#', '?']) {
        return Err(refused());
    }
    Ok(url.host())
}

fn extra_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ProfileError> {
    let bad = || ProfileError::Header(name.to_owned());
    let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
    if RESERVED_HEADERS.contains(&known) {
        return Err(ProfileError::ReservedHeader(name.to_owned()));
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
    value.set_sensitive(true);
    Ok((known, value))
}

#[cfg(test)]
mod tests {
    use telusur_model::Secret;

    use super::*;

    fn profile(headers: &[(&str, &str)]) -> Result<FetchProfile, ProfileError> {
        let headers = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let rules = FetchRules { headers: headers.collect(), ..FetchRules::default() };
        FetchProfile::new(&rules, 1 << 20, vec!["https://a.org".to_owned()])
    }

    #[test]
    fn line_breaks_are_refused() {
        assert!(matches!(profile(&[("X-A", "1\r\nX-B: 2")]), Err(ProfileError::Header(_))));
        assert!(matches!(profile(&[("X-A\r\nX-B", "1")]), Err(ProfileError::Header(_))));
        let rules = FetchRules { user_agent: "a\nb".to_owned(), ..FetchRules::default() };
        let refused = FetchProfile::new(&rules, 0, Vec::new());
        assert!(matches!(refused, Err(ProfileError::UserAgent(_))));
    }

    #[test]
    fn framing_headers_are_refused() {
        assert!(matches!(profile(&[("host", "b.org")]), Err(ProfileError::ReservedHeader(_))));
    }

    #[test]
    fn secrets_are_not_repeated_in_messages() {
        let error = profile(&[("Authorization", "Bearer s3cret\n")]).unwrap_err();
        assert!(!error.to_string().contains("s3cret"));
    }

    #[test]
    fn extra_headers_go_to_their_origins_only() {
        let profile = profile(&[("Authorization", "Bearer s3cret")]).unwrap();
        let headers_for = |url| profile.headers_for(&PageUrl::parse(url).unwrap()).count();
        assert_eq!(headers_for("https://a.org/x"), 1);
        assert_eq!(headers_for("http://a.org/x"), 0);
        assert_eq!(headers_for("https://a.org:8443/x"), 0);
        assert_eq!(headers_for("https://b.org/x"), 0);
    }
    fn with_password(host: &str, origins: &[&str]) -> Result<FetchProfile, ProfileError> {
        let (user, password) = ("me".to_owned(), Secret::new("s3cret"));
        let basic_auth = vec![BasicAuth { host: host.to_owned(), user, password }];
        let rules = FetchRules { basic_auth, ..FetchRules::default() };
        FetchProfile::new(&rules, 0, origins.iter().map(|&origin| origin.to_owned()).collect())
    }

    #[test]
    fn a_password_goes_to_its_origin_only() {
        // R5, G8.
        let profile = with_password("A.org", &["https://a.org", "https://b.org"]).unwrap();
        let sent = |url| profile.headers_for(&PageUrl::parse(url).unwrap()).count();
        assert_eq!(sent("https://a.org/x"), 1);
        for url in ["http://a.org/", "https://a.org:8443/", "https://b.org/", "https://www.a.org/"]
        {
            assert_eq!(sent(url), 0, "{url}");
        }
        assert!(!format!("{profile:?}").contains("s3cret"));
    }

    #[test]
    fn a_password_can_be_for_one_port() {
        let origins = ["http://a.org:8080", "http://a.org"];
        let profile = with_password("a.org:8080", &origins).unwrap();
        let sent = |url| profile.headers_for(&PageUrl::parse(url).unwrap()).count();
        assert_eq!((sent("http://a.org:8080/"), sent("http://a.org/")), (1, 0));
        let nowhere = with_password("a.org:81", &origins).unwrap_err();
        assert_eq!(nowhere, ProfileError::BasicAuth("a.org:81".to_owned()));
    }

    #[test]
    fn a_secret_that_names_its_origin_goes_nowhere_else() {
        let profile = profile(&[("https://b.org:8443=Authorization", "Bearer s3cret")]).unwrap();
        let headers_for = |url| profile.headers_for(&PageUrl::parse(url).unwrap()).count();
        assert_eq!(headers_for("https://b.org:8443/x"), 1);
        for url in ["https://a.org/", "https://b.org/", "http://b.org:8443/"] {
            assert_eq!(headers_for(url), 0, "{url}");
        }
        let profile = with_password("https://B.org", &["https://a.org"]).unwrap();
        let headers_for = |url| profile.headers_for(&PageUrl::parse(url).unwrap()).count();
        assert_eq!(headers_for("https://b.org/x"), 1);
        for url in ["https://a.org/", "http://b.org/", "https://b.org:8443/"] {
            assert_eq!(headers_for(url), 0, "{url}");
        }
    }

    #[test]
    fn an_insecure_host_is_one_host() {
        let insecure = |host: &str| {
            let insecure_hosts = vec![Host::new(host)];
            let rules = FetchRules { insecure_hosts, ..FetchRules::default() };
            FetchProfile::new(&rules, 0, Vec::new())
        };
        let profile = insecure("Self-Signed.example").unwrap();
        let is_verified = |url| profile.is_verified(&PageUrl::parse(url).unwrap());
        assert!(!is_verified("https://self-signed.example/"));
        assert!(is_verified("https://www.self-signed.example/"));
        for host in
            ["", "*", "*.example", "a.org:443", "a.org:8443", "https://a.org", "a/b", "me@a"]
        {
            let refused = insecure(host).unwrap_err();
            assert_eq!(refused, ProfileError::InsecureHost(host.to_owned()));
        }
    }

    #[test]
    fn a_bad_proxy_is_refused_without_its_password() {
        let proxy = Some(Secret::new("ftp://me:s3cret@proxy"));
        let refused =
            FetchProfile::new(&FetchRules { proxy, ..FetchRules::default() }, 0, Vec::new());
        assert!(!refused.unwrap_err().to_string().contains("s3cret"));
    }
}
