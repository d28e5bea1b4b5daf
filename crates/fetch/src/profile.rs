//! [`FetchProfile`]: how a crawl asks, checked and compiled once, before its first request.

use std::time::Duration;

use http::header::{self, HeaderName, HeaderValue};
use telusur_model::{FetchRules, PageUrl};

use crate::guard::{AddressGuard, GuardError};

/// How a crawl asks: the same for all its visits.
///
/// Whatever the user wrote has been checked here, so that no later step can fail on it: a header
/// value in a profile has no line break, an address rule in it is a rule.
#[derive(Clone, Debug)]
pub struct FetchProfile {
    pub(crate) user_agent: HeaderValue,
    pub(crate) timeout: Duration,
    pub(crate) body_bytes_max: u64,
    pub(crate) guard: AddressGuard,
    headers: Vec<(HeaderName, HeaderValue)>,
    header_origins: Vec<String>,
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
    header::UPGRADE,
    header::USER_AGENT,
];

impl FetchProfile {
    /// The profile of a crawl: its rules, the decoded bytes of a body that are read, and the origins
    /// (`https://example.org`) that get the extra headers.
    pub fn new(
        rules: &FetchRules,
        body_bytes_max: u64,
        header_origins: Vec<String>,
    ) -> Result<Self, ProfileError> {
        let user_agent = HeaderValue::from_str(&rules.user_agent)
            .map_err(|_| ProfileError::UserAgent(rules.user_agent.clone()))?;
        let headers = rules
            .headers
            .iter()
            .map(|(name, value)| extra_header(name, value))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            user_agent,
            timeout: Duration::from_millis(rules.timeout_ms).min(TIMEOUT_MAX),
            body_bytes_max,
            guard: AddressGuard::new(&rules.allow_private)?,
            headers,
            header_origins,
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

    /// The extra headers that this URL's origin gets.
    pub(crate) fn headers_for(&self, url: &PageUrl) -> &[(HeaderName, HeaderValue)] {
        if self.headers.is_empty() || !self.header_origins.contains(&url.origin()) {
            return &[];
        }
        &self.headers
    }
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
        let headers_for = |url| profile.headers_for(&PageUrl::parse(url).unwrap()).len();
        assert_eq!(headers_for("https://a.org/x"), 1);
        assert_eq!(headers_for("http://a.org/x"), 0);
        assert_eq!(headers_for("https://a.org:8443/x"), 0);
        assert_eq!(headers_for("https://b.org/x"), 0);
    }
}
