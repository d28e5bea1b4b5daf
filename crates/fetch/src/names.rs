//! [`Names`]: from a host name to its addresses, with a cache of our own. However many visits wait for
//! a name, one lookup of it is under way. Knows nothing of which addresses may be asked: that is the
//! guard's part.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hickory_resolver::config::{LookupIpStrategy, ResolveHosts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{IntoName, Name};
use hickory_resolver::{Resolver, ResolverBuilder, TokioResolver};
use telusur_model::{Clock, Moment, NetworkSign, Reason};
use tokio::sync::OnceCell;

use crate::failure::{Failure, is_local_trouble};

/// Looks names up: the system's resolver, or a test's prepared answers.
#[async_trait]
pub trait NameLookup: Send + Sync {
    /// The addresses of a name.
    async fn lookup(&self, name: &str) -> Result<NameAnswer, NameFailure>;
}

/// The addresses of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameAnswer {
    /// In the order in which they are to be tried.
    pub addresses: Vec<IpAddr>,
    /// How long the answer is said to be good.
    pub ttl: Duration,
}

/// Why a name has no addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameFailure {
    /// One stable word: `nxdomain`, `servfail`, `timeout` …
    pub cause: &'static str,
    /// Whether this machine is to blame.
    pub is_local: bool,
}

/// Shortest and longest that an answer is believed. A TTL of 0 must not cost a query per request,
/// and one of 68 years must not outlive a move.
const TTL_MIN: Duration = Duration::from_secs(5);
const TTL_MAX: Duration = Duration::from_secs(3600);

pub(crate) struct Names {
    lookup: Arc<dyn NameLookup>,
    clock: Arc<dyn Clock>,
    time_max: Duration,
    names_max: usize,
    /// Guards the cache for the length of a map operation; never held while waiting.
    cache: Mutex<HashMap<String, Arc<Lookup>>>,
}

/// One lookup, under way or done. The first visit carries it out, and if that visit is given up
/// meanwhile, the next one does.
type Lookup = OnceCell<Remembered>;

#[derive(Clone)]
struct Remembered {
    until: Moment,
    answer: Result<Arc<[IpAddr]>, Failure>,
}

impl Names {
    pub(crate) fn new(
        lookup: Arc<dyn NameLookup>,
        clock: Arc<dyn Clock>,
        time_max: Duration,
        names_max: usize,
    ) -> Self {
        Self { lookup, clock, time_max, names_max, cache: Mutex::default() }
    }

    /// The addresses of a name, in the order in which they are to be tried.
    pub(crate) async fn addresses(&self, name: &str) -> Result<Arc<[IpAddr]>, Failure> {
        let lookup = self.current_lookup(name);
        lookup.get_or_init(|| self.look_up(name)).await.answer.clone()
    }

    async fn look_up(&self, name: &str) -> Remembered {
        let looked_up = tokio::time::timeout(self.time_max, self.lookup.lookup(name)).await;
        let looked_up = looked_up.unwrap_or(Err(NameFailure { cause: "timeout", is_local: false }));
        let (answer, ttl) = match looked_up {
            Ok(NameAnswer { addresses, ttl }) if !addresses.is_empty() => {
                (Ok(families_in_turn(&addresses)), ttl.clamp(TTL_MIN, TTL_MAX))
            }
            Ok(_) => (Err(dns_error(name, "no_address")), TTL_MIN),
            // Our own shortage says nothing about the name: only those who wait now hear of it.
            Err(NameFailure { cause, is_local: true }) => {
                (Err(Failure::local(format!("look up {name}: {cause}"))), Duration::ZERO)
            }
            Err(NameFailure { cause, .. }) => (Err(dns_error(name, cause)), TTL_MIN),
        };
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        Remembered { until: self.clock.now().plus_ms(ttl_ms), answer }
    }

    /// The lookup whose answer still holds or that is under way; else a new one.
    fn current_lookup(&self, name: &str) -> Arc<Lookup> {
        let now = self.clock.now();
        let is_current =
            |lookup: &Lookup| lookup.get().is_none_or(|remembered| now < remembered.until);
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lookup) = cache.get(name)
            && is_current(lookup)
        {
            return Arc::clone(lookup);
        }
        if cache.len() >= self.names_max {
            cache.retain(|_, lookup| is_current(lookup));
        }
        if cache.len() >= self.names_max {
            // Nothing has expired. Forgetting all costs lookups, growing would cost the process.
            cache.clear();
        }
        let lookup = Arc::new(Lookup::new());
        cache.insert(name.to_owned(), Arc::clone(&lookup));
        lookup
    }
}

/// Every failure may pass: a name that does not exist today may be our resolver's mistake, and a
/// host must not be dead for ever because our own DNS was down for a minute.
fn dns_error(name: &str, cause: &str) -> Failure {
    let network = match cause {
        // Some resolver has looked it up.
        "nxdomain" | "no_address" => NetworkSign::Alive,
        "unreachable" => NetworkSign::Down,
        // A resolver on this machine says servfail when it has no network, another one when the name's
        // own servers are down.
        _ => NetworkSign::Unknown,
    };
    Failure::later(Reason::DnsError, format!("{cause}: look up {name}")).showing(network)
}

/// IPv4 and IPv6 in turn: only a few addresses are tried, and a machine that lacks one of the two
/// must come to the other among them.
fn families_in_turn(addresses: &[IpAddr]) -> Arc<[IpAddr]> {
    let mut v4 = addresses.iter().filter(|address| address.is_ipv4());
    let mut v6 = addresses.iter().filter(|address| address.is_ipv6());
    let mut in_turn = Vec::with_capacity(addresses.len());
    while in_turn.len() < addresses.len() {
        in_turn.extend(v4.next());
        in_turn.extend(v6.next());
    }
    in_turn.into()
}

/// The resolver that the system is configured with, including its hosts file.
pub(crate) struct SystemLookup {
    resolver: TokioResolver,
}

impl SystemLookup {
    pub(crate) fn new() -> Result<Self, NetError> {
        Self::build(Resolver::builder_tokio()?)
    }

    fn build(mut builder: ResolverBuilder<TokioRuntimeProvider>) -> Result<Self, NetError> {
        let options = builder.options_mut();
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.use_hosts_file = ResolveHosts::Always;
        // Two tries fit into the limit of 5 s that is kept around the whole lookup.
        options.timeout = Duration::from_secs(2);
        options.attempts = 2;
        // The cache is ours: it clamps, and it runs on our clock.
        options.cache_size = 0;
        // Hundreds of visits may start at once; the default of 32 would fail them as "busy".
        options.max_active_requests = 4096;
        Ok(Self { resolver: builder.build()? })
    }
}

#[async_trait]
impl NameLookup for SystemLookup {
    async fn lookup(&self, name: &str) -> Result<NameAnswer, NameFailure> {
        let full =
            full_name(name).map_err(|_| NameFailure { cause: "bad_name", is_local: false })?;
        let found = self.resolver.lookup_ip(full).await.map_err(|error| name_failure(&error))?;
        let ttl = found.valid_until().saturating_duration_since(std::time::Instant::now());
        Ok(NameAnswer { addresses: found.iter().collect(), ttl })
    }
}

/// A name with a dot is complete. Otherwise a link to `evil.example` could be answered by
/// `evil.example.corp.internal` through the search list; short names still use that list.
fn full_name(name: &str) -> Result<Name, NetError> {
    let mut full = name.into_name()?;
    full.set_fqdn(name.contains('.'));
    Ok(full)
}

fn name_failure(error: &NetError) -> NameFailure {
    let is_local = match error {
        NetError::Io(error) => is_local_trouble(error),
        NetError::Busy => true,
        _ => false,
    };
    let cause = match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => code_word(none.response_code),
        NetError::Dns(DnsError::ResponseCode(code)) => code_word(*code),
        NetError::Timeout => "timeout",
        NetError::Io(_) | NetError::NoConnections => "unreachable",
        NetError::Busy => "busy",
        NetError::Proto(_) => "garbage",
        _ => "failed",
    };
    NameFailure { cause, is_local }
}

fn code_word(code: ResponseCode) -> &'static str {
    match code {
        ResponseCode::NoError => "no_address",
        ResponseCode::NXDomain => "nxdomain",
        ResponseCode::ServFail => "servfail",
        ResponseCode::Refused => "refused",
        _ => "failed",
    }
}

#[cfg(test)]
mod name_server_tests;
#[cfg(test)]
mod tests;
