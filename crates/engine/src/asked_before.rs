//! [`AskedBefore`]: which hosts were asked by whoever owned the directory last. Whoever asks them next owes
//! them the same distance. What this engine asks itself, its frontier remembers.

use std::sync::{Mutex, PoisonError};

use telusur_ledger::{Store, StoreError};
use telusur_model::{CrawlNo, CrawlState, HostRow, Timestamp};

/// How long after its last request a host is owed something: the longest delay that is ever kept.
const LATELY_MS: u64 = 60 * 60 * 1000;

/// A host that a crawl asked.
#[derive(Clone)]
pub(crate) struct AskedHost {
    crawl: CrawlNo,
    pub(crate) row: HostRow,
    /// The delay of that crawl.
    pub(crate) delay_ms: u64,
}

/// The hosts that were asked before this engine began, read at the first look.
#[derive(Default)]
pub(crate) struct AskedBefore {
    /// Held to read them in, or to copy them.
    hosts: Mutex<Option<Vec<AskedHost>>>,
}

impl AskedBefore {
    /// Those that other crawls than this one asked lately.
    pub(crate) fn lately(
        &self,
        store: &dyn Store,
        but: CrawlNo,
        wall: Timestamp,
    ) -> Result<Vec<AskedHost>, StoreError> {
        let since = Timestamp(wall.0.saturating_sub(LATELY_MS));
        let mut known = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hosts = match known.take() {
            Some(hosts) => hosts,
            None => read(store, since)?,
        };
        hosts.retain(|host| host.row.last_request_at.is_some_and(|at| at >= since));
        let others = hosts.iter().filter(|host| host.crawl != but).cloned().collect();
        *known = Some(hosts);
        Ok(others)
    }
}

fn read(store: &dyn Store, since: Timestamp) -> Result<Vec<AskedHost>, StoreError> {
    let mut hosts = Vec::new();
    for record in store.crawls()? {
        let is_recent = record.state == CrawlState::Running || record.state_since >= since;
        if !is_recent {
            continue;
        }
        let (crawl, delay_ms) = (record.crawl.no, record.crawl.politeness.delay_ms);
        match store.hosts_asked_since(crawl, since) {
            Ok(rows) => {
                hosts.extend(rows.into_iter().map(|row| AskedHost { crawl, row, delay_ms }));
            }
            // That crawl is set aside when it is started. No other has to wait for it.
            Err(error) if error.is_of_rows() => {
                tracing::error!(%crawl, %error, "the hosts of a crawl cannot be read");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(hosts)
}
