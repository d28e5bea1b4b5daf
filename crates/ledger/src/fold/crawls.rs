//! Crawls: accepted with their start URLs, and changed.

use serde::{Deserialize, Serialize};
use telusur_model::{
    Crawl, CrawlNo, CrawlState, CrawlStats, EngineFault, Lane, PageUrl, Purpose, QueuePlace,
    Timestamp, UrlKey, UrlKeyer, Via, Visit,
};

use super::Fold;
use crate::layout::{self, crawl_key};
use crate::memory::CrawlMemory;
use crate::storage::{Rows, Table};
use crate::{CrawlAccepted, CrawlChange, CrawlRecord, StoreError};

/// A crawl as it is kept, in JSON: few, read by people who debug, and growing fields.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CrawlRow {
    pub(crate) crawl: Crawl,
    pub(crate) state: CrawlState,
    pub(crate) state_since: Timestamp,
    /// An older program began to remove it: the next opening goes on with that.
    pub(crate) removing: bool,
    /// Whether it ended the engine. Rows of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<EngineFault>,
    /// The seed of its URL keys. Rows of earlier versions have that of the storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key_seed: Option<u64>,
}

impl CrawlRow {
    /// What makes the keys of its URLs. `storage_seed`: that of the storage, for older rows.
    pub(crate) fn keyer(&self, storage_seed: u64) -> UrlKeyer {
        keyer(&self.crawl, self.key_seed.unwrap_or(storage_seed))
    }

    /// The crawl with its counters.
    pub(crate) fn into_record(self, stats: CrawlStats, storage_seed: u64) -> CrawlRecord {
        let Self { crawl, state, state_since, removing: _, fault, key_seed } = self;
        let key_seed = key_seed.unwrap_or(storage_seed);
        CrawlRecord { crawl, state, stats, state_since, fault, key_seed }
    }
}

fn keyer(crawl: &Crawl, seed: u64) -> UrlKeyer {
    UrlKeyer { seed, drop_tracking: !crawl.keep_tracking }
}

/// What a crawl can be called, apart from its alias.
pub(crate) fn names_of(crawl: &Crawl) -> impl Iterator<Item = &str> {
    std::iter::once(crawl.id.as_str()).chain(crawl.name.as_deref())
}

pub(crate) fn encode_row(row: &CrawlRow) -> Vec<u8> {
    serde_json::to_vec(row).expect("a crawl holds nothing that JSON cannot write")
}

pub(crate) fn decode_row(bytes: &[u8]) -> Result<CrawlRow, StoreError> {
    serde_json::from_slice(bytes)
        .map_err(|error| StoreError::Damaged(format!("a crawl cannot be read: {error}")))
}

impl<R: Rows> Fold<'_, R> {
    /// A new crawl and its start URLs. The user named them, so no scope judges them. One that is known
    /// was accepted before.
    pub(super) fn accept_crawl(&mut self, accepted: CrawlAccepted) -> Result<(), StoreError> {
        let CrawlAccepted { crawl, key_seed } = accepted;
        let no = crawl.no;
        if self.memory.by_crawl.contains_key(&no) || self.has(Table::Crawls, &crawl_key(no))? {
            return Ok(());
        }
        self.memory.crawls = self.memory.crawls.max(no.0);
        let keyer = keyer(&crawl, key_seed);
        self.memory.by_crawl.insert(no, CrawlMemory::new(crawl.limits.clone(), keyer));
        self.touched_crawls.insert(no);
        let crawls = u64::from(self.memory.crawls).to_be_bytes();
        self.batch.insert(Table::Meta, layout::META_CRAWLS, crawls);
        self.queue_seeds(&crawl, &keyer);
        let row = CrawlRow {
            state: CrawlState::Running,
            state_since: crawl.created_at,
            crawl,
            removing: false,
            fault: None,
            key_seed: Some(key_seed),
        };
        self.put_crawl_row(&row);
        Ok(())
    }

    fn queue_seeds(&mut self, crawl: &Crawl, keyer: &UrlKeyer) {
        let mut taken = std::collections::HashSet::new();
        let pages = crawl.seeds.urls().iter().map(|url| (Purpose::Page, url, keyer.key(url)));
        let sitemap = Purpose::Sitemap { nesting: 0 };
        let sitemaps = crawl.sitemaps.urls.iter();
        let sitemaps = sitemaps.map(|url| (sitemap, url, keyer.sitemap_key(url)));
        for (purpose, url, key) in pages.chain(sitemaps) {
            if !taken.insert(key) {
                continue;
            }
            self.take_unknown(crawl.no, key);
            let place = QueuePlace { lane: Lane::Plain, order: 0, seq: self.next_seq() };
            self.admit(seed_visit(crawl, purpose, url, key, place));
        }
    }

    pub(super) fn change_crawl(
        &mut self,
        no: CrawlNo,
        change: CrawlChange,
    ) -> Result<(), StoreError> {
        let key = crawl_key(no);
        let row = match self.batch.get(Table::Crawls, &key) {
            Some(written) => written.map(decode_row).transpose()?,
            None => self.rows.get(Table::Crawls, key)?.map(|row| decode_row(&row)).transpose()?,
        };
        let Some(mut row) = row else { return Ok(()) };
        for text in names_of(&row.crawl) {
            self.batch.remove(Table::Names, layout::name_key(text, no));
        }
        match change {
            CrawlChange::Settings(crawl) => {
                if let Some(memory) = self.memory.by_crawl.get_mut(&no) {
                    memory.set_settings(&crawl);
                }
                row.crawl = *crawl;
            }
            CrawlChange::State(state, at) => {
                row.state = state;
                row.state_since = at;
                // A crawl that comes to rest in order has not ended the engine.
                if state != CrawlState::Running {
                    row.fault = None;
                }
            }
            CrawlChange::Fault(fault) => row.fault = fault,
        }
        self.put_crawl_row(&row);
        Ok(())
    }

    fn put_crawl_row(&mut self, row: &CrawlRow) {
        let no = row.crawl.no;
        for text in names_of(&row.crawl) {
            self.batch.insert(Table::Names, layout::name_key(text, no), []);
        }
        self.batch.insert(Table::Crawls, crawl_key(no), encode_row(row));
    }
}

fn seed_visit(
    crawl: &Crawl,
    purpose: Purpose,
    url: &PageUrl,
    key: UrlKey,
    place: QueuePlace,
) -> Visit {
    Visit {
        crawl: crawl.no,
        purpose,
        url: url.clone(),
        key,
        place,
        depth: 0,
        hops_outside: 0,
        via: Via::Seed,
        found_at: crawl.created_at,
        referrer: None,
        redirects: Vec::new(),
        lastmod: None,
        attempt: 1,
    }
}
