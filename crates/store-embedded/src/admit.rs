//! Which new links are taken in. Each is judged once, by the crawl's scope and by the budgets that
//! make endless sites end, and goes to the queue or is kept with the reason why not.

use telusur_model::{
    CrawlNo, Discovery, Host, Lane, PageUrl, Purpose, QueuePlace, Reason, Scope, Timestamp,
    UrlShape, Verdict, Via, Visit,
};
use telusur_store::{Found, StoreError, UrlState};

use crate::EmbeddedStore;
use crate::commit::StepWriter;
use crate::engine_error;
use crate::rows::{self, decode};

/// Sitemaps of one host. With 50,000 entries each they name fifty million pages.
const SITEMAPS_PER_HOST_MAX: u32 = 1000;
/// Shapes of addresses that are counted for one host.
const SHAPES_PER_HOST_MAX: usize = 1000;
/// URLs of one host that are kept with the reason that a budget is used up. Of those beyond only
/// the number is kept: a site that makes up addresses would fill the disk with refusals.
const REFUSED_PER_HOST_MAX: u64 = 100_000;

impl StepWriter<'_> {
    /// Takes in those of the links that are new.
    pub(crate) fn follow(&mut self, discoveries: Vec<Discovery>, trail: &Trail, scope: &Scope) {
        for discovery in discoveries {
            if self.take_new(trail.crawl, discovery.key) || self.revive(trail.crawl, &discovery) {
                self.admit(discovery, trail, scope);
            }
        }
    }

    /// Judges a new link: to the queue, or kept with the reason why not.
    fn admit(&mut self, discovery: Discovery, trail: &Trail, scope: &Scope) {
        let verdict = self.verdict(&discovery, trail, scope);
        let Discovery { url, key, hot, via, purpose, nofollow: _, lastmod } = discovery;
        let depth = trail.depth_of(via, purpose);
        let lane = if hot { Lane::Hot } else { Lane::Plain };
        let visit = Visit {
            crawl: trail.crawl,
            purpose,
            place: QueuePlace { lane, order: u64::from(depth), seq: self.next_seq() },
            hops_outside: trail.hops_outside.saturating_add(u8::from(scope.is_outside(&url))),
            url,
            key,
            depth,
            via,
            found_at: trail.at,
            referrer: trail.referrer_of(via),
            redirects: trail.redirects_of(via),
            lastmod,
            attempt: 1,
        };
        match verdict {
            Verdict::Admit => self.take_in(visit),
            Verdict::Reject { reason, rule } => self.refuse(visit, reason, rule),
        }
    }

    fn verdict(&mut self, discovery: &Discovery, trail: &Trail, scope: &Scope) -> Verdict {
        let Discovery { url, via, purpose, nofollow, .. } = discovery;
        if *nofollow {
            let rule = format!("marked nofollow on {}", trail.url);
            return Verdict::Reject { reason: Reason::Nofollow, rule };
        }
        if let Purpose::Sitemap { .. } = purpose {
            return self.sitemap_verdict(trail.crawl, url);
        }
        match scope.judge(url, trail.depth_of(*via, *purpose), trail.hops_outside) {
            Verdict::Admit => self.budget_verdict(trail.crawl, url, scope),
            rejected => rejected,
        }
    }

    /// Sitemaps may lie on other hosts than the pages they name, and exclusions are for pages; only
    /// what is too much stays away.
    fn sitemap_verdict(&mut self, crawl: CrawlNo, url: &PageUrl) -> Verdict {
        let memory = self.crawl_memory(crawl);
        let taken = memory.hosts.get(&url.host()).map_or(0, |row| row.sitemaps);
        if taken >= SITEMAPS_PER_HOST_MAX {
            let rule = format!("{SITEMAPS_PER_HOST_MAX} sitemaps per host");
            return Verdict::Reject { reason: Reason::HostBudget, rule };
        }
        Verdict::Admit
    }

    /// A host or a site that has been given its share gets no more: what makes endless sites end.
    fn budget_verdict(&mut self, crawl: CrawlNo, url: &PageUrl, scope: &Scope) -> Verdict {
        let reject = |reason, rule| Verdict::Reject { reason, rule };
        let memory = self.crawl_memory(crawl);
        let host_max = memory.limits.urls_per_host_max;
        let site_max = memory.limits.urls_per_site_max;
        let host = url.host();
        let row = memory.hosts.get(&host);
        if row.map_or(0, |row| row.admitted) >= host_max {
            return reject(Reason::HostBudget, format!("{host_max} URLs per host"));
        }
        let by_site = memory.admitted_by_site.get(&host.site()).copied().unwrap_or(0);
        if by_site >= site_max {
            return reject(Reason::SiteBudget, format!("{site_max} URLs per site"));
        }
        let Some(shape) = UrlShape::of(url).filter(|_| !scope.is_included(url)) else {
            return Verdict::Admit;
        };
        let taken = row.and_then(|row| row.templates.get(&shape.hash)).copied().unwrap_or(0);
        if taken >= shape.budget {
            let rule = format!("more than {} addresses like {}", shape.budget, shape.text);
            return reject(Reason::TrapSuspected, rule);
        }
        Verdict::Admit
    }

    /// A new URL joins the queue of its host.
    pub(crate) fn take_in(&mut self, visit: Visit) {
        let host = visit.url.host();
        let memory = self.crawl_memory(visit.crawl);
        memory.stats.queued += 1;
        let is_sitemap = matches!(visit.purpose, Purpose::Sitemap { .. });
        if !is_sitemap {
            *memory.admitted_by_site.entry(host.site()).or_default() += 1;
        }
        let shape = if is_sitemap { None } else { UrlShape::of(&visit.url) };
        self.update_host(visit.crawl, &host, |row| {
            row.queued += 1;
            row.admitted += u64::from(!is_sitemap);
            row.sitemaps += u32::from(is_sitemap);
            if let Some(shape) = shape
                && (row.templates.len() < SHAPES_PER_HOST_MAX
                    || row.templates.contains_key(&shape.hash))
            {
                *row.templates.entry(shape.hash).or_default() += 1;
            }
        });
        self.enqueue(visit, None, None);
    }

    /// A new URL is not taken in.
    fn refuse(&mut self, visit: Visit, reason: Reason, rule: String) {
        let is_by_budget =
            matches!(reason, Reason::HostBudget | Reason::SiteBudget | Reason::TrapSuspected);
        if is_by_budget {
            let host = visit.url.host();
            let mut refused = 0;
            self.update_host(visit.crawl, &host, |row| {
                row.refused += 1;
                refused = row.refused;
            });
            if refused > REFUSED_PER_HOST_MAX {
                let stats = &mut self.crawl_memory(visit.crawl).stats;
                stats.discovered -= 1;
                stats.uncounted += 1;
                return;
            }
        }
        if reason == Reason::Nofollow {
            self.forget_recent(visit.crawl, visit.key);
        }
        self.count_skip(visit.crawl, reason);
        self.settle(visit, UrlState::Skipped { reason, rule });
    }
}

/// Whether a host has more refused URLs than are kept.
pub(crate) fn is_beyond_count(
    store: &EmbeddedStore,
    crawl: CrawlNo,
    host: &Host,
) -> Result<bool, StoreError> {
    let row = store.keyspaces.hosts.get(rows::host_key(crawl, host)).map_err(engine_error)?;
    let Some(row) = row else { return Ok(false) };
    let row: telusur_model::HostRow = decode(&row, "hosts")?;
    Ok(row.refused > REFUSED_PER_HOST_MAX)
}

/// What a visit hands on to the links found on it.
pub(crate) struct Trail {
    crawl: CrawlNo,
    at: Timestamp,
    depth: u16,
    hops_outside: u8,
    url: String,
    referrer: Option<String>,
    redirects: Vec<String>,
}

impl Trail {
    pub(crate) fn of(visit: &Visit, at: Timestamp) -> Self {
        Self {
            crawl: visit.crawl,
            at,
            depth: visit.depth,
            hops_outside: visit.hops_outside,
            url: visit.url.to_string(),
            referrer: visit.referrer.clone(),
            redirects: visit.redirects.clone(),
        }
    }

    pub(crate) fn of_file(found: &Found) -> Self {
        Self {
            crawl: found.crawl,
            at: found.at,
            depth: found.depth,
            hops_outside: found.hops_outside,
            url: found.on.clone(),
            referrer: None,
            redirects: Vec::new(),
        }
    }

    /// A redirect leads to the same page at another address, and a sitemap is no page: neither is a
    /// step away from the seed.
    fn depth_of(&self, via: Via, purpose: Purpose) -> u16 {
        let is_step = via != Via::Redirect && purpose == Purpose::Page;
        self.depth.saturating_add(u16::from(is_step))
    }

    fn referrer_of(&self, via: Via) -> Option<String> {
        if via == Via::Redirect { self.referrer.clone() } else { Some(self.url.clone()) }
    }

    fn redirects_of(&self, via: Via) -> Vec<String> {
        if via != Via::Redirect {
            return Vec::new();
        }
        self.redirects.iter().chain([&self.url]).cloned().collect()
    }
}
