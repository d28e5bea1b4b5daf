//! What happens to a crawl, as it happens. One [`Feed`] follows a crawl for all who watch it and writes
//! every event once; a reader that is too slow misses events and gets a new snapshot instead.
//!
//! An event's id is the place of the last page that was told. Pages are kept in the store in that order,
//! so a reader that comes back, even to another process, gets exactly the pages that it missed.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use telusur_engine::Part;
use telusur_engine::control::page_view;
use telusur_model::CrawlNo;
use tokio::sync::broadcast::{self, error::RecvError};

use super::Service;
use crate::json::CrawlView;
use crate::problem::{Code, Problem, draining};

/// Events that a reader may be behind before it gets a snapshot instead: a few seconds of a fast crawl.
const EVENTS_BEHIND_MAX: usize = 1024;
/// Pages that are told in one go.
const PAGES_AT_ONCE: usize = 200;
/// Pages that a reader who comes back is told of; beyond that a snapshot says enough.
const PAGES_MISSED_MAX: usize = 1000;
/// How often counters are told.
const STATS_EVERY: Duration = Duration::from_secs(1);

/// The kinds of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The whole crawl: the first event, and whenever a reader was too slow.
    Snapshot,
    /// The counters.
    Stats,
    /// A page was stored.
    Page,
    /// The crawl does something else now.
    State,
    /// The crawl is over: the last event.
    Done,
}

impl EventKind {
    const ALL: [Self; 5] = [Self::Snapshot, Self::Stats, Self::Page, Self::State, Self::Done];

    /// The word that it is sent under.
    pub fn word(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Stats => "stats",
            Self::Page => "page",
            Self::State => "state",
            Self::Done => "done",
        }
    }
}

/// Which events a reader wants. It always gets snapshots and the end.
#[derive(Clone, Debug)]
pub struct EventKinds(Vec<EventKind>);

impl EventKinds {
    /// Reads `stats,page`; nothing is everything.
    pub fn read(text: Option<&str>) -> Result<Self, Problem> {
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return Ok(Self(EventKind::ALL.to_vec()));
        };
        let mut kinds = vec![EventKind::Snapshot, EventKind::Done];
        for word in text.split(',').map(str::trim) {
            let kind = EventKind::ALL.into_iter().find(|kind| kind.word() == word);
            kinds.push(kind.ok_or_else(|| {
                Problem::new(Code::InvalidField, "write stats, page, state or done").at("types")
            })?);
        }
        Ok(Self(kinds))
    }

    fn has(&self, kind: EventKind) -> bool {
        self.0.contains(&kind)
    }
}

/// Something happened.
#[derive(Clone, Debug)]
pub struct ServiceEvent {
    /// What.
    pub kind: EventKind,
    /// The place of the last page that was told up to here.
    pub id: u64,
    /// The rest, as JSON.
    pub data: Arc<str>,
}

impl ServiceEvent {
    fn new(kind: EventKind, id: u64, data: &impl Serialize) -> Self {
        let data = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
        Self { kind, id, data: data.into() }
    }
}

/// The feeds of the crawls that somebody watches.
#[derive(Default)]
pub(crate) struct Feeds {
    /// Held to find or add a feed, never while waiting.
    by_crawl: Mutex<HashMap<CrawlNo, Weak<Feed>>>,
}

/// Follows one crawl, as long as somebody holds it.
struct Feed {
    events: broadcast::Sender<ServiceEvent>,
}

impl Feeds {
    fn by_crawl(&self) -> MutexGuard<'_, HashMap<CrawlNo, Weak<Feed>>> {
        self.by_crawl.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The feed of a crawl; the first who asks for it sets it going.
    async fn of(&self, service: &Service, no: CrawlNo) -> Result<Arc<Feed>, Problem> {
        let running = |feeds: &HashMap<CrawlNo, Weak<Feed>>| feeds.get(&no).and_then(Weak::upgrade);
        if let Some(feed) = running(&self.by_crawl()) {
            return Ok(feed);
        }
        // Where the feed begins is known before anybody listens to it: no page falls in between.
        let seq = service.read(move |service| service.last_seq(no)).await?;
        let mut by_crawl = self.by_crawl();
        by_crawl.retain(|_, feed| feed.strong_count() > 0);
        if let Some(feed) = running(&by_crawl) {
            return Ok(feed);
        }
        let feed = Arc::new(Feed { events: broadcast::channel(EVENTS_BEHIND_MAX).0 });
        by_crawl.insert(no, Arc::downgrade(&feed));
        let following = follow(service.clone(), no, Arc::downgrade(&feed), seq);
        service.inner().engine.supervisor().work(Part::Service("events"), following);
        Ok(feed)
    }

    /// The feed has ended: who comes next needs a new one.
    fn forget(&self, no: CrawlNo) {
        self.by_crawl().remove(&no);
    }
}

/// Tells what happens to a crawl until nobody listens, or it is over.
async fn follow(service: Service, no: CrawlNo, feed: Weak<Feed>, seq: u64) {
    let mut snapshots = service.inner().engine.progress();
    let mut tick = tokio::time::interval(STATS_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut told = Told { seq, pages: None, state: None };
    let ending = service.ending();
    loop {
        let is_second = tokio::select! {
            _ = tick.tick() => true,
            shown = snapshots.changed() => {
                if shown.is_err() {
                    break;
                }
                let shown = snapshots.borrow_and_update();
                let pages = shown.get(&no).map(|snapshot| snapshot.stats.pages);
                if pages.is_none() || pages == told.pages {
                    continue;
                }
                false
            }
            () = ending.cancelled() => break,
        };
        let Some(feed) = feed.upgrade() else { break };
        if tell(&service, no, &feed, &mut told, is_second).await {
            break;
        }
    }
    service.inner().feeds.forget(no);
}

/// Tells what is new. True if that was all.
async fn tell(
    service: &Service,
    no: CrawlNo,
    feed: &Feed,
    told: &mut Told,
    is_second: bool,
) -> bool {
    let send = |event: ServiceEvent| drop(feed.events.send(event));
    loop {
        let seq = told.seq;
        let Ok((crawl, pages)) = service.read(move |service| service.news(no, seq)).await else {
            // Thrown away while somebody watched.
            let gone = json!({ "alias": no.to_string(), "state": "deleted" });
            send(ServiceEvent::new(EventKind::Done, told.seq, &gone));
            return true;
        };
        let has_more = pages.len() == PAGES_AT_ONCE;
        for page in pages {
            told.seq = page.id;
            send(page);
        }
        if has_more {
            continue;
        }
        told.pages = Some(crawl.stats.fetched);
        if is_second {
            send(ServiceEvent::new(EventKind::Stats, told.seq, &crawl.stats));
        }
        let state = (crawl.state.clone(), crawl.finish_reason.clone());
        if told.state.as_ref() != Some(&state) {
            told.state = Some(state);
            send(ServiceEvent::new(EventKind::State, told.seq, &state_json(&crawl)));
        }
        let is_over = crawl.ended_at.is_some();
        if is_over {
            send(ServiceEvent::new(EventKind::Done, told.seq, &state_json(&crawl)));
        }
        return is_over;
    }
}

/// What a feed told last.
struct Told {
    seq: u64,
    pages: Option<u64>,
    state: Option<(String, Option<String>)>,
}

fn state_json(crawl: &CrawlView) -> serde_json::Value {
    json!({
        "id": crawl.id,
        "alias": crawl.alias,
        "state": crawl.state,
        "finish_reason": crawl.finish_reason,
        "pause_reason": crawl.pause_reason,
    })
}

/// Reads the events of a crawl.
pub struct EventReader {
    service: Service,
    no: CrawlNo,
    kinds: EventKinds,
    /// Keeps the feed going.
    _feed: Arc<Feed>,
    events: broadcast::Receiver<ServiceEvent>,
    /// Events that come before those of the feed.
    ahead: VecDeque<ServiceEvent>,
    /// The place of the last page that this reader was told.
    seq: u64,
    is_over: bool,
}

impl Service {
    /// Reads the events of a crawl from now on. One who was told of pages up to `last_id` before gets
    /// those that it missed. `None`: the crawl is over, and everything was told.
    pub async fn events(
        &self,
        no: CrawlNo,
        kinds: EventKinds,
        last_id: Option<u64>,
    ) -> Result<Option<EventReader>, Problem> {
        if self.is_draining() {
            return Err(draining());
        }
        let feed = self.inner().feeds.of(self, no).await?;
        let events = feed.events.subscribe();
        let (crawl, missed, newest) = self
            .read(move |service| {
                let (crawl, _) = service.crawl_now(no)?;
                let newest = service.last_seq(no)?;
                let after = last_id.filter(|id| *id <= newest).unwrap_or(newest);
                let missed = service.inner().store.pages_after(no, after, PAGES_MISSED_MAX + 1)?;
                Ok((crawl, missed, newest))
            })
            .await?;
        let is_over = crawl.ended_at.is_some();
        if is_over && last_id == Some(newest) {
            return Ok(None);
        }
        let mut reader = EventReader {
            service: self.clone(),
            no,
            kinds,
            _feed: feed,
            events,
            ahead: VecDeque::new(),
            seq: newest,
            is_over: false,
        };
        let are_few = missed.len() <= PAGES_MISSED_MAX;
        let first = last_id.filter(|id| are_few && *id <= newest).unwrap_or(newest);
        reader.ahead.push_back(ServiceEvent::new(EventKind::Snapshot, first, &crawl));
        for page in missed.into_iter().filter(|page| are_few && page.seq <= newest) {
            let seq = page.seq;
            reader.ahead.push_back(ServiceEvent::new(EventKind::Page, seq, &page_view(page)));
        }
        if is_over {
            let done = ServiceEvent::new(EventKind::Done, newest, &state_json(&crawl));
            reader.ahead.push_back(done);
        }
        Ok(Some(reader))
    }

    /// The pages after one, as they are told, and the crawl. Blocks.
    fn news(&self, no: CrawlNo, seq: u64) -> Result<(CrawlView, Vec<ServiceEvent>), Problem> {
        // The crawl is read first: its counters never promise pages that are not told yet.
        let record = self.record(no)?;
        let pages = self.inner().store.pages_after(no, seq, PAGES_AT_ONCE)?;
        let told = pages.into_iter().map(|page| {
            let seq = page.seq;
            ServiceEvent::new(EventKind::Page, seq, &page_view(page))
        });
        Ok((self.view(&record, &[]), told.collect()))
    }

    /// The place of the last page of a crawl, or 0. Blocks.
    fn last_seq(&self, no: CrawlNo) -> Result<u64, Problem> {
        Ok(self.inner().control.last_seq(no)?)
    }
}

impl EventReader {
    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<ServiceEvent> {
        let ending = self.service.ending();
        while !self.is_over {
            if let Some(event) = self.ahead.pop_front() {
                self.is_over = event.kind == EventKind::Done;
                if self.kinds.has(event.kind) {
                    return Some(event);
                }
                continue;
            }
            let told = tokio::select! {
                told = self.events.recv() => told,
                () = ending.cancelled() => return None,
            };
            match told {
                Ok(event) => self.take(event),
                Err(RecvError::Lagged(_)) => self.catch_up().await?,
                Err(RecvError::Closed) => return None,
            }
        }
        None
    }

    fn take(&mut self, event: ServiceEvent) {
        // A page that this reader was told while it came back.
        let is_known = event.kind == EventKind::Page && event.id <= self.seq;
        self.seq = self.seq.max(event.id);
        if !is_known {
            self.ahead.push_back(event);
        }
    }

    /// Too slow: a whole snapshot instead of what was missed.
    async fn catch_up(&mut self) -> Option<()> {
        let no = self.no;
        let read = self.service.read(move |service| {
            let (crawl, _) = service.crawl_now(no)?;
            Ok((crawl, service.last_seq(no)?))
        });
        let (crawl, seq) = read.await.ok()?;
        self.seq = self.seq.max(seq);
        self.ahead.push_back(ServiceEvent::new(EventKind::Snapshot, self.seq, &crawl));
        Some(())
    }
}
