//! Dates as people type them.

use telusur_model::Timestamp;

const DAY_MS: u64 = 86_400_000;

/// The first moment of a year, month or day: `2024`, `2024-05`, `2024-05-31`. Years before 1970 are
/// the beginning of 1970, where our time begins.
pub(super) fn first_moment(text: &str) -> Option<Timestamp> {
    days_since_1970(text).map(|days| Timestamp(days * DAY_MS))
}

fn parts_of(text: &str) -> Option<Vec<u32>> {
    let parts: Vec<u32> = text.split('-').map(str::parse).collect::<Result<_, _>>().ok()?;
    (parts.len() <= 3).then_some(parts)
}

fn days_since_1970(text: &str) -> Option<u64> {
    let parts = parts_of(text)?;
    let year = *parts.first()?;
    let month = parts.get(1).copied().unwrap_or(1);
    let day = parts.get(2).copied().unwrap_or(1);
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some(days_from_civil(i64::from(year), i64::from(month), i64::from(day)).try_into().unwrap_or(0))
}

/// Days from 1970-01-01, after Howard Hinnant's `days_from_civil`: years start in March, so that the
/// leap day is the last day of a year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(first_moment(text).unwrap().rfc3339(), format!("{expect}T00:00:00Z"));
    }

    #[test]
    fn years_months_and_days() {
        check("2024", "2024-01-01");
        check("2023-12", "2023-12-01");
        check("2024-2", "2024-02-01");
        check("2024-02-29", "2024-02-29");
        check("1901", "1970-01-01");
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in ["", "yesterday", "2024-13", "2024-1-1-1", "99999", "0", "-5", "2024-00"] {
            assert_eq!(first_moment(text), None, "{text}");
        }
    }
}
