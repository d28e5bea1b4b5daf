//! Visits to ids of linear crawls, where they differ from others: they have no row in a queue, a
//! redirect does not end them, and what became of them is kept as a run.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use telusur_frontier::{Linear, Opening};
use telusur_ledger::{IdEnding, KeptRun, KeptState, VisitOutcome};
use telusur_model::{
    Crawl, FetchOutcome, IdOutcome, IdState, MissingError, MissingPages, Moment, PageUrl, Reason,
    Retry, Timestamp, Visit, Walk,
};

use crate::context::CrawlContext;
use crate::crawl_task::CrawlTask;
use crate::id_looks::IdLooks;
use crate::visit_ending::redirect_fault;

/// A walk of a running crawl, with its rules compiled.
#[derive(Clone)]
pub(crate) struct WalkContext {
    pub(crate) walk: Walk,
    pub(crate) missing: MissingPages,
    /// How its ids look, so that those that only pretend to exist are told from those that do.
    pub(crate) looks: Arc<IdLooks>,
}

impl WalkContext {
    /// The walks of a crawl.
    pub(crate) fn all(crawl: &Crawl) -> Result<Vec<Self>, MissingError> {
        let mut walks: Vec<Self> = Vec::new();
        for walk in crawl.seeds.walks() {
            // A thousand templates most often have one set of rules: compiled once, it is shared.
            let known = walks.last().filter(|it| it.walk.rules().missing == walk.rules().missing);
            let missing = match known {
                Some(known) => known.missing.clone(),
                None => MissingPages::new(&walk.rules().missing)?,
            };
            walks.push(Self { walk: walk.clone(), missing, looks: Arc::default() });
        }
        Ok(walks)
    }
}

/// The walks of a crawl, as far as they have come. `runs`: what the store keeps of each.
pub(crate) fn open_walks(crawl: &Crawl, runs: Vec<Vec<KeptRun>>, now: Moment) -> Option<Linear> {
    let seeds = crawl.seeds.linear()?;
    // Whatever is to be asked again was written down when the run was accepted.
    let opening = Opening::recover(seeds.resume);
    let mut runs = runs.into_iter();
    let states = seeds.walks.iter().map(|walk| {
        let runs = runs.next().unwrap_or_default();
        opening.open(walk.clone(), runs.iter().map(plain_run), now).state
    });
    Some(Linear::new(states.collect()))
}

/// Ids of a walk that were never asked for: a rule refused them, which used up no unit of a budget.
pub(crate) fn refused_ids(runs: &[KeptRun]) -> u64 {
    let is_refused = |run: &&KeptRun| {
        let why = run.state.why.filter(|_| run.state.state == IdState::Hole);
        matches!(
            why,
            Some(
                Reason::Excluded
                    | Reason::RobotsDisallowed
                    | Reason::RobotsUnreachable
                    | Reason::ParseLimit
            )
        )
    };
    runs.iter().filter(is_refused).map(|run| (run.last - run.first).saturating_add(1)).sum()
}

/// A run as a walk goes on with it. Ids that were given up because their host asked us to wait are asked
/// by every further run, and say nothing about where the walk ends.
pub(crate) fn plain_run(run: &KeptRun) -> telusur_model::Run {
    let state = match run.state {
        KeptState { state: IdState::Hole, why: Some(Reason::RetryAfter) } => {
            IdState::Waiting { attempts: 0 }
        }
        KeptState { state, .. } => state,
    };
    telusur_model::Run { first: run.first, last: run.last, state }
}

impl CrawlContext {
    /// Fills in what the frontier does not know of a visit to an id. Redirects lead to the same page
    /// at another address, so it goes by the address of its id.
    pub(crate) fn identify(&self, visit: &mut Visit, now: Timestamp) {
        if visit.place.id().is_some() {
            visit.key = self.keyer.key(&visit.first_url());
            visit.found_at = now;
        }
    }

    /// What is kept of an id that answered so; `None` if the visit is to no id.
    pub(crate) fn id_ending(
        &self,
        visit: &Visit,
        answer: IdOutcome,
        why: Option<Reason>,
    ) -> Option<IdEnding> {
        let (walk, id) = visit.place.id()?;
        let rules = &self.walks.get(usize::try_from(walk).ok()?)?.walk;
        let state = IdState::after(answer, visit.attempt, rules.rules().attempts);
        let by_look = why == Some(Reason::SoftNotFound);
        let why = why.filter(|_| by_look || matches!(answer, IdOutcome::Failed(_)));
        let kept = KeptState { state, why };
        Some(IdEnding { walk, position: rules.position_of(id)?, kept })
    }

    /// What is kept of an id that was not asked for: a hole if a rule forbids it, and another
    /// attempt if that may change.
    pub(crate) fn id_refused(&self, visit: &Visit, how: &VisitOutcome) -> Option<IdEnding> {
        let (answer, why) = match how {
            VisitOutcome::Later { reason, .. } => (IdOutcome::Failed(Retry::NotCounted), *reason),
            VisitOutcome::Skipped { reason, .. } | VisitOutcome::Failed { reason, .. } => {
                (IdOutcome::Failed(Retry::Never), *reason)
            }
            _ => return None,
        };
        self.id_ending(visit, answer, Some(why))
    }
}

/// What becomes of an id that was redirected.
pub(crate) enum Hop {
    /// It is asked for at the other address.
    Followed,
    /// This is its end.
    Ended(FetchOutcome),
}

impl CrawlTask {
    /// Follows the redirect of an id: nothing is known of the id until its last hop has answered.
    pub(crate) fn hop(&mut self, visit: &Visit, context: &CrawlContext, end: FetchOutcome) -> Hop {
        let walk = visit.place.id().and_then(|(walk, _)| usize::try_from(walk).ok());
        let walk = walk.and_then(|walk| context.walks.get(walk));
        let (Some(walk), FetchOutcome::Redirected { to, .. }) = (walk, &end) else {
            return Hop::Ended(end);
        };
        if walk.missing.judge(&end, "").is_some() {
            return Hop::Ended(end);
        }
        if let Some((why, detail)) = redirect_fault(visit, context, to) {
            return Hop::Ended(FetchOutcome::Failed { why, detail, retry: Retry::Never });
        }
        // The body of a redirect is not kept, and was not counted.
        self.leave_pipeline(visit, 0);
        let mut next = Visit { url: to.clone(), ..visit.clone() };
        next.redirects.push(visit.url.to_string());
        self.frontier.redirected_id(&visit.url.host(), next);
        Hop::Followed
    }

    /// A visit is not on its way to the store any more; it will be handed out anew.
    /// `body_bytes`: what of its body was counted.
    pub(crate) fn leave_pipeline(&mut self, visit: &Visit, body_bytes: u64) {
        self.pipeline.leave_one(visit, body_bytes);
        self.under_way.fetch_sub(1, Ordering::AcqRel);
        if let Some(running) = self.crawls.get_mut(&visit.crawl) {
            running.left(1);
        }
    }
}

/// Whether a link leads to an id of a walk, which will come there by itself.
pub(crate) fn is_of_walk(walks: &[WalkContext], url: &PageUrl) -> bool {
    walks.iter().any(|walk| walk.walk.id_of(url).is_some())
}
