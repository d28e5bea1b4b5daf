//! What the first look at a page thinks of the blocks around a block. A paragraph among menus is
//! more likely an advertisement, a short line among paragraphs more likely a part of the text.

use crate::main_content::blocks::BlockMap;
use crate::main_content::features::{Features, LEVELS, likeness};
use crate::main_content::quick_hash::QuickMap;

/// How many numbers each block gets.
pub(super) const WIDTH: usize = 17 + LEVELS;

/// Blocks with no words still count a little.
const EXTRA_WORDS: f32 = 0.5;

/// Sums of words, and of those that are expected to be main content.
#[derive(Clone, Copy, Default)]
struct Sum {
    words: f32,
    expected: f32,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.words += other.words;
        self.expected += other.expected;
    }

    fn share(&self) -> f32 {
        if self.words > 0.0 { self.expected / self.words } else { -1.0 }
    }
}

/// Fills the numbers of the second look into the rows that were left free for them.
pub(super) fn fill(map: &BlockMap, probabilities: &[f32], features: &mut Features) {
    let sums: Vec<Sum> = map
        .blocks
        .iter()
        .zip(probabilities)
        .map(|(block, probability)| {
            let words = block.counts.words as f32 + EXTRA_WORDS;
            Sum { words, expected: words * probability }
        })
        .collect();
    let of_containers = sum_containers(map, &sums);
    let of_likeness = sum_likeness(map, &sums);
    let before = sum_before(&sums);
    let total = of_containers[0];
    // The mean over the blocks from one offset to another, as far as there are any.
    let window = |at: usize, from: isize, to: isize| {
        let start = at.saturating_add_signed(from).min(sums.len());
        let end = at.saturating_add_signed(to).min(sums.len());
        let (start, end) = (&before[start], &before[end]);
        let expected = end.expected - start.expected;
        Sum { words: end.words - start.words, expected }.share()
    };
    let near = |at: usize, offset: isize| {
        let at = at.checked_add_signed(offset);
        at.and_then(|at| probabilities.get(at)).copied().unwrap_or(-1.0)
    };
    for (at, block) in map.blocks.iter().enumerate() {
        let levels = map.levels::<LEVELS>(block).map(|level| of_containers[level as usize]);
        let of_total = |sum: Sum| sum.expected / total.expected.max(1e-9);
        let numbers = [
            probabilities[at],
            near(at, -1),
            near(at, 1),
            near(at, -2),
            near(at, 2),
            window(at, -5, 0),
            window(at, 1, 6),
            window(at, -20, 0),
            window(at, 1, 21),
            of_likeness[&likeness(map, block)].share(),
            total.share(),
            of_total(before[at]),
            before[at].expected.ln_1p(),
            total.expected.ln_1p(),
            of_total(levels[1]),
            of_total(levels[2]),
            of_total(levels[3]),
        ];
        let row = features.second_look_mut(at);
        row[..numbers.len()].copy_from_slice(&numbers);
        for (place, level) in row[numbers.len()..].iter_mut().zip(levels) {
            *place = level.share();
        }
    }
}

fn sum_containers(map: &BlockMap, sums: &[Sum]) -> Vec<Sum> {
    let mut of_containers = vec![Sum::default(); map.containers.len()];
    for (block, sum) in map.blocks.iter().zip(sums) {
        of_containers[block.container as usize].add(*sum);
    }
    // Whatever is inside comes behind, so that backwards every container is full when it is added.
    for at in (1..of_containers.len()).rev() {
        let sum = of_containers[at];
        of_containers[map.containers[at].parent as usize].add(sum);
    }
    of_containers
}

fn sum_likeness(map: &BlockMap, sums: &[Sum]) -> QuickMap<u64, Sum> {
    let mut of_likeness: QuickMap<u64, Sum> = QuickMap::default();
    for (block, sum) in map.blocks.iter().zip(sums) {
        of_likeness.entry(likeness(map, block)).or_default().add(*sum);
    }
    of_likeness
}

/// For every block the sum of those before it, and at the end the sum of all.
fn sum_before(sums: &[Sum]) -> Vec<Sum> {
    let mut before = vec![Sum::default()];
    let mut so_far = Sum::default();
    for sum in sums {
        so_far.add(*sum);
        before.push(so_far);
    }
    before
}
