//! Checks the queues of a crawl against its seen-set and its hosts.

use telusur_model::HostRow;

use super::by_host::{count_by_host, join};
use super::{Checks, View, readable};
use crate::layout::{self, QueueRow, UrlRow, decode};
use crate::storage::{Rows, Storage, Table};
use crate::{CrawlRecord, StoreError};

impl Checks {
    /// Every queued URL is in the queue once, and the queue holds nothing else. `marked`: URLs whose
    /// state says that they are queued.
    pub(super) fn queue<S: Storage>(
        &mut self,
        view: &View<'_, S>,
        record: &CrawlRecord,
        marked: u64,
    ) -> Result<(), StoreError> {
        let no = record.crawl.no;
        let mut rows_in_queue = 0;
        let mut furthest = 0;
        let (states, counters) = (&mut self.states, &mut self.counters);
        let queue = view.rows.prefix(Table::Queue, layout::crawl_key(no)).filter_map(|row| {
            let look = || {
                let (key, value) = row?;
                rows_in_queue += 1;
                let Some(host) = layout::host_of_queue_key(&key) else {
                    states.look(false, || format!("{no}: a key of the queue is cut"));
                    return Ok(None);
                };
                let Some(queued) = readable::<QueueRow>(states, no, &value, "queue") else {
                    return Ok(Some(host));
                };
                let seen = view.rows.get(Table::Urls, layout::url_key(no, queued.key))?;
                let seen = seen.and_then(|row| decode(&row, "urls").ok());
                let place = layout::place_of(&key);
                furthest = furthest.max(place.map_or(0, |place| place.seq));
                let agrees =
                    matches!(seen, Some(UrlRow::Queued { place: seen }) if Some(seen) == place);
                states.look(agrees, || format!("{no}: {} is queued but not marked so", queued.url));
                states.look(host == queued.url.host(), || {
                    format!("{no}: {} waits in the queue of another host", queued.url)
                });
                Ok(Some(host))
            };
            look().transpose()
        });
        let hosts = view.rows.prefix(Table::Hosts, layout::crawl_key(no));
        let hosts = hosts.map(|row| {
            let row: HostRow = decode(&row?.1, "hosts")?;
            Ok((row.host, row.queued))
        });
        join(count_by_host(queue), hosts, |host, waiting, told| {
            let (waiting, told) = (waiting.unwrap_or(0), told.unwrap_or(0));
            counters.look(waiting == told, || {
                format!("{no}: host {host} counts {told} waiting URLs, {waiting} wait")
            });
            Ok(())
        })?;
        // Each row of the queue has a URL of its own that points at it; so equal numbers leave no URL
        // without its row.
        self.states.look(rows_in_queue == marked, || {
            format!("{no}: {marked} URLs are marked queued, {rows_in_queue} are in the queue")
        });
        self.place(view, no, furthest);
        Ok(())
    }
}
