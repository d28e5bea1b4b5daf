//! [`Ledger`]: the store of crawls over any [`Storage`]. Everything that a crawl decides about its
//! links, budgets, ids and counters is decided here, under one lock; storage only keeps bytes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::StoreError;
use crate::layout;
use crate::memory::Memory;
use crate::storage::{Batch, Rows, Storage, Table};

/// A store of crawls.
pub struct Ledger<S> {
    storage: S,
    was_closed: bool,
    /// Protects the sequence, the counters and the host rows: every write goes through it. A thread
    /// that dies while holding it stops the engine anyway, and the other holders only read.
    memory: Mutex<Memory>,
}

impl<S: Storage> Ledger<S> {
    /// Opens what is in a storage, and finishes removals that were cut short.
    pub fn open(storage: S) -> Result<Self, StoreError> {
        let (memory, was_closed) = Memory::load(storage.rows())?;
        let ledger = Self { storage, was_closed, memory: Mutex::new(memory) };
        ledger.set_closed(false)?;
        // Before those that are finished now, which get their own.
        ledger.place_earlier_removals()?;
        ledger.finish_removals()?;
        Ok(ledger)
    }

    /// The storage.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    pub(crate) fn rows(&self) -> &S::Rows {
        self.storage.rows()
    }

    pub(crate) fn bodies(&self) -> &S::Bodies {
        self.storage.bodies()
    }

    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn key_seed(&self) -> u64 {
        self.storage.key_seed()
    }

    pub(crate) fn closed_before(&self) -> bool {
        self.was_closed
    }

    pub(crate) fn set_closed(&self, closed: bool) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        batch.insert(Table::Meta, layout::META_CLOSED, [u8::from(closed)]);
        self.rows().commit(batch)
    }
}
