//! [`Step`]: events that become durable together, and the bodies that they bring. [`Effects`]: what
//! they did.

use std::collections::BTreeSet;

use telusur_model::{
    CrawlNo, CrawlStats, Host, IdState, PageRecord, PageUrl, QueuePlace, Timestamp, Visit,
};

use crate::Packed;
use crate::event::{Event, IdEnded, IdEnding, VisitEnded, VisitOutcome};
use crate::links::LinksFound;

/// One atomic commit.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// What happened, in order.
    pub(crate) events: Vec<Event>,
    /// Bodies of pages, and the events that bring them.
    pub(crate) bodies: Vec<(usize, Packed)>,
}

impl Step {
    /// A step of one event.
    pub fn of(event: Event) -> Self {
        Self::from_iter([event])
    }

    /// Adds an event behind the others.
    pub fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Adds the end of a visit: the links that it found come first, so that wherever the step is cut,
    /// a visit that has ended has no link that is unknown.
    pub fn end(&mut self, ending: Ending) {
        let Ending { visit, how, at, requested_at, found, other_schemes, id, packed } = ending;
        self.events.extend(found.into_iter().map(|links| Event::LinksFound(Box::new(links))));
        let event = match id {
            None => {
                let ended = VisitEnded { visit, how, at, requested_at, other_schemes };
                Event::VisitEnded(Box::new(ended))
            }
            Some(id) => {
                let (page, status) = match how {
                    VisitOutcome::Page(page) => (Some(page), None),
                    VisitOutcome::NoPage { status } => (None, status),
                    VisitOutcome::Sitemap { .. }
                    | VisitOutcome::Redirected { .. }
                    | VisitOutcome::Failed { .. }
                    | VisitOutcome::Skipped { .. }
                    | VisitOutcome::Later { .. } => (None, None),
                };
                let ended = IdEnded { visit, id, page, status, requested_at, other_schemes };
                Event::IdEnded(Box::new(ended))
            }
        };
        self.push_page(event, packed);
    }

    /// Adds a document that nobody crawled.
    pub fn import(&mut self, page: PageToStore) {
        self.push_page(Event::DocumentImported(Box::new(page.record)), Some(page.packed));
    }

    fn push_page(&mut self, event: Event, packed: Option<Packed>) {
        if let Some(packed) = packed.filter(|packed| packed.blob.is_some()) {
            self.bodies.push((self.events.len(), packed));
        }
        self.events.push(event);
    }

    /// What happened, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The crawls that it is about.
    pub fn crawls(&self) -> BTreeSet<CrawlNo> {
        self.events.iter().filter_map(Event::crawl).collect()
    }

    /// Whether there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

impl FromIterator<Event> for Step {
    fn from_iter<I: IntoIterator<Item = Event>>(events: I) -> Self {
        Self { events: events.into_iter().collect(), bodies: Vec::new() }
    }
}

impl Extend<Event> for Step {
    fn extend<I: IntoIterator<Item = Event>>(&mut self, events: I) {
        self.events.extend(events);
    }
}

/// How one visit ended, and what was found on the way.
#[derive(Clone, Debug)]
pub struct Ending {
    /// The visit.
    pub visit: Visit,
    /// How it ended.
    pub how: VisitOutcome,
    /// When.
    pub at: Timestamp,
    /// When its request was sent.
    pub requested_at: Option<Timestamp>,
    /// Links found, by site.
    pub found: Vec<LinksFound>,
    /// Links that are never fetched, of which only the number is kept.
    pub other_schemes: u32,
    /// The state of the id, if it was asked for one of a linear crawl.
    pub id: Option<IdEnding>,
    /// What is kept of its page.
    pub packed: Option<Packed>,
}

/// A page with its bytes. The ledger fills in the record's sequence number and the bytes' place.
#[derive(Clone, Debug)]
pub struct PageToStore {
    /// The record.
    pub record: PageRecord,
    /// What is kept of it.
    pub packed: Packed,
}

/// What a step did.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// URLs that are new in the queues, retried ones included.
    pub queued: Vec<NewlyQueued>,
    /// The queue rows that are gone.
    pub dequeued: Vec<Dequeued>,
    /// The pages that are stored, in order: what an indexer is told.
    pub stored: Vec<Stored>,
    /// The counters of the crawls that the step touched.
    pub stats: Vec<(CrawlNo, CrawlStats)>,
    /// Crawls that may have more links to let in than the step looked at.
    pub more_held: Vec<CrawlNo>,
}

/// A page that was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its place in the order of all pages.
    pub seq: u64,
    /// Its address.
    pub url: PageUrl,
}

/// A queued URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewlyQueued {
    /// The visit to come.
    pub visit: Visit,
    /// Not before this time.
    pub due: Option<Timestamp>,
    /// The host asked for that time (`Retry-After`).
    pub asked_to_wait: bool,
}

/// A queue row that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dequeued {
    /// Of this crawl.
    pub crawl: CrawlNo,
    /// And this host.
    pub host: Host,
    /// From here.
    pub place: QueuePlace,
    /// Whether a page was stored for it.
    pub stored_page: bool,
    /// The state of the id, if it was one of a linear crawl and never had a row.
    pub id_state: Option<IdState>,
}
