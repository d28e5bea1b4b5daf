//! [`Rates`]: how many requests each key may make. A bucket fills at a steady rate and holds a burst.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use telusur_model::Moment;

/// Buckets that are remembered. There are at most a thousand keys, and full buckets are forgotten.
const BUCKETS_MAX: usize = 2000;

/// The buckets of all keys.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    /// Held to take one request out, never while waiting.
    buckets: Mutex<HashMap<String, Bucket>>,
}

/// Thousandths of requests, so that a slow rate fills in whole numbers.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    milli: u64,
    at: Moment,
}

impl Rates {
    /// Takes one request of a key. The error says after how many seconds there is another.
    pub(crate) fn take(&self, key: &str, per_s: u32, burst: u32, now: Moment) -> Result<(), u64> {
        let full = u64::from(burst) * 1000;
        let refilled = |bucket: &Bucket| {
            let milli = now.ms_since(bucket.at).saturating_mul(u64::from(per_s));
            bucket.milli.saturating_add(milli).min(full)
        };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX {
            buckets.retain(|_, bucket| refilled(bucket) < full);
        }
        let bucket = buckets.entry(key.to_owned()).or_insert(Bucket { milli: full, at: now });
        let milli = refilled(bucket);
        *bucket = Bucket { milli, at: now };
        match milli.checked_sub(1000) {
            Some(left) => {
                bucket.milli = left;
                Ok(())
            }
            None => Err((1000 - milli).div_ceil(u64::from(per_s.max(1)) * 1000).max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_a_steady_rate() {
        let rates = Rates::default();
        let take = |ms| rates.take("k", 2, 3, Moment(ms));
        assert_eq!([take(0), take(0), take(0)], [Ok(()), Ok(()), Ok(())]);
        assert_eq!(take(0), Err(1));
        assert_eq!(take(499), Err(1));
        assert_eq!(take(500), Ok(()));
        assert_eq!(take(500), Err(1));
        assert_eq!(rates.take("other", 2, 3, Moment(500)), Ok(()));
    }
}
