use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use telusur_model::CrawlNo;

use super::*;
use crate::conformance::{assert_verified, create, first, step};
use crate::fold::{CrawlRow, encode_row};
use crate::in_memory::{InMemory, InMemorySnapshot};
use crate::{CrawlRecord, CrawlStore, PageStore, Store, StoreChange};

/// A storage whose process dies after a number of commits: none gets through any more.
#[derive(Clone)]
struct Mortal {
    storage: InMemory,
    commits_left: Arc<AtomicUsize>,
}

impl Mortal {
    fn new(storage: &InMemory, commits: usize) -> Self {
        Self { storage: storage.clone(), commits_left: Arc::new(AtomicUsize::new(commits)) }
    }
}

impl Storage for Mortal {
    type Rows = Self;
    type Bodies = InMemory;

    fn rows(&self) -> &Self {
        self
    }

    fn bodies(&self) -> &InMemory {
        &self.storage
    }

    fn key_seed(&self) -> u64 {
        self.storage.key_seed()
    }

    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    fn leftovers(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    fn location(&self) -> String {
        self.storage.location()
    }
}

impl Rows for Mortal {
    type Bytes = Vec<u8>;

    fn get(&self, table: Table, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, StoreError> {
        self.storage.get(table, key)
    }

    fn contains(&self, table: Table, key: impl AsRef<[u8]>) -> Result<bool, StoreError> {
        self.storage.contains(table, key)
    }

    fn range(
        &self,
        table: Table,
        first: Vec<u8>,
        end: Option<Vec<u8>>,
    ) -> impl DoubleEndedIterator<Item = Result<(Vec<u8>, Vec<u8>), StoreError>> {
        self.storage.range(table, first, end)
    }
}

impl WriteRows for Mortal {
    type Snapshot = InMemorySnapshot;

    fn snapshot(&self) -> InMemorySnapshot {
        self.storage.snapshot()
    }

    fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        let lives = |left: usize| left.checked_sub(1);
        match self.commits_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lives) {
            Ok(_) => self.storage.commit(batch),
            Err(_) => Err(StoreError::Engine("killed".into())),
        }
    }
}

fn with_page(store: &dyn Store) -> CrawlRecord {
    let record = create(store, &["http://a.test/"]);
    let visit = first(store, &record, "a.test");
    let links = ["http://a.test/1", "http://b.test/"];
    store.commit(step(store, &record, visit, 200, &links)).unwrap();
    record
}

/// A row for each URL of a large crawl, as no step would write them.
fn with_urls(storage: &InMemory, no: CrawlNo, urls: u128) {
    let mut batch = Batch::default();
    for url in 0..urls {
        batch.insert(Table::Urls, layout::url_key(no, telusur_model::UrlKey(url)), [0]);
    }
    storage.commit(batch).unwrap();
}

/// Everything that belongs to a crawl, in any table.
fn rows_of(storage: &InMemory, no: CrawlNo) -> Vec<Table> {
    let key = crawl_key(no);
    let of_crawl = Table::OF_CRAWL.into_iter().chain([Table::Crawls, Table::Stats]);
    let mut found: Vec<_> =
        of_crawl.filter(|table| storage.prefix(*table, key).next().is_some()).collect();
    let of_page = |row: Result<(Vec<u8>, Vec<u8>), StoreError>| row.unwrap().1 == key;
    found.extend(storage.prefix(Table::Order, []).any(of_page).then_some(Table::Order));
    for key in [layout::meta_removal(no), layout::meta_bodies_end(no)] {
        found.extend(storage.contains(Table::Meta, key).unwrap().then_some(Table::Meta));
    }
    found
}

/// Places and crawls of the removals in the order of changes.
fn told(store: &dyn Store) -> Vec<(u64, CrawlNo)> {
    let changes = store.changes_after(0, 99).unwrap();
    let removed = changes.iter().filter_map(|change| match change {
        StoreChange::Removed { seq, crawl } => Some((*seq, *crawl)),
        StoreChange::Page(_) | StoreChange::Lost(_) => None,
    });
    removed.collect()
}

/// Kills a removal after each of its commits. Whoever comes next finds all of the crawl or nothing of it, and
/// can finish.
#[test]
fn a_removal_is_complete_or_not_begun_wherever_it_is_cut() {
    let mut commits = 0;
    loop {
        let storage = InMemory::default();
        let store = Ledger::open(storage.clone()).unwrap();
        let [gone, kept] = [0, 1].map(|_| with_page(&store).crawl.no);
        // More than is deleted at once.
        with_urls(&storage, gone, 2 * PIECE_ROWS as u128);
        drop(store);
        // One more for the opening.
        let mortal = Ledger::open(Mortal::new(&storage, commits + 1)).unwrap();
        let removed = mortal.remove(gone).and_then(|()| mortal.end_removal(gone));
        drop(mortal);
        let store = Ledger::open(storage.clone()).unwrap();
        assert!(store.crawl(kept).unwrap().is_some());
        match store.crawl(gone).unwrap() {
            Some(_) => {
                assert_eq!(commits, 0, "only before the first commit");
                assert_eq!(told(&store), []);
            }
            None => {
                assert_eq!(told(&store).iter().map(|told| told.1).collect::<Vec<_>>(), [gone]);
                assert_verified(&store);
                for removal in store.removals().unwrap() {
                    assert_eq!((removal.place, removal.crawl), told(&store)[0]);
                    store.end_removal(removal.crawl).unwrap();
                }
                assert_eq!(rows_of(&storage, gone), []);
                assert_eq!(told(&store).len(), 1, "followers hear of it once");
                assert_verified(&store);
            }
        }
        if removed.is_ok() {
            break;
        }
        commits += 1;
    }
    assert!(commits > 3, "{commits}");
}

/// Opening a directory once deleted everything that a killed removal had left.
#[test]
fn opening_does_not_wait_for_a_removal() {
    let storage = InMemory::default();
    let store = Ledger::open(storage.clone()).unwrap();
    let gone = with_page(&store).crawl.no;
    with_urls(&storage, gone, 3 * PIECE_ROWS as u128);
    store.begin_removal(gone).unwrap();
    drop(store);
    let rows = || storage.prefix(Table::Urls, crawl_key(gone)).count();
    let before = rows();
    let store = Ledger::open(storage.clone()).unwrap();
    assert_eq!(rows(), before);
    // Nor does a piece take longer than the one before.
    let mut pieces = 0;
    while !store.delete_removed(gone).unwrap() {
        pieces += 1;
        assert!(before - rows() <= pieces * PIECE_ROWS);
    }
    assert_eq!(pieces, 3);
    assert_eq!(rows_of(&storage, gone), [Table::Meta], "it waits for its followers");
    assert!(store.removals().unwrap()[0].is_deleted);
}

/// Followers hear of it as soon as it has begun, and not when the last row is gone.
#[test]
fn a_removal_is_told_at_once_and_its_pages_no_more() {
    let store = Ledger::open(InMemory::default()).unwrap();
    let gone = with_page(&store).crawl.no;
    assert_eq!(store.changes_after(0, 9).unwrap().len(), 1);
    store.begin_removal(gone).unwrap();
    let [Removal { crawl, place, is_deleted: false }] = store.removals().unwrap()[..] else {
        panic!("one removal, of which something is left");
    };
    assert_eq!((crawl, told(&store)), (gone, vec![(place, gone)]));
    assert_eq!(store.changes_after(0, 9).unwrap().len(), 1, "the pages are gone for followers");
    // Once more does no harm.
    store.begin_removal(gone).unwrap();
    assert_eq!(store.removals().unwrap().len(), 1);
}

#[test]
fn two_removals_are_worked_off_side_by_side() {
    let storage = InMemory::default();
    let store = Ledger::open(storage.clone()).unwrap();
    let both = [0, 1].map(|_| with_page(&store).crawl.no);
    for no in both {
        with_urls(&storage, no, 2 * PIECE_ROWS as u128);
        store.begin_removal(no).unwrap();
    }
    // In turns: one piece of this, one piece of that.
    while !both.map(|no| store.delete_removed(no).unwrap()).iter().all(|is_over| *is_over) {}
    for no in both {
        store.end_removal(no).unwrap();
        assert_eq!(rows_of(&storage, no), []);
    }
    assert_verified(&store);
}

/// Programs before this one kept the row of a crawl that they were removing.
#[test]
fn a_removal_that_an_older_program_began_is_taken_up() {
    let storage = InMemory::default();
    let store = Ledger::open(storage.clone()).unwrap();
    let gone = with_page(&store).crawl.no;
    let row = read_row(store.rows(), gone).unwrap().unwrap();
    let mut batch = Batch::default();
    batch.insert(Table::Crawls, crawl_key(gone), encode_row(&CrawlRow { removing: true, ..row }));
    storage.commit(batch).unwrap();
    drop(store);
    let store = Ledger::open(storage.clone()).unwrap();
    assert_eq!(told(&store).len(), 1);
    assert_verified(&store);
    store.end_removal(gone).unwrap();
    assert_eq!(rows_of(&storage, gone), []);
}
