//! What is shown of a running crawl: counters, rates, shares.

use std::collections::VecDeque;

use telusur_frontier::{Frontier, Linear};
use telusur_model::{
    CrawlNo, CrawlState, CrawlStats, Limits, Moment, Progress, SiteShare, WalkCoverage,
};

use crate::linear_run::walk_coverage;
use crate::parse_costs::parked_hosts;

/// The rate shown is that of the last ten seconds.
const WINDOW_MS: u64 = 10_000;
/// Least time between two looks at the walks of a linear crawl.
const WALKS_MS_MIN: u64 = 500;

/// Pages over the last seconds.
#[derive(Debug)]
pub(crate) struct RateMeter {
    samples: VecDeque<(Moment, u64)>,
}

impl RateMeter {
    pub(crate) fn new(now: Moment, pages: u64) -> Self {
        Self { samples: VecDeque::from([(now, pages)]) }
    }

    pub(crate) fn sample(&mut self, now: Moment, pages: u64) {
        self.samples.push_back((now, pages));
        while self.samples.len() > 2 && now.ms_since(self.samples[1].0) >= WINDOW_MS {
            self.samples.pop_front();
        }
    }

    pub(crate) fn per_second(&self) -> f64 {
        let (Some((from, before)), Some((to, after))) = (self.samples.front(), self.samples.back())
        else {
            return 0.0;
        };
        let ms = to.ms_since(*from);
        #[expect(clippy::cast_precision_loss, reason = "a rate of two digits")]
        let rate = |pages: u64, ms: u64| pages as f64 * 1000.0 / ms as f64;
        if ms == 0 { 0.0 } else { rate(after - before, ms) }
    }
}

/// What is shown of the walks of a linear crawl. Looking costs a pass over all runs, so it is done
/// now and then.
#[derive(Debug, Default)]
pub(crate) struct WalksShown {
    pub(crate) shown: Vec<WalkCoverage>,
    looked: Option<(Moment, CrawlState)>,
}

impl WalksShown {
    pub(crate) fn look(&mut self, linear: &Linear, state: CrawlState, now: Moment) {
        let is_fresh = self
            .looked
            .is_some_and(|(at, looked)| looked == state && now.ms_since(at) < WALKS_MS_MIN);
        if !is_fresh {
            self.looked = Some((now, state));
            self.shown = linear.walks().iter().map(|walk| walk_coverage(walk, now)).collect();
        }
    }
}

/// A snapshot of a crawl. Ten times a second for every crawl: what it costs must not grow with the number
/// of sites or hosts.
pub(crate) fn snapshot(
    crawl: CrawlNo,
    state: CrawlState,
    stats: &CrawlStats,
    limits: &Limits,
    meter: &RateMeter,
    frontier: &Frontier,
) -> Progress {
    let shares = frontier.site_shares(crawl).unwrap_or_default();
    let pages_per_second = meter.per_second();
    Progress {
        suspects_network: frontier.cut_off_since(crawl).is_some(),
        retry_after_ms: None,
        crawl,
        state,
        in_flight: frontier.in_flight(crawl),
        pages_per_second,
        eta_s: eta_s(stats, limits, pages_per_second),
        sites_total: shares.sites,
        fairness_index: shares.fairness_index,
        sites: shares
            .top
            .into_iter()
            .map(|(site, pages)| SiteShare { site: site.to_string(), pages, queued: 0 })
            .collect(),
        stats: stats.clone(),
        index_lag: 0,
        followers_behind: Vec::new(),
        walks: Vec::new(),
        parked: parked_hosts(frontier, crawl),
        parse_backlog: frontier.backlogged_sites(crawl).map(|site| site.to_string()).collect(),
    }
}

/// How long it takes until the limit is reached, or the queue is empty if nothing joins it.
fn eta_s(stats: &CrawlStats, limits: &Limits, pages_per_second: f64) -> Option<u64> {
    if pages_per_second <= 0.0 {
        return None;
    }
    let to_limit = limits.pages_max.map(|max| max.saturating_sub(stats.pages));
    let left = to_limit.map_or(stats.queued, |left| left.min(stats.queued.max(1)));
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a guess in whole seconds of a positive number"
    )]
    Some((left as f64 / pages_per_second).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_forgets_what_was_long_ago() {
        let mut meter = RateMeter::new(Moment(0), 0);
        assert_eq!(meter.per_second(), 0.0);
        for second in 1..=30 {
            meter.sample(Moment(second * 1000), 100);
        }
        assert_eq!(meter.per_second(), 0.0);
        meter.sample(Moment(31_000), 200);
        assert!((meter.per_second() - 10.0).abs() < 1.0);
    }

    #[test]
    fn the_eta_counts_to_the_nearer_end() {
        let stats = CrawlStats { pages: 50, queued: 1000, ..Default::default() };
        let limits = Limits { pages_max: Some(100), ..Default::default() };
        assert_eq!(eta_s(&stats, &limits, 10.0), Some(5));
        assert_eq!(eta_s(&stats, &Limits::default(), 10.0), Some(100));
        assert_eq!(eta_s(&stats, &limits, 0.0), None);
    }
}
