//! What is shown of a running crawl, and how evenly it treats its sites.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{CrawlNo, CrawlState, CrawlStats, Host, Reason, Timestamp, WalkCoverage};

/// A snapshot of a crawl at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Which crawl.
    pub crawl: CrawlNo,
    /// What it is doing.
    pub state: CrawlState,
    /// Its counters.
    pub stats: CrawlStats,
    /// Visits under way.
    pub in_flight: u64,
    /// Pages per second over the last seconds.
    pub pages_per_second: f64,
    /// Seconds left, where a guess is possible.
    pub eta_s: Option<u64>,
    /// The most served sites.
    pub sites: Vec<SiteShare>,
    /// How many sites have been served at all.
    pub sites_total: u64,
    /// Jain's index over the pages of all sites.
    pub fairness_index: f64,
    /// Nothing answers any more, on any host: the fault may be on this side.
    #[serde(default)]
    pub suspects_network: bool,
    /// Every host that is left asked us to wait with Retry-After: nothing can be asked for this long.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
    /// Pages of all crawls of the process that are stored and cannot be found yet.
    #[serde(default)]
    pub index_lag: u64,
    /// What else is derived from pages and is behind: its name, and by how many pages.
    #[serde(default)]
    pub followers_behind: Vec<(String, u64)>,
    /// The walks of a linear crawl.
    #[serde(default)]
    pub walks: Vec<WalkCoverage>,
    /// Hosts that are not asked for now, and why.
    #[serde(default)]
    pub parked: Vec<ParkedHost>,
    /// Sites of which nothing is asked for now, because many of their pages wait for the parser.
    #[serde(default)]
    pub parse_backlog: Vec<String>,
}

impl Progress {
    /// Why a host is not asked at present, in words, if it is for what its pages do.
    pub fn why_host_waits(&self, host: &str) -> Option<String> {
        if let Some(parked) = self.parked.iter().find(|parked| parked.covers(host)) {
            return Some(parked.text());
        }
        let site = self.parse_backlog.iter().find(|site| is_of_site(host, site))?;
        Some(format!("{host} waits: pages of {site} wait for the parser"))
    }
}

fn is_of_site(host: &str, site: &str) -> bool {
    host.strip_suffix(site).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// A host that is left alone because of what its pages do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParkedHost {
    /// The host; for all hosts of a site, `*.` and the site.
    pub host: String,
    /// Why it is parked.
    pub reason: Reason,
    /// Pages in a row that were the reason.
    pub pages: u32,
    /// Seconds until it is tried again; `None`: it is not, in this run.
    pub left_s: Option<u64>,
}

impl ParkedHost {
    /// Whether a host is, or is one of, those that are parked.
    pub fn covers(&self, host: &str) -> bool {
        match self.host.strip_prefix("*.") {
            Some(site) => is_of_site(host, site),
            None => self.host == host,
        }
    }

    /// What is the matter, in words.
    pub fn text(&self) -> String {
        let Self { host, reason, pages, left_s } = self;
        let until = match left_s {
            Some(left_s) => format!("is parked for {left_s} s"),
            None => "is given up".to_owned(),
        };
        format!("{host} {until}: {pages} of its pages in a row stopped the parser ({reason})")
    }
}

/// A site's share of a crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteShare {
    /// The site.
    pub site: String,
    /// Its pages.
    pub pages: u64,
    /// URLs waiting.
    pub queued: u64,
}

/// What is kept about a host within a crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRow {
    /// The host.
    pub host: Host,
    /// URLs waiting, or under way.
    pub queued: u64,
    /// URLs ever taken in: what the host's budget counts.
    pub admitted: u64,
    /// Pages stored.
    pub pages: u64,
    /// URLs that failed or answered with an error.
    pub errors: u64,
    /// When the last request was sent.
    pub last_request_at: Option<Timestamp>,
    /// The delay that was learned for it; `None` is the crawl's own.
    pub delay_ms: Option<u64>,
    /// What was asked of it, for its webmaster.
    pub requests: RequestHistory,
    /// Sitemaps taken in.
    pub sitemaps: u32,
    /// URLs that a rule refused of which a site can make up any number: robots.txt, a trap. In rows
    /// of earlier versions also those that a budget left out.
    pub refused: u64,
    /// URLs taken in by their template, for those kinds of address that can go on for ever.
    pub templates: BTreeMap<u32, u32>,
}

/// How a host was asked: what one can show its webmaster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestHistory {
    /// Requests sent, those for robots.txt included.
    pub sent: u64,
    /// When the first was sent.
    pub first_at: Option<Timestamp>,
    /// The shortest time between two of them.
    pub gap_ms_min: Option<u64>,
    /// How many followed the one before after less than each of [`RequestHistory::GAPS_MS`], and
    /// after more than all of them.
    pub gaps: [u64; RequestHistory::GAPS_MS.len() + 1],
}

impl RequestHistory {
    /// The upper ends of the classes of gaps, in milliseconds.
    pub const GAPS_MS: [u64; 7] = [100, 500, 1000, 2000, 5000, 10_000, 60_000];

    /// Counts a request. `last`: when the one before it was sent.
    pub fn note(&mut self, at: Timestamp, last: Option<Timestamp>) {
        self.sent += 1;
        self.first_at = Some(self.first_at.map_or(at, |first| first.min(at)));
        if let Some(last) = last {
            let gap_ms = at.0.abs_diff(last.0);
            self.gap_ms_min = Some(self.gap_ms_min.map_or(gap_ms, |min| min.min(gap_ms)));
            let class = Self::GAPS_MS.iter().position(|&end_ms| gap_ms < end_ms);
            self.gaps[class.unwrap_or(Self::GAPS_MS.len())] += 1;
        }
    }
}

impl HostRow {
    /// A host of which nothing is known yet.
    pub fn new(host: Host) -> Self {
        Self {
            host,
            queued: 0,
            admitted: 0,
            pages: 0,
            errors: 0,
            last_request_at: None,
            delay_ms: None,
            requests: RequestHistory::default(),
            sitemaps: 0,
            refused: 0,
            templates: BTreeMap::new(),
        }
    }
}

/// Jain's fairness index: 1 when all shares are equal, 1/n when one of n takes everything.
pub fn jain_index(shares: impl IntoIterator<Item = u64>) -> f64 {
    let mut sums = JainSums::default();
    for share in shares {
        sums.join();
        sums.grow(0, share);
    }
    sums.index()
}

/// What Jain's index is made of. Kept up to date with every share that changes, it gives the index
/// without a pass over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JainSums {
    shares: u64,
    sum: u128,
    squares: u128,
}

impl JainSums {
    /// One more takes part, with nothing so far.
    pub fn join(&mut self) {
        self.shares += 1;
    }

    /// A share has grown.
    pub fn grow(&mut self, before: u64, now: u64) {
        let (before, now) = (u128::from(before), u128::from(now));
        self.sum = self.sum + now - before;
        self.squares = (self.squares - before * before).saturating_add(now * now);
    }

    /// The index.
    #[expect(clippy::cast_precision_loss, reason = "an index of two digits")]
    pub fn index(&self) -> f64 {
        let (shares, sum, squares) = (self.shares as f64, self.sum as f64, self.squares as f64);
        if self.squares == 0 { 1.0 } else { sum * sum / (shares * squares) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain() {
        assert_eq!(jain_index([5, 5, 5]), 1.0);
        assert_eq!(jain_index([9, 0, 0]), 1.0 / 3.0);
        assert_eq!(jain_index([]), 1.0);
        // The shares of the thesis: one domain took 75.5 % of three.
        assert!(jain_index([755, 123, 122]) < 0.56);
    }

    #[test]
    fn a_parked_site_covers_its_hosts_and_no_others() {
        let parked = |host: &str| ParkedHost {
            host: host.to_owned(),
            reason: Reason::ParseLimit,
            pages: 5,
            left_s: None,
        };
        let site = parked("*.wild.test");
        assert!(site.covers("wild.test") && site.covers("a.b.wild.test"));
        assert!(!site.covers("notwild.test") && !site.covers("test"));
        let host = parked("wild.test");
        assert!(host.covers("wild.test") && !host.covers("a.wild.test"));
    }
}
