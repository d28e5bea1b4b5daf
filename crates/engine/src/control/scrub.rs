//! Reads everything that is stored at a given pace, and says what is damaged.

use std::time::{Duration, Instant};

use telusur_index::{IndexError, SearchIndex};
use telusur_ledger::{ScrubState, Store, StoreError};
use telusur_model::Timestamp;

use super::operation::Each;
use crate::error::RequestError;

/// What is read between two pauses, and between two lines about progress: so much that writing down how far
/// it came costs little, and so little that a kill costs little.
const PIECE_BYTES_MAX: u64 = 8 << 20;
/// The same of a slow pace: pieces of a quarter of a second.
const PIECES_PER_SECOND: u64 = 4;

/// Reads from where the last reading ended up to the end, no faster than this; 0 is as fast as it goes.
pub(super) fn scrub(
    store: &dyn Store,
    index: Option<&SearchIndex>,
    bytes_per_second: u64,
    wall: impl Fn() -> Timestamp,
    each: Each<'_, ScrubState>,
) -> Result<(), RequestError> {
    let piece = piece_bytes(bytes_per_second);
    let mut before = store.scrubbed()?.filter(|state| state.ended_at.is_none());
    loop {
        let since = Instant::now();
        let mut state = store.scrub(piece, wall())?;
        let is_over = state.ended_at.is_some();
        if is_over {
            index.map_or(Ok(()), |index| check_index(index, &mut state))?;
        }
        let read = state.bytes - before.map_or(0, |before| before.bytes);
        before = Some(state.clone());
        if !each(state) || is_over {
            return Ok(());
        }
        std::thread::sleep(pause(read, bytes_per_second).saturating_sub(since.elapsed()));
    }
}

/// What is read at once at a pace.
pub fn piece_bytes(bytes_per_second: u64) -> u64 {
    match bytes_per_second {
        0 => PIECE_BYTES_MAX,
        pace => (pace / PIECES_PER_SECOND).clamp(1, PIECE_BYTES_MAX),
    }
}

/// How long reading this much takes at a pace.
pub fn pause(bytes: u64, bytes_per_second: u64) -> Duration {
    match bytes.saturating_mul(1000).checked_div(bytes_per_second) {
        Some(ms) => Duration::from_millis(ms),
        None => Duration::ZERO,
    }
}

/// The files of the index have checksums of their own. They are read in one go: the index is smaller than the
/// bodies.
fn check_index(index: &SearchIndex, state: &mut ScrubState) -> Result<(), StoreError> {
    match index.validate() {
        Err(error @ IndexError::Damaged(_)) => {
            state.add(format!("index/: {error}; build it again with: telusur index rebuild"));
        }
        // Another process writes it, which reads what it writes.
        Err(error) => tracing::info!(%error, "the search index is not read"),
        Ok(()) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_kept_in_pieces() {
        assert_eq!(piece_bytes(0), PIECE_BYTES_MAX);
        assert_eq!(piece_bytes(1_000_000), 250_000);
        assert_eq!(piece_bytes(1), 1);
        assert_eq!(piece_bytes(u64::MAX), PIECE_BYTES_MAX);
        assert_eq!(pause(250_000, 1_000_000), Duration::from_millis(250));
        assert_eq!(pause(250_000, 0), Duration::ZERO);
    }
}
