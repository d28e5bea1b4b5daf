//! [`CrawlChange`]: what may change about a crawl after it was accepted, also while it runs.

use serde::{Deserialize, Serialize};
use telusur_model::{Crawl, Limits, Politeness};

/// A change. What is not named stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CrawlChange {
    /// New limits, all of them. How much is read of one body stays as it was while the crawl runs.
    pub limits: Option<Limits>,
    /// New manners, all of them.
    pub politeness: Option<Politeness>,
    /// Exclusions that are added.
    pub exclude: Vec<String>,
}

impl CrawlChange {
    /// The crawl with the change.
    pub fn apply(self, mut crawl: Crawl) -> Crawl {
        if let Some(limits) = self.limits {
            crawl.limits = limits;
        }
        if let Some(politeness) = self.politeness {
            crawl.politeness = politeness;
        }
        crawl.scope.exclude.extend(self.exclude);
        crawl
    }
}
