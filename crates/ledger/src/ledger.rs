//! [`Ledger`]: the store of crawls over any [`Storage`]. Everything that a crawl decides about its
//! links, budgets, ids and counters is decided here, under one lock; storage only keeps bytes.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use telusur_model::{BlobRef, CrawlNo, Lane, Visit};

use crate::event::Event;
use crate::fold::{Fold, is_wanted};
use crate::layout;
use crate::memory::Memory;
use crate::recent::RecentKeys;
use crate::removal::Deleting;
use crate::storage::{Batch, Bodies, Rows, Storage, Table, WriteRows};
use crate::{CrawlChange, Effects, Packed, Step, StoreError};

/// A store of crawls.
pub struct Ledger<S> {
    storage: S,
    was_closed: bool,
    /// Crawls whose bodies were there when the storage was opened, and whose numbers were not given yet.
    bodies_found: HashSet<CrawlNo>,
    /// Protects the sequence, the counters and the host rows: every write goes through it. A thread
    /// that dies while holding it stops the engine anyway, and the other holders only read.
    memory: Mutex<Memory>,
    recent: RecentKeys,
    /// Held while a piece of a removed crawl is deleted: one at a time.
    pub(crate) deleting: Mutex<Deleting>,
    /// Runs whenever somebody is about to take the lock: so a test is the one that was faster.
    #[cfg(test)]
    pub(crate) before_lock: Mutex<Option<BeforeLock<S>>>,
}

/// What a test does before somebody else takes the lock.
#[cfg(test)]
pub(crate) type BeforeLock<S> = Box<dyn Fn(&Ledger<S>) + Send>;

impl<S: Storage> Ledger<S> {
    /// Opens what is in a storage. Removals that were cut short are not waited for.
    pub fn open(storage: S) -> Result<Self, StoreError> {
        let (memory, was_closed) = Memory::load(storage.rows(), storage.key_seed())?;
        let bodies = storage.bodies().crawls()?;
        let bodies = bodies.iter().filter_map(|alias| alias.strip_prefix("crawl_")?.parse().ok());
        let bodies = bodies.chain(storage.bodies().half_removed()?.into_iter().map(|no| no.0));
        let bodies_found = bodies.filter(|no| *no > memory.crawls).map(CrawlNo).collect();
        let ledger = Self {
            storage,
            was_closed,
            bodies_found,
            memory: Mutex::new(memory),
            recent: RecentKeys::new(),
            deleting: Mutex::default(),
            #[cfg(test)]
            before_lock: Mutex::new(None),
        };
        ledger.set_closed(false)?;
        ledger.adopt_removals()?;
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

    pub(crate) fn recent(&self) -> &RecentKeys {
        &self.recent
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

    /// Makes a step durable, under the writer's lock.
    pub(crate) fn write(&self, memory: &mut Memory, step: Step) -> Result<Effects, StoreError> {
        memory.refuse_if_broken()?;
        let Step { mut events, bodies } = step;
        self.append_bodies(memory, &mut events, &bodies)?;
        // A crawl that cannot be read is its own trouble, as long as nothing else has changed.
        for crawl in events.iter().filter_map(Event::crawl) {
            memory.crawl(crawl, self.rows())?;
        }
        let mut fold = Fold::new(self.rows(), memory, &self.recent);
        fold.look_up_links(&events)?;
        let (batch, effects) = fold.fold(events)?;
        self.rows().commit(batch)?;
        memory.broken = false;
        Ok(effects)
    }

    /// Changes the row of a crawl, which depends on nothing that is in memory. So it can be changed even
    /// after a commit that failed.
    pub(crate) fn change_row(&self, crawl: CrawlNo, change: CrawlChange) -> Result<(), StoreError> {
        let mut memory = self.memory();
        let was_broken = memory.broken;
        let events = vec![Event::CrawlChanged { crawl, change }];
        let folded = Fold::new(self.rows(), &mut memory, &self.recent).fold(events);
        let written = folded.and_then(|(batch, _)| self.rows().commit(batch));
        memory.broken = was_broken;
        if written.is_err() {
            // Its settings in memory are those that were not written.
            memory.forget(crawl);
        }
        written
    }

    /// Appends and syncs the bodies of a step, once for each crawl: they are on the disk before the
    /// records that point at them. Nothing but the unacknowledged tails of segments has changed when this
    /// fails.
    fn append_bodies(
        &self,
        memory: &mut Memory,
        events: &mut [Event],
        bodies: &[(usize, Packed)],
    ) -> Result<(), StoreError> {
        let mut by_crawl: HashMap<CrawlNo, Vec<&(usize, Packed)>> = HashMap::new();
        for body in bodies {
            if let Some(crawl) = self.wants_body(memory, &events[body.0])? {
                by_crawl.entry(crawl).or_default().push(body);
            }
        }
        let mut ends = Vec::with_capacity(by_crawl.len());
        for (crawl, bodies) in by_crawl {
            let Some(known) = memory.crawl(crawl, self.rows())? else { continue };
            let blobs: Vec<&[u8]> =
                bodies.iter().filter_map(|(_, packed)| packed.blob.as_deref()).collect();
            let (places, end) = self.bodies().append(crawl, known.bodies_end, &blobs)?;
            ends.push((crawl, end));
            for ((event, packed), place) in bodies.into_iter().zip(places) {
                point_at(&mut events[*event], packed, place);
            }
        }
        // Only when all are synced: what follows an end that is not committed is overwritten.
        for (crawl, end) in ends {
            if let Some(known) = memory.crawl(crawl, self.rows())? {
                known.bodies_end = end;
            }
        }
        tracing::trace!(blobs = bodies.len(), "bodies synced");
        Ok(())
    }

    /// The crawl that an event brings a body to, unless the fold will pass the event over: its crawl was
    /// removed, or its visit was settled by an earlier step.
    fn wants_body(
        &self,
        memory: &mut Memory,
        event: &Event,
    ) -> Result<Option<CrawlNo>, StoreError> {
        let rows = self.rows();
        let Some(crawl) = event.crawl() else { return Ok(None) };
        if memory.crawl(crawl, rows)?.is_none() {
            return Ok(None);
        }
        let is_wanted = match event {
            Event::VisitEnded(ended) => {
                // One that this very step queues is in no row yet.
                ended.visit.place.seq > memory.seq || self.is_queued(&ended.visit)?
            }
            Event::IdEnded(ended) => {
                memory.load_runs(crawl, ended.id.walk, rows)?;
                memory.crawl(crawl, rows)?.is_some_and(|known| is_wanted(known, ended.id))
            }
            Event::DocumentImported(_) => true,
            // They bring no body.
            Event::CrawlAccepted(_)
            | Event::CrawlChanged { .. }
            | Event::CrawlRan { .. }
            | Event::BudgetsRaised { .. }
            | Event::LinksFound(_)
            | Event::IdsMarked { .. }
            | Event::OriginLearned(_)
            | Event::HostNoted { .. }
            | Event::HostGivenUp(_)
            | Event::PageReadAgain(_)
            | Event::AskedAgain(_)
            | Event::TrapNoted { .. } => false,
        };
        Ok(is_wanted.then_some(crawl))
    }

    fn is_queued(&self, visit: &Visit) -> Result<bool, StoreError> {
        let key = layout::queue_key(visit.crawl, &visit.url.host(), visit.place);
        Ok(Lane::STORED.contains(&visit.place.lane) && self.rows().contains(Table::Queue, key)?)
    }
}

/// Tells the record of a page where its body is.
fn point_at(event: &mut Event, packed: &Packed, place: BlobRef) {
    if let Some(page) = event.page_mut() {
        page.body = packed.has_body.then_some(place);
        page.parsed = packed.has_extract.then_some(place);
    }
}
