//! [`Segments`]: the append-only files that hold what came over the wire, a directory per crawl.
//!
//! The store's commit says how far each crawl's segments are valid ([`BodiesEnd`]). Bytes beyond
//! that end were never acknowledged: the next writer starts at the committed end and cuts them, unless
//! there are whole records among them. Those may have been committed by rows that were lost: they stay,
//! and so does a segment that is shorter than was committed. A new segment begins then.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use telusur_ledger::{BlobOrigin, Bodies, BodiesEnd, Body, KeptParts, Scanned, StoreError};
use telusur_model::{BlobRef, CrawlNo};
use xxhash_rust::xxh3::xxh3_64;

use crate::disk::{Disk, DiskFile};
use crate::segment_scan::{self, SegmentScan};
use crate::{io_error, step_frame, warc};

/// A new segment begins when one has grown past this: large enough for few files, small enough to
/// copy around.
const SEGMENT_BYTES: u64 = 256 << 20;
/// Segment files kept open for reading.
const OPEN_FILES_MAX: usize = 64;

/// How the directory of a crawl ends whose bodies are being deleted.
const REMOVED: &str = ".removed";

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
        record: impl FnOnce(&[BlobRef]) -> Vec<u8>,
    ) -> Result<BodiesEnd, StoreError> {
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
        bytes.extend_from_slice(&step_frame::pack(&record(&places)));
        file.write_at(end.len, &bytes).map_err(named)?;
        file.sync().map_err(named)?;
        end.len += bytes.len() as u64;
        Ok(end)
    }

    fn answer(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Body, StoreError> {
        let unpacked = warc::unpack_answer(&self.read(crawl, blob)?);
        unpacked.map_err(|error| named(crawl, blob, error))
    }

    fn extract(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Vec<u8>, StoreError> {
        let unpacked = warc::unpack_extract(&self.read(crawl, blob)?);
        unpacked.map_err(|error| named(crawl, blob, error))
    }

    fn origin(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Option<BlobOrigin>, StoreError> {
        let unpacked = warc::unpack_origin(&self.read(crawl, blob)?);
        unpacked.map_err(|error| named(crawl, blob, error))
    }

    fn step_record(&self, crawl: CrawlNo, place: BlobRef) -> Result<Vec<u8>, StoreError> {
        let unpacked = step_frame::unpack(&self.read(crawl, place)?);
        unpacked.map_err(|error| named(crawl, place, error))
    }

    fn is_whole(&self, crawl: CrawlNo, blob: BlobRef) -> Result<bool, StoreError> {
        match self.read(crawl, blob) {
            Ok(bytes) => Ok(warc::is_whole(&bytes)),
            Err(StoreError::Damaged(_)) => Ok(false),
            Err(error) => Err(error),
        }
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

    fn has_more(&self, crawl: CrawlNo, end: BodiesEnd) -> Result<bool, StoreError> {
        let looked = |error| io_error(format!("look at the segments of {crawl}"), error);
        let len = self.len_if_there(crawl, end.segment).map_err(looked)?;
        if len.is_some_and(|len| len > end.len) {
            return Ok(true);
        }
        let next = self.len_if_there(crawl, end.segment + 1).map_err(looked)?;
        Ok(next.is_some_and(|len| len > 0))
    }

    fn scan(
        &self,
        crawl: CrawlNo,
        from: BodiesEnd,
        each: &mut dyn FnMut(Scanned) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        let listed = self.segments_of(crawl);
        let listed = listed.map_err(|error| io_error(format!("list bodies/{crawl}"), error))?;
        for segment in listed.into_iter().filter(|segment| *segment >= from.segment) {
            let path = segment_path(crawl, segment);
            let read = |error| io_error(format!("read bodies/{path}"), error);
            let file = self.file(crawl, segment).map_err(read)?;
            let begin = if segment == from.segment { from.len } else { 0 };
            let mut items = SegmentScan::new(file.as_ref(), segment, begin).map_err(read)?;
            while let Some(item) = items.next().map_err(read)? {
                if each(item)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn put_settings(&self, crawl: CrawlNo, json: &[u8]) -> Result<(), StoreError> {
        let path = settings_path(crawl);
        let new = format!("{path}.new");
        let write = || {
            let file = self.disk.create(&new)?;
            // What an attempt left that was cut short.
            file.truncate(0)?;
            file.write_at(0, &settings_text(json))?;
            file.sync()?;
            self.disk.rename_file(&new, &path)?;
            self.disk.sync_dir(&crawl.to_string())
        };
        write().map_err(|error| io_error(format!("write bodies/{path}"), error))
    }

    fn settings(&self, crawl: CrawlNo) -> Result<Option<Vec<u8>>, StoreError> {
        let path = settings_path(crawl);
        let read = || {
            let file = self.disk.open(&path)?;
            let mut text = vec![0; usize::try_from(file.len()?).unwrap_or(usize::MAX)];
            file.read_at(0, &mut text)?;
            Ok(text)
        };
        match read() {
            Ok(text) => Ok(checked_settings(&text)),
            Err(error) if is_not_there(&error) => Ok(None),
            Err(error) => Err(io_error(format!("read bodies/{path}"), error)),
        }
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

    /// The first segment up to a committed end that is shorter than it was, and what it lacks. One that another
    /// follows was full, or was left because it was damaged.
    pub(crate) fn first_short(
        &self,
        crawl: CrawlNo,
        end: BodiesEnd,
    ) -> Result<Option<(String, String)>, StoreError> {
        for segment in 1..=end.segment {
            let path = format!("bodies/{}", segment_path(crawl, segment));
            let len = self.len_if_there(crawl, segment);
            let len = len.map_err(|error| io_error(format!("look at {path}"), error))?.unwrap_or(0);
            let committed = if segment == end.segment { end.len } else { SEGMENT_BYTES };
            if len < committed {
                let what = format!("it has {len} bytes, and {committed} were written");
                return Ok(Some((path, what)));
            }
        }
        Ok(None)
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

    /// The numbers of a crawl's segments, in order.
    fn segments_of(&self, crawl: CrawlNo) -> std::io::Result<Vec<u32>> {
        let files = match self.disk.files(&crawl.to_string()) {
            Err(error) if is_not_there(&error) => Vec::new(),
            files => files?,
        };
        let mut numbers: Vec<u32> = files.iter().filter_map(|name| segment_number(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The length of a segment; `None` if it does not exist.
    fn len_if_there(&self, crawl: CrawlNo, segment: u32) -> std::io::Result<Option<u64>> {
        if let Some(file) = self.table().get(&(crawl, segment)) {
            return file.len().map(Some);
        }
        match self.disk.open(&segment_path(crawl, segment)).and_then(|file| file.len()) {
            Ok(len) => Ok(Some(len)),
            Err(error) if is_not_there(&error) => Ok(None),
            Err(error) => Err(error),
        }
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
    Ok(segment_scan::next_whole(file, offset)?.is_some())
}

/// The settings of a crawl as a file: JSON, and a line with its hash.
fn settings_text(json: &[u8]) -> Vec<u8> {
    [json, format!("\n{:016x}\n", xxh3_64(json)).as_bytes()].concat()
}

/// The settings in a file, unless they were damaged or torn.
fn checked_settings(text: &[u8]) -> Option<Vec<u8>> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    let json = &text[..end];
    (settings_text(json) == text).then(|| json.to_vec())
}

fn settings_path(crawl: CrawlNo) -> String {
    format!("{crawl}/crawl.json")
}

/// The number of a segment by the name of its file.
fn segment_number(name: &str) -> Option<u32> {
    let number = name.strip_suffix(".warc.zst")?;
    (number.len() == 8).then(|| number.parse().ok())?
}

fn is_not_there(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
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
