//! A second run of a linear crawl: what it asks again, and what there is to say about the first. And
//! what is shown of a walk, running or not.

use telusur_frontier::{Opening, WalkState};
use telusur_ledger::{Event, KeptRun, KeptState, Step, Store, StoreError};
use telusur_model::{
    Clock, Crawl, CrawlNo, IdRun, IdState, LinearSeeds, Moment, PageUrl, Reason, Walk, WalkCoverage,
};

use crate::id_looks::missing_by_look;
use crate::id_visits::plain_run;

pub use telusur_frontier::ResumeNote;

/// Cells of the strip of a walk.
pub(crate) const STRIP_CELLS: usize = 60;

/// Accepts another run of a linear crawl, with the settings as they are now. Says for each walk what
/// becomes of the earlier run. The walks must be those of before: only bounds, margins and the like
/// may differ.
pub fn accept_run(
    store: &dyn Store,
    crawl: &Crawl,
    clock: &dyn Clock,
) -> Result<Vec<Vec<ResumeNote>>, StoreError> {
    let (Some(seeds), Some(before)) = (crawl.seeds.linear(), store.crawl(crawl.no)?) else {
        return Ok(Vec::new());
    };
    let mut notes = Vec::with_capacity(seeds.walks.len());
    let mut step = Step::default();
    for (number, (walk, earlier)) in (0..).zip(seeds.walks.iter().zip(before.crawl.seeds.walks())) {
        let runs = store.runs(crawl.no, number)?;
        let opening = Opening { earlier: Some(earlier.clone()), ..Opening::resume(seeds.resume) };
        let opened = opening.open(walk.clone(), runs.iter().map(plain_run), clock.now());
        for run in opened.changed {
            let state = KeptState { state: run.state, why: None };
            step.push(Event::IdsMarked {
                crawl: crawl.no,
                site: walk.rules().template.host().site(),
                walk: number,
                run: KeptRun { first: run.first, last: run.last, state },
            });
        }
        notes.push(opened.notes);
    }
    // Killed in between, the holes are asked again by the run that goes on: no harm is done.
    if !step.is_empty() {
        store.commit(step)?;
    }
    store.change(crawl)?;
    Ok(notes)
}

/// Whether a crawl of these walks can go on as one of those: their ids are the same pages.
pub(crate) fn has_walks_of(seeds: &LinearSeeds, earlier: &LinearSeeds) -> bool {
    seeds.walks.len() == earlier.walks.len()
        && seeds.walks.iter().zip(&earlier.walks).all(|(walk, other)| walk.has_positions_of(other))
}

/// What is shown of a walk.
pub(crate) fn walk_coverage(state: &WalkState, now: Moment) -> WalkCoverage {
    let rules = state.walk().rules();
    let coverage = state.coverage();
    let retry_at = coverage.legs.iter().filter_map(|leg| leg.retry_at).min();
    WalkCoverage {
        template: rules.template.to_string(),
        min: rules.min,
        max: rules.max,
        start: rules.start,
        strip: state.strip(STRIP_CELLS),
        retry_in_ms: retry_at.map(|retry_at| retry_at.ms_since(now)),
        missing_by_look: 0,
        coverage,
    }
}

/// A walk of a crawl as the store knows it.
pub(crate) struct StoredWalk {
    pub(crate) state: WalkState,
    runs: Vec<KeptRun>,
}

impl StoredWalk {
    pub(crate) fn read(
        store: &dyn Store,
        crawl: CrawlNo,
        number: u32,
        walk: &Walk,
        seeds: &LinearSeeds,
    ) -> Result<Self, StoreError> {
        let runs = store.runs(crawl, number)?;
        let opening = Opening::recover(seeds.resume);
        let state = opening.open(walk.clone(), runs.iter().map(plain_run), Moment(0)).state;
        Ok(Self { state, runs })
    }

    /// What the store keeps of its ids.
    pub(crate) fn runs(&self) -> &[KeptRun] {
        &self.runs
    }

    /// What is shown of it.
    pub(crate) fn coverage(&self) -> WalkCoverage {
        let missing_by_look = missing_by_look(&self.runs);
        WalkCoverage { missing_by_look, ..walk_coverage(&self.state, Moment(0)) }
    }

    /// What is known of one of its pages.
    pub(crate) fn state_of(&self, url: &PageUrl) -> Option<KeptState> {
        let walk = self.state.walk();
        let position = walk.position_of(walk.rules().template.id_of(url)?)?;
        let after = self.runs.partition_point(|run| run.first <= position);
        let run = self.runs.get(after.checked_sub(1)?)?;
        (run.last >= position).then_some(run.state)
    }

    /// The runs of all ids that are reported, the lowest first; holes and missing ones with the
    /// reason, where it differs as runs of their own.
    pub(crate) fn id_runs(&self) -> impl Iterator<Item = (IdRun, Option<Reason>)> {
        self.state.runs().flat_map(|run| match run.state {
            IdState::Hole | IdState::Waiting { .. } | IdState::Missing => self.by_reason(run),
            IdState::Content => vec![(run, None)],
        })
    }

    fn by_reason(&self, whole: IdRun) -> Vec<(IdRun, Option<Reason>)> {
        let walk = self.state.walk();
        let position = |id| walk.position_of(id).unwrap_or(id);
        let (first, last) = (position(whole.first), position(whole.last));
        let begin = self.runs.partition_point(|run| run.last < first);
        let runs = self.runs[begin..].iter().take_while(|run| run.first <= last);
        runs.map(|run| {
            let (first, last) = (run.first.max(first), run.last.min(last));
            let part = IdRun {
                first: walk.id_at(first),
                last: walk.id_at(last),
                count: last - first + 1,
                state: run.state.state,
            };
            (part, run.state.why)
        })
        .collect()
    }
}
