//! [`Forest`]: decision trees that vote. Knows nothing of pages; the trees are in `weights`.

/// A fork: the number that it looks at, the bound, where it leads if the number is at most the
/// bound, and where else. A child below zero is a leaf, `-1` the first one.
pub(super) type Fork = (u16, f32, i16, i16);

/// Trees that are always asked.
const FIRST_TREES: usize = 30;
/// Votes of the first trees below which the others are not asked. Two of five blocks are; of a
/// quarter of a million, none would have come to a probability above 0.26 in the end.
const HOPELESS_VOTES: f32 = -2.5;

/// Trees whose votes are added up.
pub(super) struct Forest {
    /// The first fork of each tree.
    pub roots: &'static [u16],
    pub forks: &'static [Fork],
    /// The votes.
    pub leaves: &'static [f32],
}

impl Forest {
    /// The probability that the trees give to what a row of numbers describes. Once the first trees
    /// agree that it is nothing, the others are not asked.
    pub(super) fn probability(&self, row: &[f32]) -> f32 {
        let (first, others) = self.roots.split_at(self.roots.len().min(FIRST_TREES));
        let mut votes: f32 = first.iter().map(|root| self.vote(*root, row)).sum();
        if votes > HOPELESS_VOTES {
            votes += others.iter().map(|root| self.vote(*root, row)).sum::<f32>();
        }
        1.0 / (1.0 + (-votes).exp())
    }

    fn vote(&self, root: u16, row: &[f32]) -> f32 {
        let mut at = i32::from(root);
        while let Ok(fork) = usize::try_from(at) {
            let (number, bound, low, high) = self.forks[fork];
            at = i32::from(if row[usize::from(number)] <= bound { low } else { high });
        }
        self.leaves[(-1 - at) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Votes 2 if the first number is above 1, else -2; and 1 if the second is above 0, else 0.
    const FOREST: Forest = Forest {
        roots: &[0, 1],
        forks: &[(0, 1.0, -1, -2), (1, 0.0, -3, -4)],
        leaves: &[-2.0, 2.0, 0.0, 1.0],
    };

    #[track_caller]
    fn check(row: [f32; 2], votes: f32) {
        let expect = 1.0 / (1.0 + (-votes).exp());
        assert!((FOREST.probability(&row) - expect).abs() < 1e-6, "{row:?}");
    }

    #[test]
    fn votes_are_added() {
        check([1.0, 0.0], -2.0);
        check([1.1, 0.0], 2.0);
        check([0.0, 0.1], -1.0);
        check([9.0, 9.0], 3.0);
    }
}
