//! [`Connection`]: one HTTP/1.1 conversation, driven by whoever waits for the answer.
//!
//! hyper wants its connection polled, usually by a task of its own. Here the visit polls it: a task
//! and two wake-ups less per request, and a connection that nobody uses costs nothing.

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
use tokio::time::Sleep;

use crate::failure::Failure;
use crate::guard::CheckedAddress;
use crate::wire::{Wire, WireMeter};

pub(crate) struct Connection {
    sender: http1::SendRequest<Empty<Bytes>>,
    /// `None` once the conversation is over.
    driver: Option<http1::Connection<TokioIo<Wire>, Empty<Bytes>>>,
    meter: Arc<WireMeter>,
    received_before: u64,
    address: CheckedAddress,
}

impl Connection {
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

    pub(crate) fn address(&self) -> CheckedAddress {
        self.address
    }

    /// Bytes of the current answer that arrived, head and framing included.
    pub(crate) fn received(&self) -> u64 {
        self.meter.received() - self.received_before
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn ask(
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
            deadline.as_mut().poll(cx).map(|()| Err(self.no_head_in_time()))
        })
        .await
    }

    fn no_head_in_time(&self) -> Failure {
        if self.received() == 0 {
            return Failure::later(Reason::TimeoutFirstByte, "no answer in time");
        }
        Failure::later(Reason::TimeoutBody, "the answer's head did not end in time")
    }

    /// Waits for the next piece of a body; `None` at its end. The caller looks at the clock whenever
    /// `alarm` goes off, which is told by [`NextFrame::Alarm`].
    pub(crate) async fn frame(
        &mut self,
        body: &mut Incoming,
        mut alarm: Pin<&mut Sleep>,
    ) -> NextFrame {
        poll_fn(|cx| {
            // A frame that is already there is taken before the wire is asked for more, else every
            // frame would cost a useless read.
            let mut next = Pin::new(&mut *body).poll_frame(cx);
            if next.is_pending() {
                self.drive(cx);
                next = Pin::new(&mut *body).poll_frame(cx);
            }
            match next {
                Poll::Ready(Some(Ok(frame))) => Poll::Ready(NextFrame::Frame(frame)),
                Poll::Ready(Some(Err(error))) => {
                    Poll::Ready(NextFrame::Failed(Failure::body(&error, self.received())))
                }
                Poll::Ready(None) => Poll::Ready(NextFrame::End),
                Poll::Pending => alarm.as_mut().poll(cx).map(|()| NextFrame::Alarm),
            }
        })
        .await
    }

    /// Whether the connection can take another request now: the last answer is read to its end, the
    /// server keeps it open, and nothing unasked has come in.
    pub(crate) fn is_reusable(&mut self) -> bool {
        self.meter.set_idle(true);
        // Nobody waits on an idle connection; the next look at it comes from the pool.
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

/// What came next on a connection.
pub(crate) enum NextFrame {
    Frame(Frame<Bytes>),
    End,
    Alarm,
    Failed(Failure),
}
