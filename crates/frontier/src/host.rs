//! What all crawls share about a host and about an address: politeness is owed once, over all crawls.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use telusur_model::{CrawlNo, Host, Moment, QueuePlace};

use crate::gate::{Gate, Opening, Terms};
use crate::pace::Pace;
use crate::parse_cost::ParseCost;
use crate::site_queue::SiteQueue;

/// A host's number in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostId(u32);

/// A host, for all crawls.
#[derive(Clone, Debug)]
pub(crate) struct HostState {
    pub(crate) host: Host,
    pub(crate) gate: Gate,
    pub(crate) pace: Pace,
    pub(crate) parse_cost: ParseCost,
    pub(crate) address: Lookup,
    /// Oldest first.
    pub(crate) in_flight: Vec<InFlight>,
    /// The crawls that have a queue for it.
    pub(crate) crawls: Vec<CrawlNo>,
}

/// What is known of a host's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    Unknown,
    UnderWay {
        /// The crawl that asked: its answer may never come once the crawl is removed.
        crawl: CrawlNo,
        since: Moment,
    },
    /// `None`: it could not be found. Visits go out all the same, and record the failure.
    Known(Option<IpAddr>),
}

/// A visit that was handed out and has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) crawl: CrawlNo,
    pub(crate) place: QueuePlace,
    pub(crate) handed_at: Moment,
    /// Whether its request is known to have been sent.
    pub(crate) started: bool,
    /// The address that it went through the gate of.
    pub(crate) address: Option<IpAddr>,
}

impl HostState {
    fn new(host: Host) -> Self {
        let address = match literal_address(&host) {
            Some(address) => Lookup::Known(Some(address)),
            None => Lookup::Unknown,
        };
        Self {
            host,
            gate: Gate::default(),
            pace: Pace::default(),
            parse_cost: ParseCost::default(),
            address,
            in_flight: Vec::new(),
            crawls: Vec::new(),
        }
    }

    pub(crate) fn known_address(&self) -> Option<IpAddr> {
        match self.address {
            Lookup::Known(address) => address,
            Lookup::Unknown | Lookup::UnderWay { .. } => None,
        }
    }

    pub(crate) fn opening(&self, terms: Terms) -> Opening {
        match self.gate.opening(terms) {
            Opening::At(moment) => Opening::At(moment.max(self.pace.quiet_until())),
            Opening::OnEvent => Opening::OnEvent,
        }
    }

    pub(crate) fn take_in_flight(&mut self, crawl: CrawlNo, place: QueuePlace) -> Option<InFlight> {
        let index = self.in_flight.iter().position(|it| it.crawl == crawl && it.place == place)?;
        Some(self.in_flight.remove(index))
    }

    /// Whether politeness would suffer if the host were forgotten.
    fn may_be_forgotten(&self, now: Moment) -> bool {
        self.crawls.is_empty()
            && self.in_flight.is_empty()
            && !matches!(self.address, Lookup::UnderWay { .. })
            && self.pace.is_plain(now)
            && is_long_ago(self.gate.last_start(), now)
    }
}

/// The address that a host is written as: `127.0.0.1`, `[::1]`.
fn literal_address(host: &Host) -> Option<IpAddr> {
    let name = host.as_str();
    let name = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

/// Longer than any delay between two requests.
fn is_long_ago(last_start: Option<Moment>, now: Moment) -> bool {
    const REMEMBERED_MS: u64 = 3_600_000;
    last_start.is_none_or(|start| now.ms_since(start) > REMEMBERED_MS)
}

/// All hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts {
    ids: BTreeMap<Host, HostId>,
    states: BTreeMap<HostId, HostState>,
    /// Those that were parked for what their pages do to the parser when the last page was parsed that
    /// says anything about it. Their time may be over.
    parked_once: BTreeSet<HostId>,
    ids_used: u32,
}

impl Hosts {
    pub(crate) fn id(&self, host: &Host) -> Option<HostId> {
        self.ids.get(host).copied()
    }

    pub(crate) fn id_or_new(&mut self, host: &Host) -> HostId {
        if let Some(id) = self.id(host) {
            return id;
        }
        self.ids_used += 1;
        let id = HostId(self.ids_used);
        self.ids.insert(host.clone(), id);
        self.states.insert(id, HostState::new(host.clone()));
        id
    }

    pub(crate) fn get(&self, id: HostId) -> &HostState {
        self.states.get(&id).expect("a host is forgotten only when nothing refers to it")
    }

    pub(crate) fn get_mut(&mut self, id: HostId) -> &mut HostState {
        self.states.get_mut(&id).expect("a host is forgotten only when nothing refers to it")
    }

    /// A host that may have been forgotten.
    pub(crate) fn remembered(&mut self, id: HostId) -> Option<&mut HostState> {
        self.states.get_mut(&id)
    }

    /// Hosts that are parked, or were and may be again: few among all.
    pub(crate) fn parked_once(&self) -> impl Iterator<Item = HostId> {
        self.parked_once.iter().copied()
    }

    pub(crate) fn note_parked(&mut self, id: HostId, is_parked: bool) {
        match is_parked {
            true => self.parked_once.insert(id),
            false => self.parked_once.remove(&id),
        };
    }

    pub(crate) fn forget_unused(&mut self, now: Moment) {
        let (ids, parked_once) = (&mut self.ids, &mut self.parked_once);
        self.states.retain(|id, state| {
            let keep = !state.may_be_forgotten(now);
            if !keep {
                ids.remove(&state.host);
                parked_once.remove(id);
            }
            keep
        });
    }
}

/// An address, for all hosts that live on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddressState {
    pub(crate) gate: Gate,
    /// How many queues of each crawl lead here.
    pub(crate) queues: BTreeMap<CrawlNo, u32>,
    /// Hosts that could be asked if the address could.
    pub(crate) parked: BTreeMap<CrawlNo, SiteQueue>,
    /// The timer that is set for its opening.
    pub(crate) wake_at: Option<Moment>,
}

impl AddressState {
    pub(crate) fn parked_count(&self) -> usize {
        self.parked.values().map(SiteQueue::len).sum()
    }

    pub(crate) fn may_be_forgotten(&self, now: Moment) -> bool {
        self.queues.is_empty() && self.gate.is_empty() && is_long_ago(self.gate.last_start(), now)
    }
}
