//! [`Client`]: one connection to a service, in just enough HTTP/1.1 to load it. Made for loopback only.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection that is kept from request to request.
pub(crate) struct Client {
    address: SocketAddr,
    stream: TcpStream,
    received: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { address, stream: open(address).await?, received: Vec::new() })
    }

    pub(crate) async fn get(&mut self, target: &str) -> io::Result<Reply> {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        self.ask(&request).await
    }

    pub(crate) async fn post(&mut self, target: &str, body: &str) -> io::Result<Reply> {
        self.send("POST", target, body).await
    }

    /// Sends a body of JSON with this method.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        target: &str,
        body: &str,
    ) -> io::Result<Reply> {
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.ask(&request).await
    }

    /// Sends a request as it is, and reads the answer.
    pub(crate) async fn ask(&mut self, request: &str) -> io::Result<Reply> {
        // A service that refuses a large body need not read it: the answer counts, not the rest.
        let _ = self.stream.write_all(request.as_bytes()).await;
        let end = loop {
            match self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => self.read_more().await?,
            }
        };
        let head = String::from_utf8_lossy(&self.received[..end]).to_ascii_lowercase();
        let unreadable = || io::Error::new(io::ErrorKind::InvalidData, head.clone());
        let status: u16 = head.get(9..12).and_then(|it| it.parse().ok()).ok_or_else(unreadable)?;
        let bytes = match header(&head, "content-length") {
            Some(text) => text.parse::<usize>().map_err(|_| unreadable())?,
            // No content has no length (RFC 9110, section 8.6).
            None if status == 204 => 0,
            None => return Err(unreadable()),
        };
        while self.received.len() < end + bytes {
            self.read_more().await?;
        }
        let body = String::from_utf8_lossy(&self.received[end..end + bytes]).into_owned();
        self.received.drain(..end + bytes);
        Ok(Reply { status, head, body })
    }

    async fn read_more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

impl Reply {
    /// The value of a header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
    lines.find(|(it, _)| *it == name).map(|(_, value)| value.trim())
}

/// Opens a plain connection.
#[expect(clippy::disallowed_methods, reason = "the task itself is the client, on loopback")]
pub(crate) async fn open(address: SocketAddr) -> io::Result<TcpStream> {
    TcpStream::connect(address).await
}
