//! [`IdRanges`]: a set of ids as ranges, in order. Costs memory by the range, not by the id.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Ranges in a list of ids: 16 MB of memory. A longer list is better given as several crawls.
pub const ID_RANGES_MAX: usize = 1_000_000;

/// Most of a wrong line that is repeated.
const SHOWN_CHARS_MAX: usize = 80;

/// Ids as ranges that are inclusive, in order, and apart from each other. Copies share them: a crawl may
/// have a thousand templates with the same ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdRanges(Arc<[(u64, u64)]>);

impl Serialize for IdRanges {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for IdRanges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(|ranges| Self(ranges.into()))
    }
}

/// A list of ids that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdListError {
    /// A line is neither an id nor a range.
    #[error("line {line} of the list is not an id: {text:?}")]
    NotAnId {
        /// Counted from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// A range ends before it begins.
    #[error("line {line} of the list is a range that ends before it begins: {text:?}")]
    Reversed {
        /// Counted from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// More than [`ID_RANGES_MAX`] ranges.
    #[error("the list has more than {ID_RANGES_MAX} ranges of ids")]
    TooMany,
}

impl IdRanges {
    /// One range, both ends inclusive; none if it ends before it begins.
    pub fn one(first: u64, last: u64) -> Self {
        Self(if first <= last { Arc::from([(first, last)]) } else { Arc::default() })
    }

    /// Any ranges: sorted, and joined where they overlap or adjoin.
    pub fn new(mut ranges: Vec<(u64, u64)>) -> Self {
        ranges.retain(|(first, last)| first <= last);
        ranges.sort_unstable();
        ranges.dedup_by(|later, earlier| {
            let joins = later.0 <= earlier.1.saturating_add(1);
            if joins {
                earlier.1 = earlier.1.max(later.1);
            }
            joins
        });
        Self(ranges.into())
    }

    /// Reads a list: an id or a range `10-20` on each line, `#` begins a comment. Order and
    /// repetitions make no difference.
    pub fn parse(text: &str) -> Result<Self, IdListError> {
        Self::parse_at_most(text, ID_RANGES_MAX)
    }

    fn parse_at_most(text: &str, ranges_max: usize) -> Result<Self, IdListError> {
        let mut ranges = Vec::new();
        for (index, whole) in text.lines().enumerate() {
            let line = index + 1;
            let content = whole.split('#').next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            let shown = || content.chars().take(SHOWN_CHARS_MAX).collect();
            let not_an_id = || IdListError::NotAnId { line, text: shown() };
            let (first, last) = content.split_once('-').unwrap_or((content, content));
            let id = |text: &str| text.trim().parse().map_err(|_| not_an_id());
            let (first, last): (u64, u64) = (id(first)?, id(last)?);
            if first > last {
                return Err(IdListError::Reversed { line, text: shown() });
            }
            ranges.push((first, last));
            if ranges.len() > 2 * ranges_max {
                // Lists of single ids shrink a lot when they are joined.
                ranges = Self::new(ranges).0.to_vec();
                if ranges.len() > ranges_max {
                    return Err(IdListError::TooMany);
                }
            }
        }
        let ranges = Self::new(ranges);
        if ranges.0.len() > ranges_max { Err(IdListError::TooMany) } else { Ok(ranges) }
    }

    /// The part between two ids, both inclusive.
    pub fn between(&self, low: u64, high: u64) -> Self {
        let is_all = self.0.first().is_none_or(|&(first, _)| low <= first)
            && self.0.last().is_none_or(|&(_, last)| last <= high);
        if is_all {
            return self.clone();
        }
        let clipped = self.0.iter().map(|&(first, last)| (first.max(low), last.min(high)));
        Self(clipped.filter(|(first, last)| first <= last).collect())
    }

    /// Whether an id is in one of the ranges.
    pub fn contains(&self, id: u64) -> bool {
        let after = self.0.partition_point(|&(first, _)| first <= id);
        after > 0 && self.0[after - 1].1 >= id
    }

    /// The ranges in order, both ends inclusive.
    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// Whether there is no id.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[(u64, u64)]) {
        assert_eq!(IdRanges::parse(text).unwrap().as_slice(), expect);
    }

    #[test]
    fn lists() {
        check("", &[]);
        check("7", &[(7, 7)]);
        check("9\n7\n8\n7\n", &[(7, 9)]);
        check("# ids\n 10 - 20 # range\r\n\n15-25\n27", &[(10, 25), (27, 27)]);
        check("0\n18446744073709551615", &[(0, 0), (u64::MAX, u64::MAX)]);
        check("0-18446744073709551615\n5", &[(0, u64::MAX)]);
    }

    #[test]
    fn lines_that_are_no_ids() {
        for text in ["x", "-1", "1-", "1.5", "18446744073709551616", "1 2"] {
            let error = IdRanges::parse(&format!("1\n{text}")).unwrap_err();
            assert_eq!(error, IdListError::NotAnId { line: 2, text: text.into() });
        }
        let error = IdRanges::parse("20-10").unwrap_err();
        assert_eq!(error, IdListError::Reversed { line: 1, text: "20-10".into() });
    }

    #[test]
    fn a_list_is_bounded_by_its_ranges() {
        let list = |step: u64, lines: u64| -> String {
            (0..lines).map(|line| format!("{}\n", line * step)).collect()
        };
        assert_eq!(IdRanges::parse_at_most(&list(2, 4), 3), Err(IdListError::TooMany));
        assert_eq!(IdRanges::parse_at_most(&list(2, 99), 3), Err(IdListError::TooMany));
        assert_eq!(IdRanges::parse_at_most(&list(2, 3), 3).unwrap().as_slice().len(), 3);
        assert_eq!(IdRanges::parse_at_most(&list(1, 99), 3).unwrap().as_slice(), [(0, 98)]);
    }

    #[test]
    fn copies_share_their_ranges() {
        let ranges = IdRanges::parse("1-5\n8").unwrap();
        for copy in [ranges.clone(), ranges.between(0, 9), ranges.between(1, 8)] {
            assert!(Arc::ptr_eq(&ranges.0, &copy.0));
        }
    }

    #[test]
    fn the_part_between() {
        let ranges = IdRanges::parse("1-5\n8\n10-12").unwrap();
        assert_eq!(ranges.between(4, 10).as_slice(), [(4, 5), (8, 8), (10, 10)]);
        assert!(ranges.between(6, 7).is_empty());
        let inside: Vec<u64> = (0..14).filter(|id| ranges.contains(*id)).collect();
        assert_eq!(inside, [1, 2, 3, 4, 5, 8, 10, 11, 12]);
    }
}
