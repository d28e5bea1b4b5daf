//! [`RecentRequests`]: how close together requests to one host were, in memory that does not grow.

use std::collections::{BTreeMap, HashMap, VecDeque};

use telusur_model::{Host, Timestamp};

/// Requests that are remembered. Pages are stored nearly in the order in which they were asked for: a
/// minute apart at most at a thousand pages a second, which is as long as a slow answer may take.
const REQUESTS_MAX: usize = 65_536;

/// The times of the last requests of a crawl.
#[derive(Default)]
pub(super) struct RecentRequests {
    /// In the order in which they were added.
    added: VecDeque<(Host, Timestamp)>,
    /// How many there were at each time.
    by_host: HashMap<Host, BTreeMap<Timestamp, u32>>,
}

impl RecentRequests {
    /// Adds a request. Gives the milliseconds between it and the nearest one to the same host, if
    /// another one is remembered.
    pub(super) fn add(&mut self, host: Host, at: Timestamp) -> Option<u64> {
        if self.added.len() >= REQUESTS_MAX {
            self.forget_first();
        }
        let times = self.by_host.entry(host.clone()).or_default();
        let before = times.range(..=at).next_back().map(|(before, _)| at.0 - before.0);
        let after = times.range(at..).next().map(|(after, _)| after.0 - at.0);
        *times.entry(at).or_default() += 1;
        self.added.push_back((host, at));
        before.into_iter().chain(after).min()
    }

    fn forget_first(&mut self) {
        let Some((host, at)) = self.added.pop_front() else { return };
        let Some(times) = self.by_host.get_mut(&host) else { return };
        if let Some(count) = times.get_mut(&at) {
            *count -= 1;
            if *count == 0 {
                times.remove(&at);
            }
        }
        if times.is_empty() {
            self.by_host.remove(&host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(times: &[u64], expect: &[Option<u64>]) {
        let mut requests = RecentRequests::default();
        let host = || Host::new("a.test");
        requests.add(Host::new("b.test"), Timestamp(5));
        let gaps: Vec<_> = times.iter().map(|at| requests.add(host(), Timestamp(*at))).collect();
        assert_eq!(gaps, expect);
    }

    #[test]
    fn the_nearest_request_counts() {
        check(&[1, 11, 31], &[None, Some(10), Some(20)]);
    }

    #[test]
    fn pages_may_be_stored_in_another_order() {
        check(&[31, 1, 11, 30], &[None, Some(30), Some(10), Some(1)]);
    }

    #[test]
    fn two_requests_at_once_are_zero_apart() {
        check(&[7, 7, 7], &[None, Some(0), Some(0)]);
    }

    #[test]
    fn memory_does_not_grow_with_the_number_of_requests() {
        let mut requests = RecentRequests::default();
        for n in 0..3 * REQUESTS_MAX as u64 {
            requests.add(Host::new(&format!("{}.test", n / 3)), Timestamp(n));
        }
        assert_eq!(requests.added.len(), REQUESTS_MAX);
        assert!(requests.by_host.len() <= REQUESTS_MAX);
        assert_eq!(requests.by_host.values().map(BTreeMap::len).sum::<usize>(), REQUESTS_MAX);
    }
}
