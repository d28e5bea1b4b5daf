//! What is known of the ids of a linear crawl.

use serde::{Deserialize, Serialize};
use telusur_model::{IdRun, Reason, WalkCoverage};

use super::handle::Control;
use super::operation::{Each, Length, Operation, OperationKind};
use crate::error::RequestError;
use crate::linear_run::StoredWalk;

/// Runs of ids in one item: a line stays below a megabyte.
const RUNS_IN_ITEM_MAX: usize = 5_000;

/// The ids of a linear crawl, walk by walk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadCoverage {
    /// Which crawl.
    pub crawl: String,
}

/// A piece of the coverage of a crawl.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoverageItem {
    /// A walk; its runs follow.
    Walk(Box<WalkCoverage>),
    /// Runs of ids, the lowest first.
    Runs(Vec<CoveredRun>),
}

/// A run of ids, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoveredRun {
    /// The ids, and their state.
    pub run: IdRun,
    /// Why, if they failed.
    pub why: Option<Reason>,
}

impl Operation for ReadCoverage {
    const KIND: OperationKind = OperationKind::ReadCoverage;
    const LENGTH: Length = Length::Long;
    type Item = CoverageItem;
    type Reply = ();

    /// The walks as the store knows them: what a running crawl has in memory is never ahead.
    fn run(&self, control: &Control, each: Each<'_, CoverageItem>) -> Result<(), RequestError> {
        let crawl = control.find(&self.crawl)?.crawl;
        let Some(seeds) = crawl.seeds.linear() else {
            return Err(RequestError::BadArgument(format!("{} is no linear crawl", crawl.no)));
        };
        for (number, walk) in (0..).zip(&seeds.walks) {
            let walk = StoredWalk::read(control.store.as_ref(), crawl.no, number, walk, seeds)?;
            let mut goes_on = each(CoverageItem::Walk(Box::new(walk.coverage())));
            let mut runs = walk.id_runs().map(|(run, why)| CoveredRun { run, why }).peekable();
            while goes_on && runs.peek().is_some() {
                goes_on = each(CoverageItem::Runs(runs.by_ref().take(RUNS_IN_ITEM_MAX).collect()));
            }
            if !goes_on {
                break;
            }
        }
        Ok(())
    }
}
