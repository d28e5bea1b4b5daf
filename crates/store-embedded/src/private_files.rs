//! Files and directories that only their owner reads, whatever the umask says, and that are never
//! reached through a link that somebody laid in their place.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;
/// What others may do.
const OTHERS: u32 = 0o077;

/// How such a file is opened. A link is refused: its target is not ours.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    options.mode(FILE_MODE).custom_flags(no_follow);
    options
}

/// Makes such a directory and its parents.
pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(DIR_MODE).create(path)
}

/// Closes a directory that others may enter, with everything in it. Says whether it had to.
///
/// The directory itself comes last: if this is cut short, it is done again at the next start.
pub(crate) fn close_to_others(root: &Path) -> io::Result<bool> {
    if fs::metadata(root)?.permissions().mode() & OTHERS == 0 {
        return Ok(false);
    }
    close_entries(root)?;
    fs::set_permissions(root, Permissions::from_mode(DIR_MODE))?;
    Ok(true)
}

fn close_entries(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        // What a link leads to may be somebody else's.
        if kind.is_symlink() {
            continue;
        }
        if kind.is_dir() {
            close_entries(&path)?;
        }
        let mode = if kind.is_dir() { DIR_MODE } else { FILE_MODE };
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
    }
    Ok(())
}
