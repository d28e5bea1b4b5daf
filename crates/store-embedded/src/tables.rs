//! [`Tables`]: the rows of a ledger in one key-value database with atomic batches.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fjall::compaction::Leveled;
use fjall::config::PartitioningPolicy;
use fjall::{
    Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot, UserKey, UserValue,
};
use rustix::io::Errno;
use telusur_ledger::{Batch, Rows, StateDamage, StoreError, Table, WriteRows};
use telusur_model::CrawlNo;

use crate::manifest::BadFile;
use crate::reach::Reach;
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
    /// Of the data directory: a database that a write failed takes no other, so that none is begun on a full disk.
    reserve: Reserve,
    damage: Arc<DamageFinder>,
    /// Held for the length of a batch: how far the files have come is written down behind it. `None` once
    /// that has failed.
    reach: Mutex<Option<Reach>>,
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
        let database = opened(path)?;
        let mut keyspaces = Vec::with_capacity(Table::ALL.len());
        for table in Table::ALL {
            let opened = database.keyspace(table.name(), || options(memtable_bytes(table)));
            keyspaces.push(opened.map_err(|error| opening_error(path, error))?);
        }
        let keyspaces = keyspaces.try_into().unwrap_or_else(|_| unreachable!("one for each table"));
        let damage = Arc::new(DamageFinder::new(path, &keyspaces));
        let reach = Reach::begin(path, keyspaces.iter().filter_map(keyspace_number));
        let reach = reach.map_err(|error| io_error(format!("write {}", path.display()), error))?;
        let reach = Mutex::new(Some(reach));
        let reserve = Reserve::of(path.parent().unwrap_or(path));
        let _closing = Closing(path.to_owned());
        Ok(Self { database, keyspaces, damage, reach, reserve, _closing })
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
    damage: Arc<DamageFinder>,
}

impl Rows for TablesSnapshot {
    type Bytes = UserValue;

    fn get(&self, table: Table, key: impl AsRef<[u8]>) -> Result<Option<UserValue>, StoreError> {
        let row = self.snapshot.get(&self.keyspaces[table as usize], key.as_ref());
        row.map_err(|error| self.damage.read_error(table, table.crawl_of(key.as_ref()), error))
    }

    fn contains(&self, table: Table, key: impl AsRef<[u8]>) -> Result<bool, StoreError> {
        let is_there = self.snapshot.contains_key(&self.keyspaces[table as usize], key.as_ref());
        is_there.map_err(|error| self.damage.read_error(table, table.crawl_of(key.as_ref()), error))
    }

    fn range(
        &self,
        table: Table,
        first: Vec<u8>,
        end: Option<Vec<u8>>,
    ) -> impl DoubleEndedIterator<Item = Result<(UserKey, UserValue), StoreError>> {
        let keyspace = &self.keyspaces[table as usize];
        range_at(&self.snapshot, (table, keyspace, &self.damage), first, end)
    }
}

impl Rows for Tables {
    type Bytes = UserValue;

    fn get(&self, table: Table, key: impl AsRef<[u8]>) -> Result<Option<UserValue>, StoreError> {
        let row = self.keyspace(table).get(key.as_ref());
        row.map_err(|error| self.damage.read_error(table, table.crawl_of(key.as_ref()), error))
    }

    fn contains(&self, table: Table, key: impl AsRef<[u8]>) -> Result<bool, StoreError> {
        let is_there = self.keyspace(table).contains_key(key.as_ref());
        is_there.map_err(|error| self.damage.read_error(table, table.crawl_of(key.as_ref()), error))
    }

    fn range(
        &self,
        table: Table,
        first: Vec<u8>,
        end: Option<Vec<u8>>,
    ) -> impl DoubleEndedIterator<Item = Result<(UserKey, UserValue), StoreError>> {
        // The keyspace's own range shows rows of batches that are committed while it is read.
        let snapshot = self.database.snapshot();
        range_at(&snapshot, (table, self.keyspace(table), &self.damage), first, end)
    }
}

impl WriteRows for Tables {
    type Snapshot = TablesSnapshot;

    fn snapshot(&self) -> TablesSnapshot {
        TablesSnapshot {
            snapshot: self.database.snapshot(),
            keyspaces: self.keyspaces.clone(),
            damage: Arc::clone(&self.damage),
        }
    }

    fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        self.reserve.before_write();
        let mut written = self.database.batch().durability(Some(PersistMode::SyncData));
        let mut changed = [false; Table::ALL.len()];
        for change in batch.into_changes() {
            let keyspace = self.keyspace(change.table);
            changed[change.table as usize] = true;
            match change.value {
                Some(value) => written.insert(keyspace, change.key, value),
                None => written.remove(keyspace, change.key),
            }
        }
        let mut reach = self.reach.lock().unwrap_or_else(PoisonError::into_inner);
        // What it will be, or lower: the database takes numbers for its own lists, too.
        let seqno = self.database.seqno();
        written.commit().map_err(|error| self.damage.write_error(error))?;
        let changed = self.keyspaces.iter().zip(changed).filter(|(_, changed)| *changed);
        self.follow(
            &mut reach,
            seqno,
            changed.filter_map(|(keyspace, _)| keyspace_number(keyspace)),
        );
        Ok(())
    }
}

impl Tables {
    /// Writes down how far the files have come. A witness that cannot be written is no reason to stop: the
    /// last one still holds.
    fn follow(&self, reach: &mut Option<Reach>, seqno: u64, keyspaces: impl Iterator<Item = u64>) {
        if let Some(Err(error)) = reach.as_mut().map(|reach| reach.follow(seqno, keyspaces)) {
            tracing::warn!(%error, "how far the state has come is not written down any more");
            *reach = None;
        }
    }
}

/// The number of a keyspace, which is the name of its directory.
fn keyspace_number(keyspace: &Keyspace) -> Option<u64> {
    keyspace.path().file_name()?.to_str()?.parse().ok()
}

/// The rows of a keyspace from `first` on and before `end`, at one instant.
fn range_at(
    snapshot: &Snapshot,
    (table, keyspace, damage): (Table, &Keyspace, &Arc<DamageFinder>),
    first: Vec<u8>,
    end: Option<Vec<u8>>,
) -> impl DoubleEndedIterator<Item = Result<(UserKey, UserValue), StoreError>> + use<> {
    let crawl = crawl_of_range(table, &first, end.as_deref());
    let end = end.map_or(Bound::Unbounded, Bound::Excluded);
    let rows = snapshot.range(keyspace, (Bound::Included(first), end));
    let damage = Arc::clone(damage);
    rows.map(move |row| row.into_inner().map_err(|error| damage.read_error(table, crawl, error)))
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
        | Table::Aliases
        | Table::Lost => SMALL_MEMTABLE_BYTES,
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

/// Names the file when a row cannot be read.
struct DamageFinder {
    state: PathBuf,
    /// The directories of the keyspaces, in the order of [`Table::ALL`].
    keyspaces: [PathBuf; Table::ALL.len()],
    /// What was found for each table: all files of a keyspace are read for it, once.
    found: Mutex<[Option<Option<StateDamage>>; Table::ALL.len()]>,
}

impl DamageFinder {
    fn new(state: &Path, keyspaces: &[Keyspace; Table::ALL.len()]) -> Self {
        let keyspaces = keyspaces.each_ref().map(|keyspace| keyspace.path().to_owned());
        Self { state: state.to_owned(), keyspaces, found: Mutex::default() }
    }

    /// What the engine says of a row: a block that the disk does not give back, or gives back changed, is the
    /// trouble of those whose rows are in it. Files that cannot be opened because too many are open are not.
    fn read_error(&self, table: Table, crawl: Option<CrawlNo>, error: fjall::Error) -> StoreError {
        let unreadable = |why: String| {
            let damage = self.damage_of(table).map(Box::new);
            StoreError::Unreadable { table: table.name(), crawl, why, damage }
        };
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
            other => self.write_error(other),
        }
    }

    /// What the engine says of a batch. After a background thread met a damaged table it takes no more.
    fn write_error(&self, error: fjall::Error) -> StoreError {
        let is_stopped = matches!(error, fjall::Error::Poisoned);
        let damage = is_stopped.then(|| state_files::damaged_table(&self.state)).flatten();
        match damage {
            Some(damage) => StoreError::StateDamaged(Box::new(damage)),
            None => write_error(&self.state, error),
        }
    }

    fn damage_of(&self, table: Table) -> Option<StateDamage> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let find = || state_files::damaged_table_of(&self.state, &self.keyspaces[table as usize]);
        found[table as usize].get_or_insert_with(find).clone()
    }
}

/// Whether reading failed because of the file itself.
fn is_of_file(error: &std::io::Error) -> bool {
    let of_machine = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::INTR, Errno::NOSPC];
    let errno = error.raw_os_error();
    !of_machine.iter().any(|machine| errno == Some(machine.raw_os_error()))
}

/// Opens the database. It panics on some damage that it takes for a bug of its own: what our own look did not
/// find is refused then, and not the end of the process.
fn opened(path: &Path) -> Result<Database, StoreError> {
    let open = || {
        Database::builder(path)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            .worker_threads(WORKERS)
            .max_cached_files(Some(cached_files_max()))
            .open()
    };
    // Nothing of a database that was not opened is used afterwards.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(open)) {
        Ok(opened) => opened.map_err(|error| opening_error(path, error)),
        Err(_) => Err(unopened(path, "the storage engine panicked while it opened it".to_owned())),
    }
}

/// What it says while it opens its files: a damaged one is named.
fn opening_error(state: &Path, error: fjall::Error) -> StoreError {
    match engine_error(error) {
        StoreError::Engine(why) => unopened(state, why),
        other => other,
    }
}

fn unopened(state: &Path, what: String) -> StoreError {
    let unknown =
        || state_files::damage(state, BadFile { path: state.to_owned(), byte: None, what });
    StoreError::StateDamaged(Box::new(state_files::damaged_table(state).unwrap_or_else(unknown)))
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
            StoreError::Unreadable { table: "urls", crawl, damage: Some(damage), .. } => {
                assert!(damage.file.contains("tables/") && damage.byte == Some(0), "{damage}");
                crawl
            }
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

    /// A state directory with a table of urls that is written out, and the path of that table.
    fn with_a_table(dir: &Path, fill: u8) -> PathBuf {
        let state = dir.join("state");
        let tables = Tables::open(&state).unwrap();
        let mut batch = Batch::default();
        (0..ROWS).for_each(|row| batch.insert(Table::Urls, key(1, row), vec![fill; 100]));
        tables.commit(batch).unwrap();
        tables.keyspace(Table::Urls).rotate_memtable_and_wait().unwrap();
        let table = tables.keyspace(Table::Urls).path().join("tables");
        files_below(&table).pop().unwrap()
    }

    /// Numbers of tables are used again, and each block of such a table is whole.
    #[test]
    fn a_table_of_another_time_is_named() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [table, other] = [0, 1].map(|at| with_a_table(dirs[at].path(), b'a' + at as u8));
        let state = dirs[0].path().join("state");
        state_files::look(&state).unwrap();
        assert_eq!(table.file_name(), other.file_name());
        fs::copy(other, &table).unwrap();
        match state_files::look(&state).err() {
            Some(StoreError::StateDamaged(damage)) => {
                assert!(table.ends_with(&damage.file), "{damage}");
            }
            other => panic!("{other:?}"),
        }
    }

    /// The ends of all tables are read at every opening: cut or changed there, they once ended in an error of
    /// the operating system, without a name.
    #[test]
    fn a_table_without_its_end_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let table = with_a_table(dir.path(), b'a');
        let whole = fs::read(&table).unwrap();
        for len in [0, 1, 37, whole.len() / 2, whole.len() - 1] {
            fs::write(&table, &whole[..len]).unwrap();
            let error = state_files::look(&dir.path().join("state")).err();
            assert!(
                matches!(&error, Some(StoreError::StateDamaged(damage)) if table.ends_with(&damage.file)),
                "{len}: {error:?}"
            );
        }
    }
}
