//! [`SimDisk`]: a disk in memory that can lose power. What was synced is always there afterwards;
//! of everything else any part may be missing, torn or out of order, as the seed decides. It can
//! also change what was synced ([`SimDisk::decay`]), fail a call on purpose, and it writes down what it was asked to do.

mod crash;
mod decay;
mod fault;
mod sim_file;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use telusur_store_embedded::{Disk, DiskFile};

use self::fault::FaultPlan;
use self::sim_file::{OpenFile, SimFile};
use crate::random::Dice;

pub use self::decay::{Decay, Decayed};
pub use self::fault::{DiskCall, DiskFailure, DiskFault};

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    /// The whole disk: every call takes the lock for its own length, as a kernel would.
    state: Arc<Mutex<DiskState>>,
}

/// One call that a disk was asked to carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the arguments of the calls of the same names")]
pub enum DiskEvent {
    /// A directory was made.
    CreateDir { dir: String },
    /// A file was opened.
    Open { path: String, is_new: bool },
    /// The entries of a directory were made durable.
    SyncDir { dir: String },
    /// A directory got another name.
    RenameDir { from: String, to: String },
    /// A file got another name.
    RenameFile { from: String, to: String },
    /// Files of a directory were deleted, or all of it.
    RemoveDir { dir: String },
    /// Bytes were written.
    Write { path: String, offset: u64, bytes: usize },
    /// A file was cut.
    Truncate { path: String, len: u64 },
    /// The content of a file was made durable.
    Sync { path: String },
    /// The call failed on purpose.
    Failed { call: DiskCall, path: String },
}

/// Everything there is on the disk, and what the operating system still holds back from it.
#[derive(Debug, Default)]
struct DiskState {
    /// Files by number: a name may be taken over by another file, an open handle is not.
    files: Vec<SimFile>,
    /// What programs see.
    entries: BTreeMap<String, Entry>,
    /// What certainly is there after a power loss.
    entries_synced: BTreeMap<String, Entry>,
    faults: FaultPlan,
    events: Vec<DiskEvent>,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Dir,
    File(FileNo),
}

/// A file, by its place in [`DiskState::files`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileNo(usize);

impl SimDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// The disk as it may be found after a power loss at this moment. This one goes on, so that
    /// many seeds can be tried from one state.
    pub fn crash(&self, seed: u64) -> Self {
        let after = crash::after_power_loss(&self.lock(), &mut Dice::new(seed));
        Self { state: Arc::new(Mutex::new(after)) }
    }

    /// Makes a coming call fail.
    pub fn fail(&self, fault: DiskFault) {
        self.lock().faults.add(fault);
    }

    /// How many calls of this kind there were, failed ones included: the range in which a loop over
    /// "the n-th call fails" has to look.
    pub fn calls(&self, call: DiskCall) -> u64 {
        self.lock().faults.calls(call)
    }

    /// What was done so far, in order.
    pub fn events(&self) -> Vec<DiskEvent> {
        self.lock().events.clone()
    }

    /// The paths of all files, sorted.
    pub fn paths(&self) -> Vec<String> {
        let state = self.lock();
        let files = state.entries.iter().filter(|(_, entry)| matches!(entry, Entry::File(_)));
        files.map(|(path, _)| path.clone()).collect()
    }

    /// What a program would read from a file, if it exists.
    pub fn content(&self, path: &str) -> Option<Vec<u8>> {
        let state = self.lock();
        match state.entries.get(path)? {
            Entry::File(no) => Some(state.files[no.0].content().to_vec()),
            Entry::Dir => None,
        }
    }

    fn open_file(&self, path: &str, makes_new: bool) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.lock();
        state.call(DiskCall::Open, path)?;
        state.check_dir(parent(path))?;
        let (no, is_new) = match state.entries.get(path) {
            Some(Entry::File(no)) => (*no, false),
            Some(Entry::Dir) => return Err(io::ErrorKind::IsADirectory.into()),
            None if !makes_new => return Err(io::ErrorKind::NotFound.into()),
            None => {
                let no = FileNo(state.files.len());
                state.files.push(SimFile::default());
                state.entries.insert(path.to_owned(), Entry::File(no));
                (no, true)
            }
        };
        state.events.push(DiskEvent::Open { path: path.to_owned(), is_new });
        Ok(Arc::new(OpenFile { disk: self.clone(), no, path: path.to_owned() }))
    }

    fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for SimDisk {
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.call(DiskCall::CreateDir, dir)?;
        for ancestor in with_ancestors(dir) {
            match state.entries.get(ancestor) {
                Some(Entry::File(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
                Some(Entry::Dir) => {}
                None => {
                    state.entries.insert(ancestor.to_owned(), Entry::Dir);
                    // The promise of the trait: the directory that holds it is synced.
                    state.sync_entries_of(parent(ancestor));
                }
            }
        }
        state.events.push(DiskEvent::CreateDir { dir: dir.to_owned() });
        Ok(())
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.open_file(path, false)
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.open_file(path, true)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.call(DiskCall::SyncDir, dir)?;
        state.check_dir(dir)?;
        state.sync_entries_of(dir);
        state.events.push(DiskEvent::SyncDir { dir: dir.to_owned() });
        Ok(())
    }

    fn dirs(&self) -> io::Result<Vec<String>> {
        let state = self.lock();
        let is_top = |path: &str, entry: &Entry| matches!(entry, Entry::Dir) && !path.contains('/');
        let found = state.entries.iter().filter(|(path, entry)| is_top(path, entry));
        Ok(found.map(|(path, _)| path.clone()).collect())
    }

    fn files(&self, dir: &str) -> io::Result<Vec<String>> {
        let state = self.lock();
        state.check_dir(dir)?;
        let names =
            state.entries.keys().filter_map(|path| path.strip_prefix(dir)?.strip_prefix('/'));
        Ok(names.filter(|name| !name.contains('/')).map(str::to_owned).collect())
    }

    fn rename_dir(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.call(DiskCall::RenameDir, from)?;
        state.check_dir(from)?;
        if state.entries.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let DiskState { entries, entries_synced, .. } = &mut *state;
        // The promise of the trait: the new name is durable, and so is what was durable by the old one.
        for entries in [entries, entries_synced] {
            let paths: Vec<String> =
                entries.keys().filter(|path| is_within(path, from)).cloned().collect();
            for path in paths {
                if let Some(entry) = entries.remove(&path) {
                    entries.insert(format!("{to}{}", &path[from.len()..]), entry);
                }
            }
        }
        state.sync_entries_of(parent(to));
        state.events.push(DiskEvent::RenameDir { from: from.to_owned(), to: to.to_owned() });
        Ok(())
    }

    fn rename_file(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.call(DiskCall::RenameFile, from)?;
        let entry = state.entries.get(from).copied().ok_or(io::ErrorKind::NotFound)?;
        state.entries.remove(from);
        state.entries.insert(to.to_owned(), entry);
        state.events.push(DiskEvent::RenameFile { from: from.to_owned(), to: to.to_owned() });
        Ok(())
    }

    fn remove_dir(&self, dir: &str, files_max: usize) -> io::Result<bool> {
        let mut state = self.lock();
        state.call(DiskCall::RemoveDir, dir)?;
        let within = state.entries.iter().filter(|(path, _)| is_within(path, dir));
        let files = within.filter(|(_, entry)| matches!(entry, Entry::File(_)));
        let files: Vec<String> = files.map(|(path, _)| path.clone()).collect();
        let is_gone = files.len() <= files_max;
        if is_gone {
            state.entries.retain(|path, _| !is_within(path, dir));
        }
        for path in files.iter().take(files_max) {
            state.entries.remove(path);
        }
        state.events.push(DiskEvent::RemoveDir { dir: dir.to_owned() });
        Ok(is_gone)
    }
}

impl DiskState {
    /// Counts a call, and fails it if that was planned.
    fn call(&mut self, call: DiskCall, path: &str) -> io::Result<()> {
        match self.faults.due(call) {
            None => Ok(()),
            Some(failure) => {
                self.events.push(DiskEvent::Failed { call, path: path.to_owned() });
                Err(failure.into())
            }
        }
    }

    fn check_dir(&self, dir: &str) -> io::Result<()> {
        match self.entries.get(dir) {
            _ if dir.is_empty() => Ok(()),
            Some(Entry::Dir) => Ok(()),
            Some(Entry::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// What stands directly in a directory becomes durable, and so does what no longer stands there.
    fn sync_entries_of(&mut self, dir: &str) {
        let entries = &self.entries;
        // A directory that is gone takes what was in it along.
        let gone = |path: &str| {
            with_ancestors(path).any(|it| parent(it) == dir && !entries.contains_key(it))
        };
        self.entries_synced.retain(|path, _| !gone(path));
        let here = entries.iter().filter(|(path, _)| parent(path) == dir);
        self.entries_synced.extend(here.map(|(path, &entry)| (path.clone(), entry)));
    }
}

/// `a/b` of `a/b/c`; the root, which is empty, of `a`.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// `a`, `a/b`, `a/b/c`.
fn with_ancestors(path: &str) -> impl Iterator<Item = &str> {
    let slashes = path.match_indices('/').map(|(at, _)| at);
    slashes.chain([path.len()]).map(|end| &path[..end]).filter(|path| !path.is_empty())
}

fn is_within(path: &str, dir: &str) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
