//! [`Line`]: hosts that wait for their turn, the least served site first. It only orders; what the
//! ranks mean is decided by its user.

use std::collections::{BTreeMap, BTreeSet};

use crate::crawl::SiteId;
use crate::host::HostId;

/// Hosts in line, grouped by site. Sites go by rank, then by the ticket of their first host; the
/// hosts of one site go by ticket.
///
/// Grouped, because a site's rank changes with every visit and a site may have ten thousand hosts:
/// only its one entry moves.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiteQueue {
    order: BTreeSet<(u64, u64, SiteId)>,
    sites: BTreeMap<SiteId, QueuedSite>,
    hosts: usize,
}

#[derive(Clone, Debug, Default)]
struct QueuedSite {
    rank: u64,
    hosts: BTreeSet<(u64, HostId)>,
}

impl QueuedSite {
    fn key(&self, site: SiteId) -> Option<(u64, u64, SiteId)> {
        self.hosts.first().map(|&(ticket, _)| (self.rank, ticket, site))
    }
}

/// The first in line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct First {
    pub(crate) rank: u64,
    pub(crate) ticket: u64,
    pub(crate) site: SiteId,
    pub(crate) host: HostId,
}

impl SiteQueue {
    /// The first in line, passing over the sites that are blocked (few, at any time).
    pub(crate) fn first(&self, blocked: &BTreeSet<SiteId>) -> Option<First> {
        let &(rank, _, site) = self.order.iter().find(|(.., site)| !blocked.contains(site))?;
        let &(ticket, host) = self.sites.get(&site)?.hosts.first()?;
        Some(First { rank, ticket, site, host })
    }

    /// The first in line by ranks as they are now, for a line whose ranks are not kept up to date.
    /// Every step corrects one site, so the cost is paid by the visits that changed the ranks.
    pub(crate) fn first_by(
        &mut self,
        blocked: &BTreeSet<SiteId>,
        rank_now: impl Fn(SiteId) -> u64,
    ) -> Option<First> {
        loop {
            let first = self.first(blocked)?;
            let rank = rank_now(first.site);
            if rank <= first.rank {
                return Some(first);
            }
            self.set_rank(first.site, rank);
        }
    }

    pub(crate) fn insert(&mut self, site: SiteId, rank: u64, ticket: u64, host: HostId) {
        let entry = self.take_out(site);
        let mut entry = entry.unwrap_or_default();
        entry.rank = rank;
        self.hosts += usize::from(entry.hosts.insert((ticket, host)));
        self.put_back(site, entry);
    }

    pub(crate) fn remove(&mut self, site: SiteId, ticket: u64, host: HostId) {
        if let Some(mut entry) = self.take_out(site) {
            self.hosts -= usize::from(entry.hosts.remove(&(ticket, host)));
            self.put_back(site, entry);
        }
    }

    pub(crate) fn set_rank(&mut self, site: SiteId, rank: u64) {
        if let Some(mut entry) = self.take_out(site) {
            entry.rank = rank;
            self.put_back(site, entry);
        }
    }

    /// How many hosts are in line.
    pub(crate) fn len(&self) -> usize {
        self.hosts
    }

    fn take_out(&mut self, site: SiteId) -> Option<QueuedSite> {
        let entry = self.sites.remove(&site)?;
        if let Some(key) = entry.key(site) {
            self.order.remove(&key);
        }
        Some(entry)
    }

    fn put_back(&mut self, site: SiteId, entry: QueuedSite) {
        if let Some(key) = entry.key(site) {
            self.order.insert(key);
            self.sites.insert(site, entry);
        }
    }
}
