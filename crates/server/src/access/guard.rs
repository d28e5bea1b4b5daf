//! Keeps other websites out. A browser carries a user's cookies, and reaches loopback, for whatever page is
//! open in it; the `Host` and the `Origin` of a request tell which page that is.

use std::net::IpAddr;

use http::header::{CONTENT_TYPE, HOST, ORIGIN, REFERER};
use http::{HeaderMap, Method};

use crate::problem::{Code, Problem};
use crate::settings::ServiceSettings;

/// Refuses a request that was sent to a name that is not ours: a website can point its own name at us
/// (DNS rebinding), but not an address, and not `localhost`.
pub(crate) fn check_host(headers: &HeaderMap, settings: &ServiceSettings) -> Result<(), Problem> {
    let host = headers.get(HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = name_of(host);
    let is_address = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let is_named = settings.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
    if is_address || is_named || name.eq_ignore_ascii_case("localhost") {
        return Ok(());
    }
    let what = format!("this server does not go by the name {:?}", crate::problem::shown(name));
    Err(Problem::new(Code::UnknownHost, what)
        .hint("The operator can add it: server.allowed_hosts in telusur.toml"))
}

/// Refuses a change that another website asks for.
pub(crate) fn check_origin(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(());
    }
    let refuse = || Err(Problem::new(Code::ForbiddenOrigin, "another website asked for this"));
    let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    if let Some(site) = headers.get("sec-fetch-site")
        && !matches!(site.as_bytes(), b"same-origin" | b"none")
    {
        return refuse();
    }
    let host = text(HOST).unwrap_or_default();
    match headers.get(ORIGIN) {
        None => Ok(()),
        Some(_) if is_our_origin(text(ORIGIN).unwrap_or_default(), host) => Ok(()),
        Some(_) => refuse(),
    }
}

/// Whether a request can come from a browser: programs send none of these.
pub(crate) fn may_be_browser(headers: &HeaderMap) -> bool {
    headers.contains_key(ORIGIN)
        || headers.contains_key(REFERER)
        || headers.keys().any(|name| name.as_str().starts_with("sec-fetch-"))
}

/// Whether a body says that it is JSON. A form of another website cannot.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json") || kind.to_ascii_lowercase().ends_with("+json")
}

fn is_our_origin(origin: &str, host: &str) -> bool {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    rest.is_some_and(|rest| !host.is_empty() && rest.eq_ignore_ascii_case(host))
}

/// The name in `name:port`, brackets included.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[track_caller]
    fn check(pairs: &[(&'static str, &str)], is_served: bool) {
        let result = check_origin(&Method::POST, &headers(pairs));
        assert_eq!(result.is_ok(), is_served, "{pairs:?}");
    }

    #[test]
    fn other_websites_change_nothing() {
        check(&[("host", "localhost:8088")], true);
        check(&[("host", "localhost:8088"), ("origin", "http://localhost:8088")], true);
        check(&[("host", "localhost:8088"), ("origin", "http://evil.example")], false);
        check(&[("host", "localhost:8088"), ("origin", "http://localhost:9999")], false);
        check(&[("host", "localhost:8088"), ("origin", "null")], false);
        check(&[("host", "localhost:8088"), ("sec-fetch-site", "cross-site")], false);
        check(&[("host", "localhost:8088"), ("sec-fetch-site", "same-site")], false);
        check(&[("host", "localhost:8088"), ("sec-fetch-site", "same-origin")], true);
    }

    #[test]
    fn names_and_ports() {
        for (host, name) in
            [("a.org:80", "a.org"), ("a.org", "a.org"), ("[::1]:8088", "[::1]"), ("[::1]", "[::1]")]
        {
            assert_eq!(name_of(host), name);
        }
    }
}
