//! The default storage of a ledger: one directory, no service.
//!
//! `state/` holds the tables in one key-value database with atomic batches; `bodies/` holds what came
//! over the wire, in append-only segments that other tools can read as WARC; `telusur.lock` names the
//! owner; `telusur.version` says whose directory it is. One process owns the directory; nothing here
//! opens a socket, and nothing here decides what a crawl does.

mod directory;

mod private_files;
mod reserve;
mod tables;

mod segment;

mod segment_scan;
mod step_frame;
mod warc;

mod disk;
mod recovery;
mod state_files;

mod journal;
mod manifest;
mod table_file;

mod reach;
mod witness;

use std::path::Path;
use std::sync::Arc;

use telusur_ledger::{FilesRead, Ledger, StateDamage, Storage, StoreError};

pub use crate::directory::{DataDir, Found};
pub use crate::disk::{Disk, DiskFile, RealDisk};
pub use crate::recovery::{RecoverInto, Recovery, RecoveryProgress};
pub use crate::segment::Segments;
pub use crate::tables::Tables;

/// Bytes left on the disk of a directory, which need not be open.
pub fn free_bytes(dir: &Path) -> std::io::Result<u64> {
    reserve::free_bytes(dir)
}

/// A ledger in a data directory.
pub type EmbeddedStore = Ledger<Directory>;

/// Opens a data directory, making it if it is new, and takes its lock.
pub fn open(path: &Path) -> Result<EmbeddedStore, StoreError> {
    let directory = DataDir::open(path)?;
    let bodies = RealDisk::new(directory.bodies());
    open_on(directory, Arc::new(bodies))
}

/// Opens a data directory whose bodies are on the given disk.
pub fn open_on(directory: DataDir, disk: Arc<dyn Disk>) -> Result<EmbeddedStore, StoreError> {
    let tables = Tables::open(&directory.state())?;
    let is_copy = directory.is_copy();
    let storage = Directory { tables, segments: Segments::new(disk), directory };
    let store = if storage.directory.is_older() {
        bring_up_to_date(storage)?
    } else {
        match Ledger::open(storage) {
            Err(StoreError::StateDamaged(damage)) if is_copy => {
                return Err(state_files::torn_copy(*damage));
            }
            opened => opened?,
        }
    };
    if is_copy {
        refuse_older_bodies(&store)?;
    }
    store.storage().directory.finish()?;
    Ok(store)
}

/// Refuses a copy whose bodies were copied before its state: pages would be listed that are not there.
fn refuse_older_bodies(store: &EmbeddedStore) -> Result<(), StoreError> {
    let Directory { segments, directory, .. } = store.storage();
    for (crawl, end) in store.bodies_ends()? {
        if let Some((file, what)) = segments.first_short(crawl, end)? {
            return Err(state_files::torn_copy(StateDamage {
                data: directory.root().display().to_string(),
                file,
                byte: None,
                what,
                is_torn_copy: true,
            }));
        }
    }
    Ok(())
}

fn bring_up_to_date(storage: Directory) -> Result<EmbeddedStore, StoreError> {
    let root = storage.directory.root().display().to_string();
    tracing::info!(dir = root, "bringing the data directory up to date");
    let store = Ledger::open_without_records(storage)?;
    if store.storage().directory.lacks_lookups() {
        store.derive_lookups()?;
    }
    store.record_rows()?;
    Ok(store)
}

/// The tables and segments of a data directory.
pub struct Directory {
    tables: Tables,
    segments: Segments,
    /// Last, so that its lock is let go of when everything else is closed.
    directory: DataDir,
}

impl Directory {
    /// The directory.
    pub fn data_dir(&self) -> &DataDir {
        &self.directory
    }
}

impl Storage for Directory {
    type Rows = Tables;
    type Bodies = Segments;

    fn rows(&self) -> &Tables {
        &self.tables
    }

    fn bodies(&self) -> &Segments {
        &self.segments
    }

    fn key_seed(&self) -> u64 {
        self.directory.key_seed()
    }

    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        let root = self.directory.root();
        let free = reserve::free_bytes(root).map_err(|error| {
            io_error(format!("ask for the free space of {}", root.display()), error)
        })?;
        Ok(Some(free))
    }

    fn leftovers(&self) -> Result<Vec<String>, StoreError> {
        let leftovers = self.directory.strangers();
        leftovers.map_err(|error| io_error("list the data directory", error))
    }

    fn read_files(&self) -> Result<FilesRead, StoreError> {
        state_files::read_journals(&self.directory.state())
    }

    fn location(&self) -> String {
        self.directory.root().display().to_string()
    }
}

pub(crate) fn io_error(doing: impl Into<String>, source: std::io::Error) -> StoreError {
    let doing = doing.into();
    match source.kind() {
        // What the system says of it says nothing more; what we found out about it does.
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            StoreError::DiskFull(match source.raw_os_error() {
                Some(_) => doing,
                None => format!("{doing}: {source}"),
            })
        }
        _ => StoreError::Io { doing, source },
    }
}
