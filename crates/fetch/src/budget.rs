//! [`BodyBudget`]: memory for bodies that are longer than a usual page. All visits share it, so that
//! fifty servers that send fifty megabytes each cost no more than one of them.

use std::sync::Arc;

use bytes::Bytes;
use telusur_model::Reason;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::failure::Failure;

/// So much of a body is free: the default limit of a page, and what one piece may go beyond it.
const FREE_BYTES: usize = (1 << 20) + (64 << 10);
/// What is asked for at a time.
const UNIT_BYTES: usize = 1 << 20;
/// Enough for one body of the largest size that is read by default (a sitemap of 50 MiB), and less
/// than what a crawl holds back its visits for.
const UNITS: usize = 56;

/// What is left for long bodies.
#[derive(Clone, Debug)]
pub(crate) struct BodyBudget(Arc<Semaphore>);

impl Default for BodyBudget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(UNITS)))
    }
}

impl BodyBudget {
    /// What one body takes of it: nothing yet.
    pub(crate) fn lease(&self) -> Lease {
        Lease { budget: Arc::clone(&self.0), permit: None }
    }
}

/// What one body has taken.
pub(crate) struct Lease {
    budget: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Lease {
    /// Takes what a body of this size needs, and waits for others to give some back. Says whether it
    /// had to wait; never beyond the deadline of the visit.
    pub(crate) async fn cover(&mut self, bytes: usize, deadline: Instant) -> Result<bool, Failure> {
        let units = bytes.saturating_sub(FREE_BYTES).div_ceil(UNIT_BYTES).min(UNITS);
        let held = self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if units <= held {
            return Ok(false);
        }
        let more = u32::try_from(units - held).expect("at most all units");
        let is_short = self.budget.available_permits() < units - held;
        let taken = timeout_at(deadline, Arc::clone(&self.budget).acquire_many_owned(more)).await;
        let Ok(Ok(taken)) = taken else {
            let detail = "too many long bodies came at once";
            return Err(Failure::later(Reason::TimeoutBody, detail));
        };
        match &mut self.permit {
            Some(permit) => permit.merge(taken),
            None => self.permit = Some(taken),
        }
        Ok(is_short)
    }

    /// A body that gives back its share when the last reference to it is dropped.
    pub(crate) fn bind(self, bytes: Vec<u8>) -> Bytes {
        match self.permit {
            Some(permit) => Bytes::from_owner(Leased { bytes, _permit: permit }),
            None => Bytes::from(bytes),
        }
    }
}

struct Leased {
    bytes: Vec<u8>,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Leased {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    #[tokio::test(start_paused = true)]
    async fn pages_of_usual_size_take_nothing() {
        let budget = BodyBudget::default();
        let mut lease = budget.lease();
        assert_eq!(lease.cover(1 << 20, soon()).await, Ok(false));
        assert_eq!(budget.0.available_permits(), UNITS);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_body_waits_until_another_is_gone() {
        let budget = BodyBudget::default();
        let mut first = budget.lease();
        assert_eq!(first.cover(50 << 20, soon()).await, Ok(false));
        let body = first.bind(vec![0; 10]);
        let mut second = budget.lease();
        assert_eq!(second.cover(5 << 20, soon()).await, Ok(false));
        let failure = second.cover(50 << 20, soon()).await.unwrap_err();
        assert_eq!(failure.why, Reason::TimeoutBody);
        // A part of a body holds all of it.
        let part = body.slice(..1);
        drop(body);
        let (waited, ()) = tokio::join!(second.cover(50 << 20, soon()), async {
            tokio::task::yield_now().await;
            drop(part);
        });
        assert_eq!(waited, Ok(true));
        drop(second);
        assert_eq!(budget.0.available_permits(), UNITS);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_beyond_the_budget_takes_all_of_it() {
        let budget = BodyBudget::default();
        assert_eq!(budget.lease().cover(usize::MAX, soon()).await, Ok(false));
    }
}
