//! The cookies of one crawl: kept in memory only, bounded in every direction, and sent to no other
//! origin than the one that set them (`docs/decisions/0005`).
//!
//! A subset of RFC 6265, stricter where a crawler gains nothing by being lenient: a cookie goes back
//! only over the scheme that it came by and, unless it is for a whole domain, only to the port. So a
//! neighbour on another port, or an eavesdropper when a site falls back to clear text, gets none.

mod cookies_txt;
mod set_cookie;

use std::collections::HashMap;
use std::fmt;

use http::header::{HeaderMap, HeaderValue, SET_COOKIE};
use telusur_model::{PageUrl, Timestamp};

use self::set_cookie::SetCookie;

/// Cookies taken from one answer; what follows is passed over. The same as curl's.
const PER_ANSWER_MAX: usize = 50;
/// Cookies kept for one host or domain; the least used make room.
const PER_DOMAIN_MAX: usize = 50;
/// Cookies kept in one crawl: 8 MiB at 4 KiB each.
const COOKIES_MAX: usize = 2000;
/// Longest `Cookie` header that is sent. Common servers refuse a head of more than 8 KiB.
const SENT_BYTES_MAX: usize = 8190;

/// The cookies of one crawl.
#[derive(Default)]
pub(crate) struct CookieJar {
    /// By the host or domain that they are for.
    by_domain: HashMap<String, Vec<Cookie>>,
    cookies: usize,
    /// Counts up with every use, so that the smallest belongs to the least recently used.
    next_use: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cookie {
    name: String,
    value: String,
    path: String,
    reach: Reach,
    expires_at: Option<Timestamp>,
    used: u64,
}

/// Who gets a cookie, besides its domain and path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reach {
    /// Whether hosts below the domain get it too.
    includes_subdomains: bool,
    /// `None` sends it over both schemes: `cookies.txt` does not say by which one a cookie came.
    scheme: Option<&'static str>,
    port: Option<u16>,
}

impl CookieJar {
    /// A jar with the operator's own cookies, from the text of a `cookies.txt` file. Fails with the
    /// number of the first line that is no cookie.
    pub(crate) fn from_cookies_txt(text: &str) -> Result<Self, usize> {
        let mut jar = Self::default();
        for line in cookies_txt::cookies(text) {
            let (domain, cookie) = line?;
            jar.keep(domain, cookie);
        }
        Ok(jar)
    }

    /// Takes in what an answer to this URL sets.
    pub(crate) fn learn(&mut self, url: &PageUrl, headers: &HeaderMap, now: Timestamp) {
        for value in headers.get_all(SET_COOKIE).iter().take(PER_ANSWER_MAX) {
            let Some(set) = SetCookie::parse(value.as_bytes()) else { continue };
            let Some((domain, cookie)) = set.admit(url, now) else { continue };
            self.remove_same(&domain, &cookie);
            // A cookie is deleted by setting it to a time that has passed.
            if !cookie.is_expired(now) {
                self.keep(domain, cookie);
            }
        }
    }

    /// The `Cookie` header for a request to this URL.
    pub(crate) fn header_for(&mut self, url: &PageUrl, now: Timestamp) -> Option<HeaderValue> {
        if self.cookies == 0 {
            return None;
        }
        self.next_use += 1;
        let mut sent = Vec::new();
        for domain in domains_of(url.host_str()) {
            let Some(cookies) = self.by_domain.get_mut(domain) else { continue };
            let is_own = domain == url.host_str();
            for cookie in cookies.iter_mut().filter(|cookie| cookie.goes_to(url, is_own, now)) {
                cookie.used = self.next_use;
                sent.push((cookie.path.len(), format!("{}={}", cookie.name, cookie.value)));
            }
        }
        // RFC 6265, 5.4: the more specific path first.
        sent.sort_by_key(|&(path_len, _)| std::cmp::Reverse(path_len));
        cookie_header(sent.into_iter().map(|(_, pair)| pair))
    }

    fn keep(&mut self, domain: String, mut cookie: Cookie) {
        self.next_use += 1;
        cookie.used = self.next_use;
        let cookies = self.by_domain.entry(domain).or_default();
        cookies.push(cookie);
        self.cookies += 1;
        if cookies.len() > PER_DOMAIN_MAX {
            remove_least_used(cookies);
            self.cookies -= 1;
        }
        if self.cookies > COOKIES_MAX {
            self.make_room();
        }
    }

    fn remove_same(&mut self, domain: &str, new: &Cookie) {
        let Some(cookies) = self.by_domain.get_mut(domain) else { return };
        let before = cookies.len();
        cookies.retain(|old| {
            old.name != new.name || old.path != new.path || !old.reach.overlaps(&new.reach)
        });
        self.cookies -= before - cookies.len();
    }

    /// Gives up the domain that was used least recently, as a whole: half a login is of no use.
    fn make_room(&mut self) {
        let last_used = |cookies: &Vec<Cookie>| cookies.iter().map(|cookie| cookie.used).max();
        let oldest = self.by_domain.iter().min_by_key(|(_, cookies)| last_used(cookies));
        let Some(oldest) = oldest.map(|(domain, _)| domain.clone()) else { return };
        let removed = self.by_domain.remove(&oldest).unwrap_or_default();
        self.cookies -= removed.len();
    }
}

fn remove_least_used(cookies: &mut Vec<Cookie>) {
    let least = cookies.iter().enumerate().min_by_key(|(_, cookie)| cookie.used);
    if let Some((at, _)) = least {
        cookies.remove(at);
    }
}

impl Cookie {
    fn goes_to(&self, url: &PageUrl, is_own_host: bool, now: Timestamp) -> bool {
        let reach = &self.reach;
        (is_own_host || reach.includes_subdomains)
            && reach.scheme.is_none_or(|scheme| scheme == url.scheme())
            && reach.port.is_none_or(|port| port == url.port())
            && path_matches(url.path(), &self.path)
            && !self.is_expired(now)
    }

    fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }
}

impl Reach {
    /// Whether some request would get both.
    fn overlaps(&self, other: &Self) -> bool {
        let may_meet =
            |one: Option<u16>, other: Option<u16>| one.is_none() || other.is_none() || one == other;
        self.includes_subdomains == other.includes_subdomains
            && (self.scheme.is_none() || other.scheme.is_none() || self.scheme == other.scheme)
            && may_meet(self.port, other.port)
    }
}

/// A host and the domains above it.
fn domains_of(host: &str) -> impl Iterator<Item = &str> {
    let is_address = set_cookie::is_address(host);
    std::iter::successors(Some(host), move |&domain| {
        if is_address { None } else { domain.split_once('.').map(|(_, above)| above) }
    })
}

/// RFC 6265, 5.1.4.
fn path_matches(requested: &str, cookie_path: &str) -> bool {
    requested
        .strip_prefix(cookie_path)
        .is_some_and(|rest| rest.is_empty() || cookie_path.ends_with('/') || rest.starts_with('/'))
}

fn cookie_header(pairs: impl Iterator<Item = String>) -> Option<HeaderValue> {
    let mut text = String::new();
    for pair in pairs {
        let separator = if text.is_empty() { "" } else { "; " };
        if text.len() + separator.len() + pair.len() <= SENT_BYTES_MAX {
            text.extend([separator, &pair]);
        }
    }
    if text.is_empty() {
        return None;
    }
    let mut header = HeaderValue::try_from(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

impl fmt::Debug for CookieJar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cookies", self.cookies)
    }
}

#[cfg(test)]
mod tests;
