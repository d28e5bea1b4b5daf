//! Trees of files: which kinds of file a data directory has, copies of it, and what has changed in one.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// What is copied or compared at once. Parts of zeros stay holes in a copy.
const PART_BYTES: usize = 64 << 10;

/// A kind of file of a data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "they are the files of the same names")]
pub enum FileKind {
    Version,
    Lock,
    Keys,
    KeysLock,
    ControlSocket,
    /// A journal that a newer one follows.
    JournalSealed,
    JournalNewest,
    StateVersion,
    StateLock,
    Witness,
    /// `telusur.reach`: the witness that follows every step.
    Reach,
    /// `current` of a keyspace.
    TableListName,
    /// `vN` of a keyspace.
    TableList,
    Table,
    /// The tables of the keyspace that names the others.
    NamesTable,
    Segment,
    /// `crawl.json` beside the segments of a crawl.
    Settings,
    IndexVersion,
    /// Small files of the index: its lists of segments, its locks.
    IndexList,
    IndexSegment,
    LinkLog,
    LinkRanks,
    /// Anything else: a file that the harness does not know.
    Unknown,
}

impl FileKind {
    /// The kind of a file by its path in the data directory.
    pub fn of(path: &str, newest_journal: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        match path {
            "telusur.version" => Self::Version,
            "telusur.lock" => Self::Lock,
            "keys.json" => Self::Keys,
            "keys.lock" => Self::KeysLock,
            "control.sock" => Self::ControlSocket,
            "state/version" => Self::StateVersion,
            "state/lock" => Self::StateLock,
            "state/telusur.witness" => Self::Witness,
            "state/telusur.reach" => Self::Reach,
            "index/telusur-index.version" => Self::IndexVersion,
            "index/link-ranks.bin" => Self::LinkRanks,
            _ if path.starts_with("state/") => Self::of_state(path, name, newest_journal),
            _ if path.starts_with("bodies/") && name.ends_with(".warc.zst") => Self::Segment,
            _ if path.starts_with("bodies/") && name == "crawl.json" => Self::Settings,
            _ if path.starts_with("index/") => Self::of_index(name),
            _ => Self::Unknown,
        }
    }

    fn of_state(path: &str, name: &str, newest_journal: &str) -> Self {
        let is_number = |text: &str| text.parse::<u64>().is_ok();
        match name.strip_suffix(".jnl") {
            Some(number) if is_number(number) && path == newest_journal => {
                return Self::JournalNewest;
            }
            Some(number) if is_number(number) => return Self::JournalSealed,
            _ => {}
        }
        if name == "current" {
            Self::TableListName
        } else if name.strip_prefix('v').is_some_and(is_number) {
            Self::TableList
        } else if path.starts_with("state/keyspaces/0/tables/") {
            Self::NamesTable
        } else if path.contains("/tables/") && is_number(name) {
            Self::Table
        } else {
            Self::Unknown
        }
    }

    fn of_index(name: &str) -> Self {
        let ending = name.rsplit('.').next().unwrap_or(name);
        match ending {
            "json" | "lock" => Self::IndexList,
            "term" | "pos" | "store" | "fast" | "idx" | "fieldnorm" | "del" => Self::IndexSegment,
            "log" => Self::LinkLog,
            _ => Self::Unknown,
        }
    }

    /// Whether it belongs to the search index, which is derived.
    pub fn is_of_index(self) -> bool {
        matches!(
            self,
            Self::IndexVersion
                | Self::IndexList
                | Self::IndexSegment
                | Self::LinkLog
                | Self::LinkRanks
        )
    }

    /// Whether it belongs to the state database.
    pub fn is_of_state(self) -> bool {
        matches!(
            self,
            Self::JournalSealed
                | Self::JournalNewest
                | Self::StateVersion
                | Self::StateLock
                | Self::Witness
                | Self::Reach
                | Self::TableListName
                | Self::TableList
                | Self::Table
                | Self::NamesTable
        )
    }

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Version => "telusur.version",
            Self::Lock => "telusur.lock",
            Self::Keys => "keys.json",
            Self::KeysLock => "keys.lock",
            Self::ControlSocket => "control.sock",
            Self::JournalSealed => "state/N.jnl, sealed",
            Self::JournalNewest => "state/N.jnl, newest",
            Self::StateVersion => "state/version",
            Self::StateLock => "state/lock",
            Self::Witness => "state/telusur.witness",
            Self::Reach => "state/telusur.reach",
            Self::TableListName => "state/keyspaces/N/current",
            Self::TableList => "state/keyspaces/N/vN",
            Self::Table => "state/keyspaces/N/tables/N",
            Self::NamesTable => "state/keyspaces/0/tables/N",
            Self::Segment => "bodies/crawl_N/N.warc.zst",
            Self::Settings => "bodies/crawl_N/crawl.json",
            Self::IndexVersion => "index/telusur-index.version",
            Self::IndexList => "index/*.json, *.lock",
            Self::IndexSegment => "index/*.term and others",
            Self::LinkLog => "index/links-N.log",
            Self::LinkRanks => "index/link-ranks.bin",
            Self::Unknown => "unknown",
        }
    }
}

/// All files below a directory, as paths in it, sorted. Sockets are left out.
pub(super) fn files_below(root: &Path) -> io::Result<Vec<String>> {
    let (mut found, mut dirs) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(root.join(&dir))? {
            let entry = entry?;
            let (path, kind) = (dir.join(entry.file_name()), entry.file_type()?);
            if kind.is_dir() {
                dirs.push(path);
            } else if kind.is_file() {
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The newest journal of a data directory, as a path in it.
pub(super) fn newest_journal(files: &[String]) -> String {
    let number = |path: &&String| -> Option<u64> {
        path.strip_prefix("state/")?.strip_suffix(".jnl")?.parse().ok()
    };
    let newest = files.iter().filter(|path| number(path).is_some()).max_by_key(number);
    newest.cloned().unwrap_or_default()
}

/// Copies a directory. Sockets are left out.
pub(super) fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if kind.is_file() {
            copy_file(&entry.path(), &target)?;
        }
    }
    Ok(())
}

/// The file by which a directory knows that it is no copy, and whose name in the file system all copies share in
/// turn. Damage of an original is meant to be refused, and a copy of a directory in use is mended by itself.
#[derive(Clone, Debug)]
pub(super) struct Original(PathBuf);

impl Original {
    /// Of the directory that was really used. `kept`: another name for its file.
    pub(super) fn of(live: &Path, kept: PathBuf) -> io::Result<Self> {
        fs::hard_link(live.join(REACH), &kept)?;
        Ok(Self(kept))
    }

    /// Copies a directory, and makes the copy the original.
    pub(super) fn copy_tree(&self, from: &Path, to: &Path) -> io::Result<()> {
        copy_tree(from, to)?;
        let reach = to.join(REACH);
        fs::write(&self.0, fs::read(&reach)?)?;
        fs::remove_file(&reach)?;
        fs::hard_link(&self.0, reach)
    }
}

const REACH: &str = "state/telusur.reach";

/// Copies a file; parts of zeros become holes.
pub(super) fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let len = source.metadata()?.len();
    let mut target = File::create(to)?;
    fs::set_permissions(to, source.metadata()?.permissions())?;
    target.set_len(len)?;
    let (mut part, mut at) = (vec![0; PART_BYTES], 0);
    loop {
        let read = read_part(&mut source, &mut part)?;
        if read == 0 {
            return Ok(());
        }
        if part[..read].iter().any(|byte| *byte != 0) {
            io::Seek::seek(&mut target, io::SeekFrom::Start(at))?;
            target.write_all(&part[..read])?;
        }
        at += read as u64;
    }
}

/// Whether a file has the content of another, or at least begins with it.
pub(super) fn begins_with(path: &Path, beginning: &Path, has_to_end: bool) -> io::Result<bool> {
    let (mut long, mut short) = (File::open(path)?, File::open(beginning)?);
    let (long_bytes, short_bytes) = (long.metadata()?.len(), short.metadata()?.len());
    if long_bytes < short_bytes || (has_to_end && long_bytes != short_bytes) {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; PART_BYTES], vec![0; PART_BYTES]);
    loop {
        let read = read_part(&mut short, &mut right)?;
        if read == 0 {
            return Ok(true);
        }
        long.read_exact(&mut left[..read])?;
        if left[..read] != right[..read] {
            return Ok(false);
        }
    }
}

fn read_part(file: &mut File, part: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < part.len() {
        match file.read(&mut part[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}
