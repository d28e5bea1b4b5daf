//! [`NewFile`]: a file that appears under its name only when it is whole. Whatever lies there until
//! then stays as it is, and a link there is replaced, never followed.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::message::{Code, Message, shown};

/// A file that is being written. Dropped before it is finished, it leaves nothing behind.
pub struct NewFile {
    path: PathBuf,
    unfinished: PathBuf,
    file: Option<BufWriter<File>>,
}

impl NewFile {
    /// Begins a file.
    pub fn create(path: &Path) -> Result<Self, Message> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let unfinished = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
        // Whatever has this name is left over from a process that is gone.
        let _ = std::fs::remove_file(&unfinished);
        let file = OpenOptions::new().write(true).create_new(true).open(&unfinished);
        let file = file.map_err(|error| cannot_write(path, &error))?;
        Ok(Self { path: path.to_owned(), unfinished, file: Some(BufWriter::new(file)) })
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
