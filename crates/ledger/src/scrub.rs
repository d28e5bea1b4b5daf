//! Reads everything that is stored, piece by piece, so that damage is found before somebody needs what is
//! damaged: every body with its checksum, and every row of every table.
//!
//! How far it came is a row of its own: whoever calls next goes on there, after a kill as well.

use serde::{Deserialize, Serialize};
use telusur_model::{CrawlNo, PageRecord, Timestamp};

use crate::layout::{self, decode, encode};
use crate::storage::{Batch, Bodies, Rows, Storage, Table, WriteRows};
use crate::{Ledger, StoreError, crawls, verify};

/// Findings that are kept; the others are only counted.
const FOUND_MAX: usize = 100;
/// With less space the place is not written down: what is left is for others.
const FREE_BYTES_MIN: u64 = 16 << 20;
/// A row that is not stored costs this much reading, too.
const ROW_BYTES_MIN: u64 = 16;

/// How far everything has been read, and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubState {
    /// When this reading began.
    pub started_at: Timestamp,
    /// When it had read everything.
    pub ended_at: Option<Timestamp>,
    /// Bytes of bodies and rows that were read.
    pub bytes: u64,
    /// Pages whose bodies were read.
    pub pages: u64,
    /// Rows that were read.
    pub rows: u64,
    /// What is damaged: how many things.
    pub damaged: u64,
    /// The first of them, each with its URL, file and byte, or its table.
    pub found: Vec<String>,
    /// What comes next.
    place: ScrubPlace,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ScrubPlace {
    /// The bodies of pages behind this place of a crawl.
    Bodies {
        crawl: u32,
        seq: u64,
    },
    /// The rows of a table (its number in [`Table::ALL`]) from this key on.
    Rows {
        table: usize,
        first: Vec<u8>,
    },
    End,
}

impl ScrubState {
    fn begun(at: Timestamp) -> Self {
        Self {
            started_at: at,
            ended_at: None,
            bytes: 0,
            pages: 0,
            rows: 0,
            damaged: 0,
            found: Vec::new(),
            place: ScrubPlace::Bodies { crawl: 0, seq: 0 },
        }
    }

    /// Adds something that is damaged.
    pub fn add(&mut self, what: String) {
        self.damaged += 1;
        if self.found.len() < FOUND_MAX {
            tracing::error!(what, "damage found");
            self.found.push(what);
        }
    }
}

/// Goes on where the last call ended, for about this many bytes. A reading that has ended begins again.
pub(crate) fn scrub<S: Storage>(
    store: &Ledger<S>,
    bytes_max: u64,
    at: Timestamp,
) -> Result<ScrubState, StoreError> {
    let last = last(store)?.filter(|state| state.ended_at.is_none());
    let mut state = last.unwrap_or_else(|| ScrubState::begun(at));
    let end = state.bytes.saturating_add(bytes_max);
    while state.ended_at.is_none() && state.bytes < end {
        match state.place.clone() {
            ScrubPlace::Bodies { crawl, seq } => bodies(store, &mut state, crawl, seq, end)?,
            ScrubPlace::Rows { table, first } => rows(store, &mut state, table, first, end),
            ScrubPlace::End => {
                files(store, &mut state)?;
                state.ended_at = Some(at);
            }
        }
    }
    if store.storage().free_bytes()?.is_none_or(|free| free >= FREE_BYTES_MIN) {
        let mut batch = Batch::default();
        batch.insert(Table::Meta, layout::META_SCRUB, encode(&state));
        store.rows().commit(batch)?;
    }
    Ok(state)
}

/// How far the last call came. A row that cannot be read is none.
pub(crate) fn last<S: Storage>(store: &Ledger<S>) -> Result<Option<ScrubState>, StoreError> {
    let row = store.rows().get(Table::Meta, layout::META_SCRUB)?;
    Ok(row.and_then(|row| decode(&row, "scrub").ok()))
}

/// Reads bodies of one crawl, the first with this number or a higher one.
fn bodies<S: Storage>(
    store: &Ledger<S>,
    state: &mut ScrubState,
    crawl: u32,
    seq: u64,
    end: u64,
) -> Result<(), StoreError> {
    let first = layout::crawl_key(CrawlNo(crawl)).to_vec();
    let Some(row) = store.rows().range(Table::Crawls, first, None).next() else {
        state.place = ScrubPlace::Rows { table: 0, first: Vec::new() };
        return Ok(());
    };
    let no = match row {
        Ok((key, _)) => layout::crawl_of(&key)?,
        // Which crawl it is cannot be told; the rows say more when their turn comes.
        Err(error) => {
            state.add(format!("bodies behind crawl_{crawl} are not read: {error}"));
            state.place = ScrubPlace::Rows { table: 0, first: Vec::new() };
            return Ok(());
        }
    };
    let after = if no.0 == crawl { seq.saturating_add(1) } else { 0 };
    let pages = layout::page_key(no, after).to_vec();
    let pages = store.rows().range(Table::Pages, pages, layout::after_crawl(no).map(Vec::from));
    for row in pages {
        // That it is damaged is found again, and told, when the rows are read.
        let Ok((key, value)) = row else { break };
        state.place = ScrubPlace::Bodies { crawl: no.0, seq: layout::seq_of(&key)? };
        if let Ok(page) = decode::<PageRecord>(&value, "pages") {
            page_bodies(store, state, &page)?;
        }
        if state.bytes >= end {
            return Ok(());
        }
    }
    state.place = match no.0.checked_add(1) {
        Some(crawl) => ScrubPlace::Bodies { crawl, seq: 0 },
        None => ScrubPlace::Rows { table: 0, first: Vec::new() },
    };
    Ok(())
}

fn page_bodies<S: Storage>(
    store: &Ledger<S>,
    state: &mut ScrubState,
    page: &PageRecord,
) -> Result<(), StoreError> {
    let read = verify::check_body(store, page);
    let read = read.and_then(|()| match page.parsed {
        Some(blob) => store.bodies().extract(page.crawl, blob).map(drop),
        None => Ok(()),
    });
    state.pages += 1;
    state.bytes += ROW_BYTES_MIN;
    let blobs = page.body.into_iter().chain(page.parsed.filter(|blob| Some(*blob) != page.body));
    state.bytes += blobs.map(|blob| u64::from(blob.len)).sum::<u64>();
    if let Err(error) = read {
        // A crawl may be removed meanwhile, which is no damage.
        let row = crawls::read_row(store.rows(), page.crawl);
        if row.is_ok_and(|row| row.is_none_or(|row| row.removing)) {
            return Ok(());
        }
        state.add(format!("{}: {}: {error}", page.crawl, page.url));
    }
    Ok(())
}

/// Reads files that neither rows nor bodies are read out of, in one go: they are small, or bounded.
fn files<S: Storage>(store: &Ledger<S>, state: &mut ScrubState) -> Result<(), StoreError> {
    let files = store.storage().read_files()?;
    state.bytes += files.bytes;
    files.damaged.iter().for_each(|damage| state.add(damage.to_string()));
    Ok(())
}

/// Reads rows of one table.
fn rows<S: Storage>(
    store: &Ledger<S>,
    state: &mut ScrubState,
    table: usize,
    first: Vec<u8>,
    end: u64,
) {
    let Some(of) = Table::ALL.get(table).copied() else {
        state.place = ScrubPlace::End;
        return;
    };
    let mut last_key = first.clone();
    for row in store.rows().range(of, first, None) {
        match row {
            Ok((key, value)) => {
                state.rows += 1;
                state.bytes += ROW_BYTES_MIN.max((key.len() + value.len()) as u64);
                last_key = key.to_vec();
            }
            Err(error) => {
                let crawl = of.crawl_of(&last_key);
                let near = crawl.map_or(String::new(), |no| format!(" near {no}"));
                state.add(format!("{}{near}: {error}", of.name()));
                // What is behind it in the same crawl cannot be reached.
                let next = crawl.and_then(layout::after_crawl);
                state.place = match next {
                    Some(first) => ScrubPlace::Rows { table, first: Vec::from(first) },
                    None => ScrubPlace::Rows { table: table + 1, first: Vec::new() },
                };
                return;
            }
        }
        if state.bytes >= end {
            // The smallest key behind this one.
            last_key.push(0);
            state.place = ScrubPlace::Rows { table, first: last_key };
            return;
        }
    }
    state.place = ScrubPlace::Rows { table: table + 1, first: Vec::new() };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{create, first, step};
    use crate::in_memory::InMemory;
    use crate::{CrawlStore, FrontierStore};

    const AT: Timestamp = Timestamp(1_000);

    /// Two crawls with a few pages.
    fn crawled(storage: &InMemory) -> Ledger<InMemory> {
        let store = Ledger::open(storage.clone()).unwrap();
        for host in ["a.test", "b.test"] {
            let record = create(&store, &[&format!("http://{host}/")]);
            let links = [1, 2, 3].map(|page| format!("http://{host}/{page}"));
            let links: Vec<&str> = links.iter().map(String::as_str).collect();
            let page = step(&store, &record, first(&store, &record, host), 200, &links);
            store.commit(page).unwrap();
            for _ in 0..3 {
                let page = step(&store, &record, first(&store, &record, host), 200, &[]);
                store.commit(page).unwrap();
            }
        }
        store
    }

    /// Reads to the end in pieces of this size. Gives the state and the number of pieces.
    fn to_the_end(store: &Ledger<InMemory>, bytes_max: u64) -> (ScrubState, u32) {
        let mut pieces = 0;
        loop {
            let state = store.scrub(bytes_max, AT).unwrap();
            pieces += 1;
            if state.ended_at.is_some() {
                return (state, pieces);
            }
        }
    }

    #[test]
    fn small_pieces_read_as_much_as_one() {
        let storage = InMemory::default();
        let store = crawled(&storage);
        let (whole, pieces) = to_the_end(&store, u64::MAX);
        assert_eq!((whole.pages, whole.damaged, pieces), (8, 0, 1));
        assert!(whole.rows > 30 && whole.bytes > 1_000, "{whole:?}");
        let (again, pieces) = to_the_end(&store, 1);
        assert_eq!((again.pages, again.damaged), (8, 0));
        // One more row than the first time: that which says how far it came.
        assert_eq!(again.rows, whole.rows + 1);
        assert!(u64::from(pieces) >= again.pages + again.rows, "{pieces}");
    }

    #[test]
    fn a_reading_goes_on_after_a_kill_and_starts_over_at_the_end() {
        let storage = InMemory::default();
        let store = crawled(&storage);
        let part = store.scrub(1, AT).unwrap();
        assert_eq!((part.pages, part.ended_at), (1, None));
        drop(store);
        let store = Ledger::open(storage).unwrap();
        assert_eq!(store.scrubbed().unwrap().unwrap(), part);
        let (whole, _) = to_the_end(&store, u64::MAX);
        assert_eq!((whole.pages, whole.started_at), (8, AT));
        let over = store.scrub(1, Timestamp(2_000)).unwrap();
        assert_eq!((over.pages, over.started_at, over.ended_at), (1, Timestamp(2_000), None));
    }

    #[test]
    fn damage_is_named_as_verify_names_it() {
        let storage = InMemory::default();
        let store = crawled(&storage);
        let page = crate::PageStore::pages_after(&store, CrawlNo(1), 0, 1).unwrap().remove(0);
        let damaged = PageRecord { digest: telusur_model::Digest([7; 32]), ..page.clone() };
        let mut batch = Batch::default();
        batch.insert(Table::Pages, layout::page_key(CrawlNo(1), page.seq), encode(&damaged));
        store.rows().commit(batch).unwrap();
        let (state, _) = to_the_end(&store, 1);
        assert_eq!(state.damaged, 1);
        let verified = store.verify(&|_| Ok(Vec::new())).unwrap();
        let bodies = verified.checks.iter().find(|check| check.id == "I1").unwrap();
        assert_eq!(state.found, bodies.notes);
    }
}
