//! [`Head`]: the part of a queue that is in memory. The store holds the whole queue; this never
//! loses a place of it and never holds one twice, however reads, discoveries and commits cross.

use std::collections::{BTreeMap, BTreeSet};

use telusur_model::{Moment, QueuePlace, Visit};

/// A visit in line, and when it is due (`None`: at once).
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) visit: Visit,
    pub(crate) due: Option<Moment>,
}

impl Waiting {
    fn place(&self) -> QueuePlace {
        self.visit.place
    }
}

/// The first visits of one region of a queue.
///
/// Invariant: every place up to `cursor` that the store holds is in `visits`, or is outstanding.
/// Places beyond it exist only if `more`.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    visits: BTreeMap<QueuePlace, Waiting>,
    cursor: Option<QueuePlace>,
    more: bool,
    read: Read,
}

/// Whether the store is being asked.
#[derive(Clone, Debug)]
enum Read {
    No,
    /// It should be.
    Wanted,
    UnderWay(ReadUnderWay),
}

/// What happened since the store was asked. The answer may be older than all of it.
#[derive(Clone, Debug, Default)]
struct ReadUnderWay {
    /// The head was cut since: the answer no longer joins on to it.
    void: bool,
    /// The first place discovered beyond the cursor. One is kept, so that every read brings the
    /// head forward even while discoveries keep arriving.
    arrival: Option<Box<Waiting>>,
    /// The first place discovered beyond the cursor that was not kept: what the answer says from
    /// there on cannot be trusted to be complete.
    cut: Option<QueuePlace>,
    /// Places committed beyond the cursor: the answer may still hold them.
    committed: BTreeSet<QueuePlace>,
}

impl Head {
    /// An empty head; `more`: the store may hold places.
    pub(crate) fn new(more: bool) -> Self {
        Self { visits: BTreeMap::new(), cursor: None, more, read: Read::No }
    }

    pub(crate) fn first(&self) -> Option<&Waiting> {
        self.visits.first_key_value().map(|(_, waiting)| waiting)
    }

    pub(crate) fn take_first(&mut self) -> Option<Visit> {
        self.visits.pop_first().map(|(_, waiting)| waiting.visit)
    }

    /// Whether neither memory nor store holds anything.
    pub(crate) fn is_drained(&self) -> bool {
        self.visits.is_empty() && !self.more
    }

    /// Takes note of a place that is in the store now.
    pub(crate) fn discovered(&mut self, waiting: Waiting, max: usize) {
        let place = waiting.place();
        if !self.more || Some(place) <= self.cursor {
            self.cursor = self.cursor.max(Some(place));
            self.visits.insert(place, waiting);
            self.trim(max);
        } else if let Read::UnderWay(read) = &mut self.read {
            read.arrived(waiting);
        }
    }

    /// Takes note that the store has removed a place.
    pub(crate) fn committed(&mut self, place: QueuePlace) {
        self.visits.remove(&place);
        if let Read::UnderWay(read) = &mut self.read
            && Some(place) > self.cursor
        {
            read.committed.insert(place);
            if read.arrival.as_ref().is_some_and(|arrival| arrival.place() == place) {
                read.arrival = None;
            }
        }
    }

    /// Marks the head as in need of a read, if it is. True once per need.
    pub(crate) fn wants_read(&mut self, max: usize) -> bool {
        let low_water = (max / 4).max(1);
        let wants = self.more && self.visits.len() < low_water && matches!(self.read, Read::No);
        if wants {
            self.read = Read::Wanted;
        }
        wants
    }

    /// The store is asked for places after the one returned.
    pub(crate) fn begin_read(&mut self) -> Option<QueuePlace> {
        self.read = Read::UnderWay(ReadUnderWay::default());
        self.cursor
    }

    /// How many places fit.
    pub(crate) fn room(&self, max: usize) -> usize {
        max.saturating_sub(self.visits.len()).max(1)
    }

    /// Takes in the answer of the store. `is_outstanding`: handed out and not yet committed, so
    /// the store still holds it. False if no answer was expected.
    pub(crate) fn refill(
        &mut self,
        answer: Vec<Waiting>,
        exhausted: bool,
        max: usize,
        is_outstanding: impl Fn(&QueuePlace) -> bool,
    ) -> bool {
        let Read::UnderWay(read) = &mut self.read else {
            return false;
        };
        let read = std::mem::take(read);
        self.read = Read::No;
        if read.void {
            return true;
        }
        let last = answer.iter().map(Waiting::place).max();
        let within_answer = |place: QueuePlace| exhausted || Some(place) <= last;
        let cut = read.cut.filter(|&cut| within_answer(cut));
        for waiting in answer.into_iter().chain(read.arrival.map(|arrival| *arrival)) {
            let place = waiting.place();
            if !within_answer(place) || cut.is_some_and(|cut| place >= cut) {
                continue;
            }
            self.cursor = self.cursor.max(Some(place));
            if !is_outstanding(&place) && !read.committed.contains(&place) {
                self.visits.insert(place, waiting);
            }
        }
        self.more = !exhausted || cut.is_some();
        self.trim(max);
        true
    }

    /// Leaves what does not fit to the store.
    fn trim(&mut self, max: usize) {
        while self.visits.len() > max.max(1) {
            self.visits.pop_last();
            self.cursor = self.visits.last_key_value().map(|(&place, _)| place);
            self.more = true;
            if let Read::UnderWay(read) = &mut self.read {
                read.void = true;
            }
        }
    }
}

impl ReadUnderWay {
    fn arrived(&mut self, waiting: Waiting) {
        let place = waiting.place();
        let passed_over = match &self.arrival {
            Some(first) if first.place() < place => Some(place),
            Some(first) if first.place() == place => None,
            first => {
                let passed_over = first.as_ref().map(|first| first.place());
                self.arrival = Some(Box::new(waiting));
                passed_over
            }
        };
        if let Some(place) = passed_over {
            self.cut = Some(self.cut.map_or(place, |cut| cut.min(place)));
        }
    }
}
