//! Links that a full budget left out, held until units are given back or the budget is raised. Such
//! a link is known and settled with the reason; its row here says in which order the links of a host
//! get their chance.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use telusur_model::{
    Crawl, CrawlNo, Host, HostRow, Lane, Limits, PageUrl, Purpose, QueuePlace, Reason, Site,
    UrlKey, UrlShape, Visit,
};

use super::Fold;
use super::budget::{self, Full};
use crate::layout::{self, UrlRow, decode, encode};
use crate::memory::CrawlMemory;
use crate::storage::{Rows, Table, after_prefix};
use crate::{StoreError, UrlRecord, UrlState};

/// Links of one host that are held at a time. Of those beyond only the number is kept: a site that
/// makes up addresses would fill the disk with them. Links that a rule forbids do not count here.
const HELD_PER_HOST_MAX: u64 = 100_000;
/// Held links that one step looks at when a budget was raised: some tenths of a second of the
/// writer's time. The rest takes another event.
const LET_IN_MAX: usize = 5_000;

/// Held links that are read at once.
const READ_MAX: usize = 256;

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

/// The counts of a crawl, by host.
#[derive(Debug, Default)]
pub(crate) struct HeldHosts {
    counts: HashMap<Host, HeldCount>,
    /// The hosts that have held links.
    waiting: HashMap<Site, BTreeSet<Host>>,
}

impl HeldHosts {
    pub(crate) fn count(&self, host: &Host) -> HeldCount {
        self.counts.get(host).copied().unwrap_or_default()
    }

    fn set(&mut self, host: &Host, count: HeldCount) {
        let before = self.counts.insert(host.clone(), count).unwrap_or_default();
        match (before.held > 0, count.held > 0) {
            (false, true) => {
                self.waiting.entry(host.site()).or_default().insert(host.clone());
            }
            (true, false) => {
                if let Some(hosts) = self.waiting.get_mut(&host.site()) {
                    hosts.remove(host);
                }
            }
            (false, false) | (true, true) => {}
        }
    }

    /// The hosts that have held links, in order.
    fn waiting(&self) -> BTreeSet<Host> {
        self.waiting.values().flatten().cloned().collect()
    }

    /// Those of a site.
    fn waiting_of(&self, site: &Site) -> Vec<Host> {
        self.waiting.get(site).into_iter().flatten().cloned().collect()
    }
}

/// What the links of a host wait for: the budget of this shape, or that of the host or site.
type AwaitedBudget = Option<u32>;

/// Where the look through a line of held links ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    /// It has no further link that fits.
    Line,
    /// No link of its host fits.
    Host,
    /// The event has looked at as many as it may.
    Event,
}

/// The counts of a crawl. `hosts`: what is known of its hosts.
pub(crate) fn load_counts<'h>(
    rows: &impl Rows,
    crawl: CrawlNo,
    hosts: impl Iterator<Item = &'h HostRow>,
) -> Result<HeldHosts, StoreError> {
    let mut held_hosts = HeldHosts::default();
    for row in rows.prefix(Table::Held, layout::held_counts_key(crawl)) {
        let (key, value) = row?;
        let host = layout::host_of_count_key(&key).ok_or_else(cut_key)?;
        held_hosts.set(&host, decode(&value, "held")?);
    }
    // Earlier versions wrote no counts, and counted these links among the refused ones.
    for row in hosts.filter(|row| row.refused > 0) {
        if !held_hosts.counts.contains_key(&row.host) {
            let mut held = 0;
            for link in rows.prefix(Table::Held, layout::held_host_key(crawl, &row.host)) {
                link?;
                held += 1;
            }
            held_hosts.set(&row.host, HeldCount { held, dropped: 0 });
        }
    }
    Ok(held_hosts)
}

/// Whether a host has links that wait for a unit and were not kept.
pub(super) fn has_dropped(
    rows: &impl Rows,
    crawl: CrawlNo,
    host: &Host,
) -> Result<bool, StoreError> {
    let row = rows.get(Table::Held, layout::held_count_key(crawl, host))?;
    let count: Option<HeldCount> = row.map(|row| decode(&row, "held")).transpose()?;
    Ok(count.is_some_and(|count| count.dropped > 0))
}

/// Whether a held link of a crawl fits into its budgets, as they are given here.
pub(crate) fn any_fits(
    rows: &impl Rows,
    crawl: &Crawl,
    memory: &CrawlMemory,
) -> Result<bool, StoreError> {
    let (limits, crawl) = (&crawl.limits, crawl.no);
    for host in memory.held.waiting() {
        let host_key = layout::held_host_key(crawl, &host);
        let mut next = Some(host_key.clone());
        while let Some(first) = next.take() {
            let Some(row) = rows.range(Table::Held, first, after_prefix(&host_key)).next() else {
                break;
            };
            let (key, value) = row?;
            let line = layout::line_of_held_key(&key, host_key.len()).ok_or_else(cut_key)?;
            let held: HeldRow = decode(&value, "held")?;
            let url = rows.get(Table::Urls, layout::url_key(crawl, held.key))?;
            let url = url.map(|row| decode(&row, "urls")).transpose()?;
            let record = url.and_then(left_out_record);
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

impl<R: Rows> Fold<'_, R> {
    /// Whether another link of a host is held. If not, it is counted.
    pub(super) fn may_hold(&mut self, crawl: CrawlNo, host: &Host) -> bool {
        let count = self.of(crawl).held.count(host);
        let may_hold = count.held < HELD_PER_HOST_MAX;
        if !may_hold {
            self.set_held(crawl, host, HeldCount { dropped: count.dropped + 1, ..count });
        }
        may_hold
    }

    fn set_held(&mut self, crawl: CrawlNo, host: &Host, count: HeldCount) {
        self.touched_held.insert((crawl, host.clone()));
        self.of(crawl).held.set(host, count);
    }

    /// A link is not held any more, or not in this line.
    fn release(&mut self, crawl: CrawlNo, host: &Host, key: Vec<u8>) {
        let count = self.of(crawl).held.count(host);
        self.set_held(crawl, host, HeldCount { held: count.held.saturating_sub(1), ..count });
        self.batch.remove(Table::Held, key);
    }

    /// Holds a link that a full budget leaves out.
    pub(super) fn hold(&mut self, visit: &Visit, full: &Full, is_included: bool) {
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
        let count = self.of(visit.crawl).held.count(&host);
        self.set_held(visit.crawl, &host, HeldCount { held: count.held + 1, ..count });
        let key = layout::held_key(visit.crawl, &host, line, visit.place);
        self.batch.insert(Table::Held, key, encode(&row));
    }

    /// Gives back the unit of a URL that was not asked for after all, and lets in the link that waits
    /// for it.
    pub(super) fn give_back(
        &mut self,
        crawl: CrawlNo,
        url: &PageUrl,
        purpose: Purpose,
    ) -> Result<(), StoreError> {
        let host = url.host();
        if matches!(purpose, Purpose::Sitemap { .. }) {
            self.update_host(crawl, &host, |row| row.sitemaps = row.sitemaps.saturating_sub(1));
            return Ok(());
        }
        let (site, shape) = (host.site(), UrlShape::of(url));
        let memory = self.of(crawl);
        let mut units = memory.admitted_by_site.get(&site).copied().unwrap_or(0);
        let was_full = units >= memory.limits.urls_per_site_max;
        self.update_host(crawl, &host, |row| budget::give_back(row, &mut units, shape.as_ref()));
        let memory = self.of(crawl);
        memory.admitted_by_site.insert(site.clone(), units);
        // As many as were given back: that is bounded already.
        let mut left = usize::MAX;
        if memory.held.count(&host).held > 0 {
            for line in [None].into_iter().chain(shape.map(|shape| Some(shape.hash))) {
                self.let_in_line(crawl, &host, line, &mut left)?;
            }
        }
        if was_full {
            let others = self.of(crawl).held.waiting_of(&site).into_iter();
            for host in others.filter(|other| *other != host) {
                let memory = self.of(crawl);
                let units = memory.admitted_by_site.get(&site).copied().unwrap_or(0);
                if units >= memory.limits.urls_per_site_max {
                    break;
                }
                self.let_in_line(crawl, &host, None, &mut left)?;
            }
        }
        Ok(())
    }

    /// Lets in the links that the budgets of a crawl have room for: they may have been raised.
    pub(super) fn let_in_all(&mut self, crawl: CrawlNo) -> Result<(), StoreError> {
        let mut left = LET_IN_MAX;
        for host in self.of(crawl).held.waiting() {
            let host_key = layout::held_host_key(crawl, &host);
            let mut next = Some(host_key.clone());
            while let Some(first) = next.take() {
                let rows = self.rows_from(Table::Held, first, after_prefix(&host_key), 1)?;
                let Some((key, _)) = rows.first() else { break };
                let line = layout::line_of_held_key(key, host_key.len()).ok_or_else(cut_key)?;
                match self.let_in_line(crawl, &host, line, &mut left)? {
                    LineEnd::Line => next = end_of_line(crawl, &host, line),
                    LineEnd::Host => {}
                    LineEnd::Event => {
                        self.effects.more_held.push(crawl);
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
        let mut first = layout::held_line_key(crawl, host, line);
        let end = after_prefix(&first);
        loop {
            // Nothing below adds to this line, so that the rows that were read stay the next ones.
            let rows = self.rows_from(Table::Held, first, end.clone(), READ_MAX)?;
            let Some((last, _)) = rows.last() else { return Ok(LineEnd::Line) };
            first = [last, [0].as_slice()].concat();
            for (key, value) in rows {
                if *left == 0 {
                    return Ok(LineEnd::Event);
                }
                *left -= 1;
                if let Some(end) = self.let_in_link(crawl, host, line, key, &value)? {
                    return Ok(end);
                }
            }
        }
    }

    /// Lets in one link; says where the look ends if there is no room for it.
    fn let_in_link(
        &mut self,
        crawl: CrawlNo,
        host: &Host,
        line: AwaitedBudget,
        key: Vec<u8>,
        value: &[u8],
    ) -> Result<Option<LineEnd>, StoreError> {
        let held: HeldRow = decode(value, "held")?;
        let Some((visit, reason)) = self.held_visit(crawl, held)? else {
            self.release(crawl, host, key);
            return Ok(None);
        };
        let memory = self.of(crawl);
        match full_for(&memory.limits, memory, host, &visit.url, held) {
            None => {
                self.release(crawl, host, key);
                self.uncount_skip(crawl, reason);
                self.admit(visit);
            }
            Some(Full::Host { .. } | Full::Site { .. }) => return Ok(Some(LineEnd::Host)),
            Some(Full::Shape { shape, .. }) if line == Some(shape) => {
                return Ok(Some(LineEnd::Line));
            }
            // Its host has room and its shape has none: it waits for the shape from now on.
            Some(full @ Full::Shape { .. }) => {
                self.release(crawl, host, key);
                self.hold(&visit, &full, held.is_included);
            }
        }
        Ok(None)
    }

    /// A link is not held any more, wherever it is among the first ones of its host. False if it is not.
    pub(super) fn unhold(
        &mut self,
        crawl: CrawlNo,
        host: &Host,
        url: UrlKey,
    ) -> Result<bool, StoreError> {
        let first = layout::held_host_key(crawl, host);
        let end = after_prefix(&first);
        for (key, value) in self.rows_from(Table::Held, first, end, LET_IN_MAX)? {
            if decode::<HeldRow>(&value, "held")?.key == url {
                self.release(crawl, host, key);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The visit of a held link, and the reason it was settled with; `None` if it has another
    /// answer by now, as a URL has that is an id of a linear crawl, too.
    fn held_visit(
        &mut self,
        crawl: CrawlNo,
        held: HeldRow,
    ) -> Result<Option<(Visit, Reason)>, StoreError> {
        let record = self.url_row(crawl, held.key)?.and_then(left_out_record);
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
fn left_out_record(row: UrlRow) -> Option<(UrlRecord, Reason)> {
    let UrlRow::Settled(record) = row else { return None };
    let UrlState::Skipped { reason, .. } = record.state else { return None };
    reason.budget_flag().map(|_| (*record, reason))
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

/// Where the next line of a host begins; `None` behind the last.
fn end_of_line(crawl: CrawlNo, host: &Host, line: AwaitedBudget) -> Option<Vec<u8>> {
    let next = line.map_or(Some(0), |shape| shape.checked_add(1))?;
    Some(layout::held_line_key(crawl, host, Some(next)))
}

fn cut_key() -> StoreError {
    StoreError::Damaged("a key of held is cut".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_memory::InMemory;
    use crate::storage::{Batch, Storage, WriteRows};
    use crate::{CrawlStore, Event, FrontierStore, Ledger, LinkSource, NewCrawl, Step};
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

    fn let_in(store: &Ledger<impl Storage>, crawl: &Crawl) -> crate::Effects {
        store.commit(Step::of(Event::BudgetsRaised { crawl: crawl.no })).unwrap()
    }

    /// Finds these links.
    fn find(
        store: &Ledger<impl Storage>,
        crawl: &Crawl,
        links: std::ops::Range<u32>,
    ) -> CrawlStats {
        let keyer = store.memory().by_crawl[&crawl.no].keyer;
        let link = |n: u32| {
            let url = PageUrl::parse(&format!("http://a.test/{n}")).unwrap();
            Discovery::page(url.clone(), keyer.key(&url), Via::Link)
        };
        let source = LinkSource {
            crawl: crawl.no,
            at: Timestamp(0),
            depth: 0,
            hops_outside: 0,
            url: "http://a.test/".to_owned(),
            referrer: None,
            redirects: Vec::new(),
        };
        let events = source.judge_to_events(links.map(link).collect(), &Scope::of(crawl).unwrap());
        store.commit(events.into_iter().collect()).unwrap().stats.pop().unwrap().1
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
        assert_eq!(let_in(&store, &crawl).queued.len(), 3);
    }

    #[test]
    fn links_beyond_the_limit_are_counted() {
        let store = Ledger::open(InMemory::default()).unwrap();
        let mut crawl = store.create(NewCrawl { crawl: crawl(), random: 1 }).unwrap().crawl;
        let host = Host::new("a.test");
        let held = HeldCount { held: HELD_PER_HOST_MAX - 1, dropped: 0 };
        let set = |held| {
            let mut memory = store.memory();
            memory.by_crawl.get_mut(&crawl.no).unwrap().held.set(&host, held);
        };
        set(held);
        let stats = find(&store, &crawl, 0..3);
        assert_eq!((stats.skips[&Reason::HostBudget], stats.uncounted), (1, 2));
        assert!(has_dropped(store.rows(), crawl.no, &host).unwrap());
        // Those that are let in make room for others.
        crawl.limits.urls_per_host_max = 2;
        store.change(&crawl).unwrap();
        let_in(&store, &crawl);
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
        let some = || {
            let effects = let_in(&store, &crawl);
            (effects.queued.len(), effects.more_held.len())
        };
        assert_eq!((some(), some(), some()), ((5_000, 1), (1_000, 0), (0, 0)));
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
        assert_eq!(counts.count(&host), HeldCount { held: 3, dropped: 0 });
    }
}
