//! Numbers that describe each block of a page: the block itself, where it stands, what is around
//! it, what looks like it, and what kind of page it is on. The model reads nothing else.

use std::sync::LazyLock;

use crate::main_content::blocks::{Block, BlockMap, BlockTag, Container, mix, place};
use crate::main_content::hints::{Hints, MARKUP_GROUPS, TEXT_GROUPS};
use crate::main_content::quick_hash::{QuickMap, QuickSet};
use crate::main_content::signs::PageSigns;

/// Levels of containers around a block that are described.
const LEVELS: usize = 4;

/// Blocks with more words are never compared with the title.
const TITLE_WORDS_MAX: u32 = 25;

/// Elements of one kind that make a repetition.
const REPEATED_MIN: u32 = 3;

/// The numbers of all blocks, one row after the other.
pub(super) struct Features {
    values: Vec<f32>,
    width: usize,
}

impl Features {
    pub(super) fn rows(&self) -> impl Iterator<Item = &[f32]> {
        // A page without blocks has no rows, and a width of nothing cannot be cut by.
        self.values.chunks_exact(self.width.max(1))
    }
}

/// Describes every block.
pub(super) fn features(map: &BlockMap, signs: &PageSigns<'_>) -> Features {
    let page = Page::of(map, signs);
    let of_page = page.numbers(map, signs);
    let mut values = Vec::with_capacity(map.blocks.len() * 256);
    for at in 0..map.blocks.len() {
        let mut row = Row { map, page: &page, at, values: &mut values };
        row.block();
        row.position();
        row.names();
        row.containers();
        row.beginning();
        row.likeness();
        row.neighbours();
        values.extend_from_slice(&of_page);
    }
    let width = values.len().checked_div(map.blocks.len()).unwrap_or_default();
    Features { values, width }
}

/// Sums over what looks alike.
#[derive(Clone, Copy, Default)]
struct Group {
    count: u32,
    words: u32,
    bytes: u32,
    link_bytes: u32,
    prose_words: u32,
}

impl Group {
    fn link_density(&self) -> f32 {
        ratio(self.link_bytes, self.bytes)
    }

    fn numbers(&self, total: &Container) -> [f32; 5] {
        [
            log(self.count),
            ratio(self.words, total.words),
            self.link_density(),
            log(self.words.checked_div(self.count).unwrap_or_default()),
            ratio(self.prose_words, self.words),
        ]
    }
}

/// What is the same for all blocks of a page, or follows from all of them.
struct Page {
    total: Container,
    /// By the signatures of the innermost containers of a block.
    blocks_alike: QuickMap<u64, Group>,
    containers_alike: QuickMap<u64, Group>,
    same_text: QuickMap<u64, u32>,
    title_words: QuickSet<u64>,
    title_likenesses: Vec<f32>,
    /// The heading that repeats the title, and the first paragraph behind it.
    title_block: Option<usize>,
    first_paragraph: Option<usize>,
    /// The deepest containers that hold most of the prose.
    prose_half: u32,
    prose_most: u32,
    /// For every block: words before it, prose before it, and what was met on the way.
    before: Vec<Before>,
    tag_shares: [f32; 16],
    place_shares: [f32; place::COUNT],
    articles: u32,
    /// For containers in an article: the article's ordinal from 1, and its words.
    article_of: QuickMap<u32, (u32, u32)>,
    currency_share: f32,
    repeated: Group,
}

#[derive(Clone, Copy, Default)]
struct Before {
    words: u32,
    prose_words: u32,
    bytes: u32,
    link_bytes: u32,
    words_since_heading: u32,
    heading_level: u32,
    words_since_h1: u32,
    h1_seen: u32,
    /// Blocks with the very same words.
    same_text: u32,
    /// What the words of the last heading say.
    heading_hints: Hints,
    /// Blocks and words since the last prose.
    blocks_since_prose: u32,
    words_since_prose: u32,
}

impl Page {
    fn of(map: &BlockMap, signs: &PageSigns<'_>) -> Self {
        let total = map.containers[0].clone();
        let mut page = Self {
            blocks_alike: QuickMap::default(),
            containers_alike: QuickMap::default(),
            same_text: QuickMap::default(),
            title_words: signs.title.map(|title| word_hashes(title).collect()).unwrap_or_default(),
            title_likenesses: Vec::new(),
            title_block: None,
            first_paragraph: None,
            prose_half: deepest_with_prose(map, 0.5),
            prose_most: deepest_with_prose(map, 0.8),
            before: Vec::with_capacity(map.blocks.len() + 1),
            tag_shares: [0.0; 16],
            place_shares: [0.0; place::COUNT],
            articles: 0,
            article_of: QuickMap::default(),
            currency_share: 0.0,
            repeated: Group::default(),
            total,
        };
        page.sum_blocks(map);
        page.sum_containers(map);
        page.find_beginning(map);
        page
    }

    fn sum_blocks(&mut self, map: &BlockMap) {
        let mut before = Before::default();
        for block in &map.blocks {
            let container = map.container_of(block);
            let words = block.counts.words;
            let prose_words = if block.is_prose() { words } else { 0 };
            let group = self.blocks_alike.entry(likeness(map, block)).or_default();
            group.count += 1;
            group.words += words;
            group.bytes += block.bytes();
            group.link_bytes += block.link_bytes;
            group.prose_words += prose_words;
            let same_text = self.same_text.entry(block.counts.hash).or_default();
            before.same_text = *same_text;
            *same_text += 1;
            let share = ratio(words, self.total.words);
            self.tag_shares[block.tag as usize] += share;
            for (bit, sum) in self.place_shares.iter_mut().enumerate() {
                *sum += if container.place >> bit & 1 == 1 { share } else { 0.0 };
            }
            self.currency_share += if block.counts.currency_signs > 0 { share } else { 0.0 };

            if block.tag.is_heading() {
                before.words_since_heading = 0;
                before.heading_hints = block.text_hints;
                before.heading_level = block.tag as u32 - BlockTag::Heading1 as u32 + 1;
            }
            if block.tag == BlockTag::Heading1 {
                before.h1_seen += 1;
                before.words_since_h1 = 0;
            }
            self.before.push(before);
            before.words += words;
            before.prose_words += prose_words;
            before.bytes += block.bytes();
            before.link_bytes += block.link_bytes;
            before.words_since_heading += words;
            before.words_since_h1 += words;
            before.blocks_since_prose += 1;
            before.words_since_prose += words;
            if prose_words > 0 {
                (before.blocks_since_prose, before.words_since_prose) = (0, 0);
            }
        }
        self.before.push(before);
    }

    fn sum_containers(&mut self, map: &BlockMap) {
        for (at, container) in map.containers.iter().enumerate() {
            if container.words == 0 {
                continue;
            }
            let group = self.containers_alike.entry(container.signature).or_default();
            group.count += 1;
            group.words += container.words;
            group.bytes += container.bytes;
            group.link_bytes += container.link_bytes;
            group.prose_words += container.prose_words;
            let parent = &map.containers[container.parent as usize];
            let is_article = |container: &Container| container.place & place::ARTICLE != 0;
            if is_article(container) {
                let around = self.article_of.get(&container.parent).copied();
                let is_outermost = !is_article(parent);
                self.articles += u32::from(is_outermost);
                let article = around.unwrap_or((self.articles, container.words));
                self.article_of.insert(at as u32, article);
            }
        }
        let weight = |group: &&Group| (group.words, group.count);
        let repeated = self.containers_alike.values().filter(|group| group.count >= REPEATED_MIN);
        self.repeated = repeated.max_by_key(weight).copied().unwrap_or_default();
    }

    fn find_beginning(&mut self, map: &BlockMap) {
        let blocks = &map.blocks;
        self.title_likenesses =
            blocks.iter().map(|block| self.title_likeness(map, block)).collect();
        let rank = |at: usize| {
            let heading_bonus = match blocks[at].tag {
                BlockTag::Heading1 => 0.5,
                BlockTag::Heading2 => 0.2,
                _ => 0.0,
            };
            self.title_likenesses[at] + heading_bonus
        };
        let candidates = (0..blocks.len()).filter(|at| rank(*at) >= 0.5);
        // The first one of the best: the same words often stand in a list at the end once more.
        self.title_block =
            candidates.rev().max_by(|one, other| rank(*one).total_cmp(&rank(*other)));
        let behind = self.title_block.map_or(0, |at| at + 1);
        let is_paragraph = |at: &usize| blocks[*at].is_prose() && blocks[*at].counts.words >= 20;
        self.first_paragraph = (behind..blocks.len()).find(is_paragraph);
    }

    /// How alike the words of a short block and of the title are: from 0 to 1, else -1.
    fn title_likeness(&self, map: &BlockMap, block: &Block) -> f32 {
        let title = &self.title_words;
        if block.counts.words > TITLE_WORDS_MAX || title.is_empty() {
            return -1.0;
        }
        let mut words: Vec<_> = word_hashes(map.text_of(block)).collect();
        words.sort_unstable();
        words.dedup();
        let shared = words.iter().filter(|word| title.contains(word)).count();
        2.0 * shared as f32 / (words.len() + title.len()).max(1) as f32
    }

    /// What describes the page as a whole, the same for all blocks.
    fn numbers(&self, map: &BlockMap, signs: &PageSigns<'_>) -> Vec<f32> {
        let total = &self.total;
        let mut values = vec![
            log(total.words),
            ratio(total.link_bytes, total.bytes),
            ratio(total.prose_words, total.words),
            log(total.blocks),
            log(total.headings),
            log(total.images),
            log(map.inputs),
            log(self.articles),
            self.currency_share,
        ];
        let tags = [BlockTag::Paragraph, BlockTag::Preformatted, BlockTag::Item, BlockTag::Cell];
        values.extend(tags.map(|tag| self.tag_shares[tag as usize]));
        let places =
            [place::NAV, place::MAIN, place::ARTICLE, place::TABLE, place::LIST, place::NOSCRIPT];
        values.extend(places.map(|place| self.place_shares[place.trailing_zeros() as usize]));
        values.extend(self.repeated.numbers(total));
        // What the page calls itself: forum, article, product, list, documentation.
        for hints in [map.body_hints, signs.path_hints] {
            values.extend([9, 14, 15, 19, 23].map(|group| flag(hints.has(group))));
        }
        let has_kind = |kind: usize| (signs.schema_kinds >> kind & 1) as f32;
        values.extend((0..PageSigns::SCHEMA_KINDS).map(has_kind));
        values.push(signs.path_depth as f32);
        values.push(flag(signs.path_has_date));
        values.push(log(signs.path_words));
        values
    }

    /// Sums over the blocks from `start` to `end`.
    fn window(&self, start: usize, end: usize) -> Group {
        let (first, last) = (&self.before[start], &self.before[end]);
        Group {
            count: (end - start) as u32,
            words: last.words - first.words,
            bytes: last.bytes - first.bytes,
            link_bytes: last.link_bytes - first.link_bytes,
            prose_words: last.prose_words - first.prose_words,
        }
    }
}

/// The same for blocks that stand in the same kind of containers.
fn likeness(map: &BlockMap, block: &Block) -> u64 {
    let container = map.container_of(block);
    let parent = &map.containers[container.parent as usize];
    mix(container.signature, parent.signature)
}

/// The deepest container that holds this share of all prose.
fn deepest_with_prose(map: &BlockMap, share: f32) -> u32 {
    let wanted = (map.containers[0].prose_words as f32 * share).max(1.0);
    let holds = |container: &Container| container.prose_words as f32 >= wanted;
    let holding = map.containers.iter().enumerate().filter(|(_, container)| holds(container));
    holding.max_by_key(|(_, container)| container.depth).map_or(0, |(at, _)| at as u32)
}

/// One block on its way to numbers.
struct Row<'a> {
    map: &'a BlockMap,
    page: &'a Page,
    at: usize,
    values: &'a mut Vec<f32>,
}

impl<'a> Row<'a> {
    fn push(&mut self, value: f32) {
        self.values.push(value);
    }

    fn push_all<const N: usize>(&mut self, values: [f32; N]) {
        self.values.extend(values);
    }

    fn push_bits(&mut self, bits: u32, count: usize) {
        self.values.extend((0..count).map(|bit| (bits >> bit & 1) as f32));
    }

    fn current(&self) -> &'a Block {
        let map = self.map;
        &map.blocks[self.at]
    }

    fn block(&mut self) {
        let block = self.current();
        let counts = block.counts;
        let before_same = self.page.before[self.at].same_text;
        self.push_all([
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
            log(self.page.same_text[&counts.hash]),
            log(before_same),
        ]);
    }

    fn position(&mut self) {
        let before = self.page.before[self.at];
        let total = &self.page.total;
        self.push_all([
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
        self.push_bits(before.heading_hints.0, TEXT_GROUPS.len());
        let article = self.page.article_of.get(&self.current().container);
        let (ordinal, words) = article.copied().unwrap_or((0, 0));
        self.push_all([log(ordinal), ratio(words, total.words)]);
    }

    fn names(&mut self) {
        let block = self.current();
        let container = self.map.container_of(block);
        let parent = &self.map.containers[container.parent as usize];
        let near = container.hints.with(parent.hints).with(block.inline_hints);
        let (place, around, text) = (container.place, container.hints_around, block.text_hints);
        self.push_bits(place, place::COUNT);
        self.push_bits(near.0, MARKUP_GROUPS.len());
        self.push_bits(around.0, MARKUP_GROUPS.len());
        self.push_bits(text.0, TEXT_GROUPS.len());
    }

    fn containers(&mut self) {
        let page = self.page;
        let block = self.current();
        let (words, at) = (block.counts.words, block.container);
        let levels = self.map.levels::<LEVELS>(block);
        for level in &levels {
            let container = &self.map.containers[*level as usize];
            self.values.extend([
                log(container.words),
                ratio(container.link_bytes, container.bytes),
                ratio(container.prose_words, container.words),
                ratio(container.words, page.total.words),
                ratio(container.words, container.blocks),
                ratio(container.headings, container.blocks),
                ratio(words, container.words),
            ]);
        }
        let depth = self.map.containers[at as usize].depth;
        for holder in [page.prose_half, page.prose_most] {
            let held = &self.map.containers[holder as usize];
            let inside = held.holds(at);
            let shared = self.levels(at).find(|container| container.holds(holder));
            let shared_depth = shared.map_or(0, |container| container.depth);
            self.push_all([flag(inside), (held.depth.saturating_sub(shared_depth)) as f32]);
            self.push(depth as f32 - held.depth as f32);
        }
        self.push(depth as f32);
    }

    /// How far from the beginning of the content a block stands, in words and in the tree.
    fn beginning(&mut self) {
        let page = self.page;
        for start in [page.title_block, page.first_paragraph] {
            let Some(start) = start else {
                self.push_all([-1.0; 4]);
                continue;
            };
            let words_between = page.before[self.at].words.abs_diff(page.before[start].words);
            let to = self.map.blocks[start].container;
            let from = self.current().container;
            let shared = self.levels(from).find(|container| container.holds(to));
            let shared_depth = shared.map_or(0, |container| container.depth);
            let depth_of = |at: u32| self.map.containers[at as usize].depth;
            self.push_all([
                self.at.cmp(&start) as i8 as f32,
                log(words_between),
                (depth_of(to) - shared_depth) as f32,
                (depth_of(from) - shared_depth) as f32,
            ]);
        }
    }

    /// The containers around, from the inside out; the document is the last one.
    fn levels(&self, innermost: u32) -> impl Iterator<Item = &'a Container> + use<'a> {
        let map = self.map;
        let containers = &map.containers;
        let up = move |at: &u32| (*at != 0).then(|| containers[*at as usize].parent);
        std::iter::successors(Some(innermost), up).map(move |at| &containers[at as usize])
    }

    fn likeness(&mut self) {
        let block = self.current();
        let page = self.page;
        let alike = page.blocks_alike[&likeness(self.map, block)];
        self.push_all(alike.numbers(&page.total));
        let group_of = |container: &Container| page.containers_alike.get(&container.signature);
        let mut repeated = (Group::default(), 0);
        for (level, container) in self.levels(block.container).enumerate() {
            if let Some(group) = group_of(container).filter(|group| group.count >= REPEATED_MIN) {
                repeated = (*group, level + 1);
                if container.blocks > 1 {
                    break;
                }
            }
        }
        self.push_all(repeated.0.numbers(&page.total));
        self.push(repeated.1 as f32);
    }

    fn neighbours(&mut self) {
        let blocks = &self.map.blocks;
        let container = self.current().container;
        let parent = self.map.containers[container as usize].parent;
        for offset in [-2, -1, 1, 2] {
            let Some(near) = self.at.checked_add_signed(offset).and_then(|at| blocks.get(at))
            else {
                self.values.extend([-1.0; 5]);
                continue;
            };
            let near_parent = self.map.container_of(near).parent;
            self.values.extend([
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
            self.values.extend([
                ratio(window.words, window.count),
                window.link_density(),
                ratio(window.prose_words, window.words),
            ]);
        }
    }
}

/// The words of a text, in lower case, as hashes.
fn word_hashes(text: &str) -> impl Iterator<Item = u64> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(|word| {
        let letters = word.chars().flat_map(char::to_lowercase);
        letters.fold(0, |hash, letter| mix(hash, u64::from(letter)))
    })
}

/// The logarithm of one more than a count. Most counts are small, and their logarithms are kept.
fn log(count: u32) -> f32 {
    static LOGS: LazyLock<[f32; 1024]> =
        LazyLock::new(|| std::array::from_fn(|count| (count as f32).ln_1p()));
    LOGS.get(count as usize).copied().unwrap_or_else(|| (count as f32).ln_1p())
}

fn ratio(part: u32, whole: u32) -> f32 {
    if whole == 0 { 0.0 } else { part as f32 / whole as f32 }
}

fn flag(is: bool) -> f32 {
    f32::from(u8::from(is))
}
