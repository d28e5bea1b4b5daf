//! `Retry-After`: how long a server asks to be left alone.

use telusur_model::{RawPage, Timestamp};

use crate::http_date;

/// Longest that a server can silence us: some name years. One that still struggles after an hour
/// says so again.
const RETRY_AFTER_MS_MAX: u64 = 3_600_000;

/// How long from `now` an answer asks not to be asked again, an hour at most. `None` if it does not
/// ask, or in words that mean nothing.
pub fn retry_after_ms(page: &RawPage, now: Timestamp) -> Option<u64> {
    let text = page.header("retry-after")?.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let ms = if is_number {
        // A number too large for its type is as good as the limit.
        text.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1000)
    } else {
        // A date that has passed asks for nothing more than our usual manners.
        http_date::parse(text)?.0.saturating_sub(now.0)
    };
    Some(ms.min(RETRY_AFTER_MS_MAX))
}

#[cfg(test)]
mod tests {
    use telusur_model::PageUrl;

    use super::*;

    /// H15.
    #[track_caller]
    fn check(value: &str, expect: Option<u64>) {
        let now = http_date::parse("Sun, 15 Nov 2026 17:59:30 GMT").unwrap();
        let page = RawPage {
            url: PageUrl::parse("http://a.org/").unwrap(),
            status: 503,
            headers: vec![("retry-after".to_owned(), value.to_owned())],
            body: bytes::Bytes::new(),
            truncated: false,
            wire_bytes: 0,
        };
        assert_eq!(retry_after_ms(&page, now), expect, "{value:?}");
    }

    #[test]
    fn seconds() {
        check("1", Some(1000));
        check(" 120 ", Some(120_000));
        check("0", Some(0));
    }

    #[test]
    fn dates() {
        check("Sun, 15 Nov 2026 18:00:00 GMT", Some(30_000));
        check("Sunday, 15-Nov-26 18:00:00 GMT", Some(30_000));
        check("Sun Nov 15 18:00:00 2026", Some(30_000));
        check("Sun, 15 Nov 2026 17:00:00 GMT", Some(0));
    }

    #[test]
    fn an_hour_at_most() {
        check("1000000000", Some(3_600_000));
        check("999999999999999999999999", Some(3_600_000));
        check("Fri, 31 Dec 2099 23:59:59 GMT", Some(3_600_000));
    }

    #[test]
    fn what_means_nothing() {
        for value in ["", "-1", "soon", "1e9", "1.5", "٣", "Mon, 01 Jan 1601 00:00:00 GMT"] {
            check(value, None);
        }
    }
}
