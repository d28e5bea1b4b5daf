//! [`Checkpoint`]: what a commit of the index knows beside its documents.

use std::fmt;

use tantivy::Index;

use crate::IndexError;
use crate::links::LogEnd;

/// How far the store was read, and how much of the log of links goes with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub(crate) upto: u64,
    pub(crate) log: LogEnd,
}

impl Checkpoint {
    /// The checkpoint of the last commit; that of an empty index if there was none.
    pub(crate) fn of(index: &Index) -> Result<Self, IndexError> {
        let Some(payload) = index.load_metas()?.payload else { return Ok(Self::default()) };
        Self::parse(&payload)
            .ok_or_else(|| IndexError::Damaged(format!("its checkpoint is {payload:?}")))
    }

    fn parse(payload: &str) -> Option<Self> {
        let mut numbers = payload.split(' ');
        let mut next = || numbers.next();
        let upto = next()?.parse().ok()?;
        let generation = next()?.parse().ok()?;
        let (bytes, rows) = (next()?.parse().ok()?, next()?.parse().ok()?);
        next().is_none().then_some(Self { upto, log: LogEnd { generation, bytes, rows } })
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { upto, log } = self;
        write!(f, "{upto} {} {} {}", log.generation, log.bytes, log.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_read_as_they_were_written() {
        let log = LogEnd { generation: 3, bytes: 4567, rows: 89 };
        let checkpoint = Checkpoint { upto: 12, log };
        assert_eq!(Checkpoint::parse(&checkpoint.to_string()), Some(checkpoint));
        assert_eq!(Checkpoint::parse("12"), None);
        assert_eq!(Checkpoint::parse("12 3 4567 89 1"), None);
    }
}
