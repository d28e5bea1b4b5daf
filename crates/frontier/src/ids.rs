//! [`Ids`]: the linear part of a crawl, as the rest of the frontier sees it: which hosts have ids to
//! ask, and when. Which id is asked is decided in `linear`; whether its host may be asked, elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use telusur_model::{
    CrawlNo, Door, IdState, Moment, PageUrl, Purpose, QueuePlace, Run, Timestamp, UrlKey, Via,
    Visit,
};

use crate::host::HostId;
use crate::linear::{Linear, LinearNext, WalkState};
use crate::rules::{Leave, RobotsWatch};

/// Visits by which ids and links of one crawl may be ahead of each other when both can be asked. One
/// that had nothing to ask for a while does not make up for all of it.
const LEAD_MAX: i8 = 8;

/// The walks of a crawl, and the hosts that they ask.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    linear: Linear,
    /// By walk.
    gateways: Vec<Gateway>,
    walks_of: BTreeMap<HostId, Vec<usize>>,
    /// Hosts that may be asked for an id now.
    pub(crate) ready: BTreeSet<HostId>,
    /// Visits to ids less visits to links, as far as that counts.
    lead: i8,
    /// Ids that may be asked of one host, and how many were.
    per_host_max: Option<u64>,
    asked: BTreeMap<HostId, u64>,
    /// Ids that were handed out and not asked for, until the store has kept why.
    skipped: BTreeSet<(usize, u64)>,
    /// Ids of a host that were refused without a request: they use up no unit.
    refused: BTreeMap<HostId, u64>,
}

/// Where a walk asks.
#[derive(Clone, Debug)]
struct Gateway {
    host: HostId,
    door: Door,
    /// Any of its pages: they all have one origin.
    url: PageUrl,
}

/// An id to ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextId {
    pub(crate) host: HostId,
    walk: usize,
    id: u64,
    attempt: u8,
}

impl Ids {
    /// `host_of`: the number of a walk's host.
    pub(crate) fn new(linear: Linear, mut host_of: impl FnMut(&WalkState) -> HostId) -> Self {
        let mut walks_of: BTreeMap<HostId, Vec<usize>> = BTreeMap::new();
        let mut gateways = Vec::with_capacity(linear.walks().len());
        for (walk, state) in linear.walks().iter().enumerate() {
            let (host, url) = (host_of(state), state.walk().rules().template.url_of(0));
            walks_of.entry(host).or_default().push(walk);
            gateways.push(Gateway { host, door: Door::of(&url), url });
        }
        Self {
            linear,
            gateways,
            walks_of,
            ready: BTreeSet::new(),
            lead: 0,
            per_host_max: None,
            asked: BTreeMap::new(),
            skipped: BTreeSet::new(),
            refused: BTreeMap::new(),
        }
    }

    pub(crate) fn linear(&self) -> &Linear {
        &self.linear
    }

    // ---- budgets ----

    /// Sets how many ids of each walk an earlier run was not allowed to ask for.
    pub(crate) fn set_refused(&mut self, by_walk: &[u64]) {
        self.refused.clear();
        for (gateway, ids) in self.gateways.iter().zip(by_walk) {
            *self.refused.entry(gateway.host).or_default() += ids;
        }
    }

    /// Sets how many ids may be asked of one host, those of earlier runs included.
    pub(crate) fn limit(&mut self, per_host_max: Option<u64>) {
        self.per_host_max = per_host_max;
        self.asked.clear();
        for (gateway, state) in self.gateways.iter().zip(self.linear.walks()) {
            let counts = state.coverage().counts;
            let asked = counts.content + counts.missing + counts.holes + counts.waiting;
            *self.asked.entry(gateway.host).or_default() += asked + state.in_flight_first();
        }
        for (host, refused) in &self.refused {
            let asked = self.asked.entry(*host).or_default();
            *asked = asked.saturating_sub(*refused);
        }
    }

    /// Whether a host has used up its budget.
    fn is_spent(&self, host: HostId) -> bool {
        let asked = self.asked.get(&host).copied().unwrap_or(0);
        self.per_host_max.is_some_and(|max| asked >= max)
    }

    /// Whether a budget keeps ids from being asked.
    pub(crate) fn has_left_out(&self) -> bool {
        let unfinished = |host| self.walks(host).any(|walk| !self.state(walk).is_finished());
        self.walks_of.keys().any(|&host| self.is_spent(host) && unfinished(host))
    }

    // ---- what a host has to ask ----

    /// A page of the walk that is looked at first among those of a host that can ask. `robots`: what
    /// is known of its rules, if they are obeyed.
    pub(crate) fn first(
        &self,
        host: HostId,
        robots: Option<&RobotsWatch>,
        now: Moment,
    ) -> Option<&PageUrl> {
        let is_spent = self.is_spent(host);
        let walks = self.walks(host).filter(|&walk| match is_spent {
            true => self.state(walk).can_retry(now),
            false => self.state(walk).can_ask(now),
        });
        // Rules that were not requested yet are requested first: walks of other origins go on while
        // they are being read.
        let first = walks.min_by_key(|&walk| {
            match robots.map(|robots| robots.leave(self.gateways[walk].door, now)) {
                Some(Leave::Unasked) => 0,
                Some(Leave::Given) | None => 1,
                Some(Leave::Awaited { .. }) => 2,
            }
        });
        first.map(|walk| &self.gateways[walk].url)
    }

    /// When time alone brings an id of a host.
    pub(crate) fn next_due(&self, host: HostId) -> Option<Moment> {
        let retries = self.walks(host).filter_map(|walk| self.state(walk).retry_at());
        retries.min()
    }

    /// Whether any walk of a host is not finished. Once its budget is used up, only ids that wait for
    /// another attempt are left.
    pub(crate) fn is_busy(&self, host: HostId) -> bool {
        let is_spent = self.is_spent(host);
        self.walks(host).map(|walk| self.state(walk)).any(|state| match is_spent {
            true => state.retry_at().is_some(),
            false => !state.is_finished(),
        })
    }

    /// The hosts that the walks ask.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = HostId> {
        self.walks_of.keys().copied()
    }

    fn walks(&self, host: HostId) -> impl Iterator<Item = usize> {
        self.walks_of.get(&host).into_iter().flatten().copied()
    }

    fn state(&self, walk: usize) -> &WalkState {
        &self.linear.walks()[walk]
    }

    // ---- turns ----

    /// Whether ids go before links, where both can be asked.
    pub(crate) fn go_first(&self) -> bool {
        self.lead <= 0
    }

    /// A link was visited.
    pub(crate) fn link_had_turn(&mut self) {
        self.lead = (self.lead - 1).max(-LEAD_MAX);
    }

    /// The id whose turn it is, among the hosts that are ready. `may_pass`: whether an origin may
    /// really be asked.
    pub(crate) fn next(
        &mut self,
        now: Moment,
        may_pass: impl Fn(HostId, Door) -> bool,
    ) -> Option<NextId> {
        let (gateways, ready) = (&self.gateways, &self.ready);
        let (asked, max) = (&self.asked, self.per_host_max.unwrap_or(u64::MAX));
        let is_ready = |walk: usize| {
            let Gateway { host, door, .. } = gateways[walk];
            ready.contains(&host) && may_pass(host, door)
        };
        let has_unit = |walk: usize| asked.get(&gateways[walk].host).copied().unwrap_or(0) < max;
        let next = self.linear.next_within(now, is_ready, has_unit);
        let LinearNext::Ask { walk, id, attempt } = next else { return None };
        // The attempt does not tell: a failure that is excused counts as none.
        let is_first = !self.state(walk).is_known(id);
        *self.asked.entry(self.gateways[walk].host).or_default() += u64::from(is_first);
        self.lead = (self.lead + 1).min(LEAD_MAX);
        Some(NextId { host: self.gateways[walk].host, walk, id, attempt })
    }

    /// The visit that asks. Its key and the time are for the engine to fill in.
    pub(crate) fn visit(&self, crawl: CrawlNo, ask: NextId) -> Visit {
        let walk = u32::try_from(ask.walk).expect("walks are given one by one");
        Visit {
            crawl,
            purpose: Purpose::Page,
            url: self.state(ask.walk).walk().rules().template.url_of(ask.id),
            key: UrlKey(0),
            place: QueuePlace::of_id(walk, ask.id),
            depth: 0,
            hops_outside: 0,
            via: Via::Linear,
            found_at: Timestamp(0),
            referrer: None,
            redirects: Vec::new(),
            lastmod: None,
            attempt: ask.attempt,
        }
    }

    /// An id that was handed out was not asked for.
    pub(crate) fn skipped(&mut self, walk: u32, id: u64) {
        if let Ok(walk) = usize::try_from(walk)
            && walk < self.gateways.len()
            && !self.state(walk).is_known(id)
        {
            self.skipped.insert((walk, id));
        }
    }

    /// Gives up the ids of a host that wait for another attempt: the walk of each, and what the store
    /// has to keep.
    pub(crate) fn give_up_waiting(&mut self, host: HostId) -> Vec<(u32, Run)> {
        let walks = self.walks_of.get(&host).cloned().unwrap_or_default();
        let numbered = walks.into_iter().filter_map(|walk| Some((walk, u32::try_from(walk).ok()?)));
        let linear = &mut self.linear;
        numbered
            .flat_map(|(walk, number)| {
                linear.give_up_waiting(walk).into_iter().map(move |run| (number, run))
            })
            .collect()
    }

    /// The store has recorded the state of an id. Returns the host of its walk.
    pub(crate) fn became(
        &mut self,
        walk: u32,
        id: u64,
        state: IdState,
        now: Moment,
    ) -> Option<HostId> {
        let walk = usize::try_from(walk).ok()?;
        // One that is put off keeps its unit: it will be asked.
        if self.skipped.remove(&(walk, id)) && state == IdState::Hole {
            let host = self.gateways[walk].host;
            *self.refused.entry(host).or_default() += 1;
            let asked = self.asked.entry(host).or_default();
            *asked = asked.saturating_sub(1);
        }
        self.linear.became(walk, id, state, now).then(|| self.gateways[walk].host)
    }
}
