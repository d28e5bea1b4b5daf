//! [`DataDir`]: whose directory this is, and that it is ours alone.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use telusur_store::StoreError;

use crate::io_error;

/// The layout that this program writes. A directory of a later one is refused, never "repaired".
const FORMAT: u32 = 3;
const VERSION_FILE: &str = "telusur.version";
const VERSION_FILE_NEW: &str = "telusur.version.new";
const LOCK_FILE: &str = "telusur.lock";
/// What may lie in a directory whose making was cut short.
const OWN_ENTRIES: [&str; 9] = [
    VERSION_FILE,
    VERSION_FILE_NEW,
    LOCK_FILE,
    "state",
    "bodies",
    "index",
    CONTROL_SOCKET,
    PARSER_SOCKET,
    KEYS_FILE,
];
const CONTROL_SOCKET: &str = "control.sock";
const PARSER_SOCKET: &str = "parser.sock";
const KEYS_FILE: &str = "keys.json";

/// An open, locked data directory.
#[derive(Debug)]
pub struct DataDir {
    root: PathBuf,
    version: Version,
    is_new: bool,
    /// Holds the lock: the kernel frees it when the process ends, however it ends.
    _lock: File,
}

#[derive(Debug, Serialize, Deserialize)]
struct Version {
    product: String,
    format: u32,
    key_seed: u64,
}

impl DataDir {
    /// Takes the lock of a directory, making the directory if it is new or empty.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let named = |error| io_error(format!("open the data directory {}", root.display()), error);
        refuse_foreign(root)?;
        fs::create_dir_all(root).map_err(named)?;
        let lock = take_lock(root)?;
        let (version, is_new) = match read_version(root)? {
            Some(version) => {
                refuse_lost_state(root)?;
                (version, false)
            }
            None => {
                // The making of this directory was cut short, or begins now.
                remove_if_there(&root.join("state")).map_err(named)?;
                let key_seed = random_seed().map_err(named)?;
                (Version { product: "telusur".into(), format: FORMAT, key_seed }, true)
            }
        };
        for part in ["state", "bodies"] {
            fs::create_dir_all(root.join(part)).map_err(named)?;
        }
        Ok(Self { root: root.to_owned(), version, is_new, _lock: lock })
    }

    /// Marks a new directory as complete. Called once everything in it has been made: a directory
    /// without this mark holds nothing that was ever acknowledged, and is made again from scratch.
    pub(crate) fn finish(&self) -> Result<(), StoreError> {
        if !self.is_new {
            return Ok(());
        }
        write_version(&self.root, &self.version)
            .map_err(|error| io_error(format!("write {}", self.root.display()), error))
    }

    /// Whether a data directory is there at all.
    pub fn exists(root: &Path) -> bool {
        root.join(VERSION_FILE).is_file()
    }

    /// The process that holds the lock of a directory, if one does.
    pub fn owner(root: &Path) -> Option<String> {
        match take_lock(root) {
            Err(StoreError::Locked { pid }) => Some(pid),
            _ => None,
        }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the owner listens for commands from other terminals.
    pub fn control_socket(root: &Path) -> PathBuf {
        root.join(CONTROL_SOCKET)
    }

    /// Where the hashes of the service's keys are kept.
    pub fn keys_file(root: &Path) -> PathBuf {
        root.join(KEYS_FILE)
    }

    /// Where the owner meets the children that parse for it. It is there only while one comes in;
    /// after a kill at that moment it lies around until the next one.
    pub fn parser_socket(root: &Path) -> PathBuf {
        root.join(PARSER_SOCKET)
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    pub(crate) fn bodies(&self) -> PathBuf {
        self.root.join("bodies")
    }

    pub(crate) fn key_seed(&self) -> u64 {
        self.version.key_seed
    }

    /// Where the search index of a data directory lies.
    pub fn index(root: &Path) -> PathBuf {
        root.join("index")
    }

    /// Entries that do not belong into the directory.
    pub(crate) fn strangers(&self) -> io::Result<Vec<String>> {
        strangers(&self.root, &[VERSION_FILE_NEW])
    }
}

fn strangers(root: &Path, except: &[&str]) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !OWN_ENTRIES.contains(&name.as_str()) || except.contains(&name.as_str()) {
            found.push(name);
        }
    }
    Ok(found)
}

/// A directory with other people's files in it must not become a data directory by accident.
fn refuse_foreign(root: &Path) -> Result<(), StoreError> {
    let listed = match strangers(root, &[]) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(io_error(format!("read the data directory {}", root.display()), error));
        }
        Ok(listed) => listed,
    };
    let is_ours = root.join(VERSION_FILE).is_file();
    match listed.first() {
        Some(stranger) if !is_ours => Err(StoreError::Unusable(format!(
            "{} is not a Telusur data directory: it holds {stranger:?}; name an empty or new directory with --data",
            root.display()
        ))),
        _ => Ok(()),
    }
}

fn take_lock(root: &Path) -> Result<File, StoreError> {
    let path = root.join(LOCK_FILE);
    let named = |error| io_error(format!("lock {}", path.display()), error);
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(named)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut pid = String::new();
            // The owner writes its pid right after taking the lock; a reader that is faster finds
            // nothing yet.
            let _ = file.take(32).read_to_string(&mut pid);
            let pid = pid.trim();
            return Err(StoreError::Locked {
                pid: if pid.is_empty() { "unknown".into() } else { pid.to_owned() },
            });
        }
        Err(error) => return Err(named(error.into())),
    }
    file.set_len(0).map_err(named)?;
    file.rewind().map_err(named)?;
    writeln!(file, "{}", std::process::id()).map_err(named)?;
    Ok(file)
}

fn read_version(root: &Path) -> Result<Option<Version>, StoreError> {
    let path = root.join(VERSION_FILE);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(format!("read {}", path.display()), error)),
        Ok(text) => text,
    };
    let version: Version = serde_json::from_str(&text)
        .map_err(|error| StoreError::Damaged(format!("{}: {error}", path.display())))?;
    if version.product != "telusur" {
        return Err(StoreError::Unusable(format!(
            "{} belongs to {:?}, not to Telusur",
            root.display(),
            version.product
        )));
    }
    if version.format != FORMAT {
        return Err(StoreError::Unusable(format!(
            "{} has data format {}, this program reads format {FORMAT}; use the version of Telusur that wrote it",
            root.display(),
            version.format
        )));
    }
    Ok(Some(version))
}

/// Written last when a directory is made, and by rename: it is there whole, or not at all.
fn write_version(root: &Path, version: &Version) -> io::Result<()> {
    let text = serde_json::to_string(version).map_err(io::Error::other)?;
    let new = root.join(VERSION_FILE_NEW);
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, root.join(VERSION_FILE))?;
    File::open(root)?.sync_all()
}

/// An empty database in the place of a lost one would look like an empty store.
fn refuse_lost_state(root: &Path) -> Result<(), StoreError> {
    let state = root.join("state");
    let is_empty = fs::read_dir(&state).map_or(true, |mut entries| entries.next().is_none());
    if is_empty {
        let what = format!("{} is gone; restore it from a copy", state.display());
        return Err(StoreError::Damaged(what));
    }
    Ok(())
}

fn remove_if_there(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn random_seed() -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}
