//! [`Connector`]: from checked addresses to a connection that speaks HTTP, in clear or through TLS.

use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http1;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::Verifier;
use telusur_model::{PageUrl, Reason};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use crate::connection::Connection;
use crate::dial::dial;
use crate::failure::Failure;
use crate::guard::CheckedAddress;
use crate::settings::FetchSettings;
use crate::wire::Wire;

pub(crate) struct Connector {
    /// Or why this machine cannot speak TLS. Pages in clear can still be asked for.
    tls: Result<TlsConnector, rustls::Error>,
    http: http1::Builder,
    connect_time_max: Duration,
    tls_time_max: Duration,
    addresses_max: usize,
}

impl Connector {
    pub(crate) fn new(settings: &FetchSettings) -> Self {
        /// hyper refuses a smaller buffer.
        const BUFFER_BYTES_MIN: usize = 8192;
        let mut http = http1::Builder::new();
        http.max_headers(settings.headers_max)
            .max_header_size(settings.head_bytes_max)
            .max_buf_size(settings.head_bytes_max.max(BUFFER_BYTES_MIN));
        Self {
            tls: tls_connector(settings),
            http,
            connect_time_max: settings.connect_time_max,
            tls_time_max: settings.tls_time_max,
            addresses_max: settings.addresses_max,
        }
    }

    /// Opens a connection to the first of a host's addresses that takes one.
    pub(crate) async fn open(
        &self,
        url: &PageUrl,
        addresses: &[CheckedAddress],
        deadline: Instant,
    ) -> Result<Connection, Failure> {
        let (stream, address) = self.connect(addresses, deadline).await?;
        let wire = match url.as_url().scheme() {
            "https" => Wire::secure(self.secure(stream, url, deadline).await?),
            _ => Wire::clear(stream),
        };
        Connection::new(&self.http, wire, address).await
    }

    async fn connect(
        &self,
        addresses: &[CheckedAddress],
        deadline: Instant,
    ) -> Result<(TcpStream, CheckedAddress), Failure> {
        let deadline = deadline.min(Instant::now() + self.connect_time_max);
        let tried_max = addresses.len().min(self.addresses_max);
        let mut failure = Failure::later(Reason::Refused, "the host has no address");
        for (tried, &address) in addresses.iter().take(tried_max).enumerate() {
            // The time is shared out, so that a silent first address leaves some to the second.
            let now = Instant::now();
            let left = u32::try_from(tried_max - tried).unwrap_or(1);
            let share = deadline.saturating_duration_since(now) / left;
            match timeout_at(now + share, dial(address)).await {
                Ok(Ok(stream)) => return Ok((stream, address)),
                Ok(Err(error)) => failure = Failure::connecting(&error, address.ip()),
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
        deadline: Instant,
    ) -> Result<tokio_rustls::client::TlsStream<TcpStream>, Failure> {
        let tls = self.tls.as_ref().map_err(|error| {
            let detail = format!(
                "setup: {error}; install the system's CA certificates (package ca-certificates)"
            );
            Failure::never(Reason::TlsError, detail)
        })?;
        let name = server_name(url)?;
        let deadline = deadline.min(Instant::now() + self.tls_time_max);
        match timeout_at(deadline, tls.connect(name, stream)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(Failure::tls(&error)),
            Err(_) => {
                Err(Failure::later(Reason::TimeoutConnect, "the TLS handshake did not end in time"))
            }
        }
    }
}

fn tls_connector(settings: &FetchSettings) -> Result<TlsConnector, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let roots = settings.extra_roots.iter().cloned();
    let verifier = Verifier::new_with_extra_roots(roots, Arc::clone(&provider))?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn server_name(url: &PageUrl) -> Result<ServerName<'static>, Failure> {
    let host = url.host_str().trim_start_matches('[').trim_end_matches([']', '.']);
    ServerName::try_from(host.to_owned())
        .map_err(|error| Failure::never(Reason::TlsError, format!("name: {host}: {error}")))
}
