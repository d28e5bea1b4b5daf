//! Finds what is in a segment: blobs, records of steps, and bytes that are neither.

use telusur_ledger::{BytesRange, Scanned};
use telusur_model::BlobRef;

use crate::disk::DiskFile;
use crate::{step_frame, warc};

/// What is read at once in the search for a record.
const WINDOW_BYTES: u64 = 1 << 20;
/// What must be known of a blob or record to tell how long it is.
const HEAD_BYTES: usize = if warc::LEAD_BYTES > step_frame::HEAD_BYTES {
    warc::LEAD_BYTES
} else {
    step_frame::HEAD_BYTES
};

/// Goes through a segment.
pub(crate) struct SegmentScan<'a> {
    file: &'a dyn DiskFile,
    segment: u32,
    at: u64,
    len: u64,
    /// What was found behind bytes that cannot be read, and is handed out next.
    found: Option<Whole>,
}

/// Something whole in a segment.
#[derive(Clone, Copy)]
pub(crate) struct Whole {
    kind: Kind,
    offset: u64,
    len: u64,
}

#[derive(Clone, Copy)]
enum Kind {
    Blob,
    Step,
}

impl<'a> SegmentScan<'a> {
    /// From an offset on.
    pub(crate) fn new(file: &'a dyn DiskFile, segment: u32, offset: u64) -> std::io::Result<Self> {
        Ok(Self { file, segment, at: offset, len: file.len()?, found: None })
    }

    /// What follows; `None` at the end of the segment.
    pub(crate) fn next(&mut self) -> std::io::Result<Option<Scanned>> {
        if let Some(whole) = self.found.take() {
            return Ok(Some(self.hand_out(whole)));
        }
        if self.at >= self.len {
            return Ok(None);
        }
        if let Some(whole) = whole_at(self.file, self.at, self.len)? {
            return Ok(Some(self.hand_out(whole)));
        }
        let first = self.at;
        self.found = next_whole(self.file, first + 1)?;
        let end = self.found.map_or(self.len, |whole| whole.offset);
        self.at = end;
        Ok(Some(Scanned::Unreadable(BytesRange { segment: self.segment, first, end })))
    }

    fn hand_out(&mut self, whole: Whole) -> Scanned {
        let Whole { kind, offset, len } = whole;
        self.at = offset + len;
        let len = u32::try_from(len).expect("its length was read out of four bytes");
        let place = BlobRef { segment: self.segment, offset, len };
        match kind {
            Kind::Blob => Scanned::Blob(place),
            Kind::Step => Scanned::Step(place),
        }
    }
}

/// The first whole blob or record that begins at an offset or behind it.
pub(crate) fn next_whole(file: &dyn DiskFile, offset: u64) -> std::io::Result<Option<Whole>> {
    let len = file.len()?;
    let mut window = Vec::new();
    let mut at = offset;
    while at < len {
        let bytes = (len - at).min(WINDOW_BYTES);
        window.resize(usize::try_from(bytes).expect("a window fits into memory"), 0);
        file.read_at(at, &mut window)?;
        let is_last = at + bytes == len;
        // The last bytes of a window are looked at with the next one: something may begin in them.
        let tail = if is_last { 0 } else { HEAD_BYTES - 1 };
        for place in 0..window.len() - tail {
            if possible_len(&window[place..]).is_some()
                && let Some(whole) = whole_at(file, at + place as u64, len)?
            {
                return Ok(Some(whole));
            }
        }
        at += bytes - tail as u64;
        if is_last {
            break;
        }
    }
    Ok(None)
}

/// What is at an offset, if it is whole. `len`: of the file.
fn whole_at(file: &dyn DiskFile, offset: u64, len: u64) -> std::io::Result<Option<Whole>> {
    let left = len - offset;
    let mut head = [0; HEAD_BYTES];
    let head_bytes = usize::try_from(left).unwrap_or(usize::MAX).min(HEAD_BYTES);
    file.read_at(offset, &mut head[..head_bytes])?;
    let Some((kind, bytes)) = possible_len(&head[..head_bytes]).filter(|(_, len)| *len <= left)
    else {
        return Ok(None);
    };
    let mut whole = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
    file.read_at(offset, &mut whole)?;
    let is_whole = match kind {
        Kind::Blob => warc::is_whole(&whole),
        Kind::Step => step_frame::is_whole(&whole),
    };
    Ok(is_whole.then_some(Whole { kind, offset, len: bytes }))
}

/// The kind and length of what begins with these bytes, if it can be a blob or a record. The length fits
/// into four bytes.
fn possible_len(head: &[u8]) -> Option<(Kind, u64)> {
    let blob = warc::blob_bytes(head).map(|bytes| (Kind::Blob, bytes));
    let found = blob.or_else(|| step_frame::frame_bytes(head).map(|bytes| (Kind::Step, bytes)))?;
    (found.1 <= u64::from(u32::MAX)).then_some(found)
}
