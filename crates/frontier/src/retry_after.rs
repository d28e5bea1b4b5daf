//! Crawls that wait for nothing but `Retry-After`: when that is so, and how their waiting ends.

use telusur_model::{CrawlNo, Host, Moment, Run};

use crate::frontier::Frontier;

/// Hosts that asked a crawl to wait, when nothing else is left to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryAfterWait {
    /// The first of them may be asked again then.
    pub until: Moment,
    /// All of them.
    pub hosts: Vec<Host>,
}

impl Frontier {
    /// What a crawl waits for, if every host that it has something to ask of said `Retry-After`, and
    /// nothing is under way.
    pub fn waits_for_retry_after(&self, crawl: CrawlNo) -> Option<RetryAfterWait> {
        let crawl = self.crawls.get(&crawl)?;
        if crawl.paused || crawl.outstanding > 0 || crawl.reads > 0 || crawl.queues_busy == 0 {
            return None;
        }
        let busy = crawl.queues.keys().filter(|host| crawl.is_busy(**host));
        let mut wait: Option<RetryAfterWait> = None;
        for &id in busy {
            let host = self.hosts.get(id);
            let asked_until = host.pace.retry_after(self.now)?;
            let wait = wait.get_or_insert(RetryAfterWait { until: asked_until, hosts: Vec::new() });
            wait.until = wait.until.min(asked_until);
            wait.hosts.push(host.host.clone());
        }
        wait
    }

    /// A host asked an earlier process to wait, until a moment that is still to come.
    pub fn asked_to_wait(&mut self, host: &Host, until: Moment) {
        let Some(id) = self.hosts.id(host) else { return };
        self.hosts.get_mut(id).pace.asked_to_wait(until);
        self.refresh_host(id);
    }

    /// Gives up the ids of a linear crawl that wait for another attempt on these hosts: the walk of each
    /// run, and what the store has to keep.
    pub fn give_up_ids(&mut self, crawl: CrawlNo, hosts: &[Host]) -> Vec<(u32, Run)> {
        let mut given_up = Vec::new();
        for host in hosts.iter().filter_map(|host| self.hosts.id(host)).collect::<Vec<_>>() {
            let ids = self.crawls.get_mut(&crawl).and_then(|crawl| crawl.ids.as_mut());
            given_up.extend(ids.map(|ids| ids.give_up_waiting(host)).unwrap_or_default());
            self.refresh(crawl, host);
        }
        given_up
    }

    /// Forgets the prerequisites of a host: its URLs are given up, so nothing needs to be known any more.
    pub fn drop_prerequisites(&mut self, crawl: CrawlNo, host: &Host) {
        let Some(id) = self.hosts.id(host) else { return };
        let Some(state) = self.crawls.get_mut(&crawl) else { return };
        let Some(queue) = state.queues.get_mut(&id) else { return };
        queue.drop_prerequisites();
        self.refresh(crawl, id);
    }
}
