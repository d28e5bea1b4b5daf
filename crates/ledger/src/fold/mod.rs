//! [`Fold`]: turns events into rows. The heart of "nothing is lost".
//!
//! Events are applied one after the other, and each sees what those before it did: the rows that they
//! wrote are read back from the batch. So the same events in the same order give the same rows, however
//! they are cut into batches. Nothing here reads a clock or a random source.

mod crawls;

mod admit;
mod seen;

mod budget;
mod held;

mod pages;
mod visits;

mod give_up;
mod ids;

use std::collections::{HashMap, HashSet};

use serde::de::DeserializeOwned;
use telusur_model::{CrawlNo, Host, HostRow, PageRecord, PageUrl, Reason, Timestamp, UrlKey};

use crate::layout::{self, UrlRow, decode, encode};
use crate::memory::{CrawlMemory, Memory};
use crate::recent::RecentKeys;
use crate::storage::{Batch, BodiesEnd, Rows, Table};
use crate::{Dequeued, Effects, Event, HostNote, StoreError, TrapMark};

pub(crate) use self::admit::is_beyond_count;
#[cfg(test)]
pub(crate) use self::crawls::encode_row;
pub(crate) use self::crawls::{CrawlRow, decode_row, names_of};
pub(crate) use self::held::{HeldCount, HeldHosts, HeldRow, any_fits, load_counts};
pub(crate) use self::ids::{WalkRuns, is_wanted, read_runs};
use self::seen::SeenKeys;

/// The events of a step, as its records have them.
pub(crate) struct RecordedStep {
    pub(crate) step: u64,
    /// The last sequence number that was given before it.
    pub(crate) seq: u64,
    pub(crate) events: Vec<Event>,
}

/// A row with its key.
type Row = (Vec<u8>, Vec<u8>);

/// Builds one batch. Memory runs ahead of the rows while it is built; if the commit fails, memory cannot
/// be trusted any more.
pub(crate) struct Fold<'a, R> {
    rows: &'a R,
    memory: &'a mut Memory,
    recent: &'a RecentKeys,
    batch: Batch,
    effects: Effects,
    seen: SeenKeys,
    touched_hosts: HashSet<(CrawlNo, Host)>,
    touched_crawls: HashSet<CrawlNo>,
    /// Hosts whose count of held links changed.
    touched_held: HashSet<(CrawlNo, Host)>,
    /// Where the bodies of crawls end now.
    ends: HashMap<CrawlNo, BodiesEnd>,
    /// Rows may be missing that the events go by: what a visit needs is made up for.
    makes_up: bool,
}

impl<'a, R: Rows> Fold<'a, R> {
    pub(crate) fn new(rows: &'a R, memory: &'a mut Memory, recent: &'a RecentKeys) -> Self {
        Self {
            rows,
            memory,
            recent,
            batch: Batch::default(),
            effects: Effects::default(),
            seen: SeenKeys::default(),
            touched_hosts: HashSet::new(),
            touched_crawls: HashSet::new(),
            touched_held: HashSet::new(),
            ends: HashMap::new(),
            makes_up: false,
        }
    }

    /// The same, with the ends of the bodies that the events brought.
    pub(crate) fn with_ends(
        mut self,
        ends: impl IntoIterator<Item = (CrawlNo, BodiesEnd)>,
    ) -> Self {
        self.ends.extend(ends);
        self
    }

    /// Folds events, in order, whose links were looked up. Gives the batch that makes them durable and what
    /// they did.
    ///
    /// Memory runs ahead of the rows from here on: if anything fails, it is not to be trusted.
    pub(crate) fn fold(mut self, events: Vec<Event>) -> Result<(Batch, Effects), StoreError> {
        self.memory.broken = true;
        for event in events {
            self.apply(event)?;
        }
        Ok(self.finish())
    }

    /// Folds steps again out of their records. Some may be lost: the queue row of a visit is found by its
    /// URL then, or made.
    pub(crate) fn fold_again(mut self, steps: Vec<RecordedStep>) -> Result<Batch, StoreError> {
        self.memory.broken = true;
        self.makes_up = true;
        for step in steps {
            self.memory.step = step.step;
            self.memory.seq = self.memory.seq.max(step.seq);
            for event in step.events {
                self.apply(event)?;
            }
        }
        Ok(self.finish().0)
    }

    fn apply(&mut self, event: Event) -> Result<(), StoreError> {
        if let Some(crawl) = event.crawl()
            && !event.is_of_crawl_row()
            // It may have been removed in the meantime.
            && !self.load(crawl)?
        {
            return Ok(());
        }
        match event {
            Event::CrawlAccepted(accepted) => self.accept_crawl(*accepted)?,
            Event::CrawlChanged { crawl, change } => self.change_crawl(crawl, change)?,
            Event::CrawlRan { crawl, active_ms } => {
                self.stats(crawl).active_ms += active_ms;
            }
            Event::BudgetsRaised { crawl } => self.let_in_all(crawl)?,
            Event::LinksFound(found) => self.follow(*found),
            Event::VisitEnded(mut ended) => {
                if self.makes_up && !self.find_place(&mut ended.visit)? {
                    return Ok(());
                }
                self.end_visit(*ended)?;
            }
            Event::IdEnded(ended) => self.end_id(*ended)?,
            Event::IdsMarked { crawl, walk, run, site: _ } => {
                self.load_runs(crawl, walk)?;
                self.write_run(crawl, walk, run);
                self.count_holes(crawl, run);
            }
            Event::OriginLearned(row) => {
                if let Ok(url) = PageUrl::parse(&row.origin) {
                    let key = layout::origin_key(&url.host(), &row.origin);
                    self.batch.insert(Table::Origins, key, encode(&*row));
                }
            }
            Event::HostNoted { crawl, host, note } => {
                self.update_host(crawl, &host, |row| match note {
                    HostNote::Requested(at) => note_request(row, Some(at)),
                    HostNote::LastRequest(at) => {
                        row.last_request_at = row.last_request_at.max(Some(at));
                    }
                    HostNote::Delay(delay_ms) => row.delay_ms = delay_ms,
                });
            }
            Event::HostGivenUp(asked) => self.give_up(&asked)?,
            Event::DocumentImported(page) => self.import(*page)?,
            Event::PageReadAgain(mut page) => {
                if self.makes_up && !self.find_page(&mut page)? {
                    return Ok(());
                }
                self.read_again(*page)?;
            }
            Event::AskedAgain(mut visit) => {
                if self.makes_up && self.url_row(visit.crawl, visit.key)?.is_none() {
                    self.find_place(&mut visit)?;
                } else {
                    self.ask_again(*visit)?;
                }
            }
            Event::PageLost(lost) => self.lose_page(*lost)?,
            Event::TrapNoted { crawl, mark, site: _ } => self.put_trap(crawl, &mark),
        }
        Ok(())
    }

    /// Adds the rows that are kept in memory while events are folded.
    fn finish(mut self) -> (Batch, Effects) {
        for (crawl, host) in &self.touched_hosts {
            let row = &self.memory.by_crawl[crawl].hosts[host];
            self.batch.insert(Table::Hosts, layout::host_key(*crawl, host), encode(row));
        }
        for (crawl, host) in &self.touched_held {
            let count = self.memory.by_crawl[crawl].held.count(host);
            let key = layout::held_count_key(*crawl, host);
            self.batch.insert(Table::Held, key, encode(&count));
        }
        for crawl in &self.touched_crawls {
            let memory = &self.memory.by_crawl[crawl];
            self.batch.insert(Table::Stats, layout::crawl_key(*crawl), encode(&memory.stats));
            self.effects.stats.push((*crawl, memory.stats.clone()));
        }
        for (crawl, end) in self.ends {
            if let Some(memory) = self.memory.by_crawl.get_mut(&crawl) {
                memory.bodies_end = end;
            }
            self.batch.insert(Table::Meta, layout::meta_bodies_end(crawl), encode(&end));
        }
        self.batch.insert(Table::Meta, layout::META_SEQ, self.memory.seq.to_be_bytes());
        self.batch.insert(Table::Meta, layout::META_STEP, self.memory.step.to_be_bytes());
        (self.batch, self.effects)
    }

    /// Reads a crawl into memory. False if there is no such crawl.
    fn load(&mut self, crawl: CrawlNo) -> Result<bool, StoreError> {
        let was_loaded = self.memory.by_crawl.contains_key(&crawl);
        let Some(memory) = self.memory.crawl(crawl, self.rows)? else { return Ok(false) };
        // An event before this one may have changed settings that are in no stored row yet.
        if !was_loaded
            && let Some(Some(row)) = self.batch.get(Table::Crawls, &layout::crawl_key(crawl))
        {
            memory.set_settings(&decode_row(row)?.crawl);
        }
        Ok(true)
    }

    fn put_trap(&mut self, crawl: CrawlNo, mark: &TrapMark) {
        let key = layout::trap_key(crawl, mark.shape);
        match mark {
            TrapMark { run: 0, rule: None, .. } => self.batch.remove(Table::Traps, key),
            TrapMark { run, rule, .. } => {
                self.batch.insert(Table::Traps, key, encode(&(run, rule)));
            }
        }
    }

    /// The row at a key, as the events before left it.
    fn read<T: DeserializeOwned>(&self, table: Table, key: &[u8]) -> Result<Option<T>, StoreError> {
        if let Some(written) = self.batch.get(table, key) {
            return written.map(|row| decode(row, table.name())).transpose();
        }
        let row = self.rows.get(table, key)?;
        row.map(|row| decode(&row, table.name())).transpose()
    }

    /// Whether there is a row at a key, as the events before left it.
    fn has(&self, table: Table, key: &[u8]) -> Result<bool, StoreError> {
        match self.batch.get(table, key) {
            Some(written) => Ok(written.is_some()),
            None => self.rows.contains(table, key),
        }
    }

    /// Up to `max` rows from a key on and before `end`, as the events before left them.
    fn rows_from(
        &self,
        table: Table,
        first: Vec<u8>,
        end: Option<Vec<u8>>,
        max: usize,
    ) -> Result<Vec<Row>, StoreError> {
        let mut written = self.batch.range(table, &first, end.as_deref()).peekable();
        let mut kept = self.rows.range(table, first, end).peekable();
        let mut rows = Vec::new();
        while rows.len() < max {
            // A row that cannot be read comes first, so that it is not overlooked.
            let kept_key = kept.peek().map(|row| row.as_ref().map_or(&[][..], |(key, _)| &**key));
            let next_written = written.peek().map(|(key, _)| *key);
            let is_written = match (next_written, kept_key) {
                (None, None) => break,
                (Some(next_written), Some(kept_key)) => next_written <= kept_key,
                (Some(_), None) => true,
                (None, Some(_)) => false,
            };
            let is_both = is_written && next_written == kept_key;
            if !is_written || is_both {
                let (key, value) = kept.next().expect("peeked")?;
                if !is_both {
                    rows.push((key.to_vec(), value.to_vec()));
                }
            }
            if is_written {
                let (key, value) = written.next().expect("peeked");
                rows.extend(value.map(|value| (key.to_vec(), value.to_vec())));
            }
        }
        Ok(rows)
    }

    fn url_row(&self, crawl: CrawlNo, key: UrlKey) -> Result<Option<UrlRow>, StoreError> {
        self.read(Table::Urls, &layout::url_key(crawl, key))
    }

    fn page_record(&self, crawl: CrawlNo, seq: u64) -> Result<Option<PageRecord>, StoreError> {
        self.read(Table::Pages, &layout::page_key(crawl, seq))
    }

    fn update_host(&mut self, crawl: CrawlNo, host: &Host, change: impl FnOnce(&mut HostRow)) {
        let hosts = &mut self.of(crawl).hosts;
        match hosts.get_mut(host) {
            Some(row) => change(row),
            None => change(
                hosts.entry(host.clone()).or_insert_with_key(|host| HostRow::new(host.clone())),
            ),
        }
        self.touched_hosts.insert((crawl, host.clone()));
    }

    /// What is in memory of the crawl of the event.
    fn of(&mut self, crawl: CrawlNo) -> &mut CrawlMemory {
        self.memory.by_crawl.get_mut(&crawl).expect("loaded before its event is applied")
    }

    /// The counters of the crawl of the event, about to change.
    fn stats(&mut self, crawl: CrawlNo) -> &mut telusur_model::CrawlStats {
        self.touched_crawls.insert(crawl);
        &mut self.of(crawl).stats
    }

    fn next_seq(&mut self) -> u64 {
        self.memory.seq += 1;
        self.memory.seq
    }

    fn count_skip(&mut self, crawl: CrawlNo, reason: Reason) {
        let stats = self.stats(crawl);
        stats.skipped += 1;
        *stats.skips.entry(reason).or_default() += 1;
    }

    /// A skipped URL is not skipped any more.
    fn uncount_skip(&mut self, crawl: CrawlNo, reason: Reason) {
        let stats = self.stats(crawl);
        stats.skipped = stats.skipped.saturating_sub(1);
        if let Some(count) = stats.skips.get_mut(&reason) {
            *count = count.saturating_sub(1);
        }
        stats.skips.retain(|_, count| *count > 0);
    }

    fn dequeued(&mut self, gone: Dequeued) {
        self.effects.dequeued.push(gone);
    }
}

/// Counts a request to a host.
fn note_request(row: &mut HostRow, at: Option<Timestamp>) {
    if let Some(at) = at {
        row.requests.note(at, row.last_request_at);
        row.last_request_at = row.last_request_at.max(Some(at));
    }
}
