//! [`Wire`]: the bytes of one connection, in clear or through TLS, and a meter on them.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_rustls::client::TlsStream;

use crate::frames::FrameCounter;

/// A connection's stream of bytes, after decryption.
pub(crate) struct Wire {
    stream: Stream,
    meter: Arc<WireMeter>,
    /// Only where HTTP/2 is spoken.
    frames: Option<FrameCounter>,
    /// Its place among the connections that may be open, free again when this is dropped.
    _place: OwnedSemaphorePermit,
}

enum Stream {
    Clear(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

/// What the owner of a connection knows about its wire while hyper holds it.
pub(crate) struct WireMeter {
    received: AtomicU64,
    is_idle: AtomicBool,
    /// Where the stream ends for us, even if the server still sends.
    received_max: AtomicU64,
    /// Bytes of HTTP/2 that are no body, and where the stream ends for us because of them.
    overhead: AtomicU64,
    overhead_max: AtomicU64,
    /// Whether a TLS stream ended without close_notify, so that anybody may have cut it.
    is_cut_off: AtomicBool,
    /// When bytes were last handed to the system. Held to read or write it.
    written_at: Mutex<Option<Instant>>,
}

impl Default for WireMeter {
    fn default() -> Self {
        Self {
            received: AtomicU64::new(0),
            is_idle: AtomicBool::new(false),
            received_max: AtomicU64::new(u64::MAX),
            overhead: AtomicU64::new(0),
            overhead_max: AtomicU64::new(u64::MAX),
            is_cut_off: AtomicBool::new(false),
            written_at: Mutex::new(None),
        }
    }
}

impl WireMeter {
    /// Bytes received so far, after decryption.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Says whether an answer is expected. On an idle wire any byte counts as its end.
    pub(crate) fn set_idle(&self, is_idle: bool) {
        self.is_idle.store(is_idle, Ordering::Relaxed);
    }

    /// Says how much may still come. More than that ends the wire.
    pub(crate) fn expect_bytes(&self, bytes_max: u64) {
        self.received_max.store(self.received().saturating_add(bytes_max), Ordering::Relaxed);
    }

    /// Says how many bytes that are no body may still come. More than that ends the wire.
    pub(crate) fn expect_overhead(&self, bytes_max: u64) {
        let so_far = self.overhead.load(Ordering::Relaxed);
        self.overhead_max.store(so_far.saturating_add(bytes_max), Ordering::Relaxed);
    }

    /// Whether the wire was ended because of what came besides bodies.
    pub(crate) fn is_flooded(&self) -> bool {
        self.overhead.load(Ordering::Relaxed) > self.overhead_max.load(Ordering::Relaxed)
    }

    /// Whether a TLS stream ended without close_notify.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.is_cut_off.load(Ordering::Relaxed)
    }

    /// When bytes were last handed to the system.
    pub(crate) fn written_at(&self) -> Option<Instant> {
        *self.written_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_write(&self) {
        *self.written_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn is_used_up(&self) -> bool {
        self.received() >= self.received_max.load(Ordering::Relaxed) || self.is_flooded()
    }
}

impl Wire {
    pub(crate) fn clear(stream: TcpStream, place: OwnedSemaphorePermit) -> Self {
        Self::new(Stream::Clear(stream), place)
    }

    pub(crate) fn secure(stream: TlsStream<TcpStream>, place: OwnedSemaphorePermit) -> Self {
        Self::new(Stream::Secure(Box::new(stream)), place)
    }

    fn new(stream: Stream, place: OwnedSemaphorePermit) -> Self {
        Self { stream, meter: Arc::default(), frames: None, _place: place }
    }

    /// Counts what comes besides bodies, on a wire that speaks HTTP/2.
    pub(crate) fn with_frames(self) -> Self {
        Self { frames: Some(FrameCounter::default()), ..self }
    }

    pub(crate) fn meter(&self) -> Arc<WireMeter> {
        Arc::clone(&self.meter)
    }

    /// Whether nothing waits to be read. Asks the system itself: the runtime hears of new bytes only
    /// at its next turn, and a forged answer that slipped in before that would be taken for the
    /// answer to our next request.
    fn is_silent(&self) -> bool {
        let socket = match &self.stream {
            Stream::Clear(stream) => stream,
            Stream::Secure(stream) => stream.get_ref().0,
        };
        let mut byte = [std::mem::MaybeUninit::uninit()];
        let peeked = SockRef::from(socket).peek(&mut byte);
        matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let is_unasked = self.meter.is_idle.load(Ordering::Relaxed) && !self.is_silent();
        if is_unasked || self.meter.is_used_up() {
            // To hyper this is the end of the stream, which ends the connection.
            return Poll::Ready(Ok(()));
        }
        let filled_before = buf.filled().len();
        let read = match &mut self.stream {
            Stream::Clear(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Secure(stream) => {
                let read = Pin::new(stream).poll_read(cx, buf);
                if matches!(&read, Poll::Ready(Err(error)) if is_cut_end(error)) {
                    self.meter.is_cut_off.store(true, Ordering::Relaxed);
                }
                read.map(tls_read)
            }
        };
        let received = u64::try_from(buf.filled().len() - filled_before).unwrap_or(u64::MAX);
        self.meter.received.fetch_add(received, Ordering::Relaxed);
        if let Some(frames) = &mut self.frames {
            let overhead = frames.count(&buf.filled()[filled_before..]);
            self.meter.overhead.fetch_add(overhead, Ordering::Relaxed);
        }
        read
    }
}

/// Whether a TLS stream ended without close_notify, which proves that it was not cut.
fn is_cut_end(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
}

/// Many servers close without TLS's close_notify. To hyper that is the end of the stream: a body that
/// announced its length or its chunks is found to be cut, and one that did not is asked about
/// ([`WireMeter::is_cut_off`]).
///
/// Some faults of the TLS layer come as bare text. They are marked as what they are, else they would
/// pass for bad HTTP.
fn tls_read(read: io::Result<()>) -> io::Result<()> {
    let Err(error) = read else { return Ok(()) };
    let is_marked = error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
    match error.kind() {
        _ if is_cut_end(&error) => Ok(()),
        kind @ (io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) if !is_marked => {
            Err(io::Error::new(kind, rustls::Error::General(error.to_string())))
        }
        _ => Err(error),
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = match &mut self.stream {
            Stream::Clear(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Secure(stream) => Pin::new(stream).poll_write(cx, buf),
        };
        if written.is_ready() {
            self.meter.note_write();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Clear(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Secure(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Clear(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Secure(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
