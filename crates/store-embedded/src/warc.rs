//! How a page becomes a blob: the answer, or what was extracted from it, as a WARC record in a zstd
//! frame of its own, behind a small frame that holds its length and its hash.
//!
//! zstd tools skip the small frame, so a segment is a valid `.warc.zst` file for everybody else;
//! for us it makes damage visible before anything is decompressed.

use std::cell::RefCell;
use std::fmt::Write;

use telusur_ledger::{BlobOrigin, Body, KeptParts, StoreError};
use telusur_model::{RawPage, Timestamp};
use xxhash_rust::xxh3::xxh3_64;

/// First of the sixteen magic numbers of frames that zstd readers skip (RFC 8878, 3.1.2).
const SKIPPED_FRAME: u32 = 0x184D_2A50;
/// Magic, length of what follows, length of the zstd frame, hash of the zstd frame.
pub(crate) const LEAD_BYTES: usize = 4 + 4 + 4 + 8;
/// What a reader skips in the small frame: length and hash.
const LEAD_CONTENT_BYTES: u32 = 4 + 8;
/// On pages of the web this level takes half the time of level 1 and a fifth more space.
const LEVEL: i32 = -1;
/// Largest blob that is unpacked: a body at the highest limit that can be set, with its extract.
const BLOB_BYTES_MAX: u64 = 4 << 30;
const TYPE_FIELD: &str = "WARC-Type: ";
const LENGTH_FIELD: &str = "Content-Length: ";
const RECORD_END: &[u8] = b"\r\n\r\n";

/// Packs what is kept of a page; `None` if nothing is.
pub(crate) fn pack(kept: &KeptParts<'_>) -> Option<Vec<u8>> {
    let body_bytes = kept.answer.map_or(0, |page| page.body.len());
    let mut records = Vec::with_capacity(body_bytes + kept.extract.map_or(0, <[u8]>::len) + 2048);
    if let Some(page) = kept.answer {
        let http = http_head(page);
        let kind = RecordKind::Response;
        push_record(&mut records, kept, kind, &[http.as_bytes(), &page.body]);
    }
    if let Some(json) = kept.extract {
        push_record(&mut records, kept, RecordKind::Metadata, &[json]);
    }
    if records.is_empty() {
        return None;
    }
    let mut blob = vec![0; LEAD_BYTES + zstd::zstd_safe::compress_bound(records.len())];
    let frame_bytes = compress(&records, &mut blob[LEAD_BYTES..]);
    blob.truncate(LEAD_BYTES + frame_bytes);
    let hash = xxh3_64(&blob[LEAD_BYTES..]);
    let frame_bytes = u32::try_from(frame_bytes).expect("a page is far below 4 GiB");
    blob[..4].copy_from_slice(&SKIPPED_FRAME.to_le_bytes());
    blob[4..8].copy_from_slice(&LEAD_CONTENT_BYTES.to_le_bytes());
    blob[8..12].copy_from_slice(&frame_bytes.to_le_bytes());
    blob[12..20].copy_from_slice(&hash.to_le_bytes());
    blob.shrink_to_fit();
    Some(blob)
}

/// The kinds of WARC record that a page is kept in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RecordKind {
    Response,
    Metadata,
}

impl RecordKind {
    fn word(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Metadata => "metadata",
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Response => "application/http;msgtype=response",
            Self::Metadata => "application/json",
        }
    }
}

fn http_head(page: &RawPage) -> String {
    let mut http = format!("HTTP/1.1 {}\r\n", page.status);
    for (name, value) in &page.headers {
        // The body is kept decoded and whole, so the headers that said otherwise get another name.
        let prefix = match name.as_str() {
            "content-encoding" | "transfer-encoding" | "content-length" => "x-archive-orig-",
            _ => "",
        };
        let _ = write!(http, "{prefix}{name}: {value}\r\n");
    }
    let _ = write!(http, "content-length: {}\r\n\r\n", page.body.len());
    http
}

fn push_record(records: &mut Vec<u8>, kept: &KeptParts<'_>, kind: RecordKind, parts: &[&[u8]]) {
    let content_bytes: usize = parts.iter().map(|part| part.len()).sum();
    records.extend_from_slice(record_head(kept, kind, content_bytes).as_bytes());
    parts.iter().for_each(|part| records.extend_from_slice(part));
    records.extend_from_slice(RECORD_END);
}

fn record_head(kept: &KeptParts<'_>, kind: RecordKind, content_bytes: usize) -> String {
    let identity = format!("{} {} {} {}", kept.crawl.id, kind.word(), kept.url, kept.at.0);
    let hex = blake3::hash(identity.as_bytes()).to_hex();
    format!(
        "WARC/1.1\r\nWARC-Type: {}\r\nWARC-Target-URI: {}\r\nWARC-Date: {}\r\n\
         WARC-Record-ID: <urn:uuid:{}-{}-{}-{}-{}>\r\nContent-Type: {}\r\n\
         {LENGTH_FIELD}{content_bytes}\r\n\r\n",
        kind.word(),
        kept.url,
        kept.at,
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..32],
        kind.content_type(),
    )
}

/// Compresses into `frame`, which has room for the worst case. Gives the length of the frame.
fn compress(records: &[u8], frame: &mut [u8]) -> usize {
    thread_local! {
        // A compressor's tables are a megabyte: made once per thread, not once per page.
        static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> =
            const { RefCell::new(None) };
    }
    COMPRESSOR.with_borrow_mut(|slot| {
        let compressor = slot.get_or_insert_with(|| {
            zstd::bulk::Compressor::new(LEVEL).expect("every zstd has this level")
        });
        compressor
            .compress_to_buffer(records, frame)
            .expect("the frame has room for the worst case")
    })
}

/// The raw answer in a blob: its HTTP head and its body.
pub(crate) fn unpack_answer(blob: &[u8]) -> Result<Body, StoreError> {
    let records = decompress(blob)?;
    let content = find_record(&records, RecordKind::Response)?;
    let head_end = find(content, b"\r\n\r\n").ok_or_else(|| damaged("has no HTTP head"))?;
    let head = String::from_utf8_lossy(&content[..head_end]).into_owned();
    Ok(Body { head, bytes: content[head_end + 4..].to_vec() })
}

/// The extract in a blob, as JSON.
pub(crate) fn unpack_extract(blob: &[u8]) -> Result<Vec<u8>, StoreError> {
    let records = decompress(blob)?;
    find_record(&records, RecordKind::Metadata).map(<[u8]>::to_vec)
}

fn decompress(blob: &[u8]) -> Result<Vec<u8>, StoreError> {
    let frame = checked_frame(blob).ok_or_else(|| damaged("does not match its checksum"))?;
    let refuse = |_| damaged("cannot be decompressed");
    let mut records = Vec::new();
    let mut decoder = zstd::stream::read::Decoder::with_buffer(frame).map_err(refuse)?;
    let mut bounded = std::io::Read::take(&mut decoder, BLOB_BYTES_MAX);
    std::io::Read::read_to_end(&mut bounded, &mut records).map_err(refuse)?;
    Ok(records)
}

/// What the records of a blob say of it; `None` if they name no page.
pub(crate) fn unpack_origin(blob: &[u8]) -> Result<Option<BlobOrigin>, StoreError> {
    let records = decompress(blob)?;
    let mut rest = records.as_slice();
    let mut origin: Option<BlobOrigin> = None;
    while let Some(record) = next_record(&mut rest)? {
        let url = record.field("WARC-Target-URI: ").map(str::to_owned);
        let at = record.field("WARC-Date: ").and_then(Timestamp::from_rfc3339);
        let (Some(url), Some(at)) = (url, at) else { return Ok(None) };
        let is_kind = |kind: RecordKind| record.field(TYPE_FIELD) == Some(kind.word());
        let (has_body, has_extract) =
            (is_kind(RecordKind::Response), is_kind(RecordKind::Metadata));
        origin = Some(match origin {
            None => BlobOrigin { url, at, has_body, has_extract },
            Some(known) => BlobOrigin {
                has_body: known.has_body || has_body,
                has_extract: known.has_extract || has_extract,
                ..known
            },
        });
    }
    Ok(origin)
}

/// The content of the first record of a kind.
fn find_record(mut records: &[u8], kind: RecordKind) -> Result<&[u8], StoreError> {
    while let Some(record) = next_record(&mut records)? {
        if record.field(TYPE_FIELD) == Some(kind.word()) {
            return Ok(record.content);
        }
    }
    Err(damaged("is not there"))
}

/// A WARC record.
struct Record<'a> {
    head: &'a str,
    content: &'a [u8],
}

impl<'a> Record<'a> {
    fn field(&self, name: &str) -> Option<&'a str> {
        self.head.lines().find_map(|line| line.strip_prefix(name))
    }
}

/// Takes the next record off.
fn next_record<'a>(records: &mut &'a [u8]) -> Result<Option<Record<'a>>, StoreError> {
    if records.is_empty() {
        return Ok(None);
    }
    let head_end = find(records, b"\r\n\r\n").ok_or_else(|| damaged("has no head"))?;
    let head = std::str::from_utf8(&records[..head_end]).map_err(|_| damaged("has no head"))?;
    let mut record = Record { head, content: &[] };
    let content_bytes: usize = record
        .field(LENGTH_FIELD)
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| damaged("does not say how long it is"))?;
    let start = head_end + 4;
    let end = start.checked_add(content_bytes).filter(|end| *end <= records.len());
    let end = end.ok_or_else(|| damaged("is cut"))?;
    record.content = &records[start..end];
    *records = records[end..].strip_prefix(RECORD_END).ok_or_else(|| damaged("has no end"))?;
    Ok(Some(record))
}

fn damaged(what: &str) -> StoreError {
    StoreError::Damaged(format!("a stored record {what}"))
}

/// The length of the blob that begins with these bytes, if they can be the beginning of one.
pub(crate) fn blob_bytes(lead: &[u8]) -> Option<u64> {
    let number = |at: usize| lead.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    let is_lead = number(0)? == SKIPPED_FRAME && number(4)? == LEAD_CONTENT_BYTES;
    let frame_bytes = number(8).filter(|_| is_lead)?;
    Some(LEAD_BYTES as u64 + u64::from(frame_bytes))
}

/// Whether a blob is what was written.
pub(crate) fn is_whole(blob: &[u8]) -> bool {
    checked_frame(blob).is_some()
}

fn checked_frame(blob: &[u8]) -> Option<&[u8]> {
    let (lead, frame) = blob.split_at_checked(LEAD_BYTES)?;
    let number = |range: std::ops::Range<usize>| lead[range].try_into().map(u32::from_le_bytes);
    let hash = u64::from_le_bytes(lead[12..20].try_into().ok()?);
    let right = number(0..4).ok()? == SKIPPED_FRAME
        && usize::try_from(number(8..12).ok()?).ok()? == frame.len()
        && hash == xxh3_64(frame);
    right.then_some(frame)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
