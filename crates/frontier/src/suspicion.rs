//! [`Suspicion`]: is it the web, or is it us? When host after host cannot be reached and nobody
//! answers any more, the fault is more likely on this side: a cable, a resolver, a firewall. The
//! host that answered last is the witness: if it still answers, the others are at fault.

use std::collections::BTreeSet;

use telusur_model::Moment;

use crate::host::HostId;
use crate::pace::Answer;

/// Different hosts that must fail, without an answer from anybody in between. Twice as many after
/// each time that the suspicion was wrong: some crawls end in a long list of dead links.
const HOSTS_MIN: usize = 3;
const HOSTS_MAX: usize = 1000;
/// How long to wait before trying again; each time twice as long.
const PROBE_MS_MIN: u64 = 5_000;
const PROBE_MS_MAX: u64 = 60_000;

#[derive(Clone, Debug)]
pub(crate) struct Suspicion {
    hosts_min: usize,
    /// Hosts that failed since the last answer from anybody; at most `hosts_min`.
    failing: BTreeSet<HostId>,
    trial: Option<Trial>,
    /// The host that answered last.
    witness: Option<HostId>,
}

impl Default for Suspicion {
    fn default() -> Self {
        Self { hosts_min: HOSTS_MIN, failing: BTreeSet::new(), trial: None, witness: None }
    }
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    since: Moment,
    next_at: Moment,
    wait_ms: u64,
}

impl Suspicion {
    /// Since when we suspect ourselves.
    pub(crate) fn since(&self) -> Option<Moment> {
        self.trial.map(|trial| trial.since)
    }

    /// When the next visit may go out; `None`: no suspicion.
    pub(crate) fn next_at(&self) -> Option<Moment> {
        self.trial.map(|trial| trial.next_at)
    }

    /// The host to ask first while we suspect ourselves.
    pub(crate) fn witness(&self) -> Option<HostId> {
        self.witness.filter(|_| self.trial.is_some())
    }

    /// Hears of an outcome. `is_stranger`: the host has never answered anything.
    pub(crate) fn note(&mut self, host: HostId, answer: Answer, is_stranger: bool, now: Moment) {
        match answer {
            Answer::Silent => {}
            // Where others have answered, a host that never did says more about itself than about
            // us: a list of a thousand hosts has hundreds that are dead, and they fail together.
            Answer::Unreachable if is_stranger && self.witness.is_some() => {}
            Answer::Unreachable => {
                if self.failing.len() < self.hosts_min {
                    self.failing.insert(host);
                }
                if self.failing.len() == self.hosts_min && self.trial.is_none() {
                    let next_at = now.plus_ms(PROBE_MS_MIN);
                    self.trial = Some(Trial { since: now, next_at, wait_ms: PROBE_MS_MIN });
                }
            }
            Answer::Well | Answer::Troubled | Answer::Throttled { .. } => {
                if self.trial.take().is_some() && self.witness == Some(host) {
                    self.hosts_min = (2 * self.hosts_min).min(HOSTS_MAX);
                }
                self.failing.clear();
                self.witness = Some(host);
            }
        }
    }

    /// One visit goes out to see whether anybody answers.
    pub(crate) fn tried(&mut self, now: Moment) {
        if let Some(trial) = &mut self.trial {
            trial.wait_ms = (2 * trial.wait_ms).min(PROBE_MS_MAX);
            trial.next_at = now.plus_ms(trial.wait_ms);
        }
    }
}
