//! Takes connections and serves them, each within its limits, until the service ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use super::patient::PatientStream;
use crate::app::app;
use crate::service::Service;

/// Headers of one request.
const HEADERS_MAX: usize = 100;
/// Longest that the end waits for answers that are being written.
const ANSWERS_MAX: Duration = Duration::from_secs(5);
/// Longest that it waits for changes of state: a crawl that is cancelled has 8 s for its visits under way.
const CHANGES_MAX: Duration = Duration::from_millis(8500);
/// Pause after a connection could not be taken, most often for want of file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Serves until the service [ends](Service::drain), then lets answers under way be written.
pub async fn serve(listener: TcpListener, service: Service) {
    let places = Arc::new(Semaphore::new(connections_max(&service)));
    let door = Arc::new(Door { app: app(service.clone()), service: service.clone() });
    let (tracker, ending) = (TaskTracker::new(), service.ending());
    loop {
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place,
            () = ending.cancelled() => break,
        };
        let Ok(place) = place else { break };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ending.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => drop(tracker.spawn(Arc::clone(&door).talk(stream, place))),
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be taken");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
    tracker.close();
    last_work(tracker.wait(), service.settled()).await;
}

/// Waits for answers that are being written and for changes under way, each within its own time: clients who
/// read slowly take none from what others have ordered, whether these are still there or not. The store
/// closes behind us.
async fn last_work(answers: impl Future<Output = ()>, changes: impl Future<Output = ()>) {
    let answers = tokio::time::timeout(ANSWERS_MAX, answers);
    let changes = tokio::time::timeout(CHANGES_MAX, changes);
    let _ = tokio::join!(answers, changes);
}

/// What a connection is served with.
struct Door {
    app: axum::Router,
    service: Service,
}

impl Door {
    async fn talk(self: Arc<Self>, stream: TcpStream, place: OwnedSemaphorePermit) {
        let _open = Open::count(&self.service);
        let _ = stream.set_nodelay(true);
        let bounds = &self.service.settings().bounds;
        let stream = PatientStream::new(stream, bounds.stall_time_max);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(bounds.header_time_max)
            .max_headers(HEADERS_MAX)
            .max_buf_size(bounds.header_bytes_max.max(8192))
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(self.app.clone()));
        let mut connection = std::pin::pin!(connection);
        let ending = self.service.ending();
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = ending.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::trace!(%error, "a connection broke");
        }
        drop(place);
    }
}

/// A connection that is counted until it is dropped, also by a fault in the middle.
struct Open<'a> {
    service: &'a Service,
}

impl<'a> Open<'a> {
    fn count(service: &'a Service) -> Self {
        service.inner().metrics.connections.fetch_add(1, Ordering::Relaxed);
        Self { service }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.service.inner().metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// As many as the operator allows, and the system has descriptors for.
fn connections_max(service: &Service) -> usize {
    telusur_fetch::raise_open_files_limit();
    service.settings().bounds.connections_max.min(telusur_fetch::connections_share())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::pending;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_takes_no_time_from_changes() {
        let is_changed = Cell::new(false);
        let change = async {
            tokio::time::sleep(Duration::from_secs(8)).await;
            is_changed.set(true);
        };
        let start = tokio::time::Instant::now();
        last_work(pending(), change).await;
        assert!(is_changed.get(), "the change was cut off");
        last_work(async {}, pending()).await;
        assert!(
            start.elapsed() < Duration::from_secs(8 + 10),
            "each end takes less than ten seconds"
        );
    }
}
