//! From probabilities to a choice: the blocks that are main content, each text once.

use crate::main_content::blocks::{BlockMap, BlockTag};
use crate::main_content::quick_hash::QuickSet;
use crate::main_content::words::run_hash;

/// Words of a run that is looked for in what was said before.
const RUN_WORDS: usize = 4;
/// Blocks with fewer words may well say the same twice: a speaker's name, a price.
const REPEATED_WORDS_MIN: usize = 8;
/// The share of a block's runs that must have been said before, in tenths.
const REPEATED_TENTHS: usize = 8;
/// Fewer words than this are expected on pages that have no main content at all, where single
/// blocks must stand for themselves.
const EXPECTED_WORDS_MIN: f32 = 1.0;

/// Pages whose best answer is expected to be this good are cut more sharply: what is doubtful on a
/// page that is otherwise clear, most often a comment or another story, most often does not belong.
const CLEAR_F1: f32 = 0.88;
/// By what the odds of all blocks are multiplied there. Of six pairs of numbers, this one was best
/// for news articles of sites that the trees were not learned from, by 0.003; the rest lost 0.0006.
const CLEAR_ODDS: f32 = 0.4;

/// Chooses the blocks that make the best answer: of all bounds that the probability could have to
/// pass, the one with the highest expected F1 over words. A page that is sure of its content is
/// cut sharply, a doubtful one is cut where least is lost.
pub(super) fn choose(map: &BlockMap, probabilities: &[f32]) -> Vec<bool> {
    let mut ranking: Vec<usize> = (0..map.blocks.len()).collect();
    ranking.sort_by(|one, other| probabilities[*other].total_cmp(&probabilities[*one]));
    let Some(mut cut) = best_cut(map, &ranking, |at| probabilities[at]) else {
        return probabilities.iter().map(|probability| *probability > 0.5).collect();
    };
    if cut.expected_f1 > CLEAR_F1 {
        let sharper = |at: usize| {
            let odds = CLEAR_ODDS * probabilities[at];
            odds / (odds + 1.0 - probabilities[at])
        };
        cut = best_cut(map, &ranking, sharper).unwrap_or(cut);
    }
    let mut chosen = vec![false; map.blocks.len()];
    for at in &ranking[..cut.length] {
        chosen[*at] = true;
    }
    chosen
}

/// Where a ranking of blocks is cut off.
struct Cut {
    length: usize,
    expected_f1: f32,
}

/// The best place to cut; `None` if hardly a word is expected to be main content.
fn best_cut(map: &BlockMap, ranking: &[usize], probability: impl Fn(usize) -> f32) -> Option<Cut> {
    let words = |at: usize| map.blocks[at].counts.words as f32;
    let expected: f32 = ranking.iter().map(|at| words(*at) * probability(*at)).sum();
    if expected < EXPECTED_WORDS_MIN {
        return None;
    }
    let (mut right, mut taken) = (0.0, 0.0);
    let mut best = Cut { length: 0, expected_f1: 0.0 };
    for (place, at) in ranking.iter().enumerate() {
        right += words(*at) * probability(*at);
        taken += words(*at);
        let expected_f1 = 2.0 * right / (taken + expected);
        if expected_f1 > best.expected_f1 {
            best = Cut { length: place + 1, expected_f1 };
        }
    }
    Some(best)
}

/// Takes back blocks that say what others before them said already: pages hold the same text for
/// large and for small screens, for the list and for the window that opens above it.
pub(super) fn drop_repeated(map: &BlockMap, chosen: &mut [bool]) {
    let words_chosen = map.blocks.iter().zip(&*chosen).filter(|(_, chosen)| **chosen);
    let words_chosen = words_chosen.map(|(block, _)| block.counts.words as usize).sum();
    let mut said: QuickSet<u64> =
        QuickSet::with_capacity_and_hasher(words_chosen, Default::default());
    let mut runs = Vec::new();
    for (block, chosen) in map.blocks.iter().zip(chosen) {
        // Examples repeat each other on purpose.
        let may_repeat = block.tag == BlockTag::Preformatted;
        if !*chosen || may_repeat || (block.counts.words as usize) < REPEATED_WORDS_MIN {
            continue;
        }
        runs.clear();
        runs.extend(map.words_of(block).windows(RUN_WORDS).map(run_hash));
        let repeated = runs.iter().filter(|run| said.contains(run)).count();
        if repeated * 10 >= runs.len() * REPEATED_TENTHS && !runs.is_empty() {
            *chosen = false;
        } else {
            said.extend(&runs);
        }
    }
}
