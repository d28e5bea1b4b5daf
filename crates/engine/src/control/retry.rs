//! What failed is asked again: the URLs of a crawl that had no answer, the holes of a linear one.

use std::sync::Arc;

use telusur_ledger::{CrawlRecord, Event, Store, UrlRecord, UrlState};
use telusur_model::{
    Crawl, Lane, PageUrl, Purpose, QueuePlace, Resume, Scope, Seeds, UrlKey, UrlKeyer, Visit,
};

use crate::clock::SystemClock;
use crate::error::RequestError;
use crate::handle::EngineHandle;
use crate::linear_run::accept_run;

/// URLs that go back to the queue in one step.
const BATCH: usize = 500;

/// Queues what failed, and says how much that is. `live`: the engine that has the crawl.
pub(super) fn retry(
    store: &Arc<dyn Store>,
    live: Option<&(EngineHandle, tokio::runtime::Handle)>,
    record: &CrawlRecord,
) -> Result<u64, RequestError> {
    if record.crawl.seeds.linear().is_some() {
        if live.is_some() {
            let what = format!("{} is running, and retries by itself", record.crawl.no);
            return Err(RequestError::WrongState(what));
        }
        return retry_holes(store.as_ref(), record);
    }
    let crawl = &record.crawl;
    let again = Again::new(crawl, record.key_seed)?;
    let (mut after, mut count) = (None, 0);
    loop {
        let mut visits = Vec::new();
        store.settled_urls_after(crawl.no, after, &mut |key, url| {
            after = Some(key);
            visits.extend(again.visit(key, url));
            visits.len() < BATCH
        })?;
        if visits.is_empty() {
            return Ok(count);
        }
        count += visits.len() as u64;
        match live {
            Some((engine, runtime)) => runtime.block_on(engine.again(crawl.no, visits))?,
            None => {
                let again = visits.into_iter().map(|visit| Event::AskedAgain(Box::new(visit)));
                store.commit(again.collect())?;
            }
        }
    }
}

/// A linear crawl is run again for its holes alone.
fn retry_holes(store: &dyn Store, record: &CrawlRecord) -> Result<u64, RequestError> {
    let mut crawl = record.crawl.clone();
    if let Seeds::Linear(seeds) = &mut crawl.seeds {
        seeds.resume = Resume::Holes;
    }
    accept_run(store, &crawl, &SystemClock::new())?;
    Ok(record.stats.ids.holes)
}

/// What makes visits of URLs that failed.
struct Again<'a> {
    crawl: &'a Crawl,
    scope: Scope,
    keyer: UrlKeyer,
}

impl<'a> Again<'a> {
    fn new(crawl: &'a Crawl, seed: u64) -> Result<Self, RequestError> {
        let scope =
            Scope::of(crawl).map_err(|error| RequestError::BadArgument(error.to_string()))?;
        let keyer = UrlKeyer { seed, drop_tracking: !crawl.keep_tracking };
        Ok(Self { crawl, scope, keyer })
    }

    /// The visit of a URL, if it failed.
    fn visit(&self, key: UrlKey, known: UrlRecord) -> Option<Visit> {
        if !matches!(known.state, UrlState::Failed { .. }) {
            return None;
        }
        let url = PageUrl::parse(&known.url).ok()?;
        let is_page = self.keyer.key(&url) == key;
        // How many hops led out of the scope to it is not recorded: it may have been all.
        let is_outside = self.scope.is_outside(&url);
        Some(Visit {
            crawl: self.crawl.no,
            purpose: if is_page { Purpose::Page } else { Purpose::Sitemap { nesting: 0 } },
            key,
            place: QueuePlace { lane: Lane::Plain, order: u64::from(known.depth), seq: 0 },
            depth: known.depth,
            hops_outside: if is_outside { self.crawl.scope.extra_hops } else { 0 },
            via: known.via,
            found_at: known.found_at,
            referrer: known.referrer,
            redirects: known.redirects,
            lastmod: known.lastmod,
            attempt: 1,
            url,
        })
    }
}
