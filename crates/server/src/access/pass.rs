//! [`Pass`]: as whom a request was let in. What lasts longer than a moment asks again whether it still holds.

use telusur_engine::request::Rights;

use super::{Scope, StoredKey};

/// As whom a request was let in.
#[derive(Clone, Debug)]
pub(crate) enum Pass {
    /// Nobody needs a key here.
    NoKeysNeeded,
    /// Searching is open to everybody.
    PublicSearch,
    /// By a key.
    Key(Box<StoredKey>),
}

impl Pass {
    /// What it lets its holder set about crawls. Where no keys are needed, programs of other users of the machine
    /// are let in as well.
    pub(crate) fn rights(&self) -> Rights {
        match self {
            Self::Key(_) if self.covers(Scope::Admin) => Rights::Owner,
            Self::Key(_) | Self::NoKeysNeeded | Self::PublicSearch => Rights::User,
        }
    }

    /// Whether it allows what this scope is needed for.
    pub(crate) fn covers(&self, needed: Scope) -> bool {
        match self {
            Self::NoKeysNeeded => true,
            Self::PublicSearch => needed == Scope::Search,
            Self::Key(key) => key.scopes.iter().any(|scope| scope.covers(needed)),
        }
    }
}
