//! [`KeyRing`]: the keys in memory, in step with their file: another process may make or revoke one.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use telusur_model::Timestamp;
use tokio::sync::Notify;

use super::key_file::hash_of;
use super::{KeyFile, KeyRingError, Scope, StoredKey};

/// How often the file is looked at: a key that was revoked in another terminal ends within this time.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The keys.
pub(crate) struct KeyRing {
    file: KeyFile,
    path: std::path::PathBuf,
    /// Held to look a key up or to put in others, never while waiting.
    known: Mutex<Known>,
    /// Whether a key is needed. Decided when the service starts, and never taken back: a file that is
    /// lost, or a last key that is revoked, opens no door.
    needed: AtomicBool,
    changed: Notify,
}

struct Known {
    /// By hash. A guesser who times the lookup learns about hashes, which lead to no key.
    keys: Arc<HashMap<String, StoredKey>>,
    stamp: Option<Stamp>,
    looked: Instant,
}

impl KeyRing {
    pub(crate) fn open(path: &Path) -> Result<Self, KeyRingError> {
        let file = KeyFile::new(path);
        let stamp = stamp_of(path);
        let keys = Arc::new(by_hash(file.keys()?));
        // A file without keys is that of somebody who revoked them all, not of somebody who wants none; and a
        // lock without a file is that of keys which were lost.
        let needed = AtomicBool::new(stamp.is_some() || file.was_changed());
        let known = Mutex::new(Known { keys, stamp, looked: Instant::now() });
        Ok(Self { file, path: path.to_owned(), known, needed, changed: Notify::new() })
    }

    /// Whether requests need a key. Once they do, they always do.
    pub(crate) fn are_needed(&self) -> bool {
        self.keys();
        self.needed.load(Ordering::Acquire)
    }

    /// From now on a key is needed.
    pub(crate) fn require(&self) {
        self.needed.store(true, Ordering::Release);
    }

    /// Told when keys were made or revoked.
    pub(crate) fn changed(&self) -> &Notify {
        &self.changed
    }

    /// Whether nobody has a key.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys().is_empty()
    }

    /// The key that this text is, if it is one and has not ended.
    pub(crate) fn find(&self, key: &str, now: Timestamp) -> Option<StoredKey> {
        self.with_hash(&hash_of(key), now)
    }

    /// The same by its hash.
    pub(crate) fn with_hash(&self, hash: &str, now: Timestamp) -> Option<StoredKey> {
        let found = self.keys().get(hash).cloned()?;
        found.expires_at.is_none_or(|end| now < end).then_some(found)
    }

    /// All keys, the oldest first.
    pub(crate) fn list(&self) -> Vec<StoredKey> {
        let mut keys: Vec<StoredKey> = self.keys().values().cloned().collect();
        keys.sort_by(|left, right| {
            left.created_at.cmp(&right.created_at).then_with(|| left.id.cmp(&right.id))
        });
        keys
    }

    /// Makes a key. Blocks.
    pub(crate) fn create(
        &self,
        name: &str,
        scopes: &[Scope],
        now: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> Result<(String, StoredKey), KeyRingError> {
        let made = self.file.create(name, scopes, now, expires_at)?;
        self.reload()?;
        Ok(made)
    }

    /// Revokes a key. Blocks.
    pub(crate) fn revoke(&self, id: &str) -> Result<bool, KeyRingError> {
        let was_there = self.file.revoke(id)?;
        self.reload()?;
        Ok(was_there)
    }

    fn keys(&self) -> Arc<HashMap<String, StoredKey>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.looked.elapsed() >= LOOK_EVERY {
            known.looked = Instant::now();
            let stamp = stamp_of(&self.path);
            if stamp != known.stamp {
                // A file that cannot be read changes nothing: no door opens because of it.
                match self.file.keys() {
                    Ok(keys) => self.take_over(&mut known, keys, stamp),
                    Err(error) => tracing::error!(%error, "the keys cannot be read again"),
                }
            }
        }
        Arc::clone(&known.keys)
    }

    fn reload(&self) -> Result<(), KeyRingError> {
        let (stamp, keys) = (stamp_of(&self.path), self.file.keys()?);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.looked = Instant::now();
        self.take_over(&mut known, keys, stamp);
        Ok(())
    }

    fn take_over(&self, known: &mut Known, keys: Vec<StoredKey>, stamp: Option<Stamp>) {
        if !keys.is_empty() {
            self.require();
        }
        (known.keys, known.stamp) = (Arc::new(by_hash(keys)), stamp);
        self.changed.notify_waiters();
    }
}

fn by_hash(keys: Vec<StoredKey>) -> HashMap<String, StoredKey> {
    keys.into_iter().map(|key| (key.hash.clone(), key)).collect()
}

/// When the file was written, and its size.
type Stamp = (SystemTime, u64);

fn stamp_of(path: &Path) -> Option<Stamp> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.modified().ok()?, about.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(dir: &tempfile::TempDir) -> KeyRing {
        KeyRing::open(&dir.path().join("keys.json")).unwrap()
    }

    #[test]
    fn closed_stays_closed() {
        let dir = tempfile::tempdir().unwrap();
        let keys = ring(&dir);
        assert!(!keys.are_needed(), "nobody ever had a key");
        let (_, only) = keys.create("", &[Scope::Admin], Timestamp(1), None).unwrap();
        assert!(keys.are_needed());
        assert!(keys.revoke(&only.id).unwrap());
        assert!(keys.is_empty() && keys.are_needed(), "the last key was revoked");
        assert!(ring(&dir).are_needed(), "also after a restart");
    }

    #[test]
    fn a_lost_file_opens_no_door() {
        let dir = tempfile::tempdir().unwrap();
        let keys = ring(&dir);
        keys.create("", &[Scope::Admin], Timestamp(1), None).unwrap();
        // Nobody asked since: that there was a key is known all the same.
        std::fs::remove_file(dir.path().join("keys.json")).unwrap();
        keys.reload().unwrap();
        assert!(keys.is_empty() && keys.are_needed());
        assert!(ring(&dir).are_needed(), "also after a restart");
        std::fs::remove_file(dir.path().join("keys.lock")).unwrap();
        assert!(!ring(&dir).are_needed(), "both were removed, which is no accident");
    }
}
