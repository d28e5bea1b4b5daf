//! The codings `gzip` (one or several members) and `deflate` (with or without the zlib wrapper).

use flate2::{Decompress, FlushDecompress, Status};

use super::{NotDecodable, Step};

/// 32 KiB, the largest window of the format.
const WINDOW_BITS: u8 = 15;
/// The first byte of every gzip member.
const GZIP_MAGIC: u8 = 0x1f;

pub(super) struct Inflate {
    stream: Decompress,
    wrapper: Wrapper,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrapper {
    Gzip,
    Deflate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not one byte has come.
    Untouched,
    /// In the middle of a member.
    Within,
    /// A member is complete; another one may follow.
    Between,
    /// All that follows is ignored, as browsers do: servers pad with zeros and worse.
    Ended,
}

impl Inflate {
    pub(super) fn gzip() -> Self {
        let stream = Decompress::new_gzip(WINDOW_BITS);
        Self { stream, wrapper: Wrapper::Gzip, state: State::Untouched }
    }

    pub(super) fn deflate() -> Self {
        let stream = Decompress::new(true);
        Self { stream, wrapper: Wrapper::Deflate, state: State::Untouched }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.state != State::Within
    }

    pub(super) fn step(&mut self, sent: &[u8], piece: &mut [u8]) -> Result<Step, NotDecodable> {
        if let Some(&first) = sent.first() {
            self.begin(first);
        }
        if self.state != State::Within {
            let ended = self.state == State::Ended;
            return Ok(Step { consumed: sent.len(), made: 0, ended });
        }
        let (in_before, out_before) = (self.stream.total_in(), self.stream.total_out());
        let status = self
            .stream
            .decompress(sent, piece, FlushDecompress::None)
            .map_err(|error| NotDecodable(format!("inflate: {error}")))?;
        if status == Status::StreamEnd {
            self.state = match self.wrapper {
                Wrapper::Gzip => State::Between,
                Wrapper::Deflate => State::Ended,
            };
        }
        let consumed = count(self.stream.total_in() - in_before);
        let made = count(self.stream.total_out() - out_before);
        Ok(Step { consumed, made, ended: self.state == State::Ended })
    }

    /// Looks at the first byte where a stream or a member begins.
    fn begin(&mut self, first: u8) {
        match (self.state, self.wrapper) {
            (State::Untouched, Wrapper::Deflate) if !begins_zlib(first) => {
                self.stream = Decompress::new(false);
                self.state = State::Within;
            }
            (State::Untouched, _) => self.state = State::Within,
            (State::Between, _) if first == GZIP_MAGIC => {
                self.stream = Decompress::new_gzip(WINDOW_BITS);
                self.state = State::Within;
            }
            (State::Between, _) => self.state = State::Ended,
            (State::Within | State::Ended, _) => {}
        }
    }
}

/// The standard means zlib by `deflate`, but some servers send it bare. A zlib stream begins with
/// method 8; a bare one that begins like that would be a stored block with garbage in its padding.
fn begins_zlib(first: u8) -> bool {
    first & 0x0f == 8 && first >> 4 <= 7
}

fn count(bytes: u64) -> usize {
    usize::try_from(bytes).expect("one step stays within two slices")
}
