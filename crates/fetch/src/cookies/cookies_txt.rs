//! The file format in which browsers and curl hand cookies on: one cookie a line, seven fields with
//! tabs between them (domain, subdomains, path, secure, expires, name, value).

use telusur_model::{PageUrl, Timestamp};

use super::set_cookie::{is_address, is_public_suffix};
use super::{Cookie, Reach};

/// The cookies in a text with their domains; the number of the line for a line that is none.
pub(super) fn cookies(text: &str) -> impl Iterator<Item = Result<(String, Cookie), usize>> {
    let lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate();
    lines.filter_map(|(index, line)| {
        // What looks like a comment with this word is a cookie that scripts must not see.
        let line = line.strip_prefix("#HttpOnly_").unwrap_or(line);
        let is_comment = line.trim().is_empty() || line.starts_with('#');
        if is_comment { None } else { Some(cookie(line).ok_or(index + 1)) }
    })
}

fn cookie(line: &str) -> Option<(String, Cookie)> {
    let mut fields = line.trim_end_matches('\r').split('\t');
    let mut next = || fields.next();
    let (domain, subdomains, path) = (next()?, next()?, next()?);
    let (secure, expires, name, value) = (next()?, next()?, next()?, next()?);
    let is_plain = |text: &str| text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let is_cookie = !name.is_empty() && is_plain(name) && is_plain(value) && !value.contains(';');
    if fields.next().is_some() || !is_cookie || !path.starts_with('/') {
        return None;
    }
    let domain = domain.strip_prefix('.').unwrap_or(domain);
    let host = PageUrl::parse(&format!("http://{domain}/")).ok()?.host_str().to_owned();
    let is_shared = is_address(&host) || is_public_suffix(&host);
    let reach = Reach {
        includes_subdomains: flag(subdomains)? && !is_shared,
        scheme: if flag(secure)? { Some("https") } else { None },
        port: None,
    };
    let expires_at = match expires.trim().parse::<u64>().ok()? {
        // For as long as the browser ran; now for as long as the crawl does.
        0 => None,
        seconds => Some(Timestamp(seconds.saturating_mul(1000))),
    };
    let (name, value, path) = (name.to_owned(), value.to_owned(), path.to_owned());
    Some((host, Cookie { name, value, path, reach, expires_at, used: 0 }))
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "TRUE" => Some(true),
        "FALSE" => Some(false),
        _ => None,
    }
}
