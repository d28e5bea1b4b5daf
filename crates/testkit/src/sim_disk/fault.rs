//! Calls that fail on purpose: "the n-th write finds the disk full".

use std::collections::BTreeMap;
use std::io;

/// The calls that a disk can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "they are the methods of Disk and DiskFile")]
pub enum DiskCall {
    CreateDir,
    Open,
    SyncDir,
    RenameDir,
    RenameFile,
    RemoveDir,
    Write,
    Truncate,
    Sync,
}

/// One planned failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskFault {
    /// Which kind of call fails.
    pub call: DiskCall,
    /// Which one of them, counted from 1 and from when the disk was made.
    pub nth: u64,
    /// Whether all later ones of that kind fail as well, as on a disk that stays full.
    pub lasting: bool,
    /// How it fails.
    pub failure: DiskFailure,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFailure {
    /// `ENOSPC`: no space is left.
    NoSpace,
    /// `EIO`: the device failed.
    Device,
}

impl From<DiskFailure> for io::Error {
    fn from(failure: DiskFailure) -> Self {
        // The numbers of Linux, and of every other Unix; a program may look at either form.
        const EIO: i32 = 5;
        const ENOSPC: i32 = 28;
        Self::from_raw_os_error(match failure {
            DiskFailure::NoSpace => ENOSPC,
            DiskFailure::Device => EIO,
        })
    }
}

/// What was counted, and what is planned.
#[derive(Debug, Default)]
pub(super) struct FaultPlan {
    calls: BTreeMap<DiskCall, u64>,
    faults: Vec<DiskFault>,
}

impl FaultPlan {
    pub(super) fn add(&mut self, fault: DiskFault) {
        self.faults.push(fault);
    }

    pub(super) fn calls(&self, call: DiskCall) -> u64 {
        self.calls.get(&call).copied().unwrap_or(0)
    }

    /// Counts a call, and says how it fails if it does.
    pub(super) fn due(&mut self, call: DiskCall) -> Option<DiskFailure> {
        let count = self.calls.entry(call).or_default();
        *count += 1;
        let mut of_this_kind = self.faults.iter().filter(|fault| fault.call == call);
        let hit = |fault: &&DiskFault| *count == fault.nth || fault.lasting && *count > fault.nth;
        of_this_kind.find(hit).map(|fault| fault.failure)
    }
}
