//! [`KeyRing`]: the keys in memory, in step with their file: another process may make or revoke one.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use telusur_model::Timestamp;

use super::key_file::hash_of;
use super::{KeyFile, KeyRingError, Scope, StoredKey};

/// How often the file is looked at: a key that was revoked in another terminal ends within this time.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The keys.
pub(crate) struct KeyRing {
    file: KeyFile,
    path: std::path::PathBuf,
    /// Held to look a key up or to put in others, never while waiting.
    known: Mutex<Known>,
}

struct Known {
    /// By hash. A guesser who times the lookup learns about hashes, which lead to no key.
    keys: Arc<HashMap<String, StoredKey>>,
    stamp: Option<(SystemTime, u64)>,
    looked: Instant,
}

impl KeyRing {
    pub(crate) fn open(path: &Path) -> Result<Self, KeyRingError> {
        let file = KeyFile::new(path);
        let stamp = stamp_of(path);
        let keys = Arc::new(by_hash(file.keys()?));
        let known = Known { keys, stamp, looked: Instant::now() };
        Ok(Self { file, path: path.to_owned(), known: Mutex::new(known) })
    }

    /// Whether nobody has a key.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys().is_empty()
    }

    /// The key that this text is, if it is one and has not ended.
    pub(crate) fn find(&self, key: &str, now: Timestamp) -> Option<StoredKey> {
        let found = self.keys().get(&hash_of(key)).cloned()?;
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
                    Ok(keys) => (known.keys, known.stamp) = (Arc::new(by_hash(keys)), stamp),
                    Err(error) => tracing::error!(%error, "the keys cannot be read again"),
                }
            }
        }
        Arc::clone(&known.keys)
    }

    fn reload(&self) -> Result<(), KeyRingError> {
        let (stamp, keys) = (stamp_of(&self.path), self.file.keys()?);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Known { keys: Arc::new(by_hash(keys)), stamp, looked: Instant::now() };
        Ok(())
    }
}

fn by_hash(keys: Vec<StoredKey>) -> HashMap<String, StoredKey> {
    keys.into_iter().map(|key| (key.hash.clone(), key)).collect()
}

fn stamp_of(path: &Path) -> Option<(SystemTime, u64)> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.modified().ok()?, about.len()))
}
