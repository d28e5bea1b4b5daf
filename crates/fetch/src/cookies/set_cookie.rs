//! [`SetCookie`]: what a `Set-Cookie` header says, and whether its sender may say it.

use telusur_model::{PageUrl, Timestamp};

use super::{Cookie, Reach};
use crate::http_date;

/// Longest `Set-Cookie` that is read. Browsers keep 4 KiB, too.
const BYTES_MAX: usize = 4096;

/// A `Set-Cookie` header, read as RFC 6265, section 5.2, tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SetCookie<'a> {
    name: &'a str,
    value: &'a str,
    domain: Option<String>,
    path: Option<&'a str>,
    is_secure: bool,
    /// `Max-Age`, in seconds; negative and zero delete.
    age_seconds: Option<i64>,
    expires_at: Option<Timestamp>,
}

impl<'a> SetCookie<'a> {
    /// `None` for what is no cookie, is too long, or holds a byte that could mean something else to
    /// the server that reads our request.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let is_plain = bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
        if bytes.len() > BYTES_MAX || !is_plain {
            return None;
        }
        let mut parts = std::str::from_utf8(bytes).ok()?.split(';').map(str::trim);
        let (name, value) = parts.next()?.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || name.contains('\t') || value.contains('\t') {
            return None;
        }
        let mut set = Self { name, value, ..Self::default() };
        for attribute in parts {
            set.read_attribute(attribute);
        }
        Some(set)
    }

    fn read_attribute(&mut self, attribute: &'a str) {
        let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
        let value = value.trim();
        match name.trim().to_ascii_lowercase().as_str() {
            "domain" => {
                let domain = value.strip_prefix('.').unwrap_or(value);
                self.domain = (!domain.is_empty()).then(|| domain.to_ascii_lowercase());
            }
            "path" => self.path = value.starts_with('/').then_some(value),
            "secure" => self.is_secure = true,
            "max-age" => self.age_seconds = age_seconds(value).or(self.age_seconds),
            "expires" => self.expires_at = http_date::parse(value).or(self.expires_at),
            // HttpOnly and SameSite are about scripts and other people's pages: we run none, and
            // every request of ours is a visit to the page itself.
            _ => {}
        }
    }

    /// The cookie and the domain that it is for, if the sender of an answer to `url` may set it.
    pub(super) fn admit(&self, url: &PageUrl, now: Timestamp) -> Option<(String, Cookie)> {
        let host = url.host_str();
        let is_over_tls = url.is_secure();
        let domain = match &self.domain {
            Some(domain) if domain != host => Some(own_domain(domain, host)?),
            // For its own host only: no host below a public suffix or an address may share it.
            Some(domain) if is_address(domain) || is_public_suffix(domain) => None,
            domain => domain.as_deref(),
        };
        if self.is_secure && !is_over_tls || !self.keeps_promise_of_name() {
            return None;
        }
        let reach = Reach {
            includes_subdomains: domain.is_some(),
            scheme: Some(if is_over_tls { "https" } else { "http" }),
            port: if domain.is_some() { None } else { Some(url.port()) },
        };
        let cookie = Cookie {
            name: self.name.to_owned(),
            value: self.value.to_owned(),
            path: self.path.unwrap_or_else(|| default_path(url.path())).to_owned(),
            reach,
            expires_at: self.expires_at(now),
            used: 0,
        };
        Some((domain.unwrap_or(host).to_owned(), cookie))
    }

    /// RFC 6265bis, 4.1.3: a name that begins so is a promise about how the cookie was set.
    fn keeps_promise_of_name(&self) -> bool {
        let has_prefix = |prefix: &str| {
            self.name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        let is_of_host = self.is_secure && self.path == Some("/") && self.domain.is_none();
        (!has_prefix("__Secure-") || self.is_secure) && (!has_prefix("__Host-") || is_of_host)
    }

    /// `Max-Age` goes before `Expires`. A cookie without either stays for as long as the crawl.
    fn expires_at(&self, now: Timestamp) -> Option<Timestamp> {
        match self.age_seconds {
            Some(seconds) => {
                let ms = u64::try_from(seconds).unwrap_or(0).saturating_mul(1000);
                Some(Timestamp(now.0.saturating_add(ms)))
            }
            None => self.expires_at,
        }
    }
}

/// A number of seconds; one that is too large for its type is as good as for ever.
fn age_seconds(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(if text.starts_with('-') { i64::MIN } else { i64::MAX }))
}

/// The domain, if the host lies below it and it belongs to one owner.
fn own_domain<'d>(domain: &'d str, host: &str) -> Option<&'d str> {
    let is_below = host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    (is_below && !is_address(host) && !is_public_suffix(domain)).then_some(domain)
}

/// Whether strangers share this domain: `com`, `co.id`, `github.io`, and every name without a dot.
pub(super) fn is_public_suffix(domain: &str) -> bool {
    psl::domain_str(domain).is_none()
}

pub(super) fn is_address(host: &str) -> bool {
    host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok()
}

/// RFC 6265, 5.1.4: the directory of the page.
fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(end) => &path[..end],
    }
}
