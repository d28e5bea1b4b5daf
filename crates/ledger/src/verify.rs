//! Checks the promises about a data directory, row by row, on what is really on the disk.
//!
//! All rows are read at one instant, from a snapshot, so that steps are committed meanwhile. Bodies
//! are read where they are: they are only appended, so that what the snapshot points at stays, unless
//! the whole crawl is removed meanwhile, which is no damage.
//!
//! Nothing is collected by URL or page: tables are compared by point look-ups, or side by side where
//! they have one order. Memory is bounded by the settings of the largest crawl, the links of one page,
//! and the requests of [`RecentRequests`].

mod by_host;
mod held;
mod ids;
mod leftovers;
mod lookups;
mod queue;
mod requests;
#[cfg(test)]
mod tests;

use serde::de::DeserializeOwned;
use telusur_model::{Crawl, CrawlNo, CrawlStats, PageRecord, Scope};

use self::ids::IdsCheck;
use self::requests::RecentRequests;
use crate::layout::{self, UrlRow, decode, decode_u64};
use crate::storage::{Bodies, BodiesEnd, Rows, Storage, Table, WriteRows};
use crate::{
    Check, CrawlRecord, Ledger, LinksOf, StoreError, UrlState, VerifyCounts, VerifyReport, crawls,
    fold,
};

/// Request times are kept in whole milliseconds of a clock that others may adjust a little.
const CLOCK_SLACK_MS: u64 = 5;

pub(crate) fn verify<S: Storage>(
    store: &Ledger<S>,
    links_of: LinksOf<'_>,
) -> Result<VerifyReport, StoreError> {
    let rows = store.rows().snapshot();
    let last_seq = match rows.get(Table::Meta, layout::META_SEQ)? {
        Some(bytes) => decode_u64(&bytes, layout::META_SEQ)?,
        None => 0,
    };
    let view = View { store, rows, last_seq };
    let mut checks = Checks::default();
    for row in view.rows.prefix(Table::Crawls, []) {
        let (key, value) = row?;
        let row = fold::decode_row(&value);
        // What is left of it is removed at the next start.
        if row.as_ref().is_ok_and(|row| row.removing) {
            continue;
        }
        let record = row.and_then(|row| {
            let stats = crawls::read_stats(&view.rows, row.crawl.no)?;
            Ok(row.into_record(stats, store.key_seed()))
        });
        match record {
            Ok(record) => checks.crawl(&view, &record, links_of)?,
            Err(error) => {
                let no = layout::crawl_of(&key)?;
                checks.continues.look(false, || format!("{no}: {error}"));
            }
        }
    }
    checks.lookups(&view)?;
    checks.leftovers(&view)?;
    Ok(checks.report())
}

/// What is looked at: the rows of one instant, and the store that goes on.
struct View<'a, S: Storage> {
    store: &'a Ledger<S>,
    rows: <S::Rows as WriteRows>::Snapshot,
    /// The last place that was given to a queued URL or a page.
    last_seq: u64,
}

impl<S: Storage> View<'_, S> {
    /// Whether a crawl has been removed since, and its bodies with it.
    fn is_removed(&self, crawl: CrawlNo) -> Result<bool, StoreError> {
        let row = crawls::read_row(self.store.rows(), crawl)?;
        Ok(row.is_none_or(|row| row.removing))
    }
}

struct Checks {
    bodies: Check,
    states: Check,
    known_links: Check,
    index: Check,
    gaps: Check,
    once: Check,
    counters: Check,
    continues: Check,
    leftovers: Check,
    ids: Check,
    lookups: Check,
    held: Check,
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
            continues: Check::new("I8", "every crawl can go on from what was committed"),
            leftovers: Check::new("I9", "nothing is left over in the directory"),
            ids: Check::new("I10", "what is known of ids agrees with the stored pages"),
            lookups: Check::new("I11", "the order of pages and the names of crawls are complete"),
            held: Check::new("I12", "links that wait for a budget are known and counted"),
            counts: VerifyCounts::default(),
        }
    }
}

impl Checks {
    fn crawl<S: Storage>(
        &mut self,
        view: &View<'_, S>,
        record: &CrawlRecord,
        links_of: LinksOf<'_>,
    ) -> Result<(), StoreError> {
        let mut counted = self.urls(view, record)?;
        let mut ids = IdsCheck::new(&record.crawl);
        self.queue(view, record, counted.queued)?;
        self.held(view, &record.crawl)?;
        self.traps(view, record.crawl.no)?;
        self.pages(view, record, counted.pages, &mut ids, links_of)?;
        self.continues(view, record.crawl.no)?;
        counted.ids = ids.finish(view, record.crawl.no, &mut self.ids)?;
        self.counters(record, &counted);
        self.counts.crawls += 1;
        self.counts.urls += counted.discovered;
        self.counts.pages += counted.pages;
        Ok(())
    }

    /// What the seen-set of a crawl says, added up.
    fn urls<S: Storage>(
        &mut self,
        view: &View<'_, S>,
        record: &CrawlRecord,
    ) -> Result<CrawlStats, StoreError> {
        let no = record.crawl.no;
        let mut stats = CrawlStats::default();
        for row in view.rows.prefix(Table::Urls, layout::crawl_key(no)) {
            let (key, value) = row?;
            if key.len() != layout::url_key(no, telusur_model::UrlKey(0)).len() {
                self.states.look(false, || format!("{no}: a key of the seen-set is cut"));
                continue;
            }
            stats.discovered += 1;
            let Some(row) = readable(&mut self.states, no, &value, "urls") else { continue };
            match row {
                UrlRow::Queued { .. } => stats.queued += 1,
                UrlRow::Page { .. } => stats.pages += 1,
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
        Ok(stats)
    }

    fn traps<S: Storage>(&mut self, view: &View<'_, S>, no: CrawlNo) -> Result<(), StoreError> {
        for row in view.rows.prefix(Table::Traps, layout::crawl_key(no)) {
            let (_, value) = row?;
            let row = readable::<(u32, Option<String>)>(&mut self.states, no, &value, "traps");
            self.states.looked_at += u64::from(row.is_some());
        }
        Ok(())
    }

    /// `marked`: URLs whose state says that they are pages.
    fn pages<S: Storage>(
        &mut self,
        view: &View<'_, S>,
        record: &CrawlRecord,
        marked: u64,
        ids: &mut IdsCheck,
        links_of: LinksOf<'_>,
    ) -> Result<(), StoreError> {
        let crawl = &record.crawl;
        let scope = self.scope(crawl);
        let mut requests = RecentRequests::default();
        let mut is_removed = false;
        let mut stored = 0;
        for row in view.rows.prefix(Table::Pages, layout::crawl_key(crawl.no)) {
            let (key, value) = row?;
            let page = readable::<PageRecord>(&mut self.once, crawl.no, &value, "pages");
            let Some(page) = page else { continue };
            stored += 1;
            self.page_place(view, crawl.no, &key, &page)?;
            let body = check_body(view.store, &page);
            if body.is_err() && !is_removed {
                is_removed = view.is_removed(crawl.no)?;
            }
            if !is_removed {
                self.bodies.look(body.is_ok(), || {
                    let why = body.err().map(|error| error.to_string()).unwrap_or_default();
                    format!("{}: {}: {why}", crawl.no, page.url)
                });
            }
            ids.page(view, &page, &mut self.ids)?;
            if let Some(scope) = &scope {
                self.links(view, record, scope, &page, links_of)?;
            }
            if let Some(at) = page.requested_at
                && let Some(gap_ms) = requests.add(page.url.host(), at)
            {
                // With several requests at once the delay is kept all the same; with none there is
                // nothing to keep.
                self.gaps.look(gap_ms + CLOCK_SLACK_MS >= crawl.politeness.delay_ms, || {
                    let host = page.url.host();
                    format!("{}: {host} was asked twice within {gap_ms} ms, at {at}", crawl.no)
                });
            }
        }
        // Each stored page has a URL of its own that points at it; so equal numbers leave no URL
        // without its page.
        self.once.look(stored == marked, || {
            format!("{}: {marked} URLs are marked as pages, {stored} are stored", crawl.no)
        });
        Ok(())
    }

    /// A page is what its key, its URL and the order of all pages say it is.
    fn page_place<S: Storage>(
        &mut self,
        view: &View<'_, S>,
        no: CrawlNo,
        key: &[u8],
        page: &PageRecord,
    ) -> Result<(), StoreError> {
        let is_at_its_key = *key == layout::page_key(page.crawl, page.seq);
        let url = view.rows.get(Table::Urls, layout::url_key(no, page.key))?;
        let url = url.and_then(|row| decode(&row, "urls").ok());
        let is_marked = matches!(url, Some(UrlRow::Page { seq }) if seq == page.seq);
        self.once.look(is_marked && is_at_its_key, || {
            format!("{no}: {} is stored but not marked so", page.url)
        });
        let crawl = view.rows.get(Table::Order, layout::order_key(page.seq))?;
        let is_ordered = crawl.is_some_and(|crawl| *crawl == layout::crawl_key(no));
        self.lookups.look(is_ordered, || {
            format!("{no}: {} is not in the order of pages, at {}", page.url, page.seq)
        });
        self.place(view, no, page.seq);
        Ok(())
    }

    /// A place beyond the last one given would be given once more.
    fn place<S: Storage>(&mut self, view: &View<'_, S>, no: CrawlNo, seq: u64) {
        self.continues.look(seq <= view.last_seq, || {
            format!("{no}: the place {seq} is taken, the last one given is {}", view.last_seq)
        });
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
                self.known_links.note(format!("{}: links not checked: {error}", crawl.no));
                None
            }
        }
    }

    fn links<S: Storage>(
        &mut self,
        view: &View<'_, S>,
        record: &CrawlRecord,
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
        let (crawl, keyer) = (&record.crawl, record.keyer());
        for link in links {
            let url = scope.treat_query(link);
            let row = layout::url_key(crawl.no, keyer.key(&url));
            let is_known = crawl.seeds.walks().iter().any(|walk| walk.id_of(&url).is_some())
                || view.rows.contains(Table::Urls, row)?
                || fold::is_beyond_count(&view.rows, crawl.no, &url.host())?;
            let what = || format!("{}: {url} on {} is not known", crawl.no, page.url);
            self.known_links.look(is_known, what);
        }
        Ok(())
    }

    /// The bodies of a crawl reach as far as was committed: the next page is appended there.
    fn continues<S: Storage>(&mut self, view: &View<'_, S>, no: CrawlNo) -> Result<(), StoreError> {
        let Some(row) = view.rows.get(Table::Meta, layout::meta_bodies_end(no))? else {
            return Ok(());
        };
        let end = readable::<BodiesEnd>(&mut self.continues, no, &row, "segment ends");
        let Some(end) = end else { return Ok(()) };
        let reach = view.store.bodies().reach(no, end);
        let is_well = matches!(reach, Ok(true)) || view.is_removed(no)?;
        self.continues.look(is_well, || match reach {
            Ok(_) => {
                let BodiesEnd { segment, len } = end;
                format!("{no}: segment {segment} is shorter than the {len} bytes committed")
            }
            Err(error) => format!("{no}: {error}"),
        });
        Ok(())
    }

    fn counters(&mut self, record: &CrawlRecord, stored: &CrawlStats) {
        let no = record.crawl.no;
        let told = &record.stats;
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

    fn report(mut self) -> VerifyReport {
        if self.index.looked_at == 0 {
            self.index.note("there is no index".into());
        }
        let checks = vec![
            self.bodies,
            self.states,
            self.known_links,
            self.index,
            self.gaps,
            self.once,
            self.counters,
            self.continues,
            self.leftovers,
            self.ids,
            self.lookups,
            self.held,
        ];
        VerifyReport { checks, counts: self.counts }
    }
}

pub(crate) fn check_body(
    store: &Ledger<impl Storage>,
    page: &PageRecord,
) -> Result<(), StoreError> {
    let Some(blob) = page.body else {
        // An imported document has no answer, only what is in it.
        return page
            .parsed
            .map_or(Ok(()), |blob| store.bodies().extract(page.crawl, blob).map(drop));
    };
    let body = store.bodies().answer(page.crawl, blob)?;
    if blake3::hash(&body.bytes).as_bytes() != &page.digest.0 {
        return Err(StoreError::Damaged("the body does not match its digest".into()));
    }
    Ok(())
}

/// The row in these bytes; one that cannot be read is broken.
fn readable<T: DeserializeOwned>(
    check: &mut Check,
    no: CrawlNo,
    bytes: &[u8],
    table: &str,
) -> Option<T> {
    match decode(bytes, table) {
        Ok(row) => Some(row),
        Err(error) => {
            check.look(false, || format!("{no}: {error}"));
            None
        }
    }
}
