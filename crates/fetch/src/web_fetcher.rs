//! [`WebFetcher`]: asks real servers. One visit is one request; a redirect is an answer like any
//! other, and whoever follows it comes through the guard again.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Once, Weak};

use async_trait::async_trait;
use telusur_model::{Clock, FetchOutcome, Fetched, PageUrl, Reason, Retry};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::conditions::Conditions;
use crate::connection::Connection;
use crate::connector::Connector;
use crate::exchange::{Answer, Exchange, Sending};
use crate::failure::Failure;
use crate::guard::CheckedAddress;
use crate::names::{NameLookup, Names, SystemLookup};
use crate::order::{Fetch, FetchOrder, ResolveFailure, Resolved};
use crate::pool::{Pool, PoolKey};
use crate::profile::FetchProfile;
use crate::retry_after::retry_after_ms;
use crate::settings::FetchSettings;

/// Asks real servers for pages.
pub struct WebFetcher {
    settings: FetchSettings,
    clock: Arc<dyn Clock>,
    names: Names,
    connector: Connector,
    pool: Arc<Pool>,
    sweeper: Once,
}

/// Why this machine cannot fetch at all.
#[derive(Debug, thiserror::Error)]
pub enum FetcherError {
    /// The system's name lookup is not configured.
    #[error("read the system's name server configuration: {0}")]
    Names(String),
}

impl WebFetcher {
    /// A fetcher that looks names up as the system does.
    pub fn new(settings: FetchSettings, clock: Arc<dyn Clock>) -> Result<Self, FetcherError> {
        let lookup = SystemLookup::new().map_err(|error| FetcherError::Names(error.to_string()))?;
        Ok(Self::with_lookup(settings, clock, Arc::new(lookup)))
    }

    /// A fetcher with another way to look names up.
    pub fn with_lookup(
        settings: FetchSettings,
        clock: Arc<dyn Clock>,
        lookup: Arc<dyn NameLookup>,
    ) -> Self {
        let names =
            Names::new(lookup, Arc::clone(&clock), settings.dns_time_max, settings.names_max);
        let connector = Connector::new(&settings);
        let pool = Arc::new(Pool::new(&settings));
        Self { settings, clock, names, connector, pool, sweeper: Once::new() }
    }

    async fn visit(
        &self,
        url: &PageUrl,
        profile: &FetchProfile,
        conditions: &Conditions,
        sending: &mut Sending,
    ) -> Result<FetchOutcome, Failure> {
        let deadline = Instant::now() + profile.timeout;
        let addresses = self.addresses(url, profile, deadline).await?;
        let (settings, clock) = (&self.settings, &*self.clock);
        let exchange = Exchange { settings, clock, url, profile, conditions, deadline };
        if let Some(mut connection) = self.pooled(url, &addresses) {
            let answer = exchange.run(&mut connection, sending).await;
            if !answer.as_ref().is_err_and(|failure| is_stale(failure, &connection)) {
                return self.finish(url, connection, answer);
            }
        }
        let mut connection = self.connector.open(url, &addresses, deadline).await?;
        let answer = exchange.run(&mut connection, sending).await;
        self.finish(url, connection, answer)
    }

    /// The addresses of a URL's host that the guard lets through.
    async fn addresses(
        &self,
        url: &PageUrl,
        profile: &FetchProfile,
        deadline: Instant,
    ) -> Result<Vec<CheckedAddress>, Failure> {
        let (host, port) = (url.host_str(), url.port());
        let check = |address: IpAddr| profile.guard.check(host, SocketAddr::new(address, port));
        profile.guard.check_name(host, port)?;
        let name = match url.as_url().host() {
            Some(url::Host::Ipv4(literal)) => return Ok(vec![check(literal.into())?]),
            Some(url::Host::Ipv6(literal)) => return Ok(vec![check(literal.into())?]),
            Some(url::Host::Domain(_)) | None => host,
        };
        let found = timeout_at(deadline, self.names.addresses(name))
            .await
            .map_err(|_| Failure::later(Reason::DnsError, format!("timeout: look up {name}")))??;
        let (mut checked, mut refusal) = (Vec::with_capacity(found.len()), None);
        for &address in &*found {
            match check(address) {
                Ok(address) => checked.push(address),
                Err(refused) => refusal = Some(refused),
            }
        }
        match refusal {
            Some(refused) if checked.is_empty() => Err(refused),
            _ => Ok(checked),
        }
    }

    fn pooled(&self, url: &PageUrl, addresses: &[CheckedAddress]) -> Option<Connection> {
        addresses.iter().find_map(|&address| self.pool.take(&PoolKey::new(url, address)))
    }

    fn finish(
        &self,
        url: &PageUrl,
        connection: Connection,
        answer: Result<Answer, Failure>,
    ) -> Result<FetchOutcome, Failure> {
        let answer = answer?;
        if answer.is_connection_clean {
            self.pool.put(PoolKey::new(url, connection.address()), connection);
            self.sweeper.call_once(|| {
                tokio::spawn(sweep(Arc::downgrade(&self.pool)));
            });
        }
        Ok(answer.outcome)
    }
}

/// Whether a kept connection turned out to be closed by the server. That is the server's right, not
/// a failure of the site: the request goes out again, once, on a connection of its own.
fn is_stale(failure: &Failure, connection: &Connection) -> bool {
    connection.received() == 0
        && matches!(failure.why, Reason::EmptyReply | Reason::ConnectionReset)
}

/// Closes unused connections in time, for as long as the pool lives.
async fn sweep(pool: Weak<Pool>) {
    while let Some(next_look) = pool.upgrade().map(|pool| pool.sweep()) {
        sleep_until(next_look).await;
    }
}

#[async_trait]
impl Fetch for WebFetcher {
    async fn fetch(&self, order: FetchOrder) -> Fetched {
        let started_at = self.clock.now();
        let mut sending =
            Sending { on_request: order.on_request, requested_at: None, address: None };
        let conditions = Conditions::new(&order.if_changed, self.clock.wall());
        let outcome = self.visit(&order.url, &order.profile, &conditions, &mut sending).await;
        let outcome = outcome.unwrap_or_else(FetchOutcome::from);
        let retry_after_ms = match &outcome {
            FetchOutcome::Page(page) => retry_after_ms(page, self.clock.wall()),
            _ => None,
        };
        Fetched {
            outcome,
            requested_at: sending.requested_at,
            took_ms: self.clock.now().ms_since(started_at),
            address: sending.address,
            retry_after_ms,
        }
    }

    async fn resolve(&self, url: &PageUrl, profile: &FetchProfile) -> Resolved {
        let deadline = Instant::now() + profile.timeout;
        match self.addresses(url, profile, deadline).await {
            Ok(addresses) => Ok(addresses.into_iter().map(CheckedAddress::ip).collect()),
            Err(Failure { why, detail, retry }) => {
                Err(ResolveFailure { why, detail, may_pass: retry != Retry::Never })
            }
        }
    }
}
