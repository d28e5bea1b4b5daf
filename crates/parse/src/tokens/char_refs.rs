//! Character references: `&amp;`, `&#8217;`, `&eacute`.

use html5ever::data::{C1_REPLACEMENTS, NAMED_ENTITIES};
use html5ever::tendril::StrTendril;

/// Where a reference stands. In attributes, `&copy=1` is not a copyright sign, for the sake of old
/// links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Text,
    Attribute,
}

/// Longest name in the table, `CounterClockwiseContourIntegral;`, and one more.
const NAME_BYTES_MAX: usize = 33;

/// One resolved reference: one or two characters, and the bytes that it took behind the `&`.
struct Resolved {
    first: char,
    second: Option<char>,
    bytes: usize,
}

/// Resolves all references, and replaces NUL.
pub(super) fn decode(written: &str, place: Place) -> StrTendril {
    let mut decoded = StrTendril::with_capacity(written.len() as u32);
    let mut rest = written;
    while let Some(offset) = memchr::memchr2(b'&', 0, rest.as_bytes()) {
        decoded.push_slice(&rest[..offset]);
        let behind = &rest[offset + 1..];
        if rest.as_bytes()[offset] == 0 {
            decoded.push_char(char::REPLACEMENT_CHARACTER);
            rest = behind;
            continue;
        }
        match resolve(behind.as_bytes(), place) {
            Some(resolved) => {
                decoded.push_char(resolved.first);
                if let Some(second) = resolved.second {
                    decoded.push_char(second);
                }
                rest = &behind[resolved.bytes..];
            }
            None => {
                decoded.push_char('&');
                rest = behind;
            }
        }
    }
    decoded.push_slice(rest);
    decoded
}

fn resolve(behind: &[u8], place: Place) -> Option<Resolved> {
    match behind.first()? {
        b'#' => numeric(behind),
        byte if byte.is_ascii_alphanumeric() => {
            closed_name(behind).or_else(|| longest_name(behind, place))
        }
        _ => None,
    }
}

/// A name that ends with a semicolon, as nearly all do: one look into the table is enough.
fn closed_name(behind: &[u8]) -> Option<Resolved> {
    let letters = behind.iter().take(NAME_BYTES_MAX).position(|byte| !byte.is_ascii_alphanumeric());
    let bytes = letters? + 1;
    if behind[bytes - 1] != b';' {
        return None;
    }
    let name = std::str::from_utf8(&behind[..bytes]).ok()?;
    resolved(*NAMED_ENTITIES.get(name)?, bytes)
}

/// The longest name in the table that stands here, with or without a semicolon. The table also
/// holds every beginning of a name (with a zero), which tells when to stop looking.
fn longest_name(behind: &[u8], place: Place) -> Option<Resolved> {
    let mut longest = None;
    for bytes in 1..=behind.len() {
        let Ok(name) = std::str::from_utf8(&behind[..bytes]) else { break };
        let Some(characters) = NAMED_ENTITIES.get(name) else { break };
        longest = resolved(*characters, bytes).or(longest);
    }
    let longest = longest?;
    let follower = behind.get(longest.bytes);
    let goes_on = follower.is_some_and(|byte| *byte == b'=' || byte.is_ascii_alphanumeric());
    if place == Place::Attribute && behind[longest.bytes - 1] != b';' && goes_on {
        return None;
    }
    Some(longest)
}

fn resolved((first, second): (u32, u32), bytes: usize) -> Option<Resolved> {
    let character = |number| char::from_u32(number).filter(|character| *character != '\0');
    Some(Resolved { first: character(first)?, second: character(second), bytes })
}

fn numeric(behind: &[u8]) -> Option<Resolved> {
    let (radix, start) = match behind.get(1) {
        Some(b'x' | b'X') => (16, 2),
        _ => (10, 1),
    };
    let digits = behind[start..].iter().take_while(|byte| char::from(**byte).is_digit(radix));
    let mut end = start;
    let mut number: u32 = 0;
    for digit in digits {
        let value = char::from(*digit).to_digit(radix).unwrap_or_default();
        number = number.saturating_mul(radix).saturating_add(value);
        end += 1;
    }
    if end == start {
        return None;
    }
    if behind.get(end) == Some(&b';') {
        end += 1;
    }
    Some(Resolved { first: character(number), second: None, bytes: end })
}

/// The character of a number. Numbers that are none become U+FFFD; those of control characters
/// are read as windows-1252, as browsers do.
fn character(number: u32) -> char {
    match number {
        0 => char::REPLACEMENT_CHARACTER,
        0x80..=0x9f => {
            let control = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
            C1_REPLACEMENTS[(number - 0x80) as usize].unwrap_or(control)
        }
        _ => char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, expect: &str) {
        assert_eq!(&*decode(written, Place::Text), expect, "{written}");
    }

    #[test]
    fn names() {
        check("a &amp; b", "a & b");
        check("&lt;&gt;&quot;&nbsp;", "<>\"\u{a0}");
        check("&eacute;&Eacute&eacutex", "éÉéx");
        check("&notit; &notin;", "¬it; ∉");
        check("&NotEqualTilde;", "≂̸");
        check("&hearts", "&hearts");
        check("&; & &x; &é", "&; & &x; &é");
        check("&amp;amp;", "&amp;");
    }

    #[test]
    fn numbers() {
        check("&#65;&#x42;&#X43;&#68", "ABCD");
        check("&#150;&#x80;&#x81;", "–€\u{81}");
        check("&#; &#x; &#xg", "&#; &#x; &#xg");
    }

    #[test]
    fn numbers_that_are_no_characters_m6() {
        check("&#0;&#xD800;&#x110000;&#99999999999999999999;", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}");
        check("a\0b", "a\u{fffd}b");
    }

    #[test]
    fn old_links_stay_whole() {
        assert_eq!(&*decode("?a=1&copy=2&lang=x&amp;b", Place::Attribute), "?a=1&copy=2&lang=x&b");
        assert_eq!(&*decode("&copy &copy;2", Place::Attribute), "© ©2");
        check("&copy=2", "©=2");
    }
}
