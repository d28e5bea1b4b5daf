//! Looks at the files of the state database before the database itself does, and changes nothing. The
//! database takes its own files for half-made when one of its markers is missing, and starts over or
//! deletes them; it cuts a journal at the first thing that it cannot read. A directory
//! that was once complete has lost something then, and is refused.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use telusur_ledger::{StateDamage, StoreError};

use crate::io_error;
use crate::journal::{self, Journal, Rest};
use crate::manifest::{self, BadFile, CURRENT, TABLES};
use crate::private_files::private_file;
use crate::witness::Witness;

/// Without it a new database is begun in the same place.
const VERSION_MARKER: &str = "version";
const VERSION_MARKER_BYTES: &[u8] = b"FJL\x03";
const LOCK: &str = "lock";
const KEYSPACES: &str = "keyspaces";
const JOURNAL_SUFFIX: &str = ".jnl";

/// What was found in a state directory in which nothing is missing.
pub(crate) struct Look {
    witness: Witness,
    /// The torn end of the last journal: its path, and where its whole batches end.
    torn: Option<(PathBuf, u64)>,
}

/// Refuses the state database of a complete directory if opening it would lose rows.
pub(crate) fn look(state: &Path) -> Result<Look, StoreError> {
    refuse_missing(state)?;
    let found = found_in(state)?;
    match Witness::read(state) {
        Some(witness) => {
            if let Some((file, what)) = witness.missing_from(&found.witness) {
                return Err(damaged(state, BadFile { path: state.join(file), byte: None, what }));
            }
        }
        None => tracing::info!(
            dir = %state.display(),
            "no witness of the state, as in a directory of an older version; it is written now"
        ),
    }
    Ok(Look { witness: found.witness, torn: found.torn })
}

impl Look {
    /// Makes ready what was looked at: from here on files change.
    ///
    /// A torn end is cut here and not by the database, which refuses some ends (those that have
    /// their trailer, but not all bytes before it), and allocates whatever length damaged bytes name.
    pub(crate) fn prepare(self, state: &Path) -> Result<(), StoreError> {
        let write = |error| io_error(format!("write {}", state.display()), error);
        if let Some((path, end)) = &self.torn {
            let file = OpenOptions::new().write(true).open(path).map_err(write)?;
            tracing::info!(file = %path.display(), end, "the end of the journal was cut short by a kill");
            file.set_len(*end).and_then(|()| file.sync_all()).map_err(write)?;
        }
        // From here on journals may go whose rows are all in tables.
        self.witness.write(state).map_err(write)?;
        // It holds nothing, and copies of a directory leave it out.
        let lock = state.join(LOCK);
        private_file().write(true).create(true).truncate(false).open(lock).map(drop).map_err(write)
    }
}

/// Writes down how far the files of a state database have come that has been closed.
pub(crate) fn bear_witness(state: &Path) -> Result<(), StoreError> {
    let witness = Witness { is_closed: true, ..found_in(state)?.witness };
    let named = |error| io_error(format!("write the witness of {}", state.display()), error);
    witness.write(state).map_err(named)
}

/// The first damaged table file, if one is. Reads all of them.
pub(crate) fn damaged_table(state: &Path) -> Option<StoreError> {
    let keyspaces = fs::read_dir(state.join(KEYSPACES)).ok()?;
    for keyspace in keyspaces.filter_map(Result::ok) {
        if let Ok(Some(bad)) = manifest::damaged_table(&keyspace.path()) {
            return Some(damaged(state, bad));
        }
    }
    None
}

/// An error that names a file of the state directory.
pub(crate) fn damaged(state: &Path, bad: BadFile) -> StoreError {
    let data = state.parent().unwrap_or(state);
    let file = bad.path.strip_prefix(data).unwrap_or(&bad.path);
    StoreError::StateDamaged(Box::new(StateDamage {
        data: data.display().to_string(),
        file: file.display().to_string(),
        byte: bad.byte,
        what: bad.what,
    }))
}

struct FoundFiles {
    witness: Witness,
    torn: Option<(PathBuf, u64)>,
}

fn found_in(state: &Path) -> Result<FoundFiles, StoreError> {
    let keyspaces = keyspaces_of(state)?;
    let (journals, torn) = journals_of(state)?;
    Ok(FoundFiles { witness: Witness { is_closed: false, journals, keyspaces }, torn })
}

fn refuse_missing(state: &Path) -> Result<(), StoreError> {
    let read = |error| io_error(format!("read {}", state.display()), error);
    let keyspaces = state.join(KEYSPACES);
    // The first keyspace names all others: without it they count as left over, and are deleted.
    let names = keyspaces.join("0");
    let marker = state.join(VERSION_MARKER);
    for needed in
        [state.to_owned(), marker.clone(), keyspaces.clone(), names.clone(), names.join(CURRENT)]
    {
        if !needed.try_exists().map_err(read)? {
            return Err(gone(state, needed));
        }
    }
    if fs::read(&marker).map_err(read)? != VERSION_MARKER_BYTES {
        let what = "it is not the mark of a state database".to_owned();
        return Err(damaged(state, BadFile { path: marker, byte: Some(0), what }));
    }
    Ok(())
}

fn gone(state: &Path, path: PathBuf) -> StoreError {
    damaged(state, BadFile { path, byte: None, what: "it is gone".to_owned() })
}

fn keyspaces_of(state: &Path) -> Result<BTreeMap<u64, u64>, StoreError> {
    let read = |error| io_error(format!("read {}", state.display()), error);
    let mut versions = BTreeMap::new();
    for entry in fs::read_dir(state.join(KEYSPACES)).map_err(read)? {
        let path = entry.map_err(read)?.path();
        let Some(number) = number_of(&path, "") else { continue };
        if !path.join(CURRENT).try_exists().map_err(read)? {
            if has_tables(&path).map_err(read)? {
                return Err(gone(state, path.join(CURRENT)));
            }
            continue;
        }
        let manifest = manifest::read(&path).map_err(read)?;
        versions.insert(number, manifest.map_err(|bad| damaged(state, bad))?.version);
    }
    Ok(versions)
}

type Torn = Option<(PathBuf, u64)>;

fn journals_of(state: &Path) -> Result<(BTreeMap<u64, Option<u64>>, Torn), StoreError> {
    let read = |error| io_error(format!("read {}", state.display()), error);
    let mut paths = BTreeMap::new();
    for entry in fs::read_dir(state).map_err(read)? {
        let path = entry.map_err(read)?.path();
        if let Some(number) = number_of(&path, JOURNAL_SUFFIX) {
            paths.insert(number, path);
        }
    }
    let Some(newest) = paths.keys().next_back().copied() else {
        return Err(gone(state, state.join("0.jnl")));
    };
    let (mut journals, mut torn, mut last) = (BTreeMap::new(), None, None);
    let mut before: Option<u64> = None;
    for (number, path) in paths {
        // They are made one after the other, and the oldest goes first.
        if let Some(missing) = before.map(|before| before + 1).filter(|next| *next != number) {
            return Err(gone(state, state.join(format!("{missing}.jnl"))));
        }
        before = Some(number);
        let journal = journal::read(&path, last).map_err(read)?;
        if let Some(what) = fault_of(&journal, number == newest) {
            return Err(damaged(state, BadFile { path, byte: Some(journal.whole_bytes), what }));
        }
        last = journal.last_seqno.or(last);
        journals.insert(number, journal.last_seqno);
        if journal.rest == Rest::Torn {
            torn = Some((path, journal.whole_bytes));
        }
    }
    Ok((journals, torn))
}

/// What is wrong with a journal. Only the newest one may have a torn end.
fn fault_of(journal: &Journal, is_newest: bool) -> Option<String> {
    let before = journal.batches;
    match journal.rest {
        Rest::Empty => None,
        Rest::Torn if is_newest => None,
        Rest::Torn => {
            Some(format!("unreadable after {before} whole batches, and a newer journal follows"))
        }
        Rest::Hole { batches_behind } => Some(format!(
            "unreadable after {before} whole batches, with {batches_behind} whole batches behind it"
        )),
        Rest::Backwards { seqno } => {
            Some(format!("batch {seqno} follows {before} whole batches with higher numbers"))
        }
    }
}

fn number_of(path: &Path, suffix: &str) -> Option<u64> {
    path.file_name()?.to_str()?.strip_suffix(suffix)?.parse().ok()
}

fn has_tables(keyspace: &Path) -> io::Result<bool> {
    match fs::read_dir(keyspace.join(TABLES)) {
        Ok(mut tables) => Ok(tables.next().is_some()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
