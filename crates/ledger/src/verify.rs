//! Checks the promises about a data directory, row by row, on what is really on the disk.

mod ids;

use std::collections::{HashMap, HashSet};

use crate::{
    Check, CrawlRecord, CrawlStore, LinksOf, PageStore, StoreError, UrlState, VerifyCounts,
    VerifyReport,
};
use telusur_model::{Crawl, CrawlNo, CrawlStats, Host, PageRecord, Scope, Timestamp, UrlKey};

use self::ids::IdsCheck;
use crate::layout::{self, QueueRow, UrlRow, decode};
use crate::storage::{Bodies, Rows, Storage, Table};
use crate::{Ledger, fold};

/// Pages read at once.
const BATCH: usize = 256;
/// Request times are kept in whole milliseconds of a clock that others may adjust a little.
const CLOCK_SLACK_MS: u64 = 5;

pub(crate) fn verify(
    store: &Ledger<impl Storage>,
    links_of: LinksOf<'_>,
) -> Result<VerifyReport, StoreError> {
    // No step may land while rows are counted against each other.
    let _writer = store.memory();
    let mut checks = Checks::default();
    let crawls = store.crawls()?;
    for record in &crawls {
        let mut counted = checks.urls(store, record)?;
        let mut ids = IdsCheck::load(store, &record.crawl)?;
        checks.queue(store, record, &counted)?;
        checks.pages(store, record, &counted, &mut ids, links_of)?;
        counted.stats.ids = ids.finish(record.crawl.no, &mut checks.ids);
        checks.counters(record, &counted);
        checks.counts.urls += counted.stats.discovered;
        checks.counts.pages += counted.stats.pages;
    }
    checks.directory(store, &crawls)?;
    checks.counts.crawls = crawls.len() as u64;
    Ok(checks.report())
}

/// What the seen-set of a crawl says, added up.
#[derive(Default)]
struct Counted {
    stats: CrawlStats,
    page_of_key: HashMap<UrlKey, u64>,
}

struct Checks {
    bodies: Check,
    states: Check,
    known_links: Check,
    index: Check,
    gaps: Check,
    once: Check,
    counters: Check,
    opens: Check,
    directory: Check,
    ids: Check,
    counts: VerifyCounts,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            bodies: Check::new("I1", "every stored page is readable and matches its digest"),
            states: Check::new("I2", "every known URL is in exactly one state"),
            known_links: Check::new("I3", "the links of every stored page are known"),
            index: Check::new("I4", "the index holds nothing that the store does not"),
            gaps: Check::new("I5", "no host was asked twice within its delay"),
            once: Check::new("I6", "no page is stored twice"),
            counters: Check::new("I7", "the counters equal what is stored"),
            opens: Check::new("I8", "the directory opens without repair"),
            directory: Check::new("I9", "nothing is left over in the directory"),
            ids: Check::new("I10", "what is known of ids agrees with the stored pages"),
            counts: VerifyCounts::default(),
        }
    }
}

impl Checks {
    fn urls(
        &mut self,
        store: &Ledger<impl Storage>,
        record: &CrawlRecord,
    ) -> Result<Counted, StoreError> {
        let no = record.crawl.no;
        let mut counted = Counted::default();
        for row in store.rows().prefix(Table::Urls, layout::crawl_key(no)) {
            let (key, value) = row?;
            let Some(key) = key.get(4..20).and_then(|bytes| bytes.try_into().ok()) else {
                self.states.look(false, || format!("{no}: a key of the seen-set is cut"));
                continue;
            };
            let key = UrlKey(u128::from_be_bytes(key));
            let stats = &mut counted.stats;
            stats.discovered += 1;
            match decode(&value, "urls")? {
                UrlRow::Queued { .. } => stats.queued += 1,
                UrlRow::Page { seq } => {
                    stats.pages += 1;
                    counted.page_of_key.insert(key, seq);
                }
                UrlRow::Settled(record) => match record.state {
                    UrlState::Sitemap { .. } => stats.sitemaps += 1,
                    UrlState::Redirected { .. } => stats.redirected += 1,
                    UrlState::Failed { .. } => stats.failed += 1,
                    UrlState::Skipped { .. } => stats.skipped += 1,
                    UrlState::Queued { .. } | UrlState::Page { .. } => {
                        self.states
                            .look(false, || format!("{no}: {} is settled and not", record.url));
                    }
                },
            }
            self.states.look(true, String::new);
        }
        Ok(counted)
    }

    /// Every queued URL stands in the queue once, and the queue holds nothing else.
    fn queue(
        &mut self,
        store: &Ledger<impl Storage>,
        record: &CrawlRecord,
        counted: &Counted,
    ) -> Result<(), StoreError> {
        let no = record.crawl.no;
        let mut rows_in_queue = 0;
        let mut by_host: HashMap<Host, u64> = HashMap::new();
        for row in store.rows().prefix(Table::Queue, layout::crawl_key(no)) {
            let (key, value) = row?;
            rows_in_queue += 1;
            let queued: QueueRow = decode(&value, "queue")?;
            let seen = store
                .rows()
                .get(Table::Urls, layout::url_key(no, queued.key))?
                .map(|bytes| decode(&bytes, "urls"))
                .transpose()?;
            let place = layout::place_of(&key);
            let agrees =
                matches!(seen, Some(UrlRow::Queued { place: seen }) if Some(seen) == place);
            self.states
                .look(agrees, || format!("{no}: {} is queued but not marked so", queued.url));
            let host = layout::host_of_queue_key(&key);
            self.states.look(host.as_ref() == Some(&queued.url.host()), || {
                format!("{no}: {} waits in the queue of another host", queued.url)
            });
            *by_host.entry(queued.url.host()).or_default() += 1;
        }
        self.states.look(rows_in_queue == counted.stats.queued, || {
            format!(
                "{no}: {} URLs are marked queued, {rows_in_queue} stand in the queue",
                counted.stats.queued
            )
        });
        for row in store.rows().prefix(Table::Hosts, layout::crawl_key(no)) {
            let row: telusur_model::HostRow = decode(&row?.1, "hosts")?;
            let waiting = by_host.get(&row.host).copied().unwrap_or(0);
            self.counters.look(row.queued == waiting, || {
                format!(
                    "{no}: host {} counts {} waiting URLs, {waiting} wait",
                    row.host, row.queued
                )
            });
        }
        Ok(())
    }

    fn pages(
        &mut self,
        store: &Ledger<impl Storage>,
        record: &CrawlRecord,
        counted: &Counted,
        ids: &mut IdsCheck,
        links_of: LinksOf<'_>,
    ) -> Result<(), StoreError> {
        let crawl = &record.crawl;
        let scope = self.scope(crawl);
        let mut seq = 0;
        let mut keys = HashSet::new();
        let mut requests: HashMap<Host, Vec<Timestamp>> = HashMap::new();
        loop {
            let pages = store.pages_after(crawl.no, seq, BATCH)?;
            let Some(last) = pages.last() else { break };
            seq = last.seq;
            for page in &pages {
                let is_marked = counted.page_of_key.get(&page.key) == Some(&page.seq);
                self.once.look(is_marked && keys.insert(page.key), || {
                    format!("{}: {} is stored but not marked so", crawl.no, page.url)
                });
                self.body(store, crawl.no, page);
                ids.page(crawl.no, page, &mut self.ids);
                if let Some(scope) = &scope {
                    self.links(store, crawl, scope, page, links_of)?;
                }
                if let Some(at) = page.requested_at {
                    requests.entry(page.url.host()).or_default().push(at);
                }
            }
        }
        self.once.look(keys.len() == counted.page_of_key.len(), || {
            format!(
                "{}: {} URLs are marked as pages, {} are stored",
                crawl.no,
                counted.page_of_key.len(),
                keys.len()
            )
        });
        self.gaps_between(crawl, requests);
        Ok(())
    }

    /// What a crawl follows, if it follows links. Rules of an older version that are beyond today's
    /// limits are no damage: the links of that crawl are not checked, and the report says so.
    fn scope(&mut self, crawl: &Crawl) -> Option<Scope> {
        if !crawl.follows_links() {
            return None;
        }
        match Scope::of(crawl) {
            Ok(scope) => Some(scope),
            Err(error) => {
                self.known_links.notes.push(format!("{}: links not checked: {error}", crawl.no));
                None
            }
        }
    }

    fn body(&mut self, store: &Ledger<impl Storage>, no: CrawlNo, page: &PageRecord) {
        let readable = match page.body {
            None => Ok(()),
            Some(blob) => store.body(no, blob).and_then(|body| {
                if blake3::hash(&body.bytes).as_bytes() == &page.digest.0 {
                    Ok(())
                } else {
                    Err(StoreError::Damaged("the body does not match its digest".into()))
                }
            }),
        };
        self.bodies.look(readable.is_ok(), || {
            format!(
                "{no}: {}: {}",
                page.url,
                readable.err().map(|e| e.to_string()).unwrap_or_default()
            )
        });
    }

    fn links(
        &mut self,
        store: &Ledger<impl Storage>,
        crawl: &Crawl,
        scope: &Scope,
        page: &PageRecord,
        links_of: LinksOf<'_>,
    ) -> Result<(), StoreError> {
        // The links of an error page are not followed.
        if !page.is_ok() {
            return Ok(());
        }
        let links = match links_of(page) {
            Ok(links) => links,
            // A body that cannot be read was named by the check of bodies.
            Err(_) => return Ok(()),
        };
        let Some(keyer) = store.keyer_of(crawl.no)? else { return Ok(()) };
        for link in links {
            let url = scope.treat_query(link);
            let row = layout::url_key(crawl.no, keyer.key(&url));
            let is_known = crawl.seeds.walks().iter().any(|walk| walk.id_of(&url).is_some())
                || store.rows().contains(Table::Urls, row)?
                || fold::is_beyond_count(store.rows(), crawl.no, &url.host())?;
            let what = || format!("{}: {url} on {} is not known", crawl.no, page.url);
            self.known_links.look(is_known, what);
        }
        Ok(())
    }

    fn gaps_between(&mut self, crawl: &Crawl, requests: HashMap<Host, Vec<Timestamp>>) {
        // With several requests at once the delay is kept all the same; with none there is nothing
        // to keep.
        let delay_ms = crawl.politeness.delay_ms;
        for (host, mut times) in requests {
            times.sort_unstable();
            for pair in times.windows(2) {
                let gap_ms = pair[1].0 - pair[0].0;
                self.gaps.look(gap_ms + CLOCK_SLACK_MS >= delay_ms, || {
                    format!(
                        "{}: {host} was asked twice within {gap_ms} ms, at {}",
                        crawl.no, pair[1]
                    )
                });
            }
        }
    }

    fn counters(&mut self, record: &CrawlRecord, counted: &Counted) {
        let no = record.crawl.no;
        let (stored, told) = (&counted.stats, &record.stats);
        let pairs = [
            ("discovered", stored.discovered, told.discovered),
            ("queued", stored.queued, told.queued),
            ("pages", stored.pages, told.pages),
            ("sitemaps", stored.sitemaps, told.sitemaps),
            ("redirected", stored.redirected, told.redirected),
            ("failed", stored.failed, told.failed),
            ("skipped", stored.skipped, told.skipped),
            ("content", stored.ids.content, told.ids.content),
            ("missing", stored.ids.missing, told.ids.missing),
            ("holes", stored.ids.holes, told.ids.holes),
            ("waiting", stored.ids.waiting, told.ids.waiting),
        ];
        for (name, stored, told) in pairs {
            self.counters
                .look(stored == told, || format!("{no}: {name} says {told}, {stored} are stored"));
        }
        let unasked = told.queued + told.skipped;
        let sum = unasked + told.pages + told.sitemaps + told.redirected + told.failed;
        self.counters.look(sum == told.discovered, || {
            format!("{no}: the states add up to {sum}, {} URLs were discovered", told.discovered)
        });
    }

    fn directory(
        &mut self,
        store: &Ledger<impl Storage>,
        crawls: &[CrawlRecord],
    ) -> Result<(), StoreError> {
        for dir in store.bodies().crawls()? {
            let is_owned = crawls.iter().any(|record| record.crawl.no.to_string() == dir);
            self.directory.look(is_owned, || format!("bodies/{dir} belongs to no known crawl"));
        }
        self.opens.look(true, String::new);
        let leftovers = store.storage().leftovers()?;
        self.directory
            .look(leftovers.is_empty(), || format!("left over: {}", leftovers.join(", ")));
        Ok(())
    }

    fn report(mut self) -> VerifyReport {
        if self.index.looked_at == 0 {
            self.index.notes.push("there is no index".into());
        }
        self.opens.notes.push(format!("{} crawls", self.counts.crawls));
        let checks = vec![
            self.bodies,
            self.states,
            self.known_links,
            self.index,
            self.gaps,
            self.once,
            self.counters,
            self.opens,
            self.directory,
            self.ids,
        ];
        VerifyReport { checks, counts: self.counts }
    }
}
