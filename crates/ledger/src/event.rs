//! [`Event`]: something that happened in a crawl, in the form in which the ledger folds it into rows.
//!
//! Events are plain data: they can be written down, sent and folded again elsewhere. The same events in
//! the same order give the same rows, however they are cut into batches.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};
use telusur_model::{
    Crawl, CrawlNo, CrawlState, EngineFault, Host, OriginRow, PageRecord, PageUrl, Reason, Site,
    Timestamp, UrlKey, Visit,
};

use crate::links::LinksFound;
use crate::{KeptRun, KeptState, StoreError};

/// The version of the encoding. It changes whenever an older program would misread an event.
const VERSION: u8 = 1;

/// Something that happened in a crawl.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// A crawl is accepted: its start URLs are queued.
    CrawlAccepted(#[serde(with = "as_json")] Box<CrawlAccepted>),
    /// A crawl has other settings, or another state.
    CrawlChanged {
        /// This crawl.
        crawl: CrawlNo,
        /// What changed.
        #[serde(with = "as_json")]
        change: CrawlChange,
    },
    /// A crawl has run.
    CrawlRan {
        /// This crawl.
        crawl: CrawlNo,
        /// Since the last such event.
        active_ms: u64,
    },
    /// Budgets were raised: a bounded number of the links that they left out is let in.
    /// [`Effects::more_held`](crate::Effects::more_held) says whether there are more.
    BudgetsRaised {
        /// Of this crawl.
        crawl: CrawlNo,
    },
    /// Links to one site were found.
    LinksFound(Box<LinksFound>),
    /// A queued visit ended, or goes back to the queue.
    VisitEnded(Box<VisitEnded>),
    /// A visit to an id of a linear crawl ended.
    IdEnded(Box<IdEnded>),
    /// Ids have another state although no visit ended: holes that are asked again.
    IdsMarked {
        /// Of this crawl.
        crawl: CrawlNo,
        /// The site of the walk.
        site: Site,
        /// In this walk.
        walk: u32,
        /// The ids and their state.
        run: KeptRun,
    },
    /// Something was learned about an origin.
    OriginLearned(Box<OriginRow>),
    /// Something was learned about a host.
    HostNoted {
        /// In this crawl.
        crawl: CrawlNo,
        /// This host.
        host: Host,
        /// What was learned.
        note: HostNote,
    },
    /// The queued URLs of a host are given up, a bounded number of them.
    HostGivenUp(Box<GiveUp>),
    /// A document that nobody crawled. One whose key is known as a page replaces that page.
    DocumentImported(Box<PageRecord>),
    /// A stored page was parsed again: its record is replaced, and it gets a new place in the order of
    /// pages. Its body stays where it is.
    PageReadAgain(Box<PageRecord>),
    /// A URL that failed goes back to the queue, at a place that the fold gives it.
    AskedAgain(Box<Visit>),
    /// Pages of one URL shape look alike, or do not any more.
    TrapNoted {
        /// In this crawl.
        crawl: CrawlNo,
        /// On this site.
        site: Site,
        /// How far.
        mark: TrapMark,
    },
    /// The body of a stored page cannot be read: the page goes, and is asked for again.
    PageLost(Box<PageLost>),
}

/// Which slots an event concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The slot of this site.
    Site(Site),
    /// Every slot: each has a part of the crawl.
    EverySlot,
    /// One slot, whichever it is: a sum over slots counts it once.
    AnySlot,
}

/// A crawl as it is accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrawlAccepted {
    /// Its settings, with its number and id.
    pub crawl: Crawl,
    /// The seed of its URL keys: the same on every machine that works on the crawl.
    pub key_seed: u64,
}

/// A change of a crawl.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CrawlChange {
    /// Settings that may change while a crawl runs: limits, politeness, exclusions.
    Settings(Box<Crawl>),
    /// What the crawl is doing, since when.
    State(CrawlState, Timestamp),
    /// The crawl ended the engine, or that is forgotten.
    Fault(Option<EngineFault>),
}

/// What was learned about a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostNote {
    /// A request that belongs to no URL of the crawl, such as one for robots.txt, was sent at this time.
    Requested(Timestamp),
    /// It was last asked at this time, by a visit that leaves nothing else behind: it is still under way,
    /// or is given back to the queue.
    LastRequest(Timestamp),
    /// Its delay in milliseconds; `None` is the crawl's own.
    Delay(Option<u64>),
}

/// How a queued visit ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VisitEnded {
    /// The visit.
    pub visit: Visit,
    /// How it ended.
    pub how: VisitOutcome,
    /// When.
    pub at: Timestamp,
    /// When its request was sent.
    pub requested_at: Option<Timestamp>,
    /// Links that are never fetched, of which only the number is kept.
    pub other_schemes: u32,
}

/// How a visit to an id of a linear crawl ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdEnded {
    /// The visit.
    pub visit: Visit,
    /// The state of the id.
    pub id: IdEnding,
    /// Its page, if it has one.
    pub page: Option<Box<PageRecord>>,
    /// The status of its answer, if it has no page.
    pub status: Option<u16>,
    /// When its request was sent.
    pub requested_at: Option<Timestamp>,
    /// Links that are never fetched, of which only the number is kept.
    pub other_schemes: u32,
}

/// The state of an id of a linear crawl after a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdEnding {
    /// In this walk.
    pub walk: u32,
    /// Its position there.
    pub position: u64,
    /// Its state, and why.
    pub kept: KeptState,
}

/// How a visit ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum VisitOutcome {
    /// The server answered.
    Page(Box<PageRecord>),
    /// A sitemap was read, or is none.
    Sitemap {
        /// Entries that are followed up.
        entries: u32,
        /// Entries that were left out.
        dropped: u64,
        /// Why it was not read, or not to its end.
        trouble: Option<String>,
    },
    /// The server sent us elsewhere; the target is among the links found.
    Redirected {
        /// The redirecting status.
        status: u16,
        /// Where to.
        to: String,
    },
    /// There was no answer, and there will be none.
    Failed {
        /// Why.
        reason: Reason,
        /// What exactly.
        detail: String,
    },
    /// An id of a linear crawl has no page: it does not exist, or it failed. Nothing is kept of it
    /// but its run.
    NoPage {
        /// The status, if the server answered.
        status: Option<u16>,
    },
    /// It was not asked for after all.
    Skipped {
        /// Why.
        reason: Reason,
        /// By which rule.
        rule: String,
    },
    /// It is asked again.
    Later {
        /// When.
        due: Timestamp,
        /// Whether this attempt counts.
        counted: bool,
        /// What went wrong.
        reason: Reason,
        /// The status, if the server answered.
        status: Option<u16>,
        /// What exactly.
        detail: String,
    },
}

/// A stored page whose body cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageLost {
    /// Of this crawl.
    pub crawl: CrawlNo,
    /// Its address; of an id that was redirected, the address of the id.
    pub url: PageUrl,
    /// Its identity.
    pub key: UrlKey,
    /// How it is asked for again.
    pub again: LostPageRetry,
}

/// How a lost page is asked for again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LostPageRetry {
    /// Its URL goes back to the queue, at a place that the fold gives it.
    Queue(Box<Visit>),
    /// Its id is a hole.
    Id {
        /// In this walk.
        walk: u32,
        /// At this position.
        position: u64,
    },
    /// Not at all: nobody knows where it came from.
    Never,
}

/// How far pages of one URL shape say the same: what makes a trap end, and stay ended after the next
/// start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrapMark {
    /// The shape, by a hash.
    pub shape: u64,
    /// Look-alikes in a row; 0 if they are none any more, and nothing is kept.
    pub run: u32,
    /// The rule in words, if the shape's budget has ended.
    pub rule: Option<String>,
}

/// The queued URLs of a host end without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GiveUp {
    /// Of this crawl.
    pub crawl: CrawlNo,
    /// And this host.
    pub host: Host,
    /// Why.
    pub reason: Reason,
    /// What exactly.
    pub detail: String,
    /// When.
    pub at: Timestamp,
}

impl Event {
    /// The crawl that it is about. An origin is known to all crawls.
    pub fn crawl(&self) -> Option<CrawlNo> {
        match self {
            Self::CrawlAccepted(accepted) => Some(accepted.crawl.no),
            Self::LinksFound(found) => Some(found.source.crawl),
            Self::VisitEnded(ended) => Some(ended.visit.crawl),
            Self::IdEnded(ended) => Some(ended.visit.crawl),
            Self::HostGivenUp(give_up) => Some(give_up.crawl),
            Self::DocumentImported(page) | Self::PageReadAgain(page) => Some(page.crawl),
            Self::AskedAgain(visit) => Some(visit.crawl),
            Self::PageLost(lost) => Some(lost.crawl),
            Self::CrawlChanged { crawl, .. }
            | Self::CrawlRan { crawl, .. }
            | Self::BudgetsRaised { crawl }
            | Self::IdsMarked { crawl, .. }
            | Self::HostNoted { crawl, .. }
            | Self::TrapNoted { crawl, .. } => Some(*crawl),
            Self::OriginLearned(_) => None,
        }
    }

    /// Which slots it concerns.
    pub fn owner(&self) -> Owner {
        match self {
            Self::CrawlAccepted(_) | Self::CrawlChanged { .. } | Self::BudgetsRaised { .. } => {
                Owner::EverySlot
            }
            Self::CrawlRan { .. } => Owner::AnySlot,
            Self::LinksFound(found) => Owner::Site(found.site.clone()),
            Self::VisitEnded(ended) => Owner::Site(ended.visit.url.host().site()),
            Self::IdEnded(ended) => Owner::Site(ended.visit.first_url().host().site()),
            Self::OriginLearned(row) => {
                let url = telusur_model::PageUrl::parse(&row.origin);
                url.map_or(Owner::AnySlot, |url| Owner::Site(url.host().site()))
            }
            Self::HostNoted { host, .. } => Owner::Site(host.site()),
            Self::HostGivenUp(give_up) => Owner::Site(give_up.host.site()),
            Self::DocumentImported(page) | Self::PageReadAgain(page) => {
                Owner::Site(page.url.host().site())
            }
            Self::AskedAgain(visit) => Owner::Site(visit.url.host().site()),
            Self::PageLost(lost) => Owner::Site(lost.url.host().site()),
            Self::IdsMarked { site, .. } | Self::TrapNoted { site, .. } => {
                Owner::Site(site.clone())
            }
        }
    }

    /// Whether it changes nothing but the crawl's own row: what else is known of the crawl is not needed.
    pub(crate) fn is_of_crawl_row(&self) -> bool {
        matches!(self, Self::CrawlAccepted(_) | Self::CrawlChanged { .. })
    }

    /// The record of the page that it brings, whose body may have been appended.
    pub(crate) fn page_mut(&mut self) -> Option<&mut PageRecord> {
        match self {
            Self::VisitEnded(ended) => match &mut ended.how {
                VisitOutcome::Page(page) => Some(page),
                VisitOutcome::Sitemap { .. }
                | VisitOutcome::Redirected { .. }
                | VisitOutcome::Failed { .. }
                | VisitOutcome::NoPage { .. }
                | VisitOutcome::Skipped { .. }
                | VisitOutcome::Later { .. } => None,
            },
            Self::IdEnded(ended) => ended.page.as_deref_mut(),
            Self::DocumentImported(page) => Some(page),
            Self::CrawlAccepted(_)
            | Self::CrawlChanged { .. }
            | Self::CrawlRan { .. }
            | Self::BudgetsRaised { .. }
            | Self::LinksFound(_)
            | Self::IdsMarked { .. }
            | Self::OriginLearned(_)
            | Self::HostNoted { .. }
            | Self::HostGivenUp(_)
            // Its body is where it was.
            | Self::PageReadAgain(_)
            | Self::AskedAgain(_)
            | Self::PageLost(_)
            | Self::TrapNoted { .. } => None,
        }
    }
}

/// Writes events down, behind the version of their encoding.
pub fn encode_events<E: Borrow<Event> + Serialize>(events: &[E]) -> Vec<u8> {
    postcard::to_extend(events, vec![VERSION])
        .expect("events hold nothing that postcard cannot write")
}

/// Reads events that [`encode_events`] wrote.
pub fn decode_events(bytes: &[u8]) -> Result<Vec<Event>, StoreError> {
    match bytes.split_first() {
        Some((&VERSION, events)) => match postcard::take_from_bytes(events) {
            Ok((events, [])) => Ok(events),
            Ok((_, rest)) => {
                Err(StoreError::Damaged(format!("{} bytes behind the last event", rest.len())))
            }
            Err(error) => Err(StoreError::Damaged(format!("an event cannot be read: {error}"))),
        },
        Some((version, _)) => Err(StoreError::Unusable(format!(
            "events of version {version}; this program reads version {VERSION}"
        ))),
        None => Err(StoreError::Damaged("no event".into())),
    }
}

/// Settings of crawls are written as JSON, in which fields can be added.
mod as_json {
    use serde::de::{DeserializeOwned, Error as _};
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serde_json::to_string(value).map_err(S::Error::custom)?.serialize(serializer)
    }

    pub(super) fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        serde_json::from_str(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
