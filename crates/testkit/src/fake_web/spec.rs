//! [`FakeWebSpec`]: what a synthetic web looks like, in a few numbers that fit on a command line.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::random::Dice;

/// What a synthetic web looks like. Its text form is `seed=1,hosts=10,pages=20000,…`; parts that
/// are left out of it have their default.
#[derive(Clone, Debug, PartialEq)]
pub struct FakeWebSpec {
    /// Two webs of one spec differ if their seeds do.
    pub seed: u64,
    /// How many hosts there are.
    pub hosts: usize,
    /// How many pages they have.
    pub pages: PageCounts,
    /// Links on every page.
    pub links_per_page: usize,
    /// About how long the HTML of a page is.
    pub page_bytes: usize,
    /// The share of links that lead to other hosts.
    pub other_host_share: f64,
    /// How long answers take.
    pub delay_ms: DelayRange,
    /// Hosts, by index, whose answers take another time than `delay_ms`.
    pub host_delays_ms: BTreeMap<usize, DelayRange>,
    /// What goes wrong.
    pub faults: FaultShares,
}

impl Default for FakeWebSpec {
    fn default() -> Self {
        Self {
            seed: 1,
            hosts: 10,
            pages: PageCounts::Even { total: 20_000 },
            links_per_page: 50,
            page_bytes: 20_000,
            other_host_share: 0.1,
            delay_ms: DelayRange::default(),
            host_delays_ms: BTreeMap::new(),
            faults: FaultShares::default(),
        }
    }
}

/// How many pages each host has; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageCounts {
    /// A total, spread evenly over all hosts (give or take one page).
    Even {
        /// Pages of all hosts.
        total: u64,
    },
    /// A total; the second host has half as many as the first, the third a third …
    Zipf {
        /// Pages of all hosts.
        total: u64,
    },
    /// One number per host, the last one for all that remain.
    Listed(Vec<u64>),
}

/// How long an answer takes, in milliseconds. Each page has its own time between the two, the same
/// whenever it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayRange {
    /// Shortest.
    pub min: u64,
    /// Longest.
    pub max: u64,
}

impl DelayRange {
    /// Always the same time.
    pub fn fixed(ms: u64) -> Self {
        Self { min: ms, max: ms }
    }

    /// A time between the two.
    pub(super) fn pick(self, dice: &mut Dice) -> Duration {
        let width = (self.max - self.min).saturating_add(1);
        Duration::from_millis(self.min + dice.below(width))
    }
}

/// What goes wrong, as shares between 0 and 1. All are 0 by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultShares {
    /// Pages that answer 500 to the first request and are fine after it.
    pub error_once: f64,
    /// Pages that cut the connection at the first request and are fine after it.
    pub reset_once: f64,
    /// Pages that cut every connection.
    pub reset_always: f64,
    /// Links that lead to a 404.
    pub dead_links: f64,
    /// Pages that are linked by an old address, which redirects.
    pub redirects: f64,
    /// Pages that do not exist among the numbered ones.
    pub gaps: f64,
}

/// Why a text is not a [`FakeWebSpec`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// A part that is not `name=value`, or whose value cannot be read.
    #[error("cannot read {0:?} in the description of a web")]
    Unreadable(String),
    /// A name that means nothing.
    #[error("a web has no {0:?}")]
    UnknownName(String),
    /// Numbers that contradict each other.
    #[error("{0}")]
    Impossible(&'static str),
}

impl FakeWebSpec {
    /// Finds what would make a web impossible.
    pub fn check(&self) -> Result<(), SpecError> {
        let shares = [
            self.other_host_share,
            self.faults.error_once,
            self.faults.reset_once,
            self.faults.reset_always,
            self.faults.dead_links,
            self.faults.redirects,
            self.faults.gaps,
        ];
        let delays = self.host_delays_ms.values().chain([&self.delay_ms]);
        let impossible = if self.hosts == 0 || self.hosts > HOSTS_MAX {
            "a web has at least one host, and at most 16 million"
        } else if matches!(&self.pages, PageCounts::Listed(counts) if counts.is_empty()) {
            "the list of page counts is empty"
        } else if self.links_per_page == 0 {
            "without links, only the first page of a host could be found"
        } else if shares.iter().any(|share| !(0.0..=1.0).contains(share)) {
            "a share lies between 0 and 1"
        } else if delays.into_iter().any(|range| range.min > range.max) {
            "the shortest delay is longer than the longest"
        } else {
            return Ok(());
        };
        Err(SpecError::Impossible(impossible))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), SpecError> {
        if let Some(host) = name.strip_prefix("delay.") {
            self.host_delays_ms.insert(number(host)?, delay_range(value)?);
            return Ok(());
        }
        match name {
            "seed" => self.seed = number(value)?,
            "hosts" => self.hosts = number(value)?,
            "pages" => self.pages = page_counts(value)?,
            "links" => self.links_per_page = number(value)?,
            "bytes" => self.page_bytes = number(value)?,
            "other-hosts" => self.other_host_share = number(value)?,
            "delay" => self.delay_ms = delay_range(value)?,
            "error-once" => self.faults.error_once = number(value)?,
            "reset-once" => self.faults.reset_once = number(value)?,
            "reset-always" => self.faults.reset_always = number(value)?,
            "dead-links" => self.faults.dead_links = number(value)?,
            "redirects" => self.faults.redirects = number(value)?,
            "gaps" => self.faults.gaps = number(value)?,
            _ => return Err(SpecError::UnknownName(name.to_owned())),
        }
        Ok(())
    }
}

/// Every host needs an address of its own in 127.0.0.0/8, and 127.0.x.y is left alone.
const HOSTS_MAX: usize = 16_000_000;

impl FromStr for FakeWebSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut spec = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) =
                part.split_once('=').ok_or_else(|| SpecError::Unreadable(part.to_owned()))?;
            spec.set(name, value)?;
        }
        spec.check()?;
        Ok(spec)
    }
}

impl fmt::Display for FakeWebSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed={},hosts={},pages={}", self.seed, self.hosts, self.pages)?;
        write!(f, ",links={},bytes={}", self.links_per_page, self.page_bytes)?;
        write!(f, ",other-hosts={},delay={}", self.other_host_share, self.delay_ms)?;
        for (host, delay) in &self.host_delays_ms {
            write!(f, ",delay.{host}={delay}")?;
        }
        let faults = &self.faults;
        write!(f, ",error-once={},reset-once={}", faults.error_once, faults.reset_once)?;
        write!(f, ",reset-always={},dead-links={}", faults.reset_always, faults.dead_links)?;
        write!(f, ",redirects={},gaps={}", faults.redirects, faults.gaps)
    }
}

impl fmt::Display for PageCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Even { total } => write!(f, "{total}"),
            Self::Zipf { total } => write!(f, "zipf:{total}"),
            Self::Listed(counts) => {
                let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
                write!(f, "list:{}", counts.join("/"))
            }
        }
    }
}

impl fmt::Display for DelayRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.min, self.max)
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, SpecError> {
    text.parse().map_err(|_| SpecError::Unreadable(text.to_owned()))
}

fn page_counts(text: &str) -> Result<PageCounts, SpecError> {
    if let Some(total) = text.strip_prefix("zipf:") {
        return Ok(PageCounts::Zipf { total: number(total)? });
    }
    match text.strip_prefix("list:") {
        Some(counts) => {
            counts.split('/').map(number).collect::<Result<_, _>>().map(PageCounts::Listed)
        }
        None => Ok(PageCounts::Even { total: number(text)? }),
    }
}

/// `40` or `10..40`.
fn delay_range(text: &str) -> Result<DelayRange, SpecError> {
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    Ok(DelayRange { min: number(min)?, max: number(max)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str) -> SpecError {
        text.parse::<FakeWebSpec>().unwrap_err()
    }

    #[test]
    fn nothing_is_the_default() {
        assert_eq!("".parse::<FakeWebSpec>().unwrap(), FakeWebSpec::default());
    }

    #[test]
    fn every_part_survives_the_way_through_text() {
        let spec = FakeWebSpec {
            seed: 9,
            hosts: 3,
            pages: PageCounts::Listed(vec![100, 5]),
            links_per_page: 7,
            page_bytes: 900,
            other_host_share: 0.25,
            delay_ms: DelayRange { min: 1, max: 20 },
            host_delays_ms: BTreeMap::from([(2, DelayRange::fixed(500))]),
            faults: FaultShares {
                error_once: 0.1,
                reset_once: 0.2,
                reset_always: 0.3,
                dead_links: 0.4,
                redirects: 0.5,
                gaps: 0.6,
            },
        };
        assert_eq!(spec.to_string().parse::<FakeWebSpec>().unwrap(), spec);
        let zipf = FakeWebSpec { pages: PageCounts::Zipf { total: 77 }, ..FakeWebSpec::default() };
        assert_eq!(zipf.to_string().parse::<FakeWebSpec>().unwrap(), zipf);
    }

    #[test]
    fn one_delay_is_a_range_of_one() {
        let spec: FakeWebSpec = "delay=40,delay.3=1..2".parse().unwrap();
        assert_eq!(spec.delay_ms, DelayRange::fixed(40));
        assert_eq!(spec.host_delays_ms[&3], DelayRange { min: 1, max: 2 });
    }

    #[test]
    fn nonsense_is_named() {
        assert_eq!(refused("hosts"), SpecError::Unreadable("hosts".into()));
        assert_eq!(refused("hosts=many"), SpecError::Unreadable("many".into()));
        assert_eq!(refused("colour=red"), SpecError::UnknownName("colour".into()));
    }

    #[test]
    fn impossible_webs_are_refused() {
        for text in ["hosts=0", "links=0", "redirects=1.5", "delay=9..3", "dead-links=NaN"] {
            assert!(matches!(refused(text), SpecError::Impossible(_)), "{text}");
        }
    }
}
