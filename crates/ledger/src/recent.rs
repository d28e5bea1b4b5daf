//! [`RecentKeys`]: keys that are certainly known. Most links repeat; this answers them without the
//! disk.

use std::sync::{Mutex, MutexGuard, PoisonError};

use telusur_model::{CrawlNo, UrlKey};

/// 2^20 keys of 16 bytes: 16 MiB. Covers every link of a crawl of a million pages, and the
/// navigation of any.
const BUCKETS: usize = 1 << 18;
const WAYS: usize = 4;
/// Parts with a lock of their own: the threads that parse pages ask while the writer adds.
const SHARDS: usize = 64;

type Bucket = [u128; WAYS];

/// A table of keys with a fixed size: newer keys push out older ones of their bucket.
///
/// A key is added by the step that writes its row, before that step is durable. A link that is dropped
/// because its key is here is found by a page of a later step: that one is durable only if this is.
pub(crate) struct RecentKeys {
    /// Empty until the first key comes. Each lock is held for one look into one bucket.
    shards: Vec<Mutex<Vec<Bucket>>>,
}

impl RecentKeys {
    pub(crate) fn new() -> Self {
        Self { shards: std::iter::repeat_with(Mutex::default).take(SHARDS).collect() }
    }

    /// True if the key was added and not yet pushed out.
    pub(crate) fn contains(&self, crawl: CrawlNo, key: UrlKey) -> bool {
        let mark = mark(crawl, key);
        let (shard, bucket) = place(mark);
        self.shard(shard).get(bucket).is_some_and(|bucket| bucket.contains(&mark))
    }

    pub(crate) fn add(&self, crawl: CrawlNo, key: UrlKey) {
        let mark = mark(crawl, key);
        let (shard, bucket) = place(mark);
        let mut buckets = self.shard(shard);
        if buckets.is_empty() {
            // Memory that the system hands out as zeros is not touched before it is needed.
            *buckets = vec![[0; WAYS]; BUCKETS / SHARDS];
        }
        let bucket = &mut buckets[bucket];
        if !bucket.contains(&mark) {
            bucket.rotate_right(1);
            bucket[0] = mark;
        }
    }

    /// Forgets everything: for when keys leave the store.
    pub(crate) fn clear(&self) {
        for shard in 0..SHARDS {
            self.shard(shard).clear();
        }
    }

    fn shard(&self, shard: usize) -> MutexGuard<'_, Vec<Bucket>> {
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key mixed with its crawl; never zero, which means an empty place.
fn mark(crawl: CrawlNo, key: UrlKey) -> u128 {
    const SPREAD: u128 = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
    (key.0 ^ u128::from(crawl.0).wrapping_mul(SPREAD)).max(1)
}

/// The shard of a mark, and its bucket there.
fn place(mark: u128) -> (usize, usize) {
    let bucket = usize::try_from(mark % BUCKETS as u128).expect("less than BUCKETS");
    (bucket % SHARDS, bucket / SHARDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_was_added_and_nothing_else() {
        let recent = RecentKeys::new();
        recent.add(CrawlNo(1), UrlKey(7));
        assert!(recent.contains(CrawlNo(1), UrlKey(7)));
        assert!(!recent.contains(CrawlNo(2), UrlKey(7)));
        assert!(!recent.contains(CrawlNo(1), UrlKey(8)));
        recent.clear();
        assert!(!recent.contains(CrawlNo(1), UrlKey(7)));
    }

    #[test]
    fn pushes_out_the_oldest_of_a_full_bucket() {
        let recent = RecentKeys::new();
        let same_bucket = |n: u128| UrlKey(n * BUCKETS as u128);
        (1..=5).for_each(|n| recent.add(CrawlNo(0), same_bucket(n)));
        assert!(!recent.contains(CrawlNo(0), same_bucket(1)));
        assert!((2..=5).all(|n| recent.contains(CrawlNo(0), same_bucket(n))));
    }
}
