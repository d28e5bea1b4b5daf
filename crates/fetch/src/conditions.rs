//! [`Conditions`]: "send it only if it has changed". What a server once said about the version of a
//! page goes back to that server, so it is a stranger's text in our request: checked here.

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use telusur_model::{Timestamp, Validators};

use crate::http_date;

/// Longest entity tag that is sent back. Honest ones are hashes of up to 128 digits; a server that
/// hands out 60 KB would have us send them with every request.
const ETAG_BYTES_MAX: usize = 512;

/// 1990: there was no page before it, so an earlier date is a clock that was never set.
const LAST_MODIFIED_MIN: Timestamp = Timestamp(631_152_000_000);

/// How far a server's clock may be ahead of ours.
const CLOCK_SKEW_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// The conditional headers of a request.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Conditions {
    /// The conditions that these validators allow, by the calendar's `now`. What makes no sense is
    /// left out, and the page is then simply sent.
    pub(crate) fn new(validators: &Validators, now: Timestamp) -> Self {
        let etag = validators.etag.as_deref().filter(|etag| is_usable_etag(etag));
        let date = validators.last_modified.as_deref().filter(|date| is_usable_date(date, now));
        let header = |name, text: Option<&str>| Some((name, HeaderValue::from_str(text?).ok()?));
        let headers = [header(IF_NONE_MATCH, etag), header(IF_MODIFIED_SINCE, date)];
        Self { headers: headers.into_iter().flatten().collect() }
    }

    /// Whether the request is an ordinary one.
    pub(crate) fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    pub(crate) fn add_to(&self, headers: &mut HeaderMap) {
        headers.extend(self.headers.iter().cloned());
    }
}

/// `*` would match every version: a server that calls its page so would never have to send it.
fn is_usable_etag(etag: &str) -> bool {
    let is_visible = etag.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    is_visible && !matches!(etag.trim(), "" | "*") && etag.len() <= ETAG_BYTES_MAX
}

fn is_usable_date(date: &str, now: Timestamp) -> bool {
    let latest = Timestamp(now.0.saturating_add(CLOCK_SKEW_MS_MAX));
    http_date::parse(date).is_some_and(|time| (LAST_MODIFIED_MIN..=latest).contains(&time))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-15.
    const NOW: Timestamp = Timestamp(1_794_765_566_000);

    #[track_caller]
    fn check(etag: Option<&str>, last_modified: Option<&str>, expect: &[(&str, &str)]) {
        let validators = Validators {
            etag: etag.map(str::to_owned),
            last_modified: last_modified.map(str::to_owned),
        };
        let conditions = Conditions::new(&validators, NOW);
        let headers = conditions.headers.iter();
        let found: Vec<_> =
            headers.map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(found, expect);
        assert_eq!(conditions.is_empty(), expect.is_empty());
    }

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    #[test]
    fn what_a_server_said_is_said_back() {
        check(Some("\"a\""), None, &[("if-none-match", "\"a\"")]);
        check(
            Some("W/\"a\""),
            Some(DATE),
            &[("if-none-match", "W/\"a\""), ("if-modified-since", DATE)],
        );
        check(None, Some(DATE), &[("if-modified-since", DATE)]);
        check(None, None, &[]);
    }

    #[test]
    fn odd_tags_are_left_out() {
        // H23.
        for etag in ["", " ", "*", " * ", "\"a\r\nX-Injected: 1\"", "\"\u{fffd}\"", "\"a\tb\""] {
            check(Some(etag), None, &[]);
        }
        check(Some(&format!("\"{}\"", "e".repeat(60_000))), None, &[]);
    }

    #[test]
    fn dates_that_cannot_be_are_left_out() {
        // H23.
        for date in [
            "Mon, 01 Jan 1601 00:00:00 GMT",
            "Thu, 01 Jan 1970 00:00:00 GMT",
            "Fri, 31 Dec 9999 23:59:59 GMT",
            "yesterday",
            "Sun, 06 Nov 1994 08:49:37 GMT\r\nX-Injected: 1",
        ] {
            check(None, Some(date), &[]);
        }
        check(
            None,
            Some("Mon, 16 Nov 2026 10:00:00 GMT"),
            &[("if-modified-since", "Mon, 16 Nov 2026 10:00:00 GMT")],
        );
    }
}
