//! What the index reads of a store with many crawls, counted.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use telusur_engine::{ImportLine, Importer, Indexer};
use telusur_index::{IndexLimits, SearchIndex};
use telusur_ledger::in_memory::InMemory;
use telusur_ledger::{
    Batch, BlobOrigin, Bodies, BodiesEnd, Body, CrawlStore, KeptParts, Ledger, NewCrawl, Rows,
    Scanned, Storage, Store, StoreError, Table, WriteRows,
};
use telusur_model::{BlobRef, CrawlNo, Keep, Timestamp};

use crate::bench::{crawl, in_process};

const CRAWLS: u64 = 40;
const PAGES_PER_CRAWL: u64 = 25;
const PAGES: u64 = CRAWLS * PAGES_PER_CRAWL;

/// A storage that counts what is read.
#[derive(Clone, Default)]
struct Counted {
    storage: InMemory,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    /// Rows read, and searched for in vain, by table.
    rows: Mutex<BTreeMap<Table, u64>>,
    bodies: AtomicU64,
}

impl Counts {
    fn row(&self, table: Table) {
        *self.rows.lock().unwrap().entry(table).or_default() += 1;
    }

    fn take(&self) -> (BTreeMap<Table, u64>, u64) {
        (std::mem::take(&mut self.rows.lock().unwrap()), self.bodies.swap(0, Ordering::Relaxed))
    }
}

impl Storage for Counted {
    type Rows = Self;
    type Bodies = Self;

    fn rows(&self) -> &Self {
        self
    }

    fn bodies(&self) -> &Self {
        self
    }

    fn key_seed(&self) -> u64 {
        self.storage.key_seed()
    }

    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        self.storage.free_bytes()
    }

    fn leftovers(&self) -> Result<Vec<String>, StoreError> {
        self.storage.leftovers()
    }

    fn location(&self) -> String {
        self.storage.location()
    }
}

impl Rows for Counted {
    type Bytes = Vec<u8>;

    fn get(&self, table: Table, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, StoreError> {
        self.counts.row(table);
        self.storage.get(table, key)
    }

    fn contains(&self, table: Table, key: impl AsRef<[u8]>) -> Result<bool, StoreError> {
        self.counts.row(table);
        self.storage.contains(table, key)
    }

    fn range(
        &self,
        table: Table,
        first: Vec<u8>,
        end: Option<Vec<u8>>,
    ) -> impl DoubleEndedIterator<Item = Result<(Vec<u8>, Vec<u8>), StoreError>> {
        let counts = Arc::clone(&self.counts);
        self.storage.range(table, first, end).inspect(move |_| counts.row(table))
    }
}

impl WriteRows for Counted {
    type Snapshot = Self;

    /// A copy: what is read of it is counted, too.
    fn snapshot(&self) -> Self {
        let mut copy = Batch::default();
        for table in Table::ALL {
            for row in self.storage.prefix(table, []) {
                let (key, value) = row.unwrap();
                copy.insert(table, key, value);
            }
        }
        let storage = InMemory::default();
        storage.commit(copy).unwrap();
        Self { storage, counts: Arc::clone(&self.counts) }
    }

    fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        self.storage.commit(batch)
    }
}

impl Bodies for Counted {
    fn pack(&self, kept: &KeptParts<'_>) -> Option<Vec<u8>> {
        self.storage.pack(kept)
    }

    fn append(
        &self,
        crawl: CrawlNo,
        end: BodiesEnd,
        blobs: &[&[u8]],
        record: impl FnOnce(&[BlobRef]) -> Vec<u8>,
    ) -> Result<BodiesEnd, StoreError> {
        self.storage.append(crawl, end, blobs, record)
    }

    fn answer(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Body, StoreError> {
        self.counts.bodies.fetch_add(1, Ordering::Relaxed);
        self.storage.answer(crawl, blob)
    }

    fn extract(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Vec<u8>, StoreError> {
        self.counts.bodies.fetch_add(1, Ordering::Relaxed);
        self.storage.extract(crawl, blob)
    }

    fn origin(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Option<BlobOrigin>, StoreError> {
        self.storage.origin(crawl, blob)
    }

    fn step_record(&self, crawl: CrawlNo, place: BlobRef) -> Result<Vec<u8>, StoreError> {
        self.storage.step_record(crawl, place)
    }

    fn is_whole(&self, crawl: CrawlNo, blob: BlobRef) -> Result<bool, StoreError> {
        self.storage.is_whole(crawl, blob)
    }

    fn reach(&self, crawl: CrawlNo, end: BodiesEnd) -> Result<bool, StoreError> {
        self.storage.reach(crawl, end)
    }

    fn has_more(&self, crawl: CrawlNo, end: BodiesEnd) -> Result<bool, StoreError> {
        self.storage.has_more(crawl, end)
    }

    fn scan(
        &self,
        crawl: CrawlNo,
        from: BodiesEnd,
        each: &mut dyn FnMut(Scanned) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        self.storage.scan(crawl, from, each)
    }

    fn put_settings(&self, crawl: CrawlNo, json: &[u8]) -> Result<(), StoreError> {
        self.storage.put_settings(crawl, json)
    }

    fn settings(&self, crawl: CrawlNo) -> Result<Option<Vec<u8>>, StoreError> {
        self.storage.settings(crawl)
    }

    fn crawls(&self) -> Result<Vec<String>, StoreError> {
        Bodies::crawls(&self.storage)
    }

    fn half_removed(&self) -> Result<Vec<CrawlNo>, StoreError> {
        self.storage.half_removed()
    }

    fn remove(&self, crawl: CrawlNo, files_max: usize) -> Result<bool, StoreError> {
        Bodies::remove(&self.storage, crawl, files_max)
    }
}

/// A store whose crawls were imported, a page of each in turn.
fn filled(storage: &Counted) -> Arc<dyn Store> {
    let store = Ledger::open(storage.clone()).unwrap();
    let accept = |number: u64| {
        let mut crawl = crawl(Vec::new());
        (crawl.keep, crawl.keep_tracking) = (Keep::Text, true);
        store.create(NewCrawl { crawl, random: number.into() }).unwrap().crawl
    };
    let crawls: Vec<_> = (0..CRAWLS).map(accept).collect();
    for page in 0..PAGES_PER_CRAWL {
        for crawl in &crawls {
            let line = ImportLine {
                id: Some(format!("{page}")),
                url: None,
                title: format!("Page {page}"),
                text: format!("Page {page} of crawl {}", crawl.no),
                language: None,
            };
            let mut importer = Importer::new(&store, crawl.clone());
            let url = line.address().unwrap();
            importer.add(line, url, Timestamp(1_000)).unwrap();
            importer.flush().unwrap();
        }
    }
    Arc::new(store)
}

/// An index at rest once read every crawl at each look, and a new index read pages once for each crawl.
#[test]
fn an_index_reads_each_page_once_and_nothing_of_a_crawl_at_rest() {
    let storage = Counted::default();
    let store = filled(&storage);
    let dir = tempfile::tempdir().unwrap();
    let index = SearchIndex::open(dir.path(), IndexLimits::default()).unwrap();
    let indexer = Indexer::new(store, Arc::new(index), in_process());
    storage.counts.take();

    assert_eq!(indexer.catch_up(&mut |_| {}).unwrap(), PAGES);
    let (rows, bodies) = storage.counts.take();
    assert_eq!((rows[&Table::Pages], rows[&Table::Order], bodies), (PAGES, PAGES, PAGES));
    let tables: Vec<Table> = rows.keys().copied().collect();
    assert_eq!(tables, [Table::Crawls, Table::Stats, Table::Pages, Table::Origins, Table::Order]);
    // Each batch of 250 asks once whether the crawls of its pages are still there.
    assert_eq!(rows[&Table::Crawls], CRAWLS + CRAWLS * PAGES.div_ceil(250));
    assert_eq!(rows[&Table::Stats], CRAWLS);

    assert_eq!(indexer.catch_up(&mut |_| {}).unwrap(), 0);
    assert_eq!(storage.counts.take(), (BTreeMap::new(), 0), "a look at rest");
}
