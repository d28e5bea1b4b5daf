//! Paths and patterns in one spelling, and whether one matches the other (RFC 9309, 2.2.2 and 2.2.3).
//!
//! A hostile pattern costs no more than a plain one: matching never goes back, so its time is linear
//! in the lengths of the path and of the pattern.

use std::fmt;

use memchr::memmem;
use serde::{Deserialize, Serialize};
use telusur_model::URL_BYTES_MAX;

/// No path gets longer than this: each of its bytes takes at most three, as in `%20`.
const PATH_BYTES_MAX: usize = 3 * URL_BYTES_MAX;

/// A longer pattern has more literal bytes than any path (at most every second byte is a `*`, one is
/// the `$`), so it can match nothing and need not be kept.
const PATTERN_BYTES_MAX: usize = 2 * PATH_BYTES_MAX + 2;

/// Path and query of a URL, normalised. A `*` or `$` in it is spelt `%2A` or `%24`.
pub(super) struct NormalPath(Vec<u8>);

/// The value of a rule, normalised: `*` stands for anything, a `$` at its end for the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Pattern(Box<str>);

impl NormalPath {
    pub(super) fn new(path_and_query: &str) -> Self {
        let mut path = Vec::with_capacity(path_and_query.len());
        push_normal(&mut path, path_and_query.as_bytes());
        Self(path)
    }
}

impl Pattern {
    /// A pattern that can match something, of the value of a line.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let (body, is_anchored) = match value.strip_suffix(b"$") {
            Some(body) => (body, true),
            None => (value, false),
        };
        // A path begins with a slash, so nothing else can match.
        if !matches!(body.first(), Some(b'/' | b'*')) {
            return None;
        }
        let mut pattern = Vec::with_capacity(value.len());
        for (at, piece) in body.split(|&byte| byte == b'*').enumerate() {
            // Two stars say no more than one, and would make a pattern look specific.
            if at > 0 && pattern.last() != Some(&b'*') {
                pattern.push(b'*');
            }
            push_normal(&mut pattern, piece);
        }
        if is_anchored {
            pattern.push(b'$');
        }
        if pattern.len() > PATTERN_BYTES_MAX {
            return None;
        }
        let pattern = String::from_utf8(pattern).expect("the normal form is ASCII");
        Some(Self(pattern.into()))
    }

    /// How specific the pattern is: of two that match, the one with more octets decides.
    pub(super) fn octets(&self) -> usize {
        self.0.len()
    }

    pub(super) fn matches(&self, path: &NormalPath) -> bool {
        matches(self.0.as_bytes(), &path.0, memmem::find)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a pattern matches a path from its beginning; `find` gives the first place of a needle in
/// a haystack.
///
/// It is enough to put every piece between two stars at the first place it fits: any other choice
/// leaves less room for the pieces behind it. So nothing is tried twice.
pub(super) fn matches(
    pattern: &[u8],
    path: &[u8],
    mut find: impl FnMut(&[u8], &[u8]) -> Option<usize>,
) -> bool {
    let (pattern, is_anchored) = match pattern.strip_suffix(b"$") {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut pieces = pattern.split(|&byte| byte == b'*');
    let head = pieces.next().expect("splitting gives at least one piece");
    let Some(mut rest) = path.strip_prefix(head) else { return false };
    let Some(tail) = pieces.next_back() else { return !is_anchored || rest.is_empty() };
    for piece in pieces {
        let Some(at) = find(rest, piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    if is_anchored { rest.ends_with(tail) } else { find(rest, tail).is_some() }
}

/// Appends text in the one spelling in which equal octets look equal: letters, digits and `-._~`
/// bare, the delimiters of RFC 3986 as they are found, bare or encoded, and all else encoded in
/// upper case. A star or dollar sign is encoded too, since in a pattern they are no octets.
fn push_normal(out: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'%', [high, low, after @ ..]) if is_hex(*high) && is_hex(*low) => {
                let decoded = hex_value(*high) << 4 | hex_value(*low);
                if is_unreserved(decoded) {
                    out.push(decoded);
                } else {
                    push_encoded(out, decoded);
                }
                rest = after;
            }
            // A lone percent sign means nothing, but people forbid "/*%" and mean the encoded ones.
            (b'%', _) => out.push(b'%'),
            _ if is_unreserved(byte) || is_delimiter(byte) => out.push(byte),
            _ => push_encoded(out, byte),
        }
    }
}

fn push_encoded(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// The reserved characters of RFC 3986, but for the two that are special in a pattern.
fn is_delimiter(byte: u8) -> bool {
    b":/?#[]@!&'()+,;=".contains(&byte)
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}
