//! One file of the simulated disk: what programs see, what is durable, and the changes in between.

use std::io;

use telusur_store_embedded::DiskFile;

use super::{DiskCall, DiskEvent, FileNo, SimDisk};

/// The content of one file.
#[derive(Debug, Default)]
pub(super) struct SimFile {
    /// What programs see.
    content: Vec<u8>,
    /// What certainly is there after a power loss.
    synced: Vec<u8>,
    /// What happened to the file since then, in order.
    changes: Vec<Change>,
}

/// A change that may or may not have reached the disk.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate { len: usize },
}

impl SimFile {
    /// A file as it was found: all of it is durable.
    pub(super) fn found(content: Vec<u8>) -> Self {
        Self { synced: content.clone(), content, changes: Vec::new() }
    }

    pub(super) fn content(&self) -> &[u8] {
        &self.content
    }

    pub(super) fn synced(&self) -> &[u8] {
        &self.synced
    }

    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The medium holds something else now.
    pub(super) fn replace(&mut self, content: Vec<u8>) {
        *self = Self::found(content);
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.content);
        self.changes.push(change);
    }

    fn sync(&mut self) {
        for change in self.changes.drain(..) {
            change.apply(&mut self.synced);
        }
    }

    /// After a failed sync Linux takes the pages for clean: a later sync succeeds without writing
    /// them. So they are as good as lost, although programs still read them
    /// (<https://lwn.net/Articles/752063/>).
    fn lose_changes(&mut self) {
        self.changes.clear();
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => put(content, *offset, bytes),
            Self::Truncate { len } => content.resize(*len, 0),
        }
    }
}

/// Writes into a file; a gap before the bytes reads as zeros.
pub(super) fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

/// A handle. It keeps its file even when the name is gone.
pub(super) struct OpenFile {
    pub(super) disk: SimDisk,
    pub(super) no: FileNo,
    pub(super) path: String,
}

impl DiskFile for OpenFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.lock().files[self.no.0].content.len() as u64)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let offset = position(offset)?;
        let mut state = self.disk.lock();
        if let Err(error) = state.call(DiskCall::Write, &self.path) {
            // A disk rarely fills up exactly between two writes: a part of this one arrives.
            let arrived = bytes[..bytes.len() / 2].to_vec();
            state.files[self.no.0].change(Change::Write { offset, bytes: arrived });
            return Err(error);
        }
        state.files[self.no.0].change(Change::Write { offset, bytes: bytes.to_vec() });
        let (path, offset, bytes) = (self.path.clone(), offset as u64, bytes.len());
        state.events.push(DiskEvent::Write { path, offset, bytes });
        Ok(())
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let offset = position(offset)?;
        let state = self.disk.lock();
        let content = &state.files[self.no.0].content;
        let found = content.get(offset..).and_then(|rest| rest.get(..bytes.len()));
        bytes.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let cut_at = position(len)?;
        let mut state = self.disk.lock();
        state.call(DiskCall::Truncate, &self.path)?;
        state.files[self.no.0].change(Change::Truncate { len: cut_at });
        state.events.push(DiskEvent::Truncate { path: self.path.clone(), len });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.lock();
        if let Err(error) = state.call(DiskCall::Sync, &self.path) {
            state.files[self.no.0].lose_changes();
            return Err(error);
        }
        state.files[self.no.0].sync();
        state.events.push(DiskEvent::Sync { path: self.path.clone() });
        Ok(())
    }
}

fn position(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge.into())
}
