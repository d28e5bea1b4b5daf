//! Pages whose stored bodies cannot be read are taken out, and asked for again.

use telusur_ledger::{CrawlRecord, Event, LostPageRetry, PageLost, Step, Store, StoreError};
use telusur_model::{Lane, PageRecord, PageUrl, Purpose, QueuePlace, Scope, Via, Visit};

use super::DamagedPage;
use super::operation::Each;
use crate::error::RequestError;
use crate::stored_page::each_page;

/// Pages that are taken out in one step.
const BATCH: usize = 500;

/// Takes the damaged pages of a crawl out, and names each. Gives how many are asked for again. No process
/// may be working on the crawl.
pub(super) fn requeue(
    store: &dyn Store,
    record: &CrawlRecord,
    each: Each<'_, DamagedPage>,
) -> Result<u64, RequestError> {
    let mut damaged = Vec::new();
    each_page(store, record.crawl.no, |page| {
        let goes_on = match check(store, &page) {
            Ok(()) => true,
            Err(StoreError::Damaged(what)) => {
                let goes_on = each(DamagedPage { url: page.url.to_string(), what });
                damaged.push(page);
                goes_on
            }
            Err(error) => return Err(error),
        };
        Ok(goes_on)
    })?;
    let mut count = 0;
    for pages in damaged.chunks(BATCH) {
        let lost: Vec<PageLost> = pages.iter().map(|page| lost(record, page)).collect();
        count += lost.iter().filter(|lost| lost.again != LostPageRetry::Never).count() as u64;
        store.commit(lost.into_iter().map(|lost| Event::PageLost(Box::new(lost))).collect())?;
    }
    if !store.bodies_reach(record.crawl.no)? {
        // Nothing happens but that a new segment begins, behind which the crawl can go on.
        let crawl = record.crawl.no;
        store.commit(Step::of(Event::CrawlRan { crawl, active_ms: 0 }))?;
    }
    Ok(count)
}

/// Fails if what is stored of a page is not what was written.
fn check(store: &dyn Store, page: &PageRecord) -> Result<(), StoreError> {
    match (page.body, page.parsed) {
        (Some(blob), _) => {
            let body = store.body(page.crawl, blob)?;
            if blake3::hash(&body.bytes).as_bytes() == &page.digest.0 {
                Ok(())
            } else {
                Err(StoreError::Damaged("the body does not match its digest".into()))
            }
        }
        (None, Some(blob)) => store.parsed(page.crawl, blob).map(drop),
        (None, None) => Ok(()),
    }
}

fn lost(record: &CrawlRecord, page: &PageRecord) -> PageLost {
    let (crawl, url, key) = (page.crawl, first_url(page), page.key);
    PageLost { crawl, url, key, again: retry_of(record, page) }
}

fn retry_of(record: &CrawlRecord, page: &PageRecord) -> LostPageRetry {
    let crawl = &record.crawl;
    if page.via == Via::Linear {
        return id_of(record, page).unwrap_or(LostPageRetry::Never);
    }
    if crawl.seeds.urls().is_empty() && crawl.seeds.linear().is_none() {
        return LostPageRetry::Never;
    }
    // How many hops led out of the scope to it is not recorded: it may have been all.
    let is_outside = Scope::of(crawl).is_ok_and(|scope| scope.is_outside(&page.url));
    LostPageRetry::Queue(Box::new(Visit {
        crawl: crawl.no,
        purpose: Purpose::Page,
        url: page.url.clone(),
        key: page.key,
        place: QueuePlace { lane: Lane::Plain, order: u64::from(page.depth), seq: 0 },
        depth: page.depth,
        hops_outside: if is_outside { crawl.scope.extra_hops } else { 0 },
        via: page.via,
        found_at: page.found_at,
        referrer: page.referrer.clone(),
        redirects: page.redirects.clone(),
        lastmod: page.lastmod,
        attempt: 1,
    }))
}

/// The id of a page of a linear crawl.
fn id_of(record: &CrawlRecord, page: &PageRecord) -> Option<LostPageRetry> {
    let first = first_url(page);
    let walks = (0..).zip(record.crawl.seeds.walks());
    let mut ids = walks.filter_map(|(walk, rules)| {
        let position = rules.position_of(rules.id_of(&first)?)?;
        Some(LostPageRetry::Id { walk, position })
    });
    ids.next()
}

/// The address that was asked for first.
fn first_url(page: &PageRecord) -> PageUrl {
    let first = page.redirects.first().and_then(|url| PageUrl::parse(url).ok());
    first.unwrap_or_else(|| page.url.clone())
}
