//! Ends the queued URLs of a host without an answer.

use crate::{Dequeued, GiveUp, StoreError, UrlState};

use crate::commit::StepWriter;
use crate::layout::{self, QueueRow, decode};
use crate::storage::{Rows, Storage, Table};

/// URLs that one step gives up. Whoever asked asks again for the rest.
const URLS_MAX: usize = 10_000;

impl<S: Storage> StepWriter<'_, S> {
    /// Settles the queued URLs of a host as failed.
    pub(crate) fn give_up(&mut self, asked: &GiveUp) -> Result<(), StoreError> {
        let GiveUp { crawl, host, reason, detail, at } = asked;
        let store = self.store;
        if self.memory.crawl(*crawl, store.rows())?.is_none() {
            return Ok(());
        }
        let first = layout::queue_lane_key(*crawl, host, 0);
        let end = layout::queue_lane_key(*crawl, host, u8::MAX);
        for row in store.rows().range(Table::Queue, first, Some(end)).take(URLS_MAX) {
            let (key, value) = row?;
            let Some(place) = layout::place_of(&key) else { continue };
            let row: QueueRow = decode(&value, "queue")?;
            let visit = row.into_queued(*crawl, place).visit;
            self.batch.remove(Table::Queue, &*key);
            let stats = &mut self.crawl_memory(*crawl).stats;
            stats.queued -= 1;
            stats.failed += 1;
            *stats.failures.entry(*reason).or_default() += 1;
            self.update_host(*crawl, host, |row| {
                row.queued -= 1;
                row.errors += 1;
            });
            let attempts = visit.attempt;
            let state =
                UrlState::Failed { reason: *reason, detail: detail.clone(), attempts, at: *at };
            self.settle(visit, state);
            let gone = Dequeued {
                crawl: *crawl,
                host: host.clone(),
                place,
                stored_page: false,
                id_state: None,
            };
            self.committed.dequeued.push(gone);
        }
        self.touched_crawls.insert(*crawl);
        Ok(())
    }
}
