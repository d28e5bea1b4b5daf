//! [`Frontier`]: the events that it is told. What they mean for a queue is worked out in
//! `standing`; what is done about it is decided in `schedule`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use telusur_model::{
    CrawlNo, Door, FetchOutcome, Fetched, Host, Moment, NetworkSign, Politeness, Purpose,
    QueuePlace, Visit,
};

use crate::back_pressure::SiteWatch;
use crate::charges::Charges;
use crate::crawl::{CrawlState, SiteId};
use crate::decision::{AskedEarlier, CrawlStart, Disposition, IdEnd, Region, RobotsKnown};
use crate::gate::Opening;
use crate::head::Waiting;
use crate::host::{AddressState, HostId, Hosts, InFlight, Lookup};
use crate::ids::Ids;
use crate::linear::Linear;
use crate::pace::HostSignal;
use crate::passage::{RequestStart, request_start};
use crate::retry::disposition;
use crate::standing::Standing;
use crate::suspicion::Suspicion;

/// Visits held in memory for one host of a crawl, in each region.
const HEAD_MAX: usize = 64;

/// Decides what is fetched next, and when, for all crawls of this process.
///
/// Events about crawls, hosts and visits that it does not know are ignored, so that what is still
/// under way when a crawl is removed does no harm. A crawl's number must not be started again
/// before all its earlier events have come in.
#[derive(Debug)]
pub struct Frontier {
    pub(crate) crawls: BTreeMap<CrawlNo, CrawlState>,
    pub(crate) hosts: Hosts,
    pub(crate) addresses: BTreeMap<IpAddr, AddressState>,
    /// When time alone changes something.
    pub(crate) timers: BTreeSet<(Moment, Timer)>,
    /// The latest moment that was told.
    pub(crate) now: Moment,
    /// Service at which crawls were served lately.
    pub(crate) level: u64,
    /// Hosts whose lookup is under way.
    pub(crate) lookups: usize,
    pub(crate) suspicion: Suspicion,
    pub(crate) sites: SiteWatch,
    charges: Charges,
    /// Queues looked at so far: the cost of all decisions.
    pub(crate) effort: u64,
    head_max: usize,
}

/// What is looked at when its moment has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    Queue(CrawlNo, HostId),
    Address(IpAddr),
}

impl Default for Frontier {
    fn default() -> Self {
        Self::new()
    }
}

impl Frontier {
    /// A frontier without crawls.
    pub fn new() -> Self {
        Self::with_head_max(HEAD_MAX)
    }

    /// A frontier that holds at most this many visits in memory for a host, crawl and region.
    pub fn with_head_max(head_max: usize) -> Self {
        Self {
            crawls: BTreeMap::new(),
            hosts: Hosts::default(),
            addresses: BTreeMap::new(),
            timers: BTreeSet::new(),
            now: Moment(0),
            level: 0,
            lookups: 0,
            suspicion: Suspicion::default(),
            sites: SiteWatch::default(),
            charges: Charges::default(),
            effort: 0,
            head_max: head_max.max(1),
        }
    }

    // ---- crawls ----

    /// A crawl starts, or goes on after a restart.
    pub fn start(&mut self, start: CrawlStart) {
        let no = start.crawl;
        self.remove(no);
        self.crawls.insert(no, CrawlState::new(&start, self.head_max));
        let mut hosts = Vec::with_capacity(start.hosts.len());
        for known in start.hosts {
            let host = self.open_queue(no, &known.host, known.queued > 0);
            self.forgive_site_of(&known.host);
            let state = self.hosts.get_mut(host);
            state.parse_cost.forgive();
            let pace = &mut state.pace;
            pace.keep_quiet_until(known.next_at);
            pace.learned_earlier(known.delay_ms.unwrap_or(0));
            if known.pages > 0 {
                pace.answered_earlier();
            }
            if let Some(crawl) = self.crawls.get_mut(&no) {
                let site = crawl.queue(host).site;
                crawl.credit_pages(site, known.pages);
            }
            hosts.push(host);
        }
        if let Some(linear) = start.linear {
            let ids = Ids::new(linear, |walk| {
                let host = self.open_queue(no, walk.host(), false);
                hosts.push(host);
                host
            });
            if let Some(crawl) = self.crawls.get_mut(&no) {
                crawl.ids = Some(ids);
            }
        }
        if let Some(crawl) = self.crawls.get_mut(&no) {
            crawl.forgive_lags();
        }
        for host in hosts {
            self.refresh_host(host);
        }
    }

    /// A host was asked by a crawl that is over, or in another process: politeness is owed all the
    /// same.
    pub fn asked_earlier(&mut self, host: &Host, earlier: AskedEarlier) {
        let id = self.hosts.id_or_new(host);
        let pace = &mut self.hosts.get_mut(id).pace;
        pace.keep_quiet_until(earlier.next_at);
        pace.learned_earlier(earlier.delay_ms);
        self.refresh_host(id);
    }

    /// Forgets a crawl. What is in flight keeps its hosts busy until it is finished.
    pub fn remove(&mut self, crawl: CrawlNo) {
        let hosts = self.withdraw_queues(crawl);
        self.crawls.remove(&crawl);
        self.charges.forget(crawl);
        self.rest_if_nobody_asks();
        for &host in &hosts {
            let state = self.hosts.get_mut(host);
            state.crawls.retain(|no| *no != crawl);
            if matches!(state.address, Lookup::UnderWay { crawl: asking, .. } if asking == crawl) {
                state.address = Lookup::Unknown;
                self.lookups -= 1;
            }
        }
        for address in self.addresses.values_mut() {
            address.queues.remove(&crawl);
        }
        self.refresh_hosts(&hosts);
        self.hosts.forget_unused(self.now);
        self.forget_unused_sites();
        let now = self.now;
        self.addresses.retain(|_, address| !address.may_be_forgotten(now));
    }

    /// Nothing more of this crawl is handed out.
    pub fn pause(&mut self, crawl: CrawlNo) {
        if let Some(crawl) = self.crawls.get_mut(&crawl) {
            crawl.paused = true;
        }
        self.rest_if_nobody_asks();
    }

    /// The crawl goes on.
    pub fn resume(&mut self, crawl: CrawlNo) {
        if let Some(crawl) = self.crawls.get_mut(&crawl) {
            crawl.paused = false;
            crawl.failing_since = None;
        }
    }

    /// The crawl goes on to see whether the network is back: until there is an answer, failures
    /// are charged to no host and no page.
    pub fn resume_in_doubt(&mut self, crawl: CrawlNo, now: Moment) {
        self.advance(now);
        self.resume(crawl);
        self.suspicion.keep(self.now);
    }

    /// Changes how a crawl treats hosts; holds for the next visit.
    pub fn set_politeness(&mut self, crawl: CrawlNo, politeness: Politeness) {
        // The order of every line may change with it, so all queues step out and in again.
        let hosts = self.withdraw_queues(crawl);
        if let Some(crawl) = self.crawls.get_mut(&crawl) {
            crawl.politeness = politeness;
        }
        self.refresh_hosts(&hosts);
    }

    /// Changes after how many pages a crawl ends.
    pub fn set_pages_max(&mut self, crawl: CrawlNo, pages_max: Option<u64>) {
        if let Some(crawl) = self.crawls.get_mut(&crawl) {
            crawl.pages_max = pages_max;
            crawl.told = false;
        }
    }

    /// Sets how many ids of a linear crawl may be asked of one host.
    pub fn limit_ids(&mut self, crawl: CrawlNo, per_host_max: Option<u64>) {
        let Some(state) = self.crawls.get_mut(&crawl) else { return };
        let Some(ids) = &mut state.ids else { return };
        ids.limit(per_host_max);
        let hosts: Vec<HostId> = state.queues.keys().copied().collect();
        self.refresh_hosts(&hosts);
    }

    /// Says how many ids of each walk an earlier run was not allowed to ask for: they use up no
    /// budget. To be told before [`limit_ids`](Self::limit_ids).
    pub fn ids_refused_earlier(&mut self, crawl: CrawlNo, by_walk: &[u64]) {
        if let Some(ids) = self.crawls.get_mut(&crawl).and_then(|crawl| crawl.ids.as_mut()) {
            ids.set_refused(by_walk);
        }
    }

    /// Whether a budget keeps ids of a linear crawl from being asked.
    pub fn has_ids_left_out(&self, crawl: CrawlNo) -> bool {
        let ids = self.crawls.get(&crawl).and_then(|crawl| crawl.ids.as_ref());
        ids.is_some_and(Ids::has_left_out)
    }

    // ---- queues ----

    /// A visit is in the store's queue now. `due`: when, for the lane `Later`.
    pub fn discovered(&mut self, visit: Visit, due: Option<Moment>) {
        let no = visit.crawl;
        if !self.crawls.contains_key(&no) {
            return;
        }
        let host = self.open_queue(no, &visit.url.host(), false);
        if let Some(crawl) = self.crawls.get_mut(&no) {
            let head_max = crawl.head_max();
            crawl.told = false;
            crawl.queue_mut(host).discovered(Waiting { visit, due }, head_max);
        }
        self.refresh(no, host);
    }

    /// The store's answer to [`Next::NeedUrls`](crate::Next::NeedUrls). `exhausted`: it has no
    /// more after these.
    pub fn refill(
        &mut self,
        crawl: CrawlNo,
        host: &Host,
        region: Region,
        visits: Vec<(Visit, Option<Moment>)>,
        exhausted: bool,
    ) {
        let Some(host) = self.known_queue(crawl, host) else { return };
        let Some(state) = self.crawls.get_mut(&crawl) else { return };
        let head_max = state.head_max();
        let answer = visits.into_iter().map(|(visit, due)| Waiting { visit, due }).collect();
        if state.queue_mut(host).refill(region, answer, exhausted, head_max) {
            state.reads -= 1;
            self.refresh(crawl, host);
        }
    }

    /// The store has removed a row of the queue: the visit is settled, or queued again at another
    /// place. `stored_page`: it became a page.
    ///
    /// A place must be announced ([`discovered`](Self::discovered)) before it is committed.
    pub fn committed(&mut self, crawl: CrawlNo, host: &Host, place: QueuePlace, stored_page: bool) {
        let Some(host) = self.known_queue(crawl, host) else { return };
        let Some(state) = self.crawls.get_mut(&crawl) else { return };
        let queue = state.queue_mut(host);
        let site = queue.site;
        if queue.commit(place) {
            state.settle(site, stored_page);
        }
        state.flights.end(place);
        self.refresh(crawl, host);
    }

    /// The store has recorded the state of an id of a linear crawl. `host` is the one that was asked
    /// last: redirects may have led away from that of the walk.
    pub fn committed_id(&mut self, crawl: CrawlNo, host: &Host, place: QueuePlace, end: IdEnd) {
        let now = self.now;
        let of_walk = self.crawls.get_mut(&crawl).and_then(|crawl| {
            let (walk, id) = place.id()?;
            crawl.ids.as_mut()?.became(walk, id, end.state, now)
        });
        self.committed(crawl, host, place, end.stored_page);
        if let Some(of_walk) = of_walk.filter(|id| self.hosts.id(host) != Some(*id)) {
            self.refresh(crawl, of_walk);
        }
    }

    /// An id of a linear crawl was redirected: its visit goes on at another URL, maybe of another
    /// host, and is under way until its end is [committed](Self::committed_id). `from`: the host
    /// that sent it there.
    pub fn redirected_id(&mut self, from: &Host, visit: Visit) {
        self.committed(visit.crawl, from, visit.place, false);
        self.prerequisite(visit, None);
    }

    /// A prerequisite is to be run, not before `due`. It is in no other queue, goes before
    /// everything else of its host, and is over when it is [`committed`](Self::committed).
    pub fn prerequisite(&mut self, visit: Visit, due: Option<Moment>) {
        let no = visit.crawl;
        if !self.crawls.contains_key(&no) {
            return;
        }
        let host = self.open_queue(no, &visit.url.host(), false);
        if let Some(crawl) = self.crawls.get_mut(&no) {
            crawl.told = false;
            crawl.queue_mut(host).add_prerequisite(Waiting { visit, due });
        }
        self.refresh(no, host);
    }

    // ---- hosts ----

    /// What is known of the robots.txt of an origin: its visits may go out.
    pub fn robots(&mut self, crawl: CrawlNo, host: &Host, door: Door, known: RobotsKnown) {
        let Some(id) = self.known_queue(crawl, host) else { return };
        let Some(state) = self.crawls.get_mut(&crawl) else { return };
        state.queue_mut(id).robots.answer(door, known);
        self.refresh_host(id);
    }

    /// The rules of an origin's robots.txt are no longer cached: they are fetched before its next visit.
    pub fn forget_robots(&mut self, crawl: CrawlNo, host: &Host, door: Door) {
        let Some(id) = self.known_queue(crawl, host) else { return };
        let Some(state) = self.crawls.get_mut(&crawl) else { return };
        state.queue_mut(id).robots.forget(door);
        self.refresh(crawl, id);
    }

    // ---- visits ----

    /// The fetch of a visit ended: its host may be asked by another one. Says what becomes of it.
    pub fn finished(&mut self, visit: &Visit, fetched: &Fetched, now: Moment) -> Disposition {
        self.advance(now);
        let Some(host) = self.hosts.id(&visit.url.host()) else { return Disposition::Settle };
        let Some(flight) = self.leave_gates(host, visit, request_start(fetched)) else {
            return Disposition::Settle;
        };
        self.note_address(host, flight, fetched);
        let disposition = self.learn(host, flight, visit, fetched);
        self.end_flight(host, visit, |crawl, site| {
            let is_redirect = matches!(fetched.outcome, FetchOutcome::Redirected { .. });
            if is_redirect || visit.purpose != Purpose::Page || disposition != Disposition::Settle {
                crawl.give_back(site);
            } else {
                crawl.bore_fruit(site);
            }
        });
        self.refresh_host_and_address(host, flight.address);
        disposition
    }

    /// A visit that was handed out is not asked for after all: its host may be asked by another
    /// one, and no service is counted.
    pub fn skipped(&mut self, visit: &Visit, now: Moment) {
        self.advance(now);
        let Some(host) = self.hosts.id(&visit.url.host()) else { return };
        let Some(flight) = self.leave_gates(host, visit, RequestStart::Never) else { return };
        self.end_flight(host, visit, |crawl, site| {
            // One that was redirected has been asked for at its own address.
            let id = visit.place.id().filter(|_| visit.redirects.is_empty());
            if let (Some((walk, id)), Some(ids)) = (id, &mut crawl.ids) {
                ids.skipped(walk, id);
            }
            crawl.give_back(site);
            crawl.service = crawl.service.saturating_sub(1);
        });
        self.refresh_host_and_address(host, flight.address);
    }

    /// A visit whose fetch has ended will not be stored after all: it is in its queue as before.
    pub fn returned(&mut self, visit: Visit) {
        let (no, place) = (visit.crawl, visit.place);
        let Some(host) = self.known_queue(no, &visit.url.host()) else { return };
        let Some(crawl) = self.crawls.get_mut(&no) else { return };
        let head_max = crawl.head_max();
        let queue = crawl.queue_mut(host);
        let site = queue.site;
        if queue.take_back(visit, head_max) {
            crawl.settle(site, false);
            crawl.told = false;
        }
        crawl.flights.end(place);
        self.refresh(no, host);
    }

    // ---- what can be asked ----

    /// Visits of a crawl that were handed out and have not ended.
    pub fn in_flight(&self, crawl: CrawlNo) -> u64 {
        self.crawls.get(&crawl).map_or(0, |crawl| crawl.flights.count())
    }

    /// Since when no host answers any more, so that the fault may be on this side. Until one
    /// does, crawls that failed try one visit at a time, and failures are charged to no host and no page.
    pub fn suspects_network_since(&self) -> Option<Moment> {
        self.suspicion.since()
    }

    /// Since when a crawl has failed and had no answer, if the fault may be on this side.
    pub fn cut_off_since(&self, crawl: CrawlNo) -> Option<Moment> {
        self.suspicion.since()?;
        self.crawls.get(&crawl)?.failing_since
    }

    /// Whether there is more that speaks for a fault on this side than one silent host: other hosts
    /// fail too, or there is no route at all.
    pub fn is_outage_likely(&self) -> bool {
        self.suspicion.is_outage_likely()
    }

    /// When a visit went out last, whosever it was.
    pub fn asked_at(&self) -> Option<Moment> {
        self.suspicion.asked_at()
    }

    /// When any host answered last.
    pub fn answered_at(&self) -> Option<Moment> {
        self.suspicion.answered_at()
    }

    /// The sites of a crawl and the pages of each.
    #[cfg(test)]
    pub(crate) fn sites(
        &self,
        crawl: CrawlNo,
    ) -> impl Iterator<Item = (&telusur_model::Site, u64)> {
        let crawl = self.crawls.get(&crawl).into_iter();
        crawl.flat_map(|crawl| crawl.sites.iter().map(|site| (&site.site, site.pages)))
    }

    /// The walks of a linear crawl.
    pub fn linear(&self, crawl: CrawlNo) -> Option<&Linear> {
        self.crawls.get(&crawl)?.ids.as_ref().map(Ids::linear)
    }

    /// The delay that a host has taught us or asks for, if it is more than the crawl's own.
    pub fn host_delay_ms(&self, crawl: CrawlNo, host: &Host) -> Option<u64> {
        let own_ms = self.crawls.get(&crawl)?.politeness.delay_ms;
        let host = self.hosts.get(self.hosts.id(host)?);
        let delay_ms = host.pace.learned_ms().max(self.crawl_delay_ms(host));
        (delay_ms > own_ms).then_some(delay_ms)
    }

    /// When a crawl may ask a host at the earliest, by what is known now; `None` if only an event can allow
    /// it. Others may have their turn first.
    pub fn may_ask_at(&self, crawl: CrawlNo, host: &Host) -> Option<Moment> {
        let id = self.known_queue(crawl, host)?;
        let host = self.hosts.get(id);
        let address = host.known_address().map(|address| self.address_opening(address));
        let openings = [Some(host.opening(self.host_terms(host))), address];
        let mut at = self.crawl(crawl).not_before()?;
        for opening in openings.into_iter().flatten() {
            let Opening::At(moment) = opening else { return None };
            at = at.max(moment);
        }
        Some(at)
    }

    /// The hosts of a crawl that must not be asked yet because of a request, and when that was sent. A
    /// visit whose request is not known to be sent may send it any moment.
    pub fn asked_lately(&self, crawl: CrawlNo, now: Moment) -> Vec<(Host, Moment)> {
        let Some(state) = self.crawls.get(&crawl) else { return Vec::new() };
        let mut lately = Vec::new();
        for &id in state.queues.keys() {
            let host = self.hosts.get(id);
            let own_ms = state.politeness.delay_ms;
            let delay_ms = own_ms.max(host.pace.learned_ms()).max(self.crawl_delay_ms(host));
            let is_sending = host.in_flight.iter().any(|visit| !visit.started);
            let asked_at = if is_sending { Some(now) } else { host.gate.last_start() };
            let owed = asked_at.filter(|at| at.plus_ms(delay_ms) > now);
            lately.extend(owed.map(|at| (host.host.clone(), at)));
        }
        lately
    }

    // ---- helpers ----

    pub(crate) fn crawl(&self, no: CrawlNo) -> &CrawlState {
        self.crawls.get(&no).expect("asked only for crawls that run")
    }

    pub(crate) fn advance(&mut self, now: Moment) {
        self.now = self.now.max(now);
    }

    /// The queue of a host in a crawl; opened if there is none.
    fn open_queue(&mut self, no: CrawlNo, host: &Host, more: bool) -> HostId {
        let id = self.hosts.id_or_new(host);
        let Some(crawl) = self.crawls.get_mut(&no) else { return id };
        if crawl.queues.contains_key(&id) {
            return id;
        }
        let site = host.site();
        crawl.open_queue(id, site.clone(), more);
        crawl.block_site(&site, self.sites.is_blocked(&site));
        let state = self.hosts.get_mut(id);
        state.crawls.push(no);
        if let Some(address) = state.known_address() {
            *self.addresses.entry(address).or_default().queues.entry(no).or_default() += 1;
        }
        id
    }

    fn known_queue(&self, crawl: CrawlNo, host: &Host) -> Option<HostId> {
        let host = self.hosts.id(host)?;
        self.crawls.get(&crawl)?.queues.contains_key(&host).then_some(host)
    }

    /// Takes all queues of a crawl out of every line. Returns their hosts.
    fn withdraw_queues(&mut self, no: CrawlNo) -> Vec<HostId> {
        let Some(crawl) = self.crawls.get(&no) else { return Vec::new() };
        let hosts: Vec<HostId> = crawl.queues.keys().copied().collect();
        for &host in &hosts {
            self.stand(no, host, Standing::default());
        }
        hosts
    }

    fn refresh_hosts(&mut self, hosts: &[HostId]) {
        let mut addresses = BTreeSet::new();
        for &host in hosts {
            self.refresh_host(host);
            addresses.extend(self.hosts.get(host).known_address());
        }
        for address in addresses {
            self.refresh_address(address);
        }
    }

    /// Learns from the outcome about the host, and decides about the visit.
    fn learn(
        &mut self,
        host: HostId,
        flight: InFlight,
        visit: &Visit,
        fetched: &Fetched,
    ) -> Disposition {
        let answer = HostSignal::of(fetched);
        let is_probe = visit.purpose == Purpose::Probe;
        if answer.is_reply() || fetched.network == NetworkSign::Alive {
            self.note_reply(host, visit, fetched, answer.is_reply());
        } else if answer == HostSignal::Unreachable && !is_probe {
            self.note_failure(host, visit, fetched.network);
        }
        // A probe teaches how unknown URLs look and nothing else. It asks for what the site never
        // offered, so its answer must not slow down, silence or rest the site; it is not repeated.
        if is_probe {
            return Disposition::Settle;
        }
        let base_ms = self.strictest_terms(self.hosts.get(host).crawls.iter()).delay_ms;
        let Some(crawl) = self.crawls.get(&visit.crawl) else { return Disposition::Settle };
        let politeness = &crawl.politeness;
        let pace = &mut self.hosts.get_mut(host).pace;
        let was_resting = pace.is_resting(self.now);
        let is_in_doubt = self.suspicion.since().is_some();
        if answer != HostSignal::Silent && !is_in_doubt {
            pace.took(fetched.took_ms);
        }
        if answer != HostSignal::Unreachable || !is_in_doubt {
            let asked_at = fetched.requested_at.unwrap_or(flight.handed_at);
            pace.learn(answer, politeness, base_ms, asked_at, self.now);
        }
        let attempt = self.charges.attempt(visit);
        let is_excused = was_resting || is_in_doubt || self.suspicion.is_forming();
        match disposition(visit, attempt, fetched, politeness, pace, is_excused) {
            Disposition::Settle => {
                self.charges.settled(visit);
                Disposition::Settle
            }
            Disposition::Retry { after_ms, counted } if answer == HostSignal::Unreachable => {
                let counted = counted && self.charges.count(visit);
                Disposition::Retry { after_ms, counted }
            }
            retry @ Disposition::Retry { .. } => retry,
        }
    }

    /// There was an answer. `is_host`: from the host itself, and not from a machine that refuses the
    /// connection or from a resolver.
    fn note_reply(&mut self, host: HostId, visit: &Visit, fetched: &Fetched, is_host: bool) {
        self.suspicion.answered(host, fetched.took_ms, self.now);
        if is_host {
            self.suspicion.may_bear_witness(host);
        }
        self.charges.stand();
        if let Some(crawl) = self.crawls.get_mut(&visit.crawl) {
            crawl.failing_since = None;
        }
    }

    fn note_failure(&mut self, host: HostId, visit: &Visit, sign: NetworkSign) {
        let now = self.now;
        if let Some(crawl) = self.crawls.get_mut(&visit.crawl) {
            crawl.failing_since.get_or_insert(now);
        }
        if !self.suspicion.failed(host, &self.hosts.get(host).pace, sign, now) {
            return;
        }
        // What failed since the last answer was not the fault of its hosts and pages either.
        self.charges.forgive();
        for (host, before) in self.suspicion.failing() {
            if let Some(state) = self.hosts.remembered(host) {
                state.pace.forgive(&before);
                self.refresh_host(host);
            }
        }
    }

    /// With no crawl left that sends requests there are no answers to miss: nothing to suspect.
    fn rest_if_nobody_asks(&mut self) {
        if self.crawls.values().all(|crawl| crawl.paused) {
            self.suspicion.rest();
        }
    }

    /// Ends the flight of a visit within its crawl, and accounts for it.
    fn end_flight(
        &mut self,
        host: HostId,
        visit: &Visit,
        account: impl FnOnce(&mut CrawlState, SiteId),
    ) {
        let Some(crawl) = self.crawls.get_mut(&visit.crawl) else { return };
        let Some(queue) = crawl.queues.get_mut(&host) else { return };
        let site = queue.site;
        if queue.end_flight(visit.place) {
            crawl.flights.end(visit.place);
            account(crawl, site);
        }
    }
}
