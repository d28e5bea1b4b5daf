//! [`InMemory`]: rows and bodies in memory, for tests of the ledger. Handles to one storage share its
//! content, so that a ledger can be dropped and opened again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use telusur_model::{BlobRef, CrawlNo};

use crate::storage::{Batch, Bodies, BodiesEnd, KeptParts, Rows, Storage, Table, WriteRows};
use crate::{Body, StoreError};

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
    bodies: Arc<Mutex<HashMap<CrawlNo, Vec<u8>>>>,
}

impl InMemory {
    /// A hash over all rows of all tables: equal for equal rows.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for ((table, key), value) in lock(&self.tables).iter() {
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
            .filter(|key| ours.get(key) != theirs.get(key))
            .map(|key| {
                let (table, name) = (key.0.name(), String::from_utf8_lossy(&key.1));
                format!("{table} {name:?}: {:?} and {:?}", ours.get(key), theirs.get(key))
            })
            .collect()
    }
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
    ) -> Result<(Vec<BlobRef>, BodiesEnd), StoreError> {
        let mut bodies = lock(&self.bodies);
        let bytes = bodies.entry(crawl).or_default();
        bytes.truncate(usize::try_from(end.len).unwrap_or(usize::MAX));
        let mut places = Vec::with_capacity(blobs.len());
        for blob in blobs {
            let len = u32::try_from(blob.len()).expect("bodies of tests are small");
            places.push(BlobRef { segment: SEGMENT, offset: bytes.len() as u64, len });
            bytes.extend_from_slice(blob);
        }
        Ok((places, BodiesEnd { segment: SEGMENT, len: bytes.len() as u64 }))
    }

    fn answer(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Body, StoreError> {
        let [head, bytes, _] = self.parts(crawl, blob)?;
        Ok(Body { head: String::from_utf8_lossy(&head).into_owned(), bytes })
    }

    fn extract(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Vec<u8>, StoreError> {
        let [_, _, extract] = self.parts(crawl, blob)?;
        Ok(extract)
    }

    fn reach(&self, crawl: CrawlNo, end: BodiesEnd) -> Result<bool, StoreError> {
        let len = lock(&self.bodies).get(&crawl).map_or(0, Vec::len);
        Ok(len as u64 >= end.len)
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

impl InMemory {
    fn parts(&self, crawl: CrawlNo, blob: BlobRef) -> Result<[Vec<u8>; 3], StoreError> {
        let bodies = lock(&self.bodies);
        let first = usize::try_from(blob.offset).unwrap_or(usize::MAX);
        let parts = bodies.get(&crawl).and_then(|bytes| bytes.get(first..)).and_then(split);
        parts.ok_or_else(|| StoreError::Damaged(format!("{crawl} has no body at {first}")))
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
