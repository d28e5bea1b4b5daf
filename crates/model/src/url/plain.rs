//! URLs in which nothing is left to normalise: nearly all links between pages, told in one pass.
//!
//! Any other URL is read by the url crate, which knows the whole standard. What is called
//! plain here must be spelled exactly as that crate would spell it; a property test holds both
//! against each other.

use std::net::Ipv4Addr;

use super::Places;

/// The longest name that a host can have (RFC 1035).
const HOST_BYTES_MAX: usize = 253;

/// Where the parts of a plain absolute URL begin and end; `None` if it is not plain.
pub(super) fn places(text: &str) -> Option<Places> {
    let (host_start, default_port) = match text {
        _ if text.starts_with("http://") => (7, "80"),
        _ if text.starts_with("https://") => (8, "443"),
        _ => return None,
    };
    let path_start = host_start + text[host_start..].find('/')?;
    let authority = &text[host_start..path_start];
    let host = match authority.split_once(':') {
        Some((host, port)) if is_plain_port(port) && port != default_port => host,
        Some(_) => return None,
        None => authority,
    };
    if !is_plain_host(host) {
        return None;
    }
    let query_start = path_start + path_bytes(&text[path_start..])?;
    Places::new(host_start + host.len(), path_start, query_start)
}

/// The length of the path in front of a text that is a plain path, from any slash on, and perhaps a
/// plain query; `None` if one of them is not plain.
pub(super) fn path_bytes(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let path = bytes.iter().position(|byte| *byte == b'?').unwrap_or(bytes.len());
    let mut before = b'/';
    for (at, &byte) in bytes[..path].iter().enumerate() {
        // `.` and `..` go away, and so do their escaped spellings.
        let may_be_dot =
            byte == b'.' && before == b'/' || byte == b'%' && is_escaped_dot(bytes, at);
        if may_be_dot || !is_plain(byte) {
            return None;
        }
        before = byte;
    }
    bytes[path..].iter().all(|byte| is_plain(*byte) || *byte == b'?').then_some(path)
}

fn is_escaped_dot(bytes: &[u8], at: usize) -> bool {
    bytes.get(at + 1..at + 3).is_some_and(|digits| digits.eq_ignore_ascii_case(b"2e"))
}

/// Bytes that stay as they are wherever they stand in a path or in a query.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/-._~!$&()*+,;=:@%".contains(&byte)
}

/// A name in small letters whose last label cannot be read as a number, or an address in the usual
/// spelling. Two hyphens may stand for another alphabet.
fn is_plain_host(host: &str) -> bool {
    if host.len() > HOST_BYTES_MAX || host.contains("--") {
        return false;
    }
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_plain_label = |label: &str| {
        let bytes = label.as_bytes();
        let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else { return false };
        is_letter(first)
            && is_letter(last)
            && bytes.iter().all(|byte| is_letter(*byte) || *byte == b'-')
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    if last.starts_with(|c: char| c.is_ascii_digit()) {
        return host.parse::<Ipv4Addr>().is_ok();
    }
    host.split('.').all(is_plain_label)
}

fn is_plain_port(port: &str) -> bool {
    let is_number = !port.starts_with('0') && port.bytes().all(|byte| byte.is_ascii_digit());
    is_number && port.parse::<u16>().is_ok()
}
