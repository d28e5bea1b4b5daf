//! [`Ledger`]: the store of crawls over any [`Storage`]. Everything that a crawl decides about its
//! links, budgets, ids and counters is decided here, under one lock; storage only keeps bytes.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use telusur_model::CrawlNo;

use crate::StoreError;
use crate::layout;
use crate::memory::Memory;
use crate::storage::{Batch, Bodies, Rows, Storage, Table};

/// A store of crawls.
pub struct Ledger<S> {
    storage: S,
    was_closed: bool,
    /// Crawls whose bodies were there when the storage was opened, and whose numbers were not given yet.
    bodies_found: HashSet<CrawlNo>,
    /// Protects the sequence, the counters and the host rows: every write goes through it. A thread
    /// that dies while holding it stops the engine anyway, and the other holders only read.
    memory: Mutex<Memory>,
    /// Runs whenever somebody is about to take the lock: so a test is the one that was faster.
    #[cfg(test)]
    pub(crate) before_lock: Mutex<Option<BeforeLock<S>>>,
}

/// What a test does before somebody else takes the lock.
#[cfg(test)]
pub(crate) type BeforeLock<S> = Box<dyn Fn(&Ledger<S>) + Send>;

impl<S: Storage> Ledger<S> {
    /// Opens what is in a storage, and finishes removals that were cut short.
    pub fn open(storage: S) -> Result<Self, StoreError> {
        let (memory, was_closed) = Memory::load(storage.rows())?;
        let bodies = storage.bodies().crawls()?;
        let bodies = bodies.iter().filter_map(|alias| alias.strip_prefix("crawl_")?.parse().ok());
        let bodies_found = bodies.filter(|no| *no > memory.crawls).map(CrawlNo).collect();
        let ledger = Self {
            storage,
            was_closed,
            bodies_found,
            memory: Mutex::new(memory),
            #[cfg(test)]
            before_lock: Mutex::new(None),
        };
        ledger.set_closed(false)?;
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
        #[cfg(test)]
        self.let_test_go_first();
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn let_test_go_first(&self) {
        let before_lock = || self.before_lock.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken out meanwhile: what it does takes the lock, too.
        let Some(hook) = before_lock().take() else { return };
        hook(self);
        *before_lock() = Some(hook);
    }

    pub(crate) fn key_seed(&self) -> u64 {
        self.storage.key_seed()
    }

    pub(crate) fn bodies_found(&self) -> &HashSet<CrawlNo> {
        &self.bodies_found
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
