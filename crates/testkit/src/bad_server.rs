//! [`BadServer`]: says exactly what a script tells it to, however wrong, and remembers what it was
//! asked. It knows no HTTP beyond where a request head ends.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A longer request head ends the connection.
const REQUEST_BYTES_MAX: usize = 1 << 20;

/// One thing that the server does on a connection. After the last one the connection is closed.
#[derive(Clone, Debug)]
pub enum Step {
    /// Reads up to the end of a request head.
    ReadRequest,
    /// Sends these bytes.
    Send(Bytes),
    /// Sends these bytes one by one, waiting before each.
    Drip {
        /// What is sent.
        bytes: Bytes,
        /// The wait before each byte.
        every: Duration,
    },
    /// Sends these bytes again and again until the client goes away.
    SendForEver(Bytes),
    /// Waits.
    Pause(Duration),
    /// Says nothing until the client goes away.
    Hang,
    /// Closes the connection properly, and does no further step.
    Close,
    /// Cuts the connection (RST), and does no further step.
    Reset,
}

impl Step {
    /// Sends this text.
    pub fn send(text: impl Into<Bytes>) -> Self {
        Self::Send(text.into())
    }
}

/// A server that keeps to its script, until it is dropped.
pub struct BadServer {
    address: SocketAddr,
    seen: Arc<Seen>,
    /// Dropping it ends all tasks.
    _tasks: JoinSet<()>,
}

/// What clients did. The locks are held to add or copy one entry.
#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<Vec<u8>>>,
    connections: Mutex<Connections>,
}

/// How many connections there were, and how many of them are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Connections that were accepted.
    pub opened: usize,
    /// Connections whose script has ended, or whose client went away.
    pub ended: usize,
}

impl BadServer {
    /// Starts a server that does the same on every connection.
    pub async fn start(script: Vec<Step>) -> io::Result<Self> {
        Self::start_varied(vec![script]).await
    }

    /// Starts a server with one script for each connection; the last one is for all that follow.
    pub async fn start_varied(scripts: Vec<Vec<Step>>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Seen::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, scripts, seen.clone()));
        Ok(Self { address, seen, _tasks: tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a path (which begins with a slash) on this server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The request heads that were read, as they came.
    pub fn requests(&self) -> Vec<String> {
        let requests = lock(&self.seen.requests);
        requests.iter().map(|head| String::from_utf8_lossy(head).into_owned()).collect()
    }

    /// The connections so far.
    pub fn connections(&self) -> Connections {
        *lock(&self.seen.connections)
    }
}

async fn accept(listener: TcpListener, scripts: Vec<Vec<Step>>, seen: Arc<Seen>) {
    let mut conversations = JoinSet::new();
    let mut scripts = scripts.into_iter();
    let mut script = Vec::new();
    while let Ok((stream, _)) = listener.accept().await {
        script = scripts.next().unwrap_or(script);
        lock(&seen.connections).opened += 1;
        let (script, seen) = (script.clone(), seen.clone());
        conversations.spawn(async move {
            // That the client goes away in the middle is often the point of the test.
            let _ = play(stream, script, &seen).await;
            lock(&seen.connections).ended += 1;
        });
    }
}

/// Follows a script on one connection, without remembering what was asked.
pub(crate) async fn follow(stream: TcpStream, script: Vec<Step>) -> io::Result<()> {
    play(stream, script, &Seen::default()).await
}

async fn play(mut stream: TcpStream, script: Vec<Step>, seen: &Seen) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::new();
    for step in script {
        match step {
            Step::ReadRequest => {
                let head = read_request(&mut stream, &mut received).await?;
                lock(&seen.requests).push(head);
            }
            Step::Send(bytes) => stream.write_all(&bytes).await?,
            Step::Drip { bytes, every } => {
                for byte in bytes {
                    tokio::time::sleep(every).await;
                    stream.write_all(&[byte]).await?;
                }
            }
            Step::SendForEver(bytes) => loop {
                stream.write_all(&bytes).await?;
            },
            Step::Pause(pause) => tokio::time::sleep(pause).await,
            Step::Hang => while stream.read(&mut [0; 4096]).await? > 0 {},
            Step::Close => break,
            Step::Reset => return stream.set_zero_linger(),
        }
    }
    close(stream).await
}

/// Closes so that the client gets everything that was sent: unread bytes would turn the end into a
/// reset.
async fn close(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    while stream.read(&mut [0; 4096]).await? > 0 {}
    Ok(())
}

async fn read_request(stream: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    loop {
        if let Some(at) = memmem::find(received, b"\r\n\r\n") {
            return Ok(received.drain(..at + 4).collect());
        }
        if received.len() > REQUEST_BYTES_MAX || stream.read_buf(received).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the test itself is the client, on loopback")]
    async fn connect(server: &BadServer) -> TcpStream {
        TcpStream::connect(server.address()).await.unwrap()
    }

    /// What a client reads until the end, and how it ends.
    async fn read_all(mut stream: TcpStream) -> (Vec<u8>, Option<io::ErrorKind>) {
        let mut received = Vec::new();
        let end = stream.read_to_end(&mut received).await;
        (received, end.err().map(|error| error.kind()))
    }

    #[tokio::test]
    async fn a_script_is_played_to_its_end() {
        let script = vec![Step::ReadRequest, Step::send("HTTP/1.1 200"), Step::send(" OK")];
        let server = BadServer::start(script).await.unwrap();
        let mut stream = connect(&server).await;
        stream.write_all(b"GET /x HTTP/1.1\r\nX-A: 1\r\n\r\n").await.unwrap();
        assert_eq!(read_all(stream).await, (b"HTTP/1.1 200 OK".to_vec(), None));
        assert_eq!(server.requests(), ["GET /x HTTP/1.1\r\nX-A: 1\r\n\r\n"]);
    }

    #[tokio::test]
    async fn a_reset_is_no_proper_end() {
        let script = vec![Step::ReadRequest, Step::Reset, Step::send("never")];
        let server = BadServer::start(script).await.unwrap();
        let mut stream = connect(&server).await;
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        assert_eq!(read_all(stream).await, (vec![], Some(io::ErrorKind::ConnectionReset)));
    }

    #[tokio::test]
    async fn bytes_drip() {
        let every = Duration::from_millis(1);
        let script = vec![Step::Drip { bytes: "abc".into(), every }, Step::Close, Step::Hang];
        let server = BadServer::start(script).await.unwrap();
        assert_eq!(read_all(connect(&server).await).await, (b"abc".to_vec(), None));
    }

    #[tokio::test]
    async fn each_connection_has_its_script() {
        let scripts = vec![vec![Step::send("first")], vec![Step::send("later")]];
        let server = BadServer::start_varied(scripts).await.unwrap();
        for expect in ["first", "later", "later"] {
            assert_eq!(read_all(connect(&server).await).await.0, expect.as_bytes());
        }
    }

    #[tokio::test]
    async fn hanging_and_endless_connections_end_with_the_client() {
        for step in [Step::Hang, Step::SendForEver("x".repeat(1000).into())] {
            let server = BadServer::start(vec![step]).await.unwrap();
            let stream = connect(&server).await;
            while server.connections().opened == 0 {
                tokio::task::yield_now().await;
            }
            assert_eq!(server.connections().ended, 0);
            drop(stream);
            while server.connections().ended == 0 {
                tokio::task::yield_now().await;
            }
        }
    }
}
