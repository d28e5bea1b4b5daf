//! [`Charges`]: attempts that are given back. Between the last answer and the moment at which we
//! suspect ourselves, failures are counted as attempts; once the suspicion is there, they were not
//! the fault of their pages.

use std::collections::BTreeMap;

use telusur_model::{CrawlNo, UrlKey, Visit};

/// Attempts that are remembered: those of some seconds.
const CHARGES_MAX: usize = 10_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct Charges {
    /// Attempts that were counted since the last answer.
    counted: Vec<(CrawlNo, UrlKey)>,
    /// Attempts that are given back when their page fails again.
    forgiven: BTreeMap<(CrawlNo, UrlKey), u8>,
}

impl Charges {
    /// Which attempt of its page a visit is, without those that are given back.
    pub(crate) fn attempt(&self, visit: &Visit) -> u8 {
        let forgiven = self.forgiven.get(&key(visit)).copied().unwrap_or(0);
        visit.attempt.saturating_sub(forgiven).max(1)
    }

    /// A failed visit is asked again, and that is to count as an attempt. Says whether it does.
    pub(crate) fn count(&mut self, visit: &Visit) -> bool {
        if visit.purpose.is_prerequisite() {
            return true;
        }
        let key = key(visit);
        if let Some(forgiven) = self.forgiven.get_mut(&key) {
            *forgiven -= 1;
            if *forgiven == 0 {
                self.forgiven.remove(&key);
            }
            return false;
        }
        if self.counted.len() < CHARGES_MAX {
            self.counted.push(key);
        }
        true
    }

    /// There was an answer: what was counted stays counted.
    pub(crate) fn stand(&mut self) {
        self.counted.clear();
    }

    /// The network was down: what was counted is given back.
    pub(crate) fn forgive(&mut self) {
        for key in self.counted.drain(..) {
            if self.forgiven.len() < CHARGES_MAX {
                let forgiven = self.forgiven.entry(key).or_default();
                *forgiven = forgiven.saturating_add(1);
            }
        }
    }

    /// A visit was settled.
    pub(crate) fn settled(&mut self, visit: &Visit) {
        if !self.forgiven.is_empty() {
            self.forgiven.remove(&key(visit));
        }
    }

    /// A crawl is over.
    pub(crate) fn forget(&mut self, crawl: CrawlNo) {
        self.counted.retain(|(no, _)| *no != crawl);
        self.forgiven.retain(|(no, _), _| *no != crawl);
    }
}

fn key(visit: &Visit) -> (CrawlNo, UrlKey) {
    (visit.crawl, visit.key)
}
