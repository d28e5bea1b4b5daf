//! [`Segments`]: the append-only files that hold what came over the wire, a directory per crawl.
//!
//! The store's commit says how far each crawl's segments are valid ([`BodiesEnd`]). Bytes beyond
//! that end were never acknowledged: the next writer starts at the committed end and cuts them, unless
//! there are whole records among them. Those may have been committed by rows that were lost: they stay,
//! and so does a segment that is shorter than was committed. A new segment begins then.

use std::collections::{HashMap, HashSet};
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

/// How the directory of a crawl ends whose bodies are being deleted.
const REMOVED: &str = ".removed";

/// What is read at once in the search for a record.
const WINDOW_BYTES: u64 = 1 << 20;

/// All segments of a store.
pub struct Segments {
    disk: Arc<dyn Disk>,
    /// Protects the table of open files.
    open: Mutex<HashMap<(CrawlNo, u32), Arc<dyn DiskFile>>>,
    /// Protects the list of segments that this process writes: what they hold beyond the committed end is
    /// its own, and was not committed.
    written: Mutex<HashSet<(CrawlNo, u32)>>,
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
        let begun = self.writer(crawl, end);
        let (file, mut end) =
            begun.map_err(|error| io_error(format!("write the segments of {crawl}"), error))?;
        let named = |error| io_error(format!("write {}", segment_path(crawl, end.segment)), error);
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
        let mut dirs = self.dirs()?;
        dirs.retain(|dir| crawl_set_aside(dir).is_none());
        Ok(dirs)
    }

    fn half_removed(&self) -> Result<Vec<CrawlNo>, StoreError> {
        Ok(self.dirs()?.iter().filter_map(|dir| crawl_set_aside(dir)).collect())
    }

    fn remove(&self, crawl: CrawlNo, files_max: usize) -> Result<bool, StoreError> {
        self.table().retain(|(owner, _), _| *owner != crawl);
        self.written().retain(|(owner, _)| *owner != crawl);
        let (dir, aside) = (crawl.to_string(), format!("{crawl}{REMOVED}"));
        let named = |error| io_error(format!("delete bodies/{dir}"), error);
        let dirs = self.dirs()?;
        let (is_there, is_aside) = (dirs.contains(&dir), dirs.contains(&aside));
        // In one step, so that whoever reads the bodies without the rows never takes some of them for all.
        if is_there && !is_aside {
            self.disk.rename_dir(&dir, &aside).map_err(named)?;
        }
        if !self.disk.remove_dir(&aside, files_max).map_err(named)? {
            return Ok(false);
        }
        // Before anybody forgets that they were to be deleted: entries that nobody syncs come back.
        self.disk.sync_dir("").map_err(named)?;
        Ok(!(is_there && is_aside))
    }
}

impl Segments {
    /// Segments on a disk.
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, open: Mutex::default(), written: Mutex::default() }
    }

    fn dirs(&self) -> Result<Vec<String>, StoreError> {
        self.disk.dirs().map_err(|error| io_error("list the bodies", error))
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

    /// The file to append to, and from where on.
    fn writer(
        &self,
        crawl: CrawlNo,
        end: BodiesEnd,
    ) -> std::io::Result<(Arc<dyn DiskFile>, BodiesEnd)> {
        if (1..SEGMENT_BYTES).contains(&end.len)
            && let Some(file) = self.continued(crawl, end)?
        {
            return Ok((file, end));
        }
        self.disk.create_dir(&crawl.to_string())?;
        let mut segment = end.segment + 1;
        let file = loop {
            let file = self.disk.create(&segment_path(crawl, segment))?;
            if self.may_cut(crawl, BodiesEnd { segment, len: 0 }, file.as_ref())? {
                break file;
            }
            segment += 1;
        };
        file.truncate(0)?;
        self.disk.sync_dir(&crawl.to_string())?;
        self.table().insert((crawl, segment), Arc::clone(&file));
        self.written().insert((crawl, segment));
        Ok((file, BodiesEnd { segment, len: 0 }))
    }

    /// The segment that ends where it was committed, without anything behind that; `None` if it is left
    /// as it is.
    fn continued(
        &self,
        crawl: CrawlNo,
        end: BodiesEnd,
    ) -> std::io::Result<Option<Arc<dyn DiskFile>>> {
        let left = |why: &str| {
            let segment = segment_path(crawl, end.segment);
            tracing::warn!(segment, committed = end.len, why, "a new segment begins");
        };
        let file = match self.file(crawl, end.segment) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                left("it is gone");
                return Ok(None);
            }
            file => file?,
        };
        let len = file.len()?;
        if len < end.len {
            left("it is shorter than was committed");
            return Ok(None);
        }
        if len > end.len {
            if !self.may_cut(crawl, end, file.as_ref())? {
                left("it has whole records behind what was committed");
                return Ok(None);
            }
            file.truncate(end.len)?;
        }
        self.written().insert((crawl, end.segment));
        Ok(Some(file))
    }

    /// Whether nothing can be lost by cutting a segment here: this process wrote what follows and did not
    /// commit it, or there is no whole record in it.
    fn may_cut(
        &self,
        crawl: CrawlNo,
        end: BodiesEnd,
        file: &dyn DiskFile,
    ) -> std::io::Result<bool> {
        if self.written().contains(&(crawl, end.segment)) {
            return Ok(true);
        }
        Ok(!has_record_from(file, end.len)?)
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

    fn written(&self) -> std::sync::MutexGuard<'_, HashSet<(CrawlNo, u32)>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a whole record begins anywhere from an offset on: the first ones may be torn.
fn has_record_from(file: &dyn DiskFile, offset: u64) -> std::io::Result<bool> {
    let len = file.len()?;
    let mut window = Vec::new();
    let mut at = offset;
    while len.saturating_sub(at) >= warc::LEAD_BYTES as u64 {
        let bytes = (len - at).min(WINDOW_BYTES);
        window.resize(usize::try_from(bytes).expect("a window fits into memory"), 0);
        file.read_at(at, &mut window)?;
        for (place, lead) in window.windows(warc::LEAD_BYTES).enumerate() {
            let record = at + place as u64;
            let Some(blob_bytes) = warc::blob_bytes(lead) else { continue };
            if blob_bytes > len - record {
                continue;
            }
            let mut blob = vec![0; usize::try_from(blob_bytes).unwrap_or(usize::MAX)];
            file.read_at(record, &mut blob)?;
            if warc::is_whole(&blob) {
                return Ok(true);
            }
        }
        // The last bytes are looked at again: a record may begin in them.
        at += bytes - (warc::LEAD_BYTES as u64 - 1);
    }
    Ok(false)
}

/// The crawl whose bodies are being deleted in a directory of this name.
fn crawl_set_aside(dir: &str) -> Option<CrawlNo> {
    let alias = dir.strip_suffix(REMOVED)?;
    let no = CrawlNo(alias.strip_prefix("crawl_")?.parse().ok()?);
    (no.to_string() == alias).then_some(no)
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
