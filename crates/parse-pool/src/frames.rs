//! What parent and child say to each other: length-prefixed frames over a byte stream.
//!
//! A frame is its kind (one byte), the lengths of its head and of its body (four bytes each, little
//! endian), the head (postcard) and the body (raw bytes: what came from the web is never
//! re-encoded). The child speaks first, a [`Hello`]; from then on pages come in batches, a frame each
//! whose body is that of all its pages, and each page gets one answer, in order, followed by the CPU
//! time that it took. Nothing here trusts the other side: a frame that is too large, unknown or malformed is an error, and memory is taken
//! only for bytes that have arrived.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use telusur_model::{PageContent, PageUrl, ParsedPage, RawPage, SearchPage};

use crate::jail::JailReport;
use crate::parser::VisibleText;

/// Largest frame, both ways. The default limit of a body is 1 MiB; what is in a page (text, tables,
/// scripts) is a small multiple of its body, and a child has 256 MiB for the whole of its work.
pub const FRAME_BYTES_MAX: usize = 64 << 20;

/// Changed whenever frames change. Parent and child are the same program, so that a difference
/// means that something else answered.
const VERSION: u16 = 5;
const MAGIC: [u8; 4] = *b"TLSR";
const HEADER_BYTES: usize = 9;
/// Bytes that are read at once. A peer that announces 64 MiB and sends nothing costs no more than this.
const PIECE_BYTES: usize = 1 << 20;

/// Why there is no frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other side closed the stream between two frames.
    #[error("the stream has ended")]
    Ended,
    /// The stream failed, or ended within a frame.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// More than [`FRAME_BYTES_MAX`].
    #[error("a frame of {bytes} bytes, {FRAME_BYTES_MAX} is the limit")]
    TooLarge {
        /// The announced size.
        bytes: usize,
    },
    /// Not what the protocol allows here.
    #[error("a malformed frame: {0}")]
    Malformed(String),
}

/// The first frame of a child, after it has locked itself in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    magic: [u8; 4],
    version: u16,
    /// The walls around the child.
    pub jail: JailReport,
}

impl Hello {
    /// The greeting of this version.
    pub fn new(jail: JailReport) -> Self {
        Self { magic: MAGIC, version: VERSION, jail }
    }
}

/// How much of a page is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Depth {
    /// What a crawl goes by: its answer is [`Answer::Parsed`].
    Crawl(VisibleText),
    /// The same with what a search goes by: its answer is [`Answer::ForSearch`].
    Search(VisibleText),
    /// Everything that is in it: its answer is [`Answer::Read`].
    Everything,
}

/// Pages that are read together, as they come in: each body is taken off the stream when its turn has
/// come. Were all taken at once, the first would have left the processor's cache when the last is there.
pub struct Batch {
    depth: Depth,
    /// Pages that are off the stream and were not asked for yet.
    ahead: VecDeque<RawPage>,
    /// Pages whose bodies are still on the stream.
    left: std::vec::IntoIter<PageHead>,
}

impl Batch {
    /// Reads how a batch begins.
    pub fn read(source: &mut impl Read) -> Result<Self, FrameError> {
        let Header { kind, head_bytes, body_bytes } = Header::read(source)?;
        let frame = Frame { kind, head: read_bytes(source, head_bytes)? };
        let BatchHead { depth, pages } = frame.decode(Kind::Batch)?;
        let bodies = pages.iter().try_fold(0_usize, |sum, page| sum.checked_add(page.body_bytes));
        if pages.is_empty() || bodies != Some(body_bytes) {
            return Err(FrameError::Malformed("a batch whose pages are not its body".to_owned()));
        }
        Ok(Self { depth, ahead: VecDeque::new(), left: pages.into_iter() })
    }

    /// How much of its pages is wanted.
    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// Reads the next page; `None` behind the last one.
    pub fn next_page(&mut self, source: &mut impl Read) -> Result<Option<RawPage>, FrameError> {
        match self.ahead.pop_front() {
            Some(page) => Ok(Some(page)),
            None => self.read_page(source),
        }
    }

    /// Takes all pages off the stream. Must be called before a reply is written:
    /// the other side reads when it has sent everything.
    pub fn take_off(&mut self, source: &mut impl Read) -> Result<(), FrameError> {
        while let Some(page) = self.read_page(source)? {
            self.ahead.push_back(page);
        }
        Ok(())
    }

    fn read_page(&mut self, source: &mut impl Read) -> Result<Option<RawPage>, FrameError> {
        let Some(head) = self.left.next() else { return Ok(None) };
        let PageHead { url, status, headers, truncated, wire_bytes, body_bytes } = head;
        let body = read_bytes(source, body_bytes)?;
        Ok(Some(RawPage { url, status, headers, body, truncated, wire_bytes }))
    }

    /// Reads all pages that are left.
    pub fn pages(mut self, source: &mut impl Read) -> Result<Vec<RawPage>, FrameError> {
        self.take_off(source)?;
        Ok(self.ahead.into())
    }
}

/// What a child makes of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseReply {
    /// What a crawl goes by.
    Parsed(Box<ParsedPage>),
    /// What a crawl and a search go by.
    ForSearch(Box<SearchPage>),
    /// Everything that is in it.
    Read(Box<PageContent>),
    /// The parser panicked; parsing is pure, so it would again.
    Panicked(String),
    /// What is in the page does not fit in a frame.
    TooLarge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hello = 1,
    Batch = 2,
    Parsed = 3,
    Panicked = 4,
    AnswerTooLarge = 5,
    Read = 6,
    ForSearch = 7,
    Took = 8,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        let answers =
            [Self::Parsed, Self::ForSearch, Self::Read, Self::Panicked, Self::AnswerTooLarge];
        [Self::Hello, Self::Batch, Self::Took]
            .into_iter()
            .chain(answers)
            .find(|kind| *kind as u8 == byte)
    }
}

/// The head of a batch. `BatchHead` is its owned form: both have the same fields in the same order,
/// which is all that postcard writes.
#[derive(Serialize)]
struct BatchHeadRef<'a> {
    depth: Depth,
    pages: Vec<PageHeadRef<'a>>,
}

#[derive(Deserialize)]
struct BatchHead {
    depth: Depth,
    pages: Vec<PageHead>,
}

/// A page without its body, of which only the length is said: the bodies of a batch are one piece.
#[derive(Serialize)]
struct PageHeadRef<'a> {
    url: &'a PageUrl,
    status: u16,
    headers: &'a [(String, String)],
    truncated: bool,
    wire_bytes: u64,
    body_bytes: usize,
}

#[derive(Deserialize)]
struct PageHead {
    url: PageUrl,
    status: u16,
    headers: Vec<(String, String)>,
    truncated: bool,
    wire_bytes: u64,
    body_bytes: usize,
}

/// A frame as it arrived.
#[derive(Debug)]
pub struct Frame {
    kind: Kind,
    head: Bytes,
}

/// What stands in front of a frame.
struct Header {
    kind: Kind,
    head_bytes: usize,
    body_bytes: usize,
}

impl Header {
    fn read(source: &mut impl Read) -> Result<Self, FrameError> {
        let mut header = [0; HEADER_BYTES];
        read_header(source, &mut header)?;
        let [kind, lengths @ ..] = header;
        let kind = Kind::of(kind)
            .ok_or_else(|| FrameError::Malformed(format!("unknown kind of frame {kind}")))?;
        let length = |at: usize| {
            let bytes = lengths[at..at + 4].try_into().expect("a slice of four bytes");
            u32::from_le_bytes(bytes) as usize
        };
        let (head_bytes, body_bytes) = (length(0), length(4));
        let bytes = head_bytes.saturating_add(body_bytes);
        if bytes > FRAME_BYTES_MAX {
            return Err(FrameError::TooLarge { bytes });
        }
        Ok(Self { kind, head_bytes, body_bytes })
    }
}

impl Frame {
    /// Reads one frame without a body.
    pub fn read(source: &mut impl Read) -> Result<Self, FrameError> {
        let Header { kind, head_bytes, body_bytes } = Header::read(source)?;
        if body_bytes > 0 {
            return Err(FrameError::Malformed(format!("a {kind:?} with a body")));
        }
        Ok(Self { kind, head: read_bytes(source, head_bytes)? })
    }

    /// The greeting, of this version.
    pub fn into_hello(self) -> Result<Hello, FrameError> {
        let hello: Hello = self.decode(Kind::Hello)?;
        if hello.magic != MAGIC || hello.version != VERSION {
            let text = format!("version {}, not {VERSION}", hello.version);
            return Err(FrameError::Malformed(text));
        }
        Ok(hello)
    }

    /// The result for a page that was to be read this deeply.
    pub fn into_answer(self, depth: Depth) -> Result<ParseReply, FrameError> {
        match (self.kind, depth) {
            (Kind::Panicked, _) => self.decode(Kind::Panicked).map(ParseReply::Panicked),
            (Kind::AnswerTooLarge, _) => Ok(ParseReply::TooLarge),
            (_, Depth::Crawl(_)) => self.decode(Kind::Parsed).map(Box::new).map(ParseReply::Parsed),
            (_, Depth::Search(_)) => {
                self.decode(Kind::ForSearch).map(Box::new).map(ParseReply::ForSearch)
            }
            (_, Depth::Everything) => self.decode(Kind::Read).map(Box::new).map(ParseReply::Read),
        }
    }

    /// The CPU time that the child says the page before took.
    pub fn into_took(self) -> Result<Duration, FrameError> {
        self.decode(Kind::Took).map(Duration::from_micros)
    }

    fn decode<T: for<'de> Deserialize<'de>>(&self, expected: Kind) -> Result<T, FrameError> {
        if self.kind != expected {
            let text = format!("a {:?} where a {expected:?} was expected", self.kind);
            return Err(FrameError::Malformed(text));
        }
        match postcard::take_from_bytes(&self.head) {
            Ok((value, [])) => Ok(value),
            Ok((_, rest)) => Err(FrameError::Malformed(format!("{} bytes too many", rest.len()))),
            Err(error) => Err(FrameError::Malformed(error.to_string())),
        }
    }
}

/// Sends the greeting.
pub fn send_hello(sink: &mut impl Write, hello: &Hello) -> Result<(), FrameError> {
    let mut frame = Vec::new();
    append(&mut frame, Kind::Hello, hello, 0)?;
    Ok(sink.write_all(&frame)?)
}

/// Sends a batch of pages. Their bodies go out from where they are.
pub fn send_batch(
    sink: &mut impl Write,
    depth: Depth,
    pages: &[&RawPage],
) -> Result<(), FrameError> {
    let heads = pages.iter().map(|page| PageHeadRef {
        url: &page.url,
        status: page.status,
        headers: &page.headers,
        truncated: page.truncated,
        wire_bytes: page.wire_bytes,
        body_bytes: page.body.len(),
    });
    let head = BatchHeadRef { depth, pages: heads.collect() };
    let body_bytes = pages.iter().fold(0_usize, |sum, page| sum.saturating_add(page.body.len()));
    let mut frame = Vec::new();
    append(&mut frame, Kind::Batch, &head, body_bytes)?;
    let pieces = std::iter::once(&frame[..]).chain(pages.iter().map(|page| &page.body[..]));
    let mut pieces: Vec<_> = pieces.map(IoSlice::new).collect();
    write_all_vectored(sink, &mut pieces)
}

/// Appends the result for a page to the bytes to send. One that does not fit in a
/// frame becomes [`Answer::TooLarge`].
pub fn append_answer(outbox: &mut Vec<u8>, answer: &ParseReply) -> Result<(), FrameError> {
    let appended = match answer {
        ParseReply::Parsed(parsed) => append(outbox, Kind::Parsed, parsed, 0),
        ParseReply::ForSearch(read) => append(outbox, Kind::ForSearch, read, 0),
        ParseReply::Read(content) => append(outbox, Kind::Read, content, 0),
        ParseReply::Panicked(text) => append(outbox, Kind::Panicked, text, 0),
        ParseReply::TooLarge => append(outbox, Kind::AnswerTooLarge, &(), 0),
    };
    match appended {
        Err(FrameError::TooLarge { .. }) => append_answer(outbox, &ParseReply::TooLarge),
        appended => appended,
    }
}

/// Puts the CPU time of a page behind its answer.
pub fn append_took(outbox: &mut Vec<u8>, cpu: Duration) -> Result<(), FrameError> {
    let micros = u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX);
    append(outbox, Kind::Took, &micros, 0)
}

/// Puts header and head of a frame behind what is in `frames`. If it is too large, nothing is.
fn append(
    frames: &mut Vec<u8>,
    kind: Kind,
    head: &impl Serialize,
    body_bytes: usize,
) -> Result<(), FrameError> {
    let start = frames.len();
    frames.extend([0; HEADER_BYTES]);
    *frames = postcard::to_extend(head, std::mem::take(frames))
        .map_err(|error| FrameError::Malformed(error.to_string()))?;
    let head_bytes = frames.len() - start - HEADER_BYTES;
    let bytes = head_bytes.saturating_add(body_bytes);
    let (true, Ok(head_bytes), Ok(body_bytes)) =
        (bytes <= FRAME_BYTES_MAX, u32::try_from(head_bytes), u32::try_from(body_bytes))
    else {
        frames.truncate(start);
        return Err(FrameError::TooLarge { bytes });
    };
    let header = &mut frames[start..start + HEADER_BYTES];
    header[0] = kind as u8;
    header[1..5].copy_from_slice(&head_bytes.to_le_bytes());
    header[5..9].copy_from_slice(&body_bytes.to_le_bytes());
    Ok(())
}

fn write_all_vectored(
    sink: &mut impl Write,
    mut pieces: &mut [IoSlice<'_>],
) -> Result<(), FrameError> {
    // Empty pieces in front would look like a sink that takes nothing.
    IoSlice::advance_slices(&mut pieces, 0);
    while !pieces.is_empty() {
        match sink.write_vectored(pieces) {
            Ok(0) => return Err(FrameError::Io(io::ErrorKind::WriteZero.into())),
            Ok(sent) => IoSlice::advance_slices(&mut pieces, sent),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(FrameError::Io(error)),
        }
    }
    Ok(())
}

/// Like `read_exact`, but an end before the first byte is an orderly one.
fn read_header(source: &mut impl Read, header: &mut [u8]) -> Result<(), FrameError> {
    let mut filled = 0;
    while filled < header.len() {
        match source.read(&mut header[filled..]) {
            Ok(0) if filled == 0 => return Err(FrameError::Ended),
            Ok(0) => return Err(FrameError::Io(io::ErrorKind::UnexpectedEof.into())),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(FrameError::Io(error)),
        }
    }
    Ok(())
}

fn read_bytes(source: &mut impl Read, count: usize) -> Result<Bytes, FrameError> {
    let mut bytes = Vec::new();
    while bytes.len() < count {
        let left = count - bytes.len();
        let piece_bytes = PIECE_BYTES.min(left);
        bytes.reserve_exact(if bytes.is_empty() { piece_bytes } else { left });
        // Reads into memory as it is: clearing it first would cost a tenth of a small page.
        let read = source.by_ref().take(piece_bytes as u64).read_to_end(&mut bytes)?;
        if read < piece_bytes {
            return Err(FrameError::Io(io::ErrorKind::UnexpectedEof.into()));
        }
    }
    Ok(Bytes::from(bytes))
}

#[cfg(test)]
mod tests;
