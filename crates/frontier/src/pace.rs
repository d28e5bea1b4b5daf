//! [`Pace`]: what a host's answers teach about how often it may be asked. Knows nothing of queues
//! or crawls.

use telusur_model::{FetchOutcome, Fetched, Moment, Politeness, Retry};

use crate::flights::{PATIENCE_MS, Trust};

/// Least step by which a host that struggles is slowed down.
const SLOW_DOWN_MS_MIN: u64 = 1_000;
/// Longest that `Retry-After` silences a host: some servers name years.
const RETRY_AFTER_MS_MAX: u64 = 3_600_000;
/// Failures of the network, one after the other, that rest a host.
const FAILURES_BEFORE_REST: u32 = 5;
const REST_MS_MIN: u64 = 10_000;
const REST_MS_MAX: u64 = 600_000;
/// Rests after which a host is taken for dead. They add up to half an hour, which outlasts a
/// restart of a server; a dead host with a thousand URLs must not keep its crawl alive for days.
const RESTS_MAX: u32 = 8;
/// Answers that take longer on average are slow: a healthy server needs a tenth of it.
const SLOW_MS: u64 = 1_500;
/// An extra delay smaller than this is forgotten: a tenth of it no longer shrinks it.
const EXCESS_MS_MIN: u64 = 10;

/// What was learned about a host from its answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace {
    /// The delay it asked for by struggling; zero if it never did.
    learned_ms: u64,
    /// When it was slowed down last.
    slowed_at: Option<Moment>,
    /// It must not be asked before.
    quiet_until: Moment,
    /// Until when it asked us to wait.
    retry_after: Moment,
    /// Answers 429 and 503 since the last good one.
    throttled_run: u32,
    /// Failures of the network since the last answer.
    failures: u32,
    /// Rests since the last answer.
    rests: u32,
    resting_until: Moment,
    /// Smoothed time of a visit.
    response_ms: Option<u64>,
    /// It has answered at least once, with any status.
    has_answered: bool,
}

/// What an outcome says about its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostSignal {
    /// All is well.
    Well,
    /// It answers, but is in trouble.
    Troubled,
    /// It asks us to slow down, and perhaps for how long.
    Throttled { retry_after_ms: Option<u64> },
    /// It could not be reached, or did not finish its answer.
    Unreachable,
    /// Nothing: no packet was sent, or the fault was ours, or in the page.
    Silent,
}

impl HostSignal {
    /// Whether anybody said anything.
    pub(crate) fn is_reply(self) -> bool {
        match self {
            Self::Well | Self::Troubled | Self::Throttled { .. } => true,
            Self::Unreachable | Self::Silent => false,
        }
    }

    pub(crate) fn of(fetched: &Fetched) -> Self {
        match &fetched.outcome {
            FetchOutcome::Page(page) if matches!(page.status, 429 | 503) => {
                let retry_after_ms = fetched.retry_after_ms.map(|ms| ms.min(RETRY_AFTER_MS_MAX));
                Self::Throttled { retry_after_ms }
            }
            FetchOutcome::Page(page) if page.status >= 500 => Self::Troubled,
            FetchOutcome::Page(_) | FetchOutcome::NotModified => Self::Well,
            FetchOutcome::Redirected { .. } => Self::Well,
            FetchOutcome::Failed { retry: Retry::Later, .. } => Self::Unreachable,
            FetchOutcome::Failed { .. } | FetchOutcome::Refused { .. } => Self::Silent,
        }
    }
}

impl Pace {
    /// The delay that was learned; zero if none was.
    pub(crate) fn learned_ms(&self) -> u64 {
        self.learned_ms
    }

    pub(crate) fn learned_earlier(&mut self, delay_ms: u64) {
        self.learned_ms = self.learned_ms.max(delay_ms);
    }

    /// The host must not be asked before this moment.
    pub(crate) fn quiet_until(&self) -> Moment {
        self.quiet_until.max(self.resting_until)
    }

    pub(crate) fn keep_quiet_until(&mut self, moment: Moment) {
        self.quiet_until = self.quiet_until.max(moment);
    }

    /// The host asks us to wait until then.
    pub(crate) fn asked_to_wait(&mut self, until: Moment) {
        self.retry_after = self.retry_after.max(until);
        self.keep_quiet_until(self.retry_after);
    }

    /// Until when the host asked us to wait, if that moment is still to come.
    pub(crate) fn retry_after(&self, now: Moment) -> Option<Moment> {
        (self.retry_after > now).then_some(self.retry_after)
    }

    pub(crate) fn is_resting(&self, now: Moment) -> bool {
        now < self.resting_until
    }

    /// Whether only one visit at a time may find out if the host is back.
    pub(crate) fn is_on_probation(&self) -> bool {
        self.failures >= FAILURES_BEFORE_REST && !self.is_given_up()
    }

    /// Whether the host has failed through all its rests: each of its URLs is asked once more, and
    /// an answer to any of them brings it back.
    pub(crate) fn is_given_up(&self) -> bool {
        self.rests >= RESTS_MAX
    }

    pub(crate) fn throttled_run(&self) -> u32 {
        self.throttled_run
    }

    /// What to expect of the host.
    pub(crate) fn trust(&self) -> Trust {
        match self.response_ms {
            None => Trust::Stranger,
            Some(ms) if ms >= PATIENCE_MS => Trust::Lost,
            Some(_) => Trust::Earned,
        }
    }

    /// Smoothed time of a visit; zero before the first.
    pub(crate) fn response_ms(&self) -> u64 {
        self.response_ms.unwrap_or(0)
    }

    /// Whether nothing would be lost by forgetting all this.
    pub(crate) fn is_plain(&self, now: Moment) -> bool {
        self.learned_ms == 0 && self.quiet_until() <= now
    }

    pub(crate) fn took(&mut self, ms: u64) {
        self.response_ms = Some(self.response_ms.map_or(ms, |old| (3 * old + ms) / 4));
    }

    /// Learns from an answer. `asked_at`: when it was asked for; `base_ms`: the delay that rules
    /// without anything learned.
    pub(crate) fn learn(
        &mut self,
        answer: HostSignal,
        politeness: &Politeness,
        base_ms: u64,
        asked_at: Moment,
        now: Moment,
    ) {
        match answer {
            HostSignal::Well => {
                self.answered();
                self.throttled_run = 0;
                self.speed_up(base_ms);
                if politeness.adaptive && base_ms > 0 {
                    self.spare_the_slow(politeness.crawl_delay_max_ms);
                }
            }
            HostSignal::Troubled => self.answered(),
            HostSignal::Throttled { retry_after_ms } => {
                self.answered();
                self.throttled_run = self.throttled_run.saturating_add(1);
                if politeness.adaptive {
                    self.slow_down(base_ms, politeness.crawl_delay_max_ms, asked_at, now);
                    // An answer without the header does not take back what another one said.
                    self.asked_to_wait(now.plus_ms(retry_after_ms.unwrap_or(0)));
                }
            }
            HostSignal::Unreachable => self.failed(now),
            HostSignal::Silent => {}
        }
    }

    /// Takes back what failures have taught since `before`: they were not the host's.
    pub(crate) fn forgive(&mut self, before: &Self) {
        self.failures = before.failures;
        self.rests = before.rests;
        self.resting_until = before.resting_until;
        self.response_ms = before.response_ms;
    }

    /// The host has said something to an earlier process.
    pub(crate) fn answered_earlier(&mut self) {
        self.has_answered = true;
    }

    /// Whether the host has ever said something.
    pub(crate) fn has_answered(&self) -> bool {
        self.has_answered
    }

    fn answered(&mut self) {
        self.has_answered = true;
        self.failures = 0;
        self.rests = 0;
        self.resting_until = Moment(0);
    }

    fn failed(&mut self, now: Moment) {
        // Visits that were under way when the host went to rest say nothing new.
        if self.is_resting(now) {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if self.is_on_probation() {
            let rest_ms = REST_MS_MIN.saturating_mul(1 << self.rests).min(REST_MS_MAX);
            self.rests += 1;
            self.resting_until = now.plus_ms(rest_ms);
        }
    }

    fn slow_down(&mut self, base_ms: u64, cap_ms: u64, asked_at: Moment, now: Moment) {
        // Several requests at once may be refused for one and the same burst: one step is enough.
        if self.slowed_at.is_some_and(|slowed_at| asked_at <= slowed_at) {
            return;
        }
        self.slowed_at = Some(now);
        let delay_ms = self.learned_ms.max(base_ms);
        let slower_ms = delay_ms.saturating_mul(2).max(delay_ms.saturating_add(SLOW_DOWN_MS_MIN));
        self.learned_ms = slower_ms.min(cap_ms).max(delay_ms);
    }

    /// A host that works for long at each answer gets as long to rest.
    fn spare_the_slow(&mut self, cap_ms: u64) {
        if self.response_ms() >= SLOW_MS {
            let delay_ms = self.response_ms().saturating_mul(2).min(cap_ms);
            self.learned_ms = self.learned_ms.max(delay_ms);
        }
    }

    fn speed_up(&mut self, base_ms: u64) {
        let excess_ms = self.learned_ms.saturating_sub(base_ms);
        self.learned_ms =
            if excess_ms < EXCESS_MS_MIN { 0 } else { base_ms + excess_ms - excess_ms / 10 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_retry_after_takes_none_back() {
        let mut pace = Pace::default();
        let politeness = Politeness { adaptive: true, ..Politeness::default() };
        for retry_after_ms in [Some(3_600_000), None] {
            let answer = HostSignal::Throttled { retry_after_ms };
            pace.learn(answer, &politeness, 1000, Moment(0), Moment(1000));
        }
        assert_eq!(pace.retry_after(Moment(1000)), Some(Moment(3_601_000)));
        assert_eq!(pace.quiet_until(), Moment(3_601_000));
    }
}
