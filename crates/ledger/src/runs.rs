//! What became of the ids of linear crawls: runs of one state, kept in the same step as the pages.

use std::collections::BTreeMap;

use crate::{Dequeued, Ending, IdEnding, KeptRun, KeptState, StoreError, UrlState, VisitOutcome};
use telusur_model::{
    BlobRef, CrawlNo, CrawlStats, Host, IdState, QueuePlace, Run, UrlKey, overlay,
};

use crate::admit::LinkContext;
use crate::commit::{StepWriter, note_request};
use crate::layout::{self, UrlRow, decode, encode};
use crate::storage::{Rows, Storage, Table};

/// The runs of one walk, by their first position: the last one, and the state. Always equal to what
/// the last commit made durable, so that a step need not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WalkRuns {
    by_first: BTreeMap<u64, (u64, KeptState)>,
}

/// The runs of a walk as they lie in the database, in order.
pub(crate) fn read(
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
    fn load(rows: &impl Rows, crawl: CrawlNo, walk: u32) -> Result<Self, StoreError> {
        let runs = read(rows, crawl, walk)?.into_iter();
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

impl<S: Storage> StepWriter<'_, S> {
    /// Reads in what is known of a walk, if it is not in memory.
    pub(crate) fn load_runs(&mut self, crawl: CrawlNo, walk: u32) -> Result<(), StoreError> {
        let rows = self.store.rows();
        if let Some(memory) = self.memory.crawl(crawl, rows)?
            && !memory.runs.contains_key(&walk)
        {
            memory.runs.insert(walk, WalkRuns::load(rows, crawl, walk)?);
        }
        Ok(())
    }

    /// Whether an ending says anything about its id: content is stored once, and for good.
    pub(crate) fn is_wanted(&self, crawl: CrawlNo, id: IdEnding) -> bool {
        let runs = self.memory.by_crawl.get(&crawl).and_then(|memory| memory.runs.get(&id.walk));
        let known = runs.and_then(|runs| runs.at(id.position));
        known.is_none_or(|known| known.state != IdState::Content)
    }

    /// Looks whether a link led to the page of an id before its walk did.
    pub(crate) fn note_known_key(&mut self, ending: &Ending) -> Result<(), StoreError> {
        let VisitOutcome::Page(page) = &ending.how else { return Ok(()) };
        let (crawl, key) = (ending.visit.crawl, page.record.key);
        let row = self.store.rows().get(Table::Urls, layout::url_key(crawl, key))?;
        if let Some(row) = row {
            self.known_ids.insert((crawl, key), decode(&row, "urls")?);
        }
        Ok(())
    }

    /// Lays a run over what is known, and counts what changed.
    pub(crate) fn write_run(&mut self, crawl: CrawlNo, walk: u32, new: KeptRun) {
        let Some(memory) = self.memory.by_crawl.get_mut(&crawl) else { return };
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
        self.touched_crawls.insert(crawl);
    }

    /// Counts ids that were given up without a visit.
    pub(crate) fn count_holes(&mut self, crawl: CrawlNo, run: KeptRun) {
        let why = run.state.why.filter(|_| run.state.state == IdState::Hole);
        if let (Some(why), Some(memory)) = (why, self.memory.by_crawl.get_mut(&crawl)) {
            *memory.stats.failures.entry(why).or_default() += run.last - run.first + 1;
        }
    }

    /// Ends a visit to an id. It has no row in a queue; only its page makes its URL a known one.
    pub(crate) fn end_id(&mut self, ending: Ending, id: IdEnding, place: Option<BlobRef>) {
        let Ending { visit, how, at, requested_at, discoveries, scope, other_schemes, .. } = ending;
        let (crawl, host) = (visit.crawl, visit.url.host());
        let context = LinkContext::of(&visit, at);
        let state = id.kept;
        let run = KeptRun { first: id.position, last: id.position, state };
        self.write_run(crawl, id.walk, run);
        let stats = &mut self.crawl_memory(crawl).stats;
        stats.visits += u64::from(requested_at.is_some());
        stats.other_schemes += u64::from(other_schemes);
        if let Some(why) = state.why.filter(|_| state.state == IdState::Hole) {
            *stats.failures.entry(why).or_default() += 1;
        }
        let (mut stored_page, mut is_error) = (false, state.state == IdState::Hole);
        match how {
            VisitOutcome::Page(page) => {
                is_error |= page.record.is_error();
                stored_page = self.supersede(crawl, &visit.first_url().host(), page.record.key);
                if stored_page {
                    self.store_page(*page, place);
                }
            }
            VisitOutcome::NoPage { status: Some(status) } => {
                *stats.statuses.entry(status).or_default() += 1;
            }
            _ => {}
        }
        self.update_host(crawl, &host, |row| {
            row.pages += u64::from(stored_page);
            row.errors += u64::from(is_error);
            note_request(row, requested_at);
        });
        let id_state = Some(state.state);
        self.committed.dequeued.push(Dequeued {
            crawl,
            host,
            place: visit.place,
            stored_page,
            id_state,
        });
        self.follow(discoveries, &context, &scope);
    }

    /// Makes the URL of an id a known one, whose page is about to be stored. False if a link led
    /// there first, and its page is stored already.
    fn supersede(&mut self, crawl: CrawlNo, host: &Host, key: UrlKey) -> bool {
        self.memory.recent.add(crawl, key);
        let known = self.known_ids.remove(&(crawl, key));
        let stats = &mut self.crawl_memory(crawl).stats;
        let Some(known) = known else {
            stats.discovered += 1;
            return true;
        };
        match known {
            UrlRow::Page { .. } => return false,
            UrlRow::Queued { place } => self.take_out(crawl, host, place),
            UrlRow::Settled(record) => match record.state {
                UrlState::Redirected { .. } => stats.redirected -= 1,
                UrlState::Failed { .. } => stats.failed -= 1,
                UrlState::Skipped { reason, .. } => {
                    stats.skipped -= 1;
                    stats.skips.entry(reason).and_modify(|count| *count -= 1);
                }
                UrlState::Sitemap { .. } | UrlState::Queued { .. } | UrlState::Page { .. } => {}
            },
        }
        true
    }

    /// Takes a URL out of the queue: the walk came there first.
    fn take_out(&mut self, crawl: CrawlNo, host: &Host, place: QueuePlace) {
        self.batch.remove(Table::Queue, layout::queue_key(crawl, host, place));
        self.crawl_memory(crawl).stats.queued -= 1;
        self.update_host(crawl, host, |row| row.queued -= 1);
        let gone =
            Dequeued { crawl, host: host.clone(), place, stored_page: false, id_state: None };
        self.committed.dequeued.push(gone);
    }
}

/// Adds a run to the counters, or takes it away.
fn count(stats: &mut CrawlStats, run: KeptRun, change: fn(u64, u64) -> u64) {
    let counter = stats.ids.of(run.state.state);
    *counter = change(*counter, (run.last - run.first).wrapping_add(1));
}
