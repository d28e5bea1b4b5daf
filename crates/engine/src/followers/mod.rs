//! Followers: whatever is derived from stored pages, such as the search index.
//!
//! The store has one order of changes over all crawls. A [`Follower`] is handed them in that order, and
//! commits what it makes of them together with the place that it has reached. So after a kill at any
//! moment it goes on from there: every page is taken in exactly once, none of a removed crawl stays, and no
//! follower needs to remember what it was told. Each runs on a thread of its own (`runner`), with its own
//! back-off and health: one that is slow or broken stops neither the crawl nor the others.

mod calls;
mod changes;
mod health;
mod runner;
mod running;
#[cfg(test)]
mod tests;

use std::time::Duration;

use telusur_index::IndexError;
use telusur_ledger::StoreError;

use crate::index_lease::Lease;

pub use self::changes::{ChangeBatch, FollowedChange, FollowedPage, PageContent};
pub use self::health::{FollowerReport, FollowerTrouble, follower_retry_pause};
pub use self::runner::Pace;

pub(crate) use self::calls::{Call, Caller, Calls, calls};
pub(crate) use self::changes::ChangeSource;
pub(crate) use self::health::FollowerHealth;
pub(crate) use self::runner::{BATCH_CHANGES_MAX, Given, Runner, catch_up};
pub(crate) use self::running::{FollowerParts, Followers, FollowersHandle};

/// Derives something from stored pages.
///
/// What it holds after a commit is what one gets by applying all changes up to [`place`](Self::place) in
/// their order: a page replaces the one with the same crawl and key, and a removal takes out every page of
/// its crawl. `follower_conformance` checks that.
pub trait Follower: Send {
    /// What it is called where its health is shown: a lowercase word.
    fn name(&self) -> &'static str;

    /// The place of the last change in its last commit; 0 before the first. Never goes back, unless
    /// [`reopen`](Self::reopen) had to begin from nothing.
    fn place(&self) -> u64;

    /// Takes in the changes that follow those that it was handed before, or, after it was opened, those
    /// behind [`place`](Self::place). They need not be durable until the next commit, and may be.
    fn take_in(&mut self, batch: ChangeBatch) -> Result<(), FollowError>;

    /// Makes durable what was taken in, and the place of the last change of it, in one step.
    fn commit(&mut self) -> Result<(), FollowError>;

    /// Goes on after a failure: forgets what was taken in since the last commit.
    fn reopen(&mut self, why: &FollowError) -> Result<(), FollowError>;

    /// Throws away what it has and begins from nothing, if that is possible.
    fn rebuild(&mut self) -> Result<(), FollowError> {
        Err(FollowError::Failed(format!("{} cannot be rebuilt while it is in use", self.name())))
    }

    /// How often it commits, and whether crawls wait for it.
    fn pace(&self) -> Pace {
        Pace::default()
    }

    /// Called between batches, for work of its own. `is_idle`: nothing has come for a while.
    fn tend(&mut self, is_idle: bool) -> Result<(), FollowError> {
        let _ = is_idle;
        Ok(())
    }

    /// Called after the last commit of this process. Takes no longer than `wait_max`.
    fn finish(&mut self, wait_max: Duration) -> Result<(), FollowError> {
        let _ = wait_max;
        Ok(())
    }

    /// Lets another process do its work until that process gives it back, if that is possible.
    fn lend(
        &mut self,
        lease: Lease,
        source: &dyn ChangeSource,
        health: &FollowerHealth,
    ) -> Result<(), FollowError> {
        let _ = (source, health);
        lease.refuse(&crate::RequestError::WrongState(format!("{} cannot be leased", self.name())));
        Ok(())
    }
}

/// Why a follower cannot follow.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The search index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Another follower failed.
    #[error("{0}")]
    Failed(String),
    /// A fault of ours. What followers hold is derived, so that it is tried again from the last commit.
    #[error("it panicked")]
    Panicked,
}
