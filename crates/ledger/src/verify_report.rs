//! The answer to "does everything hold?": one [`Check`] per promise, each with its figure.

use serde::{Deserialize, Serialize};

/// All promises, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyReport {
    /// In the order of their names.
    pub checks: Vec<Check>,
    /// What they were checked on.
    #[serde(default)]
    pub counts: VerifyCounts,
}

/// What was looked at, so that a check of nothing is not taken for one of everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyCounts {
    /// Crawls.
    pub crawls: u64,
    /// URLs that they know, in whichever state.
    pub urls: u64,
    /// Pages that they store.
    pub pages: u64,
}

impl VerifyReport {
    /// Whether anything was looked at.
    pub fn has_checked(&self) -> bool {
        self.checks.iter().any(|check| check.looked_at > 0)
    }

    /// Whether every promise holds.
    pub fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.broken == 0)
    }
}

/// One promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its name: `I1` … `I12`.
    pub id: String,
    /// What is promised.
    pub promise: String,
    /// How many things were looked at.
    pub looked_at: u64,
    /// How many of them break the promise.
    pub broken: u64,
    /// The figure in words, and the first things that are broken.
    pub notes: Vec<String>,
}

impl Check {
    /// Broken things named in a report; the rest are only counted.
    const NOTES_MAX: usize = 10;

    /// A promise that has not been looked at yet.
    pub fn new(id: &str, promise: &str) -> Self {
        Self { id: id.into(), promise: promise.into(), looked_at: 0, broken: 0, notes: Vec::new() }
    }

    /// Counts one thing, and names it if it is broken.
    pub fn look(&mut self, holds: bool, what: impl FnOnce() -> String) {
        self.looked_at += 1;
        if holds {
            return;
        }
        self.broken += 1;
        if self.notes.len() < Self::NOTES_MAX {
            self.notes.push(what());
        }
    }

    /// Says something that is not broken.
    pub fn note(&mut self, what: String) {
        if self.notes.len() < Self::NOTES_MAX {
            self.notes.push(what);
        }
    }
}
