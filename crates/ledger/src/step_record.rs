//! [`StepRecord`]: the events of one crawl in one step, as they are kept behind the bodies that they
//! bring. Together the records of all crawls are the log of the ledger: folded in the order of their
//! steps they give the rows again.

use crate::StoreError;
use crate::event::{Event, decode_events, encode_events};
use crate::layout::decode;

/// The events of one crawl in one step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StepRecord {
    pub(crate) step: u64,
    /// The last sequence number that was given before the step.
    pub(crate) seq: u64,
    /// The events, each with its place among all events of the step.
    pub(crate) events: Vec<(u32, Event)>,
}

/// What a record begins with, before its events: places and length of this head, in postcard.
type Head = (u64, u64, Vec<u32>);

/// Writes a record down: the length of its head, the head, the events.
pub(crate) fn encode_record(step: u64, seq: u64, places: Vec<u32>, events: &[&Event]) -> Vec<u8> {
    let head: Head = (step, seq, places);
    let head = crate::layout::encode(&head);
    let head_bytes = u32::try_from(head.len()).expect("a step is far below 4 GiB");
    [&head_bytes.to_le_bytes()[..], &head, &encode_events(events)].concat()
}

impl StepRecord {
    /// Reads a record.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        let (head, events) = split(bytes)?;
        let (step, seq, places) = decode::<Head>(head, RECORDS)?;
        let events = decode_events(events)?;
        if places.len() != events.len() {
            return Err(cut());
        }
        Ok(Self { step, seq, events: places.into_iter().zip(events).collect() })
    }

    /// The step that a record is of.
    pub(crate) fn step_of(bytes: &[u8]) -> Result<u64, StoreError> {
        Ok(decode::<Head>(split(bytes)?.0, RECORDS)?.0)
    }
}

const RECORDS: &str = "step records";

fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), StoreError> {
    let (head_bytes, rest) = bytes.split_first_chunk().ok_or_else(cut)?;
    let head_bytes = usize::try_from(u32::from_le_bytes(*head_bytes)).map_err(|_| cut())?;
    rest.split_at_checked(head_bytes).ok_or_else(cut)
}

fn cut() -> StoreError {
    StoreError::Damaged("the record of a step is cut".into())
}

#[cfg(test)]
mod tests {
    use telusur_model::CrawlNo;

    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let events = [3, 5].map(|active_ms| Event::CrawlRan { crawl: CrawlNo(1), active_ms });
        let written = encode_record(7, 40, vec![0, 2], &events.iter().collect::<Vec<_>>());
        let [first, second] = events;
        let events = vec![(0, first), (2, second)];
        assert_eq!(StepRecord::decode(&written).unwrap(), StepRecord { step: 7, seq: 40, events });
        assert_eq!(StepRecord::step_of(&written).unwrap(), 7);
        for len in 0..written.len() {
            assert!(StepRecord::decode(&written[..len]).is_err(), "{len}");
        }
    }
}
