//! [`Pipeline`]: what was handed out and is not durable yet, and whose it is. It has room for a fixed
//! number of visits and bytes, and it is shared by all crawls: a site, or one of several crawls, that
//! takes up its share is blocked until the parser and the writer have caught up with it.
//!
//! The share is a part of what is *free* (dynamic thresholds, as in the shared buffers of network
//! switches): one alone may use a good part of the pipeline, of many each may use less, so that even
//! dozens of them leave some room for whoever comes next. What a visit under way will bring is not
//! known: it counts as much as the owner's pages had lately. If they bring more all the same, it
//! counts for others only up to a fixed part of the pipeline.

use std::collections::{BTreeMap, HashMap};

use telusur_model::{CrawlNo, FetchOutcome, Fetched, Purpose, Site, Visit};

/// Visits handed out and not yet durable, beyond the workers: room for parsing and group commits.
pub(crate) const PIPELINE_VISITS_MAX: usize = 1024;
/// Bodies between fetch and commit. With the default body limit of 1 MiB this is 64 of the largest
/// pages.
const BYTES_MAX: u64 = 64 << 20;
/// The memory that these bodies may really take before everybody waits: bodies that nobody expected
/// count only in part.
const MEMORY_BYTES_MAX: u64 = 4 * BYTES_MAX;
/// Bytes of one site, and of one of several crawls, that others have to make room for.
const CHARGED_BYTES_MAX: u64 = BYTES_MAX / 4;
/// The part of the free bytes that a site may use: 12 of the largest pages if it is the only such
/// site, 4 each if they are a dozen.
const SITE_BYTES_PART: u64 = 4;
/// Nobody is blocked for less than this.
const VISITS_MIN: usize = PIPELINE_VISITS_MAX / 64;
const BYTES_MIN: u64 = BYTES_MAX / 32;
/// What a page of an unknown site may bring: the default body limit.
const STRANGER_BYTES: u64 = 1 << 20;
/// What a page of a new crawl brings: as much as fills the pipeline with visits and bytes alike.
const USUAL_BYTES: u64 = BYTES_MAX / PIPELINE_VISITS_MAX as u64;
/// Sites that are remembered while nothing of them is here.
const SITES_KEPT_MAX: usize = 4096;

/// Whose visits and bytes have left the pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    owners: HashMap<(CrawlNo, Site), Amount>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    visits: usize,
    body_bytes: u64,
}

impl Load {
    pub(crate) fn add(&mut self, visit: &Visit, body_bytes: u64) {
        let amount = self.owners.entry((visit.crawl, visit.url.site())).or_default();
        amount.visits += 1;
        amount.body_bytes += body_bytes;
    }

    /// The crawls that it is of.
    pub(crate) fn crawls(&self) -> Vec<CrawlNo> {
        self.visits().into_keys().collect()
    }

    pub(crate) fn visits(&self) -> BTreeMap<CrawlNo, usize> {
        let mut visits = BTreeMap::new();
        for ((crawl, _), amount) in &self.owners {
            *visits.entry(*crawl).or_default() += amount.visits;
        }
        visits
    }
}

/// What the frontier has to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    Site(Site, bool),
    Crawl(CrawlNo, bool),
}

#[derive(Debug, Default)]
pub(crate) struct Pipeline {
    visits: usize,
    bytes: u64,
    /// Over all crawls.
    sites: HashMap<Site, Usage>,
    /// Over all sites.
    crawls: BTreeMap<CrawlNo, Usage>,
    /// Bytes of the sites and of the crawls, of each only what others have to make room for.
    charged_by_site: u64,
    charged_by_crawl: u64,
    /// Sites that may have to be blocked or released. Few: each has a good part of the pipeline.
    watched: Vec<Site>,
}

/// What a site or a crawl has in the pipeline.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    visits: usize,
    bytes: u64,
    /// Of the visits, those whose fetch has not ended.
    fetching: u64,
    /// What its pages brought lately, on average.
    page_bytes: Option<u64>,
    is_blocked: bool,
    is_watched: bool,
}

impl Usage {
    /// Bytes that are here or may come, each page that is not known counting as a stranger's.
    fn expected_bytes(&self, stranger_bytes: u64) -> u64 {
        self.bytes + self.fetching * self.page_bytes.unwrap_or(stranger_bytes)
    }

    fn charged_bytes(&self) -> u64 {
        self.bytes.min(CHARGED_BYTES_MAX)
    }

    fn learn(&mut self, body_bytes: u64) {
        let average = self.page_bytes.map_or(body_bytes, |before| (3 * before + body_bytes) / 4);
        self.page_bytes = Some(average);
    }

    /// Whether it must be blocked. One that is blocked stays so until it has half of what it might.
    fn exceeds(&self, share: Share, stranger_bytes: u64) -> bool {
        let Share { visits, bytes } = share;
        let expected_bytes = self.expected_bytes(stranger_bytes);
        match self.is_blocked {
            false => self.visits >= visits || expected_bytes >= bytes,
            true => self.visits > visits / 2 || expected_bytes > bytes / 2,
        }
    }
}

/// What a site or a crawl may have.
#[derive(Clone, Copy, Debug)]
struct Share {
    visits: usize,
    bytes: u64,
}

impl Pipeline {
    /// A visit was handed out.
    pub(crate) fn enter(&mut self, visit: &Visit) {
        self.visits += 1;
        self.change(visit.crawl, &visit.url.site(), |usage| usage.visits += 1);
    }

    /// It is asked for.
    pub(crate) fn begin_fetch(&mut self, visit: &Visit) {
        self.change(visit.crawl, &visit.url.site(), |usage| usage.fetching += 1);
    }

    /// It is back from the web.
    pub(crate) fn end_fetch(&mut self, visit: &Visit, fetched: &Fetched) {
        let body_bytes = fetched.body_bytes();
        let is_page =
            visit.purpose == Purpose::Page && matches!(fetched.outcome, FetchOutcome::Page(_));
        self.bytes += body_bytes;
        self.change(visit.crawl, &visit.url.site(), |usage| {
            usage.fetching = usage.fetching.saturating_sub(1);
            usage.bytes += body_bytes;
            if is_page {
                usage.learn(body_bytes);
            }
        });
    }

    /// Visits are durable, or stay queued.
    pub(crate) fn leave(&mut self, load: &Load) {
        for ((crawl, site), &Amount { visits, body_bytes }) in &load.owners {
            self.visits -= visits;
            self.bytes -= body_bytes;
            self.change(*crawl, site, |usage| {
                usage.visits -= visits;
                usage.bytes -= body_bytes;
            });
        }
        if self.sites.len() > SITES_KEPT_MAX {
            self.sites.retain(|_, usage| usage.visits > 0 || usage.is_watched);
        }
    }

    /// The same for one visit, of whose body so much was here.
    pub(crate) fn leave_one(&mut self, visit: &Visit, body_bytes: u64) {
        let mut load = Load::default();
        load.add(visit, body_bytes);
        self.leave(&load);
    }

    fn change(&mut self, crawl: CrawlNo, site: &Site, change: impl Fn(&mut Usage)) {
        let of_site = match self.sites.get_mut(site) {
            Some(usage) => usage,
            None => self.sites.entry(site.clone()).or_default(),
        };
        let before = of_site.charged_bytes();
        change(of_site);
        self.charged_by_site = self.charged_by_site - before + of_site.charged_bytes();
        let is_large =
            of_site.visits >= VISITS_MIN || of_site.expected_bytes(STRANGER_BYTES) >= BYTES_MIN;
        if is_large && !of_site.is_watched {
            of_site.is_watched = true;
            self.watched.push(site.clone());
        }
        let of_crawl = self.crawls.entry(crawl).or_default();
        let before = of_crawl.charged_bytes();
        change(of_crawl);
        self.charged_by_crawl = self.charged_by_crawl - before + of_crawl.charged_bytes();
        if of_crawl.visits == 0 && !of_crawl.is_blocked {
            // What its pages bring is learned again.
            self.crawls.remove(&crawl);
        }
    }

    /// Whether nothing more may be handed out.
    pub(crate) fn is_full(&self, crawls_running: usize) -> bool {
        self.visits >= PIPELINE_VISITS_MAX
            || self.charged_bytes(crawls_running) >= BYTES_MAX
            || self.bytes >= MEMORY_BYTES_MAX
    }

    /// Bytes that everybody has to make room for.
    fn charged_bytes(&self, crawls_running: usize) -> u64 {
        match crawls_running {
            // A crawl alone may use all.
            0 | 1 => self.charged_by_site,
            _ => self.charged_by_site.min(self.charged_by_crawl),
        }
    }

    /// Who is to be blocked or released now.
    pub(crate) fn blocks(&mut self, crawls_running: usize) -> Vec<Block> {
        let free_visits = PIPELINE_VISITS_MAX.saturating_sub(self.visits);
        let free_bytes = BYTES_MAX.saturating_sub(self.charged_bytes(crawls_running));
        let mut blocks = Vec::new();
        self.block_sites(free_visits, free_bytes, &mut blocks);
        let share = Share { visits: free_visits.max(VISITS_MIN), bytes: free_bytes.max(BYTES_MIN) };
        for (crawl, usage) in &mut self.crawls {
            let is_blocked = crawls_running > 1 && usage.exceeds(share, USUAL_BYTES);
            if std::mem::replace(&mut usage.is_blocked, is_blocked) != is_blocked {
                blocks.push(Block::Crawl(*crawl, is_blocked));
            }
        }
        self.crawls.retain(|_, usage| usage.visits > 0 || usage.is_blocked);
        blocks
    }

    fn block_sites(&mut self, free_visits: usize, free_bytes: u64, blocks: &mut Vec<Block>) {
        let share = Share {
            visits: free_visits.max(VISITS_MIN),
            bytes: (free_bytes / SITE_BYTES_PART).max(BYTES_MIN),
        };
        let sites = &mut self.sites;
        self.watched.retain(|site| {
            let Some(usage) = sites.get_mut(site) else { return false };
            let is_blocked = usage.exceeds(share, STRANGER_BYTES);
            if std::mem::replace(&mut usage.is_blocked, is_blocked) != is_blocked {
                blocks.push(Block::Site(site.clone(), is_blocked));
            }
            usage.is_watched = usage.is_blocked
                || usage.visits >= VISITS_MIN
                || usage.expected_bytes(STRANGER_BYTES) >= BYTES_MIN;
            usage.is_watched
        });
    }
}

#[cfg(test)]
mod tests;
