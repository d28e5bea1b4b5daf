//! [`DataDir`]: whose directory this is, and that it is ours alone.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use telusur_ledger::{StateDamage, StoreError};
use xxhash_rust::xxh3::xxh3_64;

use crate::private_files::{close_to_others, create_private_dir, private_file};
use crate::reserve::{self, RESERVE_FILE};
use crate::{io_error, state_files};

/// The layout that this program writes. A directory of a later one is refused, never "repaired".
///
/// 4: pages of all crawls are found in one order, and crawls by name. 5: removals have a place in that
/// order, and redirected ids are found where they ended. 6: segments hold the record of each step.
const FORMAT: u32 = 6;
/// The oldest layout whose lookups need not be made again.
const LOOKUPS_FORMAT: u32 = 5;
/// The oldest layout that is brought up to date when it is opened.
const OLDEST_FORMAT: u32 = 3;
const VERSION_FILE: &str = "telusur.version";
const VERSION_FILE_NEW: &str = "telusur.version.new";
const LOCK_FILE: &str = "telusur.lock";
/// What may be in a directory whose making was cut short.
const OWN_ENTRIES: [&str; 12] = [
    VERSION_FILE,
    VERSION_FILE_NEW,
    LOCK_FILE,
    STATE,
    STATE_RECOVERED,
    BODIES,
    "index",
    CONTROL_SOCKET,
    PARSER_SOCKET,
    KEYS_FILE,
    KEYS_LOCK,
    RESERVE_FILE,
];
const STATE: &str = "state";
/// Rebuilt rows, until they take the place of the damaged ones.
pub(crate) const STATE_RECOVERED: &str = "state.recovered";
/// Damaged rows that others have taken the place of; followed by a number if there are several.
pub(crate) const STATE_DAMAGED: &str = "state.damaged";
const BODIES: &str = "bodies";
const CONTROL_SOCKET: &str = "control.sock";
/// Left by an earlier version that was killed while a parser started.
const PARSER_SOCKET: &str = "parser.sock";
const KEYS_FILE: &str = "keys.json";
/// Beside the keys, held while they are changed.
const KEYS_LOCK: &str = "keys.lock";

/// An open, locked data directory.
#[derive(Debug)]
pub struct DataDir {
    root: PathBuf,
    version: Version,
    is_new: bool,
    /// Whether it is a copy of a directory that was in use, as far as its state says.
    is_copy: bool,
    /// Holds the lock: the kernel frees it when the process ends, however it ends.
    _lock: File,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Version {
    product: String,
    format: u32,
    key_seed: u64,
    /// xxh3 of the rest, in hexadecimal: a wrong digit of the seed would make every URL a new one. Older versions
    /// wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

impl Version {
    fn new(format: u32, key_seed: u64) -> Self {
        let version = Self { product: "telusur".into(), format, key_seed, checksum: None };
        Self { checksum: Some(version.sum()), ..version }
    }

    fn sum(&self) -> String {
        let Self { product, format, key_seed, checksum: _ } = self;
        format!("{:016x}", xxh3_64(format!("{product} {format} {key_seed}").as_bytes()))
    }
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing that was ever finished: no directory, an empty one, or one whose making was cut short.
    Nothing,
    /// A data directory.
    Data,
}

impl DataDir {
    /// Takes the lock of a directory, making the directory if it is new or empty.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        Self::open_or_make(root, random_seed)
    }

    /// Makes a directory for what is recovered of another one.
    pub(crate) fn make_for(root: &Path, source: &Path) -> Result<Self, StoreError> {
        let seed = read_version(source).ok().flatten().map(|version| version.key_seed);
        Self::open_or_make(root, || seed.map_or_else(random_seed, Ok))
    }

    /// Takes the lock of a directory whose state is not looked at.
    pub(crate) fn open_damaged(root: &Path) -> Result<Self, StoreError> {
        let named = |error| io_error(format!("open the data directory {}", root.display()), error);
        let mut lock = take_lock(root)?;
        let version = match read_version(root) {
            Ok(Some(version)) => version,
            // Lost or damaged: keys of URLs have the seeds of their crawls.
            Ok(None) | Err(StoreError::StateDamaged(_)) => {
                let key_seed = random_seed().map_err(named)?;
                Version::new(0, key_seed)
            }
            Err(error) => return Err(error),
        };
        sign_lock(root, &mut lock)?;
        Ok(Self { root: root.to_owned(), version, is_new: false, is_copy: false, _lock: lock })
    }

    /// Locks a directory against others for as long as the result is kept, and changes nothing in it.
    pub(crate) fn hold(root: &Path) -> Result<Option<File>, StoreError> {
        match fs::metadata(root.join(LOCK_FILE)) {
            Ok(_) => take_lock(root).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_error(format!("lock {}", root.display()), error)),
        }
    }

    fn open_or_make(
        root: &Path,
        new_seed: impl FnOnce() -> io::Result<u64>,
    ) -> Result<Self, StoreError> {
        let named = |error| io_error(format!("open the data directory {}", root.display()), error);
        refuse_foreign(root)?;
        create_private_dir(root).map_err(named)?;
        let mut lock = take_lock(root)?;
        // Everything from here on writes a little.
        reserve::release_if_full(root);
        let (version, is_new, is_copy) = match read_version(root)? {
            Some(version) => {
                let state = root.join(STATE);
                let looked = state_files::look(&state)?;
                let is_copy = looked.is_copy();
                looked.prepare(&state)?;
                (version, false, is_copy)
            }
            None => {
                refuse_lost_version(root)?;
                let key_seed = new_seed().map_err(named)?;
                let version = Version::new(FORMAT, key_seed);
                begin_making(root, &version).map_err(named)?;
                (version, true, false)
            }
        };
        sign_lock(root, &mut lock)?;
        close(root);
        for part in [STATE, BODIES] {
            create_private_dir(&root.join(part)).map_err(named)?;
        }
        Ok(Self { root: root.to_owned(), version, is_new, is_copy, _lock: lock })
    }

    /// Whether it is a copy of a directory that was in use: its bodies may be of another moment than its state.
    pub(crate) fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// Whether an older program wrote the rows last.
    pub(crate) fn is_older(&self) -> bool {
        self.version.format < FORMAT
    }

    /// Whether rows are missing that others are found by.
    pub(crate) fn lacks_lookups(&self) -> bool {
        self.version.format < LOOKUPS_FORMAT
    }

    /// Marks a directory as complete and up to date, once everything in it has been made. Nothing is
    /// acknowledged before. From then on older programs refuse it.
    pub(crate) fn finish(&self) -> Result<(), StoreError> {
        let named = |error| io_error(format!("write {}", self.root.display()), error);
        let is_rewritten = self.is_older() || self.version.checksum.is_none();
        if is_rewritten {
            let version = Version::new(FORMAT, self.version.key_seed);
            write_new_version(&self.root, &version).map_err(named)?;
        }
        if self.is_new || is_rewritten {
            finish_making(&self.root).map_err(named)?;
        }
        reserve::top_up_if_plenty(&self.root);
        Ok(())
    }

    /// Looks whether a data directory is there, and changes nothing. Fails if it cannot be looked at,
    /// belongs to somebody else, or has lost its version file.
    pub fn find(root: &Path) -> Result<Found, StoreError> {
        let read = |error| io_error(format!("read the data directory {}", root.display()), error);
        match fs::metadata(root.join(VERSION_FILE)) {
            Ok(_) => return Ok(Found::Data),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(read(error)),
        }
        if holds_nothing(root).map_err(read)? {
            return Ok(Found::Nothing);
        }
        refuse_foreign(root)?;
        refuse_lost_version(root)?;
        Ok(Found::Nothing)
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

    pub(crate) fn state(&self) -> PathBuf {
        self.root.join(STATE)
    }

    pub(crate) fn bodies(&self) -> PathBuf {
        self.root.join(BODIES)
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

impl Drop for DataDir {
    /// What was freed meanwhile is reserved for the next who meets a full disk.
    fn drop(&mut self) {
        if self.root.join(VERSION_FILE).exists() {
            reserve::top_up(&self.root);
        }
    }
}

fn strangers(root: &Path, except: &[&str]) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_own = OWN_ENTRIES.contains(&name.as_str())
            || is_new_keys_file(&name)
            || name.starts_with(STATE_DAMAGED);
        if !is_own || except.contains(&name.as_str()) {
            found.push(name);
        }
    }
    Ok(found)
}

/// The keys while they are rewritten; what a killed process left is removed by the next that does.
fn is_new_keys_file(name: &str) -> bool {
    name.starts_with("keys.") && name.ends_with(".new")
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
    let named = |error: io::Error| match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => StoreError::Unusable(
            format!("{} is a symbolic link, which is not followed; remove it", path.display()),
        ),
        _ => io_error(format!("lock {}", path.display()), error),
    };
    let file = private_file().read(true).write(true).create(true).open(&path).map_err(named)?;
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
    Ok(file)
}

/// Says in the lock who has it. Not before the directory was looked at: one that is refused stays as it is.
fn sign_lock(root: &Path, lock: &mut File) -> Result<(), StoreError> {
    let signed = lock.set_len(0).and_then(|()| lock.rewind());
    let signed = signed.and_then(|()| writeln!(lock, "{}", std::process::id()));
    signed.map_err(|error| io_error(format!("lock {}", root.join(LOCK_FILE).display()), error))
}

fn read_version(root: &Path) -> Result<Option<Version>, StoreError> {
    let path = root.join(VERSION_FILE);
    let text = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(format!("read {}", path.display()), error)),
        Ok(text) => text,
    };
    let version: Version =
        serde_json::from_slice(&text).map_err(|error| damaged_version(root, error.to_string()))?;
    if version.checksum.as_ref().is_some_and(|sum| *sum != version.sum()) {
        return Err(damaged_version(root, "its checksum is not the one that was written".into()));
    }
    if version.product != "telusur" {
        return Err(StoreError::Unusable(format!(
            "{} belongs to {:?}, not to Telusur",
            root.display(),
            version.product
        )));
    }
    if !(OLDEST_FORMAT..=FORMAT).contains(&version.format) {
        return Err(StoreError::Unusable(format!(
            "{} has data format {}, this program reads formats {OLDEST_FORMAT} to {FORMAT}; use the version of Telusur that wrote it",
            root.display(),
            version.format
        )));
    }
    Ok(Some(version))
}

/// What is stored holds cookies and pages behind passwords: it is nobody else's to read.
fn close(root: &Path) {
    match close_to_others(root) {
        Ok(false) => {}
        Ok(true) => {
            tracing::info!(dir = %root.display(), "the data directory is closed to other users now");
        }
        // It belongs to somebody else, who may have reasons.
        Err(error) => {
            tracing::warn!(dir = %root.display(), %error, "other users may read the data directory");
        }
    }
}

/// Says that the directory is being made, and is not complete: durable before anything else is made,
/// so that what a kill leaves behind can be told from a directory that lost its version file.
fn begin_making(root: &Path, version: &Version) -> io::Result<()> {
    // Of an earlier attempt: nothing in it was ever acknowledged. It goes before the mark of that attempt is
    // replaced: killed in between, state without a mark would be refused.
    remove_dir_if_there(&root.join(STATE))?;
    sync_dir(root)?;
    write_new_version(root, version)
}

fn write_new_version(root: &Path, version: &Version) -> io::Result<()> {
    let text = serde_json::to_string(version).map_err(io::Error::other)?;
    let new = root.join(VERSION_FILE_NEW);
    // Whatever has this name is of an earlier attempt, or a link that somebody laid there.
    remove_file_if_there(&new)?;
    let mut file = private_file().write(true).create_new(true).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    sync_dir(root)
}

/// The version file gets its name last: it is there whole, or not at all.
fn finish_making(root: &Path) -> io::Result<()> {
    fs::rename(root.join(VERSION_FILE_NEW), root.join(VERSION_FILE))?;
    sync_dir(root)
}

/// A directory without a version file is taken for a new one only if nothing can be lost by that: it
/// has no state, or its making was cut short; and it has no bodies.
fn refuse_lost_version(root: &Path) -> Result<(), StoreError> {
    let read = |error| io_error(format!("read the data directory {}", root.display()), error);
    let was_being_made = root.join(VERSION_FILE_NEW).symlink_metadata().is_ok();
    let part = if !was_being_made && !holds_nothing(&root.join(STATE)).map_err(read)? {
        STATE
    } else if !holds_nothing(&root.join(BODIES)).map_err(read)? {
        BODIES
    } else {
        return Ok(());
    };
    let what = format!("it is gone, and {part}/ beside it holds data, which is left as it is");
    Err(damaged_version(root, what))
}

fn damaged_version(root: &Path, what: String) -> StoreError {
    StoreError::StateDamaged(Box::new(StateDamage {
        data: root.display().to_string(),
        file: VERSION_FILE.to_owned(),
        byte: None,
        what,
        is_torn_copy: false,
    }))
}

/// Whether a directory is empty or does not exist.
pub(crate) fn holds_nothing(dir: &Path) -> io::Result<bool> {
    match fs::read_dir(dir) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

pub(crate) fn remove_dir_if_there(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn remove_file_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn random_seed() -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}
