//! [`ServiceClient`]: asks one Telusur service, for commands that run elsewhere. The user names the service, so its
//! address may be any; nothing but that address is ever reached.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use telusur_model::{HttpVersion, PageUrl, Secret};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use crate::dial::dial;
use crate::guard::{AddressGuard, CheckedAddress};
use crate::settings::FetchSettings;
use crate::tls::{Tls, server_name};

/// How long the service may take to take a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long it may take to begin its answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// Longest line of an answer, and longest problem.
const LINE_BYTES_MAX: usize = 64 << 20;

/// Asks a service.
#[derive(Clone, Debug)]
pub struct ServiceClient {
    url: PageUrl,
    key: Option<Secret>,
}

/// Why a service gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceClientError {
    /// The address or the key cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// It cannot be reached, or the connection ended.
    #[error("{0}")]
    Unreachable(String),
    /// It refused.
    #[error("the server answered {status}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The body.
        body: Vec<u8>,
    },
}

impl ServiceClient {
    /// A client of the service at an address such as `http://127.0.0.1:8088`.
    pub fn new(address: &str, key: Option<Secret>) -> Result<Self, ServiceClientError> {
        let unusable = |why: String| ServiceClientError::Unusable(why);
        let url = PageUrl::parse(address)
            .map_err(|error| unusable(format!("{address:?} is not an address: {error}")))?;
        if key.as_ref().is_some_and(|key| HeaderValue::from_str(key.reveal()).is_err()) {
            return Err(unusable("the key holds characters that no key has".to_owned()));
        }
        Ok(Self { url, key })
    }

    /// The service's address.
    pub fn url(&self) -> &PageUrl {
        &self.url
    }

    /// Sends JSON to a path below the address, and calls `each` with every line of the answer until it returns
    /// false.
    pub async fn post(
        &self,
        path: &str,
        json: Vec<u8>,
        each: &mut (dyn FnMut(&[u8]) -> bool + Send),
    ) -> Result<(), ServiceClientError> {
        let unreachable = |why: String| ServiceClientError::Unreachable(why);
        let request = self.request(path, json)?;
        let stream = timeout(CONNECT_TIME_MAX, self.connect());
        let stream = stream.await.map_err(|_| unreachable("it does not answer".to_owned()))??;
        let connection = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, driver) =
            connection.map_err(|error| unreachable(format!("speak HTTP: {error}")))?;
        let driving = tokio::spawn(driver);
        let answer = timeout(ANSWER_TIME_MAX, sender.send_request(request)).await;
        let answer = answer.map_err(|_| unreachable("it does not answer".to_owned()))?;
        let answer = answer.map_err(|error| unreachable(error.to_string()))?;
        let read = read(answer, each).await;
        driving.abort();
        read
    }

    fn request(
        &self,
        path: &str,
        json: Vec<u8>,
    ) -> Result<Request<Full<Bytes>>, ServiceClientError> {
        let unusable = |why: String| ServiceClientError::Unusable(why);
        let url = self.url.join(path).map_err(|error| unusable(error.to_string()))?;
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(url.path())
            .header(HOST, url.authority())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/x-ndjson");
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, format!("Bearer {}", key.reveal()));
        }
        request.body(Full::new(json.into())).map_err(|error| unusable(error.to_string()))
    }

    async fn connect(&self) -> Result<Box<dyn Stream>, ServiceClientError> {
        let unreachable = |why: String| ServiceClientError::Unreachable(why);
        let (host, port) = (self.url.host().to_string(), self.url.port());
        let name = host.trim_matches(['[', ']']).to_owned();
        let addresses = tokio::net::lookup_host((name, port)).await;
        let addresses =
            addresses.map_err(|error| unreachable(format!("look up {host}: {error}")))?;
        let mut failure = format!("{host} has no address");
        for address in addresses {
            // Exactly this socket is opened to this client.
            let guard = AddressGuard::new(&[address.to_string()]);
            let guard = guard.map_err(|error| unreachable(error.to_string()))?;
            let checked: CheckedAddress = match guard.check(&host, address) {
                Ok(checked) => checked,
                Err(refused) => {
                    failure = refused.detail;
                    continue;
                }
            };
            match dial(checked).await {
                Ok(stream) if !self.url.is_secure() => return Ok(Box::new(stream)),
                Ok(stream) => {
                    let tls = Tls::new(&FetchSettings::default());
                    let connector = tls.connector(true, HttpVersion::One);
                    let connector = connector.map_err(|error| unreachable(error.detail))?;
                    let name = server_name(&self.url).map_err(|error| unreachable(error.detail))?;
                    let stream = connector.connect(name, stream).await;
                    return match stream {
                        Ok(stream) => Ok(Box::new(stream)),
                        Err(error) => Err(unreachable(format!("TLS: {error}"))),
                    };
                }
                Err(error) => failure = format!("connect to {address}: {error}"),
            }
        }
        Err(unreachable(failure))
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Hands over the lines of an answer.
async fn read(
    answer: Response<Incoming>,
    each: &mut (dyn FnMut(&[u8]) -> bool + Send),
) -> Result<(), ServiceClientError> {
    let status = answer.status();
    let mut body = answer.into_body();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ServiceClientError::Unreachable(error.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        rest.extend_from_slice(&data);
        if rest.len() > LINE_BYTES_MAX {
            let what = "a line of its answer is too long".to_owned();
            return Err(ServiceClientError::Unreachable(what));
        }
        if status != StatusCode::OK {
            continue;
        }
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = rest.split_to(end + 1);
            if !each(&line[..end]) {
                return Ok(());
            }
        }
    }
    match status {
        StatusCode::OK => Ok(()),
        status => Err(ServiceClientError::Refused { status: status.as_u16(), body: rest.to_vec() }),
    }
}
