//! [`Http2`]: an HTTP/2 connection, shared by the visits to one host; [`Http2Visit`]: one of them.
//!
//! The server's pings must be answered while no request is under way, so hyper's tasks run by
//! themselves here. They belong to the connection and end with it: when the pool has let go of it and
//! its last visit is over.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2;
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use telusur_model::Reason;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};

use super::no_head_in_time;
use crate::failure::Failure;
use crate::guard::CheckedAddress;
use crate::settings::FetchSettings;
use crate::wire::{Wire, WireMeter};

/// What a server may send on one stream, and on all of them, before we have read it: the memory that
/// a connection can cost. A quarter of a megabyte per round trip is enough for pages.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// Visits that share a connection; more of them open another one. Servers commonly allow 100.
const VISITS_MAX: usize = 32;

/// Bytes that a server may send while no request is under way: the rest of a body that we cut, pings, settings. One
/// that goes on sending is cut off.
const UNASKED_BYTES_MAX: u64 = CONNECTION_WINDOW_BYTES as u64 + 64 * 1024;

pub(crate) struct Http2 {
    sender: http2::SendRequest<Empty<Bytes>>,
    tasks: Tasks,
    meter: Arc<WireMeter>,
    /// How many visits there are, and with them whether anything may come in unasked. Held to count.
    visits: Mutex<usize>,
    /// What may come besides bodies for each visit: as much as HTTP/1.1 reads before the end of a head.
    overhead_bytes_max: u64,
    address: CheckedAddress,
}

impl Http2 {
    pub(crate) async fn new(
        settings: &FetchSettings,
        wire: Wire,
        address: CheckedAddress,
    ) -> Result<Arc<Self>, Failure> {
        let wire = wire.with_frames();
        let (meter, tasks) = (wire.meter(), Tasks::default());
        let overhead_bytes_max =
            u64::try_from(settings.head_bytes_max).unwrap_or(u64::MAX).saturating_mul(2);
        let head_bytes_max = u32::try_from(settings.head_bytes_max).unwrap_or(u32::MAX);
        let handshake = http2::Builder::new(tasks.clone())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            // A little more than we take: h2 calls a larger head malformed, we call it too large.
            .max_header_list_size(head_bytes_max.saturating_mul(2))
            .handshake(TokioIo::new(wire));
        let (sender, dispatch) = handshake.await.map_err(|error| Failure::asking(&error, 0))?;
        tasks.execute(async move {
            // How it ended is told to each waiting answer or body in its own words.
            let _ = dispatch.await;
        });
        let visits = Mutex::new(0);
        Ok(Arc::new(Self { sender, tasks, meter, visits, overhead_bytes_max, address }))
    }

    /// A place on this connection, if it is open and not crowded.
    pub(crate) fn visit(self: &Arc<Self>) -> Option<Http2Visit> {
        let mut visits = lock(&self.visits);
        if *visits >= VISITS_MAX || self.sender.is_closed() {
            return None;
        }
        *visits += 1;
        self.meter.expect_bytes(u64::MAX);
        let visits_now = u64::try_from(*visits).unwrap_or(u64::MAX);
        self.meter.expect_overhead(self.overhead_bytes_max.saturating_mul(visits_now));
        drop(visits);
        Some(Http2Visit {
            connection: Arc::clone(self),
            received_before: self.meter.received(),
            is_answered: false,
        })
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.tasks.end();
    }
}

/// One request and its answer on a shared connection.
pub(crate) struct Http2Visit {
    connection: Arc<Http2>,
    received_before: u64,
    is_answered: bool,
}

impl Http2Visit {
    /// The connection, for other visits.
    pub(crate) fn shared(&self) -> &Arc<Http2> {
        &self.connection
    }

    pub(super) fn written_at(&self) -> Option<Instant> {
        self.connection.meter.written_at()
    }

    pub(super) fn address(&self) -> CheckedAddress {
        self.connection.address
    }

    /// Zero before the answer began. From then on all bytes of the connection since the request.
    pub(super) fn received(&self) -> u64 {
        if self.is_answered { self.on_the_wire() } else { 0 }
    }

    /// Whether the connection was ended because of what came besides bodies.
    pub(super) fn is_flooded(&self) -> bool {
        self.connection.meter.is_flooded()
    }

    fn on_the_wire(&self) -> u64 {
        self.connection.meter.received() - self.received_before
    }

    pub(super) async fn ask(
        &mut self,
        request: Request<Empty<Bytes>>,
        head_bytes_max: u64,
        mut deadline: Pin<&mut Sleep>,
    ) -> Result<Response<Incoming>, Failure> {
        self.received_before = self.connection.meter.received();
        let mut sender = self.connection.sender.clone();
        let mut answer = pin!(sender.send_request(request));
        let answer = poll_fn(|cx| {
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(Some(answer));
            }
            deadline.as_mut().poll(cx).map(|()| None)
        })
        .await;
        match answer {
            Some(Ok(answer)) => {
                self.is_answered = true;
                if head_bytes(&answer) > head_bytes_max {
                    return Err(head_too_large());
                }
                Ok(answer)
            }
            Some(Err(_)) if self.is_flooded() => Err(too_much_overhead()),
            Some(Err(error)) => {
                let failure = Failure::asking(&error, 0);
                // h2 calls a head malformed that is far larger than we take.
                if failure.why == Reason::ProtocolError && self.on_the_wire() > head_bytes_max {
                    return Err(head_too_large());
                }
                Err(failure)
            }
            None => Err(no_head_in_time(0)),
        }
    }

    pub(super) fn poll_frame(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        Pin::new(body).poll_frame(cx)
    }
}

impl Drop for Http2Visit {
    fn drop(&mut self) {
        let mut visits = lock(&self.connection.visits);
        *visits -= 1;
        if *visits == 0 {
            self.connection.meter.expect_bytes(UNASKED_BYTES_MAX);
        }
    }
}

/// As RFC 9113, section 10.5.1, counts it, because compressed sizes hide what a head costs.
fn head_bytes(answer: &Response<Incoming>) -> u64 {
    const PER_HEADER_BYTES: usize = 32;
    let bytes: usize = answer
        .headers()
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + PER_HEADER_BYTES)
        .sum();
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

pub(super) fn too_much_overhead() -> Failure {
    let detail = "the server sends frames without end that belong to no page";
    Failure::never(Reason::HeaderTooLarge, detail)
}

fn head_too_large() -> Failure {
    Failure::never(Reason::HeaderTooLarge, "the answer's head is too large")
}

/// The tasks of one connection, for hyper to start and for us to end.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<RunningTasks>>);

#[derive(Default)]
struct RunningTasks {
    tasks: JoinSet<()>,
    is_over: bool,
}

impl Tasks {
    /// Ends them all; none can be started any more. The tasks know this list, so it would not go away
    /// by itself.
    fn end(&self) {
        let mut running = lock(&self.0);
        running.is_over = true;
        running.tasks.abort_all();
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        let mut running = lock(&self.0);
        if running.is_over {
            return;
        }
        // One is started per request; those that have ended are let go of here.
        while running.tasks.try_join_next().is_some() {}
        running.tasks.spawn(task);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
