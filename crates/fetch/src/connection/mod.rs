//! [`Connection`]: a conversation with a server, in either version of HTTP. The rest of the crate
//! asks and reads the same way in both.

mod http1;
mod http2;

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::body::{Frame, Incoming};
use telusur_model::Reason;
use tokio::time::{Instant, Sleep};

pub(crate) use self::http1::Http1;
pub(crate) use self::http2::{Http2, Http2Visit};
use crate::failure::Failure;
use crate::guard::CheckedAddress;

pub(crate) enum Connection {
    /// All to ourselves.
    Http1(Box<Http1>),
    /// One visit among others on a shared connection.
    Http2(Http2Visit),
}

impl Connection {
    pub(crate) fn address(&self) -> CheckedAddress {
        match self {
            Self::Http1(connection) => connection.address(),
            Self::Http2(visit) => visit.address(),
        }
    }

    /// When bytes were last handed to the system.
    pub(crate) fn written_at(&self) -> Option<Instant> {
        match self {
            Self::Http1(connection) => connection.written_at(),
            Self::Http2(visit) => visit.written_at(),
        }
    }

    pub(crate) fn is_http2(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    /// Whether the stream ended in a way that does not tell the end of an answer from a cut.
    pub(crate) fn is_cut_off(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.is_cut_off(),
            // Frames tell where an answer ends.
            Self::Http2(_) => false,
        }
    }

    /// Bytes of the current answer that arrived; zero means that the server never began one.
    pub(crate) fn received(&self) -> u64 {
        match self {
            Self::Http1(connection) => connection.received(),
            Self::Http2(visit) => visit.received(),
        }
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn ask(
        &mut self,
        request: Request<Empty<Bytes>>,
        head_bytes_max: u64,
        deadline: Pin<&mut Sleep>,
    ) -> Result<Response<Incoming>, Failure> {
        match self {
            Self::Http1(connection) => connection.ask(request, head_bytes_max, deadline).await,
            Self::Http2(visit) => visit.ask(request, head_bytes_max, deadline).await,
        }
    }

    /// Waits for the next piece of a body; `None` at its end. The caller looks at the clock whenever
    /// `alarm` goes off, which is told by [`NextFrame::Alarm`].
    pub(crate) async fn frame(
        &mut self,
        body: &mut Incoming,
        mut alarm: Pin<&mut Sleep>,
    ) -> NextFrame {
        poll_fn(|cx| {
            let next = match self {
                Self::Http1(connection) => connection.poll_frame(body, cx),
                Self::Http2(visit) => visit.poll_frame(body, cx),
            };
            match next {
                Poll::Ready(Some(Ok(frame))) => Poll::Ready(NextFrame::Frame(frame)),
                Poll::Ready(Some(Err(error))) => {
                    Poll::Ready(NextFrame::Failed(self.body_failure(&error)))
                }
                Poll::Ready(None) => Poll::Ready(NextFrame::End),
                Poll::Pending => alarm.as_mut().poll(cx).map(|()| NextFrame::Alarm),
            }
        })
        .await
    }
}

impl Connection {
    fn body_failure(&self, error: &hyper::Error) -> Failure {
        match self {
            Self::Http2(visit) if visit.is_flooded() => http2::too_much_overhead(),
            Self::Http1(_) | Self::Http2(_) => Failure::body(error, self.received()),
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

fn no_head_in_time(received: u64) -> Failure {
    if received == 0 {
        return Failure::later(Reason::TimeoutFirstByte, "no answer in time");
    }
    Failure::later(Reason::TimeoutBody, "the answer's head did not end in time")
}

#[cfg(test)]
mod tests;
