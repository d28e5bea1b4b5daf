//! [`Catalog`]: the names of all crawls, and of the requests that made them. Derived from the store.

use std::collections::{BTreeSet, HashMap};

use telusur_ledger::CrawlRecord;
use telusur_model::{Crawl, CrawlNo};

use super::orders::RequestMark;

/// The label under which a crawl remembers the request that made it. Not shown.
pub(crate) const REQUEST_LABEL: &str = "telusur.request";

/// The names of all crawls.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    numbers: BTreeSet<CrawlNo>,
    by_id: HashMap<String, CrawlNo>,
    by_request: HashMap<String, (String, CrawlNo)>,
}

impl Catalog {
    pub(crate) fn of(records: &[CrawlRecord]) -> Self {
        let mut catalog = Self::default();
        for record in records {
            catalog.add(&record.crawl);
        }
        catalog
    }

    pub(crate) fn add(&mut self, crawl: &Crawl) {
        self.numbers.insert(crawl.no);
        self.by_id.insert(crawl.id.to_string(), crawl.no);
        if let Some(mark) = crawl.labels.get(REQUEST_LABEL).and_then(|text| RequestMark::read(text))
        {
            self.by_request.insert(mark.key, (mark.digest, crawl.no));
        }
    }

    pub(crate) fn remove(&mut self, no: CrawlNo) {
        self.numbers.remove(&no);
        self.by_id.retain(|_, other| *other != no);
        self.by_request.retain(|_, (_, other)| *other != no);
    }

    pub(crate) fn has(&self, no: CrawlNo) -> bool {
        self.numbers.contains(&no)
    }

    pub(crate) fn number(&self, id: &str) -> Option<CrawlNo> {
        self.by_id.get(id).copied()
    }

    /// The crawl that a request with this key made, and what that request was.
    pub(crate) fn of_request(&self, key: &str) -> Option<(String, CrawlNo)> {
        self.by_request.get(key).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }
}
