//! Reading a body to its end, or to one of its limits.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use telusur_model::Reason;
use tokio::time::{Instant, Sleep};

use crate::answer::BodyEnd;
use crate::budget::Lease;
use crate::connection::{Connection, NextFrame};
use crate::decode::{Decoder, Room};
use crate::failure::Failure;
use crate::settings::FetchSettings;

/// A body, decoded.
pub(crate) struct ReadBody {
    pub(crate) bytes: Bytes,
    /// Whether it was cut at the limit.
    pub(crate) truncated: bool,
    pub(crate) wire_bytes: u64,
}

/// Compressed bytes that are decoded between two looks at how much they have become.
const LOOK_BYTES: usize = 4 * 1024;

/// Reads a body through its decoder; on the wire, too, no more than the decoder may make of it.
pub(crate) async fn read_body(
    connection: &mut Connection,
    mut body: Incoming,
    mut decoder: Decoder,
    end: BodyEnd,
    mut lease: Lease,
    pace: Pace,
    alarm: Pin<&mut Sleep>,
) -> Result<ReadBody, Failure> {
    if let Some(announced) = body.size_hint().exact() {
        decoder.expect_bytes(announced);
    }
    let bytes_max = decoder.bytes_max();
    let announced = match end {
        BodyEnd::Length(length) => Some(length),
        BodyEnd::Framed | BodyEnd::Close => None,
    };
    let mut pieces = Pieces::new(connection, &mut body, pace, alarm);
    let mut wire_bytes: u64 = 0;
    // A length that hyper does not see has to be seen here, else we would wait for more.
    while announced.is_none_or(|length| wire_bytes < length)
        && let Some(mut piece) = pieces.next().await?
    {
        if let Some(length) = announced {
            piece.truncate(usize::try_from(length - wire_bytes).unwrap_or(usize::MAX));
        }
        let room = usize::try_from(bytes_max - wire_bytes).unwrap_or(usize::MAX);
        let taken = &piece[..piece.len().min(room)];
        wire_bytes += u64::try_from(taken.len()).unwrap_or(u64::MAX);
        let mut is_full = false;
        for part in taken.chunks(LOOK_BYTES) {
            is_full = decoder.push(part)? == Room::None;
            if lease.cover(decoder.bytes_made(), pieces.pace.total_deadline).await? {
                pieces.pace.excuse(Instant::now());
            }
            if is_full {
                break;
            }
        }
        if is_full || taken.len() < piece.len() {
            let bytes = lease.bind(decoder.cut()?);
            return Ok(ReadBody { bytes, truncated: true, wire_bytes });
        }
    }
    if announced.is_some_and(|length| wire_bytes < length) {
        return Err(Failure::later(Reason::Truncated, "the body is shorter than announced"));
    }
    if end == BodyEnd::Close && connection.is_cut_off() {
        // Anybody who can cut the connection could make any beginning of a page pass for the page.
        let detail = "the connection ended without close_notify, and nothing else ends this body";
        return Err(Failure::later(Reason::Truncated, detail));
    }
    Ok(ReadBody { bytes: lease.bind(decoder.finish()?), truncated: false, wire_bytes })
}

/// Drains a body that is not needed, so that the connection can be used again. Says whether its end
/// was reached; a long one is not worth waiting for.
pub(crate) async fn skip_body(
    connection: &mut Connection,
    mut body: Incoming,
    pace: Pace,
    alarm: Pin<&mut Sleep>,
) -> bool {
    /// More than this costs more than a new connection.
    const SKIPPED_BYTES_MAX: usize = 64 * 1024;
    let mut pieces = Pieces::new(connection, &mut body, pace, alarm);
    let mut skipped = 0;
    while let Ok(piece) = pieces.next().await {
        let Some(piece) = piece else { return true };
        skipped += piece.len();
        if skipped > SKIPPED_BYTES_MAX {
            return false;
        }
    }
    false
}

/// The pieces of a body, as long as they come fast enough.
struct Pieces<'a> {
    connection: &'a mut Connection,
    body: &'a mut Incoming,
    pace: Pace,
    alarm: Pin<&'a mut Sleep>,
}

impl<'a> Pieces<'a> {
    fn new(
        connection: &'a mut Connection,
        body: &'a mut Incoming,
        pace: Pace,
        mut alarm: Pin<&'a mut Sleep>,
    ) -> Self {
        // An alarm that rings too early is put off when it rings: most bodies are over by then.
        if pace.next_deadline() < alarm.deadline() {
            alarm.as_mut().reset(pace.next_deadline());
        }
        Self { connection, body, pace, alarm }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            match self.connection.frame(self.body, self.alarm.as_mut()).await {
                NextFrame::Frame(frame) => {
                    // Trailers are read over: nothing in them is about the page.
                    if let Ok(piece) = frame.into_data() {
                        self.pace.received(piece.len(), Instant::now())?;
                        return Ok(Some(piece));
                    }
                }
                NextFrame::End => return Ok(None),
                NextFrame::Failed(failure) => return Err(failure),
                // The alarm was set when the last deadline was known; a later one may hold by now.
                NextFrame::Alarm => {
                    let deadline = self.pace.deadline(Instant::now())?;
                    self.alarm.as_mut().reset(deadline);
                }
            }
        }
    }
}

/// How fast a body has to come.
pub(crate) struct Pace {
    total_deadline: Instant,
    idle_time_max: Duration,
    last_piece_at: Instant,
    rate_window: Duration,
    window_bytes_min: u64,
    window_began_at: Instant,
    window_bytes: u64,
}

impl Pace {
    pub(crate) fn new(settings: &FetchSettings, total_deadline: Instant, now: Instant) -> Self {
        Self {
            total_deadline,
            idle_time_max: settings.idle_time_max,
            last_piece_at: now,
            rate_window: settings.rate_window,
            window_bytes_min: settings.rate_window_bytes_min,
            window_began_at: now,
            window_bytes: 0,
        }
    }

    /// Notes that bytes came; fails if they come too slowly.
    fn received(&mut self, bytes: usize, now: Instant) -> Result<(), Failure> {
        self.last_piece_at = now;
        self.window_bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
        if now.duration_since(self.window_began_at) >= self.rate_window {
            if self.window_bytes < self.window_bytes_min {
                return Err(too_slow("the body came too slowly"));
            }
            self.window_began_at = now;
            self.window_bytes = 0;
        }
        // A stream that never pauses never lets the alarm ring.
        if now >= self.total_deadline {
            return Err(too_slow("the body did not end within the time limit"));
        }
        Ok(())
    }

    /// We were not reading: what came meanwhile is not known.
    fn excuse(&mut self, now: Instant) {
        self.last_piece_at = now;
        self.window_began_at = now;
        self.window_bytes = 0;
    }

    /// Until when the next bytes have to come; fails if that is over.
    fn deadline(&self, now: Instant) -> Result<Instant, Failure> {
        if now >= self.total_deadline {
            return Err(too_slow("the body did not end within the time limit"));
        }
        if now >= self.next_deadline() {
            return Err(too_slow("the body stopped coming"));
        }
        Ok(self.next_deadline())
    }

    fn next_deadline(&self) -> Instant {
        self.total_deadline.min(self.last_piece_at + self.idle_time_max)
    }
}

fn too_slow(detail: &str) -> Failure {
    Failure::later(Reason::TimeoutBody, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pace(start: Instant) -> Pace {
        Pace::new(&FetchSettings::default(), start + 30 * SECOND, start)
    }

    #[test]
    fn a_byte_per_second_is_too_slow() {
        // H1.
        let start = Instant::now();
        let mut pace = pace(start);
        for second in 1..10 {
            pace.received(1, start + second * SECOND).unwrap();
        }
        let failure = pace.received(1, start + 10 * SECOND).unwrap_err();
        assert_eq!(failure.why, Reason::TimeoutBody);
    }

    #[test]
    fn a_hundred_bytes_per_second_are_enough_until_time_is_up() {
        let start = Instant::now();
        let mut pace = pace(start);
        for second in 1..30 {
            pace.received(100, start + second * SECOND).unwrap();
        }
        assert!(pace.received(100, start + 30 * SECOND).is_err());
    }

    #[test]
    fn pauses_are_counted_from_the_last_piece() {
        let start = Instant::now();
        let mut pace = pace(start);
        pace.received(5000, start + 5 * SECOND).unwrap();
        assert_eq!(pace.deadline(start + 14 * SECOND), Ok(start + 15 * SECOND));
        assert!(pace.deadline(start + 15 * SECOND).is_err());
    }
}
