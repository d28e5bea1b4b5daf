//! Ids of linear crawls: runs of one state, kept in the same step as the pages.

use std::collections::BTreeMap;

use telusur_model::{
    CrawlNo, CrawlStats, Host, IdState, PageRecord, QueuePlace, Run, UrlKey, overlay,
};

use super::{Fold, note_request};
use crate::layout::{self, UrlRow, encode};
use crate::lookup;
use crate::memory::CrawlMemory;
use crate::storage::{Rows, Table};
use crate::{Dequeued, IdEnded, IdEnding, KeptRun, KeptState, StoreError, UrlState};

/// The runs of one walk, by their first position: the last one, and the state. In memory, so that a step
/// need not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WalkRuns {
    by_first: BTreeMap<u64, (u64, KeptState)>,
}

/// The stored runs of a walk, in order.
pub(crate) fn read_runs(
    rows: &impl Rows,
    crawl: CrawlNo,
    walk: u32,
) -> Result<Vec<KeptRun>, StoreError> {
    let rows = rows.prefix(Table::Runs, layout::walk_key(crawl, walk));
    rows.map(|row| {
        let (key, value) = row?;
        layout::run_of(&key, &value)
    })
    .collect()
}

impl WalkRuns {
    pub(crate) fn load(rows: &impl Rows, crawl: CrawlNo, walk: u32) -> Result<Self, StoreError> {
        let runs = read_runs(rows, crawl, walk)?.into_iter();
        Ok(Self { by_first: runs.map(|run| (run.first, (run.last, run.state))).collect() })
    }

    /// What is known of a position.
    fn at(&self, position: u64) -> Option<KeptState> {
        let (_, &(last, state)) = self.by_first.range(..=position).next_back()?;
        (last >= position).then_some(state)
    }

    /// The runs that overlap or adjoin a run, in order.
    fn touching(&self, new: KeptRun) -> Vec<KeptRun> {
        let run = |(&first, &(last, state)): (&u64, &(u64, KeptState))| Run { first, last, state };
        let before = self.by_first.range(..new.first).next_back().map(run);
        let within = self.by_first.range(new.first..=new.last.saturating_add(1)).map(run);
        before.filter(|before| before.touches(&new)).into_iter().chain(within).collect()
    }
}

/// Whether an ending says anything about its id: content is stored once, and for good. The runs of the
/// walk are in memory.
pub(crate) fn is_wanted(memory: &CrawlMemory, id: IdEnding) -> bool {
    let known = memory.runs.get(&id.walk).and_then(|runs| runs.at(id.position));
    known.is_none_or(|known| known.state != IdState::Content)
}

impl<R: Rows> Fold<'_, R> {
    /// Reads the runs of a walk, if they are not in memory.
    pub(super) fn load_runs(&mut self, crawl: CrawlNo, walk: u32) -> Result<(), StoreError> {
        self.memory.load_runs(crawl, walk, self.rows)
    }

    /// Lays a run over what is known, and counts what changed.
    pub(super) fn write_run(&mut self, crawl: CrawlNo, walk: u32, new: KeptRun) {
        self.touched_crawls.insert(crawl);
        let memory = self.memory.by_crawl.get_mut(&crawl).expect("loaded before its event");
        let runs = memory.runs.entry(walk).or_default();
        let touching = runs.touching(new);
        let after = overlay(touching.iter().copied(), new);
        for old in &touching {
            count(&mut memory.stats, *old, u64::wrapping_sub);
            runs.by_first.remove(&old.first);
            if !after.iter().flatten().any(|run| run.first == old.first) {
                self.batch.remove(Table::Runs, layout::run_key(crawl, walk, old.first));
            }
        }
        for run in after.into_iter().flatten() {
            count(&mut memory.stats, run, u64::wrapping_add);
            runs.by_first.insert(run.first, (run.last, run.state));
            let row = encode(&(run.last, run.state));
            self.batch.insert(Table::Runs, layout::run_key(crawl, walk, run.first), row);
        }
    }

    /// Counts ids that were given up without a visit.
    pub(super) fn count_holes(&mut self, crawl: CrawlNo, run: KeptRun) {
        if let Some(why) = run.state.why.filter(|_| run.state.state == IdState::Hole) {
            *self.stats(crawl).failures.entry(why).or_default() += run.last - run.first + 1;
        }
    }

    /// Ends a visit to an id. It has no row in a queue; only its page makes its URL a known one.
    pub(super) fn end_id(&mut self, ended: IdEnded) -> Result<(), StoreError> {
        let IdEnded { visit, id, page, status, requested_at, other_schemes } = ended;
        let (crawl, host) = (visit.crawl, visit.url.host());
        self.load_runs(crawl, id.walk)?;
        if !is_wanted(self.of(crawl), id) {
            self.dequeued(Dequeued {
                crawl,
                host,
                place: visit.place,
                stored_page: false,
                id_state: Some(IdState::Content),
            });
            return Ok(());
        }
        let state = id.kept;
        let is_hole = state.state == IdState::Hole;
        let run = KeptRun { first: id.position, last: id.position, state };
        self.write_run(crawl, id.walk, run);
        let stats = self.stats(crawl);
        stats.visits += u64::from(requested_at.is_some());
        stats.other_schemes += u64::from(other_schemes);
        if let Some(why) = state.why.filter(|_| is_hole) {
            *stats.failures.entry(why).or_default() += 1;
        }
        if let Some(status) = status {
            *stats.statuses.entry(status).or_default() += 1;
        }
        let is_error = is_hole || page.as_ref().is_some_and(|page| page.is_error());
        let mut stored_page = false;
        if let Some(page) = page {
            stored_page = self.supersede(crawl, &visit.first_url().host(), page.key)?;
            if stored_page {
                self.put_alias(&page);
                self.store_page(*page);
            }
        }
        self.update_host(crawl, &host, |row| {
            row.pages += u64::from(stored_page);
            row.errors += u64::from(is_error);
            note_request(row, requested_at);
        });
        let id_state = Some(state.state);
        self.dequeued(Dequeued { crawl, host, place: visit.place, stored_page, id_state });
        Ok(())
    }

    /// A page goes by the URL of its id. One that was redirected is found by the URL where it ended, too.
    pub(super) fn put_alias(&mut self, page: &PageRecord) {
        if let Some((key, value)) = lookup::alias_row(page, &self.of(page.crawl).keyer) {
            self.batch.insert(Table::Aliases, key, value);
        }
    }

    /// Makes the URL of an id a known one, whose page is about to be stored. False if a link led
    /// there first, and its page is stored already.
    fn supersede(&mut self, crawl: CrawlNo, host: &Host, key: UrlKey) -> Result<bool, StoreError> {
        let Some(known) = self.url_row(crawl, key)? else {
            self.take_unknown(crawl, key);
            return Ok(true);
        };
        match known {
            UrlRow::Page { .. } => return Ok(false),
            UrlRow::Queued { place } => self.take_out(crawl, host, place),
            UrlRow::Settled(record) => match record.state {
                UrlState::Redirected { .. } => self.stats(crawl).redirected -= 1,
                UrlState::Failed { reason, .. } => self.uncount_failure(crawl, reason),
                UrlState::Skipped { reason, .. } => self.uncount_skip(crawl, reason),
                UrlState::Sitemap { .. } | UrlState::Queued { .. } | UrlState::Page { .. } => {}
            },
        }
        Ok(true)
    }

    /// Takes a URL out of the queue: the walk came there first.
    fn take_out(&mut self, crawl: CrawlNo, host: &Host, place: QueuePlace) {
        self.batch.remove(Table::Queue, layout::queue_key(crawl, host, place));
        self.stats(crawl).queued -= 1;
        self.update_host(crawl, host, |row| row.queued -= 1);
        let host = host.clone();
        self.dequeued(Dequeued { crawl, host, place, stored_page: false, id_state: None });
    }
}

/// Adds a run to the counters, or takes it away.
fn count(stats: &mut CrawlStats, run: KeptRun, change: fn(u64, u64) -> u64) {
    let counter = stats.ids.of(run.state.state);
    *counter = change(*counter, (run.last - run.first).wrapping_add(1));
}
