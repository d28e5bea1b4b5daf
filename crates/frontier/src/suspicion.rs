//! [`Suspicion`]: is it the web, or is it us? When no host at all has answered for longer than
//! answers take here, the fault is more likely on this side: a cable, a resolver, a firewall. Until
//! one answers, failures are charged to no host and no page. A refused connection and an unknown name are
//! answers, too: they blame the host alone. Hosts that answered lately are the witnesses: if
//! one of them still answers, the others are at fault.

use std::collections::{BTreeMap, VecDeque};

use telusur_model::{Moment, NetworkSign};

use crate::host::HostId;
use crate::pace::Pace;

/// Silence that is never suspicious, however quick answers are here.
const SILENCE_MS_MIN: u64 = 5_000;
/// Before the first answer it is unknown how long answers take here: as long as the time limits for
/// connecting (5 s) and for the first byte (10 s) allow.
const SILENCE_MS_UNKNOWN: u64 = 15_000;
/// Silence that is always suspicious.
const SILENCE_MS_MAX: u64 = 60_000;
/// Silence must be this many times longer than the slowest of the late answers took.
const SLOWEST_FACTOR: u64 = 2;
/// The slowest answer is forgotten by this share with every other answer.
const SLOWEST_FADES: u64 = 32;
/// Doublings of the silence after false alarms: some crawls end in a long list of dead links.
const FALSE_ALARMS_MAX: u32 = 4;
/// Different hosts that must fail as long as none has ever answered: one host that was never there
/// is a wrong address. One that has answered an earlier process, or a machine without a route, is enough.
const STRANGERS_MIN: usize = 3;
/// How long to wait between two trials; each time twice as long.
const TRIAL_MS_MIN: u64 = 5_000;
const TRIAL_MS_MAX: u64 = 30_000;
/// Hosts that are asked whether they still answer.
pub(crate) const WITNESSES_MAX: usize = 3;
/// Hosts that are remembered as failing since the last answer.
const FAILING_MAX: usize = 10_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct Suspicion {
    /// How long the slowest answers take here; `None` before the first.
    slowest_ms: Option<u64>,
    false_alarms: u32,
    answered_at: Option<Moment>,
    /// When a visit went out last.
    asked_at: Option<Moment>,
    /// When the first visit went out after the last answer.
    asking_since: Option<Moment>,
    /// Hosts that failed since the last answer, with what was known of each before.
    failing: BTreeMap<HostId, Pace>,
    /// One of them has answered before.
    is_acquaintance_failing: bool,
    /// One of them failed because there is no route, or no resolver.
    is_down: bool,
    doubt: Option<Doubt>,
    /// The hosts that answered last, the latest first.
    witnesses: VecDeque<HostId>,
}

#[derive(Clone, Copy, Debug)]
struct Doubt {
    since: Moment,
    next_at: Moment,
    wait_ms: u64,
    witnesses_asked: usize,
    /// It goes on where an earlier one was left, and is not held against us when it turns out wrong.
    is_kept: bool,
}

impl Doubt {
    fn new(now: Moment) -> Self {
        let (next_at, wait_ms) = (now.plus_ms(TRIAL_MS_MIN), TRIAL_MS_MIN);
        Self { since: now, next_at, wait_ms, witnesses_asked: 0, is_kept: false }
    }
}

impl Suspicion {
    /// Since when we suspect ourselves.
    pub(crate) fn since(&self) -> Option<Moment> {
        self.doubt.map(|doubt| doubt.since)
    }

    /// When any host answered last.
    pub(crate) fn answered_at(&self) -> Option<Moment> {
        self.answered_at
    }

    /// When a visit went out last.
    pub(crate) fn asked_at(&self) -> Option<Moment> {
        self.asked_at
    }

    /// Whether more speaks for a fault on this side than one host that is silent.
    pub(crate) fn is_outage_likely(&self) -> bool {
        self.is_down || self.failing.len() > 1
    }

    /// Whether no host has answered since the start, and it is only too early to tell why. Some failures,
    /// those for want of a resolver, use up all attempts within seconds.
    pub(crate) fn is_forming(&self) -> bool {
        self.slowest_ms.is_none() && self.failing.len() >= self.hosts_min()
    }

    /// A crawl asks again after all had rested because of a doubt: until there is an answer, it stays.
    pub(crate) fn keep(&mut self, now: Moment) {
        let kept = Doubt { is_kept: true, ..Doubt::new(now) };
        self.doubt.get_or_insert(kept);
    }

    /// When a crawl that failed may try again; `None`: no suspicion.
    pub(crate) fn next_at(&self) -> Option<Moment> {
        self.doubt.map(|doubt| doubt.next_at)
    }

    /// The hosts to ask first while we suspect ourselves.
    pub(crate) fn witnesses(&self) -> impl Iterator<Item = HostId> {
        self.witnesses.iter().copied().filter(|_| self.doubt.is_some())
    }

    /// Whether a witness may be asked at once. One that fails is asked again like everybody else.
    pub(crate) fn may_call_witness(&self, now: Moment) -> bool {
        let doubt = self
            .doubt
            .filter(|doubt| doubt.next_at <= now || doubt.witnesses_asked < self.witnesses.len());
        doubt.is_some()
    }

    /// A visit goes out. `is_trial`: its crawl has failed, and waited for its turn to try.
    pub(crate) fn asked(&mut self, now: Moment, is_trial: bool) {
        self.asked_at = Some(now);
        self.asking_since.get_or_insert(now);
        if let Some(doubt) = self.doubt.as_mut().filter(|doubt| is_trial && doubt.next_at <= now) {
            doubt.wait_ms = (2 * doubt.wait_ms).min(TRIAL_MS_MAX);
            doubt.next_at = now.plus_ms(doubt.wait_ms);
        }
    }

    /// A witness goes out.
    pub(crate) fn called_witness(&mut self) {
        if let Some(doubt) = &mut self.doubt {
            doubt.witnesses_asked += 1;
        }
    }

    /// There was an answer of any kind: the network works.
    pub(crate) fn answered(&mut self, host: HostId, took_ms: u64, now: Moment) {
        let slowest_ms = self.slowest_ms.unwrap_or(0);
        self.slowest_ms = Some(took_ms.max(slowest_ms - slowest_ms / SLOWEST_FADES));
        self.answered_at = Some(now);
        if let Some(doubt) = self.doubt.take().filter(|doubt| !doubt.is_kept) {
            // A host that failed before was cut off like us, unless it answers at once: then a page of
            // its own was slow. Another host never was cut off.
            let has_lasted = now.ms_since(doubt.since) >= TRIAL_MS_MIN;
            let was_right = has_lasted && self.failing.contains_key(&host);
            let false_alarms = (self.false_alarms + 1).min(FALSE_ALARMS_MAX);
            self.false_alarms = if was_right { 0 } else { false_alarms };
        }
        self.forget_failures();
    }

    /// The host that has just answered can be asked when no host answers any more.
    pub(crate) fn may_bear_witness(&mut self, host: HostId) {
        if self.witnesses.front() != Some(&host) {
            self.witnesses.retain(|witness| *witness != host);
            self.witnesses.push_front(host);
            self.witnesses.truncate(WITNESSES_MAX);
        }
    }

    /// A host could not be reached. `before`: what was known of it; `sign`: what the failure shows. Says
    /// whether this raises the suspicion.
    pub(crate) fn failed(
        &mut self,
        host: HostId,
        before: &Pace,
        sign: NetworkSign,
        now: Moment,
    ) -> bool {
        let is_down = sign == NetworkSign::Down;
        // Where others have answered, a host that never did says more about itself than about us: a
        // list of a thousand hosts has hundreds that are dead, and they fail together.
        let is_dead_link = !is_down && !before.has_answered() && self.slowest_ms.is_some();
        if is_dead_link {
            return false;
        }
        if self.failing.len() < FAILING_MAX {
            self.failing.entry(host).or_insert_with(|| before.clone());
        }
        self.is_acquaintance_failing |= before.has_answered();
        self.is_down |= is_down;
        if self.doubt.is_some() {
            return false;
        }
        let silent_ms = self.asking_since.map_or(0, |since| now.ms_since(since));
        if self.failing.len() < self.hosts_min() || silent_ms < self.suspicious_ms() {
            return false;
        }
        self.doubt = Some(Doubt::new(now));
        true
    }

    /// The number of hosts that must fail.
    fn hosts_min(&self) -> usize {
        let is_enough = self.slowest_ms.is_some() || self.is_acquaintance_failing || self.is_down;
        if is_enough { 1 } else { STRANGERS_MIN }
    }

    /// Hosts that failed since the last answer, and what was known of each before.
    pub(crate) fn failing(&self) -> Vec<(HostId, Pace)> {
        self.failing.iter().map(|(host, before)| (*host, before.clone())).collect()
    }

    /// No crawl asks any more, so no answer can be waited for.
    pub(crate) fn rest(&mut self) {
        self.doubt = None;
        self.forget_failures();
    }

    fn forget_failures(&mut self) {
        self.asking_since = None;
        self.is_acquaintance_failing = false;
        self.is_down = false;
        self.failing.clear();
    }

    /// How long there may be no answer before we suspect ourselves.
    fn suspicious_ms(&self) -> u64 {
        let expected_ms = match self.slowest_ms {
            Some(slowest_ms) => slowest_ms.saturating_mul(SLOWEST_FACTOR),
            None => SILENCE_MS_UNKNOWN,
        };
        (expected_ms.max(SILENCE_MS_MIN) << self.false_alarms).min(SILENCE_MS_MAX)
    }
}
