//! [`Disk`]: the few file operations that body segments need, so that tests can put a disk that
//! drops, reorders and tears unsynced writes under them.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::private_files::{create_private_dir, private_file};
use crate::reserve::with_free_space;

/// A directory tree of append-only files, addressed by relative paths such as `crawl_7/00000001`.
pub trait Disk: Send + Sync {
    /// Makes a directory and its parents, and syncs the directory that holds it.
    fn create_dir(&self, dir: &str) -> io::Result<()>;
    /// Opens a file that is there, for reading and appending.
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// The same, making the file if it is new. A new file is durable only after [`Disk::sync_dir`].
    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Makes the entries of a directory durable.
    fn sync_dir(&self, dir: &str) -> io::Result<()>;
    /// The names of the directories at the top.
    fn dirs(&self) -> io::Result<Vec<String>>;
    /// The names of the files in a directory.
    fn files(&self, dir: &str) -> io::Result<Vec<String>>;
    /// Gives a directory at the top another name that nothing has, and syncs the top.
    fn rename_dir(&self, from: &str, to: &str) -> io::Result<()>;
    /// Gives a file another name in its directory. Another file that has it is gone, at once or not at all; durable
    /// only after [`Disk::sync_dir`].
    fn rename_file(&self, from: &str, to: &str) -> io::Result<()>;
    /// Deletes at most `files_max` files of a directory, and the directory itself once it is empty. True if it
    /// is not there any more, which is durable only after [`Disk::sync_dir`] of the directory that held it.
    fn remove_dir(&self, dir: &str, files_max: usize) -> io::Result<bool>;
}

/// One open file of a [`Disk`].
pub trait DiskFile: Send + Sync {
    /// How long the file is.
    fn len(&self) -> io::Result<u64>;
    /// Whether it is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Fills `bytes` from `offset`; fails if the file ends before.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;
    /// Cuts the file.
    fn truncate(&self, len: u64) -> io::Result<()>;
    /// Makes everything written so far durable.
    fn sync(&self) -> io::Result<()>;
}

/// The real thing: a directory of the operating system.
#[derive(Clone, Debug)]
pub struct RealDisk {
    root: PathBuf,
}

impl RealDisk {
    /// A disk rooted at an existing directory.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }
}

impl Disk for RealDisk {
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        let path = self.path(dir);
        create_private_dir(&path).map_err(|error| with_free_space(&self.root, error))?;
        sync_directory(path.parent().unwrap_or(&self.root))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = private_file().read(true).write(true).open(self.path(path))?;
        Ok(Arc::new(RealFile { file, root: self.root.clone() }))
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = private_file();
        let file = options.read(true).write(true).create(true).open(self.path(path));
        let file = file.map_err(|error| with_free_space(&self.root, error))?;
        Ok(Arc::new(RealFile { file, root: self.root.clone() }))
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        sync_directory(&self.path(dir))
    }

    fn dirs(&self) -> io::Result<Vec<String>> {
        names_in(&self.root)
    }

    fn files(&self, dir: &str) -> io::Result<Vec<String>> {
        names_in(&self.path(dir))
    }

    fn rename_dir(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))?;
        sync_directory(&self.root)
    }

    fn rename_file(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove_dir(&self, dir: &str, files_max: usize) -> io::Result<bool> {
        let path = self.path(dir);
        // A link is deleted, and what it leads to is left alone.
        if path.is_symlink() {
            return fs::remove_file(path).map(|()| true);
        }
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            entries => entries?,
        };
        for (number, entry) in entries.enumerate() {
            if number >= files_max {
                return Ok(false);
            }
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        fs::remove_dir(path).map(|()| true)
    }
}

fn names_in(dir: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(dir)?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

fn sync_directory(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}

struct RealFile {
    file: fs::File,
    /// The disk that it is on.
    root: PathBuf,
}

impl DiskFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all_at(bytes, offset);
        written.map_err(|error| with_free_space(&self.root, error))
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data().map_err(|error| with_free_space(&self.root, error))
    }
}
