//! Certificates for servers of tests, and fetchers that trust them.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use telusur_fetch::FetchSettings;
use telusur_model::FetchRules;

use crate::bench::Bench;

/// An authority that signs certificates.
pub(crate) struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn trusted() -> Self {
        Self::named("an authority that is trusted")
    }

    pub(crate) fn named(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn bench(&self) -> Bench {
        self.bench_with(FetchSettings::default(), FetchRules::default())
    }

    /// A fetcher that trusts this authority and knows the name `secure.test`.
    pub(crate) fn bench_with(&self, settings: FetchSettings, rules: FetchRules) -> Bench {
        let extra_roots = vec![self.certificate.clone()];
        let bench = Bench::with(FetchSettings { extra_roots, ..settings }, rules);
        bench.names.add("secure.test", &["127.0.0.1"]);
        bench
    }

    pub(crate) fn sign(&self, params: &CertificateParams) -> ServerConfig {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        server_config(certificate, &key, rustls::ALL_VERSIONS)
    }

    /// A server that lets only those in who show a certificate of this authority.
    pub(crate) fn sign_for_known_clients(
        &self,
        params: &CertificateParams,
        version: &'static rustls::SupportedProtocolVersion,
    ) -> ServerConfig {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let clients = rustls::server::WebPkiClientVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::clone(&provider),
        );
        ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_client_cert_verifier(clients.build().unwrap())
            .with_single_cert(
                vec![certificate],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap()
    }
}

pub(crate) fn certificate_for(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).unwrap()
}

pub(crate) fn server_config(
    certificate: CertificateDer<'static>,
    key: &KeyPair,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> ServerConfig {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap()
}
