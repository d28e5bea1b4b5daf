//! Which links are new: neither the recent keys nor the rows know them.

use std::collections::HashSet;

use telusur_model::{CrawlNo, Reason, UrlKey};

use super::Fold;
use crate::layout::{self, UrlRow, encode};
use crate::links::{Admission, FoundLink};
use crate::storage::{Rows, Table};
use crate::{Event, StoreError, UrlState};

/// What the seen-set says about the links of the events that are being folded. Kept up to date by
/// every write to it.
#[derive(Default)]
pub(super) struct SeenKeys {
    /// Unknown keys.
    new: HashSet<(CrawlNo, UrlKey)>,
    /// Keys that are known only from links marked nofollow.
    nofollow: HashSet<(CrawlNo, UrlKey)>,
}

/// In which way a link is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Newness {
    /// Its URL is not known.
    Unknown,
    /// Its URL is known only from links marked nofollow, and this one is not.
    OnlyNofollow,
}

impl<R: Rows> Fold<'_, R> {
    /// Looks up all links of the events, in key order, so that neighbours share their disk blocks.
    ///
    /// Done before any key is added: the table of recent keys forgets, and a key that another one pushed
    /// out would look new again.
    pub(crate) fn look_up_links(&mut self, events: &[Event]) -> Result<(), StoreError> {
        let mut asked = Vec::new();
        for event in events {
            let Event::LinksFound(found) = event else { continue };
            let crawl = found.source.crawl;
            let keys = found.links.iter().map(|link| (crawl, link.key));
            asked.extend(keys.filter(|(crawl, key)| !self.recent.contains(*crawl, *key)));
        }
        asked.sort_unstable();
        asked.dedup();
        for (crawl, key) in asked {
            match self.rows.get(Table::Urls, layout::url_key(crawl, key))? {
                None => {
                    self.seen.new.insert((crawl, key));
                }
                // Not among the recent keys: the next link to it is looked at.
                Some(row) if layout::is_nofollow(&row) => {
                    self.seen.nofollow.insert((crawl, key));
                }
                Some(_) => self.recent.add(crawl, key),
            }
        }
        Ok(())
    }

    /// Counts an unknown key as known.
    pub(super) fn take_unknown(&mut self, crawl: CrawlNo, key: UrlKey) {
        self.seen.new.remove(&(crawl, key));
        self.stats(crawl).discovered += 1;
    }

    /// In which way a link is new; `None` if its URL is known.
    pub(super) fn newness(&self, crawl: CrawlNo, link: &FoundLink) -> Option<Newness> {
        let key = (crawl, link.key);
        if self.seen.new.contains(&key) {
            return Some(Newness::Unknown);
        }
        let is_followed = link.admission != Admission::Nofollow;
        (is_followed && self.seen.nofollow.contains(&key)).then_some(Newness::OnlyNofollow)
    }

    /// Counts a new link of which a row is about to be written.
    pub(super) fn take_in(&mut self, crawl: CrawlNo, key: UrlKey, newness: Newness) {
        match newness {
            Newness::Unknown => self.take_unknown(crawl, key),
            Newness::OnlyNofollow => self.uncount_skip(crawl, Reason::Nofollow),
        }
    }

    /// A URL is not known any more.
    pub(super) fn forget_url(&mut self, crawl: CrawlNo, key: UrlKey) {
        self.stats(crawl).discovered -= 1;
        self.batch.remove(Table::Urls, layout::url_key(crawl, key));
        self.seen.nofollow.remove(&(crawl, key));
        self.seen.new.insert((crawl, key));
        // Keys cannot be taken out one by one; those of other URLs cost a read when they come again.
        self.recent.clear();
    }

    pub(super) fn put_url(&mut self, crawl: CrawlNo, key: UrlKey, row: &UrlRow) {
        self.batch.insert(Table::Urls, layout::url_key(crawl, key), encode(row));
        self.seen.new.remove(&(crawl, key));
        if is_nofollow(row) {
            self.seen.nofollow.insert((crawl, key));
        } else {
            self.seen.nofollow.remove(&(crawl, key));
            self.recent.add(crawl, key);
        }
    }
}

fn is_nofollow(row: &UrlRow) -> bool {
    match row {
        UrlRow::Queued { .. } | UrlRow::Page { .. } => false,
        UrlRow::Settled(record) => {
            matches!(record.state, UrlState::Skipped { reason: Reason::Nofollow, .. })
        }
    }
}
