//! What can go wrong with us. What goes wrong with the web is data.

use telusur_index::IndexError;
use telusur_ledger::StoreError;
use telusur_parse_pool::PoolError;

use crate::followers::FollowError;
use crate::request::BadRequest;
use crate::supervision::Part;

/// The engine stopped.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stage ended that must not end.
    #[error("the {0} stage ended unexpectedly; nothing acknowledged is lost, start again to go on")]
    StageDied(&'static str),
    /// A part of the service ended that must not end.
    #[error("the {0} part ended unexpectedly; nothing acknowledged is lost, start again to go on")]
    PartDied(&'static str),
    /// No page can be read.
    #[error(transparent)]
    Parser(PoolError),
}

impl From<Part> for EngineError {
    fn from(part: Part) -> Self {
        match part {
            Part::Stage(name) => Self::StageDied(name),
            Part::Service(name) => Self::PartDied(name),
        }
    }
}

/// A request to the engine that cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// There is no such crawl.
    #[error("no crawl {0:?}")]
    NoSuchCrawl(String),
    /// The crawl is not in a state for it.
    #[error("{0}")]
    WrongState(String),
    /// An argument is not usable.
    #[error("{0}")]
    BadArgument(String),
    /// A request for a crawl cannot be carried out as it is.
    #[error(transparent)]
    BadRequest(#[from] BadRequest),
    /// The crawl would end at once.
    #[error("{what}")]
    CannotResume {
        /// Why.
        what: String,
        /// The way out.
        hint: String,
    },
    /// The engine is gone.
    #[error("the engine has stopped")]
    Stopped,
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The search index refused.
    #[error(transparent)]
    Index(#[from] IndexError),
}

impl From<FollowError> for RequestError {
    fn from(error: FollowError) -> Self {
        match error {
            FollowError::Store(error) => Self::Store(error),
            FollowError::Index(error) => Self::Index(error),
            FollowError::Failed(_) | FollowError::Panicked => Self::WrongState(error.to_string()),
        }
    }
}
