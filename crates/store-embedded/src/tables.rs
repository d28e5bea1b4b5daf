//! [`Tables`]: the rows of a ledger in one key-value database with atomic batches.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use fjall::compaction::Leveled;
use fjall::config::PartitioningPolicy;
use fjall::{
    Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot, UserKey, UserValue,
};
use telusur_ledger::{Batch, Rows, StoreError, Table, WriteRows};

use crate::io_error;

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
            .map_err(engine_error)?;
        let mut keyspaces = Vec::with_capacity(Table::ALL.len());
        for table in Table::ALL {
            let opened = database.keyspace(table.name(), || options(memtable_bytes(table)));
            keyspaces.push(opened.map_err(engine_error)?);
        }
        let keyspaces = keyspaces.try_into().unwrap_or_else(|_| unreachable!("one for each table"));
        Ok(Self { database, keyspaces })
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
        self.snapshot.get(&self.keyspaces[table as usize], key).map_err(engine_error)
    }

    fn contains(&self, table: Table, key: impl AsRef<[u8]>) -> Result<bool, StoreError> {
        self.snapshot.contains_key(&self.keyspaces[table as usize], key).map_err(engine_error)
    }

    fn range(
        &self,
        table: Table,
        first: Vec<u8>,
        end: Option<Vec<u8>>,
    ) -> impl DoubleEndedIterator<Item = Result<(UserKey, UserValue), StoreError>> {
        range_at(&self.snapshot, &self.keyspaces[table as usize], first, end)
    }
}

impl Rows for Tables {
    type Bytes = UserValue;

    fn get(&self, table: Table, key: impl AsRef<[u8]>) -> Result<Option<UserValue>, StoreError> {
        self.keyspace(table).get(key).map_err(engine_error)
    }

    fn contains(&self, table: Table, key: impl AsRef<[u8]>) -> Result<bool, StoreError> {
        self.keyspace(table).contains_key(key).map_err(engine_error)
    }

    fn range(
        &self,
        table: Table,
        first: Vec<u8>,
        end: Option<Vec<u8>>,
    ) -> impl DoubleEndedIterator<Item = Result<(UserKey, UserValue), StoreError>> {
        // The keyspace's own range shows rows of batches that are committed while it is read.
        range_at(&self.database.snapshot(), self.keyspace(table), first, end)
    }
}

impl WriteRows for Tables {
    type Snapshot = TablesSnapshot;

    fn snapshot(&self) -> TablesSnapshot {
        TablesSnapshot { snapshot: self.database.snapshot(), keyspaces: self.keyspaces.clone() }
    }

    fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        let mut written = self.database.batch().durability(Some(PersistMode::SyncData));
        for change in batch.changes {
            let keyspace = self.keyspace(change.table);
            match change.value {
                Some(value) => written.insert(keyspace, change.key, value),
                None => written.remove(keyspace, change.key),
            }
        }
        written.commit().map_err(engine_error)
    }
}

/// The rows of a keyspace from `first` on and before `end`, at one instant.
fn range_at(
    snapshot: &Snapshot,
    keyspace: &Keyspace,
    first: Vec<u8>,
    end: Option<Vec<u8>>,
) -> impl DoubleEndedIterator<Item = Result<(UserKey, UserValue), StoreError>> + use<> {
    let end = end.map_or(Bound::Unbounded, Bound::Excluded);
    let rows = snapshot.range(keyspace, (Bound::Included(first), end));
    rows.map(|row| row.into_inner().map_err(engine_error))
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
        | Table::Names => SMALL_MEMTABLE_BYTES,
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

/// What the storage engine says, sorted by what the caller can do about it.
fn engine_error(error: fjall::Error) -> StoreError {
    match error {
        fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source)) => {
            io_error("use the state database", source)
        }
        other => StoreError::Engine(other.to_string()),
    }
}
