//! [`LeftOut`]: which links of a crawl were not followed because a budget was used up, and the
//! setting that would let them in.

use serde::{Deserialize, Serialize};

use crate::{CrawlStats, Reason};

/// Links that a budget left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The budget: `host_budget`, `site_budget` or `trap_suspected`.
    pub reason: Reason,
    /// URLs that were left out.
    pub urls: u64,
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
}

impl CrawlStats {
    /// The budgets that were reached, the one that left out most first.
    pub fn left_out(&self) -> Vec<LeftOut> {
        let mut left_out: Vec<LeftOut> = self
            .skips
            .iter()
            .filter(|(_, urls)| **urls > 0)
            .filter_map(|(reason, urls)| {
                let flag = reason.budget_flag()?.to_owned();
                Some(LeftOut { reason: *reason, urls: *urls, flag })
            })
            .collect();
        left_out.sort_by_key(|row| std::cmp::Reverse(row.urls));
        left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
