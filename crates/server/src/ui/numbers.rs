//! Numbers, sizes, times and dates, written as people of a language write them.

use super::words::Lang;

impl Lang {
    /// A count with its thousands apart: `1,240`, `1.240`.
    pub(crate) fn count(self, number: u64) -> String {
        let digits = number.to_string();
        let mark = match self {
            Self::En => ',',
            Self::Id => '.',
        };
        let mut text = String::with_capacity(digits.len() + digits.len() / 3);
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                text.push(mark);
            }
            text.push(digit);
        }
        text
    }

    /// A number with so many digits behind its mark: `0.97`, `0,97`.
    pub(crate) fn decimal(self, number: f64, digits: usize) -> String {
        let text = format!("{number:.digits$}");
        match self {
            Self::En => text,
            Self::Id => text.replace('.', ","),
        }
    }

    /// A size: `48.2 MB`.
    pub(crate) fn bytes(self, bytes: u64) -> String {
        const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
        if bytes < 1000 {
            return format!("{bytes} B");
        }
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        let (mut size, mut unit) = (bytes as f64 / 1000.0, 0);
        while size >= 999.95 && unit + 1 < UNITS.len() {
            size /= 1000.0;
            unit += 1;
        }
        format!("{} {}", self.decimal(size, 1), UNITS[unit])
    }

    /// A span of time in its two largest units: `2 h 5 m`.
    pub(crate) fn seconds(self, seconds: u64) -> String {
        let [day, hour, minute, second] = match self {
            Self::En => ["d", "h", "min", "s"],
            Self::Id => ["hr", "jam", "mnt", "dtk"],
        };
        let parts = [
            (seconds / 86_400, day),
            (seconds / 3600 % 24, hour),
            (seconds / 60 % 60, minute),
            (seconds % 60, second),
        ];
        let largest = parts.iter().position(|(count, _)| *count > 0).unwrap_or(3);
        let shown = parts[largest..].iter().take(2).filter(|(count, _)| *count > 0);
        let shown: Vec<String> = shown.map(|(count, unit)| format!("{count} {unit}")).collect();
        if shown.is_empty() { format!("0 {second}") } else { shown.join(" ") }
    }

    /// A moment, from RFC 3339: its day and minute, in UTC.
    pub(crate) fn moment(self, rfc3339: &str) -> String {
        let day = self.day(rfc3339);
        let minute = rfc3339.get(11..16).unwrap_or_default();
        match self {
            Self::En => format!("{day} {minute} UTC"),
            Self::Id => format!("{day} {} UTC", minute.replace(':', ".")),
        }
    }

    /// A day, from RFC 3339: `16 Nov 2026`.
    pub(crate) fn day(self, rfc3339: &str) -> String {
        const EN: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        const ID: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "Mei", "Jun", "Jul", "Agu", "Sep", "Okt", "Nov", "Des"];
        let months = match self {
            Self::En => EN,
            Self::Id => ID,
        };
        let read = || {
            let month: usize = rfc3339.get(5..7)?.parse().ok()?;
            let day: u8 = rfc3339.get(8..10)?.parse().ok()?;
            let name = months.get(month.checked_sub(1)?)?;
            Some(format!("{day} {name} {}", rfc3339.get(0..4)?))
        };
        read().unwrap_or_else(|| rfc3339.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_their_thousands_apart() {
        for (number, en, id) in [
            (0, "0", "0"),
            (999, "999", "999"),
            (1240, "1,240", "1.240"),
            (12_480_000, "12,480,000", "12.480.000"),
        ] {
            assert_eq!((Lang::En.count(number), Lang::Id.count(number)), (en.into(), id.into()));
        }
    }

    #[test]
    fn sizes_have_three_digits_or_so() {
        for (bytes, expect) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (48_200_000, "48.2 MB"),
        ] {
            assert_eq!(Lang::En.bytes(bytes), expect);
        }
        assert_eq!(Lang::Id.bytes(48_200_000), "48,2 MB");
    }

    #[test]
    fn spans_show_two_units() {
        for (seconds, expect) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (175, "2 min 55 s"),
            (3600, "1 h"),
            (3605, "1 h"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(Lang::En.seconds(seconds), expect);
        }
    }

    #[test]
    fn moments_are_written_in_the_language() {
        let at = "2026-05-06T04:01:05.123Z";
        assert_eq!(Lang::En.moment(at), "6 May 2026 04:01 UTC");
        assert_eq!(Lang::Id.moment(at), "6 Mei 2026 04.01 UTC");
        assert_eq!(Lang::Id.day("soon"), "soon");
    }
}
