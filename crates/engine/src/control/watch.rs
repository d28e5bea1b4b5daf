//! A crawl of the process that owns the directory, watched until it is over.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use telusur_ledger::{CrawlRecord, UrlState};
use telusur_model::{CrawlNo, CrawlState, HttpVersion, PauseReason, Progress};

use super::crawls::moved_seeds;
use super::handle::Control;
use super::operation::{Each, Length, Operation, OperationKind};
use crate::error::RequestError;

/// A crawl that shows nothing new is shown again after this time: whoever watches may have left.
const SHOWN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Snapshots of a crawl as they come, until it is over or waits for somebody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchCrawl {
    /// Which.
    pub crawl: String,
}

/// How a crawl ended, with what explains it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrawlEnd {
    /// Its last snapshot.
    pub progress: Progress,
    /// What ended the engine, if that is why it waits.
    pub fault: Option<String>,
    /// Free space on the disk.
    pub free_bytes: Option<u64>,
    /// The first start URL that gave no page.
    pub failed_seed: Option<FailedSeed>,
    /// Start URLs that lead out of the crawl's scope: where, and to where.
    pub moved_seeds: Vec<(String, String)>,
    /// Whether it walks ids.
    pub is_linear: bool,
    /// Whether it spoke HTTP/2 only.
    pub is_http2_only: bool,
}

/// A start URL that gave no page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedSeed {
    /// The URL.
    pub url: String,
    /// Why.
    pub why: String,
}

impl Operation for WatchCrawl {
    const KIND: OperationKind = OperationKind::WatchCrawl;
    const LENGTH: Length = Length::Watch;
    type Item = Progress;
    type Reply = CrawlEnd;

    fn run(&self, control: &Control, each: Each<'_, Progress>) -> Result<CrawlEnd, RequestError> {
        let no = control.find(&self.crawl)?.crawl.no;
        let Some((engine, runtime)) = control.engine.clone() else {
            return Err(RequestError::WrongState(format!("no process is running {no}")));
        };
        let mut snapshots = engine.progress();
        loop {
            let shown = snapshots.borrow_and_update().get(&no).cloned();
            let record = control.find(&no.to_string())?;
            // One that waits for its turn is shown as it ended before, or not at all.
            let is_waiting = record.state == CrawlState::Running && !engine.is_here(no);
            let progress = shown.filter(|_| !is_waiting);
            let progress = progress.unwrap_or_else(|| stored_progress(&record));
            if is_over(progress.state) {
                return crawl_end(control, progress);
            }
            if !each(progress.clone()) {
                return crawl_end(control, progress);
            }
            let changed = runtime.block_on(async {
                tokio::time::timeout(SHOWN_AGAIN_AFTER, snapshots.changed()).await
            });
            if matches!(changed, Ok(Err(_))) {
                return Err(RequestError::Stopped);
            }
        }
    }
}

/// A snapshot of a crawl that no process is working on.
pub fn stored_progress(record: &CrawlRecord) -> Progress {
    Progress {
        crawl: record.crawl.no,
        state: record.state,
        stats: record.stats.clone(),
        in_flight: 0,
        pages_per_second: 0.0,
        eta_s: None,
        sites: Vec::new(),
        sites_total: 0,
        fairness_index: 1.0,
        suspects_network: false,
        retry_after_ms: None,
        index_lag: 0,
        followers_behind: Vec::new(),
        walks: Vec::new(),
        parked: Vec::new(),
        parse_backlog: Vec::new(),
    }
}

/// Whether a crawl has come to its end, or waits for somebody to do something.
pub fn is_over(state: CrawlState) -> bool {
    match state {
        CrawlState::Running | CrawlState::Paused { why: PauseReason::Asked } => false,
        CrawlState::Paused {
            why:
                PauseReason::DiskFull
                | PauseReason::NoNetwork
                | PauseReason::Refused
                | PauseReason::EngineStopped
                | PauseReason::Import,
        }
        | CrawlState::Finished { .. } => true,
    }
}

/// What there is to say of a crawl whose last snapshot this is.
pub fn crawl_end(control: &Control, progress: Progress) -> Result<CrawlEnd, RequestError> {
    let record = control.find(&progress.crawl.to_string())?;
    Ok(CrawlEnd {
        fault: record.fault.as_ref().map(|fault| fault.why.clone()),
        free_bytes: control.store.free_bytes()?,
        failed_seed: failed_seed(control, &record)?,
        moved_seeds: moved_seeds(control, &record)?,
        is_linear: record.crawl.seeds.linear().is_some(),
        is_http2_only: record.crawl.fetch.http == HttpVersion::Two,
        progress,
    })
}

fn failed_seed(
    control: &Control,
    record: &CrawlRecord,
) -> Result<Option<FailedSeed>, RequestError> {
    let no = record.crawl.no;
    for seed in record.crawl.seeds.urls() {
        let Some(known) = control.store.url(no, seed)? else { continue };
        let why = match known.state {
            UrlState::Failed { reason, detail, .. } => Some(format!("{reason} ({detail})")),
            UrlState::Page { seq } => error_status(control, no, seq)?,
            UrlState::Queued { .. }
            | UrlState::Redirected { .. }
            | UrlState::Skipped { .. }
            | UrlState::Sitemap { .. } => None,
        };
        if let Some(why) = why {
            return Ok(Some(FailedSeed { url: seed.to_string(), why }));
        }
    }
    Ok(None)
}

fn error_status(
    control: &Control,
    crawl: CrawlNo,
    seq: u64,
) -> Result<Option<String>, RequestError> {
    let page = control.store.page(crawl, seq)?.filter(|page| !page.is_ok());
    Ok(page.map(|page| format!("the server answered {}", page.status)))
}
