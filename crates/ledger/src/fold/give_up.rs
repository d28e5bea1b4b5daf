//! Ends the queued URLs of a host without an answer.

use super::Fold;
use crate::layout::{self, QueueRow, decode};
use crate::storage::{Rows, Table};
use crate::{Dequeued, GiveUp, StoreError};

/// URLs that one event gives up. The rest takes another event.
const URLS_MAX: usize = 10_000;

impl<R: Rows> Fold<'_, R> {
    /// Settles the queued URLs of a host as failed.
    pub(super) fn give_up(&mut self, asked: &GiveUp) -> Result<(), StoreError> {
        let GiveUp { crawl, host, reason, detail, at } = asked;
        let crawl = *crawl;
        let first = layout::queue_lane_key(crawl, host, 0);
        let end = layout::queue_lane_key(crawl, host, u8::MAX);
        for (key, value) in self.rows_from(Table::Queue, first, Some(end), URLS_MAX)? {
            let Some(place) = layout::place_of(&key) else { continue };
            let row: QueueRow = decode(&value, "queue")?;
            let visit = row.into_queued(crawl, place).visit;
            self.batch.remove(Table::Queue, key);
            let stats = self.stats(crawl);
            stats.queued -= 1;
            self.update_host(crawl, host, |row| {
                row.queued -= 1;
                row.errors += 1;
            });
            self.fail(visit, *reason, detail.clone(), *at);
            let host = host.clone();
            self.dequeued(Dequeued { crawl, host, place, stored_page: false, id_state: None });
        }
        Ok(())
    }
}
