//! [`Recovery`]: rebuilds the rows of a data directory from its bodies alone, into a new directory or in
//! its place. Nothing of the old directory is deleted but its index, and that only in place.
//!
//! A recovery that is cut short has done nothing that counts: the next one begins again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use telusur_ledger::{Ledger, RecoverProgress, Recovered, StoreError};

use crate::directory::{
    DataDir, STATE_DAMAGED, STATE_RECOVERED, holds_nothing, remove_dir_if_there, sync_dir,
};
use crate::private_files::{create_private_dir, private_file};
use crate::{Directory, EmbeddedStore, RealDisk, Segments, Tables, io_error};

/// What is copied at once.
const COPY_BYTES: usize = 1 << 20;

/// Where recovered rows go.
#[derive(Clone, Copy, Debug)]
pub enum RecoverInto<'a> {
    /// Into a new directory, together with copies of the bodies. The old one is not touched.
    New(&'a Path),
    /// Into the directory itself. The damaged rows are kept beside them.
    Place,
}

/// How far a recovery has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryProgress {
    /// Bodies are copied.
    Copying {
        /// Bytes that are copied.
        bytes: u64,
        /// Of so many.
        of: u64,
    },
    /// Rows are rebuilt.
    Rebuilding(RecoverProgress),
}

/// Rows that were rebuilt, and are not yet in their place.
pub struct Recovery {
    store: Arc<EmbeddedStore>,
    recovered: Recovered,
    /// The directory that the new one becomes; `None` in place.
    target: Option<PathBuf>,
    /// Held, so that nobody changes what is read.
    _source: Option<fs::File>,
}

impl Recovery {
    /// Rebuilds the rows of a directory.
    pub fn begin(
        source: &Path,
        into: RecoverInto<'_>,
        progress: &mut dyn FnMut(RecoveryProgress),
    ) -> Result<Self, StoreError> {
        let bodies = source.join("bodies");
        if !bodies.is_dir() {
            return Err(StoreError::Unusable(format!(
                "{} has no bodies/ to recover anything from",
                source.display()
            )));
        }
        let (directory, state, held) = match into {
            RecoverInto::New(target) => {
                let held = DataDir::hold(source)?;
                let unfinished = begin_new(target)?;
                let directory = DataDir::make_for(&unfinished, source)?;
                copy_files(source, directory.root(), progress)?;
                let state = directory.state();
                (directory, state, held)
            }
            RecoverInto::Place => {
                let directory = DataDir::open_damaged(source)?;
                let state = source.join(STATE_RECOVERED);
                let made = remove_dir_if_there(&state).and_then(|()| create_private_dir(&state));
                made.map_err(|error| io_error(format!("make {}", state.display()), error))?;
                (directory, state, None)
            }
        };
        let segments = Segments::new(Arc::new(RealDisk::new(directory.bodies())));
        let storage = Directory { tables: Tables::open(&state)?, segments, directory };
        let mut rebuilding = |step| progress(RecoveryProgress::Rebuilding(step));
        let (store, recovered) = Ledger::recover(storage, &mut rebuilding)?;
        let target = match into {
            RecoverInto::New(target) => Some(target.to_owned()),
            RecoverInto::Place => None,
        };
        Ok(Self { store: Arc::new(store), recovered, target, _source: held })
    }

    /// The rebuilt rows, with the bodies. Whoever has them lets go before the end.
    pub fn store(&self) -> Arc<EmbeddedStore> {
        Arc::clone(&self.store)
    }

    /// What was found, and what was not.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Puts the rebuilt rows into their place. Gives where the damaged ones are now, if they were replaced.
    pub fn finish(self) -> Result<(Recovered, Option<PathBuf>), StoreError> {
        let Self { store, recovered, target, _source } = self;
        let in_use = || StoreError::Unusable("the recovered rows are in use".to_owned());
        let store = Arc::into_inner(store).ok_or_else(in_use)?;
        let Directory { tables, segments, directory } = store.into_storage();
        // Closed before their directory is renamed.
        drop((tables, segments));
        let damaged = match target {
            None => put_in_place(&directory)?,
            Some(target) => {
                directory.finish()?;
                give_name(directory.root(), &target)?;
                None
            }
        };
        Ok((recovered, damaged))
    }
}

/// Where a new directory is made, until it is complete. What an attempt that was cut short left there goes.
fn begin_new(target: &Path) -> Result<PathBuf, StoreError> {
    let named = |error| io_error(format!("make {}", target.display()), error);
    if !holds_nothing(target).map_err(named)? {
        let what = format!("{} is there already; name a new directory", target.display());
        return Err(StoreError::Unusable(what));
    }
    let mut unfinished = target.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    if unfinished.try_exists().map_err(named)? {
        // Somebody may be at it.
        let _held = DataDir::hold(&unfinished)?;
        remove_dir_if_there(&unfinished).map_err(named)?;
    }
    Ok(unfinished)
}

/// Gives a complete directory its name.
fn give_name(unfinished: &Path, target: &Path) -> Result<(), StoreError> {
    let named = |error| io_error(format!("make {}", target.display()), error);
    fs::rename(unfinished, target).map_err(named)?;
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync_dir(parent.unwrap_or(Path::new("."))).map_err(named)
}

fn put_in_place(directory: &DataDir) -> Result<Option<PathBuf>, StoreError> {
    let root = directory.root();
    let named = |error| io_error(format!("replace the state of {}", root.display()), error);
    let state = directory.state();
    let damaged = if state.try_exists().map_err(named)? {
        let damaged = free_name(root).map_err(named)?;
        fs::rename(&state, &damaged).map_err(named)?;
        Some(damaged)
    } else {
        None
    };
    fs::rename(root.join(STATE_RECOVERED), &state).map_err(named)?;
    sync_dir(root).map_err(named)?;
    // It followed the damaged rows; it is built again when it is next used.
    remove_dir_if_there(&DataDir::index(root)).map_err(named)?;
    directory.finish()?;
    Ok(damaged)
}

/// A name for damaged rows that nothing has yet.
fn free_name(root: &Path) -> io::Result<PathBuf> {
    let mut name = root.join(STATE_DAMAGED);
    let mut number = 1;
    while name.try_exists()? {
        number += 1;
        name = root.join(format!("{STATE_DAMAGED}.{number}"));
    }
    Ok(name)
}

/// Copies the bodies of all crawls, and the keys of the service: without them it would be open.
fn copy_files(
    source: &Path,
    target: &Path,
    progress: &mut dyn FnMut(RecoveryProgress),
) -> Result<(), StoreError> {
    let named =
        |error| io_error(format!("copy {} to {}", source.display(), target.display()), error);
    let files = files_to_copy(source).map_err(named)?;
    let of = files.iter().map(|(_, bytes)| bytes).sum();
    let mut copied = 0;
    for (file, bytes) in files {
        progress(RecoveryProgress::Copying { bytes: copied, of });
        let to = target.join(&file);
        let made = to.parent().map_or(Ok(()), create_private_dir);
        made.and_then(|()| copy(&source.join(&file), &to)).map_err(named)?;
        copied += bytes;
    }
    progress(RecoveryProgress::Copying { bytes: copied, of });
    Ok(())
}

/// Paths below a directory, and their lengths.
fn files_to_copy(source: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let mut files = Vec::new();
    if let Ok(keys) = fs::metadata(DataDir::keys_file(source)) {
        files.push((PathBuf::from("keys.json"), keys.len()));
    }
    for crawl in fs::read_dir(source.join("bodies"))? {
        let crawl = crawl?;
        let name = crawl.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("crawl_"));
        if number.is_none_or(|number| number.parse::<u32>().is_err()) {
            continue;
        }
        for file in fs::read_dir(crawl.path())? {
            let file = file?;
            let metadata = file.metadata()?;
            if metadata.is_file() {
                let path = Path::new("bodies").join(&name).join(file.file_name());
                files.push((path, metadata.len()));
            }
        }
    }
    Ok(files)
}

/// Copies a file. One that was copied in part before is copied again.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = fs::File::open(from)?;
    let file = private_file().write(true).create(true).truncate(true).open(to)?;
    let mut to = io::BufWriter::with_capacity(COPY_BYTES, file);
    io::copy(&mut from, &mut to)?;
    to.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}
