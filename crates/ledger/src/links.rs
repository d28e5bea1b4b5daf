//! Links that were found: each is judged where it is found, by the scope of its crawl, and handed to the
//! ledger together with those to the same site. The ledger asks whether it is new and whether a budget
//! has room for it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use telusur_model::{
    CrawlNo, Discovery, LinkVerdict, PageUrl, Purpose, Reason, Scope, Site, Timestamp, UrlKey,
    Verdict, Via, Visit,
};

use crate::Event;

/// Links to one site that were found in one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinksFound {
    /// The site that they lead to.
    pub site: Site,
    /// Where they were found.
    pub source: Arc<LinkSource>,
    /// The links, in the order in which they were found.
    pub links: Vec<FoundLink>,
}

/// Where links were found: what a visit hands on to them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSource {
    /// By this crawl.
    pub crawl: CrawlNo,
    /// When.
    pub at: Timestamp,
    /// Links away from a seed.
    pub depth: u16,
    /// Links followed beyond the scope on the way here.
    pub hops_outside: u8,
    /// The page, sitemap or robots.txt with the links.
    pub url: String,
    /// The page that led there.
    pub referrer: Option<String>,
    /// The URLs that redirected there, first to last.
    pub redirects: Vec<String>,
}

/// A link that was found and judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundLink {
    /// The link.
    pub url: PageUrl,
    /// Its identity.
    pub key: UrlKey,
    /// Whether it matches the crawl's topic.
    pub hot: bool,
    /// How it was found.
    pub via: Via,
    /// What a visit of it would be for.
    pub purpose: Purpose,
    /// When the page was changed, as a sitemap says.
    pub lastmod: Option<Timestamp>,
    /// Whether it is beyond the scope and only reached by an extra hop.
    pub is_outside: bool,
    /// Whether it is followed, if it is new.
    pub admission: Admission,
}

/// Whether a link is followed, as far as that can be said without knowing what else was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Admission {
    /// If the budgets have room.
    Admitted {
        /// The user named it by an include pattern: no trap is suspected in it.
        is_included: bool,
    },
    /// The page asks not to follow it; another page may not.
    Nofollow,
    /// No.
    Refused {
        /// Why.
        reason: Reason,
        /// By which rule.
        rule: String,
    },
}

impl LinkSource {
    /// A visit.
    pub fn of_visit(visit: &Visit, at: Timestamp) -> Self {
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

    /// Judges links and sorts them by site.
    pub fn judge(self, found: Vec<Discovery>, scope: &Scope) -> Vec<LinksFound> {
        let source = Arc::new(self);
        let mut by_site: Vec<LinksFound> = Vec::new();
        let mut places: HashMap<Site, usize> = HashMap::new();
        let mut judged = HashSet::with_capacity(found.len());
        // Most links of a page lead to the same host.
        let mut last: Option<(String, usize)> = None;
        for link in found {
            // The first link to a URL decides, unless it is marked nofollow and another one is not.
            if !judged.insert((link.key, link.nofollow)) {
                continue;
            }
            let host = link.url.host_str();
            let at = match &last {
                Some((last_host, at)) if last_host == host => *at,
                _ => {
                    let site = Site::of_host(host);
                    let at = *places.entry(site).or_insert_with_key(|site| {
                        let (site, source) = (site.clone(), Arc::clone(&source));
                        by_site.push(LinksFound { site, source, links: Vec::new() });
                        by_site.len() - 1
                    });
                    last = Some((host.to_owned(), at));
                    at
                }
            };
            by_site[at].links.push(source.judge_link(link, scope));
        }
        by_site
    }

    /// The same as events.
    pub fn judge_to_events(self, found: Vec<Discovery>, scope: &Scope) -> Vec<Event> {
        let by_site = self.judge(found, scope).into_iter();
        by_site.map(|links| Event::LinksFound(Box::new(links))).collect()
    }

    fn judge_link(&self, found: Discovery, scope: &Scope) -> FoundLink {
        let admission = self.admission(&found, scope);
        let is_outside = scope.is_outside(&found.url);
        let Discovery { url, key, hot, via, purpose, nofollow: _, lastmod } = found;
        FoundLink { url, key, hot, via, purpose, lastmod, is_outside, admission }
    }

    fn admission(&self, found: &Discovery, scope: &Scope) -> Admission {
        let Discovery { url, via, purpose, nofollow, .. } = found;
        if *nofollow {
            return Admission::Nofollow;
        }
        let LinkVerdict { verdict, is_included } = match purpose {
            // Sitemaps may lie on other hosts than the pages they name, and exclusions are for pages.
            Purpose::Sitemap { .. } => {
                LinkVerdict { verdict: Verdict::Admit, is_included: scope.is_included(url) }
            }
            Purpose::Page | Purpose::Robots | Purpose::Probe => {
                scope.judge(url, self.depth_of(*via, *purpose), self.hops_outside)
            }
        };
        if let Verdict::Reject { reason, rule } = verdict {
            return Admission::Refused { reason, rule };
        }
        // Here, before the budgets: a link that will not be asked for uses up none.
        match scope.learned_refusal(url, || is_included) {
            Some((reason, rule)) => Admission::Refused { reason, rule },
            None => Admission::Admitted { is_included },
        }
    }

    /// A redirect leads to the same page at another address, and a sitemap is no page: neither is a
    /// step away from the seed.
    pub(crate) fn depth_of(&self, via: Via, purpose: Purpose) -> u16 {
        let is_step = via != Via::Redirect && purpose == Purpose::Page;
        self.depth.saturating_add(u16::from(is_step))
    }

    pub(crate) fn referrer_of(&self, via: Via) -> Option<String> {
        if via == Via::Redirect { self.referrer.clone() } else { Some(self.url.clone()) }
    }

    pub(crate) fn redirects_of(&self, via: Via) -> Vec<String> {
        if via != Via::Redirect {
            return Vec::new();
        }
        self.redirects.iter().chain([&self.url]).cloned().collect()
    }
}
