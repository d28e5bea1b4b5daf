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
    /// Keys that nobody knows.
    new: HashSet<(CrawlNo, UrlKey)>,
    /// Keys that are known only from links marked nofollow.
    nofollow: HashSet<(CrawlNo, UrlKey)>,
}

impl<R: Rows> Fold<'_, R> {
    /// Looks up all links of the events, in key order, so that neighbours share their disk blocks.
    ///
    /// Done before any key is added: the table of recent keys forgets, and a key that another one pushed
    /// out would look new again.
    pub(super) fn look_up_links(&mut self, events: &[Event]) -> Result<(), StoreError> {
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

    /// A key that nobody knew is known.
    pub(super) fn take_unknown(&mut self, crawl: CrawlNo, key: UrlKey) {
        self.seen.new.remove(&(crawl, key));
        self.stats(crawl).discovered += 1;
    }

    /// Marks a link as known. False if it was known before, unless only from links marked nofollow and
    /// this one is not.
    pub(super) fn take_new(&mut self, crawl: CrawlNo, link: &FoundLink) -> bool {
        if self.seen.new.contains(&(crawl, link.key)) {
            self.take_unknown(crawl, link.key);
            return true;
        }
        if link.admission == Admission::Nofollow || !self.seen.nofollow.remove(&(crawl, link.key)) {
            return false;
        }
        self.uncount_skip(crawl, Reason::Nofollow);
        true
    }

    /// Nothing is kept of a link: it is new again the next time, whether or not the process ends in
    /// between.
    pub(super) fn forget_new(&mut self, crawl: CrawlNo, key: UrlKey) {
        self.seen.new.insert((crawl, key));
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
