//! [`StepWriter`]: turns a step into one atomic batch. The heart of "nothing is lost".

use std::collections::{HashMap, HashSet};

use crate::{
    Committed, Dequeued, Ending, NewlyQueued, PageToStore, Step, StoreError, Stored, TrapMark,
    UrlRecord, UrlState, VisitOutcome,
};
use telusur_model::{
    BlobRef, Crawl, CrawlNo, CrawlStats, Discovery, Host, HostRow, IdState, Lane, PageRecord,
    PageUrl, Purpose, QueuePlace, Reason, Timestamp, UrlKey, Via, Visit,
};

use crate::Ledger;
use crate::admit::LinkContext;
use crate::crawls::{CrawlRow, encode_row};
use crate::layout::{self, QueueRow, UrlRow, encode};
use crate::lookup::names_of;
use crate::memory::{CrawlMemory, Memory, keyer};
use crate::storage::{Batch, Bodies, Rows, Storage, Table, WriteRows};

/// Builds one batch. Memory runs ahead of the disk while it is built; if the commit fails, memory
/// is marked broken and the store refuses further steps until it is opened again.
pub(crate) struct StepWriter<'a, S> {
    pub(crate) store: &'a Ledger<S>,
    pub(crate) memory: &'a mut Memory,
    pub(crate) batch: Batch,
    pub(crate) committed: Committed,
    touched_hosts: HashSet<(CrawlNo, Host)>,
    pub(crate) touched_crawls: HashSet<CrawlNo>,
    /// Hosts whose count of held links changed.
    pub(crate) touched_held: HashSet<(CrawlNo, Host)>,
    /// Rows of held links that this step takes away: the database still shows them.
    pub(crate) gone_held: HashSet<Vec<u8>>,
    /// What is known of the URLs of ids from elsewhere: links led there before the walk did.
    pub(crate) known_ids: HashMap<(CrawlNo, UrlKey), UrlRow>,
    /// Keys that were new when the step began and have not been taken in yet.
    new_keys: HashSet<(CrawlNo, UrlKey)>,
    /// Keys that are known only from links marked nofollow.
    nofollow_keys: HashSet<(CrawlNo, UrlKey)>,
}

impl<'a, S: Storage> StepWriter<'a, S> {
    pub(crate) fn new(store: &'a Ledger<S>, memory: &'a mut Memory) -> Self {
        Self {
            store,
            memory,
            batch: Batch::default(),
            committed: Committed::default(),
            touched_hosts: HashSet::new(),
            touched_crawls: HashSet::new(),
            touched_held: HashSet::new(),
            gone_held: HashSet::new(),
            known_ids: HashMap::new(),
            new_keys: HashSet::new(),
            nofollow_keys: HashSet::new(),
        }
    }

    /// Writes a whole step.
    pub(crate) fn write(mut self, step: Step) -> Result<Committed, StoreError> {
        self.memory.refuse_if_broken()?;
        let endings = self.still_queued(step.endings)?;
        for (crawl, walk, _) in &step.runs {
            self.load_runs(*crawl, *walk)?;
        }
        let mut found = Vec::with_capacity(step.found.len());
        for item in step.found {
            if self.memory.crawl(item.crawl, self.store.rows())?.is_some() {
                found.push(item);
            }
        }
        let places = self.append_bodies(&endings)?;
        self.memory.broken = true;
        let of_visits = endings.iter().map(|ending| (ending.visit.crawl, &ending.discoveries));
        let of_files = found.iter().map(|found| (found.crawl, &found.discoveries));
        self.find_new_keys(of_visits.chain(of_files))?;
        let given = self.give_back(&endings)?;
        self.let_in(given)?;
        for crawl in step.let_in {
            self.let_in_all(crawl)?;
        }
        for (ending, place) in endings.into_iter().zip(places) {
            self.end(ending, place);
        }
        for found in found {
            let context = LinkContext::of_file(&found);
            self.follow(found.discoveries, &context, &found.scope);
        }
        self.import(step.imports)?;
        self.reread(step.reread)?;
        self.ask_again(step.again)?;
        for give_up in step.give_up {
            self.give_up(&give_up)?;
        }
        for row in step.origins {
            let Ok(url) = PageUrl::parse(&row.origin) else { continue };
            let key = layout::origin_key(&url.host(), &row.origin);
            self.batch.insert(Table::Origins, key, encode(&row));
        }
        for (crawl, mark) in step.traps {
            self.put_trap(crawl, &mark)?;
        }
        for (crawl, walk, run) in step.runs {
            self.write_run(crawl, walk, run);
        }
        for (crawl, host, at) in step.prerequisite_requests {
            self.update_host(crawl, &host, |row| note_request(row, Some(at)));
        }
        for (crawl, host, at) in step.last_requests {
            self.update_host(crawl, &host, |row| {
                row.last_request_at = row.last_request_at.max(Some(at));
            });
        }
        for (crawl, active_ms) in step.active_ms {
            if let Some(memory) = self.memory.by_crawl.get_mut(&crawl) {
                memory.stats.active_ms += active_ms;
                self.touched_crawls.insert(crawl);
            }
        }
        for (crawl, host, delay_ms) in step.host_delays {
            self.update_host(crawl, &host, |row| row.delay_ms = delay_ms);
        }
        self.commit()
    }

    /// A new crawl.
    pub(crate) fn put_crawl(&mut self, row: &CrawlRow) {
        let no = row.crawl.no;
        self.memory.crawls = no.0;
        self.memory.by_crawl.insert(
            no,
            CrawlMemory {
                limits: row.crawl.limits.clone(),
                stats: Default::default(),
                hosts: HashMap::new(),
                admitted_by_site: HashMap::new(),
                held: HashMap::new(),
                bodies_end: Default::default(),
                runs: HashMap::new(),
            },
        );
        self.batch.insert(Table::Crawls, layout::crawl_key(no), encode_row(row));
        for text in names_of(&row.crawl) {
            self.batch.insert(Table::Names, layout::name_key(text, no), []);
        }
        let crawls = u64::from(self.memory.crawls).to_be_bytes();
        self.batch.insert(Table::Meta, layout::META_CRAWLS, crawls);
        self.touched_crawls.insert(no);
    }

    /// The start URLs of a new crawl: the user named them, so no scope judges them.
    pub(crate) fn seed(&mut self, crawl: &Crawl) {
        let keyer = keyer(crawl, self.store.key_seed());
        let keys = crawl.seeds.urls().iter().map(|url| (crawl.no, keyer.key(url)));
        self.new_keys.extend(keys);
        for url in crawl.seeds.urls() {
            let key = keyer.key(url);
            if !self.take_new(crawl.no, key) {
                continue;
            }
            let place = QueuePlace { lane: Lane::Plain, order: 0, seq: self.next_seq() };
            self.admit(seed_visit(crawl, Purpose::Page, url, key, place));
        }
        for url in &crawl.sitemaps.urls {
            let key = keyer.sitemap_key(url);
            self.new_keys.insert((crawl.no, key));
            if self.take_new(crawl.no, key) {
                let place = QueuePlace { lane: Lane::Plain, order: 0, seq: self.next_seq() };
                let purpose = Purpose::Sitemap { nesting: 0 };
                self.admit(seed_visit(crawl, purpose, url, key, place));
            }
        }
    }

    /// Makes the batch durable.
    pub(crate) fn commit(mut self) -> Result<Committed, StoreError> {
        self.memory.broken = true;
        for (crawl, host) in &self.touched_hosts {
            let row = &self.memory.by_crawl[crawl].hosts[host];
            self.batch.insert(Table::Hosts, layout::host_key(*crawl, host), encode(row));
        }
        for (crawl, host) in &self.touched_held {
            let count = self.memory.by_crawl[crawl].held.get(host).copied().unwrap_or_default();
            let key = layout::held_count_key(*crawl, host);
            self.batch.insert(Table::Held, key, encode(&count));
        }
        for crawl in &self.touched_crawls {
            let memory = &self.memory.by_crawl[crawl];
            self.batch.insert(Table::Stats, layout::crawl_key(*crawl), encode(&memory.stats));
            self.batch.insert(
                Table::Meta,
                layout::meta_bodies_end(*crawl),
                encode(&memory.bodies_end),
            );
            self.committed.stats.push((*crawl, memory.stats.clone()));
        }
        self.batch.insert(Table::Meta, layout::META_SEQ, self.memory.seq.to_be_bytes());
        self.store.rows().commit(self.batch)?;
        self.memory.broken = false;
        Ok(self.committed)
    }

    /// Endings of visits whose queue row is still there, and of ids whose page is not stored yet.
    /// Another one was settled by an earlier step or belongs to a crawl that was removed: taking it
    /// again would store a page twice.
    fn still_queued(&mut self, endings: Vec<Ending>) -> Result<Vec<Ending>, StoreError> {
        let mut kept = Vec::with_capacity(endings.len());
        let (mut places, mut ids) = (HashSet::new(), HashSet::new());
        for ending in endings {
            let visit = &ending.visit;
            let rows = self.store.rows();
            if self.memory.crawl(visit.crawl, rows)?.is_none() {
                continue;
            }
            if let Some(id) = ending.id {
                self.load_runs(visit.crawl, id.walk)?;
                if self.is_wanted(visit.crawl, id) && ids.insert((visit.crawl, visit.place)) {
                    self.note_known_key(&ending)?;
                    kept.push(ending);
                } else {
                    self.committed.dequeued.push(Dequeued {
                        crawl: visit.crawl,
                        host: visit.url.host(),
                        place: visit.place,
                        stored_page: false,
                        id_state: Some(IdState::Content),
                    });
                }
                continue;
            }
            if !Lane::STORED.contains(&visit.place.lane) {
                // An error of this visit alone: the step holds those of other crawls, too.
                tracing::warn!(crawl = %visit.crawl, url = %visit.url, "visit is in no queue, dropped");
                self.committed.dequeued.push(Dequeued {
                    crawl: visit.crawl,
                    host: visit.url.host(),
                    place: visit.place,
                    stored_page: false,
                    id_state: None,
                });
                continue;
            }
            let key = layout::queue_key(visit.crawl, &visit.url.host(), visit.place);
            if rows.contains(Table::Queue, &key)? && places.insert(key) {
                kept.push(ending);
            }
        }
        Ok(kept)
    }

    /// Appends and syncs the bodies of a step: they are on the disk before the records that point at
    /// them. Nothing but the segments' unacknowledged tails has changed when this fails.
    fn append_bodies(&mut self, endings: &[Ending]) -> Result<Vec<Option<BlobRef>>, StoreError> {
        let blobs = endings.iter().map(|ending| match &ending.how {
            VisitOutcome::Page(page) => (ending.visit.crawl, page.packed.blob.as_deref()),
            _ => (ending.visit.crawl, None),
        });
        self.append(blobs)
    }

    /// Appends blobs and syncs once for each crawl. Gives the place of each.
    fn append<'b>(
        &mut self,
        blobs: impl Iterator<Item = (CrawlNo, Option<&'b [u8]>)>,
    ) -> Result<Vec<Option<BlobRef>>, StoreError> {
        let mut places = Vec::new();
        let mut by_crawl: HashMap<CrawlNo, (Vec<&[u8]>, Vec<usize>)> = HashMap::new();
        for (index, (crawl, blob)) in blobs.enumerate() {
            places.push(None);
            let Some(blob) = blob else { continue };
            let (blobs, owners) = by_crawl.entry(crawl).or_default();
            blobs.push(blob);
            owners.push(index);
        }
        let mut ends = Vec::with_capacity(by_crawl.len());
        for (crawl, (blobs, owners)) in by_crawl {
            let end = self.crawl_memory(crawl).bodies_end;
            let (refs, end) = self.store.bodies().append(crawl, end, &blobs)?;
            ends.push((crawl, end));
            for (index, blob) in owners.into_iter().zip(refs) {
                places[index] = Some(blob);
            }
        }
        // Only when all are synced: what follows an end that is not committed is overwritten.
        for (crawl, end) in ends {
            self.crawl_memory(crawl).bodies_end = end;
        }
        tracing::trace!(blobs = places.len(), "bodies synced");
        Ok(places)
    }

    /// Which of the links found are new: those that neither the recent keys nor the store know, looked
    /// up in key order, so that neighbours share their disk blocks.
    ///
    /// Decided for the whole step before any key is added: the table of recent keys forgets, and a
    /// key that another one pushed out in the middle of a step would look new again.
    ///
    /// A link that was only ever marked nofollow is known, and becomes new when another page leads
    /// there without that mark.
    fn find_new_keys<'d>(
        &mut self,
        found: impl Iterator<Item = (CrawlNo, &'d Vec<Discovery>)>,
    ) -> Result<(), StoreError> {
        let mut asked = Vec::new();
        for (crawl, discoveries) in found {
            for discovery in discoveries {
                if !self.memory.recent.contains(crawl, discovery.key) {
                    asked.push((crawl, discovery.key));
                }
            }
        }
        asked.sort_unstable();
        asked.dedup();
        for (crawl, key) in asked {
            let row = self.store.rows().get(Table::Urls, layout::url_key(crawl, key));
            match row? {
                None => {
                    self.new_keys.insert((crawl, key));
                }
                Some(row) if layout::is_nofollow(&row) => {
                    self.nofollow_keys.insert((crawl, key));
                }
                Some(_) => self.memory.recent.add(crawl, key),
            }
        }
        Ok(())
    }

    fn end(&mut self, ending: Ending, place: Option<BlobRef>) {
        if let Some(id) = ending.id {
            return self.end_id(ending, id, place);
        }
        let Ending { visit, how, at, requested_at, discoveries, scope, other_schemes, .. } = ending;
        let crawl = visit.crawl;
        let context = LinkContext::of(&visit, at);
        let host = visit.url.host();
        self.touched_crawls.insert(crawl);
        self.batch.remove(Table::Queue, layout::queue_key(crawl, &host, visit.place));
        let stored_page = matches!(how, VisitOutcome::Page(_));
        self.committed.dequeued.push(Dequeued {
            crawl,
            host: host.clone(),
            place: visit.place,
            stored_page,
            id_state: None,
        });
        let is_retry = matches!(how, VisitOutcome::Later { .. });
        let is_error = match &how {
            VisitOutcome::Page(page) => page.record.is_error(),
            VisitOutcome::Failed { .. } | VisitOutcome::NoPage { .. } => true,
            _ => false,
        };
        self.update_host(crawl, &host, |row| {
            row.queued -= u64::from(!is_retry);
            row.pages += u64::from(stored_page);
            row.errors += u64::from(is_error);
            note_request(row, requested_at);
        });
        let stats = &mut self.crawl_memory(crawl).stats;
        stats.visits += u64::from(!matches!(how, VisitOutcome::Skipped { .. }));
        stats.other_schemes += u64::from(other_schemes);
        stats.queued -= u64::from(!is_retry);
        match how {
            VisitOutcome::Page(page) => self.store_page(*page, place),
            VisitOutcome::Later { due, counted, reason, .. } => {
                self.retry(visit, due, counted, reason)
            }
            VisitOutcome::Redirected { status, to } => {
                let stats = &mut self.crawl_memory(crawl).stats;
                stats.redirected += 1;
                *stats.statuses.entry(status).or_default() += 1;
                self.settle(visit, UrlState::Redirected { status, to, at });
            }
            VisitOutcome::Sitemap { entries, dropped, trouble } => {
                self.crawl_memory(crawl).stats.sitemaps += 1;
                self.settle(visit, UrlState::Sitemap { entries, dropped, trouble, at });
            }
            VisitOutcome::Failed { reason, detail } => self.fail(visit, reason, detail, at),
            // Only ids end so. A queued visit that did has failed, and says so.
            VisitOutcome::NoPage { .. } => {
                self.fail(visit, Reason::ProtocolError, "it brought no page".to_owned(), at);
            }
            VisitOutcome::Skipped { reason, rule } => {
                self.count_skip(crawl, reason);
                self.settle(visit, UrlState::Skipped { reason, rule });
            }
        }
        self.follow(discoveries, &context, &scope);
    }

    fn put_trap(&mut self, crawl: CrawlNo, mark: &TrapMark) -> Result<(), StoreError> {
        // It may have been removed in the meantime.
        if self.memory.crawl(crawl, self.store.rows())?.is_none() {
            return Ok(());
        }
        let key = layout::trap_key(crawl, mark.shape);
        match mark {
            TrapMark { run: 0, rule: None, .. } => self.batch.remove(Table::Traps, key),
            TrapMark { run, rule, .. } => {
                self.batch.insert(Table::Traps, key, encode(&(run, rule)))
            }
        }
        Ok(())
    }

    /// A visit ended for good without a page.
    fn fail(&mut self, visit: Visit, reason: Reason, detail: String, at: Timestamp) {
        let stats = &mut self.crawl_memory(visit.crawl).stats;
        stats.failed += 1;
        *stats.failures.entry(reason).or_default() += 1;
        let attempts = visit.attempt;
        self.settle(visit, UrlState::Failed { reason, detail, attempts, at });
    }

    /// Stores documents that no visit brought. Of several with one key the last counts.
    fn import(&mut self, imports: Vec<PageToStore>) -> Result<(), StoreError> {
        let last: HashMap<_, _> = (0_usize..)
            .zip(&imports)
            .map(|(index, page)| ((page.record.crawl, page.record.key), index))
            .collect();
        let mut wanted = Vec::with_capacity(last.len());
        for (index, page) in imports.into_iter().enumerate() {
            let (crawl, key) = (page.record.crawl, page.record.key);
            let is_last = last[&(crawl, key)] == index;
            if !is_last || self.memory.crawl(crawl, self.store.rows())?.is_none() {
                continue;
            }
            let known = self.store.rows().get(Table::Urls, layout::url_key(crawl, key))?;
            match known.map(|row| layout::decode(&row, "urls")).transpose()? {
                None => wanted.push((page, None)),
                Some(UrlRow::Page { seq }) => wanted.push((page, Some(seq))),
                // A URL of a crawl that is no page yet will have its own answer.
                Some(UrlRow::Queued { .. } | UrlRow::Settled(_)) => {}
            }
        }
        let blobs = wanted.iter().map(|(page, _)| (page.record.crawl, page.packed.blob.as_deref()));
        let places = self.append(blobs)?;
        for ((page, replaced), place) in wanted.into_iter().zip(places) {
            let crawl = page.record.crawl;
            match replaced {
                None => self.crawl_memory(crawl).stats.discovered += 1,
                Some(seq) => self.drop_page(crawl, seq)?,
            }
            self.touched_crawls.insert(crawl);
            self.store_page(page, place);
        }
        Ok(())
    }

    /// Replaces the records of pages, as far as they are still there. A new place tells whoever
    /// follows the pages in their order, as the index does.
    fn reread(&mut self, records: Vec<PageRecord>) -> Result<(), StoreError> {
        let store = self.store;
        for record in records {
            let crawl = record.crawl;
            if self.memory.crawl(crawl, store.rows())?.is_none() {
                continue;
            }
            let Some(known) = store.page_record(crawl, record.seq)? else { continue };
            self.remove_page(crawl, known.seq);
            let seq = self.next_seq();
            let stats = &mut self.crawl_memory(crawl).stats;
            count_parse_failure(stats, Some(&known), Some(&record));
            self.put_page(&PageRecord { seq, body: known.body, parsed: known.parsed, ..record });
            self.touched_crawls.insert(crawl);
        }
        Ok(())
    }

    /// Takes a page out that is about to be replaced.
    fn drop_page(&mut self, crawl: CrawlNo, seq: u64) -> Result<(), StoreError> {
        let Some(page) = self.store.page_record(crawl, seq)? else { return Ok(()) };
        self.remove_page(crawl, seq);
        let stats = &mut self.crawl_memory(crawl).stats;
        stats.pages -= 1;
        stats.ok -= u64::from(page.is_ok());
        count_parse_failure(stats, Some(&page), None);
        stats.bytes -= page.bytes;
        stats.wire_bytes -= page.wire_bytes;
        let counters = [stats.statuses.get_mut(&page.status), stats.depths.get_mut(&page.depth)];
        for count in counters.into_iter().flatten() {
            *count -= 1;
        }
        Ok(())
    }

    pub(crate) fn store_page(&mut self, page: PageToStore, place: Option<BlobRef>) {
        let seq = self.next_seq();
        let PageToStore { record, packed } = page;
        let body = place.filter(|_| packed.has_body);
        let parsed = place.filter(|_| packed.has_extract);
        let record = PageRecord { seq, body, parsed, ..record };
        let stats = &mut self.crawl_memory(record.crawl).stats;
        stats.pages += 1;
        stats.ok += u64::from(record.is_ok());
        count_parse_failure(stats, None, Some(&record));
        stats.bytes += record.bytes;
        stats.wire_bytes += record.wire_bytes;
        *stats.statuses.entry(record.status).or_default() += 1;
        *stats.depths.entry(record.depth).or_default() += 1;
        if let Some(change) = record.change {
            *stats.changes.entry(change).or_default() += 1;
        }
        self.put_page(&record);
        self.committed.stored.push(Stored { seq, url: record.url });
    }

    fn remove_page(&mut self, crawl: CrawlNo, seq: u64) {
        self.batch.remove(Table::Pages, layout::page_key(crawl, seq));
        self.batch.remove(Table::Order, layout::order_key(seq));
    }

    fn put_page(&mut self, record: &PageRecord) {
        let PageRecord { seq, crawl, key, .. } = *record;
        self.put_url(crawl, key, &UrlRow::Page { seq });
        self.batch.insert(Table::Pages, layout::page_key(crawl, seq), encode(record));
        self.batch.insert(Table::Order, layout::order_key(seq), layout::crawl_key(crawl));
    }

    fn retry(&mut self, mut visit: Visit, due: Timestamp, counted: bool, reason: Reason) {
        visit.place = QueuePlace { lane: Lane::Later, order: due.0, seq: self.next_seq() };
        visit.attempt = visit.attempt.saturating_add(u8::from(counted));
        self.enqueue(visit, Some(due), Some(reason));
    }

    pub(crate) fn settle(&mut self, visit: Visit, state: UrlState) {
        let record = UrlRecord {
            url: visit.url.to_string(),
            depth: visit.depth,
            via: visit.via,
            found_at: visit.found_at,
            referrer: visit.referrer,
            redirects: visit.redirects,
            lastmod: visit.lastmod,
            state,
        };
        self.put_url(visit.crawl, visit.key, &UrlRow::Settled(Box::new(record)));
    }

    /// Marks a new key as known. False if it is not new, or not any more.
    pub(crate) fn take_new(&mut self, crawl: CrawlNo, key: UrlKey) -> bool {
        if !self.new_keys.remove(&(crawl, key)) {
            return false;
        }
        self.memory.recent.add(crawl, key);
        self.touched_crawls.insert(crawl);
        self.crawl_memory(crawl).stats.discovered += 1;
        true
    }

    /// Makes a URL new again that was known only from links marked nofollow, if this one is not.
    pub(crate) fn revive(&mut self, crawl: CrawlNo, discovery: &Discovery) -> bool {
        if discovery.nofollow || !self.nofollow_keys.remove(&(crawl, discovery.key)) {
            return false;
        }
        self.memory.recent.add(crawl, discovery.key);
        self.touched_crawls.insert(crawl);
        self.uncount_skip(crawl, Reason::Nofollow);
        true
    }

    /// URLs that failed go back to the queue as if nobody had asked for them.
    fn ask_again(&mut self, visits: Vec<Visit>) -> Result<(), StoreError> {
        let mut taken = HashSet::new();
        for mut visit in visits {
            if !taken.insert((visit.crawl, visit.key)) {
                continue;
            }
            let row = self.store.rows().get(Table::Urls, layout::url_key(visit.crawl, visit.key));
            let Some(row) = row? else { continue };
            let UrlRow::Settled(record) = layout::decode(&row, "urls")? else { continue };
            let UrlState::Failed { reason, .. } = record.state else { continue };
            if self.memory.crawl(visit.crawl, self.store.rows())?.is_none() {
                continue;
            }
            self.touched_crawls.insert(visit.crawl);
            let stats = &mut self.crawl_memory(visit.crawl).stats;
            stats.failed -= 1;
            stats.queued += 1;
            if let Some(count) = stats.failures.get_mut(&reason) {
                *count -= 1;
            }
            stats.failures.retain(|_, count| *count > 0);
            self.update_host(visit.crawl, &visit.url.host(), |row| {
                row.queued += 1;
                row.errors = row.errors.saturating_sub(1);
            });
            let order = u64::from(visit.depth);
            visit.place = QueuePlace { lane: Lane::Plain, order, seq: self.next_seq() };
            visit.attempt = 1;
            // That it failed before says that it has used its unit.
            self.enqueue(visit, None, Some(reason));
        }
        Ok(())
    }

    /// A URL is known only from a link marked nofollow: the next link to it is looked at.
    pub(crate) fn forget_recent(&mut self, crawl: CrawlNo, key: UrlKey) {
        self.memory.recent.forget(crawl, key);
        self.nofollow_keys.insert((crawl, key));
    }

    pub(crate) fn enqueue(
        &mut self,
        visit: Visit,
        due: Option<Timestamp>,
        last_failure: Option<Reason>,
    ) {
        let row = QueueRow::of_visit(&visit, last_failure);
        let key = layout::queue_key(visit.crawl, &visit.url.host(), visit.place);
        self.batch.insert(Table::Queue, key, encode(&row));
        self.put_url(visit.crawl, visit.key, &UrlRow::Queued { place: visit.place });
        // Who was asked to wait just now has heard it from the answer itself.
        self.committed.queued.push(NewlyQueued { visit, due, asked_to_wait: false });
    }

    pub(crate) fn put_url(&mut self, crawl: CrawlNo, key: UrlKey, row: &UrlRow) {
        self.batch.insert(Table::Urls, layout::url_key(crawl, key), encode(row));
    }

    pub(crate) fn count_skip(&mut self, crawl: CrawlNo, reason: Reason) {
        let stats = &mut self.crawl_memory(crawl).stats;
        stats.skipped += 1;
        *stats.skips.entry(reason).or_default() += 1;
    }

    /// A skipped URL is not skipped any more.
    pub(crate) fn uncount_skip(&mut self, crawl: CrawlNo, reason: Reason) {
        let stats = &mut self.crawl_memory(crawl).stats;
        stats.skipped = stats.skipped.saturating_sub(1);
        if let Some(count) = stats.skips.get_mut(&reason) {
            *count = count.saturating_sub(1);
        }
        stats.skips.retain(|_, count| *count > 0);
        self.touched_crawls.insert(crawl);
    }

    pub(crate) fn update_host(
        &mut self,
        crawl: CrawlNo,
        host: &Host,
        change: impl FnOnce(&mut HostRow),
    ) {
        let Some(memory) = self.memory.by_crawl.get_mut(&crawl) else { return };
        let row = memory.hosts.entry(host.clone()).or_insert_with(|| HostRow::new(host.clone()));
        change(row);
        self.touched_hosts.insert((crawl, host.clone()));
    }

    pub(crate) fn crawl_memory(&mut self, crawl: CrawlNo) -> &mut CrawlMemory {
        self.memory.by_crawl.get_mut(&crawl).expect("loaded before the step began")
    }

    pub(crate) fn next_seq(&mut self) -> u64 {
        self.memory.seq += 1;
        self.memory.seq
    }
}

/// Counts a page that could not be parsed, in the place of another one or of none. Error pages are
/// counted as such.
fn count_parse_failure(
    stats: &mut CrawlStats,
    before: Option<&PageRecord>,
    now: Option<&PageRecord>,
) {
    let has_failed = |page: &PageRecord| page.is_ok() && page.parse_failed.is_some();
    match (before.is_some_and(has_failed), now.is_some_and(has_failed)) {
        (false, true) => *stats.failures.entry(Reason::ParseFailed).or_default() += 1,
        (true, false) => {
            // Pages of older directories were not counted.
            if let Some(count) = stats.failures.get_mut(&Reason::ParseFailed) {
                *count = count.saturating_sub(1);
            }
            stats.failures.retain(|_, count| *count > 0);
        }
        (false, false) | (true, true) => {}
    }
}

/// Counts a request to a host.
pub(crate) fn note_request(row: &mut HostRow, at: Option<Timestamp>) {
    if let Some(at) = at {
        row.requests.note(at, row.last_request_at);
        row.last_request_at = row.last_request_at.max(Some(at));
    }
}

fn seed_visit(
    crawl: &Crawl,
    purpose: Purpose,
    url: &PageUrl,
    key: UrlKey,
    place: QueuePlace,
) -> Visit {
    Visit {
        crawl: crawl.no,
        purpose,
        url: url.clone(),
        key,
        place,
        depth: 0,
        hops_outside: 0,
        via: Via::Seed,
        found_at: crawl.created_at,
        referrer: None,
        redirects: Vec::new(),
        lastmod: None,
        attempt: 1,
    }
}
