//! A plain HTTP client for tests of what is served over loopback.

use std::io;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection that asks like a plain client, without any guard.
pub(crate) struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Client {
    #[expect(clippy::disallowed_methods, reason = "the test itself is the client, on loopback")]
    pub(crate) async fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        Self { stream, received: Vec::new() }
    }

    pub(crate) async fn get(&mut self, host: &str, target: &str) -> io::Result<Reply> {
        self.send(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await?;
        self.reply().await
    }

    pub(crate) async fn send(&mut self, text: &str) -> io::Result<()> {
        self.stream.write_all(text.as_bytes()).await
    }

    pub(crate) async fn reply(&mut self) -> io::Result<Reply> {
        let head_end = loop {
            match memmem::find(&self.received, b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => self.read_more().await?,
            }
        };
        let head = String::from_utf8(self.received[..head_end].to_vec()).unwrap();
        let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
        let end = head_end + length.parse::<usize>().unwrap();
        while self.received.len() < end {
            self.read_more().await?;
        }
        let body = self.received[head_end..end].to_vec();
        self.received.drain(..end);
        Ok(Reply { status: head[9..12].parse().unwrap(), head, body })
    }

    async fn read_more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
