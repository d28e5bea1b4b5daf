//! A plain HTTP client.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Asks one service.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    key: Option<String>,
}

/// A request that is being written.
pub(crate) struct Asking {
    client: Client,
    method: &'static str,
    target: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Bytes,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, key: None }
    }

    /// The same client with a key.
    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self.clone() }
    }

    pub(crate) fn ask(&self, method: &'static str, target: impl Into<String>) -> Asking {
        let (client, target) = (self.clone(), target.into());
        Asking { client, method, target, headers: Vec::new(), body: Bytes::new() }
    }

    pub(crate) async fn get(&self, target: impl Into<String>) -> Reply {
        self.ask("GET", target).send().await
    }

    pub(crate) async fn post(&self, target: impl Into<String>, body: &Value) -> Reply {
        self.ask("POST", target).json(body).send().await
    }

    /// A GET that must succeed, as JSON.
    pub(crate) async fn json(&self, target: impl Into<String>) -> Value {
        let reply = self.get(target).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }

    #[expect(clippy::disallowed_methods, reason = "the test itself is the client, on loopback")]
    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

impl Asking {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body(body.to_string()).header("content-type", "application/json")
    }

    pub(crate) fn body(self, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// Sends it, and gives the answer before its body is read.
    pub(crate) async fn begin(self) -> http::Response<Incoming> {
        let stream = self.client.connect().await;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = http::Request::builder().method(self.method).uri(&self.target);
        if !self.headers.iter().any(|(name, _)| name == "host") {
            request = request.header("host", self.client.address.to_string());
        }
        if let Some(key) = &self.client.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        sender.send_request(request.body(Full::new(self.body)).unwrap()).await.unwrap()
    }

    pub(crate) async fn send(self) -> Reply {
        let (head, body) = self.begin().await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Reply { status: head.status.as_u16(), headers: head.headers, body }
    }
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The answer is this problem; gives its body.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        let body = self.json();
        assert_eq!(body["code"], code, "{body}");
        assert_eq!(body["status"], status);
        assert_eq!(body["request_id"].as_str().unwrap(), self.header("x-request-id"));
        body
    }
}
