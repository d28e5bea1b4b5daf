//! The coding `br`. Its window is at most 16 MiB: the larger ones of the format's extension stay off.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::{NotDecodable, Step};

pub(super) struct Brotli {
    state: BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    is_untouched: bool,
    has_ended: bool,
}

impl Brotli {
    pub(super) fn new() -> Self {
        let allocator = StandardAlloc::default;
        let mut state = BrotliState::new(allocator(), allocator(), allocator());
        state.large_window = false;
        Self { state, is_untouched: true, has_ended: false }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_untouched || self.has_ended
    }

    pub(super) fn step(&mut self, sent: &[u8], piece: &mut [u8]) -> Result<Step, NotDecodable> {
        if self.has_ended || self.is_untouched && sent.is_empty() {
            return Ok(Step { consumed: sent.len(), made: 0, ended: self.has_ended });
        }
        self.is_untouched = false;
        let (mut consumed, mut made, mut total_made) = (0, 0, 0);
        let (mut sent_left, mut piece_left) = (sent.len(), piece.len());
        let result = BrotliDecompressStream(
            &mut sent_left,
            &mut consumed,
            sent,
            &mut piece_left,
            &mut made,
            piece,
            &mut total_made,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultFailure => {
                return Err(NotDecodable(format!("brotli: {:?}", self.state.error_code)));
            }
            BrotliResult::ResultSuccess => self.has_ended = true,
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
        }
        Ok(Step { consumed, made, ended: self.has_ended })
    }
}
