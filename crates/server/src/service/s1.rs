//! Jobs as the first service showed them: with all their pages, and the links of each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use telusur_ledger::{UrlRecord, UrlState};
use telusur_model::{CrawlNo, CrawlState, PageRecord};

use super::Service;
use crate::json::{S1Job, S1Page};
use crate::problem::Problem;

/// Pages of a job that are shown; all are at `/api/v1`.
const PAGES_SHOWN_MAX: usize = 10_000;

/// Links that are kept in memory, about 20 MB of them. When there are more, all are forgotten.
const LINKS_KEPT_MAX: usize = 200_000;
/// Pages whose links are kept in memory.
const PAGES_KEPT_MAX: usize = 20_000;

impl Service {
    /// A job as the first service would show it.
    pub(crate) async fn s1_job(&self, no: CrawlNo) -> Result<S1Job, Problem> {
        self.read(move |service| {
            let record = service.record(no)?;
            let crawl = &record.crawl;
            let pages_max = crawl.limits.pages_max;
            let shown_max = PAGES_SHOWN_MAX;
            let limit = pages_max.map_or(shown_max, |max| shown_max.min(max as usize));
            let store = &service.inner().store;
            let mut pages = Vec::new();
            for page in store.pages_after(no, 0, limit)? {
                pages.push(service.s1_page(page));
            }
            let room = limit - pages.len();
            let mut failed = Vec::new();
            if room > 0 {
                store.settled_urls_after(no, None, &mut |_, url| {
                    failed.extend(s1_failed(url));
                    failed.len() < room
                })?;
            }
            pages.extend(failed);
            let is_over = matches!(record.state, CrawlState::Finished { .. });
            Ok(S1Job {
                id: no.to_string(),
                status: s1_status(record.state.word()).to_owned(),
                seed_url: crawl.seeds.texts().into_iter().next().unwrap_or_default(),
                max_pages: pages_max.unwrap_or(0),
                truncated: record.stats.pages > pages.len() as u64,
                pages,
                started_at: crawl.created_at.0,
                ended_at: is_over.then_some(record.state_since.0),
            })
        })
        .await
    }

    fn s1_page(&self, page: PageRecord) -> S1Page {
        let is_ok = page.status == 200;
        let links = if is_ok { self.links_of(&page) } else { Arc::default() };
        S1Page {
            url: page.url.to_string(),
            status_code: page.status,
            title: page.title.filter(|_| is_ok).unwrap_or_default(),
            links: links.to_vec(),
            crawled_at: page.fetched_at.0,
            error: None,
        }
    }

    fn links_of(&self, page: &PageRecord) -> Arc<[String]> {
        let memory = &self.inner().links;
        if let Some(links) = memory.get(page) {
            return links;
        }
        // A page whose body is damaged, or was not kept, has no links to show; `verify` tells.
        let links: Arc<[String]> = self.inner().control.links_of(page).unwrap_or_default().into();
        memory.put(page, &links);
        links
    }
}

/// The links of pages that were shown. Clients ask for a job again and again until it is done, and the
/// links of its pages are read out of their bodies: once is enough.
#[derive(Default)]
pub(crate) struct LinkMemory {
    /// Held to look or to add, never while a page is read.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    by_page: HashMap<(CrawlNo, u64), Arc<[String]>>,
    links: usize,
}

impl LinkMemory {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, page: &PageRecord) -> Option<Arc<[String]>> {
        self.known().by_page.get(&(page.crawl, page.seq)).cloned()
    }

    fn put(&self, page: &PageRecord, links: &Arc<[String]>) {
        let mut known = self.known();
        if known.links > LINKS_KEPT_MAX || known.by_page.len() > PAGES_KEPT_MAX {
            *known = Known::default();
        }
        known.links += links.len();
        known.by_page.insert((page.crawl, page.seq), Arc::clone(links));
    }
}

fn s1_failed(url: UrlRecord) -> Option<S1Page> {
    let UrlState::Failed { reason, detail, at, .. } = url.state else { return None };
    Some(S1Page {
        url: url.url,
        status_code: 0,
        title: String::new(),
        links: Vec::new(),
        crawled_at: at.0,
        error: Some(format!("{reason}: {detail}")),
    })
}

/// The first service knows three words. A crawl that waits for anything is running to it.
fn s1_status(word: &str) -> &'static str {
    match word {
        "completed" | "stopped" => "completed",
        "failed" => "failed",
        _ => "running",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_service_never_hears_new_words() {
        for word in ["running", "paused", "queued", "stopped", "completed", "failed"] {
            assert!(["running", "completed", "failed"].contains(&s1_status(word)));
        }
    }
}
