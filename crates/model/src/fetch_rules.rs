//! [`FetchRules`]: how a crawl asks for pages. May hold secrets, which no message repeats.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::words;
use crate::{Host, PageUrl};

/// How pages are asked for.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchRules {
    /// The `User-Agent` header.
    pub user_agent: String,
    /// Longest that one visit may take, in milliseconds.
    pub timeout_ms: u64,
    /// Redirects followed one after the other.
    pub redirects_max: u8,
    /// Addresses that are not public and may be asked all the same: `10.1.2.0/24`, `host:port`.
    pub allow_private: Vec<String>,
    /// Extra headers, sent to the seeds' own origins only. A name that begins with an origin,
    /// `https://example.org=Authorization`, goes to that origin and to no other.
    pub headers: Vec<(String, String)>,
    /// Which versions of HTTP are spoken.
    #[serde(default)]
    pub http: HttpVersion,
    /// Hosts whose TLS certificates are not verified. Exactly these, never a pattern.
    #[serde(default)]
    pub insecure_hosts: Vec<Host>,
    /// The proxy through which all is asked: `http://user:password@host:port` or `socks5://…`.
    #[serde(default)]
    pub proxy: Option<Secret>,
    /// Who we are to hosts that ask for a password.
    #[serde(default)]
    pub basic_auth: Vec<BasicAuth>,
    /// Whether cookies that a site sets are sent back to it.
    #[serde(default = "yes")]
    pub cookies: bool,
    /// Cookies to begin with: the text of a `cookies.txt` file.
    #[serde(default)]
    pub cookies_txt: Option<Secret>,
}

impl Default for FetchRules {
    fn default() -> Self {
        Self {
            user_agent: concat!("Telusur/", env!("CARGO_PKG_VERSION")).to_owned(),
            timeout_ms: 30_000,
            redirects_max: 10,
            allow_private: Vec::new(),
            headers: Vec::new(),
            http: HttpVersion::Auto,
            insecure_hosts: Vec::new(),
            proxy: None,
            basic_auth: Vec::new(),
            cookies: true,
            cookies_txt: None,
        }
    }
}

fn yes() -> bool {
    true
}

impl FetchRules {
    /// The same rules with everything hidden that could be a secret, to be shown to people.
    pub fn without_secrets(&self) -> Self {
        let mut rules = self.clone();
        for (_, value) in &mut rules.headers {
            *value = Secret::MASK.to_owned();
        }
        for auth in &mut rules.basic_auth {
            auth.password = Secret::masked();
        }
        for secret in rules.proxy.iter_mut().chain(&mut rules.cookies_txt) {
            *secret = Secret::masked();
        }
        rules
    }
}

/// A secret that names no origin: it would go to whatever URL somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnboundSecret {
    /// A header.
    Header {
        /// Its name. The value is the secret.
        name: String,
    },
    /// A login.
    Login {
        /// `example.org`, or `example.org:8080`.
        host: String,
        /// The user.
        user: String,
    },
}

impl UnboundSecret {
    /// The line of the settings that binds it.
    pub fn bound_line(&self) -> String {
        match self {
            Self::Header { name } => format!("headers = [\"https://HOST={name}: …\"]"),
            Self::Login { host, user } => {
                format!("basic_auth = [\"https://{host}={user}:env:VARIABLE\"]")
            }
        }
    }
}

impl fmt::Display for UnboundSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header { name } => write!(f, "the header {name:?} may hold a secret"),
            Self::Login { host, user } => {
                write!(f, "the login of {user:?} at {host:?} holds a secret")
            }
        }
    }
}

impl FetchRules {
    /// Logins and headers that name no origin, except for headers that are known to be no secrets. A
    /// service that asks on behalf of others must have none of them: the others choose where the
    /// requests go.
    pub fn unbound_secrets(&self) -> Vec<UnboundSecret> {
        let is_unbound = |name: &str| split_origin(name).0.is_none() && may_be_secret(name);
        let headers = self.headers.iter().filter(|(name, _)| is_unbound(name));
        let headers = headers.map(|(name, _)| UnboundSecret::Header { name: name.clone() });
        let logins = self.basic_auth.iter().filter(|auth| origin_of(&auth.host).is_none());
        let logins = logins
            .map(|auth| UnboundSecret::Login { host: auth.host.clone(), user: auth.user.clone() });
        headers.chain(logins).collect()
    }
}

/// The origin that a header is bound to, and the header's own name: `https://example.org=Authorization`.
pub fn split_origin(name: &str) -> (Option<String>, &str) {
    match name.split_once('=').and_then(|(origin, rest)| Some((origin_of(origin)?, rest))) {
        Some((origin, rest)) => (Some(origin), rest),
        None => (None, name),
    }
}

/// The origin that a text names, as [`PageUrl::origin`] writes it: scheme, host and port, nothing else.
pub fn origin_of(text: &str) -> Option<String> {
    let (scheme, authority) = text.split_once("://")?;
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    if authority.is_empty() || authority.contains(['/', '\\', '@', '?', '#', '*']) {
        return None;
    }
    Some(PageUrl::parse(&format!("{scheme}://{authority}/")).ok()?.origin())
}

/// Why a header cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// The name is none.
    #[error("this is not the name of a header")]
    Name,
    /// The value holds a character that a header cannot carry.
    #[error("the value holds a character that a header cannot carry")]
    Value,
    /// It says where a message ends or to whom it goes.
    #[error("this header is set by Telusur itself")]
    Own,
}

/// Checks a header that a user wants to be sent. `name` is its own name, without an origin.
pub fn check_header(name: &str, value: &str) -> Result<(), HeaderFault> {
    /// These decide where a message ends and to whom it goes.
    const OWN: [&str; 5] =
        ["host", "content-length", "transfer-encoding", "connection", "accept-encoding"];
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(HeaderFault::Name);
    }
    if !is_header_text(value) {
        return Err(HeaderFault::Value);
    }
    if OWN.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(HeaderFault::Own);
    }
    Ok(())
}

/// Whether a header can carry a text. A line break would let a value forge a header; beyond ASCII, servers read
/// what they like.
pub fn is_header_text(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'\t' || byte == b' ' || byte.is_ascii_graphic())
}

/// Headers that say how to answer, or who asks, and never prove anything. Any other name may stand for a
/// secret: sites choose the names of the headers that let somebody in, and no list of those is complete.
const HARMLESS_NAMES: &[&str] = &[
    "accept",
    "accept-charset",
    "accept-datetime",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "dnt",
    "from",
    "pragma",
    "prefer",
    "priority",
    "referer",
    "save-data",
    "te",
    "upgrade-insecure-requests",
    "user-agent",
    "x-requested-with",
];
/// The same for families of headers that browsers set by themselves: `Sec-Fetch-Mode`, `Sec-CH-UA`.
const HARMLESS_PREFIXES: &[&str] = &["sec-fetch-", "sec-ch-", "sec-gpc"];

fn may_be_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !HARMLESS_NAMES.contains(&name.as_str())
        && !HARMLESS_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

impl fmt::Debug for FetchRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header_names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("FetchRules")
            .field("user_agent", &self.user_agent)
            .field("timeout_ms", &self.timeout_ms)
            .field("redirects_max", &self.redirects_max)
            .field("allow_private", &self.allow_private)
            .field("headers", &header_names)
            .field("http", &self.http)
            .field("insecure_hosts", &self.insecure_hosts)
            .field("proxy", &self.proxy)
            .field("basic_auth", &self.basic_auth)
            .field("cookies", &self.cookies)
            .field("cookies_txt", &self.cookies_txt)
            .finish()
    }
}

/// Which versions of HTTP are spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HttpVersion {
    /// HTTP/2 with servers that choose it, HTTP/1.1 with all others.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// HTTP/1.1 only.
    #[serde(rename = "1")]
    One,
    /// HTTP/2 only. It needs TLS: sites in clear are asked in HTTP/1.1.
    #[serde(rename = "2")]
    Two,
}

words! { HttpVersion { Auto = "auto", One = "1", Two = "2" } }

/// A user name and password for one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BasicAuth {
    /// `example.org`, or `example.org:8080` for one port only. Of this host, only the origins (scheme,
    /// host and port) of seeds get the password. An origin, `https://example.org`, gets it whatever the
    /// seeds are, and nobody else does.
    pub host: String,
    /// The user.
    pub user: String,
    /// The password.
    pub password: Secret,
}

/// A text that is kept and sent, but shows up in no message.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    const MASK: &str = "***";

    /// A secret with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// What stands in its place when it is shown.
    pub fn masked() -> Self {
        Self::new(Self::MASK)
    }

    /// The text itself, for the one who sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secretive() -> FetchRules {
        FetchRules {
            headers: vec![("Authorization".to_owned(), "s3cret-a".to_owned())],
            proxy: Some(Secret::new("http://me:s3cret-b@proxy.example:3128")),
            basic_auth: vec![BasicAuth {
                host: "a.org".to_owned(),
                user: "me".to_owned(),
                password: Secret::new("s3cret-c"),
            }],
            cookies_txt: Some(Secret::new("s3cret-d")),
            ..FetchRules::default()
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let shown = format!("{:?} {:#?}", secretive(), secretive());
        assert!(shown.contains("Authorization") && !shown.contains("s3cret"), "{shown}");
        let shown = serde_json::to_string(&secretive().without_secrets()).unwrap();
        assert!(shown.contains("Authorization") && !shown.contains("s3cret"), "{shown}");
    }

    #[test]
    fn secrets_are_kept() {
        let kept = serde_json::to_string(&secretive()).unwrap();
        assert_eq!(serde_json::from_str::<FetchRules>(&kept).unwrap(), secretive());
    }

    #[track_caller]
    fn check_header(name: &str, is_refused: bool) {
        let headers = vec![(name.to_owned(), "hunter2".to_owned())];
        let unbound = FetchRules { headers, ..FetchRules::default() }.unbound_secrets();
        assert_eq!(!unbound.is_empty(), is_refused, "{name}");
    }

    #[test]
    fn headers_without_an_origin_are_found_unless_they_are_harmless() {
        for name in ["Authorization", "cookie", "X-API-Key", "X-Auth-Token", "X-Key", "X-Pass"] {
            check_header(name, true);
        }
        for name in ["X-Client-Key", "X-Login", "X-Mine", "Accept-Key", "Sec-Mine", "Range"] {
            check_header(name, true);
        }
        check_header("https://a.org=X-Key", false);
        check_header("ftp://a.org=X-Key", true);
        for name in ["Accept", "accept-language", "DNT", "Referer", "From", "Sec-Fetch-Mode"] {
            check_header(name, false);
        }
        let unbound = secretive().unbound_secrets();
        let lines: Vec<String> = unbound.iter().map(UnboundSecret::bound_line).collect();
        assert_eq!(
            lines,
            [
                "headers = [\"https://HOST=Authorization: …\"]",
                "basic_auth = [\"https://a.org=me:env:VARIABLE\"]"
            ]
        );
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        assert_eq!(origin_of("https://A.org").as_deref(), Some("https://a.org"));
        assert_eq!(origin_of("https://a.org:443/").as_deref(), Some("https://a.org"));
        assert_eq!(origin_of("http://a.org:8080").as_deref(), Some("http://a.org:8080"));
        for text in ["a.org", "https://", "https://a.org/x", "https://me@a.org", "ftp://a.org"] {
            assert_eq!(origin_of(text), None, "{text}");
        }
    }

    #[test]
    fn rules_of_older_crawls_are_read() {
        let older = r#"{"user_agent":"a","timeout_ms":1,"redirects_max":2,"allow_private":[],
                        "headers":[]}"#;
        let rules: FetchRules = serde_json::from_str(older).unwrap();
        assert_eq!((rules.http, rules.cookies, rules.proxy), (HttpVersion::Auto, true, None));
    }
}
