//! [`Reach`]: follows how far the files of the state database have come, while it runs.
//!
//! After every batch it looks what has changed since the last one: which lists of tables were replaced and
//! which journals are there. That is one `stat` per keyspace and one list of `state/`; only what was replaced
//! is read, and nothing is synced.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::manifest::{self, CURRENT};
use crate::state_files::{self, TableEnds};
use crate::witness::{KeyspaceReach, ReachFile, Witness};

/// When a file was written, and which file it is.
type Stamp = (u64, i64, i64);

/// How far the files of an open database have come.
pub(crate) struct Reach {
    state: PathBuf,
    file: ReachFile,
    witness: Witness,
    /// Of the list of tables of each keyspace. Where two lists were written at the same moment, the witness is
    /// behind until the next one.
    lists: BTreeMap<u64, Stamp>,
    /// What is known of table files: they never change.
    ends: HashMap<u64, TableEnds>,
}

impl Reach {
    /// Begins with what was witnessed at the opening.
    pub(crate) fn begin(state: &Path, keyspaces: impl Iterator<Item = u64>) -> io::Result<Self> {
        let opened = Witness::read(state).unwrap_or_default();
        let mut reach = Self {
            state: state.to_owned(),
            file: ReachFile::open(state)?,
            witness: Witness { is_closed: false, ..opened },
            lists: keyspaces.map(|keyspace| (keyspace, Stamp::default())).collect(),
            ends: HashMap::new(),
        };
        reach.look_at_lists()?;
        reach.look_at_journals()?;
        // Whose file it is, before the first batch: who copies the directory now has a copy of one in use.
        reach.file.write(&reach.witness)?;
        Ok(reach)
    }

    /// A batch was made durable. `seqno`: its number, or a lower one that is above those before.
    pub(crate) fn follow(
        &mut self,
        seqno: u64,
        keyspaces: impl Iterator<Item = u64>,
    ) -> io::Result<()> {
        // The lists first: a journal that goes afterwards goes with a newer list than the one witnessed.
        self.look_at_lists()?;
        let newest = self.newest_journal();
        self.look_at_journals()?;
        if let Some((journal, reach)) = self.witness.journals.iter_mut().next_back() {
            // Where a journal has just been begun the batch may be in the one before.
            if newest == Some(*journal) {
                reach.last = reach.last.max(Some(seqno));
            }
            reach.keyspaces.extend(keyspaces.map(|keyspace| (keyspace, seqno)));
        }
        self.file.write(&self.witness)
    }

    fn newest_journal(&self) -> Option<u64> {
        self.witness.journals.keys().next_back().copied()
    }

    fn look_at_lists(&mut self) -> io::Result<()> {
        let keyspaces = self.state.join(state_files::KEYSPACES);
        for (keyspace, known) in &mut self.lists {
            let dir = keyspaces.join(keyspace.to_string());
            let stamp = stamp_of(&fs::metadata(dir.join(CURRENT))?);
            if stamp == *known {
                continue;
            }
            let ends = self.ends.entry(*keyspace).or_default();
            // Tables of a list that is replaced meanwhile may be gone already: the next look finds the newer one.
            let Ok(list) = manifest::read(&dir)? else { continue };
            let Ok(reach) = ends.reach_of(&dir, &list)? else { continue };
            let flushed = self.witness.keyspaces.get(keyspace).and_then(|reach| reach.flushed);
            let flushed = flushed.max(reach.flushed);
            let reach = KeyspaceReach { flushed, ..reach };
            self.witness.keyspaces.insert(*keyspace, reach);
            *known = stamp;
        }
        Ok(())
    }

    fn look_at_journals(&mut self) -> io::Result<()> {
        let found = state_files::journal_paths(&self.state)?;
        self.witness.journals.retain(|journal, _| found.contains_key(journal));
        for journal in found.keys() {
            self.witness.journals.entry(*journal).or_default();
        }
        Ok(())
    }
}

fn stamp_of(about: &Metadata) -> Stamp {
    (about.ino(), about.mtime(), about.mtime_nsec())
}
