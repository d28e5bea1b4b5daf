//! [`serve`]: a [`Website`] over loopback, in just enough HTTP/1.1 to be asked by a real client:
//! GET, keep-alive, pipelining. Written by hand, because it must never be slower than the crawler
//! that it measures. It never listens beyond 127.0.0.0/8.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::answer::{FakeAnswer, FakeRequest, Website};
use crate::fake_web::{FakeWeb, LiveWeb, host_address};
use crate::request_log::RequestLog;

/// A longer request head is refused: no client of ours sends one.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Ports tried before giving up on finding one that is free on all addresses.
const PORT_TRIES: usize = 20;
/// How long a listener that cannot accept waits, so that it does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Serves a synthetic web: every host on a loopback address of its own, all on one port.
pub async fn serve(web: &FakeWeb, log: Option<Arc<RequestLog>>) -> io::Result<ServedWeb> {
    let addresses: Vec<Ipv4Addr> = (0..web.spec().hosts).map(host_address).collect();
    let listeners = bind_all(&addresses).await?;
    let web = web.on_port(listeners.port);
    let server = LoopbackServer::start(listeners, Arc::new(LiveWeb::new(web.clone())), log);
    Ok(ServedWeb { web, server })
}

/// A synthetic web that can be asked over loopback, until it is dropped or stopped.
pub struct ServedWeb {
    web: FakeWeb,
    server: LoopbackServer,
}

impl ServedWeb {
    /// The web, with the addresses under which it can be asked.
    pub fn web(&self) -> &FakeWeb {
        &self.web
    }

    /// The port of all its hosts.
    pub fn port(&self) -> u16 {
        self.server.port
    }

    /// Takes no new requests, finishes the answers under way, and closes all connections.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}

/// Listening sockets of several addresses, all on one port.
pub(crate) struct Listeners {
    pub(crate) sockets: Vec<TcpListener>,
    pub(crate) port: u16,
}

/// Finds a port that is free on all the addresses.
pub(crate) async fn bind_all(addresses: &[Ipv4Addr]) -> io::Result<Listeners> {
    let mut tries_left = PORT_TRIES;
    loop {
        tries_left -= 1;
        match bind_once(addresses).await {
            // The port that we were given on the first address is in use on another one.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries_left > 0 => {}
            other => return other,
        }
    }
}

async fn bind_once(addresses: &[Ipv4Addr]) -> io::Result<Listeners> {
    let mut listeners = Listeners { sockets: Vec::with_capacity(addresses.len()), port: 0 };
    for &address in addresses {
        let socket = TcpListener::bind(SocketAddrV4::new(address, listeners.port)).await?;
        listeners.port = socket.local_addr()?.port();
        listeners.sockets.push(socket);
    }
    Ok(listeners)
}

/// The tasks that answer. Dropping it makes them end soon; [`LoopbackServer::stop`] waits for them.
pub(crate) struct LoopbackServer {
    pub(crate) port: u16,
    tasks: TaskTracker,
    stopping: DropGuard,
}

/// What every connection needs.
#[derive(Clone)]
pub(crate) struct Responder {
    website: Arc<dyn Website>,
    log: Option<Arc<RequestLog>>,
    stopping: CancellationToken,
}

impl LoopbackServer {
    pub(crate) fn start(
        listeners: Listeners,
        website: Arc<dyn Website>,
        log: Option<Arc<RequestLog>>,
    ) -> Self {
        let stopping = CancellationToken::new();
        let tasks = TaskTracker::new();
        let responder = Responder { stopping: stopping.clone(), ..Responder::new(website, log) };
        for listener in listeners.sockets {
            tasks.spawn(accept(listener, responder.clone(), tasks.clone()));
        }
        Self { port: listeners.port, tasks, stopping: stopping.drop_guard() }
    }

    pub(crate) async fn stop(self) {
        drop(self.stopping);
        self.tasks.close();
        self.tasks.wait().await;
    }
}

async fn accept(listener: TcpListener, responder: Responder, tasks: TaskTracker) {
    loop {
        let accepted = tokio::select! {
            () = responder.stopping.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let responder = responder.clone();
                tasks.spawn(async move {
                    // A client that goes away in the middle is its own affair.
                    let _ = responder.talk(stream).await;
                });
            }
            // Out of file descriptors, most likely: connections must end before the next try.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

impl Responder {
    pub(crate) fn new(website: Arc<dyn Website>, log: Option<Arc<RequestLog>>) -> Self {
        Self { website, log, stopping: CancellationToken::new() }
    }

    /// Answers the requests of one connection, one after the other.
    pub(crate) async fn talk(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut received = BytesMut::with_capacity(4096);
        let mut head_out = String::with_capacity(256);
        let mut is_kept = false;
        loop {
            let Some(head_bytes) = self.next_head(&mut stream, &mut received).await? else {
                return Ok(());
            };
            let head = received.split_to(head_bytes);
            let Some(request) = RequestHead::read(&head) else {
                let refusal = FakeAnswer::plain(400, "this is not a request\n");
                return send(&mut stream, refusal, Ending::Close, &mut head_out).await;
            };
            let answer = self.answer(&request, is_kept).await;
            is_kept = true;
            if answer.reset {
                return stream.set_zero_linger();
            }
            let stopping = self.stopping.is_cancelled();
            let ending = if request.wants_close || stopping { Ending::Close } else { Ending::Keep };
            send(&mut stream, answer, ending, &mut head_out).await?;
            if ending == Ending::Close {
                return stream.shutdown().await;
            }
        }
    }

    /// Waits until a whole request head has arrived, and says how long it is. `None` at the end of
    /// the connection.
    async fn next_head(
        &self,
        stream: &mut TcpStream,
        received: &mut BytesMut,
    ) -> io::Result<Option<usize>> {
        loop {
            if let Some(at) = memmem::find(received, b"\r\n\r\n") {
                return Ok(Some(at + 4));
            }
            if received.len() > HEAD_BYTES_MAX {
                return Ok(None);
            }
            let bytes_read = tokio::select! {
                biased;
                read = stream.read_buf(received) => read?,
                () = self.stopping.cancelled() => 0,
            };
            if bytes_read == 0 {
                return Ok(None);
            }
        }
    }

    async fn answer(&self, request: &RequestHead<'_>, is_kept: bool) -> FakeAnswer {
        if request.method != "GET" {
            return FakeAnswer::plain(405, "only GET is answered\n");
        }
        let RequestHead { host, target, .. } = *request;
        let logged = self.log.as_ref().map(|log| (log, log.started(host, target)));
        let answer = self.website.answer_to(FakeRequest { host, target });
        let answer = answer.unwrap_or_else(|| FakeAnswer::plain(421, "no such host here\n"));
        if !answer.delay.is_zero() {
            tokio::time::sleep(answer.delay).await;
        }
        if let Some((log, number)) = logged {
            log.ended(number);
            if answer.reset && is_kept {
                log.cut_off(number);
            }
        }
        answer
    }
}

/// The parts of a request head that matter here.
struct RequestHead<'a> {
    method: &'a str,
    target: &'a str,
    host: &'a str,
    wants_close: bool,
}

impl<'a> RequestHead<'a> {
    fn read(head: &'a [u8]) -> Option<Self> {
        let head = std::str::from_utf8(head).ok()?;
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if !target.starts_with('/') || words.next().is_some() {
            return None;
        }
        let mut request = Self { method, target, host: "", wants_close: version != "HTTP/1.1" };
        for line in lines {
            let Some((name, value)) = line.split_once(':') else { continue };
            if name.eq_ignore_ascii_case("host") {
                request.host = value.trim_ascii();
            } else if name.eq_ignore_ascii_case("connection") {
                request.wants_close |= value.trim_ascii().eq_ignore_ascii_case("close");
            }
        }
        Some(request)
    }
}

/// Whether a connection goes on after an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Keep,
    Close,
}

/// Sends head and body in one system call where the socket takes them at once.
async fn send(
    stream: &mut TcpStream,
    answer: FakeAnswer,
    ending: Ending,
    head: &mut String,
) -> io::Result<()> {
    head.clear();
    let reason = reason_phrase(answer.status);
    write!(head, "HTTP/1.1 {} {reason}\r\n", answer.status).expect("a string takes it");
    for (name, value) in &answer.headers {
        write!(head, "{name}: {value}\r\n").expect("a string takes it");
    }
    if ending == Ending::Close {
        head.push_str("connection: close\r\n");
    }
    write!(head, "content-length: {}\r\n\r\n", answer.body.len()).expect("a string takes it");
    stream.write_all_buf(&mut Buf::chain(head.as_bytes(), answer.body)).await
}

fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        421 => "Misdirected Request",
        500 => "Internal Server Error",
        // The phrase may be empty (RFC 9112, section 4).
        _ => "",
    }
}
