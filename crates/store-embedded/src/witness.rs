//! [`Witness`]: how far the state database had come, in a small file of its own beside its files.
//!
//! The database believes whatever its files say: an empty journal is a new one, and an older list of
//! tables is the newest. The witness says what they must have reached at least. It is written
//! when the database is opened and closed. It is in `state/`, so that whoever replaces that
//! directory as a whole replaces the witness with it. A missing or damaged one proves nothing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::private_files::private_file;

pub(crate) const WITNESS_FILE: &str = "telusur.witness";
const WITNESS_FILE_NEW: &str = "telusur.witness.new";

/// What the files of the state database must have reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Witness {
    /// Whether the database was closed after this was written: then nothing may be missing.
    pub is_closed: bool,
    /// Per journal the number of its last batch, if it has one.
    pub journals: BTreeMap<u64, Option<u64>>,
    /// Per keyspace the number of its list of tables.
    pub keyspaces: BTreeMap<u64, u64>,
}

#[derive(Serialize, Deserialize)]
struct Signed {
    witness: Witness,
    /// xxh3 of the witness as JSON, in hexadecimal.
    checksum: String,
}

impl Witness {
    /// Reads the witness of a state directory. `None` if there is none that can be believed.
    pub(crate) fn read(state: &Path) -> Option<Self> {
        let bytes = fs::read(state.join(WITNESS_FILE)).ok()?;
        let signed: Signed = serde_json::from_slice(&bytes).ok()?;
        let checksum = checksum(&signed.witness).ok()?;
        (checksum == signed.checksum).then_some(signed.witness)
    }

    /// Replaces the witness of a state directory. It is there whole, or the old one is.
    pub(crate) fn write(self, state: &Path) -> io::Result<()> {
        let checksum = checksum(&self)?;
        let text = serde_json::to_string(&Signed { witness: self, checksum })?;
        let new = state.join(WITNESS_FILE_NEW);
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = private_file().write(true).create_new(true).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, state.join(WITNESS_FILE))?;
        File::open(state)?.sync_all()
    }

    /// What `found` lacks of this witness: the file, relative to `state/`, and what is missing of it.
    pub(crate) fn missing_from(&self, found: &Self) -> Option<(String, String)> {
        for (keyspace, version) in &self.keyspaces {
            let file = format!("keyspaces/{keyspace}/current");
            match found.keyspaces.get(keyspace) {
                None => {
                    return Some((
                        format!("keyspaces/{keyspace}"),
                        "it is gone, and holds rows".into(),
                    ));
                }
                Some(is) if is < version => {
                    return Some((
                        file,
                        format!("it names list {is} of its tables, and list {version} was written"),
                    ));
                }
                Some(_) => {}
            }
        }
        self.missing_journal(found)
    }

    fn missing_journal(&self, found: &Self) -> Option<(String, String)> {
        let name = |journal: &u64| format!("{journal}.jnl");
        let gone = || "the file is gone, and holds the newest rows".to_owned();
        let newest = self.journals.keys().next_back()?;
        if found.journals.keys().next_back().is_none_or(|is| is < newest) {
            return Some((name(newest), gone()));
        }
        let went_on = self.is_behind(found);
        for (journal, last) in &self.journals {
            let Some(is) = found.journals.get(journal) else {
                // Journals whose rows are all in tables are deleted while the database runs, and
                // only then.
                if self.is_closed && !went_on {
                    return Some((name(journal), gone()));
                }
                continue;
            };
            if is < last {
                let is =
                    is.map_or("it holds no batch".into(), |is| format!("its last batch is {is}"));
                let last = last.unwrap_or(0);
                return Some((name(journal), format!("{is}, and batch {last} was written")));
            }
        }
        None
    }

    /// Whether the database has written something since.
    fn is_behind(&self, found: &Self) -> bool {
        let last =
            |witness: &Self| witness.journals.iter().next_back().map(|(id, last)| (*id, *last));
        last(self) < last(found) || self.keyspaces != found.keyspaces
    }
}

fn checksum(witness: &Witness) -> io::Result<String> {
    let text = serde_json::to_string(witness)?;
    Ok(format!("{:016x}", xxh3_64(text.as_bytes())))
}
