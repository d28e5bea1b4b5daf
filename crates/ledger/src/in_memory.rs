//! [`InMemory`]: rows and bodies in memory, for tests of the ledger and for commands that store nothing. Handles to one storage share its
//! content, so that a ledger can be dropped and opened again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use telusur_model::{BlobRef, CrawlNo};

use crate::storage::{
    Batch, BlobOrigin, Bodies, BodiesEnd, BytesRange, KeptParts, Rows, Scanned, Storage, Table,
    WriteRows,
};
use crate::{Body, StoreError, layout};

/// The only segment of a crawl.
const SEGMENT: u32 = 1;

type Tables = BTreeMap<(Table, Vec<u8>), Vec<u8>>;
type Row = (Vec<u8>, Vec<u8>);

/// A storage that is gone with its last handle.
#[derive(Clone, Default)]
pub struct InMemory {
    /// Guards the tables for the length of one operation. Snapshots share them until the next commit.
    tables: Arc<Mutex<Arc<Tables>>>,
    /// Guards the bodies for the length of one operation.
    bodies: Arc<Mutex<HashMap<CrawlNo, InMemoryBodies>>>,
}

/// The bodies of one crawl.
#[derive(Default)]
struct InMemoryBodies {
    bytes: Vec<u8>,
    /// What is where, in order.
    items: Vec<Scanned>,
    settings: Option<Vec<u8>>,
}

impl InMemory {
    /// The same bodies, and no rows.
    pub fn without_rows(&self) -> Self {
        Self { tables: Arc::default(), bodies: Arc::clone(&self.bodies) }
    }

    /// Makes every blob or record unreadable that `is_lost` says so of, by its number among those of its
    /// crawl.
    pub fn damage(&self, mut is_lost: impl FnMut(CrawlNo, usize) -> bool) {
        for (crawl, bodies) in lock(&self.bodies).iter_mut() {
            for (number, item) in bodies.items.iter_mut().enumerate() {
                let BlobRef { segment, offset: first, len } = place_of(item);
                if is_lost(*crawl, number) {
                    let end = first + u64::from(len);
                    *item = Scanned::Unreadable(BytesRange { segment, first, end });
                }
            }
        }
    }

    /// A hash over all rows of all tables: equal for equal rows. How events are cut into steps, and what is
    /// learned again, does not matter.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for ((table, key), value) in lock(&self.tables).iter() {
            if is_of_steps(*table, key) {
                continue;
            }
            for part in [table.name().as_bytes(), key, value] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        *hasher.finalize().as_bytes()
    }
}

impl InMemory {
    /// The rows in which two storages differ, for people: table, key and both values.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let (ours, theirs) = (lock(&self.tables).clone(), lock(&other.tables).clone());
        let keys: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
        keys.into_iter()
            .filter(|key| ours.get(key) != theirs.get(key) && !is_of_steps(key.0, &key.1))
            .map(|key| {
                let (table, name) = (key.0.name(), String::from_utf8_lossy(&key.1));
                format!("{table} {name:?}: {:?} and {:?}", ours.get(key), theirs.get(key))
            })
            .collect()
    }
}

/// Whether a row says how far steps and their records have come, or that requests may not be written down.
fn is_of_steps(table: Table, key: &[u8]) -> bool {
    let is_end = key.starts_with(layout::META_BODIES_ENDS.as_bytes());
    let is_asking = key.starts_with(layout::META_ASKING.as_bytes());
    table == Table::Meta && (is_end || is_asking || key == layout::META_STEP.as_bytes())
}

impl Storage for InMemory {
    type Rows = Self;
    type Bodies = Self;

    fn rows(&self) -> &Self {
        self
    }

    fn bodies(&self) -> &Self {
        self
    }

    fn key_seed(&self) -> u64 {
        0
    }

    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    fn leftovers(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    fn location(&self) -> String {
        "memory".to_owned()
    }
}

/// The tables of an [`InMemory`] at one instant.
#[derive(Clone, Default)]
pub struct InMemorySnapshot(Arc<Tables>);

impl Rows for InMemorySnapshot {
    type Bytes = Vec<u8>;

    fn get(&self, table: Table, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.get(&(table, key.as_ref().to_vec())).cloned())
    }

    fn contains(&self, table: Table, key: impl AsRef<[u8]>) -> Result<bool, StoreError> {
        Ok(self.0.contains_key(&(table, key.as_ref().to_vec())))
    }

    fn range(
        &self,
        table: Table,
        first: Vec<u8>,
        end: Option<Vec<u8>>,
    ) -> impl DoubleEndedIterator<Item = Result<Row, StoreError>> {
        rows_between(&self.0, table, first, end).into_iter()
    }
}

impl Rows for InMemory {
    type Bytes = Vec<u8>;

    fn get(&self, table: Table, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(lock(&self.tables).get(&(table, key.as_ref().to_vec())).cloned())
    }

    fn contains(&self, table: Table, key: impl AsRef<[u8]>) -> Result<bool, StoreError> {
        Ok(lock(&self.tables).contains_key(&(table, key.as_ref().to_vec())))
    }

    fn range(
        &self,
        table: Table,
        first: Vec<u8>,
        end: Option<Vec<u8>>,
    ) -> impl DoubleEndedIterator<Item = Result<Row, StoreError>> {
        rows_between(&lock(&self.tables), table, first, end).into_iter()
    }
}

impl WriteRows for InMemory {
    type Snapshot = InMemorySnapshot;

    fn snapshot(&self) -> InMemorySnapshot {
        InMemorySnapshot(Arc::clone(&lock(&self.tables)))
    }

    fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        let mut tables = lock(&self.tables);
        // A copy if a snapshot still has them.
        let tables = Arc::make_mut(&mut tables);
        for change in batch.into_changes() {
            let key = (change.table, change.key);
            match change.value {
                Some(value) => tables.insert(key, value),
                None => tables.remove(&key),
            };
        }
        Ok(())
    }
}

/// Copies of the rows of a table from `first` on and before `end`.
fn rows_between(
    tables: &Tables,
    table: Table,
    first: Vec<u8>,
    end: Option<Vec<u8>>,
) -> Vec<Result<Row, StoreError>> {
    let first = Bound::Included((table, first));
    let end = end.map_or(Bound::Unbounded, |end| Bound::Excluded((table, end)));
    let rows = tables.range((first, end)).take_while(|((owner, _), _)| *owner == table);
    rows.map(|((_, key), value)| Ok((key.clone(), value.clone()))).collect()
}

impl Bodies for InMemory {
    /// The lengths of the three parts, then the parts: head, body, extract.
    fn pack(&self, kept: &KeptParts<'_>) -> Option<Vec<u8>> {
        let answer = kept.answer.map(|page| (head_of(page), page.body.as_ref()));
        if answer.is_none() && kept.extract.is_none() {
            return None;
        }
        let (head, body) = answer.unwrap_or_default();
        let parts = [head.as_bytes(), body, kept.extract.unwrap_or_default()];
        let lengths = parts.iter().flat_map(|part| (part.len() as u64).to_le_bytes());
        Some(lengths.chain(parts.concat()).collect())
    }

    fn append(
        &self,
        crawl: CrawlNo,
        end: BodiesEnd,
        blobs: &[&[u8]],
        record: impl FnOnce(&[BlobRef]) -> Vec<u8>,
    ) -> Result<BodiesEnd, StoreError> {
        let mut bodies = lock(&self.bodies);
        let bodies = bodies.entry(crawl).or_default();
        bodies.bytes.truncate(usize::try_from(end.len).unwrap_or(usize::MAX));
        bodies.items.retain(|item| place_of(item).offset < end.len);
        let places: Vec<BlobRef> = blobs.iter().map(|blob| push(&mut bodies.bytes, blob)).collect();
        bodies.items.extend(places.iter().copied().map(Scanned::Blob));
        let record = record(&places);
        let place = push(&mut bodies.bytes, &record);
        bodies.items.push(Scanned::Step(place));
        Ok(BodiesEnd { segment: SEGMENT, len: bodies.bytes.len() as u64 })
    }

    fn answer(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Body, StoreError> {
        let [head, bytes, _] = self.parts(crawl, blob)?;
        Ok(Body { head: String::from_utf8_lossy(&head).into_owned(), bytes })
    }

    fn extract(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Vec<u8>, StoreError> {
        let [_, _, extract] = self.parts(crawl, blob)?;
        Ok(extract)
    }

    fn origin(&self, _: CrawlNo, _: BlobRef) -> Result<Option<BlobOrigin>, StoreError> {
        Ok(None)
    }

    fn step_record(&self, crawl: CrawlNo, place: BlobRef) -> Result<Vec<u8>, StoreError> {
        let bodies = lock(&self.bodies);
        let first = usize::try_from(place.offset).unwrap_or(usize::MAX);
        let bytes = bodies.get(&crawl).and_then(|bodies| bodies.bytes.get(first..));
        let record = bytes.and_then(|bytes| bytes.get(..usize::try_from(place.len).ok()?));
        record.map(<[u8]>::to_vec).ok_or_else(|| nothing_at(crawl, first))
    }

    fn is_whole(&self, crawl: CrawlNo, blob: BlobRef) -> Result<bool, StoreError> {
        Ok(self.parts(crawl, blob).is_ok())
    }

    fn reach(&self, crawl: CrawlNo, end: BodiesEnd) -> Result<bool, StoreError> {
        Ok(self.len(crawl) >= end.len)
    }

    fn has_more(&self, crawl: CrawlNo, end: BodiesEnd) -> Result<bool, StoreError> {
        Ok(self.len(crawl) > end.len)
    }

    fn scan(
        &self,
        crawl: CrawlNo,
        from: BodiesEnd,
        each: &mut dyn FnMut(Scanned) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        let items = lock(&self.bodies).get(&crawl).map(|bodies| bodies.items.clone());
        let items = items.unwrap_or_default().into_iter();
        for item in items.filter(|item| place_of(item).offset >= from.len) {
            if each(item)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn put_settings(&self, crawl: CrawlNo, json: &[u8]) -> Result<(), StoreError> {
        lock(&self.bodies).entry(crawl).or_default().settings = Some(json.to_vec());
        Ok(())
    }

    fn settings(&self, crawl: CrawlNo) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(lock(&self.bodies).get(&crawl).and_then(|bodies| bodies.settings.clone()))
    }

    fn crawls(&self) -> Result<Vec<String>, StoreError> {
        Ok(lock(&self.bodies).keys().map(ToString::to_string).collect())
    }

    fn half_removed(&self) -> Result<Vec<CrawlNo>, StoreError> {
        Ok(Vec::new())
    }

    fn remove(&self, crawl: CrawlNo, _files_max: usize) -> Result<bool, StoreError> {
        lock(&self.bodies).remove(&crawl);
        Ok(true)
    }
}

/// Where a blob or record is.
fn place_of(item: &Scanned) -> BlobRef {
    match item {
        Scanned::Blob(place) | Scanned::Step(place) => *place,
        Scanned::Unreadable(bytes) => {
            BlobRef { segment: bytes.segment, offset: bytes.first, len: 0 }
        }
    }
}

/// Appends a blob.
fn push(bytes: &mut Vec<u8>, blob: &[u8]) -> BlobRef {
    let len = u32::try_from(blob.len()).expect("bodies of tests are small");
    let place = BlobRef { segment: SEGMENT, offset: bytes.len() as u64, len };
    bytes.extend_from_slice(blob);
    place
}

fn nothing_at(crawl: CrawlNo, offset: usize) -> StoreError {
    StoreError::Damaged(format!("{crawl} has no body at {offset}"))
}

impl InMemory {
    fn len(&self, crawl: CrawlNo) -> u64 {
        lock(&self.bodies).get(&crawl).map_or(0, |bodies| bodies.bytes.len() as u64)
    }

    fn parts(&self, crawl: CrawlNo, blob: BlobRef) -> Result<[Vec<u8>; 3], StoreError> {
        let bodies = lock(&self.bodies);
        let first = usize::try_from(blob.offset).unwrap_or(usize::MAX);
        let bytes = bodies.get(&crawl).and_then(|bodies| bodies.bytes.get(first..));
        bytes.and_then(split).ok_or_else(|| nothing_at(crawl, first))
    }
}

/// The three parts of a blob that begins here.
fn split(bytes: &[u8]) -> Option<[Vec<u8>; 3]> {
    let (lengths, mut rest) = bytes.split_at_checked(24)?;
    let mut parts = [Vec::new(), Vec::new(), Vec::new()];
    for (part, length) in parts.iter_mut().zip(lengths.chunks_exact(8)) {
        let length = usize::try_from(u64::from_le_bytes(length.try_into().ok()?)).ok()?;
        let (taken, left) = rest.split_at_checked(length)?;
        (*part, rest) = (taken.to_vec(), left);
    }
    Some(parts)
}

fn head_of(page: &telusur_model::RawPage) -> String {
    let lines = page.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    format!("HTTP/1.1 {}\r\n", page.status) + &lines.collect::<String>()
}

fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}
