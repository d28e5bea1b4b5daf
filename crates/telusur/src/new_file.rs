//! [`NewFile`]: a file that appears under its name only when it is whole. Whatever lies there until
//! then stays as it is, and a link there is replaced, never followed.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
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
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let unfinished = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).open(&unfinished);
        let given = file.and_then(|file| give_to_user(&file).map(|()| file));
        let file = given.map_err(|error| cannot_write(path, &error))?;
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

/// Removes what processes left of this file that were killed while they wrote it. What cannot be removed
/// is in nobody's way.
fn remove_parts_of_the_dead(path: &Path) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Ok(entries) = std::fs::read_dir(parent.unwrap_or(Path::new("."))) else { return };
    for entry in entries.filter_map(Result::ok) {
        if part_of(&name, &entry.file_name().to_string_lossy()).is_some_and(is_dead) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The process that wrote this part of a file, if it is one.
fn part_of(name: &str, part: &str) -> Option<u32> {
    let rest = part.strip_prefix('.')?.strip_prefix(name)?.strip_prefix('.')?;
    rest.strip_suffix(".part")?.parse().ok()
}

/// Whether a process is gone. Our own number was given to an earlier one, which is.
fn is_dead(pid: u32) -> bool {
    pid == std::process::id() || !Path::new("/proc").join(pid.to_string()).exists()
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
    fn parts_of_dead_processes_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        // No process has a number as high, and this one's parent is alive.
        let (dead, alive) = (u32::MAX, std::os::unix::process::parent_id());
        let parts = [
            format!(".a.{dead}.part"),
            format!(".a.{}.part", std::process::id()),
            format!(".a.{alive}.part"),
            format!(".b.{dead}.part"),
            ".a.x.part".to_owned(),
        ];
        for part in &parts {
            std::fs::write(directory.path().join(part), "half").unwrap();
        }
        NewFile::create(&directory.path().join("a")).unwrap().finish().unwrap();
        let mut left = names(directory.path());
        left.sort();
        let mut expect = vec![parts[2].clone(), parts[3].clone(), parts[4].clone(), "a".to_owned()];
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
