//! Looks at the files of the state database before the database itself does, and changes nothing. The
//! database takes its own files for half-made when one of its markers is missing, and starts over or
//! deletes them; it cuts a journal at the first thing that it cannot read. A directory
//! that was once complete has lost something then, and is refused.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use telusur_ledger::{FilesRead, StateDamage, StoreError};
use xxhash_rust::xxh3::Xxh3Default;

use crate::io_error;
use crate::journal::{self, Journal, Rest};
use crate::manifest::{self, BadFile, CURRENT, Manifest, TABLES};
use crate::private_files::private_file;
use crate::table_file::{self, TableEnd};
use crate::witness::{JournalReach, KeyspaceReach, REACH_FILE, ReachFile, Shortfall, Witness};

/// Without it a new database is begun in the same place.
const VERSION_MARKER: &str = "version";
const VERSION_MARKER_BYTES: &[u8] = b"FJL\x03";
const LOCK: &str = "lock";
pub(crate) const KEYSPACES: &str = "keyspaces";
/// The keyspace that names the others.
const NAMES_KEYSPACE: &str = "0";
const JOURNAL_SUFFIX: &str = ".jnl";

/// What was found in a state directory in which nothing is missing.
pub(crate) struct Look {
    witness: Witness,
    /// The torn end of the last journal: its path, and where its whole batches end.
    torn: Option<(PathBuf, u64)>,
    is_copy: bool,
}

/// Refuses the state database of a complete directory if opening it would lose rows.
pub(crate) fn look(state: &Path) -> Result<Look, StoreError> {
    let since = Instant::now();
    let opened = Witness::read(state);
    let reach = ReachFile::read(state);
    // Closed before it was copied, its files are of one moment.
    let is_closed = [opened.as_ref(), reach.as_ref().map(|reach| &reach.witness)]
        .iter()
        .all(|witness| witness.is_some_and(|witness| witness.is_closed));
    let copy_of = reach.as_ref().filter(|reach| reach.is_elsewhere && !is_closed);
    let looked = look_for_damage(state, opened, reach.as_ref().map(|reach| &reach.witness));
    tracing::debug!(took_ms = since.elapsed().as_millis(), "looked at the files of the state");
    let Some(copy_of) = copy_of else { return looked };
    match looked {
        Ok(look) if copy_of.witness.is_same_moment(&look.witness) => {
            Ok(Look { is_copy: true, ..look })
        }
        Ok(_) => {
            let what = "it was copied at another moment than the other files".to_owned();
            let path = state.join(REACH_FILE);
            Err(torn_copy(damage(state, BadFile { path, byte: None, what })))
        }
        Err(StoreError::StateDamaged(damage)) => Err(torn_copy(*damage)),
        Err(error) => Err(error),
    }
}

/// An error that says that the files of a copy do not fit together.
pub(crate) fn torn_copy(damage: StateDamage) -> StoreError {
    StoreError::StateDamaged(Box::new(StateDamage { is_torn_copy: true, ..damage }))
}

fn look_for_damage(
    state: &Path,
    opened: Option<Witness>,
    reach: Option<&Witness>,
) -> Result<Look, StoreError> {
    refuse_missing(state)?;
    let found = found_in(state)?;
    if opened.is_none() {
        tracing::info!(
            dir = %state.display(),
            "no witness of the state, as in a directory of an older version; it is written now"
        );
    }
    for witness in opened.iter().chain(reach) {
        if let Some(shortfall) = witness.missing_from(&found.witness) {
            return Err(short_of(state, shortfall));
        }
    }
    Ok(Look { witness: found.witness, torn: found.torn, is_copy: false })
}

fn short_of(state: &Path, shortfall: Shortfall) -> StoreError {
    let bad = match shortfall {
        Shortfall::File(file, what) => BadFile { path: state.join(file), byte: None, what },
        Shortfall::Table(keyspace) => {
            let dir = state.join(KEYSPACES).join(keyspace.to_string());
            let what = "one of its tables is not the one that was written".to_owned();
            let unknown = BadFile { path: dir.join(TABLES), byte: None, what };
            // Which one is found by reading all of them.
            manifest::damaged_table(&dir).ok().flatten().unwrap_or(unknown)
        }
    };
    damaged(state, bad)
}

impl Look {
    /// Whether this is a copy of a directory that was in use. Its state is of one moment all the same.
    pub(crate) fn is_copy(&self) -> bool {
        self.is_copy
    }

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
        let reach = ReachFile::open(state).and_then(|mut reach| reach.write(&self.witness));
        reach.map_err(write)?;
        // It holds nothing, and copies of a directory leave it out.
        let lock = state.join(LOCK);
        private_file().write(true).create(true).truncate(false).open(lock).map(drop).map_err(write)
    }
}

/// Writes down how far the files of a state database have come that has been closed.
pub(crate) fn bear_witness(state: &Path) -> Result<(), StoreError> {
    let witness = Witness { is_closed: true, ..found_in(state)?.witness };
    let named = |error| io_error(format!("write the witness of {}", state.display()), error);
    witness.write(state).map_err(named)?;
    ReachFile::open(state).and_then(|mut reach| reach.write(&witness)).map_err(named)
}

/// The first damaged table file, if one is. Reads all of them.
pub(crate) fn damaged_table(state: &Path) -> Option<StateDamage> {
    let keyspaces = fs::read_dir(state.join(KEYSPACES)).ok()?;
    let keyspaces = keyspaces.filter_map(Result::ok).map(|entry| entry.path());
    keyspaces.into_iter().find_map(|keyspace| damaged_table_of(state, &keyspace))
}

/// The same for one keyspace.
pub(crate) fn damaged_table_of(state: &Path, keyspace: &Path) -> Option<StateDamage> {
    let bad = manifest::damaged_table(keyspace).ok()??;
    Some(damage(state, bad))
}

/// An error that names a file of the state directory.
pub(crate) fn damaged(state: &Path, bad: BadFile) -> StoreError {
    StoreError::StateDamaged(Box::new(damage(state, bad)))
}

pub(crate) fn damage(state: &Path, bad: BadFile) -> StateDamage {
    let data = state.parent().unwrap_or(state);
    let file = bad.path.strip_prefix(data).unwrap_or(&bad.path);
    StateDamage {
        data: data.display().to_string(),
        file: file.display().to_string(),
        byte: bad.byte,
        what: bad.what,
        is_torn_copy: false,
    }
}

/// The ends of the table files of a keyspace, by number. A table file never changes.
#[derive(Default)]
pub(crate) struct TableEnds(HashMap<u64, TableEnd>);

impl TableEnds {
    /// How far the tables of a list reach. Reads the ends of those that are not known yet.
    pub(crate) fn reach_of(
        &mut self,
        keyspace: &Path,
        list: &Manifest,
    ) -> io::Result<Result<KeyspaceReach, BadFile>> {
        let (mut hash, mut flushed) = (Xxh3Default::new(), None);
        let mut known = HashMap::with_capacity(list.tables.len());
        for table in &list.tables {
            let end = match self.0.get(&table.number) {
                Some(end) => *end,
                None => match table_file::read_end(&table.path(keyspace))? {
                    Ok(end) => end,
                    Err(bad) => return Ok(Err(bad)),
                },
            };
            hash.update(&end.hash.to_le_bytes());
            flushed = flushed.max(Some(end.seqno_max.saturating_add(table.seqno_base)));
            known.insert(table.number, end);
        }
        self.0 = known;
        Ok(Ok(KeyspaceReach { version: list.version, tables: hash.digest(), flushed }))
    }
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
    let names = keyspaces.join(NAMES_KEYSPACE);
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
    // It is small, and all of it is read at every opening.
    match damaged_table_of(state, &names) {
        Some(damage) => Err(StoreError::StateDamaged(Box::new(damage))),
        None => Ok(()),
    }
}

fn gone(state: &Path, path: PathBuf) -> StoreError {
    damaged(state, BadFile { path, byte: None, what: "it is gone".to_owned() })
}

fn keyspaces_of(state: &Path) -> Result<BTreeMap<u64, KeyspaceReach>, StoreError> {
    let read = |error| io_error(format!("read {}", state.display()), error);
    let mut reaches = BTreeMap::new();
    for entry in fs::read_dir(state.join(KEYSPACES)).map_err(read)? {
        let path = entry.map_err(read)?.path();
        let Some(number) = number_of(&path, "") else {
            // The database takes every directory there for one of its own.
            if path.is_dir() {
                let what = "it is no part of the state database".to_owned();
                return Err(damaged(state, BadFile { path, byte: None, what }));
            }
            continue;
        };
        if !path.join(CURRENT).try_exists().map_err(read)? {
            if has_tables(&path).map_err(read)? {
                return Err(gone(state, path.join(CURRENT)));
            }
            continue;
        }
        let list = manifest::read(&path).map_err(read)?.map_err(|bad| damaged(state, bad))?;
        let reach = TableEnds::default().reach_of(&path, &list).map_err(read)?;
        reaches.insert(number, reach.map_err(|bad| damaged(state, bad))?);
    }
    Ok(reaches)
}

/// The journals, by number.
pub(crate) fn journal_paths(state: &Path) -> io::Result<BTreeMap<u64, PathBuf>> {
    let mut paths = BTreeMap::new();
    for entry in fs::read_dir(state)? {
        let path = entry?.path();
        if let Some(number) = number_of(&path, JOURNAL_SUFFIX) {
            paths.insert(number, path);
        }
    }
    Ok(paths)
}

/// Reads the journals of an open database. Nothing else does before the next opening.
pub(crate) fn read_journals(state: &Path) -> Result<FilesRead, StoreError> {
    let mut files = FilesRead::default();
    let paths = journal_paths(state);
    let paths = paths.map_err(|error| io_error(format!("read {}", state.display()), error))?;
    let newest = paths.keys().next_back().copied();
    for (number, path) in paths {
        let is_newest = Some(number) == newest;
        let mut fault = journal_fault(&path, is_newest, &mut files.bytes)?;
        // A batch that is just being written may look like a hole.
        if is_newest && fault.is_some() {
            let again = journal_fault(&path, is_newest, &mut files.bytes)?;
            fault = fault.filter(|fault| again.as_ref() == Some(fault));
        }
        files.damaged.extend(fault.map(|bad| damage(state, bad)));
    }
    Ok(files)
}

fn journal_fault(
    path: &Path,
    is_newest: bool,
    bytes: &mut u64,
) -> Result<Option<BadFile>, StoreError> {
    let journal = match journal::read(path, None) {
        // All of its rows are in tables now.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let (path, what) = (path.to_owned(), error.to_string());
            return Ok(Some(BadFile { path, byte: None, what }));
        }
        Ok(journal) => journal,
    };
    *bytes += journal.whole_bytes;
    let fault = fault_of(&journal, is_newest);
    Ok(fault.map(|what| BadFile { path: path.to_owned(), byte: Some(journal.whole_bytes), what }))
}

type Torn = Option<(PathBuf, u64)>;

fn journals_of(state: &Path) -> Result<(BTreeMap<u64, JournalReach>, Torn), StoreError> {
    let read = |error| io_error(format!("read {}", state.display()), error);
    let paths = journal_paths(state).map_err(read)?;
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
        if journal.rest == Rest::Torn {
            torn = Some((path, journal.whole_bytes));
        }
        last = journal.last_seqno.or(last);
        let reach = JournalReach { last: journal.last_seqno, keyspaces: journal.keyspaces };
        journals.insert(number, reach);
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
