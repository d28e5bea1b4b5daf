//! [`KeyFile`]: the keys of a data directory, as they are kept: a name, what they allow, and a hash. A key
//! itself is shown once, when it is made, and is nowhere afterwards.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use data_encoding::BASE64URL_NOPAD;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use telusur_model::Timestamp;

use super::Scope;

/// What every key begins with, so that it is recognised when it turns up where it should not.
const PREFIX: &str = "tlk_";
/// Random bytes of a key. A guess is hopeless, so a fast hash is as good as a slow one.
const KEY_BYTES: usize = 32;
/// How the name of a file ends that is not whole yet.
const NEW: &str = "new";
/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Keys of one directory.
const KEYS_MAX: usize = 1000;
/// How often the keys are read again if another process changes them meanwhile.
const READS_MAX: usize = 5;
/// Hexadecimal digits of a checksum in the lock, and of the checksum of that.
const SUM_CHARS: usize = 32;
const CHECK_CHARS: usize = 8;
/// Longest name.
const NAME_CHARS_MAX: usize = 100;

/// Why keys cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum KeyRingError {
    /// The operating system refused.
    #[error("{doing} {path}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The file is not one of ours.
    #[error("{path} holds no keys that can be read: {why}")]
    Damaged {
        /// Which file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// What was asked for cannot be a key.
    #[error("{0}")]
    Refused(String),
}

/// What is kept of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredKey {
    /// Names it.
    pub id: String,
    /// What it is for.
    pub name: String,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// BLAKE3 of the key, in hexadecimal.
    pub hash: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

/// The keys of a data directory.
#[derive(Clone, Debug)]
pub struct KeyFile {
    path: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct Content {
    keys: Vec<StoredKey>,
}

impl KeyFile {
    /// The keys in this file, which need not exist.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Whether a key was ever made or revoked here, even if the file is gone. Where that cannot be found out,
    /// it was.
    pub(crate) fn was_changed(&self) -> bool {
        match fs::symlink_metadata(self.lock_path()) {
            Ok(_) => true,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    fn lock_path(&self) -> PathBuf {
        self.path.with_extension("lock")
    }

    /// Whether there were keys, and their file is gone. Nobody is let in then.
    pub fn is_lost(&self) -> bool {
        let is_gone = matches!(
            fs::symlink_metadata(&self.path),
            Err(error) if error.kind() == io::ErrorKind::NotFound
        );
        is_gone && !self.written_sums().is_empty()
    }

    /// All keys. A file that is not the one that was written last is refused: in an older one a key that
    /// was revoked is still there, and in a damaged one a key may have no end.
    pub fn keys(&self) -> Result<Vec<StoredKey>, KeyRingError> {
        for _read in 0..READS_MAX {
            let Some(text) = self.read()? else { return Ok(Vec::new()) };
            let sums = self.written_sums();
            if sums.is_empty() || sums.contains(&sum_of(&text)) {
                let content: Content = serde_json::from_slice(&text)
                    .map_err(|error| self.damaged(error.to_string()))?;
                return Ok(content.keys);
            }
        }
        Err(self
            .damaged("it is not the one that was written last, which keys.lock tells of".into()))
    }

    fn read(&self) -> Result<Option<Vec<u8>>, KeyRingError> {
        let mut text = Vec::new();
        let read = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => Err(error),
            Ok(file) => file.take(FILE_BYTES_MAX).read_to_end(&mut text),
        };
        read.map_err(|error| self.io("read", error))?;
        Ok(Some(text))
    }

    fn damaged(&self, why: String) -> KeyRingError {
        KeyRingError::Damaged { path: self.path.display().to_string(), why }
    }

    /// Checksums of the file that was written last, and, while it is replaced, of the one before. None in a
    /// directory of an older version, and none that is damaged itself: that proves nothing.
    fn written_sums(&self) -> Vec<String> {
        let text = fs::read_to_string(self.lock_path()).unwrap_or_default();
        let sum = |line: &str| {
            let (sum, check) = line.split_once(' ')?;
            let is_whole = sum.len() == SUM_CHARS && check_of(sum) == check;
            is_whole.then(|| sum.to_owned())
        };
        text.lines().filter_map(sum).collect()
    }

    /// Makes a key. Gives the key itself, which is never seen again, and what is kept of it.
    pub fn create(
        &self,
        name: &str,
        scopes: &[Scope],
        now: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> Result<(String, StoredKey), KeyRingError> {
        let refuse = |what: &str| KeyRingError::Refused(what.to_owned());
        if scopes.is_empty() {
            let what = "a key needs at least one scope: search, read, crawl, metrics or admin";
            return Err(refuse(what));
        }
        if name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
            return Err(refuse("the name of a key is at most 100 characters on one line"));
        }
        let mut random = [0; KEY_BYTES];
        File::open("/dev/urandom")
            .and_then(|mut file| file.read_exact(&mut random))
            .map_err(|error| self.io("make a key for", error))?;
        let key = format!("{PREFIX}{}", BASE64URL_NOPAD.encode(&random));
        let hash = hash_of(&key);
        let mut scopes = scopes.to_vec();
        scopes.sort_unstable();
        scopes.dedup();
        let stored = StoredKey {
            id: format!("k_{}", &hash[..12]),
            name: name.to_owned(),
            scopes,
            hash,
            created_at: now,
            expires_at,
        };
        self.change(|keys| {
            if keys.len() >= KEYS_MAX {
                return Err(refuse("there are 1000 keys already; revoke some first"));
            }
            keys.push(stored.clone());
            Ok(())
        })?;
        Ok((key, stored))
    }

    /// Revokes a key. Says whether there was one.
    pub fn revoke(&self, id: &str) -> Result<bool, KeyRingError> {
        let mut was_there = false;
        self.change(|keys| {
            let before = keys.len();
            keys.retain(|key| key.id != id);
            was_there = keys.len() < before;
            Ok(())
        })?;
        Ok(was_there)
    }

    /// Two processes may want to change the keys at the same time: a lock beside the file lets one after
    /// the other. The file is replaced as a whole, so that a reader sees the old one or the new one.
    fn change(
        &self,
        change: impl FnOnce(&mut Vec<StoredKey>) -> Result<(), KeyRingError>,
    ) -> Result<(), KeyRingError> {
        let lock = private_file()
            .create(true)
            .open(self.lock_path())
            .map_err(|error| self.io("lock", error))?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive)
            .map_err(|error| self.io("lock", error.into()))?;
        let mut keys = self.keys()?;
        change(&mut keys)?;
        let text = serde_json::to_vec_pretty(&Content { keys }).unwrap_or_default();
        let before = self.read()?;
        let sums: Vec<String> = before.iter().chain([&text]).map(|text| sum_of(text)).collect();
        // Both first: whichever of the two a kill leaves is the right one.
        write_sums(&lock, &sums)
            .and_then(|()| self.replace(&text))
            .and_then(|()| write_sums(&lock, &sums[sums.len() - 1..]))
            .map_err(|error| self.io("write", error))
    }

    /// Under a name that nobody can foresee and that is new, so that nothing lies in its way.
    fn replace(&self, text: &[u8]) -> io::Result<()> {
        self.remove_leftovers()?;
        let mut random = [0; 8];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        let name = format!("{:016x}.{NEW}", u64::from_le_bytes(random));
        let new = self.path.with_extension(name);
        let mut file = private_file().create_new(true).open(&new)?;
        let written = file
            .write_all(text)
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&new, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written?;
        File::open(self.parent())?.sync_all()
    }

    /// Removes what processes left that were killed while they wrote. The lock is ours.
    fn remove_leftovers(&self) -> io::Result<()> {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        for entry in fs::read_dir(self.parent())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let rest = name.strip_prefix(&*stem).and_then(|rest| rest.strip_prefix('.'));
            if rest.is_some_and(|rest| rest == NEW || rest.ends_with(&format!(".{NEW}"))) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn parent(&self) -> &Path {
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        parent.unwrap_or(Path::new("."))
    }

    fn io(&self, doing: &'static str, source: io::Error) -> KeyRingError {
        KeyRingError::Io { doing, path: self.path.display().to_string(), source }
    }
}

/// Writes checksums of the keys into their lock.
fn write_sums(lock: &File, sums: &[String]) -> io::Result<()> {
    let lines: String = sums.iter().map(|sum| format!("{sum} {}\n", check_of(sum))).collect();
    lock.write_all_at(lines.as_bytes(), 0)?;
    lock.set_len(lines.len() as u64)?;
    lock.sync_all()
}

fn sum_of(text: &[u8]) -> String {
    blake3::hash(text).to_hex()[..SUM_CHARS].to_owned()
}

fn check_of(sum: &str) -> String {
    blake3::hash(sum.as_bytes()).to_hex()[..CHECK_CHARS].to_owned()
}

/// How a file is opened that only its owner reads. A link is refused: its target is not ours.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    options.write(true).mode(0o600).custom_flags(no_follow);
    options
}

/// The hash that is kept of a key.
pub(super) fn hash_of(key: &str) -> String {
    blake3::hash(key.as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_shown_once_and_kept_as_a_hash() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.json");
        let file = KeyFile::new(&path);
        assert!(file.keys().unwrap().is_empty());
        let (key, stored) = file.create("ci", &[Scope::Read], Timestamp(1), None).unwrap();
        assert!(key.starts_with(PREFIX) && key.len() == 47, "{key}");
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&key[4..]) && text.contains(&stored.hash));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(file.keys().unwrap(), std::slice::from_ref(&stored));
        assert!(file.revoke(&stored.id).unwrap());
        assert!(!file.revoke(&stored.id).unwrap());
        assert!(file.keys().unwrap().is_empty());
    }

    #[test]
    fn links_in_the_way_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, target) = (dir.path().join("keys.json"), dir.path().join("precious"));
        fs::write(&target, "years of work").unwrap();
        for name in ["keys.new", "keys.0123.new", "keys.lock"] {
            std::os::unix::fs::symlink(&target, dir.path().join(name)).unwrap();
        }
        let file = KeyFile::new(&path);
        assert!(
            file.create("x", &[Scope::Read], Timestamp(1), None).is_err(),
            "the lock is a link"
        );
        fs::remove_file(dir.path().join("keys.lock")).unwrap();
        file.create("x", &[Scope::Read], Timestamp(1), None).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "years of work");
        let mut names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["keys.json", "keys.lock", "precious"]);
    }

    /// A key that was revoked once came back with an older copy of the file.
    #[test]
    fn a_file_that_is_not_the_last_one_opens_no_door() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.json");
        let file = KeyFile::new(&path);
        let ends = Some(Timestamp(1_900_000_000_000));
        let (_, first) = file.create("ci", &[Scope::Admin], Timestamp(1), ends).unwrap();
        let older = fs::read(&path).unwrap();
        assert!(file.revoke(&first.id).unwrap());
        let newest = fs::read(&path).unwrap();
        fs::write(&path, &older).unwrap();
        assert!(matches!(file.keys(), Err(KeyRingError::Damaged { .. })));
        assert!(file.create("x", &[Scope::Read], Timestamp(1), None).is_err());
        // A flipped bit in the name of the field once gave a key that never ends.
        file.create("y", &[Scope::Read], Timestamp(1), ends).unwrap_err();
        fs::write(&path, &newest).unwrap();
        file.create("y", &[Scope::Read], Timestamp(1), ends).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("expires_at", "expires_au")).unwrap();
        assert!(matches!(file.keys(), Err(KeyRingError::Damaged { .. })));
        // A lock that is damaged proves nothing; one without checksums is of an older version.
        fs::write(&path, &text).unwrap();
        for lock in ["", "\0\0\0", &"f".repeat(41)] {
            fs::write(dir.path().join("keys.lock"), lock).unwrap();
            assert_eq!(file.keys().unwrap().len(), 1, "{lock:?}");
        }
    }

    #[test]
    fn lost_keys_are_told_from_keys_that_never_were() {
        let dir = tempfile::tempdir().unwrap();
        let file = KeyFile::new(&dir.path().join("keys.json"));
        assert!(!file.is_lost());
        file.create("ci", &[Scope::Read], Timestamp(1), None).unwrap();
        assert!(!file.is_lost());
        fs::remove_file(dir.path().join("keys.json")).unwrap();
        assert!(file.is_lost());
        file.create("new", &[Scope::Read], Timestamp(1), None).unwrap();
        assert!(!file.is_lost() && file.keys().unwrap().len() == 1);
    }

    #[test]
    fn a_damaged_file_opens_no_door() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.json");
        fs::write(&path, "{").unwrap();
        assert!(matches!(KeyFile::new(&path).keys(), Err(KeyRingError::Damaged { .. })));
        assert!(KeyFile::new(&path).create("x", &[Scope::Read], Timestamp(1), None).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "{", "nothing is repaired by deleting");
    }
}
