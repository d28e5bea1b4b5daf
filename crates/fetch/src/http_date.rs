//! Dates as HTTP writes them: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110), the older forms that it
//! still allows (`Sunday, 06-Nov-94 08:49:37 GMT`, `Sun Nov  6 08:49:37 1994`), and the variety that
//! cookies come with.

use telusur_model::{Timestamp, days_from_civil};

/// The time that a date means; `None` for what is no date, and for times before 1970.
///
/// Reads as RFC 6265, section 5.1.1, tells for cookies: the parts are known by their looks, in
/// any order. All forms of RFC 9110 are among what that accepts. Weekday and zone add nothing:
/// HTTP knows only GMT.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    /// No form is longer than 33 characters; strangers' headers are.
    const DATE_BYTES_MAX: usize = 100;
    if text.len() > DATE_BYTES_MAX {
        return None;
    }
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for part in text.split(|c: char| !c.is_ascii_alphanumeric() && c != ':') {
        if time.is_none() && part.contains(':') {
            time = Some(second_of_day(part)?);
        } else if month.is_none() && month_number(part).is_some() {
            month = month_number(part);
        } else if day.is_none() && matches!(part.len(), 1..=2) && is_number(part) {
            day = part.parse().ok();
        } else if year.is_none() && matches!(part.len(), 2..=4) && is_number(part) {
            year = Some(full_year(part.parse().ok()?));
        }
    }
    let seconds = days_from_civil(year?, month?, day?)? * 86_400 + time?;
    Some(Timestamp(seconds * 1000))
}

fn is_number(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_digit())
}

fn full_year(year: u64) -> u64 {
    match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        _ => year,
    }
}

/// `08:49:37`.
fn second_of_day(part: &str) -> Option<u64> {
    let mut numbers = part.split(':').map(|number| {
        let is_short = matches!(number.len(), 1..=2) && is_number(number);
        if is_short { number.parse::<u64>().ok() } else { None }
    });
    let (hour, minute, second) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let is_time = hour < 24 && minute < 60 && second < 60 && numbers.next().is_none();
    is_time.then_some(hour * 3600 + minute * 60 + second)
}

fn month_number(part: &str) -> Option<u64> {
    const MONTHS: &str = "jan feb mar apr may jun jul aug sep oct nov dec";
    let short = part.get(..3)?.to_ascii_lowercase();
    let months_before = MONTHS.split(' ').position(|month| month == short)?;
    u64::try_from(months_before + 1).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(parse(text).map(Timestamp::rfc3339).as_deref(), Some(expect), "{text}");
    }

    #[test]
    fn all_forms_of_http() {
        check("Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z");
        check("Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37Z");
        check("Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37Z");
    }

    #[test]
    fn forms_of_cookies() {
        check("Wed, 21-Oct-2026 07:28:00 GMT", "2026-10-21T07:28:00Z");
        check("Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01T00:00:00Z");
        check("31 december 9999 23:59:59", "9999-12-31T23:59:59Z");
        check("Thu, 01-Jan-69 00:00:01 GMT", "2069-01-01T00:00:01Z");
    }

    #[test]
    fn what_is_no_date() {
        for text in [
            "",
            "soon",
            "-1",
            "1e9",
            "Sun, 06 Nov 1994",
            "Sun, 31 Feb 2026 08:49:37 GMT",
            "Mon, 01 Jan 1601 00:00:00 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:49:37:01 GMT",
            "Sun, 06 Nov 99999999999999999999 08:49:37 GMT",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&format!("Sun, 06 Nov 1994 08:49:37 GMT{}", " ".repeat(100))), None);
    }

    proptest! {
        #[test]
        fn any_text_is_a_date_or_none(text in "[ -~é]{0,40}", numbers in "[0-9: ]{0,30}(jan|feb)?") {
            let _ = parse(&text);
            let _ = parse(&numbers);
        }
    }
}
