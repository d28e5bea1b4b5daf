//! Where a host's queue stands: may it be asked now, what does it wait for, do others wait for it.
//!
//! The answer is worked out from scratch after every event that touches the queue, and only its
//! difference to the last answer is applied. So there is one place that knows all the rules, and
//! no event can forget one.

use std::net::IpAddr;

use telusur_model::{CrawlNo, Door, Fairness, Moment, Purpose};

use crate::crawl::FirstInLine;
use crate::decision::Region;
use crate::frontier::{Frontier, Timer};
use crate::gate::{Opening, Terms};
use crate::host::{HostId, HostState, Lookup};
use crate::rules::Leave;

/// A site makes others wait only if it can be served this soon. Ten times slower than its
/// neighbours is still equal treatment; five seconds a page would be a standstill.
const HOLD_MS_MAX: u64 = 2_000;

/// Where a queue stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) spot: Spot,
    /// Better served sites wait for it.
    holds: bool,
    /// It holds anything, in memory or in the store.
    busy: bool,
    /// When time alone may change this.
    wake_at: Option<Moment>,
}

/// What a queue waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Spot {
    /// For a visit, for its host's gate, or for an answer.
    #[default]
    Idle,
    /// For the lookup of its address.
    Unresolved { ticket: u64, since: Moment },
    /// For its robots.txt to be read.
    Unruled { ticket: u64, since: Moment },
    /// For its address, which is busy with other hosts.
    Parked { address: IpAddr, ticket: u64, since: Moment },
    /// For its turn: with an id of a linear crawl (`is_id`), or with a visit of its queue, among those
    /// that answer in time or among the doubtful.
    Ready { ticket: u64, is_id: bool, is_doubtful: bool },
}

impl Frontier {
    /// Brings the queues of a host, in all crawls, to their right place.
    pub(crate) fn refresh_host(&mut self, host: HostId) {
        let mut index = 0;
        while let Some(&no) = self.hosts.get(host).crawls.get(index) {
            self.refresh(no, host);
            index += 1;
        }
    }

    /// Brings a queue to its right place.
    pub(crate) fn refresh(&mut self, no: CrawlNo, host: HostId) {
        self.effort += 1;
        let standing = self.standing(no, host);
        self.stand(no, host, standing);
        let Some(crawl) = self.crawls.get_mut(&no) else { return };
        let head_max = crawl.head_max();
        for region in Region::ALL {
            if crawl.queue_mut(host).head(region).wants_read(head_max) {
                crawl.reads_wanted.push_back((host, region));
            }
        }
    }

    fn standing(&self, no: CrawlNo, host_id: HostId) -> Standing {
        let now = self.now;
        let crawl = self.crawl(no);
        let queue = crawl.queue(host_id);
        let host = self.hosts.get(host_id);
        let opening = match host.parse_cost.holds_back() && queue.oldest_outstanding().is_some() {
            // What its last page costs is not known yet.
            true => Opening::OnEvent,
            false => host.opening(self.host_terms(host)),
        };
        let first = crawl.first(host_id, now);
        let has_visit = first.is_some();
        let is_id = matches!(first, Some(FirstInLine::Id(_)));
        let leave = self.leave(no, host_id);
        let spot = match leave {
            // Rules can be read about while others use the host: waiting for the gate to open, a
            // crawl would never come to it on a host that another crawl asks at every opening.
            Leave::Unasked => {
                let (ticket, since) = self.ticket(no, host_id);
                Spot::Unruled { ticket, since }
            }
            // Ids do not stand in a line of sites, which passes over those that are blocked.
            Leave::Given if is_id && crawl.is_site_blocked(host_id) => Spot::Idle,
            Leave::Given if has_visit && opening.is_open(now) => {
                self.spot_behind_open_gate(no, host_id, is_id)
            }
            Leave::Given | Leave::Awaited { .. } => Spot::Idle,
        };

        let is_working = has_visit || queue.oldest_outstanding().is_some();
        let waits_since = [
            queue.oldest_outstanding(),
            host.in_flight.first().map(|oldest| oldest.handed_at),
            match host.address {
                Lookup::UnderWay { since, .. } => Some(since),
                _ => None,
            },
            match spot {
                Spot::Parked { since, .. }
                | Spot::Unresolved { since, .. }
                | Spot::Unruled { since, .. } => Some(since),
                Spot::Idle | Spot::Ready { .. } => None,
            },
            match leave {
                Leave::Awaited { since } => Some(since),
                Leave::Given | Leave::Unasked => None,
            },
        ]
        .into_iter()
        .flatten()
        .min();
        let holds = is_working
            && self.interval_ms(host) <= HOLD_MS_MAX
            && host.pace.quiet_until() <= now
            && waits_since.is_none_or(|since| now.ms_since(since) <= HOLD_MS_MAX);

        let gate_opens_at = match opening {
            Opening::At(moment) if has_visit && moment > now => Some(moment),
            _ => None,
        };
        // A prerequisite that comes due may be what the first visit waits for.
        let due_at = crawl.next_due(host_id).filter(|&due| due > now);
        let releases_at = waits_since
            .filter(|_| holds && crawl.politeness.fairness == Fairness::Equal)
            .map(|since| since.plus_ms(HOLD_MS_MAX + 1));
        let wake_at = [gate_opens_at, due_at, releases_at].into_iter().flatten().min();
        Standing { spot, holds, busy: crawl.is_busy(host_id), wake_at }
    }

    /// The spot of a queue that has a visit and whose host may be asked.
    fn spot_behind_open_gate(&self, no: CrawlNo, host_id: HostId, is_id: bool) -> Spot {
        let (ticket, since) = self.ticket(no, host_id);
        match self.hosts.get(host_id).address {
            Lookup::Unknown => Spot::Unresolved { ticket, since },
            Lookup::UnderWay { .. } => Spot::Idle,
            Lookup::Known(Some(address)) if !self.address_opening(address).is_open(self.now) => {
                Spot::Parked { address, ticket, since }
            }
            Lookup::Known(_) => {
                let is_doubtful = self.hosts.get(host_id).pace.trust().is_doubtful();
                Spot::Ready { ticket, is_id, is_doubtful }
            }
        }
    }

    /// A queue's place in the line that it enters, and since when it waits.
    fn ticket(&self, no: CrawlNo, host: HostId) -> (u64, Moment) {
        let crawl = self.crawl(no);
        let queue = crawl.queue(host);
        let (kept, since) = match queue.standing.spot {
            Spot::Unresolved { ticket, since }
            | Spot::Unruled { ticket, since }
            | Spot::Parked { ticket, since, .. } => (Some(ticket), since),
            Spot::Ready { ticket, .. } => (Some(ticket), self.now),
            Spot::Idle => (None, self.now),
        };
        let ticket = match crawl.politeness.fairness {
            // First come, first served: the ticket is the place in the order of discovery.
            Fairness::None => match crawl.first(host, self.now) {
                Some(FirstInLine::Visit(first)) => first.place.seq,
                Some(FirstInLine::Id(_)) | None => 0,
            },
            // Higher with every refresh, so those who come later stand behind.
            Fairness::Weighted | Fairness::Equal => kept.unwrap_or(self.effort),
        };
        (ticket, since)
    }

    /// Whether the first visit of a queue may go out, by what is known of its robots.txt.
    fn leave(&self, no: CrawlNo, host: HostId) -> Leave {
        let crawl = self.crawl(no);
        match crawl.first(host, self.now) {
            Some(first) if crawl.obeys_robots() && first.purpose() != Purpose::Robots => {
                crawl.queue(host).robots.leave(Door::of(first.url()), self.now)
            }
            _ => Leave::Given,
        }
    }

    /// How long a queue of this host typically waits between two visits: as long as the host needs,
    /// times the number of those that take turns.
    fn interval_ms(&self, host: &HostState) -> u64 {
        let own_ms = self.host_terms(host).delay_ms.max(host.pace.response_ms());
        let address = host.known_address().and_then(|address| self.addresses.get(&address));
        let parked = address.map_or(0, |address| address.parked_count());
        let turns = host.crawls.len().max(parked + 1);
        own_ms.saturating_mul(u64::try_from(turns).unwrap_or(u64::MAX))
    }

    /// What a host's gate demands: where crawls differ, the more polite one rules.
    pub(crate) fn host_terms(&self, host: &HostState) -> Terms {
        let terms = self.strictest_terms(host.crawls.iter());
        Terms {
            delay_ms: terms.delay_ms.max(host.pace.learned_ms()).max(self.crawl_delay_ms(host)),
            at_once: if host.pace.is_on_probation() { 1 } else { terms.at_once },
        }
    }

    /// The delay that the host's robots.txt asks for, as far as the crawls grant it.
    pub(crate) fn crawl_delay_ms(&self, host: &HostState) -> u64 {
        let Some(id) = self.hosts.id(&host.host) else { return 0 };
        let crawls = host.crawls.iter().filter_map(|no| self.crawls.get(no));
        let asked = crawls.filter_map(|crawl| {
            let delay_ms = crawl.queues.get(&id)?.robots.crawl_delay_ms();
            Some(delay_ms.min(crawl.politeness.crawl_delay_max_ms))
        });
        asked.max().unwrap_or(0)
    }

    /// When an address may be asked. What one host on it has taught us holds for that host alone:
    /// a host that is asked once a minute would never find the address quiet for a minute.
    pub(crate) fn address_opening(&self, address: IpAddr) -> Opening {
        match self.addresses.get(&address) {
            Some(state) => state.gate.opening(self.strictest_terms(state.queues.keys())),
            None => Opening::At(Moment(0)),
        }
    }

    pub(crate) fn strictest_terms<'a>(&self, crawls: impl Iterator<Item = &'a CrawlNo>) -> Terms {
        let mut terms = Terms { delay_ms: 0, at_once: u32::MAX };
        for crawl in crawls.filter_map(|no| self.crawls.get(no)) {
            terms.delay_ms = terms.delay_ms.max(crawl.politeness.delay_ms);
            terms.at_once = terms.at_once.min(u32::from(crawl.politeness.per_host.max(1)));
        }
        terms
    }

    /// Applies a standing.
    pub(crate) fn stand(&mut self, no: CrawlNo, host: HostId, standing: Standing) {
        let Some(crawl) = self.crawls.get_mut(&no) else { return };
        let queue = crawl.queue_mut(host);
        let site = queue.site;
        let before = std::mem::replace(&mut queue.standing, standing);
        if before == standing {
            return;
        }
        match (before.holds, standing.holds) {
            (false, true) => crawl.begin_holding(site),
            (true, false) => crawl.end_holding(site),
            _ => {}
        }
        match (before.busy, standing.busy) {
            (false, true) => crawl.queues_busy += 1,
            (true, false) => crawl.queues_busy -= 1,
            _ => {}
        }
        if before.wake_at != standing.wake_at {
            self.set_timer(Timer::Queue(no, host), before.wake_at, standing.wake_at);
        }
        if before.spot != standing.spot {
            self.leave_spot(no, host, before.spot);
            self.take_spot(no, host, standing.spot);
        }
    }

    fn leave_spot(&mut self, no: CrawlNo, host: HostId, spot: Spot) {
        let Some(crawl) = self.crawls.get_mut(&no) else { return };
        let site = crawl.queue(host).site;
        match spot {
            Spot::Idle => {}
            Spot::Unresolved { ticket, .. } => {
                crawl.unresolved.remove(&(ticket, host));
            }
            Spot::Unruled { ticket, .. } => {
                crawl.unruled.remove(&(ticket, host));
            }
            Spot::Ready { is_id: true, .. } => {
                if let Some(ids) = &mut crawl.ids {
                    ids.ready.remove(&host);
                }
            }
            Spot::Ready { ticket, is_doubtful, is_id: false } => {
                crawl.ready_line(is_doubtful).remove(site, ticket, host);
            }
            Spot::Parked { address, ticket, .. } => {
                if let Some(state) = self.addresses.get_mut(&address)
                    && let Some(line) = state.parked.get_mut(&no)
                {
                    line.remove(site, ticket, host);
                    if line.len() == 0 {
                        state.parked.remove(&no);
                    }
                }
            }
        }
    }

    fn take_spot(&mut self, no: CrawlNo, host: HostId, spot: Spot) {
        let Some(crawl) = self.crawls.get_mut(&no) else { return };
        let site = crawl.queue(host).site;
        let rank = crawl.rank(site);
        match spot {
            Spot::Idle => {}
            Spot::Unresolved { ticket, .. } => {
                crawl.unresolved.insert((ticket, host));
            }
            Spot::Unruled { ticket, .. } => {
                crawl.unruled.insert((ticket, host));
            }
            Spot::Ready { is_id: true, .. } => {
                if let Some(ids) = &mut crawl.ids {
                    ids.ready.insert(host);
                }
            }
            Spot::Ready { ticket, is_doubtful, is_id: false } => {
                crawl.ready_line(is_doubtful).insert(site, rank, ticket, host);
            }
            Spot::Parked { address, ticket, .. } => {
                let state = self.addresses.entry(address).or_default();
                state.parked.entry(no).or_default().insert(site, rank, ticket, host);
                self.set_address_timer(address);
            }
        }
    }

    /// An address may have opened or closed: lets the least served host of each crawl step forward.
    ///
    /// One, not all: of ten thousand hosts on one address nine thousand and more would be sent back
    /// each time. The one that steps forward closes the address, and so calls the next in time.
    pub(crate) fn refresh_address(&mut self, address: IpAddr) {
        self.set_address_timer(address);
        if !self.address_opening(address).is_open(self.now) {
            return;
        }
        let Some(state) = self.addresses.get(&address) else { return };
        let crawls: Vec<CrawlNo> = state.parked.keys().copied().collect();
        for no in crawls {
            while let Some(host) = self.first_parked(address, no) {
                self.refresh(no, host);
                if matches!(self.crawl(no).queue(host).standing.spot, Spot::Ready { .. }) {
                    break;
                }
            }
        }
    }

    fn first_parked(&mut self, address: IpAddr, no: CrawlNo) -> Option<HostId> {
        let crawl = self.crawls.get(&no)?;
        let line = self.addresses.get_mut(&address)?.parked.get_mut(&no)?;
        line.first_by(&crawl.blocked, |site| crawl.rank(site)).map(|first| first.host)
    }

    fn set_address_timer(&mut self, address: IpAddr) {
        let opening = self.address_opening(address);
        let now = self.now;
        let Some(state) = self.addresses.get_mut(&address) else { return };
        let wake_at = match opening {
            Opening::At(moment) if moment > now && !state.parked.is_empty() => Some(moment),
            _ => None,
        };
        let before = std::mem::replace(&mut state.wake_at, wake_at);
        if before != wake_at {
            self.set_timer(Timer::Address(address), before, wake_at);
        }
    }

    fn set_timer(&mut self, timer: Timer, before: Option<Moment>, after: Option<Moment>) {
        if let Some(moment) = before {
            self.timers.remove(&(moment, timer));
        }
        if let Some(moment) = after {
            self.timers.insert((moment, timer));
        }
    }
}
