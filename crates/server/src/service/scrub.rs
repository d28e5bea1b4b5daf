//! Reads everything that is stored while no crawl runs, at the pace that the operator set, so that damage is
//! found before somebody needs what is damaged. What it finds is in the log, on the system page and in the API.

use std::time::Duration;

use telusur_engine::control::{scrub_pause, scrub_piece_bytes};
use telusur_ledger::ScrubState;
use telusur_model::{CrawlState, Timestamp};

use super::Service;
use crate::problem::Problem;

/// How soon it is looked again whether crawls still run.
const BUSY_LOOK_EVERY: Duration = Duration::from_secs(1);
/// After a failure, such as a full disk.
const FAILED_PAUSE: Duration = Duration::from_secs(60);
/// How long after its end a reading begins again: damage at rest is rare, and disks wear.
const REST_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// Reads until the service ends.
pub(crate) async fn scrub_when_idle(service: Service) {
    let pace = service.inner().settings.bounds.scrub_bytes_per_second;
    let mut pause = Duration::ZERO;
    loop {
        tokio::select! {
            () = service.inner().ending.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        pause = match is_busy(&service) {
            true => BUSY_LOOK_EVERY,
            false => read_on(&service, pace).await,
        };
    }
}

fn is_busy(service: &Service) -> bool {
    let snapshots = service.inner().engine.progress();
    snapshots.borrow().values().any(|progress| progress.state == CrawlState::Running)
}

/// Reads a piece. Gives the time until the next.
async fn read_on(service: &Service, pace: u64) -> Duration {
    let at = service.inner().clock.wall();
    let read = service.work(move |service| {
        let store = &service.inner().store;
        let before = store.scrubbed()?;
        if before.as_ref().is_some_and(|state| is_resting(state, at)) {
            return Ok(None);
        }
        let before = before.filter(|state| state.ended_at.is_none()).map_or(0, |state| state.bytes);
        let state = store.scrub(scrub_piece_bytes(pace), at)?;
        if state.ended_at.is_some() {
            let ScrubState { bytes, pages, rows, damaged, .. } = state;
            tracing::info!(bytes, pages, rows, damaged, "everything that is stored was read");
        }
        Ok(Some(state.bytes.saturating_sub(before)))
    });
    match read.await {
        Ok(Some(bytes)) => scrub_pause(bytes, pace),
        Ok(None) => FAILED_PAUSE,
        Err(problem) => {
            tracing::error!(problem = problem.detail(), "what is stored cannot be read through");
            FAILED_PAUSE
        }
    }
}

/// Whether the last reading ended not long ago.
fn is_resting(state: &ScrubState, now: Timestamp) -> bool {
    state.ended_at.is_some_and(|ended| now.0.saturating_sub(ended.0) < REST_MS)
}

impl Service {
    /// How many things the last reading has found to be damaged.
    pub(crate) async fn damaged(&self) -> Result<u64, Problem> {
        self.read(|service| Ok(service.inner().store.scrubbed()?.map_or(0, |state| state.damaged)))
            .await
    }
}
