//! [`StepWriter`]: turns a step into one atomic batch. The heart of "nothing is lost".

use std::collections::{HashMap, HashSet};

use fjall::OwnedWriteBatch;
use telusur_model::{
    BlobRef, Crawl, CrawlNo, Discovery, Host, HostRow, Lane, PageRecord, PageUrl, QueuePlace,
    Reason, Scope, Timestamp, UrlKey, Verdict, Via, Visit,
};
use telusur_store::{
    Committed, Ending, Gone, How, NewlyQueued, PageToStore, Step, StoreError, UrlRecord, UrlState,
};

use crate::crawls::{CrawlRow, encode_row};
use crate::memory::{CrawlMemory, Memory, keyer};
use crate::rows::{self, QueueRow, UrlRow, encode};
use crate::{EmbeddedStore, engine_error};

/// Builds one batch. Memory runs ahead of the disk while it is built; if the commit fails, memory
/// is marked broken and the store refuses further steps until it is opened again.
pub(crate) struct StepWriter<'a> {
    store: &'a EmbeddedStore,
    memory: &'a mut Memory,
    batch: OwnedWriteBatch,
    committed: Committed,
    touched_hosts: HashSet<(CrawlNo, Host)>,
    touched_crawls: HashSet<CrawlNo>,
    /// Keys that were new when the step began and have not been taken in yet.
    new_keys: HashSet<(CrawlNo, UrlKey)>,
}

impl<'a> StepWriter<'a> {
    pub(crate) fn new(store: &'a EmbeddedStore, memory: &'a mut Memory) -> Self {
        Self {
            store,
            memory,
            batch: store.batch(),
            committed: Committed::default(),
            touched_hosts: HashSet::new(),
            touched_crawls: HashSet::new(),
            new_keys: HashSet::new(),
        }
    }

    /// Writes a whole step.
    pub(crate) fn write(mut self, step: Step) -> Result<Committed, StoreError> {
        if self.memory.broken {
            return Err(StoreError::Engine("an earlier commit failed; start again".into()));
        }
        let endings = self.still_queued(step.endings)?;
        let places = self.append_bodies(&endings)?;
        self.memory.broken = true;
        self.find_new_keys(&endings)?;
        for (ending, place) in endings.into_iter().zip(places) {
            self.end(ending, place);
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
                segment_end: Default::default(),
            },
        );
        let keyspaces = &self.store.keyspaces;
        self.batch.insert(&keyspaces.crawls, rows::crawl_key(no), encode_row(row));
        let crawls = u64::from(self.memory.crawls).to_be_bytes();
        self.batch.insert(&keyspaces.meta, rows::META_CRAWLS, crawls);
        self.touched_crawls.insert(no);
    }

    /// The start URLs of a new crawl: the user named them, so no scope judges them.
    pub(crate) fn seed(&mut self, crawl: &Crawl) {
        let keyer = keyer(crawl, self.store.key_seed);
        let keys = crawl.seeds.urls().iter().map(|url| (crawl.no, keyer.key(url)));
        self.new_keys.extend(keys);
        for url in crawl.seeds.urls() {
            let key = keyer.key(url);
            if !self.take_new(crawl.no, key) {
                continue;
            }
            let place = QueuePlace { lane: Lane::Plain, order: 0, seq: self.next_seq() };
            self.take_in(Visit {
                crawl: crawl.no,
                url: url.clone(),
                key,
                place,
                depth: 0,
                hops_outside: 0,
                via: Via::Seed,
                found_at: crawl.created_at,
                referrer: None,
                redirects: Vec::new(),
                attempt: 1,
            });
        }
    }

    /// Makes the batch durable.
    pub(crate) fn commit(mut self) -> Result<Committed, StoreError> {
        self.memory.broken = true;
        let keyspaces = &self.store.keyspaces;
        for (crawl, host) in &self.touched_hosts {
            let row = &self.memory.by_crawl[crawl].hosts[host];
            self.batch.insert(&keyspaces.hosts, rows::host_key(*crawl, host), encode(row));
        }
        for crawl in &self.touched_crawls {
            let memory = &self.memory.by_crawl[crawl];
            self.batch.insert(&keyspaces.stats, rows::crawl_key(*crawl), encode(&memory.stats));
            self.batch.insert(
                &keyspaces.meta,
                rows::meta_segment_end(*crawl),
                encode(&memory.segment_end),
            );
            self.committed.stats.push((*crawl, memory.stats.clone()));
        }
        self.batch.insert(&keyspaces.meta, rows::META_SEQ, self.memory.seq.to_be_bytes());
        self.batch.commit().map_err(engine_error)?;
        self.memory.broken = false;
        Ok(self.committed)
    }

    /// Endings of visits whose queue row is still there. Another one was settled by an earlier step
    /// or belongs to a crawl that was removed: taking it again would store a page twice.
    fn still_queued(&mut self, endings: Vec<Ending>) -> Result<Vec<Ending>, StoreError> {
        let mut kept = Vec::with_capacity(endings.len());
        let mut places = HashSet::new();
        for ending in endings {
            let visit = &ending.visit;
            let keyspaces = &self.store.keyspaces;
            if self.memory.crawl(visit.crawl, keyspaces)?.is_none() {
                continue;
            }
            let key = rows::queue_key(visit.crawl, &visit.url.host(), visit.place);
            if keyspaces.queue.contains_key(&key).map_err(engine_error)? && places.insert(key) {
                kept.push(ending);
            }
        }
        Ok(kept)
    }

    /// Appends and syncs the bodies of a step: they are on the disk before the records that point at
    /// them. Nothing but the segments' unacknowledged tails has changed when this fails.
    fn append_bodies(&mut self, endings: &[Ending]) -> Result<Vec<Option<BlobRef>>, StoreError> {
        let mut places = vec![None; endings.len()];
        let mut by_crawl: HashMap<CrawlNo, (Vec<&[u8]>, Vec<usize>)> = HashMap::new();
        for (index, ending) in endings.iter().enumerate() {
            let How::Page(page) = &ending.how else { continue };
            let Some(blob) = &page.packed.blob else { continue };
            let (blobs, owners) = by_crawl.entry(ending.visit.crawl).or_default();
            blobs.push(blob);
            owners.push(index);
        }
        for (crawl, (blobs, owners)) in by_crawl {
            let memory = self.memory.by_crawl.get_mut(&crawl).expect("still_queued loaded it");
            let (refs, end) = self.store.segments.append(crawl, memory.segment_end, &blobs)?;
            memory.segment_end = end;
            for (index, blob) in owners.into_iter().zip(refs) {
                places[index] = Some(blob);
            }
        }
        tracing::trace!(endings = endings.len(), "bodies synced");
        Ok(places)
    }

    /// Which of the links found are new: those that neither the recent keys nor the store know, looked
    /// up in key order, so that neighbours share their disk blocks.
    ///
    /// Decided for the whole step before any key is added: the table of recent keys forgets, and a
    /// key that another one pushed out in the middle of a step would look new again.
    fn find_new_keys(&mut self, endings: &[Ending]) -> Result<(), StoreError> {
        let mut asked = Vec::new();
        for ending in endings {
            let crawl = ending.visit.crawl;
            for discovery in &ending.discoveries {
                if !self.memory.recent.contains(crawl, discovery.key) {
                    asked.push((crawl, discovery.key));
                }
            }
        }
        asked.sort_unstable();
        asked.dedup();
        for (crawl, key) in asked {
            let row = rows::url_key(crawl, key);
            if self.store.keyspaces.urls.contains_key(row).map_err(engine_error)? {
                self.memory.recent.add(crawl, key);
            } else {
                self.new_keys.insert((crawl, key));
            }
        }
        Ok(())
    }

    fn end(&mut self, ending: Ending, place: Option<BlobRef>) {
        let Ending { visit, how, at, requested_at, discoveries, scope, other_schemes } = ending;
        let crawl = visit.crawl;
        let trail = Trail::of(&visit, at);
        let host = visit.url.host();
        self.touched_crawls.insert(crawl);
        self.batch.remove(&self.store.keyspaces.queue, rows::queue_key(crawl, &host, visit.place));
        let stored_page = matches!(how, How::Page(_));
        self.committed.gone.push(Gone {
            crawl,
            host: host.clone(),
            place: visit.place,
            stored_page,
        });
        let is_retry = matches!(how, How::Later { .. });
        let is_error = match &how {
            How::Page(page) => !page.record.is_ok(),
            How::Failed { .. } => true,
            _ => false,
        };
        self.update_host(crawl, &host, |row| {
            row.queued -= u64::from(!is_retry);
            row.pages += u64::from(stored_page);
            row.errors += u64::from(is_error);
            row.last_request_at = row.last_request_at.max(requested_at);
        });
        let stats = &mut self.crawl_memory(crawl).stats;
        stats.visits += u64::from(!matches!(how, How::Skipped { .. }));
        stats.other_schemes += u64::from(other_schemes);
        stats.queued -= u64::from(!is_retry);
        match how {
            How::Page(page) => self.store_page(*page, place),
            How::Later { due, counted, reason, .. } => self.retry(visit, due, counted, reason),
            How::Redirected { status, to } => {
                let stats = &mut self.crawl_memory(crawl).stats;
                stats.redirected += 1;
                *stats.statuses.entry(status).or_default() += 1;
                self.settle(visit, UrlState::Redirected { status, to, at });
            }
            How::Failed { reason, detail } => {
                let stats = &mut self.crawl_memory(crawl).stats;
                stats.failed += 1;
                *stats.failures.entry(reason).or_default() += 1;
                let attempts = visit.attempt;
                self.settle(visit, UrlState::Failed { reason, detail, attempts, at });
            }
            How::Skipped { reason, rule } => {
                self.count_skip(crawl, reason);
                self.settle(visit, UrlState::Skipped { reason, rule });
            }
        }
        for discovery in discoveries {
            if self.take_new(crawl, discovery.key) {
                self.admit(discovery, &trail, &scope);
            }
        }
    }

    fn store_page(&mut self, page: PageToStore, place: Option<BlobRef>) {
        let seq = self.next_seq();
        let PageToStore { record, packed } = page;
        let body = place.filter(|_| packed.has_body);
        let parsed = place.filter(|_| packed.has_extract);
        let record = PageRecord { seq, body, parsed, ..record };
        let stats = &mut self.crawl_memory(record.crawl).stats;
        stats.pages += 1;
        stats.ok += u64::from(record.is_ok());
        stats.bytes += record.bytes;
        stats.wire_bytes += record.wire_bytes;
        *stats.statuses.entry(record.status).or_default() += 1;
        *stats.depths.entry(record.depth).or_default() += 1;
        let keyspaces = &self.store.keyspaces;
        self.batch.insert(
            &keyspaces.urls,
            rows::url_key(record.crawl, record.key),
            encode(&UrlRow::Page { seq }),
        );
        self.batch.insert(&keyspaces.pages, rows::page_key(record.crawl, seq), encode(&record));
    }

    fn retry(&mut self, mut visit: Visit, due: Timestamp, counted: bool, reason: Reason) {
        visit.place = QueuePlace { lane: Lane::Later, order: due.0, seq: self.next_seq() };
        visit.attempt = visit.attempt.saturating_add(u8::from(counted));
        self.enqueue(visit, Some(due), Some(reason));
    }

    fn settle(&mut self, visit: Visit, state: UrlState) {
        let record = UrlRecord {
            url: visit.url.to_string(),
            depth: visit.depth,
            via: visit.via,
            found_at: visit.found_at,
            referrer: visit.referrer,
            redirects: visit.redirects,
            state,
        };
        self.put_url(visit.crawl, visit.key, &UrlRow::Settled(Box::new(record)));
    }

    /// Marks a new key as known. False if it is not new, or not any more.
    fn take_new(&mut self, crawl: CrawlNo, key: UrlKey) -> bool {
        if !self.new_keys.remove(&(crawl, key)) {
            return false;
        }
        self.memory.recent.add(crawl, key);
        self.touched_crawls.insert(crawl);
        self.crawl_memory(crawl).stats.discovered += 1;
        true
    }

    /// Judges a new link: to the queue, or kept with the reason why not.
    fn admit(&mut self, discovery: Discovery, trail: &Trail, scope: &Scope) {
        let Discovery { url, key, hot, via } = discovery;
        let depth = trail.depth_of(via);
        let verdict = match scope.judge(&url, depth, trail.hops_outside) {
            Verdict::Admit => self.budget_verdict(trail.crawl, &url),
            rejected => rejected,
        };
        let lane = if hot { Lane::Hot } else { Lane::Plain };
        let visit = Visit {
            crawl: trail.crawl,
            place: QueuePlace { lane, order: u64::from(depth), seq: self.next_seq() },
            hops_outside: trail.hops_outside + u8::from(scope.is_outside(&url)),
            url,
            key,
            depth,
            via,
            found_at: trail.at,
            referrer: trail.referrer_of(via),
            redirects: trail.redirects_of(via),
            attempt: 1,
        };
        match verdict {
            Verdict::Admit => self.take_in(visit),
            Verdict::Reject { reason, rule } => {
                self.count_skip(visit.crawl, reason);
                self.settle(visit, UrlState::Skipped { reason, rule });
            }
        }
    }

    /// A host or a site that has been given its share gets no more: what makes endless sites end.
    fn budget_verdict(&mut self, crawl: CrawlNo, url: &PageUrl) -> Verdict {
        let memory = self.crawl_memory(crawl);
        let host_max = memory.limits.urls_per_host_max;
        let site_max = memory.limits.urls_per_site_max;
        let host = url.host();
        let by_host = memory.hosts.get(&host).map_or(0, |row| row.admitted);
        if by_host >= host_max {
            let rule = format!("{host_max} URLs per host");
            return Verdict::Reject { reason: Reason::HostBudget, rule };
        }
        let by_site = memory.admitted_by_site.get(&host.site()).copied().unwrap_or(0);
        if by_site >= site_max {
            let rule = format!("{site_max} URLs per site");
            return Verdict::Reject { reason: Reason::SiteBudget, rule };
        }
        Verdict::Admit
    }

    /// A new URL joins the queue of its host.
    fn take_in(&mut self, visit: Visit) {
        let host = visit.url.host();
        let memory = self.crawl_memory(visit.crawl);
        memory.stats.queued += 1;
        *memory.admitted_by_site.entry(host.site()).or_default() += 1;
        self.update_host(visit.crawl, &host, |row| {
            row.queued += 1;
            row.admitted += 1;
        });
        self.enqueue(visit, None, None);
    }

    fn enqueue(&mut self, visit: Visit, due: Option<Timestamp>, last_failure: Option<Reason>) {
        let row = QueueRow::of_visit(&visit, last_failure);
        let key = rows::queue_key(visit.crawl, &visit.url.host(), visit.place);
        self.batch.insert(&self.store.keyspaces.queue, key, encode(&row));
        self.put_url(visit.crawl, visit.key, &UrlRow::Queued { place: visit.place });
        self.committed.queued.push(NewlyQueued { visit, due });
    }

    fn put_url(&mut self, crawl: CrawlNo, key: UrlKey, row: &UrlRow) {
        self.batch.insert(&self.store.keyspaces.urls, rows::url_key(crawl, key), encode(row));
    }

    fn count_skip(&mut self, crawl: CrawlNo, reason: Reason) {
        let stats = &mut self.crawl_memory(crawl).stats;
        stats.skipped += 1;
        *stats.skips.entry(reason).or_default() += 1;
    }

    fn update_host(&mut self, crawl: CrawlNo, host: &Host, change: impl FnOnce(&mut HostRow)) {
        let Some(memory) = self.memory.by_crawl.get_mut(&crawl) else { return };
        let row = memory.hosts.entry(host.clone()).or_insert_with(|| HostRow::new(host.clone()));
        change(row);
        self.touched_hosts.insert((crawl, host.clone()));
    }

    fn crawl_memory(&mut self, crawl: CrawlNo) -> &mut CrawlMemory {
        self.memory.by_crawl.get_mut(&crawl).expect("loaded before the step began")
    }

    fn next_seq(&mut self) -> u64 {
        self.memory.seq += 1;
        self.memory.seq
    }
}

/// What a visit hands on to the links found on it.
struct Trail {
    crawl: CrawlNo,
    at: Timestamp,
    depth: u16,
    hops_outside: u8,
    url: String,
    referrer: Option<String>,
    redirects: Vec<String>,
}

impl Trail {
    fn of(visit: &Visit, at: Timestamp) -> Self {
        Self {
            crawl: visit.crawl,
            at,
            depth: visit.depth,
            hops_outside: visit.hops_outside,
            url: visit.url.to_string(),
            referrer: visit.referrer.clone(),
            redirects: visit.redirects.clone(),
        }
    }

    /// A redirect leads to the same page at another address: it is no step away from the seed.
    fn depth_of(&self, via: Via) -> u16 {
        if via == Via::Redirect { self.depth } else { self.depth.saturating_add(1) }
    }

    fn referrer_of(&self, via: Via) -> Option<String> {
        if via == Via::Redirect { self.referrer.clone() } else { Some(self.url.clone()) }
    }

    fn redirects_of(&self, via: Via) -> Vec<String> {
        if via != Via::Redirect {
            return Vec::new();
        }
        self.redirects.iter().chain([&self.url]).cloned().collect()
    }
}
