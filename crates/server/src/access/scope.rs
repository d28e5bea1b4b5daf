//! [`Scope`]: what a key allows.

use serde::{Deserialize, Serialize};

/// What a key allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// To search.
    Search,
    /// To search, and to look at crawls and pages.
    Read,
    /// That, and to start, change and delete crawls.
    Crawl,
    /// To read the metrics.
    Metrics,
    /// Everything, keys included.
    Admin,
}

impl Scope {
    /// Every scope there is.
    pub const ALL: [Self; 5] = [Self::Search, Self::Read, Self::Crawl, Self::Metrics, Self::Admin];

    /// The stable word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Read => "read",
            Self::Crawl => "crawl",
            Self::Metrics => "metrics",
            Self::Admin => "admin",
        }
    }

    /// The scope with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.word() == word)
    }

    /// Whether a key with this scope may do what the other one is needed for.
    pub fn covers(self, needed: Self) -> bool {
        match self {
            Self::Admin => true,
            Self::Crawl => matches!(needed, Self::Crawl | Self::Read | Self::Search),
            Self::Read => matches!(needed, Self::Read | Self::Search),
            Self::Search | Self::Metrics => self == needed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_never_covers_more() {
        for scope in Scope::ALL {
            assert!(Scope::Admin.covers(scope) && scope.covers(scope));
            assert_eq!(Scope::from_word(scope.word()), Some(scope));
        }
        assert!(!Scope::Search.covers(Scope::Read));
        assert!(!Scope::Read.covers(Scope::Crawl));
        assert!(!Scope::Crawl.covers(Scope::Admin));
        assert!(!Scope::Crawl.covers(Scope::Metrics));
        assert!(!Scope::Metrics.covers(Scope::Search));
    }
}
