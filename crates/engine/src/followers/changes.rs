//! What followers are handed: changes of the store in their order, with the content of pages.

use serde::{Deserialize, Serialize};
use telusur_model::{CrawlNo, PageRecord, SearchPage, UrlKeyer};

use super::FollowError;

/// Changes that follow each other.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ChangeBatch {
    /// In their order.
    pub changes: Vec<FollowedChange>,
    /// The place of the last change.
    pub upto: u64,
}

impl ChangeBatch {
    /// How many changes these are.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// A change as followers see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FollowedChange {
    /// A page was stored, replaced or read again.
    Page(Box<FollowedPage>),
    /// A crawl was removed with all its pages.
    Removed {
        /// The place of the removal.
        seq: u64,
        /// Which.
        crawl: CrawlNo,
    },
}

impl FollowedChange {
    /// Its place in the order of changes.
    pub fn seq(&self) -> u64 {
        match self {
            Self::Page(page) => page.record.seq,
            Self::Removed { seq, .. } => *seq,
        }
    }
}

/// A page as followers see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedPage {
    /// What is recorded of it.
    pub record: PageRecord,
    /// What is in it; nothing of error pages, of those that ask to stay out of indexes, and of those that
    /// cannot be read.
    pub content: Option<PageContent>,
}

/// What is in a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageContent {
    /// What was read out of it.
    pub page: SearchPage,
    /// What the page and its origin say about its use.
    pub rights: Vec<String>,
    /// Makes the keys of the URLs in it.
    pub keyer: UrlKeyer,
}

/// Where a follower gets the changes that it has not seen.
pub trait ChangeSource: Send + Sync {
    /// The next changes behind a place, at most `max`.
    fn next(&self, after: u64, max: usize) -> Result<ChangeBatch, FollowError>;

    /// Hears that everything handed out so far is committed.
    fn committed(&self) {}
}
