//! [`Http1Hosts`]: the hosts that turned out to need HTTP/1.1, so that only the first visit finds out.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use telusur_model::{Host, HttpVersion, PageUrl};

/// Hosts that are remembered; of more, the first ones are asked in HTTP/2 once more. Such hosts are
/// rare: old proxies, and pages behind NTLM.
const HOSTS_MAX: usize = 4096;

#[derive(Default)]
pub(crate) struct Http1Hosts {
    /// Held to look up or add one host.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    hosts: HashSet<(Host, u16)>,
    oldest_first: VecDeque<(Host, u16)>,
}

impl Http1Hosts {
    /// The version to ask this URL in, where the crawl allows that one.
    pub(crate) fn version_for(&self, url: &PageUrl, allowed: HttpVersion) -> HttpVersion {
        match allowed {
            HttpVersion::Auto if url.is_secure() && self.with(|known| known.has(url)) => {
                HttpVersion::One
            }
            HttpVersion::Auto | HttpVersion::One | HttpVersion::Two => allowed,
        }
    }

    pub(crate) fn add(&self, url: &PageUrl) {
        self.with(|known| known.add(url));
    }

    fn with<R>(&self, work: impl FnOnce(&mut Known) -> R) -> R {
        work(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Known {
    fn has(&self, url: &PageUrl) -> bool {
        // Nearly always there is none.
        !self.hosts.is_empty() && self.hosts.contains(&(url.host(), url.port()))
    }

    fn add(&mut self, url: &PageUrl) {
        let host = (url.host(), url.port());
        if !self.hosts.insert(host.clone()) {
            return;
        }
        self.oldest_first.push_back(host);
        if self.oldest_first.len() > HOSTS_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.hosts.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_too_many_is_forgotten() {
        let hosts = Http1Hosts::default();
        let url = |number: usize| PageUrl::parse(&format!("https://h{number}.test/")).unwrap();
        for number in 0..=HOSTS_MAX {
            hosts.add(&url(number));
            hosts.add(&url(number));
        }
        assert_eq!(hosts.version_for(&url(0), HttpVersion::Auto), HttpVersion::Auto);
        assert_eq!(hosts.version_for(&url(1), HttpVersion::Auto), HttpVersion::One);
        assert_eq!(hosts.version_for(&url(1), HttpVersion::Two), HttpVersion::Two);
    }
}
