//! Numbers that describe each block of a page: the page that it is on, the block itself, where it
//! stands, what is around it and what looks like it. The model reads nothing else.

use crate::main_content::blocks::{Block, BlockMap, Container, place};
use crate::main_content::hints::MARKUP_GROUPS;
use crate::main_content::page::{Page, flag, log, ratio};
use crate::main_content::signs::PageSigns;

/// Levels of containers around a block that are described.
const LEVELS: usize = 4;

/// Room for the numbers of one block; those behind the last one are zero.
pub(super) const ROW_LENGTH: usize = 256;

/// The numbers of one block.
pub(super) type NumberRow = [f32; ROW_LENGTH];

/// Describes every block, one after the other.
pub(super) fn describe(map: &BlockMap, signs: &PageSigns<'_>, mut judge: impl FnMut(&NumberRow)) {
    let page = Page::of(map, signs);
    let mut values = [0.0; ROW_LENGTH];
    let of_page = page.numbers(map, signs);
    values[..of_page.len()].copy_from_slice(&of_page);
    for at in 0..map.blocks.len() {
        let next = of_page.len();
        let mut row = Row { map, signs, page: &page, at, values: &mut values, next };
        row.block();
        row.position();
        row.names();
        row.containers();
        row.landmarks();
        row.likeness();
        row.neighbours();
        judge(&values);
    }
}

/// One block on its way to numbers.
struct Row<'a> {
    map: &'a BlockMap,
    signs: &'a PageSigns<'a>,
    page: &'a Page,
    at: usize,
    values: &'a mut NumberRow,
    /// Where the next number goes.
    next: usize,
}

impl<'a> Row<'a> {
    fn push<const N: usize>(&mut self, values: [f32; N]) {
        self.values[self.next..self.next + N].copy_from_slice(&values);
        self.next += N;
    }

    fn push_bits<const N: usize>(&mut self, bits: u32) {
        self.push::<N>(std::array::from_fn(|bit| (bits >> bit & 1) as f32));
    }

    fn current(&self) -> &'a Block {
        let map = self.map;
        &map.blocks[self.at]
    }

    fn block(&mut self) {
        let block = self.current();
        let counts = block.counts;
        let before = &self.page.before[self.at];
        self.push([
            log(counts.words),
            ratio(block.bytes(), counts.words),
            ratio(block.link_bytes, block.bytes()),
            log(block.links),
            ratio(counts.sentence_ends, counts.words),
            log(counts.sentence_ends),
            ratio(counts.commas, counts.words),
            ratio(counts.digits, block.bytes()),
            ratio(counts.capitals, counts.words),
            counts.currency_signs.min(2) as f32,
            ratio(block.emphasis_bytes, block.bytes()),
            f32::from(block.tag as u8),
            log(block.images_before),
            flag(block.is_prose()),
            self.page.title_likenesses[self.at],
            log(self.page.same_text[before.same_text as usize]),
            log(before.same_text_before),
        ]);
        self.push(self.signs.told.shares(self.map.words_of(block)));
    }

    fn position(&mut self) {
        let before = &self.page.before[self.at];
        let total = &self.page.total;
        self.push([
            self.at as f32 / self.map.blocks.len() as f32,
            ratio(before.words, total.words),
            ratio(before.prose_words, total.prose_words),
            log(before.words),
            log(total.words - before.words),
            log(before.words_since_heading),
            before.heading_level as f32,
            before.h1_seen.min(3) as f32,
            if before.h1_seen == 0 { -1.0 } else { log(before.words_since_h1) },
            log(before.blocks_since_prose),
            log(before.words_since_prose),
        ]);
        self.push([before.heading_link_share]);
        self.push(self.page.turns[self.at]);
        let around = &self.page.surroundings[self.current().container as usize];
        self.push([log(around.article), ratio(around.article_words, total.words)]);
    }

    fn names(&mut self) {
        let block = self.current();
        let container = self.map.container_of(block);
        let parent = &self.map.containers[container.parent as usize];
        let near = container.hints.with(parent.hints).with(block.inline_hints);
        self.push_bits::<{ place::COUNT }>(container.place);
        self.push_bits::<{ MARKUP_GROUPS.len() }>(near.0);
        self.push_bits::<{ MARKUP_GROUPS.len() }>(container.hints_around.0);
    }

    fn containers(&mut self) {
        let block = self.current();
        let words = block.counts.words;
        for level in self.map.levels::<LEVELS>(block) {
            let container = &self.map.containers[level as usize];
            self.push([
                log(container.words),
                ratio(container.link_bytes, container.bytes),
                ratio(container.prose_words, container.words),
                ratio(container.words, self.page.total.words),
                ratio(container.words, container.blocks),
                ratio(container.headings, container.blocks),
                ratio(words, container.words),
            ]);
        }
    }

    /// How far from the prose and from the beginning of the content a block stands, in words and in
    /// the tree.
    fn landmarks(&mut self) {
        let (map, page) = (self.map, self.page);
        let at = self.current().container;
        let depth = map.containers[at as usize].depth;
        let [shared_with_prose @ .., with_title, with_paragraph] =
            page.surroundings[at as usize].shared_depths;
        for (holder, shared_depth) in page.prose_holders.into_iter().zip(shared_with_prose) {
            let held: &Container = &map.containers[holder as usize];
            self.push([
                flag(held.holds(at)),
                held.depth.saturating_sub(shared_depth) as f32,
                depth as f32 - held.depth as f32,
            ]);
        }
        self.push([depth as f32]);
        let starts = [(page.title_block, with_title), (page.first_paragraph, with_paragraph)];
        for (start, shared_depth) in starts {
            let Some(start) = start else {
                self.push([-1.0; 4]);
                continue;
            };
            let words_between = page.before[self.at].words.abs_diff(page.before[start].words);
            let start_depth = map.container_of(&map.blocks[start]).depth;
            self.push([
                self.at.cmp(&start) as i8 as f32,
                log(words_between),
                (start_depth - shared_depth) as f32,
                (depth - shared_depth) as f32,
            ]);
        }
    }

    fn likeness(&mut self) {
        let page = self.page;
        let alike = &page.blocks_alike[page.before[self.at].alike as usize];
        self.push(alike.numbers(&page.total));
        let around = &page.surroundings[self.current().container as usize];
        self.push(page.repeated_around(around).numbers(&page.total));
        self.push([around.repeated_levels as f32]);
    }

    fn neighbours(&mut self) {
        let blocks = &self.map.blocks;
        let container = self.current().container;
        let parent = self.map.containers[container as usize].parent;
        for offset in [-2, -1, 1, 2] {
            let Some(near) = self.at.checked_add_signed(offset).and_then(|at| blocks.get(at))
            else {
                self.push([-1.0; 5]);
                continue;
            };
            let near_parent = self.map.container_of(near).parent;
            self.push([
                log(near.counts.words),
                ratio(near.link_bytes, near.bytes()),
                flag(near.is_prose()),
                f32::from(near.tag as u8),
                flag(near_parent == parent || near_parent == container),
            ]);
        }
        for reach in [4, 15] {
            let start = self.at.saturating_sub(reach);
            let end = (self.at + reach + 1).min(blocks.len());
            let window = self.page.window(start, end);
            self.push([
                ratio(window.words, window.count),
                window.link_density(),
                ratio(window.prose_words, window.words),
            ]);
        }
    }
}
