//! [`SiteShares`]: how the pages of a crawl are spread over its sites. Kept up to date page by page, so
//! that a look at a crawl of a million sites costs as much as one at a crawl of ten.

use std::cmp::Reverse;

use telusur_model::{CrawlNo, JainSums, Site};

use crate::crawl::{SiteId, SiteState};
use crate::frontier::Frontier;

/// Sites that are named; the others are counted.
const TOP_MAX: usize = 10;

/// The spread of a crawl's pages over its sites.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiteShares {
    sums: JainSums,
    /// The sites with the most pages, the first of them first.
    ///
    /// Exact without a look at the others: pages are only ever added, so a site enters when a page is
    /// added to it, or when it is met, and at no other time.
    top: Vec<SiteId>,
}

/// How the pages of a crawl are spread over its sites, at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SharesShown<'a> {
    /// The sites with the most pages and the pages of each; of equals the first by name.
    pub top: Vec<(&'a Site, u64)>,
    /// All sites that were met.
    pub sites: u64,
    /// Jain's index over the pages of all sites.
    pub fairness_index: f64,
}

impl Default for SharesShown<'_> {
    fn default() -> Self {
        Self { top: Vec::new(), sites: 0, fairness_index: JainSums::default().index() }
    }
}

impl SiteShares {
    /// A site is met, without pages.
    pub(crate) fn join(&mut self, site: SiteId, sites: &[SiteState]) {
        self.sums.join();
        self.raise(site, sites);
    }

    /// The pages of a site have grown from `pages_before` to their present number.
    pub(crate) fn grow(&mut self, site: SiteId, pages_before: u64, sites: &[SiteState]) {
        self.sums.grow(pages_before, sites[site.index()].pages);
        self.raise(site, sites);
    }

    /// Brings a site to its place among the first, if it has one.
    fn raise(&mut self, site: SiteId, sites: &[SiteState]) {
        let goes_before = |left: SiteId, right: SiteId| {
            let rank = |site: SiteId| {
                let state = &sites[site.index()];
                (Reverse(state.pages), state.site.as_str())
            };
            rank(left) < rank(right)
        };
        let mut at = match self.top.iter().position(|it| *it == site) {
            Some(at) => at,
            None if self.top.len() < TOP_MAX => {
                self.top.push(site);
                self.top.len() - 1
            }
            None => {
                let last = self.top.len() - 1;
                if !goes_before(site, self.top[last]) {
                    return;
                }
                self.top[last] = site;
                last
            }
        };
        while at > 0 && goes_before(site, self.top[at - 1]) {
            self.top.swap(at, at - 1);
            at -= 1;
        }
    }

    fn shown<'a>(&self, sites: &'a [SiteState]) -> SharesShown<'a> {
        let named = |site: &SiteId| {
            let state = &sites[site.index()];
            (&state.site, state.pages)
        };
        SharesShown {
            top: self.top.iter().map(named).collect(),
            sites: sites.len() as u64,
            fairness_index: self.sums.index(),
        }
    }
}

impl Frontier {
    /// How the pages of a crawl are spread over its sites; `None` if it does not run.
    pub fn site_shares(&self, crawl: CrawlNo) -> Option<SharesShown<'_>> {
        self.crawls.get(&crawl).map(|crawl| crawl.shares.shown(&crawl.sites))
    }
}
