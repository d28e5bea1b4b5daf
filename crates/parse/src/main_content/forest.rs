//! [`Forest`]: decision trees that vote. Knows nothing of pages; the trees are in `weights`.

use crate::main_content::features::NumberRow;

/// A fork: the number that it looks at, how far behind it the branch for numbers above the bound
/// begins, and the bound. The branch for the others begins right behind it. A leaf has [`LEAF`]
/// instead of a number, and its vote instead of a bound.
pub(super) type Node = (u8, u8, f32);

/// Stands for "no number" in a leaf.
pub(super) const LEAF: u8 = u8::MAX;

/// Trees whose votes are added up.
pub(super) struct Forest {
    /// The root of each tree.
    pub roots: &'static [u16],
    pub nodes: &'static [Node],
    /// Where to stop early, since what is hopeless or certain is not worth asking all trees about.
    pub stops: &'static [Stop],
    /// The probability of what is hopeless, on average.
    pub hopeless: f32,
    /// The same of what is certain.
    pub certain: f32,
}

/// A place to stop: after this number of trees, if the votes are below the first or above the second bound.
pub(super) struct Stop {
    pub trees: usize,
    pub votes_min: f32,
    pub votes_max: f32,
}

impl Forest {
    /// The probability that the trees give to what a row of numbers describes.
    pub(super) fn probability(&self, row: &NumberRow) -> f32 {
        let mut votes = 0.0;
        let mut asked = 0;
        for stop in self.stops {
            votes += self.votes(asked, stop.trees, row);
            asked = stop.trees;
            if votes < stop.votes_min {
                return self.hopeless;
            }
            if votes > stop.votes_max {
                return self.certain;
            }
        }
        votes += self.votes(asked, self.roots.len(), row);
        1.0 / (1.0 + (-votes).exp())
    }

    /// The sum of the votes of some trees.
    fn votes(&self, first: usize, end: usize, row: &NumberRow) -> f32 {
        self.roots[first..end].iter().map(|root| self.vote(usize::from(*root), row)).sum()
    }

    fn vote(&self, root: usize, row: &NumberRow) -> f32 {
        let mut at = root;
        loop {
            let (number, high, value) = self.nodes[at];
            if number == LEAF {
                return value;
            }
            at += if row[usize::from(number)] <= value { 1 } else { usize::from(high) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Votes 2 if the first number is above 1, else -2; and 1 if the second is above 0, else 0.
    const FOREST: Forest = Forest {
        roots: &[0, 3],
        nodes: &[
            (0, 2, 1.0),
            (LEAF, 0, -2.0),
            (LEAF, 0, 2.0),
            (1, 2, 0.0),
            (LEAF, 0, 0.0),
            (LEAF, 0, 1.0),
        ],
        stops: &[],
        hopeless: 0.01,
        certain: 0.99,
    };

    #[track_caller]
    fn check(forest: &Forest, numbers: [f32; 2], expect: f32) {
        let mut row = [0.0; 256];
        row[..2].copy_from_slice(&numbers);
        assert!((forest.probability(&row) - expect).abs() < 1e-6, "{numbers:?}");
    }

    fn logistic(votes: f32) -> f32 {
        1.0 / (1.0 + (-votes).exp())
    }

    #[test]
    fn votes_are_added() {
        check(&FOREST, [1.0, 0.0], logistic(-2.0));
        check(&FOREST, [1.1, 0.0], logistic(2.0));
        check(&FOREST, [0.0, 0.1], logistic(-1.0));
        check(&FOREST, [9.0, 9.0], logistic(3.0));
    }

    #[test]
    fn what_is_hopeless_or_certain_is_not_asked_about() {
        const STOPS: &[Stop] = &[Stop { trees: 1, votes_min: -1.0, votes_max: 1.5 }];
        let hasty = Forest { stops: STOPS, ..FOREST };
        check(&hasty, [0.0, 0.1], 0.01);
        check(&hasty, [9.0, 9.0], 0.99);
        const PATIENT: &[Stop] = &[Stop { trees: 1, votes_min: -3.0, votes_max: 2.5 }];
        let patient = Forest { stops: PATIENT, ..FOREST };
        check(&patient, [0.0, 0.1], logistic(-1.0));
        check(&patient, [9.0, 9.0], logistic(3.0));
    }
}
