//! The gates that visits go through, of their host and of its address: when requests were sent, and
//! where hosts live.

use std::net::IpAddr;

use telusur_model::{FetchOutcome, Fetched, Host, Moment, Visit};

use crate::frontier::Frontier;
use crate::gate::Gate;
use crate::host::{HostId, InFlight, Lookup};

impl Frontier {
    /// A host's address was looked up; `None`: in vain.
    pub fn address(&mut self, host: &Host, address: Option<IpAddr>, now: Moment) {
        self.advance(now);
        let Some(host) = self.hosts.id(host) else { return };
        self.move_to_address(host, address.map(|address| address.to_canonical()));
        self.refresh_host(host);
    }

    /// The request of a visit to this host was really sent at that moment: delays count from here.
    pub fn requested(&mut self, host: &Host, at: Moment) {
        let Some(host) = self.hosts.id(host) else { return };
        let state = self.hosts.get_mut(host);
        let Some(sent) = state.in_flight.iter_mut().find(|visit| !visit.started) else { return };
        sent.started = true;
        let address = sent.address;
        state.gate.start(at);
        if let Some(gate) = self.address_gate(address) {
            gate.start(at);
        }
        self.refresh_host_and_address(host, address);
    }

    /// The request of a visit was sent once more, because its connection was dead: the delay counts
    /// from here.
    pub fn requested_again(&mut self, host: &Host, at: Moment) {
        let Some(host) = self.hosts.id(host) else { return };
        let state = self.hosts.get_mut(host);
        state.gate.note_start(at);
        let address = state.known_address();
        if let Some(gate) = self.address_gate(address) {
            gate.note_start(at);
        }
        self.refresh_host_and_address(host, address);
    }

    fn move_to_address(&mut self, host: HostId, address: Option<IpAddr>) {
        let state = self.hosts.get_mut(host);
        let before = std::mem::replace(&mut state.address, Lookup::Known(address));
        if let Lookup::UnderWay { .. } = before {
            self.lookups -= 1;
        }
        let before = match before {
            Lookup::Known(address) => address,
            Lookup::Unknown | Lookup::UnderWay { .. } => None,
        };
        if before == address {
            return;
        }
        for &no in &state.crawls {
            if let Some(old) = before.and_then(|before| self.addresses.get_mut(&before)) {
                let queues = old.queues.entry(no).or_default();
                *queues = queues.saturating_sub(1);
                if *queues == 0 {
                    old.queues.remove(&no);
                }
            }
            if let Some(address) = address {
                *self.addresses.entry(address).or_default().queues.entry(no).or_default() += 1;
            }
        }
    }

    fn address_gate(&mut self, address: Option<IpAddr>) -> Option<&mut Gate> {
        Some(&mut self.addresses.get_mut(&address?)?.gate)
    }

    /// A visit leaves the gates of its host and address.
    pub(crate) fn leave_gates(
        &mut self,
        host: HostId,
        visit: &Visit,
        start: RequestStart,
    ) -> Option<InFlight> {
        let state = self.hosts.get_mut(host);
        let flight = state.take_in_flight(visit.crawl, visit.place)?;
        let start = match start {
            RequestStart::At(moment) => Some(moment),
            RequestStart::Tried => Some(flight.handed_at),
            RequestStart::Never => None,
        };
        state.gate.leave(flight.started);
        if let Some(start) = start {
            state.gate.note_start(start);
        }
        if let Some(gate) = self.address_gate(flight.address) {
            gate.leave(flight.started);
            if let Some(start) = start {
                gate.note_start(start);
            }
        }
        Some(flight)
    }

    /// The fetch may have gone to another address than the one that was announced.
    pub(crate) fn note_address(&mut self, host: HostId, flight: InFlight, fetched: &Fetched) {
        let Some(address) = fetched.address.map(|address| address.to_canonical()) else { return };
        if flight.address == Some(address) {
            return;
        }
        if let Some(start) = fetched.requested_at {
            self.addresses.entry(address).or_default().gate.note_start(start);
        }
        self.move_to_address(host, Some(address));
        self.refresh_address(address);
    }
}

/// When a host was asked by a visit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestStart {
    At(Moment),
    /// It was tried, and no request got through. Counted from the hand-out: a host that refuses
    /// connections is not to be knocked at without pause.
    Tried,
    Never,
}

pub(crate) fn request_start(fetched: &Fetched) -> RequestStart {
    match (fetched.requested_at, &fetched.outcome) {
        (Some(moment), _) => RequestStart::At(moment),
        (None, FetchOutcome::Refused { .. }) => RequestStart::Never,
        (None, _) => RequestStart::Tried,
    }
}
