//! [`Memory`]: what the writer keeps at hand so that a step reads almost nothing.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::StoreError;
use telusur_model::{Crawl, CrawlNo, CrawlStats, Host, HostRow, Limits, Site, UrlKeyer};

use crate::fold::{CrawlRow, HeldHosts, WalkRuns, load_counts};
use crate::layout::{self, decode, decode_u64};
use crate::storage::{BodiesEnd, Rows, Table};

/// The writer's state. Equal to what the last commit made durable, except while events are folded.
pub(crate) struct Memory {
    /// The last sequence number given to a queued URL or a page.
    pub(crate) seq: u64,
    /// The last step whose record is in the bodies.
    pub(crate) step: u64,
    /// The last crawl number given.
    pub(crate) crawls: u32,
    /// The storage's seed of URL keys, for crawls that have none of their own.
    key_seed: u64,
    pub(crate) by_crawl: HashMap<CrawlNo, CrawlMemory>,
    /// Set when a commit failed half-way: what is in memory can no longer be trusted.
    pub(crate) broken: bool,
}

/// The same for one crawl.
pub(crate) struct CrawlMemory {
    pub(crate) limits: Limits,
    /// What makes the keys of its URLs.
    pub(crate) keyer: UrlKeyer,
    pub(crate) stats: CrawlStats,
    pub(crate) hosts: HashMap<Host, HostRow>,
    pub(crate) admitted_by_site: HashMap<Site, u64>,
    /// Links that wait for a unit.
    pub(crate) held: HeldHosts,
    pub(crate) bodies_end: BodiesEnd,
    /// What is known of the ids of its walks, read in at the first use of each.
    pub(crate) runs: HashMap<u32, WalkRuns>,
}

impl Memory {
    /// What the last owner left, and whether it closed the store.
    pub(crate) fn load(rows: &impl Rows, key_seed: u64) -> Result<(Self, bool), StoreError> {
        let meta = |name: &str| rows.get(Table::Meta, name);
        let number = |name: &str| meta_number(rows, name);
        // A store that never had an owner was not killed either.
        let was_closed = meta(layout::META_CLOSED)?.is_none_or(|flag| *flag == [1]);
        let crawls = u32::try_from(number(layout::META_CRAWLS)?)
            .map_err(|_| StoreError::Damaged("the number of crawls is too large".into()))?;
        let memory = Self {
            seq: number(layout::META_SEQ)?,
            step: committed_step(rows)?,
            crawls,
            key_seed,
            by_crawl: HashMap::new(),
            broken: false,
        };
        Ok((memory, was_closed))
    }

    /// The memory of a crawl, read in at its first use. `None` if there is no such crawl.
    pub(crate) fn crawl(
        &mut self,
        no: CrawlNo,
        rows: &impl Rows,
    ) -> Result<Option<&mut CrawlMemory>, StoreError> {
        let place = match self.by_crawl.entry(no) {
            Entry::Occupied(known) => return Ok(Some(known.into_mut())),
            Entry::Vacant(place) => place,
        };
        let row = crate::crawls::read_row(rows, no)?.filter(|row| !row.removing);
        let Some(row) = row else { return Ok(None) };
        Ok(Some(place.insert(CrawlMemory::load(rows, &row, self.key_seed)?)))
    }

    /// Reads the runs of a walk, if they are not in memory.
    pub(crate) fn load_runs(
        &mut self,
        crawl: CrawlNo,
        walk: u32,
        rows: &impl Rows,
    ) -> Result<(), StoreError> {
        if let Some(memory) = self.crawl(crawl, rows)?
            && !memory.runs.contains_key(&walk)
        {
            memory.runs.insert(walk, WalkRuns::load(rows, crawl, walk)?);
        }
        Ok(())
    }

    /// Refuses to write after a commit that failed half-way.
    pub(crate) fn refuse_if_broken(&self) -> Result<(), StoreError> {
        match self.broken {
            true => Err(StoreError::Engine("an earlier commit failed; start again".into())),
            false => Ok(()),
        }
    }

    /// Lets go of a crawl that rests. It is read again when it is needed.
    pub(crate) fn forget(&mut self, no: CrawlNo) {
        self.by_crawl.remove(&no);
    }
}

impl CrawlMemory {
    /// Settings that the writer goes by have changed.
    pub(crate) fn set_settings(&mut self, crawl: &Crawl) {
        self.limits = crawl.limits.clone();
        self.keyer.drop_tracking = !crawl.keep_tracking;
    }

    /// A crawl of which nothing is stored yet.
    pub(crate) fn new(limits: Limits, keyer: UrlKeyer) -> Self {
        Self {
            limits,
            keyer,
            stats: CrawlStats::default(),
            hosts: HashMap::new(),
            admitted_by_site: HashMap::new(),
            held: HeldHosts::default(),
            bodies_end: BodiesEnd::default(),
            runs: HashMap::new(),
        }
    }

    fn load(rows: &impl Rows, row: &CrawlRow, storage_seed: u64) -> Result<Self, StoreError> {
        let crawl = &row.crawl;
        let mut hosts = HashMap::new();
        let mut admitted_by_site = HashMap::new();
        for row in rows.prefix(Table::Hosts, layout::crawl_key(crawl.no)) {
            let row: HostRow = decode(&row?.1, "hosts")?;
            *admitted_by_site.entry(row.host.site()).or_default() += row.admitted;
            hosts.insert(row.host.clone(), row);
        }
        Ok(Self {
            limits: crawl.limits.clone(),
            keyer: row.keyer(storage_seed),
            stats: crate::crawls::read_stats(rows, crawl.no)?,
            held: load_counts(rows, crawl.no, hosts.values())?,
            hosts,
            admitted_by_site,
            bodies_end: committed_end(rows, crawl.no)?,
            runs: HashMap::new(),
        })
    }
}

fn meta_number(rows: &impl Rows, name: &str) -> Result<u64, StoreError> {
    match rows.get(Table::Meta, name)? {
        Some(bytes) => decode_u64(&bytes, name),
        None => Ok(0),
    }
}

/// The last step that was committed of those whose record is in the bodies.
pub(crate) fn committed_step(rows: &impl Rows) -> Result<u64, StoreError> {
    meta_number(rows, layout::META_STEP)
}

/// Up to where the bodies of a crawl were committed.
pub(crate) fn committed_end(rows: &impl Rows, crawl: CrawlNo) -> Result<BodiesEnd, StoreError> {
    match rows.get(Table::Meta, layout::meta_bodies_end(crawl))? {
        Some(bytes) => decode(&bytes, "segment ends"),
        None => Ok(BodiesEnd::default()),
    }
}
