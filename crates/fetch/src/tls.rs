//! [`Tls`]: how connections are made secure. Certificates are verified, but for the hosts that the
//! operator named; sessions are never resumed across that line.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_platform_verifier::Verifier;
use telusur_model::{HttpVersion, PageUrl, Reason};
use tokio_rustls::TlsConnector;

use crate::failure::Failure;
use crate::settings::FetchSettings;

pub(crate) struct Tls {
    /// Or why this machine cannot verify anybody. Pages in clear can still be asked for.
    verified: Result<Offers, rustls::Error>,
    unverified: Result<Offers, rustls::Error>,
}

/// One way to judge certificates, with each choice of HTTP versions to offer.
struct Offers {
    both: TlsConnector,
    http1: TlsConnector,
    http2: TlsConnector,
}

impl Tls {
    pub(crate) fn new(settings: &FetchSettings) -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let roots = settings.extra_roots.iter().cloned();
        let verified = Verifier::new_with_extra_roots(roots, Arc::clone(&provider))
            .and_then(|verifier| Offers::new(Arc::clone(&provider), Arc::new(verifier)));
        let anybody = Arc::new(Anybody(Arc::clone(&provider)));
        Self { verified, unverified: Offers::new(provider, anybody) }
    }

    /// The connector that verifies, or does not, and offers these versions of HTTP.
    pub(crate) fn connector(
        &self,
        is_verified: bool,
        http: HttpVersion,
    ) -> Result<&TlsConnector, Failure> {
        let offers = if is_verified { &self.verified } else { &self.unverified };
        let offers = offers.as_ref().map_err(|error| {
            let detail = format!(
                "setup: {error}; install the system's CA certificates (package ca-certificates)"
            );
            Failure::never(Reason::TlsError, detail)
        })?;
        Ok(match http {
            HttpVersion::Auto => &offers.both,
            HttpVersion::One => &offers.http1,
            HttpVersion::Two => &offers.http2,
        })
    }
}

impl Offers {
    fn new(
        provider: Arc<CryptoProvider>,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Result<Self, rustls::Error> {
        const HTTP1: &[u8] = b"http/1.1";
        const HTTP2: &[u8] = b"h2";
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        // The copies share their remembered sessions, all of which were judged by this verifier.
        let offering = |versions: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = versions.iter().map(|version| version.to_vec()).collect();
            TlsConnector::from(Arc::new(config))
        };
        Ok(Self {
            both: offering(&[HTTP2, HTTP1]),
            http1: offering(&[HTTP1]),
            http2: offering(&[HTTP2]),
        })
    }
}

/// The name that a server's certificate has to have.
pub(crate) fn server_name(url: &PageUrl) -> Result<ServerName<'static>, Failure> {
    let host = url.host_str().trim_start_matches('[').trim_end_matches([']', '.']);
    ServerName::try_from(host.to_owned())
        .map_err(|error| Failure::never(Reason::TlsError, format!("name: {host}: {error}")))
}

/// Takes every certificate, with any name and any signer. That the server holds the key of
/// the certificate is still checked: a mistake there is a broken server, not an unknown one.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_certificates_are_not_taken() {
        // T10: what is never unpacked cannot be a bomb.
        let tls = Tls::new(&FetchSettings::default());
        for is_verified in [true, false] {
            for http in [HttpVersion::Auto, HttpVersion::One, HttpVersion::Two] {
                let connector = tls.connector(is_verified, http).unwrap();
                assert!(connector.config().cert_decompressors.is_empty());
            }
        }
    }

    #[test]
    fn every_connector_offers_what_its_crawl_allows() {
        let tls = Tls::new(&FetchSettings::default());
        let offered = |http| tls.connector(true, http).unwrap().config().alpn_protocols.clone();
        assert_eq!(offered(HttpVersion::Auto), [b"h2".to_vec(), b"http/1.1".to_vec()]);
        assert_eq!(offered(HttpVersion::One), [b"http/1.1".to_vec()]);
        assert_eq!(offered(HttpVersion::Two), [b"h2".to_vec()]);
    }
}
