//! How the record of a step is kept in a segment: compressed, in a frame that zstd readers skip, behind its
//! hash. So a segment is a valid `.warc.zst` file for everybody else.

use std::io::Read;

use telusur_ledger::StoreError;
use xxhash_rust::xxh3::xxh3_64;

/// The second of the sixteen magic numbers of frames that zstd readers skip (RFC 8878, 3.1.2).
const STEP_FRAME: u32 = 0x184D_2A51;
/// Magic, length of what follows, hash of what follows the hash.
pub(crate) const HEAD_BYTES: usize = 4 + 4 + HASH_BYTES;
const HASH_BYTES: usize = 8;
/// Records are addresses, most of them much alike: level 1 takes a third less space than the levels below.
const LEVEL: i32 = 1;
/// The largest record that is unpacked.
const RECORD_BYTES_MAX: u64 = 1 << 30;

/// Packs the record of a step.
pub(crate) fn pack(record: &[u8]) -> Vec<u8> {
    let packed = zstd::bulk::compress(record, LEVEL).expect("compression into memory");
    let content_bytes = u32::try_from(HASH_BYTES + packed.len()).expect("far below 4 GiB");
    let mut frame = Vec::with_capacity(HEAD_BYTES + packed.len());
    frame.extend_from_slice(&STEP_FRAME.to_le_bytes());
    frame.extend_from_slice(&content_bytes.to_le_bytes());
    frame.extend_from_slice(&xxh3_64(&packed).to_le_bytes());
    frame.extend_from_slice(&packed);
    frame
}

/// The record in a frame.
pub(crate) fn unpack(frame: &[u8]) -> Result<Vec<u8>, StoreError> {
    let damaged = |what: &str| StoreError::Damaged(format!("the record of a step {what}"));
    let packed = checked(frame).ok_or_else(|| damaged("does not match its checksum"))?;
    let refuse = |_| damaged("cannot be decompressed");
    let mut record = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(refuse)?;
    decoder.take(RECORD_BYTES_MAX).read_to_end(&mut record).map_err(refuse)?;
    Ok(record)
}

/// The length of the frame that begins with these bytes, if they can be the beginning of one.
pub(crate) fn frame_bytes(head: &[u8]) -> Option<u64> {
    let number = |at: usize| head.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    let content_bytes = number(4).filter(|_| number(0) == Some(STEP_FRAME))?;
    let is_possible = content_bytes as usize >= HASH_BYTES && head.len() >= HEAD_BYTES;
    is_possible.then(|| 8 + u64::from(content_bytes))
}

/// Whether a frame is what was written.
pub(crate) fn is_whole(frame: &[u8]) -> bool {
    checked(frame).is_some()
}

fn checked(frame: &[u8]) -> Option<&[u8]> {
    let bytes = frame_bytes(frame)?;
    let (head, packed) = frame.split_at_checked(HEAD_BYTES)?;
    let hash = u64::from_le_bytes(head[8..].try_into().ok()?);
    (bytes == frame.len() as u64 && hash == xxh3_64(packed)).then_some(packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_skipped_by_others_and_read_by_us() {
        let record = b"a record of a step, a record of a step".repeat(50);
        let frame = pack(&record);
        assert!(frame.len() < record.len() / 2);
        assert_eq!(unpack(&frame).unwrap(), record);
        assert_eq!(frame_bytes(&frame), Some(frame.len() as u64));
        let page = zstd::bulk::compress(b"a page", 1).unwrap();
        let others = zstd::stream::decode_all([frame, page].concat().as_slice()).unwrap();
        assert_eq!(others, b"a page");
    }

    #[test]
    fn any_damage_is_noticed() {
        let frame = pack(b"the record of a step");
        for at in 0..frame.len() {
            let mut damaged = frame.clone();
            damaged[at] ^= 1;
            assert!(!is_whole(&damaged), "{at}");
            assert!(!is_whole(&frame[..at]), "{at}");
        }
    }
}
