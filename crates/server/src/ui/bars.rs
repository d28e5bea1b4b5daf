//! [`Bar`]: one line of a bar chart, drawn by the server, so that it needs no script.

use std::collections::BTreeMap;

use super::words::Lang;

/// One line of a bar chart.
#[derive(Debug, PartialEq)]
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) count: String,
    /// Its length, as a share of the longest.
    pub(crate) percent: u64,
    /// What its colour stands for: `good`, `plain` or `bad`.
    pub(crate) tone: &'static str,
}

/// Bars of these counts, in their order.
pub(crate) fn bars<'a>(
    lang: Lang,
    counts: impl Iterator<Item = (&'a str, u64)>,
    tone: impl Fn(&str) -> &'static str,
) -> Vec<Bar> {
    let counts: Vec<(&str, u64)> = counts.collect();
    let longest = counts.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let bar = |(label, count): (&str, u64)| Bar {
        tone: tone(label),
        label: label.to_owned(),
        count: lang.count(count),
        // What is there at all can be seen.
        percent: (count.saturating_mul(100) / longest).max(u64::from(count > 0)),
    };
    counts.into_iter().map(bar).collect()
}

/// Counts by name, the largest first.
pub(crate) fn by_count(counts: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    let mut sorted: Vec<(&str, u64)> =
        counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    sorted.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(right.0)));
    sorted
}

/// Counts by a number, the lowest first.
pub(crate) fn by_number(counts: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    let mut sorted: Vec<(&str, u64)> =
        counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    sorted.sort_by_key(|(name, _)| name.parse::<u64>().unwrap_or(u64::MAX));
    sorted
}

/// The tone of a status code.
pub(crate) fn status_tone(status: &str) -> &'static str {
    match status.as_bytes().first() {
        Some(b'2') => "good",
        Some(b'4' | b'5') => "bad",
        _ => "plain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_measured_by_the_longest() {
        let made = bars(Lang::En, [("200", 2000), ("404", 1), ("301", 0)].into_iter(), status_tone);
        let shown: Vec<_> = made.iter().map(|bar| (bar.percent, bar.tone)).collect();
        assert_eq!(shown, [(100, "good"), (1, "bad"), (0, "plain")]);
        assert_eq!(made[0].count, "2,000");
        assert!(bars(Lang::En, [].into_iter(), status_tone).is_empty());
    }

    #[test]
    fn depths_are_sorted_as_numbers() {
        let counts = ["10", "2", "0"].map(|name| (name.to_owned(), 1)).into();
        assert_eq!(by_number(&counts).iter().map(|it| it.0).collect::<Vec<_>>(), ["0", "2", "10"]);
    }
}
