//! [`IndexFiles`]: the files of an index as the engine writes them, with a place for a test to let the
//! disk fail.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use tantivy::Directory;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, MmapDirectory, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

/// Asked before anything of an index is made durable. An error is what the disk says.
pub trait SyncHook: fmt::Debug + Send + Sync + 'static {
    /// Whether it goes on.
    fn before_sync(&self) -> io::Result<()>;
}

/// The disk of the running product: only the system lets it fail.
#[derive(Debug)]
pub(crate) struct NoHook;

impl SyncHook for NoHook {
    fn before_sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A directory of files.
#[derive(Clone, Debug)]
pub(crate) struct IndexFiles {
    pub(crate) files: MmapDirectory,
    pub(crate) hook: Arc<dyn SyncHook>,
}

impl Directory for IndexFiles {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.files.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.files.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.files.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let file = self.files.open_write(path)?;
        Ok(BufWriter::new(Box::new(HookedFile { file, hook: Arc::clone(&self.hook) })))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.files.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.hook.before_sync()?;
        self.files.atomic_write(path, data)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.hook.before_sync()?;
        self.files.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.files.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.files.watch(callback)
    }
}

/// A file that is made durable when it is written.
struct HookedFile {
    file: WritePtr,
    hook: Arc<dyn SyncHook>,
}

impl Write for HookedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl TerminatingWrite for HookedFile {
    fn terminate_ref(&mut self, token: AntiCallToken) -> io::Result<()> {
        self.hook.before_sync()?;
        self.file.terminate_ref(token)
    }
}
