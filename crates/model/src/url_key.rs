//! [`UrlKey`]: which URLs are the same page. The key only decides sameness; requests always go to
//! the URL as it was found.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::PageUrl;

/// A keyed 128-bit hash of a URL's normal form. Two URLs with the same key are one page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UrlKey(pub u128);

/// In texts (JSON) a key is written as people see it: few readers know numbers of 128 bits.
impl Serialize for UrlKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_u128(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for UrlKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return u128::deserialize(deserializer).map(Self);
        }
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map(Self).map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for UrlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for UrlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UrlKey({self})")
    }
}

/// Makes keys. The seed belongs to a data directory, so that a page's author cannot prepare URLs
/// that collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlKeyer {
    /// The data directory's own seed.
    pub seed: u64,
    /// Whether tracking parameters make no difference.
    pub drop_tracking: bool,
}

impl UrlKeyer {
    /// The key of a page.
    pub fn key(&self, url: &PageUrl) -> UrlKey {
        let form = normal_form(url, self.drop_tracking);
        UrlKey(xxh3_128_with_seed(form.as_bytes(), self.seed))
    }

    /// The key of a sitemap: another one than that of the page with its address, because a feed
    /// can be both.
    pub fn sitemap_key(&self, url: &PageUrl) -> UrlKey {
        const SITEMAP: u128 = 0x7369_7465_6d61_7000_7369_7465_6d61_7000;
        UrlKey(self.key(url).0 ^ SITEMAP)
    }
}

/// Parameters that say where a reader came from, not which page they want.
const TRACKING_PARAMETERS: &[&str] = &[
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
    "_openstat",
    "dclid",
    "fbclid",
    "gbraid",
    "gclid",
    "gclsrc",
    "hsctatracking",
    "igsh",
    "igshid",
    "li_fat_id",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "ml_subscriber",
    "ml_subscriber_hash",
    "msclkid",
    "oly_anon_id",
    "oly_enc_id",
    "rb_clickid",
    "ref_src",
    "s_cid",
    "srsltid",
    "ttclid",
    "twclid",
    "vero_conv",
    "vero_id",
    "wbraid",
    "wickedid",
    "yclid",
];
/// Parameters that frameworks carry a reader's session in.
const SESSION_PARAMETERS: &[&str] = &[
    "cfid",
    "cftoken",
    "jsessionid",
    "oscsid",
    "phpsessid",
    "session_id",
    "sessionid",
    "sid",
    "zenid",
];
/// Sixteen characters: the shortest session ids in use; a `sid=1234` is the number of a story.
const SESSION_BYTES_MIN: usize = 16;
const TRACKING_PREFIXES: &[&str] = &["utm_", "mtm_", "pk_", "piwik_", "matomo_"];

/// The form in which two spellings of one page are equal.
///
/// On top of what the WHATWG standard already does (scheme and host in lower case, default port and
/// dot segments removed): fragment removed, needless escapes decoded and needed ones in upper case,
/// duplicate slashes removed, query sorted, tracking parameters removed if asked. Idempotent, and
/// at most three times as long as its input.
pub fn normal_form(url: &PageUrl, drop_tracking: bool) -> Cow<'_, str> {
    let text = url.as_str();
    let path_start = text.len() - url.target().len();
    if is_plain(url.target()) && !(drop_tracking && text.contains(';')) {
        return Cow::Borrowed(text);
    }
    let mut form = String::with_capacity(text.len() + 16);
    form.push_str(&text[..path_start]);
    let path = if drop_tracking { without_session(url.path()) } else { url.path() };
    push_path(&mut form, path);
    push_query(&mut form, url.query().unwrap_or_default(), drop_tracking);
    Cow::Owned(form)
}

/// True for a path without query in which nothing is left to normalise: the common case, decided
/// in one pass without allocating.
fn is_plain(path: &str) -> bool {
    let mut previous = 0;
    for &byte in path.as_bytes() {
        if byte == b'/' && previous == b'/' || byte != b'/' && !stays_in_path(byte) {
            return false;
        }
        previous = byte;
    }
    true
}

fn push_path(form: &mut String, path: &str) {
    let mut rest = path.as_bytes();
    while let Some((byte, escaped, after)) = next_byte(rest) {
        rest = after;
        match byte {
            // An escaped slash is part of a name, a plain one separates names.
            b'/' if escaped => form.push_str("%2F"),
            b'/' if form.ends_with('/') => {}
            b'/' => form.push('/'),
            _ if stays_in_path(byte) => form.push(char::from(byte)),
            _ => push_escape(form, byte),
        }
    }
}

fn push_query(form: &mut String, query: &str, drop_tracking: bool) {
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (query_part(name, stays_in_name), query_part(value, stays_in_value)))
        .filter(|(name, value)| !(drop_tracking && (is_tracking(name) || is_session(name, value))))
        .collect();
    pairs.sort_unstable();
    for (index, (name, value)) in pairs.iter().enumerate() {
        form.push(if index == 0 { '?' } else { '&' });
        form.push_str(name);
        form.push('=');
        form.push_str(value);
    }
}

fn query_part(part: &str, stays: fn(u8) -> bool) -> String {
    let mut form = String::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((byte, escaped, after)) = next_byte(rest) {
        rest = after;
        match byte {
            b' ' => form.push('+'),
            b'+' if !escaped => form.push('+'),
            _ if stays(byte) => form.push(char::from(byte)),
            _ => push_escape(&mut form, byte),
        }
    }
    form
}

fn is_tracking(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TRACKING_PARAMETERS.binary_search(&name.as_str()).is_ok()
        || TRACKING_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a parameter only says who is reading: a name that frameworks use, and a value that
/// no person would type.
fn is_session(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_name = SESSION_PARAMETERS.contains(&name.as_str()) || name.starts_with("aspsessionid");
    is_name && value.len() >= SESSION_BYTES_MIN && value.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// A path without the session that servlets write behind it: `/shop;jsessionid=1A2B…`.
fn without_session(path: &str) -> &str {
    match path.rfind(';') {
        Some(at) => match path[at + 1..].split_once('=') {
            Some((name, value)) if is_session(name, value.split('.').next().unwrap_or(value)) => {
                &path[..at]
            }
            _ => path,
        },
        None => path,
    }
}

/// The next octet, whether it was written as an escape, and what follows it.
fn next_byte(text: &[u8]) -> Option<(u8, bool, &[u8])> {
    let (&first, rest) = text.split_first()?;
    if first == b'%'
        && let [high, low, after @ ..] = rest
        && let (Some(high), Some(low)) = (hex_value(*high), hex_value(*low))
    {
        return Some((high << 4 | low, true, after));
    }
    Some((first, false, rest))
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

fn push_escape(form: &mut String, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    form.push('%');
    form.push(char::from(HEX[usize::from(byte >> 4)]));
    form.push(char::from(HEX[usize::from(byte & 15)]));
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// RFC 3986 `pchar`, and the brackets that browsers leave bare; without the slash.
fn stays_in_path(byte: u8) -> bool {
    is_unreserved(byte)
        || matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',')
        || matches!(byte, b';' | b'=' | b':' | b'@' | b'[' | b']')
}

/// What stays bare in a parameter's name: `filter[color]` and `tag:x` are common names.
fn stays_in_name(byte: u8) -> bool {
    stays_in_value(byte) || matches!(byte, b'[' | b']' | b':')
}

/// What stays bare in a parameter's value: as little as possible, because forms and scripts escape
/// everything but slashes and question marks, and those are what people leave bare.
fn stays_in_value(byte: u8) -> bool {
    is_unreserved(byte) || matches!(byte, b'/' | b'?')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(normal_form(&PageUrl::parse(text).unwrap(), true), expect);
    }

    #[test]
    fn what_the_standard_does() {
        check("HTTP://WWW.Example.ORG:80", "http://www.example.org/");
        check("https://a.org:443/x/../y/./z", "https://a.org/y/z");
        check("http://bücher.example/", "http://xn--bcher-kva.example/");
    }

    #[test]
    fn needless_escapes_are_decoded_and_needed_ones_are_upper_case() {
        check("http://a.org/%66oo%2ehtml", "http://a.org/foo.html");
        check("http://a.org/r%c3%a9sum%c3%a9", "http://a.org/r%C3%A9sum%C3%A9");
        check("http://a.org/résumé", "http://a.org/r%C3%A9sum%C3%A9");
        check("http://a.org/a%2fb/100%", "http://a.org/a%2Fb/100%25");
    }

    #[test]
    fn duplicate_slashes_are_one() {
        check("http://a.org//x///y//", "http://a.org/x/y/");
    }

    #[test]
    fn the_query_is_sorted() {
        check("http://a.org/?b=2&a=1", "http://a.org/?a=1&b=2");
        check("http://a.org/?&b&&a=%7e", "http://a.org/?a=~&b=");
        check("http://a.org/?q=a%20b&p=a+b&r=a%2Bb", "http://a.org/?p=a+b&q=a+b&r=a%2Bb");
        check("http://a.org/x?", "http://a.org/x");
    }

    #[test]
    fn one_spelling_for_what_may_stay_bare_in_a_query() {
        check("http://a.org/?u=https%3A%2F%2Fb.org%2F%3Fc", "http://a.org/?u=https%3A//b.org/?c");
        check("http://a.org/?u=https://b.org/?c", "http://a.org/?u=https%3A//b.org/?c");
        check("http://a.org/?x%5By%5D=(1,[2])", "http://a.org/?x[y]=%281%2C%5B2%5D%29");
        check("http://a.org/%5Bx]?tag%3Ay", "http://a.org/[x]?tag:y=");
    }

    #[test]
    fn tracking_parameters_make_no_difference() {
        check("http://a.org/?utm_source=x&id=7&FBCLID=y", "http://a.org/?id=7");
        check("http://a.org/x?gclid=1", "http://a.org/x");
    }

    #[test]
    fn sessions_make_no_difference() {
        check("http://a.org/x?PHPSESSID=0123456789abcdef0123&id=7", "http://a.org/x?id=7");
        check("http://a.org/x;jsessionid=0123456789ABCDEF.node1", "http://a.org/x");
        check("http://a.org/x?sid=1234", "http://a.org/x?sid=1234");
        check("http://a.org/x;v=2", "http://a.org/x;v=2");
    }

    #[test]
    fn tracking_parameters_can_be_kept() {
        let url = PageUrl::parse("http://a.org/?utm_source=x").unwrap();
        assert_eq!(normal_form(&url, false), "http://a.org/?utm_source=x");
    }

    #[test]
    fn the_list_can_be_searched() {
        assert!(TRACKING_PARAMETERS.is_sorted());
    }

    proptest! {
        #[test]
        fn normalising_twice_is_normalising_once(path in "[ -~é%]{0,60}", query in "[ -~ü%&=+]{0,60}") {
            let text = format!("http://a.org/{path}?{query}");
            if let Ok(url) = PageUrl::parse(&text) {
                for drop_tracking in [false, true] {
                    let once = normal_form(&url, drop_tracking).into_owned();
                    let again = PageUrl::parse(&once).unwrap();
                    prop_assert_eq!(&normal_form(&again, drop_tracking), &once);
                    prop_assert!(once.len() <= 3 * text.len());
                }
            }
        }
    }
}
