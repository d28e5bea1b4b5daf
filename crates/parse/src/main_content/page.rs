//! [`Page`]: what follows from all blocks of a page together. Sums and places only; what they mean
//! for a block is for `features` and for the model.

use std::sync::LazyLock;

use crate::main_content::blocks::{Block, BlockMap, BlockTag, Container, mix, place};
use crate::main_content::quick_hash::{QuickMap, QuickSet};
use crate::main_content::signs::PageSigns;
use crate::main_content::words::TextCounts;

/// Blocks with more words are never compared with the title.
const TITLE_WORDS_MAX: u32 = 25;

/// What the text behind an article turns to, as places in
/// [`TEXT_GROUPS`](crate::main_content::hints::TEXT_GROUPS): sharing, comments, joining and other
/// stories.
const TURNS: [usize; 4] = [1, 3, 4, 7];
/// Words of a block up to which it can announce such a turn without being a heading.
const TURN_WORDS_MAX: u32 = 5;

/// Elements of one kind that make a repetition.
const REPEATED_MIN: u32 = 3;

/// What is the same for all blocks of a page, or follows from all of them.
pub(super) struct Page {
    pub total: Container,
    /// For every block, and one more for the end of the page.
    pub before: Vec<Before>,
    /// Groups of blocks whose innermost containers look alike.
    pub blocks_alike: Vec<Group>,
    /// How many blocks say the same.
    pub same_text: Vec<u32>,
    /// For every block.
    pub title_likenesses: Vec<f32>,
    /// The heading that repeats the title, and the first paragraph behind it.
    pub title_block: Option<usize>,
    pub first_paragraph: Option<usize>,
    /// For every block: words since the text behind the first paragraph first turned to each of
    /// [`TURNS`], on a logarithmic scale; -1 before that.
    pub turns: Vec<[f32; TURNS.len()]>,
    /// The deepest containers that hold half and most of the prose.
    pub prose_holders: [u32; 2],
    /// For every container.
    pub surroundings: Vec<Surroundings>,
    /// Groups of containers that look alike.
    containers_alike: Vec<Group>,
    tag_shares: [f32; 16],
    place_shares: [f32; place::COUNT],
    articles: u32,
    currency_share: f32,
}

/// What was met before a block.
#[derive(Clone, Copy, Default)]
pub(super) struct Before {
    pub words: u32,
    pub prose_words: u32,
    pub bytes: u32,
    pub link_bytes: u32,
    pub words_since_heading: u32,
    pub heading_level: u32,
    pub words_since_h1: u32,
    pub h1_seen: u32,
    /// Blocks with the very same words, and where all of them are counted.
    pub same_text_before: u32,
    pub same_text: u32,
    /// The group of blocks that look alike.
    pub alike: u32,
    /// How much of the last heading is a link.
    pub heading_link_share: f32,
    /// Blocks and words since the last prose.
    pub blocks_since_prose: u32,
    pub words_since_prose: u32,
}

/// What is around a container, itself included.
#[derive(Clone, Copy, Default)]
pub(super) struct Surroundings {
    /// The article's ordinal from 1, and its words, if it stands in one.
    pub article: u32,
    pub article_words: u32,
    /// The innermost container that is repeated and holds several blocks, else the outermost one
    /// that is repeated at all: its group, and how many levels up it is, from 1.
    repeated: u32,
    pub repeated_levels: u32,
    /// The depth down to which it shares its containers with those in [`Page::landmarks`].
    pub shared_depths: [u32; 4],
}

/// Sums over what looks alike.
#[derive(Clone, Copy, Default)]
pub(super) struct Group {
    pub count: u32,
    pub words: u32,
    bytes: u32,
    link_bytes: u32,
    pub prose_words: u32,
}

impl Group {
    pub(super) fn link_density(&self) -> f32 {
        ratio(self.link_bytes, self.bytes)
    }

    pub(super) fn numbers(&self, total: &Container) -> [f32; 5] {
        [
            log(self.count),
            ratio(self.words, total.words),
            self.link_density(),
            log(self.words.checked_div(self.count).unwrap_or_default()),
            ratio(self.prose_words, self.words),
        ]
    }
}

impl Page {
    pub(super) fn of(map: &BlockMap, signs: &PageSigns<'_>) -> Self {
        let mut page = Self {
            total: map.containers[0].clone(),
            before: Vec::with_capacity(map.blocks.len() + 1),
            blocks_alike: Vec::new(),
            same_text: Vec::new(),
            title_likenesses: Vec::with_capacity(map.blocks.len()),
            title_block: None,
            first_paragraph: None,
            turns: Vec::with_capacity(map.blocks.len()),
            prose_holders: [0.5, 0.8].map(|share| deepest_with_prose(map, share)),
            surroundings: Vec::with_capacity(map.containers.len()),
            containers_alike: Vec::new(),
            tag_shares: [0.0; 16],
            place_shares: [0.0; place::COUNT],
            articles: 0,
            currency_share: 0.0,
        };
        page.sum_blocks(map);
        page.compare_with_title(map, signs);
        page.find_beginning(map);
        page.find_turns(map);
        page.look_around(map);
        page
    }

    fn sum_blocks(&mut self, map: &BlockMap) {
        let mut before = Before::default();
        let mut groups = Groups::default();
        let mut texts: QuickMap<u64, u32> = QuickMap::default();
        for block in &map.blocks {
            let words = block.counts.words;
            let prose_words = if block.is_prose() { words } else { 0 };
            before.alike = groups.add(
                likeness(map, block),
                Group {
                    count: 1,
                    words,
                    bytes: block.bytes(),
                    link_bytes: block.link_bytes,
                    prose_words,
                },
            );
            before.same_text = *texts.entry(block.counts.hash).or_insert_with(|| {
                self.same_text.push(0);
                self.same_text.len() as u32 - 1
            });
            before.same_text_before = self.same_text[before.same_text as usize];
            self.same_text[before.same_text as usize] += 1;
            self.add_shares(map, block);

            if block.tag.is_heading() {
                before.words_since_heading = 0;
                before.heading_link_share = ratio(block.link_bytes, block.bytes());
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
        self.blocks_alike = groups.sums;
    }

    fn add_shares(&mut self, map: &BlockMap, block: &Block) {
        let share = ratio(block.counts.words, self.total.words);
        self.tag_shares[block.tag as usize] += share;
        let mut places = map.container_of(block).place;
        while places != 0 {
            self.place_shares[places.trailing_zeros() as usize] += share;
            places &= places - 1;
        }
        self.currency_share += if block.counts.currency_signs > 0 { share } else { 0.0 };
    }

    /// How alike the words of every short block and of the title are: from 0 to 1, else -1.
    fn compare_with_title(&mut self, map: &BlockMap, signs: &PageSigns<'_>) {
        let mut title = Vec::new();
        TextCounts::of(signs.title.unwrap_or_default(), &mut title);
        let title: QuickSet<u32> = title.into_iter().collect();
        // Few blocks share a word with the title, and one bit tells that for most of them.
        let bit = |word: u32| 1u64 << (word >> 26);
        let title_bits = title.iter().fold(0, |bits, word| bits | bit(*word));
        let mut shared = Vec::new();
        for block in &map.blocks {
            if block.counts.words > TITLE_WORDS_MAX || title.is_empty() {
                self.title_likenesses.push(-1.0);
                continue;
            }
            let words = map.words_of(block);
            shared.clear();
            shared.extend(words.iter().filter(|word| title_bits & bit(**word) != 0));
            if shared.is_empty() {
                self.title_likenesses.push(0.0);
                continue;
            }
            shared.clear();
            shared.extend_from_slice(words);
            shared.sort_unstable();
            shared.dedup();
            let distinct = shared.len();
            let shared = shared.iter().filter(|word| title.contains(word)).count();
            self.title_likenesses.push(2.0 * shared as f32 / (distinct + title.len()) as f32);
        }
    }

    fn find_beginning(&mut self, map: &BlockMap) {
        let blocks = &map.blocks;
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

    fn find_turns(&mut self, map: &BlockMap) {
        let mut first_words = [None; TURNS.len()];
        let begins = self.first_paragraph.unwrap_or(map.blocks.len());
        for (at, block) in map.blocks.iter().enumerate() {
            let words = self.before[at].words;
            let since = |first: Option<u32>| first.map_or(-1.0, |first| log(words - first));
            self.turns.push(first_words.map(since));
            let announces = block.tag.is_heading() || block.counts.words <= TURN_WORDS_MAX;
            if at <= begins || !announces {
                continue;
            }
            for (group, first) in TURNS.iter().zip(&mut first_words) {
                if block.text_hints.has(*group) {
                    first.get_or_insert(words);
                }
            }
        }
    }

    /// Containers are in the order of the page, so that what is around one is known before it.
    fn look_around(&mut self, map: &BlockMap) {
        let mut groups = Groups::default();
        let group_of = map.containers.iter().map(|container| {
            if container.words == 0 {
                return NO_GROUP;
            }
            groups.add(
                container.signature,
                Group {
                    count: 1,
                    words: container.words,
                    bytes: container.bytes,
                    link_bytes: container.link_bytes,
                    prose_words: container.prose_words,
                },
            )
        });
        let group_of: Vec<u32> = group_of.collect();
        self.containers_alike = groups.sums;

        let landmarks = self.landmarks(map);
        let is_article = |container: &Container| container.place & place::ARTICLE != 0;
        for (container, group) in map.containers.iter().zip(group_of) {
            let mut around =
                self.surroundings.get(container.parent as usize).copied().unwrap_or_default();
            if container.words > 0 && is_article(container) && around.article == 0 {
                self.articles += 1;
                (around.article, around.article_words) = (self.articles, container.words);
            }
            let is_repeated = self
                .containers_alike
                .get(group as usize)
                .is_some_and(|group| group.count >= REPEATED_MIN);
            let is_innermost = container.blocks > 1 || around.repeated_levels == 0;
            if is_repeated && is_innermost {
                (around.repeated, around.repeated_levels) = (group, 1);
            } else if around.repeated_levels > 0 {
                around.repeated_levels += 1;
            }
            for (depth, landmark) in around.shared_depths.iter_mut().zip(landmarks) {
                if landmark.is_some_and(|landmark| container.holds(landmark)) {
                    *depth = container.depth;
                }
            }
            self.surroundings.push(around);
        }
    }

    /// The containers that every block's distance is measured to.
    fn landmarks(&self, map: &BlockMap) -> [Option<u32>; 4] {
        let container = |at: Option<usize>| at.map(|at| map.blocks[at].container);
        let [half, most] = self.prose_holders.map(Some);
        [half, most, container(self.title_block), container(self.first_paragraph)]
    }

    /// The group of the repeated container around another one, empty if there is none.
    pub(super) fn repeated_around(&self, around: &Surroundings) -> Group {
        if around.repeated_levels == 0 {
            return Group::default();
        }
        self.containers_alike[around.repeated as usize]
    }

    /// What describes the page as a whole, the same for all blocks.
    pub(super) fn numbers(&self, map: &BlockMap, signs: &PageSigns<'_>) -> Vec<f32> {
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
        values.extend(self.most_repeated().numbers(total));
        // What the page calls itself: forum, article, product, list, documentation.
        for hints in [map.body_hints, signs.path_hints] {
            values.extend([9, 14, 15, 19, 23].map(|group| flag(hints.has(group))));
        }
        let has_kind = |kind: usize| (signs.schema_kinds >> kind & 1) as f32;
        values.extend((0..PageSigns::SCHEMA_KINDS).map(has_kind));
        values.push(signs.path_depth as f32);
        values.push(flag(signs.path_has_date));
        values.push(log(signs.path_words));
        values.push(log(signs.told.body_words));
        values
    }

    fn most_repeated(&self) -> Group {
        let repeated = self.containers_alike.iter().filter(|group| group.count >= REPEATED_MIN);
        repeated.max_by_key(|group| (group.words, group.count)).copied().unwrap_or_default()
    }

    /// Sums over the blocks from `start` to `end`.
    pub(super) fn window(&self, start: usize, end: usize) -> Group {
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

/// Stands for "no group", where there is nothing to sum up.
const NO_GROUP: u32 = u32::MAX;

/// Sums by what looks alike.
#[derive(Default)]
struct Groups {
    by_signature: QuickMap<u64, u32>,
    sums: Vec<Group>,
}

impl Groups {
    /// Adds to a group, and returns its number.
    fn add(&mut self, signature: u64, one: Group) -> u32 {
        let sums = &mut self.sums;
        let group = *self.by_signature.entry(signature).or_insert_with(|| {
            sums.push(Group::default());
            sums.len() as u32 - 1
        });
        let sum = &mut sums[group as usize];
        sum.count += one.count;
        sum.words += one.words;
        sum.bytes += one.bytes;
        sum.link_bytes += one.link_bytes;
        sum.prose_words += one.prose_words;
        group
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

/// The logarithm of one more than a count. Most counts are small, and their logarithms are kept.
pub(super) fn log(count: u32) -> f32 {
    static LOGS: LazyLock<[f32; 1024]> =
        LazyLock::new(|| std::array::from_fn(|count| (count as f32).ln_1p()));
    LOGS.get(count as usize).copied().unwrap_or_else(|| (count as f32).ln_1p())
}

pub(super) fn ratio(part: u32, whole: u32) -> f32 {
    if whole == 0 { 0.0 } else { part as f32 / whole as f32 }
}

pub(super) fn flag(is: bool) -> f32 {
    f32::from(u8::from(is))
}
