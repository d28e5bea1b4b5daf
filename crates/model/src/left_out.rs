//! [`LeftOut`]: which links and ids of a crawl were not asked for because a budget was used up, and
//! the setting that would let them in.

use serde::{Deserialize, Serialize};

use crate::{Crawl, CrawlState, CrawlStats, Direction, FinishReason, Progress, Reason, Walk};

/// Links and ids that a budget left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The budget: `host_budget`, `site_budget` or `trap_suspected`.
    pub reason: Reason,
    /// URLs that were left out.
    pub urls: u64,
    /// There may be more of them: ids of a walk whose end is unknown.
    #[serde(default)]
    pub at_least: bool,
    /// The flag of the command line that lets them in.
    pub flag: String,
}

impl Reason {
    /// The flag that lets in what a budget left out; `None` if the reason is no budget.
    pub fn budget_flag(self) -> Option<&'static str> {
        match self {
            Self::HostBudget => Some("--max-per-host"),
            Self::SiteBudget => Some("--max-per-site"),
            // What the user names is no trap.
            Self::TrapSuspected => Some("--include"),
            _ => None,
        }
    }

    /// The limit that lets it in when it is raised, by the name that settings and the API have for
    /// it; `None` if no limit does.
    pub fn budget_limit(self) -> Option<&'static str> {
        match self {
            Self::HostBudget => Some("max_per_host"),
            Self::SiteBudget => Some("max_per_site"),
            _ => None,
        }
    }
}

impl CrawlStats {
    /// The budgets that were reached by links, the one that left out most first.
    pub fn left_out(&self) -> Vec<LeftOut> {
        let mut left_out: Vec<LeftOut> = self
            .skips
            .iter()
            .filter(|(_, urls)| **urls > 0)
            .filter_map(|(reason, urls)| {
                let flag = reason.budget_flag()?.to_owned();
                Some(LeftOut { reason: *reason, urls: *urls, at_least: false, flag })
            })
            .collect();
        left_out.sort_by_key(|row| std::cmp::Reverse(row.urls));
        left_out
    }
}

/// Ids that a budget left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IdsLeftOut {
    ids: u64,
    at_least: bool,
}

impl IdsLeftOut {
    const NONE: Self = Self { ids: 0, at_least: false };

    /// Between an unknown number of ids and none there is at least one.
    fn of(ids: Option<u128>) -> Self {
        match ids {
            Some(ids) => Self { ids: u64::try_from(ids).unwrap_or(u64::MAX), at_least: false },
            None => Self { ids: 1, at_least: true },
        }
    }
}

impl Crawl {
    /// The budgets that were reached, by links or by ids.
    pub fn left_out(&self, state: CrawlState, stats: &CrawlStats) -> Vec<LeftOut> {
        with_ids(stats.left_out(), self.ids_left_out(state, stats))
    }

    /// Whether a linear crawl that ended by its budget did not ask for all ids.
    pub fn has_ids_left_out(&self, state: CrawlState, stats: &CrawlStats) -> bool {
        self.ids_left_out(state, stats).ids > 0
    }

    fn ids_left_out(&self, state: CrawlState, stats: &CrawlStats) -> IdsLeftOut {
        let Some(linear) = self.seeds.linear() else { return IdsLeftOut::NONE };
        if !is_by_budget(state) || self.limits.ids_per_host_max.is_none() {
            return IdsLeftOut::NONE;
        }
        let total = linear.walks.iter().map(ids_total).sum::<Option<u128>>();
        IdsLeftOut::of(total.map(|total| total.saturating_sub(u128::from(ids_known(stats)))))
    }
}

impl Progress {
    /// The budgets that were reached, by links or by ids.
    pub fn left_out(&self) -> Vec<LeftOut> {
        let by_links = self.stats.left_out();
        let is_by_ids = is_by_budget(self.state) && !self.walks.is_empty() && by_links.is_empty();
        let unknown = || self.walks.iter().map(|walk| walk.coverage.counts.unknown).sum();
        let ids = if is_by_ids { IdsLeftOut::of(unknown()) } else { IdsLeftOut::NONE };
        with_ids(by_links, ids)
    }
}

fn is_by_budget(state: CrawlState) -> bool {
    state == CrawlState::Finished { why: FinishReason::Budget }
}

fn ids_known(stats: &CrawlStats) -> u64 {
    stats.ids.content + stats.ids.missing + stats.ids.holes + stats.ids.waiting
}

/// How many ids a walk has; `None` if a bound is unknown.
fn ids_total(walk: &Walk) -> Option<u128> {
    let rules = walk.rules();
    let is_bounded = |direction: Direction| match direction {
        Direction::Ascending => rules.max.is_some(),
        Direction::Descending => rules.min.is_some(),
    };
    let is_known = rules.ids.is_some() || walk.legs().iter().all(|leg| is_bounded(leg.direction));
    let ranges = walk.legs().iter().flat_map(|leg| leg.positions.as_slice());
    is_known.then(|| ranges.map(|&(first, last)| u128::from(last - first) + 1).sum())
}

/// Ids are left out by the budget of their host.
fn with_ids(mut rows: Vec<LeftOut>, left_out: IdsLeftOut) -> Vec<LeftOut> {
    let reason = Reason::HostBudget;
    let IdsLeftOut { ids, at_least } = left_out;
    if ids == 0 {
        return rows;
    }
    match rows.iter_mut().find(|row| row.reason == reason) {
        Some(row) => {
            row.urls = row.urls.saturating_add(ids);
            row.at_least = at_least;
        }
        None => {
            let flag = reason.budget_flag().unwrap_or_default().to_owned();
            rows.push(LeftOut { reason, urls: ids, at_least, flag });
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.urls));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Template, WalkRules};

    #[test]
    fn only_budgets_leave_out() {
        let skips = [
            (Reason::RobotsDisallowed, 12_000),
            (Reason::HostBudget, 7),
            (Reason::TrapSuspected, 9),
            (Reason::SiteBudget, 0),
        ];
        let stats = CrawlStats { skips: skips.into(), ..CrawlStats::default() };
        let left_out = stats.left_out();
        let rows = left_out.iter().map(|row| (row.reason.word(), row.urls, row.flag.as_str()));
        let expect = [("trap_suspected", 9, "--include"), ("host_budget", 7, "--max-per-host")];
        assert_eq!(rows.collect::<Vec<_>>(), expect);
    }

    #[test]
    fn ids_are_counted_between_known_bounds() {
        let total = |max| {
            let template = Template::parse("http://a.org/{id}").unwrap();
            let bounds =
                WalkRules { start: Some(1), min: Some(1), max, ..WalkRules::new(template) };
            let rules = WalkRules { margin: 5, ..bounds };
            ids_total(&Walk::new(rules).unwrap())
        };
        assert_eq!((total(Some(9)), total(None)), (Some(9), None));
        let left = |ids| (IdsLeftOut::of(ids).ids, IdsLeftOut::of(ids).at_least);
        assert_eq!((left(Some(9)), left(None), left(Some(0))), ((9, false), (1, true), (0, false)));
    }

    #[test]
    fn ids_are_left_out_by_the_budget_of_their_host() {
        let skips = [(Reason::HostBudget, 7), (Reason::TrapSuspected, 9)];
        let links = CrawlStats { skips: skips.into(), ..CrawlStats::default() }.left_out();
        let urls = |rows: Vec<LeftOut>| rows.iter().map(|row| row.urls).collect::<Vec<_>>();
        let three = IdsLeftOut::of(Some(3));
        assert_eq!(urls(with_ids(links.clone(), three)), [10, 9]);
        assert_eq!(urls(with_ids(links, IdsLeftOut::NONE)), [9, 7]);
        let rows = with_ids(Vec::new(), three);
        assert_eq!((rows[0].urls, rows[0].flag.as_str()), (3, "--max-per-host"));
    }
}
