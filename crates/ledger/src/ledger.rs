//! [`Ledger`]: the store of crawls over any [`Storage`]. Everything that a crawl decides about its
//! links, budgets, ids and counters is decided here, under one lock; storage only keeps bytes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use telusur_model::{BlobRef, CrawlNo, Lane, Visit};

use crate::event::Event;
use crate::fold::{Fold, is_wanted};
use crate::layout;
use crate::memory::{Memory, committed_end};
use crate::recent::RecentKeys;
use crate::removal::Deleting;
use crate::step_record::encode_record;
use crate::storage::{Batch, Bodies, BodiesEnd, Rows, Storage, Table, WriteRows};
use crate::{CrawlAccepted, CrawlChange, Effects, Packed, Step, StoreError};

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
    /// Opens what is in a storage, and does again what is in the bodies and not in the rows. Removals that were
    /// cut short are not waited for.
    pub fn open(storage: S) -> Result<Self, StoreError> {
        let ledger = Self::load(storage)?;
        ledger.redo_missing()?;
        ledger.set_closed(false)?;
        ledger.adopt_removals()?;
        Ok(ledger)
    }

    /// Opens a storage whose last writer kept no records of steps.
    pub fn open_without_records(storage: S) -> Result<Self, StoreError> {
        let ledger = Self::load(storage)?;
        ledger.set_closed(false)?;
        ledger.adopt_removals()?;
        Ok(ledger)
    }

    /// Reads what is in a storage, and changes nothing.
    pub(crate) fn load(storage: S) -> Result<Self, StoreError> {
        let (memory, was_closed) = Memory::load(storage.rows(), storage.key_seed())?;
        let bodies = storage.bodies().crawls()?;
        let bodies = bodies.iter().filter_map(|alias| alias.strip_prefix("crawl_")?.parse().ok());
        let bodies = bodies.chain(storage.bodies().half_removed()?.into_iter().map(|no| no.0));
        let bodies_found = bodies.filter(|no| *no > memory.crawls).map(CrawlNo).collect();
        Ok(Self {
            storage,
            was_closed,
            bodies_found,
            memory: Mutex::new(memory),
            recent: RecentKeys::new(),
            deleting: Mutex::default(),
            #[cfg(test)]
            before_lock: Mutex::new(None),
        })
    }

    /// The storage.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// The storage, without a ledger.
    pub fn into_storage(self) -> S {
        self.storage
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
        // A crawl that cannot be read is its own trouble, as long as nothing else has changed.
        for crawl in events.iter().filter_map(Event::crawl) {
            memory.crawl(crawl, self.rows())?;
        }
        let ends = self.append_records(memory, &mut events, &bodies)?;
        let mut fold = Fold::new(self.rows(), memory, &self.recent).with_ends(ends);
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
        let Some(row) = crate::crawls::read_row(self.rows(), crawl)? else { return Ok(()) };
        let was_broken = memory.broken;
        // After a failed commit the rows say how far the steps have come, and memory does not.
        memory.step = crate::memory::committed_step(self.rows())?;
        let event = Event::CrawlChanged { crawl, change };
        let ends = self.append_change(&mut memory, crawl, &event)?;
        if let Event::CrawlChanged { change: CrawlChange::Settings(settings), .. } = &event {
            let key_seed = row.keyer(self.key_seed()).seed;
            self.put_settings(&CrawlAccepted { crawl: (**settings).clone(), key_seed })?;
        }
        let fold = Fold::new(self.rows(), &mut memory, &self.recent).with_ends(ends);
        let folded = fold.fold(vec![event]);
        let written = folded.and_then(|(batch, _)| self.rows().commit(batch));
        memory.broken = was_broken;
        if written.is_err() {
            // Its settings in memory are those that were not written.
            memory.forget(crawl);
        }
        written
    }

    /// Appends the record of a change of a crawl behind what was committed of its bodies.
    fn append_change(
        &self,
        memory: &mut Memory,
        crawl: CrawlNo,
        event: &Event,
    ) -> Result<Vec<(CrawlNo, BodiesEnd)>, StoreError> {
        let end = committed_end(self.rows(), crawl)?;
        let step = memory.step + 1;
        let record = |_: &[BlobRef]| encode_record(step, memory.seq, vec![0], &[event]);
        match self.bodies().append(crawl, end, &[], record) {
            Ok(end) => {
                memory.step = step;
                Ok(vec![(crawl, end)])
            }
            // That a crawl stands still because its bodies cannot be written must be written down, too: the
            // row can be.
            Err(error) if !changes_settings(event) => {
                tracing::warn!(%crawl, %error, "a change of a crawl is in its row only");
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    /// Appends and syncs the bodies and the record of a step, once for each crawl: they are on the disk
    /// before the rows. Nothing but the unacknowledged tails of segments has changed when this
    /// fails. Gives the new ends.
    fn append_records(
        &self,
        memory: &mut Memory,
        events: &mut [Event],
        bodies: &[(usize, Packed)],
    ) -> Result<Vec<(CrawlNo, BodiesEnd)>, StoreError> {
        let mut by_crawl: BTreeMap<CrawlNo, Vec<usize>> = BTreeMap::new();
        let (mut ended, mut marked) = (HashSet::new(), HashSet::new());
        for (place, event) in events.iter().enumerate() {
            let Some(crawl) = event.crawl() else { continue };
            if let Event::VisitEnded(visit) = event
                && !ended.insert(visit.visit.place.seq)
            {
                continue;
            }
            // What this very step changes is in no row yet: a crawl that it accepts, ids that it marks.
            let is_new =
                by_crawl.contains_key(&crawl) && memory.crawl(crawl, self.rows())?.is_none();
            let is_of_marked = marked.contains(&crawl) && matches!(event, Event::IdEnded(_));
            if is_new || is_of_marked || self.is_recorded(memory, crawl, event)? {
                by_crawl.entry(crawl).or_default().push(place);
            }
            if matches!(event, Event::IdsMarked { .. } | Event::PageLost(_)) {
                marked.insert(crawl);
            }
        }
        if by_crawl.is_empty() {
            return Ok(Vec::new());
        }
        let bodies: HashMap<usize, &Packed> =
            bodies.iter().map(|(event, packed)| (*event, packed)).collect();
        let step = memory.step + 1;
        let mut ends = Vec::with_capacity(by_crawl.len());
        for (crawl, recorded) in by_crawl {
            let known = memory.crawl(crawl, self.rows())?;
            let end = known.map_or_else(BodiesEnd::default, |known| known.bodies_end);
            let brought: Vec<(usize, &Packed)> =
                recorded.iter().filter_map(|at| Some((*at, *bodies.get(at)?))).collect();
            let blobs: Vec<&[u8]> =
                brought.iter().filter_map(|(_, packed)| packed.blob.as_deref()).collect();
            let end = self.bodies().append(crawl, end, &blobs, |places| {
                for ((event, packed), place) in brought.iter().zip(places) {
                    point_at(&mut events[*event], packed, *place);
                }
                let kept: Vec<&Event> = recorded.iter().map(|at| &events[*at]).collect();
                encode_record(step, memory.seq, places_of(&recorded), &kept)
            })?;
            ends.push((crawl, end));
            for at in recorded {
                if let Event::CrawlAccepted(accepted) = &events[at] {
                    self.put_settings(accepted)?;
                }
            }
        }
        // Only when all are synced: what follows an end that is not committed is overwritten.
        memory.step = step;
        tracing::trace!(step, blobs = bodies.len(), "bodies synced");
        Ok(ends)
    }

    /// Keeps the settings of a crawl beside its bodies: whatever happens to rows and records, it can be
    /// said what was crawled.
    pub(crate) fn put_settings(&self, accepted: &CrawlAccepted) -> Result<(), StoreError> {
        let json = serde_json::to_vec(accepted).expect("a crawl holds nothing JSON cannot write");
        self.bodies().put_settings(accepted.crawl.no, &json)
    }

    /// Whether the record of a step keeps an event. Not if the fold will pass it over (its crawl was
    /// removed, or its visit was settled by an earlier step), and not if what it says is not worth a sync:
    /// notes about hosts and origins are learned again.
    fn is_recorded(
        &self,
        memory: &mut Memory,
        crawl: CrawlNo,
        event: &Event,
    ) -> Result<bool, StoreError> {
        let rows = self.rows();
        let is_known = memory.crawl(crawl, rows)?.is_some();
        Ok(match event {
            Event::CrawlAccepted(_) => !is_known,
            Event::HostNoted { .. } | Event::OriginLearned(_) => false,
            Event::VisitEnded(ended) => {
                // One that this very step queues is in no row yet.
                is_known && (ended.visit.place.seq > memory.seq || self.is_queued(&ended.visit)?)
            }
            Event::IdEnded(ended) => {
                memory.load_runs(crawl, ended.id.walk, rows)?;
                memory.crawl(crawl, rows)?.is_some_and(|known| is_wanted(known, ended.id))
            }
            Event::CrawlChanged { .. }
            | Event::CrawlRan { .. }
            | Event::BudgetsRaised { .. }
            | Event::LinksFound(_)
            | Event::IdsMarked { .. }
            | Event::HostGivenUp(_)
            | Event::DocumentImported(_)
            | Event::PageReadAgain(_)
            | Event::AskedAgain(_)
            | Event::PageLost(_)
            | Event::TrapNoted { .. } => is_known,
        })
    }

    fn is_queued(&self, visit: &Visit) -> Result<bool, StoreError> {
        let key = layout::queue_key(visit.crawl, &visit.url.host(), visit.place);
        Ok(Lane::STORED.contains(&visit.place.lane) && self.rows().contains(Table::Queue, key)?)
    }
}

fn changes_settings(event: &Event) -> bool {
    matches!(event, Event::CrawlChanged { change: CrawlChange::Settings(_), .. })
}

fn places_of(recorded: &[usize]) -> Vec<u32> {
    let place = |at: &usize| u32::try_from(*at).expect("a step has far fewer events");
    recorded.iter().map(place).collect()
}

/// Tells the record of a page where its body is.
fn point_at(event: &mut Event, packed: &Packed, place: BlobRef) {
    if let Some(page) = event.page_mut() {
        page.body = packed.has_body.then_some(place);
        page.parsed = packed.has_extract.then_some(place);
    }
}
