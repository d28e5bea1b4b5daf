//! [`RequestLog`]: who was asked for what, and when. Tests read politeness off it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use telusur_model::{Clock, Moment};

/// One request that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedRequest {
    /// The host it was for, with the port if it is not the usual one.
    pub host: String,
    /// Path and query.
    pub target: String,
    /// When it arrived.
    pub started_at: Moment,
    /// When its answer was ready; `None` if the asker went away before.
    pub ended_at: Option<Moment>,
    /// Whether it was cut off without an answer on a connection that had served others: to ask again
    /// at once, on a fresh one, is then part of the same visit.
    pub may_be_resent: bool,
}

/// All requests, in the order in which they arrived.
pub struct RequestLog {
    clock: Arc<dyn Clock>,
    /// Held only to add or copy entries.
    requests: Mutex<Vec<LoggedRequest>>,
}

impl RequestLog {
    /// An empty log.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, requests: Mutex::default() }
    }

    /// Notes that a request arrived. The number says which one ended, later.
    pub(crate) fn started(&self, host: &str, target: &str) -> usize {
        let started_at = self.clock.now();
        let mut requests = self.lock();
        requests.push(LoggedRequest {
            host: host.to_owned(),
            target: target.to_owned(),
            started_at,
            ended_at: None,
            may_be_resent: false,
        });
        requests.len() - 1
    }

    /// Notes that the answer to a request is ready.
    pub(crate) fn ended(&self, number: usize) {
        let ended_at = self.clock.now();
        self.lock()[number].ended_at = Some(ended_at);
    }

    /// Notes that a request on a kept connection was cut off without an answer.
    pub(crate) fn cut_off(&self, number: usize) {
        self.lock()[number].may_be_resent = true;
    }

    /// A copy of all that was logged so far.
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.lock().clone()
    }

    /// How many requests there were.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often each URL was asked for, as `host/path`.
    pub fn counts(&self) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        for request in self.lock().iter() {
            *counts.entry(format!("{}{}", request.host, request.target)).or_default() += 1;
        }
        counts
    }

    /// When the requests of one host arrived, in order.
    pub fn starts_of(&self, host: &str) -> Vec<Moment> {
        let requests = self.lock();
        requests.iter().filter(|it| it.host == host).map(|it| it.started_at).collect()
    }

    /// The most requests that one host had to answer at a time.
    pub fn at_once_max(&self, host: &str) -> usize {
        // An answer makes room for the request that arrives in the same millisecond: ends sort
        // before starts.
        let mut changes: Vec<(Moment, isize)> = Vec::new();
        for request in self.lock().iter().filter(|it| it.host == host) {
            changes.push((request.started_at, 1));
            if let Some(ended_at) = request.ended_at {
                // A request without duration still was there, unless it gets no answer any more.
                let least_ms = u64::from(!request.may_be_resent);
                changes.push((ended_at.max(request.started_at.plus_ms(least_ms)), -1));
            }
        }
        changes.sort_unstable();
        let mut running = 0_isize;
        let mut most = 0;
        for (_, change) in changes {
            running += change;
            most = most.max(running);
        }
        most.unsigned_abs()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LoggedRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn overlapping_requests_are_counted_per_host() {
        let clock = Arc::new(ManualClock::new());
        let log = RequestLog::new(clock.clone());
        let first = log.started("a.test", "/1");
        clock.advance_ms(10);
        let second = log.started("a.test", "/2");
        let _left_open = log.started("b.test", "/1");
        clock.advance_ms(10);
        log.ended(first);
        log.started("a.test", "/1");
        log.ended(second);

        assert_eq!(log.at_once_max("a.test"), 2);
        assert_eq!(log.at_once_max("b.test"), 1);
        assert_eq!(log.at_once_max("c.test"), 0);
        assert_eq!(log.starts_of("a.test"), [Moment(0), Moment(10), Moment(20)]);
        assert_eq!(log.counts()["a.test/1"], 2);
    }
}
