//! Links that a full budget left out, held until units are given back or the budget is raised. Such
//! a link is known and settled with the reason; its row here says in which order the links of a host
//! get their chance.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::Ledger;
use crate::budget::{self, Full};
use crate::commit::StepWriter;
use crate::layout::{self, QueueRow, UrlRow, decode, encode};
use crate::memory::CrawlMemory;
use crate::storage::{Rows, Storage, Table};
use crate::{Ending, StoreError, UrlRecord, UrlState, VisitOutcome};
use serde::{Deserialize, Serialize};
use telusur_model::{
    Crawl, CrawlNo, Host, HostRow, Lane, Limits, PageUrl, Purpose, QueuePlace, Reason, Site,
    UrlKey, UrlShape, Visit,
};

/// Links of one host that are held at a time. Of those beyond only the number is kept: a site that
/// makes up addresses would fill the disk with them. Links that a rule forbids do not count here.
const HELD_PER_HOST_MAX: u64 = 100_000;
/// Held links that one step looks at when a budget was raised: some tenths of a second of the
/// writer's time. Whoever asked asks again for the rest.
const LET_IN_MAX: usize = 5_000;

/// What the settled row of a URL does not say.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct HeldRow {
    pub(crate) key: UrlKey,
    is_hot: bool,
    /// Named by an include pattern: no budget of shapes holds for it.
    is_included: bool,
    hops_outside: u8,
}

/// How many links of a host are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldCount {
    pub(crate) held: u64,
    /// Links beyond [`HELD_PER_HOST_MAX`], of which nothing but the number is kept.
    dropped: u64,
}

/// What the links of a host wait for: the budget of this shape, or that of the host or site.
type AwaitedBudget = Option<u32>;

/// Units that a step gives back.
#[derive(Default)]
pub(crate) struct GivenBack {
    /// The lines of each host that have a unit again.
    lines: BTreeMap<(CrawlNo, Host), BTreeSet<AwaitedBudget>>,
    /// Sites that had no unit left before: all their hosts have one again.
    full_sites: BTreeSet<(CrawlNo, Site)>,
}

/// Where the look through a line of held links ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    /// It has no further link that fits.
    Line,
    /// No link of its host fits.
    Host,
    /// The step has looked at as many as it may.
    Step,
}

/// The counts of a crawl. `hosts`: what is known of its hosts.
pub(crate) fn load_counts<'h>(
    rows: &impl Rows,
    crawl: CrawlNo,
    hosts: impl Iterator<Item = &'h HostRow>,
) -> Result<HashMap<Host, HeldCount>, StoreError> {
    let mut counts = HashMap::new();
    for row in rows.prefix(Table::Held, layout::held_counts_key(crawl)) {
        let (key, value) = row?;
        let host = layout::host_of_count_key(&key).ok_or_else(cut_key)?;
        counts.insert(host, decode(&value, "held")?);
    }
    // Earlier versions wrote no counts, and counted these links among the refused ones.
    for row in hosts.filter(|row| row.refused > 0) {
        if !counts.contains_key(&row.host) {
            let mut held = 0;
            for link in rows.prefix(Table::Held, layout::held_host_key(crawl, &row.host)) {
                link?;
                held += 1;
            }
            counts.insert(row.host.clone(), HeldCount { held, dropped: 0 });
        }
    }
    Ok(counts)
}

/// Whether a host has links that wait for a unit and were not kept.
pub(crate) fn has_dropped(
    rows: &impl Rows,
    crawl: CrawlNo,
    host: &Host,
) -> Result<bool, StoreError> {
    let row = rows.get(Table::Held, layout::held_count_key(crawl, host))?;
    let count: Option<HeldCount> = row.map(|row| decode(&row, "held")).transpose()?;
    Ok(count.is_some_and(|count| count.dropped > 0))
}

impl<S: Storage> Ledger<S> {
    /// Whether a held link of a crawl fits into its budgets, as they are given here.
    pub(crate) fn has_held_that_fits(&self, crawl: &Crawl) -> Result<bool, StoreError> {
        let mut memory = self.memory();
        let was_loaded = memory.by_crawl.contains_key(&crawl.no);
        let Some(loaded) = memory.crawl(crawl.no, self.rows())? else { return Ok(false) };
        let fits = self.any_fits(crawl, loaded);
        if !was_loaded {
            memory.forget(crawl.no);
        }
        fits
    }

    fn any_fits(&self, crawl: &Crawl, memory: &CrawlMemory) -> Result<bool, StoreError> {
        let (limits, crawl) = (&crawl.limits, crawl.no);
        for host in hosts_with_held(memory) {
            let host_key = layout::held_host_key(crawl, &host);
            let mut next = Some(host_key.clone());
            while let Some(row) = next.take().and_then(|from| self.first_held(&host_key, from)) {
                let (key, held) = row?;
                let line = layout::line_of_held_key(&key, host_key.len()).ok_or_else(cut_key)?;
                let record = held_record(self.rows(), crawl, held)?;
                let url = record.and_then(|(record, _)| PageUrl::parse(&record.url).ok());
                let full = match url {
                    Some(url) => full_for(limits, memory, &host, &url, held),
                    // It has another answer by now; those behind it are looked at when it is gone.
                    None => return Ok(true),
                };
                match full {
                    None => return Ok(true),
                    Some(Full::Host { .. } | Full::Site { .. }) => break,
                    Some(Full::Shape { shape, .. }) if line == Some(shape) => {
                        next = end_of_line(crawl, &host, line);
                    }
                    // It waits for its shape from the next look on.
                    Some(Full::Shape { .. }) => return Ok(true),
                }
            }
        }
        Ok(false)
    }

    /// The first held link of a host at a key or behind it.
    fn first_held(
        &self,
        host_key: &[u8],
        from: Vec<u8>,
    ) -> Option<Result<(Vec<u8>, HeldRow), StoreError>> {
        let row = self.rows().range(Table::Held, from, None).next()?;
        let read = || {
            let (key, value) = row?;
            if !key.starts_with(host_key) {
                return Ok(None);
            }
            Ok(Some((key.to_vec(), decode(&value, "held")?)))
        };
        read().transpose()
    }
}

impl<S: Storage> StepWriter<'_, S> {
    /// Whether another link of a host is held. If not, it is counted.
    pub(crate) fn may_hold(&mut self, crawl: CrawlNo, host: &Host) -> bool {
        let count = self.held_count(crawl, host);
        let may_hold = count.held < HELD_PER_HOST_MAX;
        count.dropped += u64::from(!may_hold);
        may_hold
    }

    fn held_count(&mut self, crawl: CrawlNo, host: &Host) -> &mut HeldCount {
        self.touched_held.insert((crawl, host.clone()));
        self.crawl_memory(crawl).held.entry(host.clone()).or_default()
    }

    /// A link is not held any more, or not in this line.
    fn release(&mut self, crawl: CrawlNo, host: &Host, key: Vec<u8>) {
        let count = self.held_count(crawl, host);
        count.held = count.held.saturating_sub(1);
        self.batch.remove(Table::Held, key.clone());
        self.gone_held.insert(key);
    }

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
        let host = visit.url.host();
        self.held_count(visit.crawl, &host).held += 1;
        let key = layout::held_key(visit.crawl, &host, line, visit.place);
        self.batch.insert(Table::Held, key, encode(&row));
    }

    /// Gives back the units of visits that were not asked for after all. Done before anything else
    /// of a step, so that no link of the same step is held while a unit is free.
    pub(crate) fn give_back(&mut self, endings: &[Ending]) -> Result<GivenBack, StoreError> {
        let mut given = GivenBack::default();
        for ending in endings.iter().filter(|ending| is_unasked(ending)) {
            let visit = &ending.visit;
            if self.was_asked_before(visit)? {
                continue;
            }
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
        Ok(given)
    }

    /// Whether a queued visit was asked for before, and has used its unit. Its attempt does not tell:
    /// an answer such as 429 counts as none.
    fn was_asked_before(&self, visit: &Visit) -> Result<bool, StoreError> {
        let key = layout::queue_key(visit.crawl, &visit.url.host(), visit.place);
        let row = self.store.rows().get(Table::Queue, key)?;
        let row: Option<QueueRow> = row.map(|row| decode(&row, "queue")).transpose()?;
        Ok(row.is_some_and(|row| row.last_failure.is_some()))
    }

    /// Lets in the links that wait for the units, in the order in which they were left out.
    pub(crate) fn let_in(&mut self, given: GivenBack) -> Result<(), StoreError> {
        let GivenBack { mut lines, full_sites } = given;
        for (crawl, site) in full_sites {
            let waiting = hosts_with_held(self.crawl_memory(crawl)).into_iter();
            for host in waiting.filter(|host| host.site() == site) {
                lines.entry((crawl, host)).or_default().insert(None);
            }
        }
        // As many as were given back: that is bounded already.
        let mut left = usize::MAX;
        for ((crawl, host), lines) in lines {
            for line in lines {
                self.let_in_line(crawl, &host, line, &mut left)?;
            }
        }
        Ok(())
    }

    /// Lets in whatever the budgets of a crawl have room for: they may have been raised.
    pub(crate) fn let_in_all(&mut self, crawl: CrawlNo) -> Result<(), StoreError> {
        let store = self.store;
        let Some(memory) = self.memory.crawl(crawl, store.rows())? else { return Ok(()) };
        let mut left = LET_IN_MAX;
        for host in hosts_with_held(memory) {
            let host_key = layout::held_host_key(crawl, &host);
            let mut next = Some(host_key.clone());
            while let Some(row) = next.take().and_then(|from| store.first_held(&host_key, from)) {
                let (key, _) = row?;
                let line = layout::line_of_held_key(&key, host_key.len()).ok_or_else(cut_key)?;
                match self.let_in_line(crawl, &host, line, &mut left)? {
                    LineEnd::Line => next = end_of_line(crawl, &host, line),
                    LineEnd::Host => {}
                    LineEnd::Step => {
                        self.committed.more_held.push(crawl);
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Lets in the links of a line, as long as they fit. `left`: how many may still be looked at.
    fn let_in_line(
        &mut self,
        crawl: CrawlNo,
        host: &Host,
        line: AwaitedBudget,
        left: &mut usize,
    ) -> Result<LineEnd, StoreError> {
        let store = self.store;
        for row in store.rows().prefix(Table::Held, layout::held_line_key(crawl, host, line)) {
            let (key, value) = row?;
            if self.gone_held.contains(&*key) {
                continue;
            }
            if *left == 0 {
                return Ok(LineEnd::Step);
            }
            *left -= 1;
            let held: HeldRow = decode(&value, "held")?;
            let Some((visit, reason)) = self.held_visit(crawl, held)? else {
                self.release(crawl, host, key.to_vec());
                continue;
            };
            let memory = self.crawl_memory(crawl);
            match full_for(&memory.limits, memory, host, &visit.url, held) {
                None => {
                    self.release(crawl, host, key.to_vec());
                    self.uncount_skip(crawl, reason);
                    self.admit(visit);
                }
                Some(Full::Host { .. } | Full::Site { .. }) => return Ok(LineEnd::Host),
                Some(Full::Shape { shape, .. }) if line == Some(shape) => {
                    return Ok(LineEnd::Line);
                }
                // Its host has room and its shape has none: it waits for the shape from now on.
                Some(full @ Full::Shape { .. }) => {
                    self.release(crawl, host, key.to_vec());
                    self.hold(&visit, &full, held.is_included);
                }
            }
        }
        Ok(LineEnd::Line)
    }

    /// The visit of a held link, and the reason it was settled with; `None` if it has another
    /// answer by now, as a URL has that is an id of a linear crawl, too.
    fn held_visit(
        &mut self,
        crawl: CrawlNo,
        held: HeldRow,
    ) -> Result<Option<(Visit, Reason)>, StoreError> {
        let record = held_record(self.store.rows(), crawl, held)?;
        let Some((record, reason)) = record else { return Ok(None) };
        let Ok(url) = PageUrl::parse(&record.url) else { return Ok(None) };
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

/// What is known of a held link, and the budget that left it out; `None` if it has another answer by
/// now.
fn held_record(
    rows: &impl Rows,
    crawl: CrawlNo,
    held: HeldRow,
) -> Result<Option<(UrlRecord, Reason)>, StoreError> {
    let row = rows.get(Table::Urls, layout::url_key(crawl, held.key))?;
    let Some(row) = row else { return Ok(None) };
    let UrlRow::Settled(record) = decode(&row, "urls")? else { return Ok(None) };
    let UrlState::Skipped { reason, .. } = record.state else { return Ok(None) };
    Ok(reason.budget_flag().map(|_| (*record, reason)))
}

/// The budget that has no unit for a held link.
fn full_for(
    limits: &Limits,
    memory: &CrawlMemory,
    host: &Host,
    url: &PageUrl,
    held: HeldRow,
) -> Option<Full> {
    let shape = UrlShape::of(url).filter(|_| !held.is_included);
    let site = memory.admitted_by_site.get(&host.site()).copied().unwrap_or(0);
    budget::full(limits, memory.hosts.get(host), site, shape.as_ref())
}

/// The hosts of a crawl that have held links, in order.
fn hosts_with_held(memory: &CrawlMemory) -> BTreeSet<Host> {
    let held = memory.held.iter().filter(|(_, count)| count.held > 0);
    held.map(|(host, _)| host.clone()).collect()
}

/// Where the next line of a host begins; `None` behind the last.
fn end_of_line(crawl: CrawlNo, host: &Host, line: AwaitedBudget) -> Option<Vec<u8>> {
    let next = line.map_or(Some(0), |shape| shape.checked_add(1))?;
    Some(layout::held_line_key(crawl, host, Some(next)))
}

fn cut_key() -> StoreError {
    StoreError::Damaged("a key of held is cut".into())
}

/// Whether a queued URL is settled without any request: the rules of robots.txt became known, or the
/// user excluded it. One that was asked before and waited for another attempt has used its unit.
fn is_unasked(ending: &Ending) -> bool {
    ending.requested_at.is_none()
        && ending.visit.attempt <= 1
        && ending.id.is_none()
        && matches!(ending.how, VisitOutcome::Skipped { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_memory::InMemory;
    use crate::storage::{Batch, WriteRows};
    use crate::{CrawlStore, Found, FrontierStore, NewCrawl, Step};
    use std::sync::Arc;
    use telusur_model::{
        CrawlId, CrawlStats, Discovery, FetchRules, Keep, Politeness, Scope, ScopeRules, Seeds,
        SitemapRules, Timestamp, Via,
    };

    /// A crawl whose host may have one URL, which is its seed.
    fn crawl() -> Crawl {
        Crawl {
            no: CrawlNo(0),
            id: CrawlId::new(Timestamp(0), 0),
            name: None,
            created_at: Timestamp(0),
            seeds: Seeds::Links(vec![PageUrl::parse("http://a.test/").unwrap()]),
            scope: ScopeRules::default(),
            politeness: Politeness::default(),
            limits: Limits { urls_per_host_max: 1, ..Limits::default() },
            fetch: FetchRules::default(),
            keep: Keep::Html,
            topic: Vec::new(),
            keep_tracking: false,
            recrawl_of: None,
            sitemaps: SitemapRules::default(),
            labels: Default::default(),
        }
    }

    /// Finds these links.
    fn find(
        store: &Ledger<impl Storage>,
        crawl: &Crawl,
        links: std::ops::Range<u32>,
    ) -> CrawlStats {
        let keyer = crate::memory::keyer(crawl, store.key_seed());
        let link = |n: u32| {
            let url = PageUrl::parse(&format!("http://a.test/{n}")).unwrap();
            Discovery::page(url.clone(), keyer.key(&url), Via::Link)
        };
        let found = Found {
            crawl: crawl.no,
            on: "http://a.test/".to_owned(),
            depth: 0,
            hops_outside: 0,
            at: Timestamp(0),
            discoveries: links.map(link).collect(),
            scope: Arc::new(Scope::of(crawl).unwrap()),
        };
        let step = Step { found: vec![found], ..Step::default() };
        store.commit(step).unwrap().stats.pop().unwrap().1
    }

    /// Links that robots.txt forbids, however many, take no place of those that wait for a unit.
    #[test]
    fn forbidden_links_do_not_keep_others_from_being_held() {
        let store = Ledger::open(InMemory::default()).unwrap();
        let mut crawl = store.create(NewCrawl { crawl: crawl(), random: 1 }).unwrap().crawl;
        let host = Host::new("a.test");
        store.memory().by_crawl.get_mut(&crawl.no).unwrap().hosts.get_mut(&host).unwrap().refused =
            1_000_000;
        let stats = find(&store, &crawl, 0..3);
        assert_eq!((stats.skips[&Reason::HostBudget], stats.uncounted), (3, 0));
        crawl.limits.urls_per_host_max = 10;
        store.change(&crawl).unwrap();
        let let_in = store.commit(Step { let_in: vec![crawl.no], ..Step::default() }).unwrap();
        assert_eq!(let_in.queued.len(), 3);
    }

    #[test]
    fn links_beyond_the_limit_are_counted() {
        let store = Ledger::open(InMemory::default()).unwrap();
        let mut crawl = store.create(NewCrawl { crawl: crawl(), random: 1 }).unwrap().crawl;
        let host = Host::new("a.test");
        let held = HeldCount { held: HELD_PER_HOST_MAX - 1, dropped: 0 };
        let set = |held| {
            let mut memory = store.memory();
            memory.by_crawl.get_mut(&crawl.no).unwrap().held.insert(host.clone(), held);
        };
        set(held);
        let stats = find(&store, &crawl, 0..3);
        assert_eq!((stats.skips[&Reason::HostBudget], stats.uncounted), (1, 2));
        assert!(has_dropped(store.rows(), crawl.no, &host).unwrap());
        // Those that are let in make room for others.
        crawl.limits.urls_per_host_max = 2;
        store.change(&crawl).unwrap();
        store.commit(Step { let_in: vec![crawl.no], ..Step::default() }).unwrap();
        assert_eq!(find(&store, &crawl, 10..11).uncounted, 2);
    }

    /// A step looks at a bounded number of links, and says that there are more.
    #[test]
    fn many_links_are_let_in_one_step_after_the_other() {
        let store = Ledger::open(InMemory::default()).unwrap();
        let mut crawl = store.create(NewCrawl { crawl: crawl(), random: 1 }).unwrap().crawl;
        find(&store, &crawl, 0..6_000);
        crawl.limits.urls_per_host_max = 100_000;
        store.change(&crawl).unwrap();
        let let_in = || {
            let step = Step { let_in: vec![crawl.no], ..Step::default() };
            let committed = store.commit(step).unwrap();
            (committed.queued.len(), committed.more_held.len())
        };
        assert_eq!((let_in(), let_in(), let_in()), ((5_000, 1), (1_000, 0), (0, 0)));
    }

    /// Directories of earlier versions have no counts.
    #[test]
    fn held_links_without_a_count_are_counted() {
        let store = Ledger::open(InMemory::default()).unwrap();
        let crawl = store.create(NewCrawl { crawl: crawl(), random: 1 }).unwrap().crawl;
        find(&store, &crawl, 0..3);
        let host = Host::new("a.test");
        let mut batch = Batch::default();
        batch.remove(Table::Held, layout::held_count_key(crawl.no, &host));
        store.rows().commit(batch).unwrap();
        let rows = [HostRow { refused: 3, ..HostRow::new(host.clone()) }];
        let counts = load_counts(store.rows(), crawl.no, rows.iter()).unwrap();
        assert_eq!(counts[&host], HeldCount { held: 3, dropped: 0 });
    }
}
