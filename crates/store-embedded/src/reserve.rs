//! The reserve: a file of a data directory that only takes up space. Whoever meets a full disk gives it back
//! first: opening a directory, looking into it and removing a crawl write a little, and removing is the way out.
//!
//! It is made with the directory and again whenever there is room, and nothing depends on it: without a
//! reserve a full disk is refused as such.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::FallocateFlags;

use crate::private_files::private_file;

/// The name of its file.
pub(crate) const RESERVE_FILE: &str = "disk.reserve";
/// How large it is. Opening and closing a directory takes 0.1 MB; removing 100,000 rows takes 5 MB of journal.
const RESERVE_BYTES: u64 = 8 << 20;
/// A smaller one helps nobody.
const RESERVE_BYTES_MIN: u64 = 1 << 20;
/// What is left free beside a reserve that is made on a disk that is nearly full.
const MARGIN_BYTES: u64 = 256 << 10;
/// With more than this a reserve is missed by nobody.
const PLENTY_BYTES: u64 = 4 * RESERVE_BYTES;
/// With less than this the disk counts as full, and the reserve is given back.
const FULL_BYTES: u64 = 4 << 20;

/// Bytes left on the device that holds a path.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Gives the reserve back whenever a write finds the disk full, and makes it again when there is plenty of room.
pub(crate) struct Reserve {
    root: PathBuf,
    is_released: AtomicBool,
}

impl Reserve {
    pub(crate) fn of(root: &Path) -> Self {
        Self { root: root.to_owned(), is_released: AtomicBool::new(false) }
    }

    /// Something is about to be written. A look at the free space takes a microsecond.
    pub(crate) fn before_write(&self) {
        if release_if_full(&self.root) {
            self.is_released.store(true, Ordering::Relaxed);
        } else if self.is_released.load(Ordering::Relaxed) {
            top_up_if_plenty(&self.root);
            let is_there = self.root.join(RESERVE_FILE).exists();
            self.is_released.store(!is_there, Ordering::Relaxed);
        }
    }
}

/// Gives the reserve back if the disk is full. Says whether there was one to give.
pub(crate) fn release_if_full(root: &Path) -> bool {
    let is_full = free_bytes(root).is_ok_and(|free| free < FULL_BYTES);
    if !is_full || fs::remove_file(root.join(RESERVE_FILE)).is_err() {
        return false;
    }
    tracing::info!(dir = %root.display(), "the disk is full: the reserve is given back");
    true
}

/// Makes the reserve if there is plenty of room: nobody who works on a full disk is left with less.
pub(crate) fn top_up_if_plenty(root: &Path) {
    if free_bytes(root).is_ok_and(|free| free >= PLENTY_BYTES) {
        top_up(root);
    }
}

/// Makes the reserve, as large as there is room for. Without one everything goes on as well.
pub(crate) fn top_up(root: &Path) {
    let path = root.join(RESERVE_FILE);
    let has = fs::symlink_metadata(&path).map_or(0, |file| file.len());
    if has >= RESERVE_BYTES {
        return;
    }
    let room = free_bytes(root).unwrap_or(0).saturating_sub(MARGIN_BYTES);
    let bytes = RESERVE_BYTES.min(has + room);
    if bytes < RESERVE_BYTES_MIN || bytes <= has {
        return;
    }
    if let Err(error) = make(&path, bytes) {
        tracing::debug!(%error, "no space is reserved");
        // A part of it would be taken for all of it.
        let _ = fs::remove_file(&path);
    }
}

fn make(path: &Path, bytes: u64) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private_file().write(true).create_new(true).open(path)?;
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => Ok(()),
        // Some file systems cannot: then the bytes are written.
        Err(rustix::io::Errno::OPNOTSUPP) => {
            let zeros = vec![0; 64 << 10];
            let blocks = bytes / zeros.len() as u64;
            (0..blocks).try_for_each(|_| file.write_all(&zeros))
        }
        Err(error) => Err(error.into()),
    }
}

/// What the system says, with the space that is left if there is too little of it.
pub(crate) fn with_free_space(at: &Path, error: io::Error) -> io::Error {
    let kind = error.kind();
    if !matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        return error;
    }
    match (kind, free_bytes(at)) {
        (io::ErrorKind::QuotaExceeded, _) => io::Error::new(kind, "the quota is used up"),
        (_, Ok(free)) => io::Error::new(kind, format!("{} kB free", free / 1000)),
        (_, Err(_)) => io::Error::new(kind, "no space left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_takes_up_its_space_and_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        top_up(dir.path());
        let path = dir.path().join(RESERVE_FILE);
        let made = fs::metadata(&path).unwrap();
        assert_eq!(made.len(), RESERVE_BYTES);
        let blocks = std::os::unix::fs::MetadataExt::blocks(&made);
        assert!(blocks * 512 >= RESERVE_BYTES, "{blocks} blocks");
        top_up(dir.path());
        let again = fs::metadata(&path).unwrap();
        assert_eq!(again.modified().unwrap(), made.modified().unwrap());
        assert!(!release_if_full(dir.path()), "there is space");
        assert!(path.exists());
    }

    #[test]
    fn a_full_disk_says_how_much_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let said = with_free_space(dir.path(), full());
        assert_eq!(said.kind(), io::ErrorKind::StorageFull);
        assert!(said.to_string().ends_with(" kB free"), "{said}");
        let said = with_free_space(&dir.path().join("gone"), full());
        assert_eq!(said.to_string(), "no space left");
        let other = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(with_free_space(dir.path(), other).kind(), io::ErrorKind::PermissionDenied);
    }
}
