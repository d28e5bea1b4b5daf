//! The coding `zstd`, one or several frames.

use zstd::stream::raw::{DParameter, Decoder, Operation};

use super::{NotDecodable, Step};

/// 8 MiB, what RFC 9659 lets the web use. A frame of 88 bytes may ask for 2 GiB otherwise.
const WINDOW_LOG_MAX: u32 = 23;

pub(super) struct Zstandard {
    decoder: Decoder<'static>,
    /// Between two frames, or before the first.
    is_between: bool,
}

impl Zstandard {
    pub(super) fn new() -> Result<Self, NotDecodable> {
        let mut decoder = Decoder::new().map_err(not_decodable)?;
        let window = DParameter::WindowLogMax(WINDOW_LOG_MAX);
        decoder.set_parameter(window).map_err(not_decodable)?;
        Ok(Self { decoder, is_between: true })
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_between
    }

    pub(super) fn step(&mut self, sent: &[u8], piece: &mut [u8]) -> Result<Step, NotDecodable> {
        if self.is_between && sent.is_empty() {
            return Ok(Step { consumed: 0, made: 0, ended: false });
        }
        let status = self.decoder.run_on_buffers(sent, piece).map_err(not_decodable)?;
        self.is_between = status.remaining == 0;
        Ok(Step { consumed: status.bytes_read, made: status.bytes_written, ended: false })
    }
}

fn not_decodable(error: std::io::Error) -> NotDecodable {
    NotDecodable(format!("zstd: {error}"))
}
