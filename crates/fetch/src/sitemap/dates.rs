//! The two ways in which lists write dates: that of the W3C (`2004-12-23T18:00:15+00:00`, sitemaps,
//! Atom and JSON feeds) and that of RFC 822 (`Thu, 05 Jan 2017 13:34:51 +0100`, RSS). Lenient: zones
//! and seconds may be missing, and years may have two digits.

use telusur_model::Timestamp;

/// The time that a date means, if it can be understood and is not before 1970.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    let mut scan = Scan(text.trim());
    let is_w3c = text.trim().bytes().take_while(u8::is_ascii_digit).count() == 4;
    let seconds = if is_w3c { w3c(&mut scan)? } else { rfc822(&mut scan)? };
    if !scan.0.is_empty() {
        return None;
    }
    Some(Timestamp(u64::try_from(seconds).ok()?.checked_mul(1000)?))
}

/// `2004`, `2004-12`, `2004-12-23`, and with a time behind it.
fn w3c(scan: &mut Scan<'_>) -> Option<i64> {
    let year = scan.number(4)?;
    let month = if scan.take('-') { scan.number(2)? } else { 1 };
    let day = if scan.take('-') { scan.number(2)? } else { 1 };
    let midnight = days_since_1970(year, month, day)? * 86_400;
    if scan.0.is_empty() {
        return Some(midnight);
    }
    if !scan.take('T') && !scan.take('t') && !scan.take(' ') {
        return None;
    }
    Some(midnight + time_of_day(scan)? - zone(scan)?)
}

/// `Thu, 05 Jan 2017 13:34:51 +0100`; the weekday adds nothing and is not looked at.
fn rfc822(scan: &mut Scan<'_>) -> Option<i64> {
    if let Some((_, after)) = scan.0.split_once(',') {
        scan.0 = after;
    }
    scan.spaces();
    let day = scan.number(2)?;
    scan.spaces();
    let month = month(scan.word())?;
    scan.spaces();
    let digits = scan.0.bytes().take_while(u8::is_ascii_digit).count();
    let year = match (digits, scan.number(4)?) {
        // RFC 2822, 4.3.
        (2, year @ 0..50) => year + 2000,
        (2 | 3, year) => year + 1900,
        (_, year) => year,
    };
    let midnight = days_since_1970(year, month, day)? * 86_400;
    scan.spaces();
    if scan.0.is_empty() {
        return Some(midnight);
    }
    Some(midnight + time_of_day(scan)? - zone(scan)?)
}

/// Seconds since midnight; fractions are dropped.
fn time_of_day(scan: &mut Scan<'_>) -> Option<i64> {
    let hour = scan.number(2)?;
    let minute = if scan.take(':') { scan.number(2)? } else { return None };
    let second = if scan.take(':') { scan.number(2)? } else { 0 };
    if scan.take('.') {
        scan.0 = scan.0.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    // A leap second is written as 60, and is the first second of the next minute for us.
    let is_time = hour <= 24 && minute < 60 && second <= 60;
    is_time.then_some(hour * 3600 + minute * 60 + second)
}

/// Seconds east of Greenwich. No zone is taken as UTC: a date that is some hours off is worth more
/// than none.
fn zone(scan: &mut Scan<'_>) -> Option<i64> {
    scan.spaces();
    let sign = if scan.take('+') {
        1
    } else if scan.take('-') {
        -1
    } else {
        return named_zone(scan.word());
    };
    let hours = scan.number(2)?;
    scan.take(':');
    let minutes = if scan.0.is_empty() { 0 } else { scan.number(2)? };
    Some(sign * (hours * 3600 + minutes * 60))
}

/// The zones that RFC 822 names.
fn named_zone(word: &str) -> Option<i64> {
    let hours = match word.to_ascii_uppercase().as_str() {
        "" | "Z" | "UT" | "UTC" | "GMT" => 0,
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        _ => return None,
    };
    Some(hours * 3600)
}

fn month(word: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let short = word.get(..3)?.to_ascii_lowercase();
    let months_before = MONTHS.iter().position(|&month| month == short)?;
    i64::try_from(months_before + 1).ok()
}

/// Days from 1970-01-01 to a date that exists, after Howard Hinnant's `days_from_civil`: years start
/// in March, so that the leap day is the last day of a year.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_in_month = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days_in_month).contains(&day) {
        return None;
    }
    let year_from_march = if month > 2 { year } else { year - 1 };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let leap_days = year_from_march / 4 - year_from_march / 100 + year_from_march / 400;
    Some(year_from_march * 365 + leap_days + day_of_year - 719_468)
}

/// What is left to read.
struct Scan<'text>(&'text str);

impl<'text> Scan<'text> {
    /// One to `digits_max` digits.
    fn number(&mut self, digits_max: usize) -> Option<i64> {
        let digits = self.0.bytes().take(digits_max).take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        number.parse().ok()
    }

    fn word(&mut self) -> &'text str {
        let letters = self.0.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (word, rest) = self.0.split_at(letters);
        self.0 = rest;
        word
    }

    fn take(&mut self, expected: char) -> bool {
        match self.0.strip_prefix(expected) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn spaces(&mut self) {
        self.0 = self.0.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(parse(text).map(Timestamp::rfc3339).as_deref(), Some(expect), "{text}");
    }

    #[test]
    fn dates_of_the_w3c() {
        check("2004", "2004-01-01T00:00:00Z");
        check("2004-12", "2004-12-01T00:00:00Z");
        check(" 2004-12-23 ", "2004-12-23T00:00:00Z");
        check("2004-12-23T18:00:15+00:00", "2004-12-23T18:00:15Z");
        check("2004-12-23T18:00Z", "2004-12-23T18:00:00Z");
        check("2004-12-23T18:00:15.123+01:30", "2004-12-23T16:30:15Z");
        check("2004-12-31T23:00:00-0200", "2005-01-01T01:00:00Z");
        check("2004-12-23 18:00:15", "2004-12-23T18:00:15Z");
        check("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z");
    }

    #[test]
    fn dates_of_rfc_822() {
        check("Thu, 05 Jan 2017 13:34:51 +0100", "2017-01-05T12:34:51Z");
        check("Thu, 05 Jan 17 13:34:52 +0100", "2017-01-05T12:34:52Z");
        check("5 January 2017 13:34 GMT", "2017-01-05T13:34:00Z");
        check("05 Jan 17 13:34:55", "2017-01-05T13:34:55Z");
        check("Mon, 06 Sep 1999 00:01:00 PST", "1999-09-06T08:01:00Z");
        check("06 Sep 99", "1999-09-06T00:00:00Z");
    }

    #[test]
    fn leap_days_exist_in_leap_years_only() {
        check("2000-02-29", "2000-02-29T00:00:00Z");
        check("2024-03-01", "2024-03-01T00:00:00Z");
        assert_eq!(parse("2023-02-29"), None);
        assert_eq!(parse("1900-02-29"), None);
    }

    #[test]
    fn every_day_leads_back_to_itself() {
        for day in 0..60_000_u64 {
            let date = Timestamp(day * 86_400_000);
            assert_eq!(parse(&date.rfc3339()), Some(date));
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "yesterday",
            "2004-13-01",
            "2004-12-32",
            "2004-12-23T",
            "2004-12-23T25:00Z",
            "2004-12-23T18:00 Mars",
            "2004-12-23x",
            "1969-12-31",
            "Thu, 99 Jan 2017",
            "1",
            "ñ, ñ ñ",
            "05 ñaña 2017",
            "2004-12-23T18:00:15+",
            "20041223",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
