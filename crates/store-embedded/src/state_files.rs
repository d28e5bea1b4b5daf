//! Looks at the files of the state database before the database itself does: it takes its own files
//! for half-made when one of its markers is missing, and starts over or deletes them. A
//! directory that was once complete has lost something then, and is refused.

use std::fs;
use std::io;
use std::path::Path;

use telusur_ledger::StoreError;

use crate::io_error;

/// Without it a new database is begun in the same place.
const VERSION_MARKER: &str = "version";
const KEYSPACES: &str = "keyspaces";
/// The list of tables of a keyspace. A keyspace without one is deleted.
const CURRENT: &str = "current";
const TABLES: &str = "tables";

/// Refuses the state database of a complete directory if opening it would delete rows.
pub(crate) fn refuse_damaged(state: &Path) -> Result<(), StoreError> {
    let read = |error| io_error(format!("read {}", state.display()), error);
    let keyspaces = state.join(KEYSPACES);
    // The first keyspace names all others: without it they count as left over, and are deleted.
    let names = keyspaces.join("0");
    for needed in [
        state.to_owned(),
        state.join(VERSION_MARKER),
        keyspaces.clone(),
        names.clone(),
        names.join(CURRENT),
    ] {
        if !exists(&needed).map_err(read)? {
            return Err(gone(&needed));
        }
    }
    for keyspace in fs::read_dir(&keyspaces).map_err(read)? {
        let keyspace = keyspace.map_err(read)?.path();
        let current = keyspace.join(CURRENT);
        if !exists(&current).map_err(read)? && has_tables(&keyspace).map_err(read)? {
            return Err(gone(&current));
        }
    }
    Ok(())
}

fn gone(path: &Path) -> StoreError {
    let path = path.display();
    StoreError::Damaged(format!("{path} is gone; restore the directory from a copy"))
}

fn exists(path: &Path) -> io::Result<bool> {
    path.try_exists()
}

fn has_tables(keyspace: &Path) -> io::Result<bool> {
    match fs::read_dir(keyspace.join(TABLES)) {
        Ok(mut tables) => Ok(tables.next().is_some()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
