//! [`RecentKeys`]: keys that are certainly known. Most links repeat; this answers them without the
//! disk.

use telusur_model::{CrawlNo, UrlKey};

/// 2^20 keys of 16 bytes: 16 MiB. Covers every link of a crawl of a million pages, and the
/// navigation of any.
const BUCKETS: usize = 1 << 18;
const WAYS: usize = 4;

/// A table of keys with a fixed size: newer keys push out older ones of their bucket.
pub(crate) struct RecentKeys {
    buckets: Vec<[u128; WAYS]>,
}

impl RecentKeys {
    pub(crate) fn new() -> Self {
        Self { buckets: vec![[0; WAYS]; BUCKETS] }
    }

    /// True if the key was added and not yet pushed out.
    pub(crate) fn contains(&self, crawl: CrawlNo, key: UrlKey) -> bool {
        let mark = mark(crawl, key);
        self.buckets[bucket(mark)].contains(&mark)
    }

    pub(crate) fn add(&mut self, crawl: CrawlNo, key: UrlKey) {
        let mark = mark(crawl, key);
        let bucket = &mut self.buckets[bucket(mark)];
        if !bucket.contains(&mark) {
            bucket.rotate_right(1);
            bucket[0] = mark;
        }
    }

    /// Forgets one key: the store must be asked about it.
    pub(crate) fn forget(&mut self, crawl: CrawlNo, key: UrlKey) {
        let mark = mark(crawl, key);
        for place in &mut self.buckets[bucket(mark)] {
            if *place == mark {
                *place = 0;
            }
        }
    }

    /// Forgets everything: for when keys leave the store.
    pub(crate) fn clear(&mut self) {
        self.buckets.fill([0; WAYS]);
    }
}

/// The key mixed with its crawl; never zero, which means an empty place.
fn mark(crawl: CrawlNo, key: UrlKey) -> u128 {
    const SPREAD: u128 = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
    (key.0 ^ u128::from(crawl.0).wrapping_mul(SPREAD)).max(1)
}

fn bucket(mark: u128) -> usize {
    usize::try_from(mark % BUCKETS as u128).expect("less than BUCKETS")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_was_added_and_nothing_else() {
        let mut recent = RecentKeys::new();
        recent.add(CrawlNo(1), UrlKey(7));
        assert!(recent.contains(CrawlNo(1), UrlKey(7)));
        assert!(!recent.contains(CrawlNo(2), UrlKey(7)));
        assert!(!recent.contains(CrawlNo(1), UrlKey(8)));
        recent.clear();
        assert!(!recent.contains(CrawlNo(1), UrlKey(7)));
    }

    #[test]
    fn pushes_out_the_oldest_of_a_full_bucket() {
        let mut recent = RecentKeys::new();
        let same_bucket = |n: u128| UrlKey(n * BUCKETS as u128);
        (1..=5).for_each(|n| recent.add(CrawlNo(0), same_bucket(n)));
        assert!(!recent.contains(CrawlNo(0), same_bucket(1)));
        assert!((2..=5).all(|n| recent.contains(CrawlNo(0), same_bucket(n))));
    }
}
