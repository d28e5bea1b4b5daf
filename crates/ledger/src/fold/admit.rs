//! Which new links are taken in: by the verdict that they come with and by the budgets that make endless
//! sites end. Each goes to the queue or is kept with the reason why not.

use telusur_model::{
    CrawlNo, Host, HostRow, Lane, PageUrl, Purpose, QueuePlace, Reason, UrlShape, Visit,
};

use super::Fold;
use super::budget::{self, Full};
use super::held;
use super::seen::Newness;
use crate::layout::{self, decode};
use crate::links::{Admission, FoundLink, LinkSource, LinksFound};
use crate::storage::{Rows, Table};
use crate::{StoreError, UrlState};

/// Sitemaps of one host. With 50,000 entries each they name fifty million pages.
const SITEMAPS_PER_HOST_MAX: u32 = 1000;
/// URLs of one host that are kept with the rule that forbids them, such as a line of robots.txt. Of
/// those beyond only the number is kept: a site that makes up addresses would fill the disk with
/// refusals. Links that wait for a budget have a limit of their own.
const REFUSED_PER_HOST_MAX: u64 = 100_000;

impl<R: Rows> Fold<'_, R> {
    /// Takes in those of the links that are new.
    pub(super) fn follow(&mut self, found: LinksFound) {
        let LinksFound { source, links, site: _ } = found;
        for link in links {
            if let Some(newness) = self.newness(source.crawl, &link) {
                self.follow_link(link, &source, newness);
            }
        }
    }

    /// A new link: to the queue, or kept with the reason why not.
    fn follow_link(&mut self, link: FoundLink, source: &LinkSource, newness: Newness) {
        let refusal = self.refusal(&link, source);
        let FoundLink { url, key, hot, via, purpose, lastmod, is_outside, admission: _ } = link;
        let depth = source.depth_of(via, purpose);
        let lane = if hot { Lane::Hot } else { Lane::Plain };
        let visit = Visit {
            crawl: source.crawl,
            purpose,
            place: QueuePlace { lane, order: u64::from(depth), seq: self.next_seq() },
            hops_outside: source.hops_outside.saturating_add(u8::from(is_outside)),
            url,
            key,
            depth,
            via,
            found_at: source.at,
            referrer: source.referrer_of(via),
            redirects: source.redirects_of(via),
            lastmod,
            attempt: 1,
        };
        match refusal {
            None => {
                self.take_in(visit.crawl, visit.key, newness);
                self.admit(visit);
            }
            Some(refusal) => self.refuse(visit, refusal, newness),
        }
    }

    fn refusal(&mut self, link: &FoundLink, source: &LinkSource) -> Option<Refusal> {
        match &link.admission {
            Admission::Nofollow => {
                let rule = format!("marked nofollow on {}", source.url);
                Some(Refusal::Rule { reason: Reason::Nofollow, rule })
            }
            Admission::Refused { reason, rule } => {
                Some(Refusal::Rule { reason: *reason, rule: rule.clone() })
            }
            Admission::Admitted { .. } if matches!(link.purpose, Purpose::Sitemap { .. }) => {
                self.too_many_sitemaps(source.crawl, &link.url)
            }
            Admission::Admitted { is_included } => {
                let full = self.full_budget(source.crawl, &link.url, *is_included)?;
                Some(Refusal::Full { full, is_included: *is_included })
            }
        }
    }

    fn too_many_sitemaps(&mut self, crawl: CrawlNo, url: &PageUrl) -> Option<Refusal> {
        let taken = self.of(crawl).hosts.get(&url.host()).map_or(0, |row| row.sitemaps);
        (taken >= SITEMAPS_PER_HOST_MAX).then(|| Refusal::Rule {
            reason: Reason::HostBudget,
            rule: format!("{SITEMAPS_PER_HOST_MAX} sitemaps per host"),
        })
    }

    /// A host or a site that has been given its share gets no more: what makes endless sites end.
    fn full_budget(&mut self, crawl: CrawlNo, url: &PageUrl, is_included: bool) -> Option<Full> {
        let memory = self.of(crawl);
        let host = url.host();
        let site = memory.admitted_by_site.get(&host.site()).copied().unwrap_or(0);
        let shape = UrlShape::of(url).filter(|_| !is_included);
        budget::full(&memory.limits, memory.hosts.get(&host), site, shape.as_ref())
    }

    /// A new URL joins the queue of its host.
    pub(super) fn admit(&mut self, visit: Visit) {
        let (crawl, host) = (visit.crawl, visit.url.host());
        self.stats(crawl).queued += 1;
        if matches!(visit.purpose, Purpose::Sitemap { .. }) {
            self.update_host(crawl, &host, |row| {
                row.queued += 1;
                row.sitemaps += 1;
            });
        } else {
            let (site, shape) = (host.site(), UrlShape::of(&visit.url));
            let memory = self.of(crawl);
            let mut units = memory.admitted_by_site.get(&site).copied().unwrap_or(0);
            self.update_host(crawl, &host, |row| {
                row.queued += 1;
                budget::charge(row, &mut units, shape.as_ref());
            });
            self.of(crawl).admitted_by_site.insert(site, units);
        }
        self.enqueue(visit, None, None);
    }

    /// A new URL is not taken in.
    fn refuse(&mut self, visit: Visit, refusal: Refusal, newness: Newness) {
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
            // It is as new the next time: a process that remembered it would count otherwise than the
            // next one.
            self.stats(visit.crawl).uncounted += 1;
            return;
        }
        self.take_in(visit.crawl, visit.key, newness);
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
    let row: HostRow = decode(&row, "hosts")?;
    Ok(row.refused > REFUSED_PER_HOST_MAX || held::has_dropped(rows, crawl, host)?)
}
