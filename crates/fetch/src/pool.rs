//! [`Pool`]: connections kept open between visits, or shared by them. Bounded in number and in time,
//! for each host and in total; never hands out an HTTP/1.1 connection with an unread byte.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use telusur_model::{Host, HttpVersion, PageUrl};
use tokio::time::Instant;

use crate::connection::{Connection, Http1, Http2, Http2Visit};
use crate::guard::CheckedAddress;
use crate::profile::FetchProfile;
use crate::proxy::Proxy;
use crate::settings::FetchSettings;

/// Which requests may share a connection. The address (with its port) is part of it: a crawl whose
/// guard does not let an address through never gets a connection that another crawl opened to it. So
/// is everything else about how a crawl wants its connections to be made.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PoolKey {
    is_secure: bool,
    host: Host,
    address: CheckedAddress,
    is_verified: bool,
    http: HttpVersion,
    proxy: Option<Arc<Proxy>>,
}

impl PoolKey {
    /// The key of connections in this version of HTTP.
    pub(crate) fn new(
        url: &PageUrl,
        profile: &FetchProfile,
        http: HttpVersion,
        address: CheckedAddress,
    ) -> Self {
        Self {
            is_secure: url.is_secure(),
            host: url.host(),
            address,
            is_verified: profile.is_verified(url),
            http,
            proxy: profile.proxy.clone(),
        }
    }
}

/// A connection between visits, or one that visits share.
enum Kept {
    Http1(Box<Http1>),
    Http2(Arc<Http2>),
}

pub(crate) struct Pool {
    idle_time_max: Duration,
    /// Guards the idle connections for the length of a map operation; never held while waiting.
    idle: Mutex<IdleConnections<PoolKey, Kept>>,
}

impl Pool {
    pub(crate) fn new(settings: &FetchSettings) -> Self {
        let idle = IdleConnections::new(
            settings.idle_connections_max,
            settings.idle_connections_per_host_max,
        );
        Self { idle_time_max: settings.idle_connection_time_max, idle: Mutex::new(idle) }
    }

    /// A connection that is good for another request.
    pub(crate) fn take(&self, key: &PoolKey) -> Option<Connection> {
        loop {
            match self.with_idle(|idle| idle.take(key))? {
                Kept::Http1(mut connection) => {
                    if connection.is_reusable() {
                        return Some(Connection::Http1(connection));
                    }
                }
                Kept::Http2(shared) => {
                    if let Some(visit) = shared.visit() {
                        // It stays for others, and was of use just now.
                        self.keep(key.clone(), Kept::Http2(shared));
                        return Some(Connection::Http2(visit));
                    }
                }
            }
        }
    }

    /// Keeps a connection for later, if it is good for anything.
    pub(crate) fn put(&self, key: PoolKey, connection: Connection) {
        match connection {
            Connection::Http1(mut connection) => {
                if connection.is_reusable() {
                    self.keep(key, Kept::Http1(connection));
                }
            }
            Connection::Http2(visit) => self.share(key, &visit),
        }
    }

    /// Lets other visits use a connection too. One is enough: an older one ends with its visits.
    pub(crate) fn share(&self, key: PoolKey, visit: &Http2Visit) {
        self.forget_shared(&key, |_| true);
        self.keep(key, Kept::Http2(Arc::clone(visit.shared())));
    }

    /// Takes a connection away from other visits, because it failed one.
    pub(crate) fn forget(&self, key: &PoolKey, visit: &Http2Visit) {
        self.forget_shared(key, |shared| Arc::ptr_eq(shared, visit.shared()));
    }

    fn forget_shared(&self, key: &PoolKey, is_meant: impl Fn(&Arc<Http2>) -> bool) {
        let forgotten = self.with_idle(|idle| {
            idle.take_first(key, |kept| matches!(kept, Kept::Http2(shared) if is_meant(shared)))
        });
        drop(forgotten);
    }

    /// Closes the connection that has been kept longest; `false` if none is. One that visits share is
    /// closed by the last of them.
    pub(crate) fn close_oldest(&self) -> bool {
        let oldest = self.with_idle(|idle| idle.take_oldest());
        oldest.is_some()
    }

    fn keep(&self, key: PoolKey, kept: Kept) {
        let surplus = self.with_idle(|idle| idle.put(key, kept, Instant::now()));
        drop(surplus);
    }

    /// Closes connections that were idle for too long, and returns when to look again.
    pub(crate) fn sweep(&self) -> Instant {
        let now = Instant::now();
        let expired = self.with_idle(|idle| idle.take_older(now, self.idle_time_max));
        drop(expired);
        let oldest_since = self.with_idle(|idle| idle.oldest_since());
        oldest_since.unwrap_or(now) + self.idle_time_max
    }

    /// What the work takes out is dropped by the caller, when the lock is gone: closing a
    /// connection is a system call.
    fn with_idle<R>(&self, work: impl FnOnce(&mut IdleConnections<PoolKey, Kept>) -> R) -> R {
        work(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Things put away by key, and found again by key or by age.
struct IdleConnections<K, T> {
    things_max: usize,
    per_key_max: usize,
    by_key: HashMap<K, Vec<(Ticket, T)>>,
    by_age: BTreeMap<Ticket, (K, Instant)>,
    next_ticket: Ticket,
}

/// Counts up with every thing put away, so that the smallest belongs to the oldest.
type Ticket = u64;

impl<K: Clone + Eq + std::hash::Hash, T> IdleConnections<K, T> {
    fn new(things_max: usize, per_key_max: usize) -> Self {
        let (by_key, by_age) = (HashMap::new(), BTreeMap::new());
        Self { things_max, per_key_max, by_key, by_age, next_ticket: 0 }
    }

    /// Puts a thing away; gives back what is now too much, the oldest first.
    fn put(&mut self, key: K, thing: T, now: Instant) -> Vec<T> {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.by_age.insert(ticket, (key.clone(), now));
        let of_key = self.by_key.entry(key).or_default();
        of_key.push((ticket, thing));
        let mut surplus = Vec::new();
        if of_key.len() > self.per_key_max {
            let oldest = of_key[0].0;
            surplus.extend(self.take_ticket(oldest));
        }
        while self.by_age.len() > self.things_max {
            surplus.extend(self.take_oldest());
        }
        surplus
    }

    /// The thing put away last under this key: of several connections it is the least likely to have
    /// been closed by the server.
    fn take(&mut self, key: &K) -> Option<T> {
        let newest = self.by_key.get(key)?.last()?.0;
        self.take_ticket(newest)
    }

    /// The first thing under this key that is meant.
    fn take_first(&mut self, key: &K, is_meant: impl Fn(&T) -> bool) -> Option<T> {
        let of_key = self.by_key.get(key)?;
        let (ticket, _) = of_key.iter().find(|(_, thing)| is_meant(thing))?;
        self.take_ticket(*ticket)
    }

    fn take_older(&mut self, now: Instant, age_max: Duration) -> Vec<T> {
        let mut expired = Vec::new();
        while let Some(since) = self.oldest_since()
            && now.duration_since(since) >= age_max
        {
            expired.extend(self.take_oldest());
        }
        expired
    }

    fn oldest_since(&self) -> Option<Instant> {
        self.by_age.first_key_value().map(|(_, &(_, since))| since)
    }

    fn take_oldest(&mut self) -> Option<T> {
        let (&oldest, _) = self.by_age.first_key_value()?;
        self.take_ticket(oldest)
    }

    fn take_ticket(&mut self, ticket: Ticket) -> Option<T> {
        let (key, _) = self.by_age.remove(&ticket)?;
        let of_key = self.by_key.get_mut(&key)?;
        let at = of_key.iter().position(|(kept, _)| *kept == ticket)?;
        let (_, thing) = of_key.remove(at);
        if of_key.is_empty() {
            self.by_key.remove(&key);
        }
        Some(thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(things_max: usize, per_key_max: usize) -> IdleConnections<&'static str, u32> {
        IdleConnections::new(things_max, per_key_max)
    }

    #[test]
    fn the_newest_is_taken_first() {
        let mut idle = idle(9, 9);
        for thing in 1..=3 {
            assert!(idle.put("a", thing, Instant::now()).is_empty());
        }
        assert_eq!(idle.take(&"b"), None);
        assert_eq!(idle.take(&"a"), Some(3));
        assert_eq!(idle.take(&"a"), Some(2));
    }

    #[test]
    fn one_key_does_not_fill_the_pool() {
        let mut idle = idle(9, 2);
        idle.put("a", 1, Instant::now());
        idle.put("a", 2, Instant::now());
        assert_eq!(idle.put("a", 3, Instant::now()), [1]);
    }

    #[test]
    fn the_oldest_of_all_goes_first() {
        let mut idle = idle(2, 9);
        idle.put("a", 1, Instant::now());
        idle.put("b", 2, Instant::now());
        assert_eq!(idle.put("c", 3, Instant::now()), [1]);
        assert_eq!(idle.take(&"a"), None);
        assert!(!idle.by_key.contains_key("a"), "a key without connections is forgotten");
    }

    #[test]
    fn old_things_are_thrown_out() {
        let mut idle = idle(9, 9);
        let start = Instant::now();
        let second = Duration::from_secs(1);
        idle.put("a", 1, start);
        idle.put("a", 2, start + second);
        assert_eq!(idle.take_older(start + 3 * second, 3 * second), [1]);
        assert_eq!(idle.oldest_since(), Some(start + second));
        assert_eq!(idle.take(&"a"), Some(2));
        assert_eq!(idle.oldest_since(), None);
    }
}
