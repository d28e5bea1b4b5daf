//! [`CrawlChange`]: what may change about a crawl after it was accepted, also while it runs.

use serde::{Deserialize, Serialize};
use telusur_model::{CompiledPatterns, Crawl, Limits, Politeness, Scope, ScopeError};

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
    /// The patterns of the crawl with the change, where somebody has compiled them to check it.
    #[serde(skip)]
    pub compiled: Option<CompiledPatterns>,
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

    /// The crawl with the change, and its scope. `known`: patterns that are compiled; they are used if they are
    /// those of the crawl and the change brings none.
    pub(crate) fn applied(
        mut self,
        crawl: Crawl,
        known: Option<CompiledPatterns>,
    ) -> Result<(Crawl, Scope), ScopeError> {
        let compiled = self.compiled.take().or(known);
        let crawl = self.apply(crawl);
        let scope = match compiled {
            Some(compiled) => Scope::with_compiled(&crawl, &compiled)?,
            None => Scope::of(&crawl)?,
        };
        Ok((crawl, scope))
    }
}

#[cfg(test)]
mod tests {
    use telusur_model::{CrawlId, CrawlNo, FetchRules, Keep, ScopeRules, Seeds, Timestamp};

    use super::*;

    fn a_crawl() -> Crawl {
        Crawl {
            no: CrawlNo(1),
            id: CrawlId::new(Timestamp(0), 0),
            name: None,
            created_at: Timestamp(0),
            seeds: Seeds::Links(Vec::new()),
            scope: ScopeRules::default(),
            politeness: Politeness::default(),
            limits: Limits::default(),
            fetch: FetchRules::default(),
            keep: Keep::Html,
            topic: Vec::new(),
            keep_tracking: false,
            sitemaps: telusur_model::SitemapRules { discover: false, urls: Vec::new() },
            recrawl_of: None,
            labels: Default::default(),
        }
    }

    #[test]
    fn patterns_that_were_compiled_to_check_a_change_are_used() {
        let crawl = a_crawl();
        let change = CrawlChange { exclude: vec!["/old".into()], ..CrawlChange::default() };
        let (_, checked) = change.clone().applied(crawl.clone(), None).unwrap();
        let compiled = Some(checked.compiled());
        let (_, scope) = CrawlChange { compiled, ..change }.applied(crawl.clone(), None).unwrap();
        assert!(scope.compiled().is_shared(&checked.compiled()));
        let before = Scope::of(&crawl).unwrap().compiled();
        let (_, scope) = CrawlChange::default().applied(crawl, Some(before.clone())).unwrap();
        assert!(scope.compiled().is_shared(&before), "nothing has changed about the patterns");
    }
}
