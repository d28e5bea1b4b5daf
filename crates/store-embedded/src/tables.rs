//! [`Tables`]: the rows of a ledger in one key-value database with atomic batches.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fjall::compaction::Leveled;
use fjall::config::PartitioningPolicy;
use fjall::{
    Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot, UserKey, UserValue,
};
use rustix::io::Errno;
use telusur_ledger::{Batch, Rows, StoreError, Table, WriteRows};
use telusur_model::CrawlNo;

use crate::manifest::BadFile;
use crate::reserve::{self, Reserve};
use crate::{io_error, state_files};

/// Blocks of the key-value database held in memory.
const CACHE_BYTES: u64 = 16 << 20;
/// Journal that is kept before memory tables are written out. The engine's smallest: it is read
/// again at every start, so it bounds the time that a start takes after a kill.
const JOURNAL_BYTES_MAX: u64 = 64 << 20;
/// Newest rows of a large keyspace, before they are written out. While a compaction runs, up to five of
/// them wait per keyspace, and in memory they take about three times their size.
const MEMTABLE_BYTES: u64 = 2 << 20;
/// The same for keyspaces of few rows.
const SMALL_MEMTABLE_BYTES: u64 = 1 << 20;
/// Size of one table on disk: a compaction holds the filter of a table in memory while it writes it.
const TABLE_BYTES: u64 = 8 << 20;
/// One thread to write out memory tables while the other compacts.
const WORKERS: usize = 2;

/// The tables, each in a keyspace of its own.
pub struct Tables {
    database: Database,
    /// In the order of [`Table::ALL`].
    keyspaces: [Keyspace; Table::ALL.len()],
    path: PathBuf,
    /// Of the data directory: a database that a write failed takes no other, so that none is begun on a full disk.
    reserve: Reserve,
    /// Last: it writes down how far the files have come when the database is closed.
    _closing: Closing,
}

/// Writes the witness of a database that has been closed.
struct Closing(PathBuf);

impl Drop for Closing {
    fn drop(&mut self) {
        // The one that was written at the opening stays, and still holds.
        if let Err(error) = state_files::bear_witness(&self.0) {
            tracing::warn!(%error, "the witness of the state was not written");
        }
    }
}

impl Tables {
    /// Opens the database in a directory, making it if it is new.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let database = Database::builder(path)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            .worker_threads(WORKERS)
            .max_cached_files(Some(cached_files_max()))
            .open()
            .map_err(|error| opening_error(path, error))?;
        let mut keyspaces = Vec::with_capacity(Table::ALL.len());
        for table in Table::ALL {
            let opened = database.keyspace(table.name(), || options(memtable_bytes(table)));
            keyspaces.push(opened.map_err(engine_error)?);
        }
        let keyspaces = keyspaces.try_into().unwrap_or_else(|_| unreachable!("one for each table"));
        let reserve = Reserve::of(path.parent().unwrap_or(path));
        let path = path.to_owned();
        Ok(Self { database, keyspaces, _closing: Closing(path.clone()), path, reserve })
    }

    fn keyspace(&self, table: Table) -> &Keyspace {
        &self.keyspaces[table as usize]
    }
}

/// The tables at one instant, the same for all of them.
pub struct TablesSnapshot {
    snapshot: Snapshot,
    /// In the order of [`Table::ALL`].
    keyspaces: [Keyspace; Table::ALL.len()],
}

impl Rows for TablesSnapshot {
    type Bytes = UserValue;

    fn get(&self, table: Table, key: impl AsRef<[u8]>) -> Result<Option<UserValue>, StoreError> {
        let row = self.snapshot.get(&self.keyspaces[table as usize], key.as_ref());
        row.map_err(|error| read_error(table, table.crawl_of(key.as_ref()), error))
    }

    fn contains(&self, table: Table, key: impl AsRef<[u8]>) -> Result<bool, StoreError> {
        let is_there = self.snapshot.contains_key(&self.keyspaces[table as usize], key.as_ref());
        is_there.map_err(|error| read_error(table, table.crawl_of(key.as_ref()), error))
    }

    fn range(
        &self,
        table: Table,
        first: Vec<u8>,
        end: Option<Vec<u8>>,
    ) -> impl DoubleEndedIterator<Item = Result<(UserKey, UserValue), StoreError>> {
        range_at(&self.snapshot, (table, &self.keyspaces[table as usize]), first, end)
    }
}

impl Rows for Tables {
    type Bytes = UserValue;

    fn get(&self, table: Table, key: impl AsRef<[u8]>) -> Result<Option<UserValue>, StoreError> {
        let row = self.keyspace(table).get(key.as_ref());
        row.map_err(|error| read_error(table, table.crawl_of(key.as_ref()), error))
    }

    fn contains(&self, table: Table, key: impl AsRef<[u8]>) -> Result<bool, StoreError> {
        let is_there = self.keyspace(table).contains_key(key.as_ref());
        is_there.map_err(|error| read_error(table, table.crawl_of(key.as_ref()), error))
    }

    fn range(
        &self,
        table: Table,
        first: Vec<u8>,
        end: Option<Vec<u8>>,
    ) -> impl DoubleEndedIterator<Item = Result<(UserKey, UserValue), StoreError>> {
        // The keyspace's own range shows rows of batches that are committed while it is read.
        range_at(&self.database.snapshot(), (table, self.keyspace(table)), first, end)
    }
}

impl WriteRows for Tables {
    type Snapshot = TablesSnapshot;

    fn snapshot(&self) -> TablesSnapshot {
        TablesSnapshot { snapshot: self.database.snapshot(), keyspaces: self.keyspaces.clone() }
    }

    fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        self.reserve.before_write();
        let mut written = self.database.batch().durability(Some(PersistMode::SyncData));
        for change in batch.into_changes() {
            let keyspace = self.keyspace(change.table);
            match change.value {
                Some(value) => written.insert(keyspace, change.key, value),
                None => written.remove(keyspace, change.key),
            }
        }
        written.commit().map_err(|error| write_error(&self.path, error))
    }
}

/// The rows of a keyspace from `first` on and before `end`, at one instant.
fn range_at(
    snapshot: &Snapshot,
    (table, keyspace): (Table, &Keyspace),
    first: Vec<u8>,
    end: Option<Vec<u8>>,
) -> impl DoubleEndedIterator<Item = Result<(UserKey, UserValue), StoreError>> + use<> {
    let crawl = crawl_of_range(table, &first, end.as_deref());
    let end = end.map_or(Bound::Unbounded, Bound::Excluded);
    let rows = snapshot.range(keyspace, (Bound::Included(first), end));
    rows.map(move |row| row.into_inner().map_err(|error| read_error(table, crawl, error)))
}

fn memtable_bytes(table: Table) -> u64 {
    match table {
        Table::Urls | Table::Queue | Table::Pages => MEMTABLE_BYTES,
        Table::Meta
        | Table::Crawls
        | Table::Stats
        | Table::Hosts
        | Table::Held
        | Table::Origins
        | Table::Runs
        | Table::Traps
        | Table::Order
        | Table::Names
        | Table::Aliases => SMALL_MEMTABLE_BYTES,
    }
}

fn options(memtable_bytes: u64) -> KeyspaceCreateOptions {
    // Partitioned, so that a look-up reads the few kilobytes of a filter that it needs: the
    // filter of a whole table is a megabyte, and the cache holds only a few of those.
    KeyspaceCreateOptions::default()
        .max_memtable_size(memtable_bytes)
        .compaction_strategy(Arc::new(Leveled::default().with_table_target_size(TABLE_BYTES)))
        .filter_block_partitioning_policy(PartitioningPolicy::all(true))
        .index_block_partitioning_policy(PartitioningPolicy::all(true))
}

/// Table files that stay open between two looks into them: an eighth of what may be open, so that
/// connections and the index have theirs. More are opened again when they are needed.
fn cached_files_max() -> usize {
    /// A keyspace looks into a table or two at a time.
    const FILES_MIN: u64 = 8;
    /// What the engine itself takes where nobody says anything.
    const FILES_MAX: u64 = 900;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let share = limit.map_or(FILES_MAX, |limit| (limit / 8).clamp(FILES_MIN, FILES_MAX));
    usize::try_from(share).unwrap_or(usize::MAX)
}

/// The crawl that all rows of a range belong to.
fn crawl_of_range(table: Table, first: &[u8], end: Option<&[u8]>) -> Option<CrawlNo> {
    let crawl = table.crawl_of(first)?;
    let end = end?;
    let next = crawl.0.checked_add(1).map(u32::to_be_bytes);
    let ends_with_it = next.is_some_and(|next| end <= next.as_slice());
    (ends_with_it || table.crawl_of(end) == Some(crawl)).then_some(crawl)
}

/// The same for what was read: a block that the disk does not give back, or gives back changed, is the
/// trouble of those whose rows are in it. Files that cannot be opened because too many are open are not.
fn read_error(table: Table, crawl: Option<CrawlNo>, error: fjall::Error) -> StoreError {
    let unreadable = |why: String| StoreError::Unreadable { table: table.name(), crawl, why };
    match error {
        fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source))
            if is_of_file(&source) =>
        {
            unreadable(source.to_string())
        }
        fjall::Error::Storage(fjall::LsmError::Io(source)) => {
            engine_error(fjall::Error::Io(source))
        }
        fjall::Error::Storage(error) => unreadable(error.to_string()),
        other => engine_error(other),
    }
}

/// Whether reading failed because of the file itself.
fn is_of_file(error: &std::io::Error) -> bool {
    let of_machine = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::INTR, Errno::NOSPC];
    let errno = error.raw_os_error();
    !of_machine.iter().any(|machine| errno == Some(machine.raw_os_error()))
}

/// The same for what it says while it opens its files: a damaged one is named.
fn opening_error(state: &Path, error: fjall::Error) -> StoreError {
    match engine_error(error) {
        StoreError::Engine(why) => state_files::damaged_table(state).unwrap_or_else(|| {
            let path = state.to_owned();
            state_files::damaged(state, BadFile { path, byte: None, what: why })
        }),
        other => other,
    }
}

/// The same for what was written. After a write that failed, also one in the background, the engine takes no
/// other and does not say why: most often the disk is full.
fn write_error(state: &Path, error: fjall::Error) -> StoreError {
    /// With less than this a memory table or two cannot be written out.
    const FULL_BYTES: u64 = 16 << 20;
    let full = |free: u64| {
        let source = std::io::Error::new(
            std::io::ErrorKind::StorageFull,
            format!("{} kB free", free / 1000),
        );
        io_error("write the rows of the crawls in state/", source)
    };
    match error {
        fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source)) => {
            let source = reserve::with_free_space(state, source);
            io_error("write the rows of the crawls in state/", source)
        }
        fjall::Error::Poisoned => match reserve::free_bytes(state) {
            Ok(free) if free < FULL_BYTES => full(free),
            Ok(_) | Err(_) => {
                StoreError::Engine("an earlier write failed; start again to recover".to_owned())
            }
        },
        other => engine_error(other),
    }
}

/// What the storage engine says, sorted by what the caller can do about it.
fn engine_error(error: fjall::Error) -> StoreError {
    match error {
        fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source)) => {
            io_error("use the state database", source)
        }
        other => StoreError::Engine(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::FileExt;

    use super::*;

    const ROWS: u32 = 2_000;

    fn key(crawl: u32, row: u32) -> Vec<u8> {
        [crawl.to_be_bytes(), row.to_be_bytes()].concat()
    }

    fn files_below(dir: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        entries
            .flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] })
            .collect()
    }

    /// Two crawls, of which a block of the first cannot be read.
    #[test]
    fn a_row_that_cannot_be_read_names_its_crawl() {
        let dir = tempfile::tempdir().unwrap();
        let tables = Tables::open(dir.path()).unwrap();
        let mut batch = Batch::default();
        for (crawl, row) in (1..=2).flat_map(|crawl| (0..ROWS).map(move |row| (crawl, row))) {
            batch.insert(Table::Urls, key(crawl, row), vec![b'x'; 100]);
        }
        tables.commit(batch).unwrap();
        tables.keyspace(Table::Urls).rotate_memtable_and_wait().unwrap();
        for path in
            files_below(dir.path()).iter().filter(|path| path.iter().any(|dir| dir == "tables"))
        {
            fs::File::options().write(true).open(path).unwrap().write_at(&[0xff; 8], 100).unwrap();
        }
        let crawl_of = |error: StoreError| match error {
            StoreError::Unreadable { table: "urls", crawl, .. } => crawl,
            other => panic!("{other}"),
        };
        let first = tables.get(Table::Urls, key(1, 0)).unwrap_err();
        assert_eq!(crawl_of(first), Some(CrawlNo(1)));
        let first = tables.contains(Table::Urls, key(1, 0)).unwrap_err();
        assert_eq!(crawl_of(first), Some(CrawlNo(1)));
        let of_crawl = tables.prefix(Table::Urls, 1_u32.to_be_bytes()).next().unwrap();
        assert_eq!(crawl_of(of_crawl.unwrap_err()), Some(CrawlNo(1)));
        // Whose row it is can be said only where all of them are one crawl's.
        let of_all = tables.range(Table::Urls, key(1, 0), None).next().unwrap();
        assert_eq!(crawl_of(of_all.unwrap_err()), None);
        assert!(tables.get(Table::Urls, key(2, ROWS - 1)).unwrap().is_some());
    }
}
