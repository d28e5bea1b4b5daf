//! [`AskedBefore`]: which hosts were asked by whoever owned the directory last. Whoever asks them next owes
//! them the same distance. What this engine asks itself, its frontier remembers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use telusur_ledger::{Asking, QueueRange, Store, StoreError};
use telusur_model::{Crawl, CrawlNo, CrawlState, HostRow, Timestamp};

/// How long after its last request a host is owed something: the longest delay that is ever kept.
pub(crate) const LATELY_MS: u64 = 60 * 60 * 1000;

/// URLs that wait for another attempt, looked at for each host: they are asked one after the other, and the
/// first that is refused keeps the others from being asked.
const WAITING_MAX: usize = 16;

/// A host that a crawl asked.
#[derive(Clone)]
pub(crate) struct AskedHost {
    crawl: CrawlNo,
    /// What is known of the host. Its last request may be one that nobody wrote down.
    pub(crate) row: HostRow,
    /// The delay of that crawl.
    pub(crate) delay_ms: u64,
    /// Until when the host asked that crawl to wait (`Retry-After`).
    pub(crate) wait_until: Option<Timestamp>,
}

/// What a crawl that begins has to know of requests that others sent.
#[derive(Clone, Default)]
pub(crate) struct AskedLately {
    /// Hosts that other crawls asked, or may have asked.
    pub(crate) hosts: Vec<AskedHost>,
    /// Up to when the crawl itself may have sent requests that are not written down.
    pub(crate) own_until: Option<Timestamp>,
    /// Up to when anybody may have.
    pub(crate) anybody_until: Option<Timestamp>,
}

/// The hosts that were asked before this engine began, read at the first look.
#[derive(Default)]
pub(crate) struct AskedBefore {
    /// Held to read them in, or to copy them.
    known: Mutex<Option<Known>>,
}

struct Known {
    hosts: Vec<AskedHost>,
    /// Up to when crawls may have sent requests that are not written down.
    until: HashMap<CrawlNo, Timestamp>,
}

impl AskedBefore {
    /// What others than this crawl asked lately, and what nobody wrote down. The first look comes before the
    /// first request of this engine.
    pub(crate) fn lately(
        &self,
        store: &dyn Store,
        crawl: CrawlNo,
        wall: Timestamp,
    ) -> Result<AskedLately, StoreError> {
        let since = Timestamp(wall.0.saturating_sub(LATELY_MS));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now_known = match known.take() {
            Some(known) => known,
            None => read(store, wall, since)?,
        };
        now_known.hosts.retain(|host| host.row.last_request_at.is_some_and(|at| at >= since));
        let Known { hosts, until } = known.insert(now_known);
        Ok(AskedLately {
            hosts: hosts.iter().filter(|host| host.crawl != crawl).cloned().collect(),
            own_until: until.get(&crawl).copied(),
            anybody_until: until.values().copied().max(),
        })
    }
}

fn read(store: &dyn Store, wall: Timestamp, since: Timestamp) -> Result<Known, StoreError> {
    let mut until = unaccounted(store, wall, since)?;
    let mut hosts = Vec::new();
    for record in store.crawls()? {
        let is_running = record.state == CrawlState::Running;
        let crawl = record.crawl.no;
        // Earlier versions wrote down no more than that the last owner was killed.
        if is_running && !store.was_closed() {
            until.entry(crawl).or_insert(wall);
        }
        let asked_until = until.get(&crawl).copied();
        if !is_running && asked_until.is_none() && record.state_since < since {
            continue;
        }
        match asked_hosts(store, &record.crawl, asked_until, (since, wall)) {
            Ok(asked) => hosts.extend(asked),
            // That crawl is set aside when it is started. No other has to wait for it.
            Err(error) if error.is_of_rows() => {
                tracing::error!(%crawl, %error, "the hosts of a crawl cannot be read");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Known { hosts, until })
}

/// The hosts that a crawl asked since a time. `asked_until`: up to when it may have asked any of its hosts.
fn asked_hosts(
    store: &dyn Store,
    crawl: &Crawl,
    asked_until: Option<Timestamp>,
    (since, wall): (Timestamp, Timestamp),
) -> Result<Vec<AskedHost>, StoreError> {
    let delay_ms = crawl.politeness.delay_ms;
    let rows = match asked_until {
        Some(_) => store.hosts(crawl.no)?,
        None => store.hosts_asked_since(crawl.no, since)?,
    };
    let mut asked = Vec::new();
    for mut row in rows {
        let is_recent = row.last_request_at.is_some_and(|at| at >= since);
        let wait_until = is_recent.then(|| retry_after(store, crawl.no, &row, wall)).flatten();
        // A URL is queued until its request is written down; ids are in no queue.
        if is_recent || row.queued > 0 || crawl.seeds.linear().is_some() {
            row.last_request_at = row.last_request_at.max(asked_until);
            asked.push(AskedHost { crawl: crawl.no, row, delay_ms, wait_until });
        }
    }
    Ok(asked)
}

/// Until when a host asked a crawl to wait. The queue alone knows.
fn retry_after(
    store: &dyn Store,
    crawl: CrawlNo,
    row: &HostRow,
    wall: Timestamp,
) -> Option<Timestamp> {
    let host = &row.host;
    let range = QueueRange { crawl, host, later: true, after: None, max: WAITING_MAX };
    // A queue that cannot be read ends its own crawl when that is started, and no other.
    let waiting = store.queued(range).unwrap_or_else(|error| {
        tracing::error!(%crawl, %error, "the queue of a crawl cannot be read");
        Vec::new()
    });
    let asked = waiting.into_iter().filter(|queued| queued.asked_to_wait);
    asked.filter_map(|queued| queued.due).filter(|due| *due > wall).max()
}

/// Crawls whose last requests nobody wrote down: a killed process may have sent them until this moment. That
/// it was no later is written down, so that it is not believed for ever.
fn unaccounted(
    store: &dyn Store,
    wall: Timestamp,
    since: Timestamp,
) -> Result<HashMap<CrawlNo, Timestamp>, StoreError> {
    let mut until = HashMap::new();
    for (crawl, asking) in store.asking()? {
        match asking {
            Asking::Now => {
                store.set_asking(crawl, Some(Asking::Until(wall)))?;
                until.insert(crawl, wall);
            }
            Asking::Until(at) if at >= since => _ = until.insert(crawl, at),
            // Nobody is owed anything any more.
            Asking::Until(_) => store.set_asking(crawl, None)?,
        }
    }
    Ok(until)
}
