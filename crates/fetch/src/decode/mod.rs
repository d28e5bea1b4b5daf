//! [`Decoder`]: from the bytes of a body as sent to the bytes as meant, piece by piece. Never holds
//! or makes more than the limit on bodies, even of a decompression bomb.

mod brotli;
mod inflate;
mod zstandard;

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, TRANSFER_ENCODING};
use telusur_model::{Reason, is_content_coding, looks_binary};

use self::brotli::Brotli;
use self::inflate::Inflate;
use self::zstandard::Zstandard;
use crate::failure::Failure;

/// What we tell servers that we can read, best first.
pub(crate) const ACCEPT_ENCODING: &str = "gzip, br, zstd, deflate";

/// More than one coding is rare, more than two is an attack.
const CODINGS_MAX: usize = 2;

/// Decoded bytes are made in pieces of this size; a bomb overshoots the limit by at most one.
const PIECE_BYTES: usize = 32 * 1024;

/// Decodes one body, up to a limit.
pub(crate) struct Decoder {
    /// In the order in which they are undone.
    stages: Vec<Stage>,
    body: Vec<u8>,
    bytes_max: u64,
    /// A word that names no coding at all, such as a charset. The body is taken as it is if it is text.
    unknown_word: Option<String>,
}

struct Stage {
    coding: Coding,
    bytes_made: u64,
    piece: Box<[u8]>,
}

enum Coding {
    Inflate(Inflate),
    Brotli(Box<Brotli>),
    Zstandard(Zstandard),
}

/// One step of a coding.
struct Step {
    consumed: usize,
    made: usize,
    /// The coded stream is complete. What follows it is not part of the body.
    ended: bool,
}

/// Compressed bytes that mean nothing.
struct NotDecodable(String);

/// Whether a decoder takes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Left,
    /// The limit is reached; the body is cut there.
    None,
}

impl Decoder {
    /// A decoder for an answer with these headers, for at most `bytes_max` decoded bytes.
    pub(crate) fn new(headers: &HeaderMap, bytes_max: u64) -> Result<Self, Failure> {
        let mut stages = Vec::new();
        let mut unknown_word = None;
        for word in coding_words(headers)? {
            if !is_content_coding(&word) {
                unknown_word = Some(word);
                continue;
            }
            stages.push(Stage::new(&word)?);
            if stages.len() > CODINGS_MAX {
                let detail = format!("more than {CODINGS_MAX} content codings");
                return Err(Failure::never(Reason::DecodeError, detail));
            }
        }
        stages.reverse();
        Ok(Self { stages, body: Vec::new(), bytes_max, unknown_word })
    }

    /// Makes room for a body whose size was announced; only so far as it will be read.
    pub(crate) fn expect_bytes(&mut self, announced: u64) {
        /// An announcement costs the sender nothing, so it is believed only up to a usual page.
        const BELIEVED_BYTES_MAX: u64 = 256 * 1024;
        if self.stages.is_empty() {
            let believed = announced.min(self.bytes_max).min(BELIEVED_BYTES_MAX);
            self.body.reserve_exact(usize::try_from(believed).unwrap_or(0));
        }
    }

    /// Takes the next bytes as they were sent.
    pub(crate) fn push(&mut self, sent: &[u8]) -> Result<Room, Failure> {
        push(&mut self.stages, sent, &mut self.body, self.bytes_max).map_err(decode_error)
    }

    /// The most that is decoded.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// How much has been decoded so far.
    pub(crate) fn bytes_made(&self) -> usize {
        self.body.len()
    }

    /// The decoded body, after the last byte was pushed.
    pub(crate) fn finish(self) -> Result<Vec<u8>, Failure> {
        // An empty body with a coding is what servers send along with errors; it decodes to nothing.
        let is_cut = self.stages.iter().any(|stage| !stage.coding.is_complete());
        if is_cut {
            let detail = "the compressed body ends early";
            return Err(Failure::never(Reason::DecodeError, detail));
        }
        self.cut()
    }

    /// The body so far, of an answer that was cut at a limit.
    pub(crate) fn cut(self) -> Result<Vec<u8>, Failure> {
        match self.unknown_word {
            Some(word) if looks_binary(&self.body) => Err(not_known("content", &word)),
            _ => Ok(self.body),
        }
    }
}

/// Passes bytes through the first stage and on to the others; behind the last one is the body.
fn push(
    stages: &mut [Stage],
    mut sent: &[u8],
    body: &mut Vec<u8>,
    bytes_max: u64,
) -> Result<Room, NotDecodable> {
    let Some((stage, later)) = stages.split_first_mut() else {
        return Ok(append(body, sent, bytes_max));
    };
    loop {
        let step = stage.coding.step(sent, &mut stage.piece)?;
        sent = &sent[step.consumed..];
        stage.bytes_made += u64::try_from(step.made).unwrap_or(u64::MAX);
        let room = push(later, &stage.piece[..step.made], body, bytes_max)?;
        // Also between two stages no more is made than a body may have: an inner stage that turns
        // it all into nothing must not keep us busy for ever.
        if room == Room::None || stage.bytes_made > bytes_max {
            return Ok(Room::None);
        }
        // A full piece may have more behind it, which needs no further input.
        let is_drained = step.made < stage.piece.len();
        let wants_more_input = is_drained && (sent.is_empty() || step.consumed == 0);
        if step.ended || wants_more_input {
            return Ok(Room::Left);
        }
    }
}

fn append(body: &mut Vec<u8>, bytes: &[u8], bytes_max: u64) -> Room {
    let held = u64::try_from(body.len()).unwrap_or(u64::MAX);
    let room = usize::try_from(bytes_max.saturating_sub(held)).unwrap_or(usize::MAX);
    if bytes.len() > room {
        body.extend_from_slice(&bytes[..room]);
        return Room::None;
    }
    body.extend_from_slice(bytes);
    Room::Left
}

impl Stage {
    fn new(word: &str) -> Result<Self, Failure> {
        let coding = match word {
            "gzip" | "x-gzip" => Coding::Inflate(Inflate::gzip()),
            "deflate" => Coding::Inflate(Inflate::deflate()),
            "br" => Coding::Brotli(Box::new(Brotli::new())),
            "zstd" => Coding::Zstandard(Zstandard::new().map_err(decode_error)?),
            _ => return Err(not_known("content", word)),
        };
        Ok(Self { coding, bytes_made: 0, piece: vec![0; PIECE_BYTES].into_boxed_slice() })
    }
}

impl Coding {
    fn step(&mut self, sent: &[u8], piece: &mut [u8]) -> Result<Step, NotDecodable> {
        match self {
            Self::Inflate(coding) => coding.step(sent, piece),
            Self::Brotli(coding) => coding.step(sent, piece),
            Self::Zstandard(coding) => coding.step(sent, piece),
        }
    }

    /// Whether the bytes so far are a whole: a complete stream, or nothing at all.
    fn is_complete(&self) -> bool {
        match self {
            Self::Inflate(coding) => coding.is_complete(),
            Self::Brotli(coding) => coding.is_complete(),
            Self::Zstandard(coding) => coding.is_complete(),
        }
    }
}

/// The codings of an answer in the order in which they were applied, in lower case.
fn coding_words(headers: &HeaderMap) -> Result<Vec<String>, Failure> {
    // A transfer coding besides "chunked" was never asked for, and hyper does not undo it: the bytes
    // would pass for a page.
    let mut last_word = None;
    for word in words(headers, &TRANSFER_ENCODING) {
        // Chunks that are not the last thing that was done to a body are not undone, either.
        if word != "chunked" && word != "identity" || last_word.as_deref() == Some("chunked") {
            return Err(not_known("transfer", &word));
        }
        last_word = Some(word);
    }
    Ok(words(headers, &CONTENT_ENCODING).filter(|word| word != "identity").collect())
}

fn not_known(kind: &str, word: &str) -> Failure {
    Failure::never(Reason::UnsupportedEncoding, format!("the {kind} coding {word:?} is not known"))
}

/// The words of a header that is a list, in lower case.
pub(crate) fn words(headers: &HeaderMap, name: &http::HeaderName) -> impl Iterator<Item = String> {
    headers.get_all(name).into_iter().flat_map(|value| {
        let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        let words = text.split(',').map(|word| word.trim().to_owned());
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>()
    })
}

fn decode_error(NotDecodable(detail): NotDecodable) -> Failure {
    Failure::never(Reason::DecodeError, detail)
}

#[cfg(test)]
mod tests;
