//! Which new links are taken in. Each is judged once, by the crawl's scope and by the budgets that
//! make endless sites end, and goes to the queue or is kept with the reason why not.

use crate::{Found, StoreError, UrlState};
use telusur_model::{
    CrawlNo, Discovery, Host, Lane, LinkVerdict, PageUrl, Purpose, QueuePlace, Reason, Scope,
    Timestamp, UrlShape, Verdict, Via, Visit,
};

use crate::budget::{self, Full};
use crate::commit::StepWriter;
use crate::held;
use crate::layout::{self, decode};
use crate::storage::{Rows, Storage, Table};

/// Sitemaps of one host. With 50,000 entries each they name fifty million pages.
const SITEMAPS_PER_HOST_MAX: u32 = 1000;
/// URLs of one host that are kept with the rule that forbids them, such as a line of robots.txt. Of
/// those beyond only the number is kept: a site that makes up addresses would fill the disk with
/// refusals. Links that wait for a budget have a limit of their own.
const REFUSED_PER_HOST_MAX: u64 = 100_000;

impl<S: Storage> StepWriter<'_, S> {
    /// Takes in those of the links that are new.
    pub(crate) fn follow(
        &mut self,
        discoveries: Vec<Discovery>,
        context: &LinkContext,
        scope: &Scope,
    ) {
        for discovery in discoveries {
            if self.take_new(context.crawl, discovery.key) || self.revive(context.crawl, &discovery)
            {
                self.follow_link(discovery, context, scope);
            }
        }
    }

    /// Judges a new link: to the queue, or kept with the reason why not.
    fn follow_link(&mut self, discovery: Discovery, context: &LinkContext, scope: &Scope) {
        let refusal = self.refusal(&discovery, context, scope);
        let Discovery { url, key, hot, via, purpose, nofollow: _, lastmod } = discovery;
        let depth = context.depth_of(via, purpose);
        let lane = if hot { Lane::Hot } else { Lane::Plain };
        let visit = Visit {
            crawl: context.crawl,
            purpose,
            place: QueuePlace { lane, order: u64::from(depth), seq: self.next_seq() },
            hops_outside: context.hops_outside.saturating_add(u8::from(scope.is_outside(&url))),
            url,
            key,
            depth,
            via,
            found_at: context.at,
            referrer: context.referrer_of(via),
            redirects: context.redirects_of(via),
            lastmod,
            attempt: 1,
        };
        match refusal {
            None => self.admit(visit),
            Some(refusal) => self.refuse(visit, refusal),
        }
    }

    fn refusal(
        &mut self,
        discovery: &Discovery,
        context: &LinkContext,
        scope: &Scope,
    ) -> Option<Refusal> {
        let Discovery { url, via, purpose, nofollow, .. } = discovery;
        if *nofollow {
            let rule = format!("marked nofollow on {}", context.url);
            return Some(Refusal::Rule { reason: Reason::Nofollow, rule });
        }
        let is_sitemap = matches!(purpose, Purpose::Sitemap { .. });
        // The patterns are matched once for a link: those of a user may take long.
        let LinkVerdict { verdict, is_included } = match is_sitemap {
            true => LinkVerdict {
                verdict: self.sitemap_verdict(context.crawl, url),
                is_included: scope.is_included(url),
            },
            false => scope.judge(url, context.depth_of(*via, *purpose), context.hops_outside),
        };
        if let Some(refusal) = Refusal::of(verdict) {
            return Some(refusal);
        }
        // Before the budgets: what will not be asked for uses up none.
        if let Some((reason, rule)) = scope.learned_refusal(url, || is_included) {
            return Some(Refusal::Rule { reason, rule });
        }
        if is_sitemap {
            return None;
        }
        let full = self.full_budget(context.crawl, url, is_included)?;
        Some(Refusal::Full { full, is_included })
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
    fn full_budget(&mut self, crawl: CrawlNo, url: &PageUrl, is_included: bool) -> Option<Full> {
        let memory = self.crawl_memory(crawl);
        let host = url.host();
        let site = memory.admitted_by_site.get(&host.site()).copied().unwrap_or(0);
        let shape = UrlShape::of(url).filter(|_| !is_included);
        budget::full(&memory.limits, memory.hosts.get(&host), site, shape.as_ref())
    }

    /// A new URL joins the queue of its host.
    pub(crate) fn admit(&mut self, visit: Visit) {
        let (crawl, host) = (visit.crawl, visit.url.host());
        self.crawl_memory(crawl).stats.queued += 1;
        if matches!(visit.purpose, Purpose::Sitemap { .. }) {
            self.update_host(crawl, &host, |row| {
                row.queued += 1;
                row.sitemaps += 1;
            });
        } else {
            let (site, shape) = (host.site(), UrlShape::of(&visit.url));
            let memory = self.crawl_memory(crawl);
            let mut units = memory.admitted_by_site.get(&site).copied().unwrap_or(0);
            self.update_host(crawl, &host, |row| {
                row.queued += 1;
                budget::charge(row, &mut units, shape.as_ref());
            });
            self.crawl_memory(crawl).admitted_by_site.insert(site, units);
        }
        self.enqueue(visit, None, None);
    }

    /// A new URL is not taken in.
    fn refuse(&mut self, visit: Visit, refusal: Refusal) {
        let reason = refusal.reason();
        let host = visit.url.host();
        let is_kept = match &refusal {
            Refusal::Full { .. } => self.may_hold(visit.crawl, &host),
            Refusal::Rule { reason, .. } if is_endless(*reason) => {
                let mut refused = 0;
                self.update_host(visit.crawl, &host, |row| {
                    row.refused += 1;
                    refused = row.refused;
                });
                refused <= REFUSED_PER_HOST_MAX
            }
            Refusal::Rule { .. } => true,
        };
        if !is_kept {
            let stats = &mut self.crawl_memory(visit.crawl).stats;
            stats.discovered -= 1;
            stats.uncounted += 1;
            return;
        }
        if reason == Reason::Nofollow {
            self.forget_recent(visit.crawl, visit.key);
        }
        self.count_skip(visit.crawl, reason);
        let rule = match refusal {
            Refusal::Rule { rule, .. } => rule,
            Refusal::Full { full, is_included } => {
                self.hold(&visit, &full, is_included);
                full.rule().to_owned()
            }
        };
        self.settle(visit, UrlState::Skipped { reason, rule });
    }
}

/// Why a new link is not taken in.
enum Refusal {
    /// A rule says so, and will say so tomorrow.
    Rule { reason: Reason, rule: String },
    /// A budget is used up: the link waits for a unit. `is_included`: the user named it.
    Full { full: Full, is_included: bool },
}

impl Refusal {
    fn of(verdict: Verdict) -> Option<Self> {
        match verdict {
            Verdict::Admit => None,
            Verdict::Reject { reason, rule } => Some(Self::Rule { reason, rule }),
        }
    }

    fn reason(&self) -> Reason {
        match self {
            Self::Rule { reason, .. } => *reason,
            Self::Full { full, .. } => full.reason(),
        }
    }
}

/// Whether a site can make up any number of links that are refused for this reason.
fn is_endless(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::HostBudget | Reason::SiteBudget | Reason::TrapSuspected | Reason::RobotsDisallowed
    )
}

/// Whether a host has more refused URLs than are kept.
pub(crate) fn is_beyond_count(
    rows: &impl Rows,
    crawl: CrawlNo,
    host: &Host,
) -> Result<bool, StoreError> {
    let row = rows.get(Table::Hosts, layout::host_key(crawl, host))?;
    let Some(row) = row else { return Ok(false) };
    let row: telusur_model::HostRow = decode(&row, "hosts")?;
    Ok(row.refused > REFUSED_PER_HOST_MAX || held::has_dropped(rows, crawl, host)?)
}

/// What a visit hands on to the links found on it.
pub(crate) struct LinkContext {
    crawl: CrawlNo,
    at: Timestamp,
    depth: u16,
    hops_outside: u8,
    url: String,
    referrer: Option<String>,
    redirects: Vec<String>,
}

impl LinkContext {
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
