//! What can go wrong with the index itself.

use std::io;
use std::path::Path;

use tantivy::TantivyError;
use tantivy::directory::error::{LockError, OpenReadError, OpenWriteError};

/// Our trouble, by what the caller does about it.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The files cannot be read as an index: rebuild it from the store.
    #[error("the search index is damaged: {0}")]
    Damaged(String),
    /// The index was written by another version: rebuild it from the store.
    #[error("the search index has format {found}, this version reads {expected}")]
    OtherVersion {
        /// The format on disk.
        found: u32,
        /// The format of this version.
        expected: u32,
    },
    /// Another process writes this index.
    #[error("another process writes this search index")]
    Locked,
    /// The right to write is leased to another process: call it back.
    #[error("the search index is leased to another process")]
    Leased,
    /// A write failed, and the writer is not open again yet: see [`crate::SearchIndex::reopen`].
    #[error("the search index cannot be written at the moment")]
    Unwritable,
    /// The disk failed or is full.
    #[error("search index: {}", disk_text(.0))]
    Disk(#[from] io::Error),
    /// The engine failed in a way that nothing above explains.
    #[error("search index: {0}")]
    Engine(TantivyError),
    /// A pattern for `--regex` that cannot be used.
    #[error("pattern: {0}")]
    Pattern(String),
}

impl IndexError {
    /// Whether a rebuild of the index helps.
    pub fn needs_rebuild(&self) -> bool {
        matches!(self, Self::Damaged(_) | Self::OtherVersion { .. })
    }

    /// Whether there is no space left on the disk.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Disk(error) if is_full(error))
    }

    /// The same error where an index is opened or worked over: files that are not what they should be are
    /// damage, also if it is the system that says so.
    pub(crate) fn of_files(self) -> Self {
        match self {
            Self::Disk(error) if is_of_files(&error) => Self::Damaged(error.to_string()),
            other => other,
        }
    }
}

impl From<TantivyError> for IndexError {
    fn from(error: TantivyError) -> Self {
        match error {
            TantivyError::LockFailure(LockError::LockBusy, _) => Self::Locked,
            TantivyError::DataCorruption(_)
            | TantivyError::IncompatibleIndex(_)
            | TantivyError::SchemaError(_)
            | TantivyError::FieldNotFound(_)
            | TantivyError::OpenReadError(
                OpenReadError::FileDoesNotExist(_) | OpenReadError::IncompatibleIndex(_),
            ) => Self::Damaged(error.to_string()),
            TantivyError::OpenReadError(OpenReadError::IoError { ref io_error, ref filepath })
                if is_of_files(io_error) =>
            {
                Self::Damaged(named(filepath, io_error))
            }
            TantivyError::IoError(ref io_error) if is_damage(io_error) => {
                Self::Damaged(copy_of(io_error).to_string())
            }
            TantivyError::IoError(ref io_error)
            | TantivyError::OpenReadError(OpenReadError::IoError { ref io_error, .. })
            | TantivyError::OpenWriteError(OpenWriteError::IoError { ref io_error, .. })
            | TantivyError::LockFailure(LockError::IoError(ref io_error), _) => {
                Self::Disk(copy_of(io_error))
            }
            // A thread of the engine met a full disk, and its error has come here as text.
            TantivyError::InternalError(ref text)
            | TantivyError::ErrorInThread(ref text)
            | TantivyError::SystemError(ref text)
                if text.contains(NO_SPACE_TEXT) =>
            {
                Self::Disk(io::ErrorKind::StorageFull.into())
            }
            TantivyError::ErrorInThread(_) => Self::Unwritable,
            _ => Self::Engine(error),
        }
    }
}

/// What an error of a full disk reads as.
const NO_SPACE_TEXT: &str = "os error 28";

fn disk_text(error: &io::Error) -> String {
    if is_full(error) { "the disk is full".to_owned() } else { error.to_string() }
}

/// The engine shares its errors and shows them as programmers write them; people are told what the system
/// said.
fn copy_of(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// Whether the disk worked and what it gave back makes no sense.
fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData)
}

/// Whether the files are at fault, and not the moment: a directory in the place of a file, a file that is gone, a
/// block that cannot be read. An index is derived: an unknown error counts as damage.
fn is_of_files(error: &io::Error) -> bool {
    /// `ENFILE` and `EMFILE`, for which the standard library has no kinds.
    const TOO_MANY_OPEN_FILES: [i32; 2] = [23, 24];
    let passes = matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::OutOfMemory
            | io::ErrorKind::Interrupted
            | io::ErrorKind::WouldBlock
    );
    let has_files = error.raw_os_error().is_none_or(|code| !TOO_MANY_OPEN_FILES.contains(&code));
    !passes && has_files
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn named(path: &Path, error: &io::Error) -> String {
    format!("{}: {}", path.display(), copy_of(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full disk once read as "Internal error: 'No space left on device (os error 28)'" or as "An index
    /// writer was killed".
    #[test]
    fn a_full_disk_is_called_so() {
        let text = "No space left on device (os error 28)".to_owned();
        for error in [
            TantivyError::InternalError(text.clone()),
            TantivyError::ErrorInThread(text),
            TantivyError::IoError(std::sync::Arc::new(io::Error::from_raw_os_error(28))),
        ] {
            let error = IndexError::from(error);
            assert!(error.is_disk_full(), "{error:?}");
            assert_eq!(error.to_string(), "search index: the disk is full");
        }
        let error = TantivyError::ErrorInThread("An index writer was killed.".into());
        let error = IndexError::from(error);
        assert!(matches!(error, IndexError::Unwritable), "{error:?}");
    }
}
