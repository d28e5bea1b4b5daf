//! [`Connector`]: from checked addresses to a connection that speaks HTTP, in clear or through TLS,
//! directly or through a proxy.

use hyper::client::conn::http1;
use telusur_model::{HttpVersion, PageUrl, Reason};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::client::TlsStream;

use crate::connection::{Connection, Http1, Http2};
use crate::dial::dial;
use crate::failure::Failure;
use crate::guard::CheckedAddress;
use crate::profile::FetchProfile;
use crate::proxy::Proxy;
use crate::settings::FetchSettings;
use crate::tls::{Tls, server_name};
use crate::wire::Wire;

pub(crate) struct Connector {
    tls: Tls,
    http1: http1::Builder,
    settings: FetchSettings,
}

/// What is to be reached.
pub(crate) struct Target<'a> {
    pub(crate) url: &'a PageUrl,
    pub(crate) profile: &'a FetchProfile,
    /// The versions of HTTP that will do.
    pub(crate) http: HttpVersion,
    pub(crate) addresses: &'a [CheckedAddress],
}

/// How a target is reached.
pub(crate) enum Road<'a> {
    Direct,
    /// By a proxy, at one of these addresses.
    Proxy {
        proxy: &'a Proxy,
        doors: Vec<CheckedAddress>,
    },
}

impl Connector {
    pub(crate) fn new(settings: &FetchSettings) -> Self {
        /// hyper refuses a smaller buffer.
        const BUFFER_BYTES_MIN: usize = 8192;
        let mut http1 = http1::Builder::new();
        http1
            .max_headers(settings.headers_max)
            .max_header_size(settings.head_bytes_max)
            .max_buf_size(settings.head_bytes_max.max(BUFFER_BYTES_MIN));
        Self { tls: Tls::new(settings), http1, settings: settings.clone() }
    }

    /// Opens a connection, in one of the allowed versions of HTTP, to the first of a host's addresses
    /// that takes one.
    pub(crate) async fn open(
        &self,
        target: &Target<'_>,
        road: &Road<'_>,
        place: OwnedSemaphorePermit,
        deadline: Instant,
    ) -> Result<Connection, Failure> {
        let &Target { url, profile, http, addresses } = target;
        let (stream, address) = self.connect(url, addresses, road, deadline).await?;
        if !url.is_secure() {
            return self.http1(Wire::clear(stream, place), address).await;
        }
        let stream = self.secure(stream, url, profile, http, deadline).await?;
        match (stream.get_ref().1.alpn_protocol(), http) {
            (Some(b"h2"), _) => self.http2(Wire::secure(stream, place), address, deadline).await,
            (_, HttpVersion::Two) => {
                Err(Failure::never(Reason::ProtocolError, "the server does not speak HTTP/2"))
            }
            _ => self.http1(Wire::secure(stream, place), address).await,
        }
    }

    async fn http1(&self, wire: Wire, address: CheckedAddress) -> Result<Connection, Failure> {
        let connection = Http1::new(&self.http1, wire, address).await?;
        Ok(Connection::Http1(Box::new(connection)))
    }

    async fn http2(
        &self,
        wire: Wire,
        address: CheckedAddress,
        deadline: Instant,
    ) -> Result<Connection, Failure> {
        // Our greeting is short, but a server that takes in nothing could hold it up.
        let greeted = timeout_at(deadline, Http2::new(&self.settings, wire, address)).await;
        let connection = greeted.map_err(|_| {
            Failure::later(Reason::TimeoutConnect, "the server did not take in our greeting")
        })??;
        let closed = || Failure::later(Reason::EmptyReply, "the connection was closed at once");
        connection.visit().map(Connection::Http2).ok_or_else(closed)
    }

    async fn connect(
        &self,
        url: &PageUrl,
        addresses: &[CheckedAddress],
        road: &Road<'_>,
        deadline: Instant,
    ) -> Result<(TcpStream, CheckedAddress), Failure> {
        let deadline = deadline.min(Instant::now() + self.settings.connect_time_max);
        let tried_max = addresses.len().min(self.settings.addresses_max);
        let mut failure = Failure::later(Reason::Refused, "the host has no address");
        for (tried, &address) in addresses.iter().take(tried_max).enumerate() {
            // The time is shared out, so that a silent first address leaves some to the second.
            let now = Instant::now();
            let left = u32::try_from(tried_max - tried).unwrap_or(1);
            let share = deadline.saturating_duration_since(now) / left;
            match timeout_at(now + share, reach(url, address, road)).await {
                Ok(Ok(stream)) => return Ok((stream, address)),
                Ok(Err(failed)) => failure = failed,
                Err(_) => {
                    let detail = format!("connect to {address}: no answer");
                    failure = Failure::later(Reason::TimeoutConnect, detail);
                }
            }
            // Out of file descriptors or ports, further tries only make it worse.
            if failure.why == Reason::LocalTrouble {
                break;
            }
        }
        Err(failure)
    }

    async fn secure(
        &self,
        stream: TcpStream,
        url: &PageUrl,
        profile: &FetchProfile,
        http: HttpVersion,
        deadline: Instant,
    ) -> Result<TlsStream<TcpStream>, Failure> {
        let tls = self.tls.connector(profile.is_verified(url), http)?;
        let name = server_name(url)?;
        let deadline = deadline.min(Instant::now() + self.settings.tls_time_max);
        match timeout_at(deadline, tls.connect(name, stream)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(Failure::tls(&error)),
            Err(_) => {
                Err(Failure::later(Reason::TimeoutConnect, "the TLS handshake did not end in time"))
            }
        }
    }
}

/// A stream on which one address of the target can be asked for the URL.
async fn reach(
    url: &PageUrl,
    target: CheckedAddress,
    road: &Road<'_>,
) -> Result<TcpStream, Failure> {
    let Road::Proxy { proxy, doors } = road else {
        return dial(target).await.map_err(|error| Failure::connecting(&error, target.ip()));
    };
    let mut failure = Failure::later(Reason::ProxyError, "the proxy has no address");
    for &door in doors {
        match dial(door).await {
            Ok(mut stream) => {
                if !proxy.reads(url) {
                    proxy.tunnel(&mut stream, target).await?;
                }
                return Ok(stream);
            }
            Err(error) => failure = Failure::connecting(&error, door.ip()).of_proxy(),
        }
    }
    Err(failure)
}
