//! [`Pipeline`]: what was handed out and is not durable yet, and whose it is. It has room for a fixed
//! number of visits and bytes, and it is shared by all crawls: a site, or one of several crawls, that
//! takes up its share is blocked until the parser and the writer have caught up with it.
//!
//! The share is a part of what is *free* (dynamic thresholds, as in the shared buffers of network
//! switches): one alone may use a good part of the pipeline, of many each may use less. A last part is
//! a reserve for sites that have next to nothing here: dozens of sites with costly pages leave room for
//! the others of their crawl. What a visit under way will bring is not known: it counts as much as the
//! owner's answers had lately. If they bring more all the same, it counts for others only up to a fixed
//! part of the pipeline.

use std::collections::{BTreeMap, HashMap};

use telusur_model::{CrawlNo, FetchOutcome, Fetched, Purpose, Site, Visit};

/// Visits handed out and not yet durable, beyond the workers: room for parsing and group commits.
pub(crate) const PIPELINE_VISITS_MAX: usize = 1024;
/// Of these visits, those that only sites may use of which nothing is here: one each.
const RESERVED_VISITS: usize = PIPELINE_VISITS_MAX / 8;
/// Bodies between fetch and commit. With the default body limit of 1 MiB this is 64 of the largest
/// pages.
const BYTES_MAX: u64 = 64 << 20;
/// Bodies beyond that, of sites of which next to nothing is here: one of the largest pages each, or
/// many small ones.
const RESERVED_BYTES: u64 = BYTES_MAX;
/// The memory that these bodies may really take before everybody waits: bodies that nobody expected
/// count only in part.
const MEMORY_BYTES_MAX: u64 = 4 * BYTES_MAX;
/// Bytes of one site, and of one of several crawls, that others have to make room for.
const CHARGED_BYTES_MAX: u64 = BYTES_MAX / 4;
/// The part of the free bytes that a site may use: 12 of the largest pages if it is the only such
/// site, 4 each if they are a dozen.
const SITE_BYTES_PART: u64 = 4;
/// No site is blocked for less than this: a few of the usual pages.
const SITE_BYTES_MIN: u64 = 2 * USUAL_BYTES;
/// No crawl is blocked for less than this.
const VISITS_MIN: usize = PIPELINE_VISITS_MAX / 64;
const BYTES_MIN: u64 = BYTES_MAX / 32;
/// The part of the pipeline by which its content must change before all sites are looked at again: in
/// between only those whose own part has changed.
const LOOK_PART: usize = 32;
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
    /// Sites whose part has changed since they were last looked at.
    changed: Vec<Site>,
    /// What was free when all sites were last looked at, and how many crawls ran.
    looked_at: Option<(Free, usize)>,
}

/// What nobody uses.
#[derive(Clone, Copy, Debug)]
struct Free {
    visits: usize,
    bytes: u64,
}

impl Free {
    /// Whether it is about the same as it was then.
    fn is_near(&self, then: &Self) -> bool {
        self.visits.abs_diff(then.visits) < PIPELINE_VISITS_MAX / LOOK_PART
            && self.bytes.abs_diff(then.bytes) < BYTES_MAX / LOOK_PART as u64
    }
}

/// What a site or a crawl has in the pipeline.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    visits: usize,
    bytes: u64,
    /// Of the visits, those whose fetch has not ended.
    fetching: u64,
    /// What its answers brought lately, on average.
    page_bytes: Option<u64>,
    /// Of a site: the crawl that asked for a page of it last.
    crawl: Option<CrawlNo>,
    is_blocked: bool,
    /// Of a site: it is among those whose part has changed.
    is_changed: bool,
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
        self.change(visit.crawl, &visit.url.site(), |usage| {
            usage.visits += 1;
            usage.crawl = Some(visit.crawl);
        });
    }

    /// It is asked for.
    pub(crate) fn begin_fetch(&mut self, visit: &Visit) {
        self.change(visit.crawl, &visit.url.site(), |usage| usage.fetching += 1);
    }

    /// It is back from the web.
    pub(crate) fn end_fetch(&mut self, visit: &Visit, fetched: &Fetched) {
        let body_bytes = fetched.body_bytes();
        // A redirect, or a page that is unchanged, says as much about what comes as a page. A failure
        // says nothing.
        let is_answer = match fetched.outcome {
            FetchOutcome::Page(_) | FetchOutcome::Redirected { .. } | FetchOutcome::NotModified => {
                visit.purpose == Purpose::Page
            }
            FetchOutcome::Failed { .. } | FetchOutcome::Refused { .. } => false,
        };
        self.bytes += body_bytes;
        self.change(visit.crawl, &visit.url.site(), |usage| {
            usage.fetching = usage.fetching.saturating_sub(1);
            usage.bytes += body_bytes;
            if is_answer {
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
            self.sites.retain(|_, usage| usage.visits > 0 || usage.is_blocked || usage.is_changed);
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
        if !std::mem::replace(&mut of_site.is_changed, true) {
            self.changed.push(site.clone());
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
            || self.charged_bytes(crawls_running) >= BYTES_MAX + RESERVED_BYTES
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
        let charged = self.charged_bytes(crawls_running);
        let free = Free {
            visits: PIPELINE_VISITS_MAX.saturating_sub(self.visits),
            bytes: BYTES_MAX.saturating_sub(charged),
        };
        let crawl_share = Share {
            visits: free.visits.max(VISITS_MIN),
            bytes: (BYTES_MAX + RESERVED_BYTES).saturating_sub(charged).max(BYTES_MIN),
        };
        let mut blocks = Vec::new();
        self.block_sites(free, crawl_share, crawls_running, &mut blocks);
        for (crawl, usage) in &mut self.crawls {
            let is_blocked = crawls_running > 1 && usage.exceeds(crawl_share, USUAL_BYTES);
            if std::mem::replace(&mut usage.is_blocked, is_blocked) != is_blocked {
                blocks.push(Block::Crawl(*crawl, is_blocked));
            }
        }
        self.crawls.retain(|_, usage| usage.visits > 0 || usage.is_blocked);
        blocks
    }

    fn block_sites(
        &mut self,
        free: Free,
        crawl_share: Share,
        crawls_running: usize,
        blocks: &mut Vec<Block>,
    ) {
        let Self { sites, crawls, changed, .. } = self;
        let mut look = |site: &Site, usage: &mut Usage| {
            let of_crawl = usage.crawl.filter(|_| crawls_running > 1);
            let of_crawl = of_crawl.and_then(|crawl| crawls.get(&crawl));
            let is_blocked = usage.exceeds(site_share(free, crawl_share, of_crawl), STRANGER_BYTES);
            usage.is_changed = false;
            if std::mem::replace(&mut usage.is_blocked, is_blocked) != is_blocked {
                blocks.push(Block::Site(site.clone(), is_blocked));
            }
        };
        let is_near = self
            .looked_at
            .as_ref()
            .is_some_and(|(then, running)| free.is_near(then) && *running == crawls_running);
        if is_near {
            for site in changed.drain(..) {
                if let Some(usage) = sites.get_mut(&site) {
                    look(&site, usage);
                }
            }
        } else {
            self.looked_at = Some((free, crawls_running));
            changed.clear();
            for (site, usage) in sites {
                look(site, usage);
            }
        }
    }
}

/// What a site may have. `of_crawl`: what its crawl has, if there are others. A site is blocked before
/// its crawl is, and the reserve is kept in the crawl's part, too.
fn site_share(free: Free, crawl_share: Share, of_crawl: Option<&Usage>) -> Share {
    let room = match of_crawl {
        None => free,
        Some(usage) => Free {
            visits: crawl_share.visits.saturating_sub(usage.visits),
            bytes: (crawl_share.bytes.saturating_sub(RESERVED_BYTES))
                .saturating_sub(usage.expected_bytes(USUAL_BYTES)),
        },
    };
    let visits = Some(room.visits.min(free.visits)).filter(|visits| *visits > RESERVED_VISITS);
    let bytes = room.bytes.min(free.bytes) / SITE_BYTES_PART;
    Share { visits: visits.unwrap_or(1), bytes: bytes.max(SITE_BYTES_MIN) }
}

#[cfg(test)]
mod tests;
