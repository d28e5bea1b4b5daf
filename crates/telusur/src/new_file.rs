//! [`NewFile`]: a file that appears under its name only when it is whole. Whatever lies there until
//! then stays as it is, and a link there is replaced, never followed.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::message::{Code, Message, shown};
use crate::process::give_to_user;

/// A file that is being written. Dropped before it is finished, it leaves nothing behind.
pub struct NewFile {
    path: PathBuf,
    unfinished: PathBuf,
    file: Option<BufWriter<File>>,
}

impl NewFile {
    /// Begins a file.
    pub fn create(path: &Path) -> Result<Self, Message> {
        remove_parts_of_the_dead(path);
        let part = Self::part(path).and_then(|(unfinished, file)| {
            give_to_user(&file)?;
            Ok((unfinished, file))
        });
        let (unfinished, file) = part.map_err(|error| cannot_write(path, &error))?;
        Ok(Self { path: path.to_owned(), unfinished, file: Some(BufWriter::new(file)) })
    }

    /// A file to write into, locked for as long as it is open, so that nobody takes it for one that was
    /// left behind.
    fn part(path: &Path) -> io::Result<(PathBuf, File)> {
        /// In another container a process may have our number, and a part with it.
        const NUMBERS_TRIED_MAX: u32 = 100;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut refused = io::Error::from(io::ErrorKind::AlreadyExists);
        for more in 0..NUMBERS_TRIED_MAX {
            let number = std::process::id().wrapping_add(more);
            let unfinished = path.with_file_name(format!(".{name}.{number}.part"));
            match OpenOptions::new().write(true).create_new(true).open(&unfinished) {
                // Another process may have removed it before it was locked.
                Ok(file) if lock(&file) && is_at(&file, &unfinished) => {
                    return Ok((unfinished, file));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => refused = error,
                Err(error) => return Err(error),
            }
        }
        Err(refused)
    }

    /// Makes it durable and gives it its name.
    pub fn finish(mut self) -> Result<(), Message> {
        let file = self.file.take().expect("only this takes it");
        file.into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(|file| file.sync_all())
            .and_then(|()| std::fs::rename(&self.unfinished, &self.path))
            .map_err(|error| {
                let _ = std::fs::remove_file(&self.unfinished);
                cannot_write(&self.path, &error)
            })
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().expect("it is not finished").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().expect("it is not finished").flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = std::fs::remove_file(&self.unfinished);
        }
    }
}

/// Removes what processes left of this file that were killed while they wrote it. What cannot be removed
/// is in nobody's way.
fn remove_parts_of_the_dead(path: &Path) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Ok(entries) = std::fs::read_dir(parent.unwrap_or(Path::new("."))) else { return };
    for entry in entries.filter_map(Result::ok) {
        if is_part_of(&name, &entry.file_name().to_string_lossy())
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether a file is an unfinished part of another: `.NAME.NUMBER.part`.
fn is_part_of(name: &str, part: &str) -> bool {
    let rest = part.strip_prefix('.').and_then(|rest| rest.strip_prefix(name)?.strip_prefix('.'));
    let number = rest.and_then(|rest| rest.strip_suffix(".part"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Locks a file that is written. Where files cannot be locked, nobody removes parts either.
fn lock(file: &File) -> bool {
    !matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Whether this file is the one that lies there.
fn is_at(file: &File, path: &Path) -> bool {
    let id = |metadata: Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(open), Ok(there)) => id(open) == id(there),
        _ => false,
    }
}

/// Nothing is overwritten unless the user says so.
pub fn refuse_existing(path: &Path, overwrite: bool) -> Result<(), Message> {
    if overwrite || !path.exists() {
        return Ok(());
    }
    let path = shown(&path.to_string_lossy());
    Err(Message::new(Code::FileExists, format!("{path} exists already"))
        .hint("Overwrite it with -O, or name another file"))
}

/// Why a file cannot be written, for people.
pub fn cannot_write(path: &Path, error: &io::Error) -> Message {
    let path = shown(&path.to_string_lossy());
    Message::new(Code::Output, format!("cannot write {path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_appears_when_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let mut file = NewFile::create(&path).unwrap();
        file.write_all(b"x").unwrap();
        assert!(!path.exists());
        file.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"x");
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn a_file_that_is_given_up_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        drop(NewFile::create(&directory.path().join("a")).unwrap());
        assert!(names(directory.path()).is_empty());
        assert!(NewFile::create(&directory.path().join("none/a")).is_err());
    }

    /// Whether this process can see the one that writes says nothing: it may be in another container.
    #[test]
    fn parts_that_nobody_writes_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let own = format!(".a.{}.part", std::process::id());
        for part in [".a.1.part", ".a.2.part", ".b.3.part", ".a.x.part", &own] {
            std::fs::write(place(part), "half").unwrap();
        }
        let written = File::open(place(".a.1.part")).unwrap();
        written.try_lock().unwrap();
        let namesake = File::open(place(&own)).unwrap();
        namesake.try_lock().unwrap();
        let (first, second) =
            (NewFile::create(&place("a")).unwrap(), NewFile::create(&place("a")).unwrap());
        first.finish().unwrap();
        second.finish().unwrap();
        let mut left = names(directory.path());
        left.sort();
        let mut expect = [".a.1.part", ".a.x.part", ".b.3.part", "a", &own].map(str::to_owned);
        expect.sort();
        assert_eq!(left, expect);
    }

    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (link, target) = (directory.path().join("link"), directory.path().join("target"));
        std::fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut file = NewFile::create(&link).unwrap();
        file.write_all(b"x").unwrap();
        file.finish().unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "x");
    }
}
