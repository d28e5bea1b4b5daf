//! [`FairQueue`]: whose page is parsed next. Knows nothing of threads, clocks and pages.
//!
//! Crawls take turns, and within a crawl its sites do, as in the frontier. A turn is not a page but
//! CPU time: whoever has used least goes first (start-time fair queueing), so that a site whose pages
//! cost a hundred times as much is parsed a hundred times as rarely. What a page costs is known only
//! afterwards: a turn is charged with what the site's pages cost lately, and corrected when it ends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use telusur_model::{CrawlNo, Site};

/// Pages that are taken at once: each batch costs a lock and a wake-up.
const BATCH_PAGES_MAX: usize = 16;
/// Bytes of body after which a batch is full.
const BATCH_BYTES_MAX: u64 = 256 << 10;
/// What the pages of a batch may be expected to cost together: the first one waits for the last.
const BATCH_COST_US_MAX: u64 = 10_000;
/// The least that a turn is charged, also one that needs no parser: a redirect, a failure.
const TURN_US_MIN: u64 = 100;
/// What a page of an unknown site is charged at first; and bodies from which on it is treated like
/// one that costs much until we know better.
const STRANGER_US: u64 = BATCH_COST_US_MAX;
const STRANGER_BYTES_MAX: u64 = BATCH_BYTES_MAX;
/// Sites of a crawl that are remembered while nothing of them waits.
const SITES_KEPT_MAX: usize = 4096;

/// Whose work it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) crawl: CrawlNo,
    pub(crate) site: Site,
}

/// What is known of a piece of work beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Bytes that will be parsed; `None` if no parser is needed.
    pub(crate) parsed_bytes: Option<u64>,
}

/// Work that was taken, and what it was charged with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Turn<T> {
    pub(crate) work: T,
    pub(crate) owner: Owner,
    /// Whether the site's pages cost much, as far as is known.
    pub(crate) is_costly: bool,
    charged_us: u64,
}

impl<T> Turn<T> {
    /// The work, and what is needed to end its turn.
    pub(crate) fn split(self) -> (T, Turn<()>) {
        let Self { work, owner, is_costly, charged_us } = self;
        (work, Turn { work: (), owner, is_costly, charged_us })
    }
}

/// Work that waits, by crawl and site.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    crawls: BTreeMap<CrawlNo, CrawlLine<T>>,
    /// Time used by the crawl that was served last.
    level_us: u64,
    /// Grows with every site that steps into line.
    tickets: u64,
    /// Cost of a page from which on a site is costly.
    costly_us: u64,
    /// Costly pages that may be under way at once, so that a thread is left for the others.
    costly_max: usize,
    costly_under_way: usize,
}

#[derive(Debug)]
struct CrawlLine<T> {
    used_us: u64,
    /// Time used by the site that was served last.
    level_us: u64,
    sites: BTreeMap<Site, SiteLine<T>>,
    /// The sites that have work waiting, by the time that they used.
    line: BTreeSet<(u64, u64, Site)>,
    /// Sites at which the idle ones are forgotten.
    sites_max: usize,
}

#[derive(Debug)]
struct SiteLine<T> {
    used_us: u64,
    ticket: u64,
    /// What a page costs: the latest cost, or the average of late if that is more.
    page_us: Option<u64>,
    under_way: usize,
    waiting: VecDeque<(T, Weight)>,
}

impl<T> Default for CrawlLine<T> {
    fn default() -> Self {
        Self {
            used_us: 0,
            level_us: 0,
            sites: BTreeMap::new(),
            line: BTreeSet::new(),
            sites_max: SITES_KEPT_MAX,
        }
    }
}

impl<T> Default for SiteLine<T> {
    fn default() -> Self {
        let waiting = VecDeque::new();
        Self { used_us: 0, ticket: 0, page_us: None, under_way: 0, waiting }
    }
}

impl<T> SiteLine<T> {
    fn key(&self, site: &Site) -> (u64, u64, Site) {
        (self.used_us, self.ticket, site.clone())
    }

    /// What the first piece of work will cost, as far as can be told.
    fn expected_us(&self) -> u64 {
        match self.waiting.front() {
            Some((_, Weight { parsed_bytes: Some(_) })) => self.page_us.unwrap_or(STRANGER_US),
            Some((_, Weight { parsed_bytes: None })) | None => 0,
        }
        .max(TURN_US_MIN)
    }

    /// Whether the first piece of work may keep a thread busy for long.
    fn is_costly(&self, costly_us: u64) -> bool {
        let Some((_, Weight { parsed_bytes: Some(bytes) })) = self.waiting.front() else {
            return false;
        };
        self.page_us.map_or(*bytes >= STRANGER_BYTES_MAX, |page_us| page_us >= costly_us)
    }
}

impl<T> FairQueue<T> {
    /// An empty queue for so many threads. `costly_us`: cost of a page from which on a site is costly.
    pub(crate) fn new(threads: usize, costly_us: u64) -> Self {
        Self {
            crawls: BTreeMap::new(),
            level_us: 0,
            tickets: 0,
            costly_us,
            costly_max: threads.saturating_sub(1).max(1),
            costly_under_way: 0,
        }
    }

    pub(crate) fn push(&mut self, owner: &Owner, work: T, weight: Weight) {
        let crawl = self.crawls.entry(owner.crawl).or_default();
        if crawl.line.is_empty() {
            // Whoever had nothing to do for a while is owed nothing for it.
            crawl.used_us = crawl.used_us.max(self.level_us);
        }
        let site = crawl.sites.entry(owner.site.clone()).or_default();
        if site.waiting.is_empty() {
            site.used_us = site.used_us.max(crawl.level_us);
            self.tickets += 1;
            site.ticket = self.tickets;
            crawl.line.insert(site.key(&owner.site));
        }
        site.waiting.push_back((work, weight));
    }

    /// The next work for one thread; empty if there is none that may be begun now.
    pub(crate) fn take(&mut self) -> Vec<Turn<T>> {
        let mut batch: Vec<Turn<T>> = Vec::new();
        let (mut bytes, mut cost_us) = (0, 0);
        while batch.len() < BATCH_PAGES_MAX
            && let Some(owner) = self.next_owner()
        {
            let site = &self.crawls[&owner.crawl].sites[&owner.site];
            let (expected_us, is_costly) = (site.expected_us(), site.is_costly(self.costly_us));
            bytes += site.waiting.front().and_then(|(_, weight)| weight.parsed_bytes).unwrap_or(0);
            cost_us += expected_us;
            // A costly page is alone, or the others of its batch would wait for it.
            let fits = bytes <= BATCH_BYTES_MAX && cost_us <= BATCH_COST_US_MAX && !is_costly;
            if !batch.is_empty() && !fits {
                break;
            }
            batch.push(self.take_from(owner, expected_us, is_costly));
            if is_costly {
                break;
            }
        }
        batch
    }

    /// Whose turn it is.
    fn next_owner(&self) -> Option<Owner> {
        let mut crawls: Vec<_> =
            self.crawls.iter().filter(|(_, crawl)| !crawl.line.is_empty()).collect();
        crawls.sort_by_key(|(no, crawl)| (crawl.used_us, **no));
        crawls.into_iter().find_map(|(no, crawl)| {
            let may_begin = |site: &Site| {
                let line = &crawl.sites[site];
                !line.is_costly(self.costly_us)
                    || (line.under_way == 0 && self.costly_under_way < self.costly_max)
            };
            let (.., site) = crawl.line.iter().find(|(.., site)| may_begin(site))?;
            Some(Owner { crawl: *no, site: site.clone() })
        })
    }

    fn take_from(&mut self, owner: Owner, charged_us: u64, is_costly: bool) -> Turn<T> {
        let crawl = self.crawls.get_mut(&owner.crawl).expect("it is next");
        self.level_us = self.level_us.max(crawl.used_us);
        let site = crawl.sites.get_mut(&owner.site).expect("it is next");
        crawl.level_us = crawl.level_us.max(site.used_us);
        crawl.line.remove(&site.key(&owner.site));
        crawl.used_us += charged_us;
        site.used_us += charged_us;
        site.under_way += 1;
        self.costly_under_way += usize::from(is_costly);
        let (work, _) = site.waiting.pop_front().expect("a site in line has work");
        if !site.waiting.is_empty() {
            // Behind those who have used as much.
            self.tickets += 1;
            site.ticket = self.tickets;
            crawl.line.insert(site.key(&owner.site));
        }
        Turn { work, owner, is_costly, charged_us }
    }

    /// A turn is over. `spent_us`: the CPU time that its page has used; `None` if it had none.
    pub(crate) fn ended(&mut self, turn: &Turn<()>, spent_us: Option<u64>) {
        self.costly_under_way -= usize::from(turn.is_costly);
        // The crawl may have been dropped since.
        let Some(crawl) = self.crawls.get_mut(&turn.owner.crawl) else { return };
        let Some(site) = crawl.sites.get_mut(&turn.owner.site) else { return };
        let due_us = spent_us.unwrap_or(0).max(TURN_US_MIN);
        let corrected = |used_us: u64| (used_us + due_us).saturating_sub(turn.charged_us);
        let is_in_line = crawl.line.remove(&site.key(&turn.owner.site));
        site.under_way = site.under_way.saturating_sub(1);
        site.used_us = corrected(site.used_us);
        crawl.used_us = corrected(crawl.used_us);
        if let Some(spent_us) = spent_us {
            let average = site.page_us.map_or(spent_us, |page_us| (3 * page_us + spent_us) / 4);
            site.page_us = Some(average.max(spent_us));
        }
        if is_in_line {
            crawl.line.insert(site.key(&turn.owner.site));
        }
        crawl.forget_idle_sites(self.costly_us);
    }

    /// Takes out the work of a crawl for which this holds; all of it if it always does.
    pub(crate) fn remove(&mut self, crawl: CrawlNo, is_removed: impl Fn(&T) -> bool) -> Vec<T> {
        let mut removed = Vec::new();
        let Some(line) = self.crawls.get_mut(&crawl) else { return removed };
        for (name, site) in &mut line.sites {
            if site.waiting.is_empty() {
                continue;
            }
            for (work, weight) in std::mem::take(&mut site.waiting) {
                if is_removed(&work) {
                    removed.push(work);
                } else {
                    site.waiting.push_back((work, weight));
                }
            }
            if site.waiting.is_empty() {
                line.line.remove(&site.key(name));
            }
        }
        removed
    }

    /// Forgets a crawl that is over, and gives back what still waits.
    pub(crate) fn forget(&mut self, crawl: CrawlNo) -> Vec<T> {
        let removed = self.remove(crawl, |_| true);
        self.crawls.remove(&crawl);
        removed
    }
}

impl<T> CrawlLine<T> {
    /// A crawl of a million sites remembers those that used much more than the others, and not even
    /// these if they are too many.
    fn forget_idle_sites(&mut self, costly_us: u64) {
        if self.sites.len() <= self.sites_max {
            return;
        }
        let owes_us = self.level_us + costly_us;
        let is_idle = |site: &SiteLine<T>| site.waiting.is_empty() && site.under_way == 0;
        self.sites.retain(|_, site| !is_idle(site) || site.used_us > owes_us);
        if self.sites.len() > SITES_KEPT_MAX {
            self.sites.retain(|_, site| !is_idle(site));
        }
        // Looked at again when there are twice as many: most pages must not pay for this.
        self.sites_max = SITES_KEPT_MAX.max(2 * self.sites.len());
    }
}

#[cfg(test)]
mod tests;
