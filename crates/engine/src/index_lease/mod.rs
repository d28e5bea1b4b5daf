//! The index leased to a process of its own: `telusur index --follow`.
//!
//! The connection is the lease. The owner of the directory gives up writing the index and tells the
//! holder of every page that it stores, with its id and its URL; the holder asks for the changes that it has not
//! seen, from its own checkpoint on, and says when it has made them searchable. When the connection
//! closes, however that came about, the owner takes the index back and goes on from the last commit.
//! So a line that is lost costs time, and never a page.

mod holder;
mod owner;

use std::io::{self, BufRead, Read};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::followers::FollowedChange;

pub use self::holder::{
    FollowCounts, LeaseEnd, LeasedIndex, NotLeased, StopFollowing, lease_index,
};
pub(crate) use self::owner::{Hold, IndexOwner, Lease, LeaseHolder, Leases, refuse};

/// Longest line of a holder: they are a few numbers.
const REQUEST_BYTES_MAX: usize = 1024;
/// Longest line of a owner: a page of 64 MiB, the most that a parser gives back, with every byte
/// escaped. Memory is taken only for bytes that have arrived.
const REPLY_BYTES_MAX: usize = 512 << 20;

/// What a holder says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LeaseRequest {
    /// Wants the next changes.
    Next {
        /// Behind this place.
        after: u64,
        /// So many at most.
        pages_max: usize,
    },
    /// Has committed all it was given.
    Committed,
    /// Has worked out what links say.
    Digested,
}

/// What a owner says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LeaseReply {
    /// A page was stored.
    Stored {
        /// Its place in the order of all pages.
        page: u64,
        /// Its address.
        url: String,
    },
    /// Something else has changed.
    Look,
    /// A change that was asked for.
    Change(FollowedChange),
    /// Those were the changes.
    BatchEnd {
        /// The place of the last.
        upto: u64,
    },
    /// The index is wanted back.
    Recalled,
}

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
enum LineError {
    /// The other side closed the connection.
    #[error("the connection has ended")]
    Ended,
    /// Nothing came for a while. What came of the line is kept.
    #[error("nothing came")]
    Quiet,
    /// The connection failed.
    #[error(transparent)]
    Io(io::Error),
    /// Longer than any line is.
    #[error("a line of more than {0} bytes")]
    TooLong(usize),
    /// Not what the protocol allows here.
    #[error("a malformed line: {0}")]
    Malformed(serde_json::Error),
}

/// Reads lines of bounded length off a stream that may time out between two bytes.
struct Lines<R> {
    stream: R,
    bytes_max: usize,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    fn new(stream: R, bytes_max: usize) -> Self {
        Self { stream, bytes_max, line: Vec::new() }
    }

    fn next<T: DeserializeOwned>(&mut self) -> Result<T, LineError> {
        let room = (self.bytes_max + 1).saturating_sub(self.line.len());
        let read = (&mut self.stream).take(room as u64).read_until(b'\n', &mut self.line);
        match read.map_err(|error| error.kind()) {
            Ok(_) if self.line.last() == Some(&b'\n') => {}
            Ok(_) if self.line.len() > self.bytes_max => {
                return Err(LineError::TooLong(self.bytes_max));
            }
            Ok(_) => return Err(LineError::Ended),
            Err(io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Err(LineError::Quiet);
            }
            Err(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
                return Err(LineError::Ended);
            }
            Err(kind) => return Err(LineError::Io(kind.into())),
        }
        let parsed = serde_json::from_slice(&self.line).map_err(LineError::Malformed);
        self.line.clear();
        parsed
    }
}

/// A message as a line.
pub(crate) fn line_of(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Result<LeaseRequest, String>> {
        let mut lines = Lines::new(text.as_bytes(), 64);
        let mut read = Vec::new();
        loop {
            match lines.next() {
                Ok(request) => read.push(Ok(request)),
                Err(LineError::Ended) => return read,
                Err(error) => {
                    read.push(Err(error.to_string()));
                    return read;
                }
            }
        }
    }

    #[test]
    fn lines_are_read_as_they_were_written() {
        let requests = [LeaseRequest::Next { after: 7, pages_max: 250 }, LeaseRequest::Committed];
        let text: Vec<u8> = requests.iter().flat_map(|it| line_of(it).unwrap()).collect();
        let expect: Vec<_> = requests.into_iter().map(Ok).collect();
        assert_eq!(lines(&String::from_utf8(text).unwrap()), expect);
    }

    #[test]
    fn hostile_lines_are_refused() {
        let endless = "x".repeat(1000);
        assert_eq!(lines(&endless), [Err("a line of more than 64 bytes".to_owned())]);
        let check = |text: &str| assert!(matches!(&lines(text)[..], [Err(_)]), "{text}");
        check("\n");
        check("[[[[[[[[[[\n");
        check("{\"next\":{\"after\":-1,\"pages_max\":1}}\n");
        check("{\"remove\":{\"crawl\":\"last\"}}\n");
        assert_eq!(lines("\"committ"), [], "a line that was cut says nothing");
    }

    #[test]
    fn a_line_may_come_in_pieces() {
        /// Gives one byte at a time, and nothing in between.
        struct Slow(Vec<u8>, bool);
        impl Read for Slow {
            fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
                self.1 = !self.1;
                if self.1 || self.0.is_empty() {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                bytes[0] = self.0.remove(0);
                Ok(1)
            }
        }
        let slow = Slow(line_of(&LeaseRequest::Digested).unwrap(), false);
        let mut lines = Lines::new(io::BufReader::new(slow), 64);
        let mut read = || -> Result<LeaseRequest, LineError> { lines.next() };
        let first =
            std::iter::repeat_with(&mut read).find(|line| !matches!(line, Err(LineError::Quiet)));
        assert!(matches!(first, Some(Ok(LeaseRequest::Digested))));
    }
}
