//! Two kinds of time that must never be mixed: [`Moment`] orders events inside one process,
//! [`Timestamp`] is what a calendar shows and may jump.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds on the process's own monotonic clock. All delays are counted in these, so that a
/// jump of the system clock neither hammers a host nor freezes a crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// The moment `ms` milliseconds after this one.
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this moment; zero if `earlier` is not earlier.
    pub fn ms_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Milliseconds since 1970 by the system clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The time `duration` after this one.
    pub fn plus(self, duration: Duration) -> Self {
        let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(ms))
    }

    /// `2026-11-15T17:59:26Z`, as RFC 3339 writes it, in UTC and whole seconds.
    pub fn rfc3339(self) -> String {
        let seconds = self.0 / 1000;
        let (year, month, day) = civil_from_days(seconds / 86_400);
        let of_day = seconds % 86_400;
        format!(
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
            of_day / 3600,
            of_day / 60 % 60,
            of_day % 60
        )
    }

    /// The time that [`rfc3339`](Self::rfc3339) wrote, to the second.
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
        let days = days_from_civil(number(0..4)?, number(5..7)?, number(8..10)?)?;
        let of_day = number(11..13)? * 3600 + number(14..16)? * 60 + number(17..19)?;
        let time = Self((days * 86_400 + of_day) * 1000);
        (time.rfc3339() == text).then_some(time)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rfc3339())
    }
}

const DAYS_FROM_0000_03_01_TO_1970: u64 = 719_468;

/// Gregorian date of a day counted from 1970-01-01, after Howard Hinnant's `civil_from_days`:
/// years start in March, so that the leap day is the last day of a year.
fn civil_from_days(days_since_1970: u64) -> (u64, u64, u64) {
    const DAYS_PER_400_YEARS: u64 = 146_097;
    let days = days_since_1970 + DAYS_FROM_0000_03_01_TO_1970;
    let era = days / DAYS_PER_400_YEARS;
    let day_of_era = days % DAYS_PER_400_YEARS;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, the inverse of [`civil_from_days`].
/// `None` for a date that does not exist, or lies before 1970.
pub fn days_from_civil(year: u64, month: u64, day: u64) -> Option<u64> {
    // Far beyond every calendar, and small enough for the sums below.
    const YEAR_MAX: u64 = 1_000_000;
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days_in_month = match month {
        2 => 28 + u64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1970..=YEAR_MAX).contains(&year) || !(1..=days_in_month).contains(&day) {
        return None;
    }
    let year_from_march = year - u64::from(month <= 2);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let leap_days = year_from_march / 4 - year_from_march / 100 + year_from_march / 400;
    (year_from_march * 365 + leap_days + day_of_year).checked_sub(DAYS_FROM_0000_03_01_TO_1970)
}

/// The two clocks, handed in, so that a test can run hours in milliseconds.
pub trait Clock: Send + Sync {
    /// Now, on the monotonic clock.
    fn now(&self) -> Moment;
    /// Now, by the calendar.
    fn wall(&self) -> Timestamp;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seconds: u64, expect: &str) {
        assert_eq!(Timestamp(seconds * 1000).rfc3339(), expect);
    }

    #[test]
    fn calendar_dates() {
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_399, "2000-02-28T23:59:59Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(1_794_765_566, "2026-11-15T17:59:26Z");
        check(4_294_967_296, "2106-02-07T06:28:16Z");
    }
    #[test]
    fn every_day_leads_back_to_itself() {
        for days in 0..200_000 {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), Some(days));
        }
    }

    #[test]
    fn dates_that_do_not_exist() {
        for (year, month, day) in [
            (1969, 12, 31),
            (2023, 2, 29),
            (2024, 13, 1),
            (2024, 0, 1),
            (2024, 4, 31),
            (2024, 1, 0),
        ] {
            assert_eq!(days_from_civil(year, month, day), None, "{year}-{month}-{day}");
        }
        assert_eq!(days_from_civil(u64::MAX, 1, 1), None);
    }
}
