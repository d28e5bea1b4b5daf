//! Crawls that can only wait because every host that is left said `Retry-After`. They say so, and
//! after [`Limits::patience_ms`](telusur_model::Limits) what is left is given up with that reason.

use telusur_frontier::RetryAfterWait;
use telusur_ledger::{Event as LedgerEvent, GiveUp, KeptRun, KeptState};
use telusur_model::{CrawlNo, CrawlStats, FinishReason, Host, IdState, Moment, Reason, Run};

use crate::commit_stage::CommitWork;
use crate::crawl_task::{CrawlTask, Goal};
use crate::error::EngineError;

/// How long a crawl has been waiting for `Retry-After` and nothing else. Pure: told the time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience {
    /// When it began to wait, and how much had been answered by then.
    since: Option<(Moment, u64)>,
    /// How long nothing can be asked, for people.
    shown_ms: Option<u64>,
    /// URLs that had failed when the rest was given up: the store says more once that is done.
    given_up: Option<u64>,
}

impl Patience {
    /// Looks at the crawl. True if it has waited for longer than its patience, once for every time that
    /// the store has taken note. A wait that ends in another `Retry-After` goes on: only an answer that
    /// settles a URL ends it.
    pub(crate) fn is_over(
        &mut self,
        wait: Option<&RetryAfterWait>,
        stats: &CrawlStats,
        patience_ms: u64,
        now: Moment,
    ) -> bool {
        let answered = stats.pages + stats.redirected + stats.sitemaps + stats.ids.missing;
        self.shown_ms = wait.map(|wait| wait.until.ms_since(now));
        if self.since.is_some_and(|(_, before)| before != answered) {
            (self.since, self.given_up) = (None, None);
        }
        if wait.is_none() {
            return false;
        }
        let (since, _) = *self.since.get_or_insert((now, answered));
        let is_over = patience_ms > 0 && now.ms_since(since) >= patience_ms;
        is_over && self.given_up.replace(stats.failed) != Some(stats.failed)
    }

    /// How long nothing can be asked; `None` if the crawl does not wait for `Retry-After`.
    pub(crate) fn shown_ms(&self) -> Option<u64> {
        self.shown_ms
    }
}

impl CrawlTask {
    /// Gives up what a crawl waits for, if it has waited for long enough.
    pub(crate) fn check_patience(
        &mut self,
        crawl: CrawlNo,
        now: Moment,
    ) -> Result<(), EngineError> {
        let wait = self.frontier.waits_for_retry_after(crawl);
        let Some(running) = self.crawls.get_mut(&crawl) else { return Ok(()) };
        let patience_ms = running.context.crawl.limits.patience_ms;
        if !running.patience.is_over(wait.as_ref(), &running.stats, patience_ms, now) {
            return Ok(());
        }
        let Some(wait) = wait else { return Ok(()) };
        if running.context.crawl.seeds.linear().is_some() {
            // Ids that were never asked have no rows that could fail: that they are left says the end.
            self.give_up_ids(crawl, &wait.hosts)?;
            self.end(crawl, Goal::Finish(FinishReason::RetryAfter), None);
        }
        let wait_s = wait.until.ms_since(now).div_ceil(1000);
        for host in wait.hosts {
            self.frontier.drop_prerequisites(crawl, &host);
            self.prerequisites.dropped(crawl, &host);
            let detail =
                format!("the host asks us to wait, at least {wait_s} s more (Retry-After)");
            let at = self.clock.wall();
            let give_up = GiveUp { crawl, host, reason: Reason::RetryAfter, detail, at };
            self.write(CommitWork::GiveUp(Box::new(give_up)))?;
        }
        Ok(())
    }

    /// Ids that wait for another attempt become holes with the reason. The next run asks them again.
    fn give_up_ids(&mut self, crawl: CrawlNo, hosts: &[Host]) -> Result<(), EngineError> {
        let given_up = self.frontier.give_up_ids(crawl, hosts);
        let state = KeptState { state: IdState::Hole, why: Some(Reason::RetryAfter) };
        let Some(running) = self.crawls.get(&crawl) else { return Ok(()) };
        let walks = running.context.crawl.seeds.walks();
        let marked = |(number, run): (u32, Run)| {
            let walk = walks.get(usize::try_from(number).ok()?)?;
            Some(LedgerEvent::IdsMarked {
                crawl,
                site: walk.rules().template.host().site(),
                walk: number,
                run: KeptRun { first: run.first, last: run.last, state },
            })
        };
        let marked = given_up.into_iter().filter_map(marked).collect();
        self.write(CommitWork::Events(marked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_ends_a_wait() {
        let wait = RetryAfterWait { until: Moment(10_000), hosts: Vec::new() };
        let mut stats = CrawlStats::default();
        let mut patience = Patience::default();
        assert!(!patience.is_over(Some(&wait), &stats, 600, Moment(1_000)));
        assert_eq!(patience.shown_ms(), Some(9_000));
        // The host is asked again, and says the same.
        assert!(!patience.is_over(None, &stats, 600, Moment(1_500)));
        assert_eq!(patience.shown_ms(), None);
        assert!(patience.is_over(Some(&wait), &stats, 600, Moment(1_600)));
        assert!(!patience.is_over(Some(&wait), &stats, 600, Moment(1_650)), "the store is at it");
        assert!(!patience.is_over(Some(&wait), &stats, 0, Moment(1_650)), "0 is no limit");
        (stats.pages, stats.failed) = (1, 1);
        assert!(!patience.is_over(Some(&wait), &stats, 600, Moment(1_700)));
        assert!(patience.is_over(Some(&wait), &stats, 600, Moment(2_300)));
    }

    /// Also if no URL has failed, as in a linear crawl that had asked for nothing.
    #[test]
    fn a_wait_after_an_answer_ends_as_the_first_one_did() {
        let wait = RetryAfterWait { until: Moment(10_000), hosts: Vec::new() };
        let mut stats = CrawlStats::default();
        let mut patience = Patience::default();
        let mut is_over =
            |stats: &CrawlStats, now| patience.is_over(Some(&wait), stats, 600, Moment(now));
        assert!(!is_over(&stats, 1_000));
        assert!(is_over(&stats, 1_600));
        stats.pages = 1;
        assert!(!is_over(&stats, 2_000));
        assert!(is_over(&stats, 2_600));
    }
}
