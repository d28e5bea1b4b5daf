//! Asks the web: one task per visit, as many as the frontier hands out.

use std::sync::Arc;

use telusur_fetch::{Fetch, FetchOrder, REQUESTS_PER_VISIT_MAX};
use telusur_ledger::Store;
use telusur_model::{CrawlNo, PageUrl, Purpose, Validators, Visit};
use tokio::sync::mpsc;

use crate::context::CrawlContext;
use crate::crawl_task::{Arrival, Event};
use crate::faults::Faults;
use crate::stored_page::earlier_page;
use crate::supervision::{Part, Supervisor};

/// A visit that is silently gone would make its crawl wait for ever.
const FETCH: Part = Part::Stage("fetch");

#[derive(Clone)]
pub(crate) struct FetchStage {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) fetcher: Arc<dyn Fetch>,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) supervisor: Supervisor,
}

impl FetchStage {
    /// Carries out a visit and reports it.
    pub(crate) fn visit(&self, visit: Visit, context: &CrawlContext) {
        let stage = self.clone();
        let profile = Arc::clone(context.profile_for(visit.purpose));
        let base = context.crawl.recrawl_of.filter(|_| visit.purpose == Purpose::Page);
        let store = Arc::clone(&self.store);
        // Without a delay nobody counts from the moment of the request.
        let tells_start = context.crawl.politeness.delay_ms > 0;
        self.supervisor.work(FETCH, async move {
            let blame = Blame { faults: &stage.faults, crawl: visit.crawl };
            let (on_request, requested) = mpsc::channel(REQUESTS_PER_VISIT_MAX);
            let order = FetchOrder {
                if_changed: base.map(|base| validators(&*store, base, &visit)).unwrap_or_default(),
                on_request: tells_start.then_some(on_request),
                ..FetchOrder::new(visit.url.clone(), profile)
            };
            let fetch = stage.fetcher.fetch(order);
            let fetched = if tells_start {
                stage.fetch_and_tell(&visit, fetch, requested).await
            } else {
                fetch.await
            };
            drop(blame);
            // A closed channel means that the engine has ended: the visit stays queued.
            let arrival = Box::new(Arrival { visit, fetched });
            let _ = stage.events.send(Event::Fetched(arrival)).await;
        });
    }

    async fn fetch_and_tell(
        &self,
        visit: &Visit,
        fetch: impl Future<Output = telusur_model::Fetched>,
        mut requested: mpsc::Receiver<telusur_model::Moment>,
    ) -> telusur_model::Fetched {
        let mut fetch = std::pin::pin!(fetch);
        let mut is_again = false;
        loop {
            tokio::select! {
                biased;
                Some(at) = requested.recv() => {
                    let host = visit.url.host();
                    let _ = self.events.send(Event::Requested { host, at, is_again }).await;
                    is_again = true;
                }
                fetched = &mut fetch => return fetched,
            }
        }
    }

    /// Looks up a host and reports its address.
    pub(crate) fn resolve(&self, url: PageUrl, context: &CrawlContext) {
        let stage = self.clone();
        let profile = Arc::clone(&context.profile);
        self.supervisor.work(FETCH, async move {
            let resolved = stage.fetcher.resolve(&url, &profile).await;
            // Without an address the visit is carried out all the same: it records the failure.
            let address = resolved.ok().and_then(|addresses| addresses.first().copied());
            let _ = stage.events.send(Event::Addressed { host: url.host(), address }).await;
        });
    }
}

/// What the server said about the version of a page that an earlier crawl stored. A page whose body
/// was not kept is asked for without conditions: there would be nothing to take its links from.
fn validators(store: &dyn Store, base: CrawlNo, visit: &Visit) -> Validators {
    match earlier_page(store, base, &visit.url) {
        // Trouble with the store shows up when the step is committed.
        Ok(Some(page)) if page.is_ok() && page.body.is_some() => {
            Validators { etag: page.etag, last_modified: page.last_modified }
        }
        _ => Validators::default(),
    }
}

/// Blames the crawl whose visit panics.
struct Blame<'a> {
    faults: &'a Faults,
    crawl: CrawlNo,
}

impl Drop for Blame<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.faults.blame(&[self.crawl], "a fetch panicked");
        }
    }
}
