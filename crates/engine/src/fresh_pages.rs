//! [`FreshPages`]: pages that a crawl has just read, at hand for the index.
//!
//! The parse stage puts a page here before it is stored, and the index stage takes it when it comes
//! to it, so that a page is read once. Nothing depends on it: what is not here is read out of the
//! store again, and everything here may be lost at any moment.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use telusur_model::{CrawlNo, Digest, PageRecord, SearchPage, Timestamp, UrlKey};

/// Bytes of cached pages: what the index may be behind, if pages are of common size.
const FRESH_BYTES_MAX: usize = 48 << 20;
/// Pages that come after one that still waits. There are never so many between parsing and indexing:
/// whoever waits longer was not stored, and is not coming to be taken.
const PAGES_BEHIND_MAX: u64 = 8192;

/// Pages that wait to be indexed.
#[derive(Default)]
pub(crate) struct FreshPages(Mutex<Pages>);

/// Guarded by a lock that is held for looking up one page.
#[derive(Default)]
struct Pages {
    waiting: HashMap<PlaceKey, Waiting>,
    /// In the order in which they came.
    order: VecDeque<(u64, PlaceKey)>,
    /// How many came so far, those that found no room included.
    came: u64,
    bytes: usize,
}

/// One answer to one visit.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PlaceKey {
    crawl: CrawlNo,
    key: UrlKey,
    fetched_at: Timestamp,
}

struct Waiting {
    page: Box<SearchPage>,
    digest: Digest,
    bytes: usize,
}

impl PlaceKey {
    fn of(record: &PageRecord) -> Self {
        Self { crawl: record.crawl, key: record.key, fetched_at: record.fetched_at }
    }
}

impl FreshPages {
    /// Puts a page here, if there is room.
    pub(crate) fn put(&self, record: &PageRecord, page: SearchPage) {
        let bytes = bytes_of(&page);
        let mut pages = self.pages();
        pages.came += 1;
        pages.forget_lost();
        if pages.bytes + bytes > FRESH_BYTES_MAX {
            return;
        }
        let (came, place) = (pages.came, PlaceKey::of(record));
        let waiting = Waiting { page: Box::new(page), digest: record.digest, bytes };
        pages.bytes += bytes;
        pages.order.push_back((came, place));
        if let Some(before) = pages.waiting.insert(place, waiting) {
            pages.bytes -= before.bytes;
        }
    }

    /// Takes the page of a record away, if it is here.
    pub(crate) fn take(&self, record: &PageRecord) -> Option<Box<SearchPage>> {
        let taken = self.pages().remove(&PlaceKey::of(record))?;
        (taken.digest == record.digest).then_some(taken.page)
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    fn remove(&mut self, place: &PlaceKey) -> Option<Waiting> {
        let taken = self.waiting.remove(place)?;
        self.bytes -= taken.bytes;
        Some(taken)
    }

    /// Takes down the pages that nobody is coming for.
    fn forget_lost(&mut self) {
        while let Some((came, place)) = self.order.front().copied() {
            let is_taken = !self.waiting.contains_key(&place);
            if !is_taken && came + PAGES_BEHIND_MAX > self.came {
                return;
            }
            self.order.pop_front();
            self.remove(&place);
        }
    }
}

/// About what a page takes in memory.
fn bytes_of(page: &SearchPage) -> usize {
    let SearchPage { parsed, findings } = page;
    let links = parsed.links.iter();
    let links: usize = links.map(|link| link.url.as_str().len() + link.anchor.len()).sum();
    let headings: usize = findings.headings.iter().map(String::len).sum();
    /// What an empty page and an empty link take besides.
    const PAGE_BYTES: usize = 1024;
    const LINK_BYTES: usize = 200;
    PAGE_BYTES + findings.text.len() + headings + links + parsed.links.len() * LINK_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use telusur_model::{Findings, PageUrl};

    fn record(number: u64) -> PageRecord {
        let url = PageUrl::parse(&format!("http://a.org/{number}")).unwrap();
        PageRecord::bare(CrawlNo(1), UrlKey(u128::from(number)), url, Timestamp(7))
    }

    fn page(text: &str) -> SearchPage {
        let findings = Findings { text: text.to_owned(), ..Findings::default() };
        SearchPage { findings, ..SearchPage::default() }
    }

    fn text(taken: Option<Box<SearchPage>>) -> Option<String> {
        taken.map(|page| page.findings.text)
    }

    #[test]
    fn a_page_is_taken_once() {
        let fresh_pages = FreshPages::default();
        fresh_pages.put(&record(1), page("one"));
        fresh_pages.put(&record(2), page("two"));
        assert_eq!(text(fresh_pages.take(&record(2))).as_deref(), Some("two"));
        assert_eq!(text(fresh_pages.take(&record(2))), None);
        assert_eq!(text(fresh_pages.take(&record(1))).as_deref(), Some("one"));
    }

    #[test]
    fn another_answer_is_another_page() {
        let fresh_pages = FreshPages::default();
        fresh_pages.put(&record(1), page("one"));
        let later = PageRecord { fetched_at: Timestamp(u64::MAX), ..record(1) };
        assert_eq!(text(fresh_pages.take(&later)), None);
        let other = PageRecord { digest: Digest([9; 32]), ..record(1) };
        assert_eq!(text(fresh_pages.take(&other)), None);
    }

    #[test]
    fn there_is_room_for_so_much_and_no_more() {
        let fresh_pages = FreshPages::default();
        let large = "x".repeat(FRESH_BYTES_MAX / 3);
        for number in 0..4 {
            fresh_pages.put(&record(number), page(&large));
        }
        let taken = (0..4).map(|number| fresh_pages.take(&record(number)).is_some());
        assert_eq!(taken.collect::<Vec<_>>(), [true, true, false, false]);
        assert_eq!(fresh_pages.pages().bytes, 0);
    }

    #[test]
    fn pages_that_nobody_comes_for_make_room() {
        let fresh_pages = FreshPages::default();
        let half = "x".repeat(FRESH_BYTES_MAX / 2 - bytes_of(&SearchPage::default()));
        fresh_pages.put(&record(0), page(&half));
        fresh_pages.put(&record(1), page(&half));
        for number in 2..PAGES_BEHIND_MAX {
            fresh_pages.put(&record(number), page("no room"));
            assert!(fresh_pages.take(&record(number)).is_none());
        }
        let last = PAGES_BEHIND_MAX;
        fresh_pages.put(&record(last), page("room"));
        assert_eq!(text(fresh_pages.take(&record(last))).as_deref(), Some("room"));
        assert!(fresh_pages.take(&record(0)).is_none());
        assert!(fresh_pages.take(&record(1)).is_some());
    }
}
