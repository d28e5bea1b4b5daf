//! [`Http1`]: one HTTP/1.1 conversation, driven by the task that waits for the answer.
//!
//! hyper wants its connection polled, usually by a task of its own. Here the visit polls it: a task
//! and two wake-ups less per request, and an idle connection costs nothing.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use telusur_model::Reason;
use tokio::time::{Instant, Sleep};

use super::no_head_in_time;
use crate::failure::Failure;
use crate::guard::CheckedAddress;
use crate::wire::{Wire, WireMeter};

pub(crate) struct Http1 {
    sender: http1::SendRequest<Empty<Bytes>>,
    /// `None` once the conversation is over.
    driver: Option<http1::Connection<TokioIo<Wire>, Empty<Bytes>>>,
    meter: Arc<WireMeter>,
    received_before: u64,
    address: CheckedAddress,
}

impl Http1 {
    pub(crate) async fn new(
        http: &http1::Builder,
        wire: Wire,
        address: CheckedAddress,
    ) -> Result<Self, Failure> {
        let meter = wire.meter();
        let (sender, driver) =
            http.handshake(TokioIo::new(wire)).await.map_err(|error| Failure::asking(&error, 0))?;
        Ok(Self { sender, driver: Some(driver), meter, received_before: 0, address })
    }

    pub(super) fn written_at(&self) -> Option<Instant> {
        self.meter.written_at()
    }

    pub(super) fn is_cut_off(&self) -> bool {
        self.meter.is_cut_off()
    }

    pub(super) fn address(&self) -> CheckedAddress {
        self.address
    }

    /// Bytes of the current answer that arrived, head and framing included.
    pub(super) fn received(&self) -> u64 {
        self.meter.received() - self.received_before
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn ask(
        &mut self,
        request: Request<Empty<Bytes>>,
        head_bytes_max: u64,
        mut deadline: Pin<&mut Sleep>,
    ) -> Result<Response<Incoming>, Failure> {
        self.meter.set_idle(false);
        self.received_before = self.meter.received();
        let mut answer = pin!(self.sender.send_request(request));
        poll_fn(|cx| {
            self.drive(cx);
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(
                    answer.map_err(|error| Failure::asking(&error, self.received())),
                );
            }
            // hyper bounds one head, but skips any number of interim answers (1xx) before it.
            if self.received() > head_bytes_max.saturating_mul(2) {
                let detail = "the answer's head is too large";
                return Poll::Ready(Err(Failure::never(Reason::HeaderTooLarge, detail)));
            }
            deadline.as_mut().poll(cx).map(|()| Err(no_head_in_time(self.received())))
        })
        .await
    }

    /// The next piece of a body. A frame that is already there is taken before the wire is asked for
    /// more, else every frame would cost a useless read.
    pub(super) fn poll_frame(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let next = Pin::new(&mut *body).poll_frame(cx);
        if next.is_ready() {
            return next;
        }
        self.drive(cx);
        Pin::new(body).poll_frame(cx)
    }

    /// Whether the connection can take another request now: the last answer is read to its end, the
    /// server keeps it open, and nothing unasked has come in.
    pub(crate) fn is_reusable(&mut self) -> bool {
        self.meter.set_idle(true);
        // No visit waits on an idle connection; the next look at it comes from the pool.
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && self.sender.is_ready()
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        let Some(driver) = &mut self.driver else { return };
        if Pin::new(driver).poll(cx).is_ready() {
            // How it ended is told to the waiting answer or body, each in its own words. A request
            // that was never picked up hears of it only when the driver is gone.
            self.driver = None;
        }
    }
}
