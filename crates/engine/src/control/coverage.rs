//! What is known of the ids of a linear crawl.

use serde::{Deserialize, Serialize};
use telusur_model::{IdRun, Reason};

use super::handle::Control;
use super::operation::{Each, Length, Operation, OperationKind};
use super::part::no_cursor;
use crate::error::RequestError;
use crate::json::{CoverageView, ListEnd, RunView};
use crate::linear_run::StoredWalk;

/// Runs of ids in one item: a line stays below a megabyte.
const RUNS_IN_ITEM_MAX: usize = 5_000;

/// The ids of a linear crawl, walk by walk. An item with the number of the one before goes on with its
/// runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadCoverage {
    /// Which crawl.
    pub crawl: String,
    /// Only what is behind this place of the list.
    pub after: Option<String>,
    /// How many runs, at most.
    pub limit: Option<usize>,
}

impl Operation for ReadCoverage {
    const KIND: OperationKind = OperationKind::ReadCoverage;
    const LENGTH: Length = Length::Long;
    type Item = CoverageView;
    type Reply = ListEnd;

    /// The walks as the store knows them: what a running crawl has in memory is never ahead.
    fn run(
        &self,
        control: &Control,
        each: Each<'_, CoverageView>,
    ) -> Result<ListEnd, RequestError> {
        let crawl = control.find(&self.crawl)?.crawl;
        let Some(seeds) = crawl.seeds.linear() else {
            return Err(RequestError::WrongState(format!("{} is no linear crawl", crawl.no)));
        };
        let (walk_from, first_from) = self.first()?;
        let mut runs_left = self.limit.unwrap_or(usize::MAX);
        for (number, walk) in (0..).zip(&seeds.walks).skip_while(|(number, _)| *number < walk_from)
        {
            let walk = StoredWalk::read(control.store.as_ref(), crawl.no, number, walk, seeds)?;
            let mut view = CoverageView::of(&walk.coverage(), number);
            let runs = walk.id_runs();
            let is_shown = |run: &IdRun| number == walk_from && run.first < first_from;
            let mut runs = runs.skip_while(|(run, _)| is_shown(run)).map(run_view).peekable();
            loop {
                view.runs.extend(runs.by_ref().take(RUNS_IN_ITEM_MAX.min(runs_left)));
                runs_left -= view.runs.len();
                let next = runs.peek().map(|run| format!("{number} {}", run.first));
                let following = CoverageView { runs: Vec::new(), ..view.clone() };
                if !each(std::mem::replace(&mut view, following)) {
                    return Ok(ListEnd::default());
                }
                match next {
                    None => break,
                    Some(next) if runs_left == 0 => {
                        return Ok(ListEnd { next: Some(next), total: None });
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(ListEnd::default())
    }
}

impl ReadCoverage {
    /// The walk and the id where the list begins.
    fn first(&self) -> Result<(u32, u64), RequestError> {
        let Some(after) = &self.after else { return Ok((0, 0)) };
        let read = || {
            let (walk, first) = after.split_once(' ')?;
            Some((walk.parse().ok()?, first.parse().ok()?))
        };
        read().ok_or_else(no_cursor)
    }
}

fn run_view((run, why): (IdRun, Option<Reason>)) -> RunView {
    RunView {
        first: run.first,
        last: run.last,
        count: run.count,
        state: run.state.word().to_owned(),
        reason: why.map(|why| why.word().to_owned()),
    }
}
