//! Sites and crawls that are handed out no more for now, because of what happens to their pages after
//! the fetch: they wait for the parser, or kill it.
//!
//! A block is kept per site and looked at when the next host is chosen, so it costs the same for a
//! site of ten thousand hosts as for one of a single host.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use telusur_model::{CrawlNo, Host, Moment, Site};

use crate::crawl::CrawlState;
use crate::frontier::Frontier;
use crate::host::HostId;
use crate::ids::Ids;
use crate::parse_cost::{PageCost, Parked, ParseCharge, SiteKills};

/// What all crawls share about sites.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiteWatch {
    /// Sites whose pages take up their share of the pipeline.
    backlogged: BTreeSet<Site>,
    /// Sites whose pages have killed parsers lately.
    kills: BTreeMap<Site, SiteKills>,
    /// When sites are tried again that are parked for that.
    parks_end: BTreeSet<(Moment, Site)>,
}

impl SiteWatch {
    /// Whether nothing of the site is handed out.
    pub(crate) fn is_blocked(&self, site: &Site) -> bool {
        self.backlogged.contains(site) || self.parks_end.iter().any(|(_, parked)| parked == site)
    }

    /// When time alone releases a site.
    pub(crate) fn next_release(&self) -> Option<Moment> {
        self.parks_end.first().map(|&(moment, _)| moment)
    }

    fn set_park_end(&mut self, site: &Site, end: Option<Moment>) {
        self.parks_end.retain(|(_, parked)| parked != site);
        self.parks_end.extend(end.map(|moment| (moment, site.clone())));
    }
}

impl Frontier {
    /// Hands out nothing of a site, in any crawl, until it is unblocked: its pages take up their
    /// share of the pipeline.
    pub fn block_site(&mut self, site: &Site, is_blocked: bool) {
        let backlogged = &mut self.sites.backlogged;
        let has_changed = match is_blocked {
            true => backlogged.insert(site.clone()),
            false => backlogged.remove(site),
        };
        if has_changed {
            self.apply_block(site);
        }
    }

    /// Hands out nothing of a crawl until it is unblocked. Unlike a pause this is not asked for, and
    /// says nothing about the crawl's state.
    pub fn block_crawl(&mut self, crawl: CrawlNo, is_blocked: bool) {
        if let Some(crawl) = self.crawls.get_mut(&crawl) {
            crawl.is_blocked = is_blocked;
        }
    }

    /// The sites of a crawl whose visits wait because their pages wait for the parser.
    pub fn backlogged_sites(&self, crawl: CrawlNo) -> impl Iterator<Item = &Site> {
        let crawl = self.crawls.get(&crawl);
        self.sites.backlogged.iter().filter(move |site| crawl.is_some_and(|it| it.has_site(site)))
    }

    /// The sites of a crawl that are not asked because pages of many of their hosts keep killing the
    /// parser.
    pub fn parked_sites(&self, crawl: CrawlNo) -> impl Iterator<Item = (&Site, Parked)> {
        let (crawl, now) = (self.crawls.get(&crawl), self.now);
        self.sites.kills.iter().filter_map(move |(site, kills)| {
            let parked = kills.parked(now)?;
            crawl.is_some_and(|it| it.has_site(site)).then_some((site, parked))
        })
    }

    /// A page of a host was parsed. Need not be told of pages that cost little, unless
    /// [`watches_cost`](Self::watches_cost) of the host. Says what the host pays for it.
    pub fn parsed(&mut self, host: &Host, cost: PageCost, now: Moment) -> ParseCharge {
        self.advance(now);
        let Some(host) = self.hosts.id(host) else { return ParseCharge::None };
        let now = self.now;
        let state = self.hosts.get_mut(host);
        let charge = state.parse_cost.note(cost, now);
        state.pace.keep_quiet_until(state.parse_cost.quiet_until());
        let is_parked = state.parse_cost.parked(now).is_some();
        self.hosts.note_parked(host, is_parked);
        self.refresh_host(host);
        match self.charge_site(host, cost) {
            ParseCharge::None => charge,
            of_site => of_site,
        }
    }

    /// Whether a page of the host cost much, one of its site killed the parser, or killed the parser, and none was cheap since.
    pub fn watches_cost(&self, host: &Host) -> bool {
        self.watches_site_of(host)
            || self.hosts.id(host).is_some_and(|id| self.hosts.get(id).parse_cost.is_watched())
    }

    /// Whether a host is not asked because its pages keep killing the parser.
    pub fn parked(&self, host: &Host) -> Option<Parked> {
        let host_state = self.hosts.get(self.hosts.id(host)?);
        host_state.parse_cost.parked(self.now).or_else(|| self.parked_with_site(host))
    }

    /// The hosts of a crawl that are not asked because their pages keep killing the parser.
    pub fn parked_hosts(&self, crawl: CrawlNo) -> impl Iterator<Item = (&Host, Parked)> {
        let crawl = self.crawls.get(&crawl);
        let is_of_crawl = move |id: &HostId| crawl.is_some_and(|it| it.queues.contains_key(id));
        self.hosts.parked_once().filter(is_of_crawl).filter_map(|id| {
            let host = self.hosts.get(id);
            Some((&host.host, host.parse_cost.parked(self.now)?))
        })
    }

    fn parked_with_site(&self, host: &Host) -> Option<Parked> {
        // Most of the time there is none, and the site of a host need not be looked up.
        if self.sites.kills.is_empty() {
            return None;
        }
        self.sites.kills.get(&host.site())?.parked(self.now)
    }

    /// Whether a page that can be read would change anything for the site of a host.
    fn watches_site_of(&self, host: &Host) -> bool {
        !self.sites.kills.is_empty() && self.sites.kills.contains_key(&host.site())
    }

    /// A page of a host was parsed: what does its site pay? Wildcard names cost nothing, so kills are
    /// counted over all hosts of a site.
    fn charge_site(&mut self, host: HostId, cost: PageCost) -> ParseCharge {
        if !cost.has_killed && self.sites.kills.is_empty() {
            return ParseCharge::None;
        }
        let (now, site) = (self.now, self.hosts.get(host).host.site());
        let charge = if cost.has_killed {
            self.sites.kills.entry(site.clone()).or_default().killed(host, now)
        } else if self.sites.kills.remove(&site).is_some() {
            ParseCharge::None
        } else {
            return ParseCharge::None;
        };
        self.apply_park(&site);
        charge
    }

    /// A crawl with this host begins, or goes on: its site is tried again.
    pub(crate) fn forgive_site_of(&mut self, host: &Host) {
        if !self.watches_site_of(host) {
            return;
        }
        let site = host.site();
        if let Some(kills) = self.sites.kills.get_mut(&site) {
            kills.forgive();
        }
        self.apply_park(&site);
    }

    /// Forgets the kills of sites that no crawl has any more.
    pub(crate) fn forget_unused_sites(&mut self) {
        let crawls = &self.crawls;
        let is_used = |site: &Site| crawls.values().any(|crawl| crawl.has_site(site));
        self.sites.kills.retain(|site, _| is_used(site));
        self.sites.parks_end.retain(|(_, site)| is_used(site));
    }

    fn apply_park(&mut self, site: &Site) {
        let parked = self.sites.kills.get(site).and_then(|kills| kills.parked(self.now));
        // What is left of a site that was given up is refused, and need not wait.
        let end = parked.and_then(|parked| parked.left_ms).map(|ms| self.now.plus_ms(ms));
        self.sites.set_park_end(site, end);
        self.apply_block(site);
    }

    /// Releases the sites whose time has come.
    pub(crate) fn end_parks(&mut self) {
        while let Some((moment, site)) = self.sites.parks_end.first().cloned()
            && moment <= self.now
        {
            self.sites.parks_end.pop_first();
            self.apply_block(&site);
        }
    }

    /// Brings all crawls in line with what is known of a site.
    fn apply_block(&mut self, site: &Site) {
        let is_blocked = self.sites.is_blocked(site);
        let mut ids = Vec::new();
        let mut has_changed = false;
        for crawl in self.crawls.values_mut() {
            if crawl.block_site(site, is_blocked) {
                has_changed = true;
                ids.extend(crawl.hosts_with_ids_of(site).map(|host| (crawl.no, host)));
            }
        }
        if !has_changed {
            return;
        }
        for (crawl, host) in ids {
            self.refresh(crawl, host);
        }
        // A host that stepped forward from an address will not go now, so the next one may; or hosts
        // were passed over that may go again.
        let shared: Vec<IpAddr> = self
            .addresses
            .iter()
            .filter(|(_, state)| !state.parked.is_empty())
            .map(|(address, _)| *address)
            .collect();
        for address in shared {
            self.refresh_address(address);
        }
    }
}

impl CrawlState {
    fn has_site(&self, site: &Site) -> bool {
        self.site_ids.contains_key(site)
    }

    /// Says whether this changes anything.
    pub(crate) fn block_site(&mut self, site: &Site, is_blocked: bool) -> bool {
        let Some(&id) = self.site_ids.get(site) else { return false };
        if is_blocked {
            return self.blocked.insert(id);
        }
        if !self.blocked.contains(&id) {
            return false;
        }
        self.forgive_lag(id);
        self.blocked.remove(&id)
    }

    /// Whether nothing of a host's site is handed out.
    pub(crate) fn is_site_blocked(&self, host: HostId) -> bool {
        self.blocked.contains(&self.queue(host).site)
    }

    /// The hosts of a site that the walks of a linear crawl ask.
    fn hosts_with_ids_of(&self, site: &Site) -> impl Iterator<Item = HostId> {
        let site = self.site_ids.get(site).copied();
        let hosts = self.ids.iter().flat_map(Ids::hosts);
        hosts.filter(move |host| self.queues.get(host).map(|queue| queue.site) == site)
    }
}
