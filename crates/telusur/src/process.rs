//! What holds for the whole process from its first moment on: files are private, and a limit on their
//! size is an error like a full disk.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::Mode;
use rustix::process::{Signal, umask};
use tokio::signal::unix::{SignalKind, signal};

/// Nothing for anybody but the owner.
const PRIVATE: u32 = 0o077;
/// What new files and directories of users are made with, less their umask.
const FILE_MODE: u32 = 0o666;
const DIR_MODE: u32 = 0o777;

/// The umask that the user set, for the files that are the user's and not ours.
static USERS_UMASK: OnceLock<Mode> = OnceLock::new();

/// To be called first, before there are other threads.
pub fn prepare() {
    // The libraries that write most of the data directory ask for no mode of their own.
    let users = umask(Mode::from_raw_mode(PRIVATE));
    let _ = USERS_UMASK.set(users);
    if let Err(error) = report_file_size_limit() {
        // Then the system ends the process at that limit, as it does with every other program.
        tracing::debug!(%error, "the signal of the file size limit cannot be caught");
    }
}

/// Without a handler the kernel ends a process that writes beyond `ulimit -f`. With one, the write fails
/// with an error, which is told, and what is stored stays as it is.
fn report_file_size_limit() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    // The handler stays when the runtime is gone.
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}

/// Gives a new file the mode that the user's umask asks for: an export is the user's file.
pub fn give_to_user(file: &File) -> io::Result<()> {
    match USERS_UMASK.get() {
        Some(users) => {
            file.set_permissions(Permissions::from_mode(FILE_MODE & !users.as_raw_mode()))
        }
        None => Ok(()),
    }
}

/// Makes a directory of the user's, with its parents.
pub fn create_user_dir(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_user_dir(parent)?;
    }
    match DirBuilder::new().create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {
            return Ok(());
        }
        made => made?,
    }
    match USERS_UMASK.get() {
        Some(users) => {
            std::fs::set_permissions(path, Permissions::from_mode(DIR_MODE & !users.as_raw_mode()))
        }
        None => Ok(()),
    }
}

/// Starts a program with the umask that the user set. To be called while there are no other threads.
pub fn as_user<T>(start: impl FnOnce() -> T) -> T {
    let Some(users) = USERS_UMASK.get() else { return start() };
    let ours = umask(*users);
    let started = start();
    umask(ours);
    started
}
