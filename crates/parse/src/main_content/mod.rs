//! What a page is about: the blocks of its main content, without menus, advertisements and
//! everything else that stands around it.
//!
//! The page is cut into `blocks`; `features` describes each by numbers; a model (`forest`, with its
//! `weights`) gives each the probability of being main content; `choice` takes the blocks that make
//! the best answer. There is no rule for any single site or kind of page: what kind of page it is,
//! is among the numbers.

mod page;

mod blocks;
mod features;

mod hints;
mod signs;
mod told;
mod words;

mod quick_hash;

mod forest;
mod weights;

mod choice;

pub(crate) use self::signs::PageSigns;
pub(crate) use self::told::{Telling, Told};

use self::blocks::{BlockMap, BlockTag};
use crate::tree::{NodeId, Tree};

/// A page of so few words has no room for anything beside its content.
const SMALL_WORDS: usize = 40;

/// The main content of a page.
pub(crate) struct MainContent {
    map: BlockMap,
    chosen: Vec<bool>,
}

impl MainContent {
    /// Finds the main content.
    pub(crate) fn of(tree: &Tree, signs: &PageSigns<'_>, text_bytes_max: usize) -> Self {
        let map = BlockMap::of(tree, text_bytes_max);
        if map.blocks.iter().map(|block| map.words_of(block).len()).sum::<usize>() <= SMALL_WORDS {
            return Self::whole(map);
        }
        let mut probabilities = Vec::with_capacity(map.blocks.len());
        features::describe(&map, signs, |row| {
            probabilities.push(weights::MAIN_CONTENT.probability(row));
        });
        let mut chosen = choice::choose(&map, &probabilities);
        choice::drop_repeated(&map, &mut chosen);
        if !chosen.contains(&true) {
            return Self::whole(map);
        }
        Self { map, chosen }
    }

    /// Where there is nothing to choose from, or nothing that stands out, all of it is the content.
    fn whole(map: BlockMap) -> Self {
        let chosen = vec![true; map.blocks.len()];
        Self { map, chosen }
    }

    /// A page that is main content as a whole.
    #[cfg(test)]
    pub(crate) fn all_of(tree: &Tree, text_bytes_max: usize) -> Self {
        Self::whole(BlockMap::of(tree, text_bytes_max))
    }

    /// The text, a line for each block; the cells of a row of a table share one.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut row = None;
        for (block, _) in self.map.blocks.iter().zip(&self.chosen).filter(|(_, chosen)| **chosen) {
            let container = self.map.container_of(block);
            let is_cell = container.tag == BlockTag::Cell;
            let block_row = is_cell.then_some(container.parent);
            if !text.is_empty() {
                text.push(if is_cell && row == block_row { '\t' } else { '\n' });
            }
            row = block_row;
            text.push_str(self.map.text_of(block));
        }
        text
    }

    /// The block that a text node is part of, and whether that is main content.
    pub(crate) fn block_of(&self, node: NodeId) -> Option<(usize, bool)> {
        let block = self.map.block_of(node)?;
        Some((block, self.chosen[block]))
    }

    /// Whether a block is main content, and so is the one behind it if there is any: what stands
    /// between them is most likely part of it too.
    pub(crate) fn surrounds(&self, block: usize) -> bool {
        self.chosen[block] && self.chosen.get(block + 1).copied().unwrap_or(true)
    }
}
