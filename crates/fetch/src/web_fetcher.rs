//! [`WebFetcher`]: asks real servers. One visit is one request; a redirect is an answer like any
//! other, and its target passes the guard as a visit of its own.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use telusur_model::{
    Clock, FetchOutcome, Fetched, HttpVersion, NetworkSign, PageUrl, Reason, Retry,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use crate::budget::BodyBudget;
use crate::conditions::Conditions;
use crate::connection::Connection;
use crate::connector::{Connector, Road, Target};
use crate::exchange::{Exchange, Exchanged, FinishedExchange, Sending};
use crate::failure::Failure;
use crate::guard::CheckedAddress;
use crate::names::{NameLookup, Names, SystemLookup};
use crate::order::{Fetch, FetchOrder, ResolveFailure, Resolved};
use crate::pool::{Pool, PoolKey};
use crate::profile::FetchProfile;
use crate::resend::{Resend, SentOn};
use crate::retry_after::retry_after_ms;
use crate::settings::FetchSettings;
use crate::tasks::let_go_of_ended;
use crate::versions::Http1Hosts;

/// Asks real servers for pages.
pub struct WebFetcher {
    settings: FetchSettings,
    clock: Arc<dyn Clock>,
    names: Names,
    connector: Connector,
    pool: Arc<Pool>,
    http1_hosts: Http1Hosts,
    /// One for each connection that may be open.
    places: Arc<Semaphore>,
    /// Visits that wait for a place.
    waiting: AtomicUsize,
    budget: BodyBudget,
    /// Closes idle connections. The lock protects its start.
    sweeper: Mutex<JoinSet<()>>,
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
        let (http1_hosts, budget) = (Http1Hosts::default(), BodyBudget::default());
        let places = Arc::new(Semaphore::new(settings.connections_max.max(1)));
        Self {
            settings,
            clock,
            names,
            connector,
            pool,
            http1_hosts,
            places,
            waiting: AtomicUsize::new(0),
            budget,
            sweeper: Mutex::default(),
        }
    }

    async fn visit(
        &self,
        url: &PageUrl,
        profile: &FetchProfile,
        conditions: &Conditions,
        sending: &mut Sending,
    ) -> Result<FetchOutcome, Failure> {
        let mut deadline = Instant::now() + profile.timeout;
        let addresses = self.addresses(url, profile, deadline).await?;
        let (settings, clock) = (&self.settings, &*self.clock);
        let budget = &self.budget;
        let mut http = self.http1_hosts.version_for(url, profile.http);
        let mut may_reuse = true;
        // Ends: a fresh connection brings no second one, and HTTP/1.1 no other version.
        loop {
            let key = |address| PoolKey::new(url, profile, http, address);
            let kept = || addresses.iter().find_map(|&address| self.pool.take(&key(address)));
            let (mut connection, is_reused) = match may_reuse.then(kept).flatten() {
                Some(connection) => (connection, true),
                None => {
                    let road = self.road(profile, deadline).await?;
                    // The site has its whole time from when there is room to ask it.
                    let (asked_at, asked) = (Instant::now(), self.clock.now());
                    let place = self.place().await;
                    deadline += asked_at.elapsed();
                    sending.waited_ms += self.clock.now().ms_since(asked);
                    let target = Target { url, profile, http, addresses: &addresses };
                    (self.open(&target, &road, place?, deadline).await?, false)
                }
            };
            let exchange = Exchange { settings, clock, url, profile, conditions, budget, deadline };
            let sent_on = SentOn { is_reused, is_http2: connection.is_http2(), http };
            let exchanged = exchange.run(&mut connection, sent_on, sending).await;
            let key = key(connection.address());
            match exchanged {
                Exchanged::Answered(answer) => return Ok(self.finish(key, connection, answer)),
                Exchanged::Failed(failure) => {
                    self.forget(&key, &connection);
                    return Err(failure);
                }
                Exchanged::Again(resend) => {
                    self.forget(&key, &connection);
                    may_reuse = false;
                    if resend == Resend::OverHttp1 {
                        self.http1_hosts.add(url);
                        http = HttpVersion::One;
                    }
                }
            }
        }
    }

    /// A connection of this visit's own; other visits may share it if it speaks HTTP/2.
    async fn open(
        &self,
        target: &Target<'_>,
        road: &Road<'_>,
        place: OwnedSemaphorePermit,
        deadline: Instant,
    ) -> Result<Connection, Failure> {
        let connection = self.connector.open(target, road, place, deadline).await?;
        if let Connection::Http2(visit) = &connection {
            let Target { url, profile, http, .. } = *target;
            self.pool.share(PoolKey::new(url, profile, http, connection.address()), visit);
            self.start_sweeper();
        }
        Ok(connection)
    }

    /// A place for one more connection. An idle connection is closed to make room; else the
    /// visit waits for another to end. That there is no room here is never the fault of the site.
    async fn place(&self) -> Result<OwnedSemaphorePermit, Failure> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(place);
        }
        // Counted before the look into the pool: a visit that returns a connection afterwards sees it.
        let _waiting = Waiting::count(&self.waiting);
        while self.places.available_permits() == 0 && self.pool.close_oldest() {}
        match timeout(self.settings.room_time_max, Arc::clone(&self.places).acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => {
                let max = self.settings.connections_max;
                Err(Failure::local(format!("all {max} connections that may be open are in use")))
            }
        }
    }

    /// The addresses of a URL's host that the guard lets through.
    async fn addresses(
        &self,
        url: &PageUrl,
        profile: &FetchProfile,
        deadline: Instant,
    ) -> Result<Vec<CheckedAddress>, Failure> {
        let (host, port) = (url.host_str(), url.port());
        profile.guard.check_name(host, port)?;
        let found = self.look_up(host, deadline).await?;
        let (mut checked, mut refusal) = (Vec::with_capacity(found.len()), None);
        for &address in &*found {
            let address = SocketAddr::new(address, port);
            let passed = self.settings.own_addresses.check(address);
            match passed.and_then(|()| profile.guard.check(host, address)) {
                Ok(address) => checked.push(address),
                Err(refused) => refusal = Some(refused),
            }
        }
        // A proxy that is told the name may pick any of its addresses.
        let needs_all = profile.proxy.as_ref().is_some_and(|proxy| proxy.reads(url));
        match refusal {
            Some(refused) if checked.is_empty() || needs_all => Err(refused),
            _ => Ok(checked),
        }
    }

    /// How this crawl's targets are reached.
    async fn road<'a>(
        &self,
        profile: &'a FetchProfile,
        deadline: Instant,
    ) -> Result<Road<'a>, Failure> {
        let Some(proxy) = profile.proxy.as_deref() else { return Ok(Road::Direct) };
        let found = self.look_up(proxy.host(), deadline).await.map_err(Failure::of_proxy)?;
        let doors = found.iter().map(|&address| proxy.check(address)).collect::<Result<_, _>>()?;
        Ok(Road::Proxy { proxy, doors })
    }

    /// The addresses of a host as it stands in a URL: a name, or an address already.
    async fn look_up(&self, host: &str, deadline: Instant) -> Result<Arc<[IpAddr]>, Failure> {
        if let Ok(literal) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            return Ok([literal].into());
        }
        timeout_at(deadline, self.names.addresses(host))
            .await
            .map_err(|_| Failure::later(Reason::DnsError, format!("timeout: look up {host}")))?
    }

    fn finish(
        &self,
        key: PoolKey,
        connection: Connection,
        answer: FinishedExchange,
    ) -> FetchOutcome {
        if answer.is_connection_clean {
            self.pool.put(key, connection);
            self.start_sweeper();
            if self.waiting.load(Ordering::SeqCst) > 0 {
                self.pool.close_oldest();
            }
        } else {
            self.forget(&key, &connection);
        }
        answer.outcome
    }

    /// A connection that failed one visit is not for others either.
    fn forget(&self, key: &PoolKey, connection: &Connection) {
        if let Connection::Http2(visit) = connection {
            self.pool.forget(key, visit);
        }
    }

    fn start_sweeper(&self) {
        let mut sweeper = self.sweeper.lock().unwrap_or_else(PoisonError::into_inner);
        let_go_of_ended(&mut sweeper);
        if sweeper.is_empty() {
            sweeper.spawn(sweep(Arc::downgrade(&self.pool)));
        }
    }
}

/// Counts a visit for as long as it waits.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn count(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::SeqCst);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
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
        let on_request = order.on_request;
        let mut sending = Sending { on_request, requested_at: None, address: None, waited_ms: 0 };
        let conditions = Conditions::new(&order.if_changed, self.clock.wall());
        let outcome = self.visit(&order.url, &order.profile, &conditions, &mut sending).await;
        let network = outcome.as_ref().map_or_else(|failed| failed.network, |_| NetworkSign::Alive);
        let outcome = outcome.unwrap_or_else(FetchOutcome::from);
        let retry_after_ms = match &outcome {
            FetchOutcome::Page(page) => retry_after_ms(page, self.clock.wall()),
            _ => None,
        };
        Fetched {
            outcome,
            requested_at: sending.requested_at,
            took_ms: self.clock.now().ms_since(started_at).saturating_sub(sending.waited_ms),
            address: sending.address,
            retry_after_ms,
            network,
        }
    }

    async fn resolve(&self, url: &PageUrl, profile: &FetchProfile) -> Resolved {
        let deadline = Instant::now() + profile.timeout;
        match self.addresses(url, profile, deadline).await {
            Ok(addresses) => Ok(addresses.into_iter().map(CheckedAddress::ip).collect()),
            Err(Failure { why, detail, retry, wants_http1: _, network: _ }) => {
                Err(ResolveFailure { why, detail, may_pass: retry != Retry::Never })
            }
        }
    }
}
