//! [`UrlShape`]: addresses that differ only in their values. A calendar or a shop with ten filters
//! can make up addresses of one shape for ever; how many of them are taken in is limited.

use xxhash_rust::xxh3::xxh3_64;

use crate::PageUrl;

/// Budgets by number of parameters: (parameters at least, URLs of one shape). Three are a search with a
/// filter and a page number; ten filters with ten values each are more pages than the web has.
const PARAMETERS_BUDGETS: [(usize, u32); 2] = [(4, 500), (3, 1000)];
/// Addresses of one shape with a date in them. 500 months are forty years.
const CALENDAR_BUDGET: u32 = 500;

/// Parameters that calendars turn their pages with.
const CALENDAR_PARAMETERS: &[&str] =
    &["cal", "date", "day", "month", "mon", "tanggal", "bulan", "tahun", "week", "year"];

/// What a URL has in common with others that a machine may have made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlShape {
    /// Which shape.
    pub hash: u32,
    /// How many URLs of it are taken in for one host.
    pub budget: u32,
    /// The shape in words: `/cal?month=*&year=*`.
    pub text: String,
}

impl UrlShape {
    /// The shape of a URL, if it is one that can go on for ever.
    pub fn of(url: &PageUrl) -> Option<Self> {
        let mut names: Vec<&str> = url.parameter_names().collect();
        let by_parameters = PARAMETERS_BUDGETS.iter().find(|(count, _)| names.len() >= *count);
        let is_calendar = has_calendar_parameter(&names) || is_dated_path(url.path());
        let budget = match (is_calendar, by_parameters) {
            (true, _) => CALENDAR_BUDGET,
            (false, Some((_, budget))) => *budget,
            (false, None) => return None,
        };
        names.sort_unstable();
        names.dedup();
        let text = text_of(url.path().trim_end_matches('/'), &names);
        let hash = u32::try_from(xxh3_64(text.as_bytes()) >> 32).expect("the upper half");
        Some(Self { hash, budget, text })
    }
}

impl PageUrl {
    /// The names of the query's parameters, as they stand there.
    pub fn parameter_names(&self) -> impl Iterator<Item = &str> {
        let pairs = self.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        pairs.map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name))
    }
}

fn has_calendar_parameter(names: &[&str]) -> bool {
    names.iter().any(|name| CALENDAR_PARAMETERS.iter().any(|word| name.eq_ignore_ascii_case(word)))
}

/// `/events/2031/05` and `/2031-05-12`: nothing but a date at the end. A story below a date has a
/// name of its own.
fn is_dated_path(path: &str) -> bool {
    let mut segments = path.trim_end_matches('/').rsplit('/');
    let is_number = |segment: &str| segment.bytes().all(|byte| byte.is_ascii_digit());
    let is_year = |segment: &str| segment.len() == 4 && is_number(segment);
    let last = segments.next().unwrap_or_default();
    let parts: Vec<&str> = last.split('-').collect();
    if parts.len() >= 2 && is_year(parts[0]) && parts[1..].iter().all(|part| is_short(part)) {
        return true;
    }
    let (second, third) =
        (segments.next().unwrap_or_default(), segments.next().unwrap_or_default());
    is_short(last) && (is_year(second) || is_short(second) && is_year(third))
}

/// A month or a day.
fn is_short(segment: &str) -> bool {
    (1..=2).contains(&segment.len()) && segment.bytes().all(|byte| byte.is_ascii_digit())
}

/// The path with its numbers and the query with its values left out.
fn text_of(path: &str, names: &[&str]) -> String {
    let mut text = String::with_capacity(path.len());
    for letter in path.chars() {
        match letter {
            '0'..='9' if text.ends_with('*') => {}
            '0'..='9' => text.push('*'),
            other => text.push(other),
        }
    }
    for (index, name) in names.iter().enumerate() {
        text.push(if index == 0 { '?' } else { '&' });
        text.push_str(name);
        text.push_str("=*");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(path: &str) -> Option<UrlShape> {
        UrlShape::of(&PageUrl::parse(&format!("http://a.org{path}")).unwrap())
    }

    #[track_caller]
    fn same(left: &str, right: &str, text: &str) {
        let (left, right) = (shape(left).unwrap(), shape(right).unwrap());
        assert_eq!((left.hash, left.text.as_str()), (right.hash, text));
    }

    #[test]
    fn filters_and_calendars_have_shapes() {
        same("/s?c=1&b=2&a=3", "/s?a=x&b=y&c=z", "/s?a=*&b=*&c=*");
        same("/cal?month=5&year=2031", "/cal?year=1&month=9", "/cal?month=*&year=*");
        same("/events/2031/05", "/events/1999/12/", "/events/*/*");
        same("/events/2031-05-12", "/events/2031-05-13", "/events/*-*-*");
    }

    #[test]
    fn items_and_stories_have_none() {
        for path in ["/item/1234", "/viewtopic.php?f=2&t=345", "/2024/05/a-story", "/", "/5/7"] {
            assert_eq!(shape(path), None, "{path}");
        }
    }
}
