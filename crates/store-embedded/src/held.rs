//! Links that a full budget left out, held until units are given back. Such a link is known and
//! settled with the reason; its row here says in which order the links of a host get their chance.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use telusur_model::{
    CrawlNo, Host, Lane, PageUrl, Purpose, QueuePlace, Reason, Site, UrlKey, UrlShape, Visit,
};
use telusur_store::{Ending, How, StoreError, UrlState};

use crate::budget::{self, Full};
use crate::commit::StepWriter;
use crate::engine_error;
use crate::rows::{self, UrlRow, decode, encode};

/// What the settled row of a URL does not say.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct HeldRow {
    key: UrlKey,
    is_hot: bool,
    /// Named by an include pattern: no budget of shapes holds for it.
    is_included: bool,
    hops_outside: u8,
}

/// What the links of a host wait for: the budget of this shape, or that of the host or site.
type Line = Option<u32>;

/// Units that a step gives back.
#[derive(Default)]
pub(crate) struct GivenBack {
    /// The lines of each host that have a unit again.
    lines: BTreeMap<(CrawlNo, Host), BTreeSet<Line>>,
    /// Sites that had no unit left before: all their hosts have one again.
    full_sites: BTreeSet<(CrawlNo, Site)>,
}

impl StepWriter<'_> {
    /// Holds a link that a full budget leaves out.
    pub(crate) fn hold(&mut self, visit: &Visit, full: &Full, is_included: bool) {
        let line = match full {
            Full::Host { .. } | Full::Site { .. } => None,
            Full::Shape { shape, .. } => Some(*shape),
        };
        let row = HeldRow {
            key: visit.key,
            is_hot: visit.place.lane == Lane::Hot,
            is_included,
            hops_outside: visit.hops_outside,
        };
        let key = rows::held_key(visit.crawl, &visit.url.host(), line, visit.place);
        self.batch.insert(&self.store.keyspaces.held, key, encode(&row));
    }

    /// Gives back the units of visits that were not asked for after all. Done before anything else
    /// of a step, so that no link of the same step is held while a unit is free.
    pub(crate) fn give_back(&mut self, endings: &[Ending]) -> GivenBack {
        let mut given = GivenBack::default();
        for ending in endings.iter().filter(|ending| is_unasked(ending)) {
            let visit = &ending.visit;
            let (crawl, host) = (visit.crawl, visit.url.host());
            if matches!(visit.purpose, Purpose::Sitemap { .. }) {
                self.update_host(crawl, &host, |row| row.sitemaps = row.sitemaps.saturating_sub(1));
                continue;
            }
            let (site, shape) = (host.site(), UrlShape::of(&visit.url));
            let memory = self.crawl_memory(crawl);
            let mut units = memory.admitted_by_site.get(&site).copied().unwrap_or(0);
            if units >= memory.limits.urls_per_site_max {
                given.full_sites.insert((crawl, site.clone()));
            }
            self.update_host(crawl, &host, |row| {
                budget::give_back(row, &mut units, shape.as_ref());
            });
            self.crawl_memory(crawl).admitted_by_site.insert(site, units);
            let lines = given.lines.entry((crawl, host)).or_default();
            lines.insert(None);
            lines.extend(shape.map(|shape| Some(shape.hash)));
        }
        given
    }

    /// Lets in the links that wait for the units, in the order in which they were left out.
    pub(crate) fn let_in(&mut self, given: GivenBack) -> Result<(), StoreError> {
        let GivenBack { mut lines, full_sites } = given;
        for (crawl, site) in full_sites {
            let hosts = self.crawl_memory(crawl).hosts.values();
            let waiting = hosts.filter(|row| row.refused > 0 && row.host.site() == site);
            for host in waiting.map(|row| row.host.clone()) {
                lines.entry((crawl, host)).or_default().insert(None);
            }
        }
        for ((crawl, host), lines) in lines {
            for line in lines {
                self.let_in_line(crawl, &host, line)?;
            }
        }
        Ok(())
    }

    fn let_in_line(&mut self, crawl: CrawlNo, host: &Host, line: Line) -> Result<(), StoreError> {
        let store = self.store;
        for row in store.keyspaces.held.prefix(rows::held_line_key(crawl, host, line)) {
            let (key, value) = row.into_inner().map_err(engine_error)?;
            let held: HeldRow = decode(&value, "held")?;
            let Some((visit, reason)) = self.held_visit(crawl, held)? else {
                self.batch.remove(&store.keyspaces.held, key);
                continue;
            };
            let shape = UrlShape::of(&visit.url).filter(|_| !held.is_included);
            let memory = self.crawl_memory(crawl);
            let site = memory.admitted_by_site.get(&host.site()).copied().unwrap_or(0);
            match budget::full(&memory.limits, memory.hosts.get(host), site, shape.as_ref()) {
                None => {
                    self.batch.remove(&store.keyspaces.held, key);
                    self.uncount_skip(crawl, reason);
                    self.take_in(visit);
                }
                Some(Full::Host { .. } | Full::Site { .. }) => return Ok(()),
                Some(Full::Shape { shape, .. }) if line == Some(shape) => return Ok(()),
                // Its host has room and its shape has none: it waits for the shape from now on.
                Some(full @ Full::Shape { .. }) => {
                    self.batch.remove(&store.keyspaces.held, key);
                    self.hold(&visit, &full, held.is_included);
                }
            }
        }
        Ok(())
    }

    /// The visit of a held link, and the reason it was settled with; `None` if it has another
    /// answer by now, as a URL has that is an id of a linear crawl, too.
    fn held_visit(
        &mut self,
        crawl: CrawlNo,
        held: HeldRow,
    ) -> Result<Option<(Visit, Reason)>, StoreError> {
        let row = self.store.keyspaces.urls.get(rows::url_key(crawl, held.key));
        let Some(row) = row.map_err(engine_error)? else { return Ok(None) };
        let UrlRow::Settled(record) = decode(&row, "urls")? else { return Ok(None) };
        let UrlState::Skipped { reason, .. } = record.state else { return Ok(None) };
        let (Some(_), Ok(url)) = (reason.budget_flag(), PageUrl::parse(&record.url)) else {
            return Ok(None);
        };
        let lane = if held.is_hot { Lane::Hot } else { Lane::Plain };
        let order = u64::from(record.depth);
        let visit = Visit {
            crawl,
            purpose: Purpose::Page,
            url,
            key: held.key,
            place: QueuePlace { lane, order, seq: self.next_seq() },
            depth: record.depth,
            hops_outside: held.hops_outside,
            via: record.via,
            found_at: record.found_at,
            referrer: record.referrer,
            redirects: record.redirects,
            lastmod: record.lastmod,
            attempt: 1,
        };
        Ok(Some((visit, reason)))
    }
}

/// Whether a queued URL is settled without any request: the rules of robots.txt became known, or the
/// user excluded it. One that was asked before and waited for another attempt has used its unit.
fn is_unasked(ending: &Ending) -> bool {
    ending.requested_at.is_none()
        && ending.visit.attempt <= 1
        && ending.id.is_none()
        && matches!(ending.how, How::Skipped { .. })
}
