//! [`Segments`]: the append-only files that hold what came over the wire, a directory per crawl.
//!
//! The store's commit says how far each crawl's segments are valid ([`BodiesEnd`]). Bytes beyond
//! that end were never acknowledged: the next writer starts at the committed end and cuts them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use telusur_ledger::{Bodies, BodiesEnd, Body, KeptParts, StoreError};
use telusur_model::{BlobRef, CrawlNo};

use crate::disk::{Disk, DiskFile};
use crate::{io_error, warc};

/// A new segment begins when one has grown past this: large enough for few files, small enough to
/// copy around.
const SEGMENT_BYTES: u64 = 256 << 20;
/// Segment files kept open for reading.
const OPEN_FILES_MAX: usize = 64;

/// All segments of a store.
pub struct Segments {
    disk: Arc<dyn Disk>,
    /// Protects the table of open files.
    open: Mutex<HashMap<(CrawlNo, u32), Arc<dyn DiskFile>>>,
}

impl Bodies for Segments {
    fn pack(&self, kept: &KeptParts<'_>) -> Option<Vec<u8>> {
        warc::pack(kept)
    }

    fn append(
        &self,
        crawl: CrawlNo,
        end: BodiesEnd,
        blobs: &[&[u8]],
    ) -> Result<(Vec<BlobRef>, BodiesEnd), StoreError> {
        if blobs.is_empty() {
            return Ok((Vec::new(), end));
        }
        let mut end = end;
        if end.segment == 0 || end.len >= SEGMENT_BYTES {
            end = BodiesEnd { segment: end.segment + 1, len: 0 };
        }
        let named = |error| io_error(format!("write {}", segment_path(crawl, end.segment)), error);
        let file = self.writable(crawl, end).map_err(named)?;
        let mut places = Vec::with_capacity(blobs.len());
        let mut bytes = Vec::with_capacity(blobs.iter().map(|blob| blob.len()).sum());
        for blob in blobs {
            places.push(BlobRef {
                segment: end.segment,
                offset: end.len + bytes.len() as u64,
                len: u32::try_from(blob.len()).expect("a record is far below 4 GiB"),
            });
            bytes.extend_from_slice(blob);
        }
        file.write_at(end.len, &bytes).map_err(named)?;
        file.sync().map_err(named)?;
        end.len += bytes.len() as u64;
        Ok((places, end))
    }

    fn answer(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Body, StoreError> {
        let unpacked = warc::unpack_answer(&self.read(crawl, blob)?);
        unpacked.map_err(|error| named(crawl, blob, error))
    }

    fn extract(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Vec<u8>, StoreError> {
        let unpacked = warc::unpack_extract(&self.read(crawl, blob)?);
        unpacked.map_err(|error| named(crawl, blob, error))
    }

    fn reach(&self, crawl: CrawlNo, end: BodiesEnd) -> Result<bool, StoreError> {
        if end.len == 0 {
            return Ok(true);
        }
        let len = match self.file(crawl, end.segment).and_then(|file| file.len()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            len => len.map_err(|error| {
                io_error(format!("look at {}", segment_path(crawl, end.segment)), error)
            })?,
        };
        Ok(len >= end.len)
    }

    fn crawls(&self) -> Result<Vec<String>, StoreError> {
        self.disk.dirs().map_err(|error| io_error("list the bodies", error))
    }

    fn remove(&self, crawl: CrawlNo) -> Result<(), StoreError> {
        self.table().retain(|(owner, _), _| *owner != crawl);
        let dir = crawl.to_string();
        self.disk.remove_dir(&dir).map_err(|error| io_error(format!("delete bodies/{dir}"), error))
    }
}

impl Segments {
    /// Segments on a disk.
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, open: Mutex::new(HashMap::new()) }
    }

    /// Reads a blob.
    pub fn read(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Vec<u8>, StoreError> {
        let damaged =
            |error: std::io::Error| StoreError::Damaged(format!("{}: {error}", place(crawl, blob)));
        let file = self.file(crawl, blob.segment).map_err(damaged)?;
        let mut bytes = vec![0; blob.len as usize];
        file.read_at(blob.offset, &mut bytes).map_err(damaged)?;
        Ok(bytes)
    }

    /// The file to append to, with everything beyond the committed end cut off.
    fn writable(&self, crawl: CrawlNo, end: BodiesEnd) -> std::io::Result<Arc<dyn DiskFile>> {
        if end.len == 0 {
            self.disk.create_dir(&crawl.to_string())?;
            let file = self.file(crawl, end.segment)?;
            file.truncate(0)?;
            self.disk.sync_dir(&crawl.to_string())?;
            return Ok(file);
        }
        let file = self.file(crawl, end.segment)?;
        let len = file.len()?;
        if len < end.len {
            return Err(std::io::Error::new(
                std::io::ErrorKind::UnexpectedEof,
                format!("the file has {len} bytes, {} were committed", end.len),
            ));
        }
        if len > end.len {
            file.truncate(end.len)?;
        }
        Ok(file)
    }

    fn file(&self, crawl: CrawlNo, segment: u32) -> std::io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.table().get(&(crawl, segment)) {
            return Ok(Arc::clone(file));
        }
        let file = self.disk.open(&segment_path(crawl, segment))?;
        let mut table = self.table();
        if table.len() >= OPEN_FILES_MAX {
            table.clear();
        }
        table.insert((crawl, segment), Arc::clone(&file));
        Ok(file)
    }

    fn table(&self) -> std::sync::MutexGuard<'_, HashMap<(CrawlNo, u32), Arc<dyn DiskFile>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names the place of the damage.
fn named(crawl: CrawlNo, blob: BlobRef, error: StoreError) -> StoreError {
    match error {
        StoreError::Damaged(what) => StoreError::Damaged(format!("{}: {what}", place(crawl, blob))),
        other => other,
    }
}

/// Where a blob is, for people.
fn place(crawl: CrawlNo, blob: BlobRef) -> String {
    format!("bodies/{} at byte {}", segment_path(crawl, blob.segment), blob.offset)
}

fn segment_path(crawl: CrawlNo, segment: u32) -> String {
    format!("{crawl}/{segment:08}.warc.zst")
}
