//! The default store: one directory, no service.
//!
//! `state/` holds queues, URLs, hosts, page records and crawls in one key-value database with
//! atomic batches; `bodies/` holds what came over the wire, in append-only segments that other
//! tools can read as WARC; `telusur.lock` names the owner; `telusur.version` says whose directory
//! it is. One process owns the directory; nothing here opens a socket.

mod admit;
mod budget;
mod commit;
mod crawls;
mod directory;
mod disk;
mod give_up;
mod held;
mod memory;
mod pages;
mod private_files;
mod queue;
mod recent;
mod rows;
mod runs;
mod segment;
mod state_files;
mod verify;
mod verify_ids;
mod warc;

use std::path::Path;
use std::sync::Arc;

use fjall::compaction::Leveled;
use fjall::config::PartitioningPolicy;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use parking::Guarded;
use telusur_store::StoreError;

pub use crate::directory::{DataDir, Found};
pub use crate::disk::{Disk, DiskFile, RealDisk};
use crate::memory::Memory;
pub use crate::segment::{SegmentEnd, Segments};

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

/// The embedded store.
pub struct EmbeddedStore {
    directory: DataDir,
    was_closed: bool,
    key_seed: u64,
    database: Database,
    keyspaces: Keyspaces,
    segments: Segments,
    /// Protects the sequence, the counters and the host rows: every write goes through it.
    memory: Guarded<Memory>,
}

/// The tables of the database.
pub(crate) struct Keyspaces {
    /// Sequence, crawl counter, segment ends, whether the last owner closed.
    meta: Keyspace,
    /// Crawl number to settings and state.
    crawls: Keyspace,
    /// Crawl number to counters.
    stats: Keyspace,
    /// Crawl and host to [`telusur_model::HostRow`].
    hosts: Keyspace,
    /// Crawl and URL key to what became of the URL: the seen-set.
    urls: Keyspace,
    /// Crawl, host, lane and order to a URL that waits.
    queue: Keyspace,
    /// Crawl, host, budget and order to a link that was left out and waits for a unit.
    held: Keyspace,
    /// Crawl and sequence to [`telusur_model::PageRecord`].
    pages: Keyspace,
    /// Host and origin to [`telusur_model::OriginRow`], for all crawls.
    origins: Keyspace,
    /// Crawl, walk and position to the run of ids that begins there.
    runs: Keyspace,
    /// Crawl and shape to how far its pages say the same, and whether that has ended its budget.
    traps: Keyspace,
}

impl EmbeddedStore {
    /// Opens a data directory, making it if it is new, and takes its lock.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let directory = DataDir::open(path)?;
        let bodies = RealDisk::new(directory.bodies());
        Self::open_on(directory, Arc::new(bodies))
    }

    /// Opens a data directory whose bodies lie on the given disk.
    pub fn open_on(directory: DataDir, disk: Arc<dyn Disk>) -> Result<Self, StoreError> {
        let database = Database::builder(directory.state())
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            .worker_threads(WORKERS)
            .max_cached_files(Some(cached_files_max()))
            .open()
            .map_err(engine_error)?;
        let keyspaces = Keyspaces::open(&database)?;
        let key_seed = directory.key_seed();
        let (memory, was_closed) = Memory::load(&keyspaces)?;
        let store = Self {
            directory,
            was_closed,
            key_seed,
            segments: Segments::new(disk),
            memory: Guarded::new(memory),
            database,
            keyspaces,
        };
        store.mark_open()?;
        store.directory.finish()?;
        store.finish_removals()?;
        Ok(store)
    }

    /// The directory.
    pub fn directory(&self) -> &DataDir {
        &self.directory
    }

    fn mark_open(&self) -> Result<(), StoreError> {
        self.set_closed(false)
    }

    pub(crate) fn set_closed(&self, closed: bool) -> Result<(), StoreError> {
        let mut batch = self.batch();
        batch.insert(&self.keyspaces.meta, rows::META_CLOSED, [u8::from(closed)]);
        batch.commit().map_err(engine_error)
    }

    /// A batch that is on the disk when its commit returns.
    pub(crate) fn batch(&self) -> fjall::OwnedWriteBatch {
        self.database.batch().durability(Some(PersistMode::SyncData))
    }
}

impl Keyspaces {
    fn open(database: &Database) -> Result<Self, StoreError> {
        let open = |name: &str, memtable_bytes: u64| {
            // Partitioned, so that a look-up reads the few kilobytes of a filter that it needs: the
            // filter of a whole table is a megabyte, and the cache holds only a few of those.
            let options = move || {
                KeyspaceCreateOptions::default()
                    .max_memtable_size(memtable_bytes)
                    .compaction_strategy(Arc::new(
                        Leveled::default().with_table_target_size(TABLE_BYTES),
                    ))
                    .filter_block_partitioning_policy(PartitioningPolicy::all(true))
                    .index_block_partitioning_policy(PartitioningPolicy::all(true))
            };
            database.keyspace(name, options).map_err(engine_error)
        };
        Ok(Self {
            meta: open("meta", SMALL_MEMTABLE_BYTES)?,
            crawls: open("crawls", SMALL_MEMTABLE_BYTES)?,
            stats: open("stats", SMALL_MEMTABLE_BYTES)?,
            hosts: open("hosts", SMALL_MEMTABLE_BYTES)?,
            urls: open("urls", MEMTABLE_BYTES)?,
            queue: open("queue", MEMTABLE_BYTES)?,
            held: open("held", SMALL_MEMTABLE_BYTES)?,
            pages: open("pages", MEMTABLE_BYTES)?,
            origins: open("origins", SMALL_MEMTABLE_BYTES)?,
            runs: open("runs", SMALL_MEMTABLE_BYTES)?,
            traps: open("traps", SMALL_MEMTABLE_BYTES)?,
        })
    }
}

/// What the storage engine says, sorted by what the caller can do about it.
pub(crate) fn engine_error(error: fjall::Error) -> StoreError {
    match error {
        fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source)) => {
            io_error("use the state database", source)
        }
        other => StoreError::Engine(other.to_string()),
    }
}

pub(crate) fn io_error(doing: impl Into<String>, source: std::io::Error) -> StoreError {
    let doing = doing.into();
    match source.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            StoreError::DiskFull(format!("{doing}: {source}"))
        }
        _ => StoreError::Io { doing, source },
    }
}

mod parking {
    //! A mutex that does not spread panics: a thread that dies while holding it stops the engine
    //! anyway, and the other holders only read.

    use std::sync::{Mutex, MutexGuard, PoisonError};

    pub(crate) struct Guarded<T>(Mutex<T>);

    impl<T> Guarded<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}
