//! Whether the index holds what the store says it should: nothing else, nothing twice, and nothing
//! missing of what it has read.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use telusur_index::{DocKey, IndexError, SearchIndex};
use telusur_ledger::{Check, Store, StoreChange, StoreError, VerifyReport};
use telusur_model::CrawlNo;

use crate::error::RequestError;
use crate::followers::FollowError;
use crate::page_source::{StoredSource, may_be_found};
use crate::stored_page::{StoredPages, each_page};

/// Changes that are read at once.
const BATCH: usize = 256;

/// Puts the check of an index in the place of the store's own, which knows no index.
pub(super) fn verify_index(
    pages: &StoredPages,
    index: &Arc<SearchIndex>,
    report: &mut VerifyReport,
) -> Result<(), RequestError> {
    let check = match check(pages, index) {
        Ok(check) => check,
        Err(FollowError::Index(error)) => broken(&error),
        Err(FollowError::Store(error)) => return Err(error.into()),
        Err(FollowError::Panicked | FollowError::Failed(_)) => {
            return Err(RequestError::Stopped);
        }
    };
    match report.checks.iter_mut().find(|known| known.id == check.id) {
        Some(known) => *known = check,
        None => report.checks.push(check),
    }
    Ok(())
}

fn new_check() -> Check {
    Check::new("I4", "the index holds every page that is to be found, once, and nothing else")
}

fn broken(error: &IndexError) -> Check {
    let mut check = new_check();
    check.look(false, || format!("{error}; build it anew with: telusur index rebuild"));
    check
}

fn check(pages: &StoredPages, index: &Arc<SearchIndex>) -> Result<Check, FollowError> {
    let mut check = new_check();
    index.validate()?;
    for share in KeyShare::all(index.doc_count()) {
        check_share(pages, index, share, &mut check)?;
    }
    check.notes.push(format!("{} documents", index.doc_count()));
    Ok(check)
}

/// Documents whose keys are in memory at a time: some fifty megabytes.
const KEYS_MAX: u64 = 1 << 20;

/// A share of all keys. They are looked at one share after the other, so that memory does not grow with
/// their number.
#[derive(Clone, Copy)]
struct KeyShare {
    number: u128,
    of: u128,
}

impl KeyShare {
    /// Shares of about [`KEYS_MAX`] keys, for this number of documents.
    fn all(docs: u64) -> impl Iterator<Item = Self> {
        let of = u128::from(docs.div_ceil(KEYS_MAX).max(1));
        (0..of).map(move |number| Self { number, of })
    }

    /// Keys are hashes: each share has as many as the others.
    fn has(self, key: DocKey) -> bool {
        key.url.0 % self.of == self.number
    }
}

fn check_share(
    pages: &StoredPages,
    index: &Arc<SearchIndex>,
    share: KeyShare,
    check: &mut Check,
) -> Result<(), FollowError> {
    // In this order: what is stored and indexed meanwhile is then in the store at least.
    let upto = index.applied_upto();
    let mut left: HashMap<DocKey, u32> = HashMap::new();
    index.each_key(&mut |key| {
        if share.has(key) {
            *left.entry(key).or_default() += 1;
        }
    })?;
    let store = &pages.store;
    let source = StoredSource::new(Arc::clone(store), Arc::clone(&pages.parser));
    for record in store.crawls()? {
        let mut failed = None;
        each_page(store.as_ref(), record.crawl.no, |page| {
            let key = DocKey { url: page.key, crawl: page.crawl };
            if !share.has(key) {
                return Ok(true);
            }
            let times = left.remove(&key).unwrap_or(0);
            check.look(times <= 1, || format!("{} is indexed {times} times", page.url));
            if times > 0 {
                check.look(may_be_found(&page), || format!("{} is not to be found", page.url));
            } else if page.seq <= upto {
                match source.contents(&[&page]) {
                    Ok(contents) => {
                        check.look(contents.iter().all(Option::is_none), || {
                            format!("{} is not indexed", page.url)
                        });
                    }
                    Err(error) => failed = Some(error),
                }
            }
            Ok(failed.is_none())
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
    }
    // It has not yet heard of them.
    let unheard = Unheard::after(store.as_ref(), upto)?;
    for key in left.keys().filter(|key| !unheard.has(**key)) {
        check.look(false, || format!("a page of {} is indexed and not stored", key.crawl));
    }
    Ok(())
}

/// What was removed behind the place that an index has come to.
#[derive(Default)]
struct Unheard {
    crawls: HashSet<CrawlNo>,
    pages: HashSet<DocKey>,
}

impl Unheard {
    fn after(store: &dyn Store, mut place: u64) -> Result<Self, StoreError> {
        let mut unheard = Self::default();
        loop {
            let changes = store.changes_after(place, BATCH)?;
            let Some(last) = changes.last() else { return Ok(unheard) };
            place = last.seq();
            for change in changes {
                match change {
                    StoreChange::Removed { crawl, .. } => {
                        unheard.crawls.insert(crawl);
                    }
                    StoreChange::Lost(page) => {
                        unheard.pages.insert(DocKey { url: page.key, crawl: page.crawl });
                    }
                    StoreChange::Page(_) => {}
                }
            }
        }
    }

    fn has(&self, key: DocKey) -> bool {
        self.crawls.contains(&key.crawl) || self.pages.contains(&key)
    }
}

#[cfg(test)]
mod tests {
    use telusur_model::{CrawlNo, UrlKey};

    use super::*;

    #[test]
    fn every_key_is_in_one_share_and_shares_do_not_grow() {
        assert_eq!(KeyShare::all(0).count(), 1);
        assert_eq!(KeyShare::all(KEYS_MAX).count(), 1);
        let shares: Vec<_> = KeyShare::all(5 * KEYS_MAX + 1).collect();
        assert_eq!(shares.len(), 6);
        for url in (0..100).map(|n| UrlKey(n * 0x9e37_79b9_7f4a_7c15_f39c_0c11_d4a3)) {
            let key = DocKey { url, crawl: CrawlNo(1) };
            assert_eq!(shares.iter().filter(|share| share.has(key)).count(), 1);
        }
    }
}
