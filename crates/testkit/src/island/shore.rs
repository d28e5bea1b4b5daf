//! [`Shore`]: takes every connection on the island. Those to public addresses are served;
//! the others are recorded.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::lures::{Lures, is_public};
use super::name_server::answer_names;
use crate::clock::TokioClock;
use crate::request_log::RequestLog;
use crate::server::Responder;

/// Where something usually listens that a crawler has no business with, and the web itself. A
/// connection to any other port shows in the kernel's count.
const PORTS: &[u16] = &[22, 25, 80, 443, 2375, 3306, 5432, 6379, 8000, 8080, 8443, 9200, 10250];

/// Listens on all addresses until it is dropped.
pub(super) struct Shore {
    seen: Arc<Seen>,
    pub(super) log: Arc<RequestLog>,
    /// Dropping it ends all tasks.
    _tasks: JoinSet<()>,
}

/// The locks are held to add or copy one entry.
#[derive(Default)]
struct Seen {
    /// Connections to addresses of the lures' web.
    served: Mutex<u64>,
    /// All others.
    intruders: Mutex<BTreeMap<SocketAddr, u64>>,
}

impl Shore {
    pub(super) async fn watch(lures: Arc<Lures>) -> io::Result<Self> {
        let log = Arc::new(RequestLog::new(Arc::new(TokioClock::new())));
        let responder = Responder::new(lures, Some(Arc::clone(&log)));
        let seen = Arc::new(Seen::default());
        let mut tasks = JoinSet::new();
        for &port in PORTS {
            let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await?;
            tasks.spawn(receive(listener, responder.clone(), Arc::clone(&seen)));
        }
        tasks.spawn(async {
            // Without names there are no visitors, and the proof fails for want of them.
            let _ = answer_names().await;
        });
        Ok(Self { seen, log, _tasks: tasks })
    }

    /// Connections to addresses that are not public.
    pub(super) fn intruders(&self) -> BTreeMap<SocketAddr, u64> {
        lock(&self.seen.intruders).clone()
    }

    /// Connections to public addresses.
    pub(super) fn served(&self) -> u64 {
        *lock(&self.seen.served)
    }

    /// Connections that were tried, by the kernel's count, and that did not come to a public address.
    pub(super) fn tried_elsewhere(&self) -> Result<i64, String> {
        let tried = i64::try_from(connections_tried()?).map_err(|error| error.to_string())?;
        let served = i64::try_from(self.served()).map_err(|error| error.to_string())?;
        Ok(tried - served)
    }
}

async fn receive(listener: TcpListener, responder: Responder, seen: Arc<Seen>) {
    let mut visitors = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let Ok(address) = stream.local_addr() else { continue };
        if !is_public(address.ip()) {
            let address = SocketAddr::new(address.ip().to_canonical(), address.port());
            *lock(&seen.intruders).entry(address).or_default() += 1;
            continue;
        }
        *lock(&seen.served) += 1;
        let responder = responder.clone();
        visitors.spawn(async move {
            // A visitor that goes away in the middle is its own affair.
            let _ = responder.talk(stream).await;
        });
        while visitors.try_join_next().is_some() {}
    }
}

/// How many TCP connections were opened from within this network, also those that failed.
fn connections_tried() -> Result<u64, String> {
    let counters = std::fs::read_to_string("/proc/net/snmp").map_err(|error| error.to_string())?;
    let mut lines = counters.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
        return Err("/proc/net/snmp has no line for TCP".to_owned());
    };
    let mut columns = names.split(' ').zip(values.split(' '));
    let tried = columns.find(|(name, _)| *name == "ActiveOpens").map(|(_, value)| value);
    tried.and_then(|tried| tried.parse().ok()).ok_or_else(|| "no ActiveOpens".to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
