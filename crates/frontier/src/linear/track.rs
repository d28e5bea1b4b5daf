//! [`Track`]: the ids of one direction, counted 0, 1, 2 … in the order in which they are asked.
//! Direction, step and list end here: what is behind a track only ever counts upwards.

use telusur_model::{Direction, LegPlan, Run};

/// The positions of a leg, and the offsets at which they are asked.
#[derive(Clone, Debug)]
pub(crate) struct Track {
    direction: Direction,
    /// The positions, as ranges in order.
    ranges: Vec<(u64, u64)>,
    /// How many positions lie below each range.
    below: Vec<u64>,
    last: u64,
}

impl Track {
    pub(crate) fn new(plan: &LegPlan) -> Self {
        let ranges = plan.positions.as_slice().to_vec();
        let mut below = Vec::with_capacity(ranges.len());
        let mut next = 0_u64;
        let mut last = 0;
        for (index, (first, last_position)) in ranges.iter().enumerate() {
            below.push(next);
            last = next + (last_position - first);
            if index + 1 < ranges.len() {
                // Another range follows, so there is at least one more position to count.
                next = last + 1;
            }
        }
        Self { direction: plan.direction, ranges, below, last }
    }

    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// The last offset.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    pub(crate) fn position(&self, offset: u64) -> u64 {
        let rank = self.mirror(offset);
        let range = self.below.partition_point(|&below| below <= rank) - 1;
        self.ranges[range].0 + (rank - self.below[range])
    }

    pub(crate) fn offset(&self, position: u64) -> Option<u64> {
        let (offset, _) = self.offsets(position, position)?;
        Some(offset)
    }

    /// The offsets of all its positions between two positions, both inclusive.
    pub(crate) fn offsets(&self, first: u64, last: u64) -> Option<(u64, u64)> {
        let low = self.ranges.partition_point(|range| range.1 < first);
        let high = self.ranges.partition_point(|range| range.0 <= last).checked_sub(1)?;
        if low > high {
            return None;
        }
        let rank =
            |range: usize, position: u64| self.below[range] + (position - self.ranges[range].0);
        let rank_first = rank(low, first.max(self.ranges[low].0));
        let rank_last = rank(high, last.min(self.ranges[high].1));
        Some(match self.direction {
            Direction::Ascending => (rank_first, rank_last),
            Direction::Descending => (self.mirror(rank_last), self.mirror(rank_first)),
        })
    }

    /// A run of offsets as runs of positions, the lowest first.
    pub(crate) fn positions(&self, run: Run) -> impl Iterator<Item = Run> {
        let (rank_first, rank_last) = match self.direction {
            Direction::Ascending => (run.first, run.last),
            Direction::Descending => (self.mirror(run.last), self.mirror(run.first)),
        };
        let range = self.below.partition_point(|&below| below <= rank_first) - 1;
        let ranges = self.ranges[range..].iter().zip(&self.below[range..]);
        ranges.take_while(move |(_, below)| **below <= rank_last).map(move |(range, &below)| Run {
            first: range.0 + rank_first.saturating_sub(below),
            last: range.1.min(range.0.saturating_add(rank_last - below)),
            state: run.state,
        })
    }

    /// Between offset and rank, the count from the lowest position.
    fn mirror(&self, number: u64) -> u64 {
        match self.direction {
            Direction::Ascending => number,
            Direction::Descending => self.last - number,
        }
    }
}

#[cfg(test)]
mod tests {
    use telusur_model::{IdRanges, IdState};

    use super::*;

    fn track(direction: Direction, ranges: &[(u64, u64)]) -> Track {
        Track::new(&LegPlan { direction, rate: 1, positions: IdRanges::new(ranges.to_vec()) })
    }

    #[track_caller]
    fn check(track: &Track, expect: &[u64]) {
        assert_eq!(track.last() + 1, u64::try_from(expect.len()).unwrap());
        for (offset, &position) in (0..).zip(expect) {
            assert_eq!(track.position(offset), position);
            assert_eq!(track.offset(position), Some(offset));
        }
    }

    #[test]
    fn ids_are_counted_as_they_are_asked() {
        check(&track(Direction::Ascending, &[(3, 6)]), &[3, 4, 5, 6]);
        check(&track(Direction::Descending, &[(3, 6)]), &[6, 5, 4, 3]);
        check(&track(Direction::Ascending, &[(1, 2), (5, 5), (8, 9)]), &[1, 2, 5, 8, 9]);
        check(&track(Direction::Descending, &[(1, 2), (5, 5), (8, 9)]), &[9, 8, 5, 2, 1]);
    }

    #[test]
    fn stretches_of_positions() {
        let up = track(Direction::Ascending, &[(1, 2), (5, 5), (8, 9)]);
        assert_eq!(up.offsets(0, 100), Some((0, 4)));
        assert_eq!(up.offsets(2, 8), Some((1, 3)));
        assert_eq!(up.offsets(3, 4), None);
        assert_eq!(up.offsets(10, 11), None);
        assert_eq!(up.offsets(0, 0), None);
        let down = track(Direction::Descending, &[(1, 2), (5, 5), (8, 9)]);
        assert_eq!(down.offsets(2, 8), Some((1, 3)));
        assert_eq!(down.offsets(1, 2), Some((3, 4)));
    }

    #[test]
    fn stretches_of_offsets() {
        let run = |first, last| Run { first, last, state: IdState::Content };
        let up = track(Direction::Ascending, &[(1, 2), (5, 5), (8, 9)]);
        let positions: Vec<Run> = up.positions(run(1, 3)).collect();
        assert_eq!(positions, [run(2, 2), run(5, 5), run(8, 8)]);
        let down = track(Direction::Descending, &[(1, 2), (5, 5), (8, 9)]);
        assert_eq!(down.positions(run(0, 1)).collect::<Vec<_>>(), [run(8, 9)]);
        assert_eq!(down.positions(run(4, 4)).collect::<Vec<_>>(), [run(1, 1)]);
    }

    #[test]
    fn all_ids_there_are() {
        for direction in [Direction::Ascending, Direction::Descending] {
            let all = track(direction, &[(0, u64::MAX)]);
            assert_eq!(all.last(), u64::MAX);
            assert_eq!(all.offsets(0, u64::MAX), Some((0, u64::MAX)));
            assert_eq!(all.offset(all.position(u64::MAX)), Some(u64::MAX));
        }
        let ends = track(Direction::Ascending, &[(0, 0), (u64::MAX, u64::MAX)]);
        check(&ends, &[0, u64::MAX]);
        let most = track(Direction::Descending, &[(0, u64::MAX - 2), (u64::MAX, u64::MAX)]);
        assert_eq!(most.last(), u64::MAX - 1);
        assert_eq!(most.position(1), u64::MAX - 2);
    }
}
