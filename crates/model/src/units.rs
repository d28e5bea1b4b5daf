//! Numbers and times as people write them, in flags, settings and the API alike: durations, sizes,
//! counts, rates, dates, and how long ago. What is written by one function is read back by its partner.

use crate::{Timestamp, days_from_civil};

const DAY_MS: u64 = 86_400_000;

/// Milliseconds from `500ms`, `2s`, `10m`, `1h30m`. A bare number is refused, because its unit would
/// be a guess; only 0 needs none.
pub fn read_duration_ms(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let mut rest = text;
    let mut total_ms: u64 = 0;
    let mut unit_before = u64::MAX;
    while !rest.is_empty() {
        let (number, after) = split_number(rest)?;
        let unit_end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let unit_ms = match &after[..unit_end] {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => DAY_MS,
            _ => return None,
        };
        // `30m1h` or `1s1s` is a slip of the finger.
        if unit_ms >= unit_before {
            return None;
        }
        unit_before = unit_ms;
        total_ms = total_ms.checked_add(number.times(unit_ms)?)?;
        rest = &after[unit_end..];
    }
    (!text.is_empty()).then_some(total_ms)
}

/// The duration so that [`read_duration_ms`] reads it back.
pub fn write_duration_ms(ms: u64) -> String {
    if ms == 0 {
        return "0s".to_owned();
    }
    let parts = [
        (ms / 3_600_000, "h"),
        (ms / 60_000 % 60, "m"),
        (ms / 1_000 % 60, "s"),
        (ms % 1_000, "ms"),
    ];
    parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect()
}

/// The duration for a summary: `2.4s`, `3m54s`, `26h05m`.
pub fn show_duration_ms(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..10 => format!("{seconds}.{}s", ms % 1_000 / 100),
        10..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
    }
}

const SIZE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

/// Bytes from `10kB`, `1MiB`, `1.5GiB`, or a bare number of bytes.
pub fn read_size(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text)?;
    let unit = unit.strip_prefix(' ').unwrap_or(unit);
    if unit.is_empty() {
        return number.times(1);
    }
    let (_, bytes) = SIZE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    number.times(*bytes)
}

/// The size so that [`read_size`] reads back exactly this number of bytes.
pub fn write_size(bytes: u64) -> String {
    let exact = SIZE_UNITS.iter().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    match exact {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => "0B".to_owned(),
    }
}

/// The size for a summary, rounded: `193 MB`, `1.9 GB`.
pub fn show_size(bytes: u64) -> String {
    let (name, unit) = match bytes {
        0..1_000 => return format!("{bytes} B"),
        1_000..1_000_000 => ("kB", 1_000),
        1_000_000..1_000_000_000 => ("MB", 1_000_000),
        1_000_000_000..1_000_000_000_000 => ("GB", 1_000_000_000),
        _ => ("TB", 1_000_000_000_000),
    };
    let whole = bytes / unit;
    if whole < 10 {
        format!("{whole}.{} {name}", bytes % unit * 10 / unit)
    } else {
        format!("{whole} {name}")
    }
}

/// A count from `1000`, `1_000`, `10k`, `1m`.
pub fn read_count(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text)?;
    match unit {
        "" => number.times(1),
        "k" | "K" => number.times(1_000),
        "m" | "M" => number.times(1_000_000),
        _ => None,
    }
}

/// The count in groups of three: `12,480`.
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Events per second from `2/s`, `0.5/s`, `30/m`.
pub fn read_rate(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once('/')?;
    let seconds = match unit {
        "s" => 1.0,
        "m" | "min" => 60.0,
        _ => return None,
    };
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = number.parse().ok().filter(|_| is_plain)?;
    Some(number / seconds)
}

/// The first moment of a year, month or day, in UTC: `2024`, `2024-05`, `2024-05-31`. Years before
/// 1970 are the beginning of 1970, where our time begins.
pub fn read_date(text: &str) -> Option<Timestamp> {
    let number = |text: &str| {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| is_number)
    };
    // A shorter number would be anything but a year.
    if text.find('-').unwrap_or(text.len()) != "2024".len() {
        return None;
    }
    let mut parts = text.splitn(3, '-').map(number);
    let year = parts.next()??;
    let (month, day) = (parts.next().unwrap_or(Some(1))?, parts.next().unwrap_or(Some(1))?);
    if year < 1970 {
        // The calendar repeats itself every 400 years.
        return days_from_civil(year + 2000, month, day).map(|_| Timestamp(0));
    }
    days_from_civil(year, month, day).map(|days| Timestamp(days * DAY_MS))
}

/// The moment that `30d`, `12h`, `2026-01-31` or `2026` means: as long ago as that, or a date.
pub fn read_since(text: &str, now: Timestamp) -> Option<Timestamp> {
    let ago = || read_duration_ms(text).map(|ms| Timestamp(now.0.saturating_sub(ms)));
    read_date(text).or_else(ago)
}

/// A decimal number in thousandths, so that `1.5GiB` is exact.
struct Decimal {
    thousandths: u64,
}

impl Decimal {
    /// The product, where it is a whole number that fits.
    fn times(&self, unit: u64) -> Option<u64> {
        let product = u128::from(self.thousandths) * u128::from(unit);
        product.is_multiple_of(1_000).then_some(product / 1_000)?.try_into().ok()
    }
}

/// A number in front of a text, `1_000` and `1.5` included, and what follows it.
fn split_number(text: &str) -> Option<(Decimal, &str)> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '_' | '.');
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_grouped = |digits: &str| {
        digits.split('_').all(|group| !group.is_empty())
            && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
    };
    if !is_grouped(whole) || !is_grouped(fraction) || fraction.len() > 3 {
        return None;
    }
    let whole: u64 = whole.replace('_', "").parse().ok()?;
    let fraction: u64 = format!("{fraction:0<3}").parse().ok()?;
    let thousandths = whole.checked_mul(1_000)?.checked_add(fraction)?;
    Some((Decimal { thousandths }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations() {
        let check = |text, ms| assert_eq!(read_duration_ms(text), ms, "{text:?}");
        check("500ms", Some(500));
        check("2s", Some(2_000));
        check("1.5s", Some(1_500));
        check("10m", Some(600_000));
        check("1h30m", Some(5_400_000));
        check("1d", Some(86_400_000));
        check("0", Some(0));
        check("0s", Some(0));
        for wrong in ["", "5", "-1s", "1x", "s", "30m1h", "1s1s", "1 s", "1e3s", "99999999999999h"]
        {
            check(wrong, None);
        }
    }

    #[test]
    fn sizes() {
        let check = |text, bytes| assert_eq!(read_size(text), bytes, "{text:?}");
        check("1MiB", Some(1 << 20));
        check("10kB", Some(10_000));
        check("10 KB", Some(10_000));
        check("1.5GiB", Some(3 << 29));
        check("1048576", Some(1 << 20));
        for wrong in ["", "MiB", "1 mb x", "-1B", "0.1B", "1_B", "99999999TiB", "1e3"] {
            check(wrong, None);
        }
    }

    #[test]
    fn counts() {
        let check = |text, count| assert_eq!(read_count(text), count, "{text:?}");
        check("0", Some(0));
        check("1_000", Some(1_000));
        check("10k", Some(10_000));
        check("1.5m", Some(1_500_000));
        for wrong in ["", "k", "1_", "_1", "1.5", "-1", "+1", "1e3", "18446744073709551616", "1g"] {
            check(wrong, None);
        }
    }

    #[test]
    fn rates() {
        assert_eq!(read_rate("2/s"), Some(2.0));
        assert_eq!(read_rate("0.5/s"), Some(0.5));
        assert_eq!(read_rate("30/m"), Some(0.5));
        for wrong in ["2", "/s", "-1/s", "inf/s", "nan/s", "1/h", "1e3/s"] {
            assert_eq!(read_rate(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn dates() {
        let check = |text, day: &str| {
            let read = read_date(text).map(Timestamp::rfc3339);
            assert_eq!(read, Some(format!("{day}T00:00:00Z")), "{text:?}");
        };
        check("2024", "2024-01-01");
        check("2023-12", "2023-12-01");
        check("2024-2", "2024-02-01");
        check("2024-02-29", "2024-02-29");
        check("1901", "1970-01-01");
        check("1600-02-29", "1970-01-01");
        for wrong in [
            "",
            "yesterday",
            "2024-13",
            "2024-1-1-1",
            "99999",
            "0",
            "-5",
            "2024-00",
            "+2024",
            "2023-02-29",
            "1900-02-30",
            "2024-",
            "30d",
        ] {
            assert_eq!(read_date(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn since_is_a_date_or_how_long_ago() {
        let now = Timestamp(1_800_000_000_000);
        let check = |text, expect: Option<u64>| {
            assert_eq!(read_since(text, now), expect.map(Timestamp), "{text:?}");
        };
        check("30d", Some(now.0 - 30 * DAY_MS));
        check("1h30m", Some(now.0 - 5_400_000));
        check("0", Some(now.0));
        check("2026-01-31", Some(1_769_817_600_000));
        check("2026", Some(1_767_225_600_000));
        check("99999d", Some(0));
        for wrong in ["", "30", "yesterday", "2026-02-30", "-1d", "30d ago"] {
            check(wrong, None);
        }
    }

    #[test]
    fn for_people() {
        assert_eq!(show_count(0), "0");
        assert_eq!(show_count(1_240), "1,240");
        assert_eq!(show_count(1_234_567), "1,234,567");
        assert_eq!(show_size(999), "999 B");
        assert_eq!(show_size(1_950_000_000), "1.9 GB");
        assert_eq!(show_size(193_400_000), "193 MB");
        assert_eq!(show_duration_ms(2_460), "2.4s");
        assert_eq!(show_duration_ms(234_000), "3m54s");
        assert_eq!(show_duration_ms(93_900_000), "26h05m");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(number in 0u64..1 << 50) {
            prop_assert_eq!(read_duration_ms(&write_duration_ms(number)), Some(number));
            prop_assert_eq!(read_size(&write_size(number)), Some(number));
        }

        #[test]
        fn no_text_is_a_panic(text in "\\PC{0,12}|[0-9._kmghsB]{0,12}") {
            let _ = (read_duration_ms(&text), read_size(&text), read_count(&text), read_rate(&text));
            let _ = read_since(&text, Timestamp(0));
        }
    }
}
