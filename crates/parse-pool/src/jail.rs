//! The walls around a child. It puts them up itself, after it has connected to its parent, and can
//! never take them down again.
//!
//! Two walls need help of the kernel: landlock (no file, no directory, no TCP port) and seccomp (no
//! system call but those of [`calls`]). Where a kernel lacks one, [`JailReport`] says so. What every
//! kernel has always holds, or the child does not start: limits of memory, CPU, files and processes,
//! no privileges, and a death together with the parent.

mod calls;

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetStatus, Scope};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::{Deserialize, Serialize};

/// The landlock that is asked for: its sixth version has everything that this jail needs. Older
/// kernels give what they have.
const LANDLOCK_WANTED: ABI = ABI::V6;

/// The walls around the children of a pool, for the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JailReport {
    /// No file system, no TCP, no signals to others.
    pub landlock: Wall,
    /// No system call but those that parsing needs.
    pub seccomp: Wall,
}

/// One wall of the jail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wall {
    /// It stands.
    Whole,
    /// An older kernel gave a part of it.
    Partial,
    /// This kernel does not have it.
    Missing {
        /// What the kernel said.
        why: String,
    },
}

impl JailReport {
    /// Whether every wall stands.
    pub fn is_whole(&self) -> bool {
        self.landlock == Wall::Whole && self.seccomp == Wall::Whole
    }
}

impl fmt::Display for JailReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "landlock: {}, seccomp: {}", self.landlock, self.seccomp)
    }
}

impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("whole"),
            Self::Partial => f.write_str("partial, the kernel is older"),
            Self::Missing { why } => write!(f, "missing ({why})"),
        }
    }
}

/// What a child may cost over its whole life, enforced by the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JailLimits {
    /// Memory for data, in use or reserved; the code of the program is not counted.
    pub(crate) memory_bytes: u64,
    /// CPU of all pages together: only a child whose parent no longer watches it gets so far.
    pub(crate) cpu_seconds: u64,
}

/// What is done before the child connects: from here on it does not outlive its parent.
pub(crate) fn prepare() -> io::Result<()> {
    // Started through a link, the process would be listed under the link's name.
    rustix::thread::set_name(c"telusur-parser")?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // When memory runs out, a parse that can be repeated is lost rather than the crawl. Some
    // containers keep this file read-only; then the kernel decides.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    Ok(())
}

/// Locks the calling process in, alone with this socket.
pub(crate) fn lock_in(socket: impl AsFd, limits: JailLimits) -> io::Result<JailReport> {
    let code_bytes = code_bytes()?;
    rustix::thread::set_no_new_privs(true)?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // Without capabilities, root cannot raise the limits below again.
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets)?;
    let landlock = close_files();
    for (resource, most) in [
        (Resource::As, code_bytes.saturating_add(limits.memory_bytes)),
        (Resource::Cpu, limits.cpu_seconds),
        // `poll` counts against this limit as well; number 0 is taken, so nothing can be opened.
        (Resource::Nofile, 1),
        (Resource::Nproc, 0),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ] {
        rustix::process::setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    let seccomp = match calls::close(socket.as_fd()) {
        Ok(()) => Wall::Whole,
        Err(why) => Wall::Missing { why },
    };
    Ok(JailReport { landlock, seccomp })
}

/// Landlock without a single rule: all that it can forbid is forbidden.
fn close_files() -> Wall {
    let restricted = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK_WANTED))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK_WANTED)))
        .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK_WANTED)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self);
    match restricted {
        Ok(status) => match status.ruleset {
            RulesetStatus::FullyEnforced => Wall::Whole,
            RulesetStatus::PartiallyEnforced => Wall::Partial,
            RulesetStatus::NotEnforced => Wall::Missing { why: format!("{:?}", status.landlock) },
        },
        Err(error) => Wall::Missing { why: error.to_string() },
    }
}

/// What the program and its libraries have mapped, without stack, heap and other data.
fn code_bytes() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let [size_pages, _resident, _shared, _text, _lib, data_pages, ..] = fields[..] else {
        let text = format!("/proc/self/statm says {text:?}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    };
    Ok(size_pages.saturating_sub(data_pages) * rustix::param::page_size() as u64)
}
