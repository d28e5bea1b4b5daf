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
    // In this order: what is stored and indexed meanwhile is then in the store at least.
    let upto = index.applied_upto();
    let mut left: HashMap<DocKey, u32> = HashMap::new();
    index.each_key(&mut |key| *left.entry(key).or_default() += 1)?;
    let store = &pages.store;
    let source = StoredSource::new(Arc::clone(store)).with_parser(Arc::clone(&pages.parser));
    for record in store.crawls()? {
        let mut failed = None;
        each_page(store.as_ref(), record.crawl.no, |page| {
            let times = left.remove(&DocKey { url: page.key, crawl: page.crawl }).unwrap_or(0);
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
    let unheard = removals_after(store.as_ref(), upto)?;
    for key in left.keys().filter(|key| !unheard.contains(&key.crawl)) {
        check.look(false, || format!("a page of {} is indexed and not stored", key.crawl));
    }
    check.notes.push(format!("{} documents", index.doc_count()));
    Ok(check)
}

/// The crawls whose removal has its place behind this one.
fn removals_after(store: &dyn Store, mut place: u64) -> Result<HashSet<CrawlNo>, StoreError> {
    let mut removed = HashSet::new();
    loop {
        let changes = store.changes_after(place, BATCH)?;
        let Some(last) = changes.last() else { return Ok(removed) };
        place = last.seq();
        removed.extend(changes.iter().filter_map(|change| match change {
            StoreChange::Removed { crawl, .. } => Some(*crawl),
            StoreChange::Page(_) => None,
        }));
    }
}
