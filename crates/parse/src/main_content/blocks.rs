//! [`BlockMap`]: a page cut into blocks of text, and the containers around them. A block is what
//! stands between two elements that break lines; a container is an element that does.
//!
//! Only counts here; what the counts mean is for `features` and for the model.

use html5ever::{LocalName, local_name, ns};

use crate::main_content::hints::{HintReader, Hints, hints_of_text};
use crate::main_content::words::TextCounts;
use crate::roles::{Role, role};
use crate::text::TextWriter;
use crate::tree::{ElementRef, NodeId, NodeRef, Step, Tree};

/// Blocks that are looked at; the rest of a page is never main content. The largest of 993 real
/// pages has a third of it.
pub(crate) const BLOCKS_MAX: usize = 20_000;

/// Words up to which a block is short enough for its single words to mean something.
const SHORT_WORDS_MAX: u32 = 15;

/// Elements that are told apart as containers of blocks; what stands in a later one counts as part of
/// the one around it. The largest of 993 real pages has 5,866.
const CONTAINERS_MAX: usize = 1 << 16;

/// Stands for "no block" in [`BlockMap::block_of_node`].
const NO_BLOCK: u32 = u32::MAX;

/// Where a container stands: a bit for every element that is around it or that it is itself.
pub(crate) mod place {
    pub(crate) const NAV: u32 = 1;
    pub(crate) const HEADER: u32 = 1 << 1;
    pub(crate) const FOOTER: u32 = 1 << 2;
    pub(crate) const ASIDE: u32 = 1 << 3;
    pub(crate) const MAIN: u32 = 1 << 4;
    pub(crate) const ARTICLE: u32 = 1 << 5;
    pub(crate) const FORM: u32 = 1 << 6;
    pub(crate) const TABLE: u32 = 1 << 7;
    pub(crate) const LIST: u32 = 1 << 8;
    pub(crate) const FIGURE: u32 = 1 << 9;
    pub(crate) const HIDDEN: u32 = 1 << 10;
    pub(crate) const QUOTE: u32 = 1 << 11;
    pub(crate) const DIALOG: u32 = 1 << 12;
    pub(crate) const SECTION: u32 = 1 << 13;
    pub(crate) const BUTTON: u32 = 1 << 14;
    pub(crate) const DETAILS: u32 = 1 << 15;
    /// What browsers show if scripts are off: an apology, or the whole page in plain.
    pub(crate) const NOSCRIPT: u32 = 1 << 16;
    /// How many there are.
    pub(crate) const COUNT: usize = 17;
}

/// The element that a block stands in, as a number for the model: related ones are neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum BlockTag {
    Paragraph,
    Quote,
    Preformatted,
    Caption,
    Definition,
    Term,
    Item,
    Cell,
    Heading1,
    Heading2,
    Heading3,
    Heading4,
    Summary,
    #[default]
    Other,
    Label,
    Button,
}

impl BlockTag {
    fn of(name: &LocalName) -> Self {
        match *name {
            local_name!("p") => Self::Paragraph,
            local_name!("blockquote") => Self::Quote,
            local_name!("pre") => Self::Preformatted,
            local_name!("figcaption") | local_name!("caption") => Self::Caption,
            local_name!("dd") => Self::Definition,
            local_name!("dt") => Self::Term,
            local_name!("li") => Self::Item,
            local_name!("td") | local_name!("th") => Self::Cell,
            local_name!("h1") => Self::Heading1,
            local_name!("h2") => Self::Heading2,
            local_name!("h3") => Self::Heading3,
            local_name!("h4") | local_name!("h5") | local_name!("h6") => Self::Heading4,
            local_name!("summary") => Self::Summary,
            local_name!("label") | local_name!("legend") => Self::Label,
            local_name!("button") => Self::Button,
            _ => Self::Other,
        }
    }

    pub(crate) fn is_heading(self) -> bool {
        (Self::Heading1..=Self::Heading4).contains(&self)
    }
}

/// A block of text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    /// Where its text stands in [`BlockMap::text`].
    pub start: u32,
    pub end: u32,
    /// Where its words stand in [`BlockMap::words`].
    words_start: u32,
    words_end: u32,
    /// The container around it.
    pub container: u32,
    pub tag: BlockTag,
    pub counts: TextCounts,
    /// Bytes of its text that are links, and the number of those.
    pub link_bytes: u32,
    pub links: u32,
    pub emphasis_bytes: u32,
    pub images_before: u32,
    /// Of the names of elements inside it, and of its words if they are few.
    pub inline_hints: Hints,
    pub text_hints: Hints,
}

impl Block {
    pub(crate) fn bytes(&self) -> u32 {
        self.end - self.start
    }

    /// Whether it reads like prose: a good number of words in sentences, few of them links.
    pub(crate) fn is_prose(&self) -> bool {
        self.counts.words >= 10
            && self.link_bytes * 3 < self.bytes()
            && self.counts.sentence_ends > 0
    }
}

/// An element that breaks lines, with the sums of everything below it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Container {
    /// Its own number.
    at: u32,
    /// The container around it; the document is its own parent.
    pub parent: u32,
    /// The number of the first container behind it that is not inside it.
    pub end: u32,
    pub depth: u32,
    pub place: u32,
    pub tag: BlockTag,
    /// Of its own name, and of the names of all elements around it up to the body.
    pub hints: Hints,
    pub hints_around: Hints,
    /// The same for elements of one name and class.
    name_hash: u64,
    /// The same for elements of one name and class in parents of one name and class.
    pub signature: u64,
    pub words: u32,
    pub bytes: u32,
    pub link_bytes: u32,
    pub links: u32,
    pub blocks: u32,
    pub prose_words: u32,
    pub headings: u32,
    pub images: u32,
}

impl Container {
    /// Whether another container, by its number, is this one or inside it.
    pub(crate) fn holds(&self, other: u32) -> bool {
        (self.at..self.end).contains(&other)
    }
}

/// A page cut into blocks.
#[derive(Default)]
pub(crate) struct BlockMap {
    pub text: String,
    /// The words of all blocks, as hashes.
    words: Vec<u32>,
    pub blocks: Vec<Block>,
    /// The first one is the document.
    pub containers: Vec<Container>,
    block_of_node: Vec<u32>,
    /// What the class of `<body>` says of the whole page.
    pub body_hints: Hints,
    /// Fields of forms.
    pub inputs: u32,
}

impl BlockMap {
    /// Cuts a page.
    pub(crate) fn of(tree: &Tree, text_bytes_max: usize) -> Self {
        let mut cutter = Cutter::new(tree, text_bytes_max);
        let mut walk = tree.walk();
        while let Some(step) = walk.next() {
            match step {
                Step::Enter(node) => {
                    if !cutter.enter(node) {
                        walk.pass_by(node);
                    }
                }
                Step::Leave(node) => cutter.leave(node),
            }
        }
        cutter.finish()
    }

    pub(crate) fn text_of(&self, block: &Block) -> &str {
        &self.text[block.start as usize..block.end as usize]
    }

    /// The words of a block, as hashes.
    pub(crate) fn words_of(&self, block: &Block) -> &[u32] {
        &self.words[block.words_start as usize..block.words_end as usize]
    }

    pub(crate) fn container_of(&self, block: &Block) -> &Container {
        &self.containers[block.container as usize]
    }

    /// The containers around a block from the inside out, without wrappers around a single child,
    /// which say nothing new. Where there are no more, the document is repeated.
    pub(crate) fn levels<const N: usize>(&self, block: &Block) -> [u32; N] {
        let mut levels = [0; N];
        let (mut at, mut words) = (block.container, block.counts.words);
        for level in &mut levels {
            while at != 0 && self.containers[at as usize].words <= words {
                at = self.containers[at as usize].parent;
            }
            *level = at;
            words = self.containers[at as usize].words;
        }
        levels
    }

    /// The block that a text node is part of.
    pub(crate) fn block_of(&self, node: NodeId) -> Option<usize> {
        // Line ends alone, as in an empty `<pre>`, belong to the block behind them. There may be none.
        Some(self.block_of_node[node.index()] as usize).filter(|at| *at < self.blocks.len())
    }
}

struct Cutter<'t> {
    tree: &'t Tree,
    hint_reader: HintReader<'t>,
    map: BlockMap,
    text: TextWriter,
    /// The innermost open container.
    container: u32,
    /// Elements within it that are open and were not taken for containers, because there are too many.
    uncounted_open: u32,
    /// The block that is being read, and where its text begins.
    block: Block,
    block_start: usize,
    /// Line breaks since the last word.
    line_breaks: u32,
    anchors_open: u32,
    emphasis_open: u32,
    verbatim_open: u32,
}

/// What an element is to the cutter.
enum Part {
    Container,
    Anchor,
    Emphasis,
    LineBreak,
    Image,
    Inline,
    Skipped,
}

impl<'t> Cutter<'t> {
    fn new(tree: &'t Tree, text_bytes_max: usize) -> Self {
        let map = BlockMap {
            containers: vec![Container::default()],
            block_of_node: vec![NO_BLOCK; tree.node_count()],
            ..BlockMap::default()
        };
        Self {
            tree,
            hint_reader: HintReader::default(),
            map,
            text: TextWriter::new(text_bytes_max),
            container: 0,
            uncounted_open: 0,
            block: Block::default(),
            block_start: 0,
            line_breaks: 0,
            anchors_open: 0,
            emphasis_open: 0,
            verbatim_open: 0,
        }
    }

    /// Returns whether to go on below.
    fn enter(&mut self, node: NodeId) -> bool {
        let element = match self.tree.node(node) {
            NodeRef::Root => return true,
            NodeRef::Text(text) => {
                self.write(node, text);
                return false;
            }
            NodeRef::Element(element) => element,
        };
        match part(element) {
            Part::Container => self.open_container(element),
            Part::Anchor => {
                self.anchors_open += 1;
                self.block.links += 1;
                self.take_inline_hints(element);
            }
            Part::Emphasis => self.emphasis_open += 1,
            Part::LineBreak => self.break_line(),
            Part::Image => {
                self.block.images_before += 1;
                self.map.containers[self.container as usize].images += 1;
            }
            Part::Inline => {
                self.map.inputs += u32::from(element.name.local == local_name!("input"));
                self.take_inline_hints(element);
            }
            Part::Skipped => return false,
        }
        true
    }

    fn leave(&mut self, node: NodeId) {
        let NodeRef::Element(element) = self.tree.node(node) else { return };
        match part(element) {
            Part::Container => self.close_container(element),
            Part::Anchor => self.anchors_open -= 1,
            Part::Emphasis => self.emphasis_open -= 1,
            Part::LineBreak | Part::Image | Part::Inline | Part::Skipped => {}
        }
    }

    fn write(&mut self, node: NodeId, text: &str) {
        let before = self.text.len();
        if self.verbatim_open > 0 {
            self.text.verbatim(text);
        } else {
            self.text.flowing(text);
        }
        let written = (self.text.len() - before) as u32;
        if written == 0 || self.map.blocks.len() >= BLOCKS_MAX {
            return;
        }
        self.line_breaks = 0;
        self.map.block_of_node[node.index()] = self.map.blocks.len() as u32;
        if self.anchors_open > 0 {
            self.block.link_bytes += written;
        }
        if self.emphasis_open > 0 {
            self.block.emphasis_bytes += written;
        }
    }

    /// Two line breaks without a word between them are a paragraph to a reader of the page.
    fn break_line(&mut self) {
        self.line_breaks += 1;
        if self.line_breaks >= 2 && self.verbatim_open == 0 {
            self.end_block();
        } else {
            self.text.line();
        }
    }

    fn take_inline_hints(&mut self, element: ElementRef<'t>) {
        if let Some(class) = element.attribute(&local_name!("class")) {
            let name = self.hint_reader.of_name(class);
            self.block.inline_hints = self.block.inline_hints.with(name.hints);
        }
    }

    fn open_container(&mut self, element: ElementRef<'t>) {
        self.end_block();
        let name = &element.name.local;
        if role(name) == Role::Verbatim {
            self.verbatim_open += 1;
        }
        if self.map.containers.len() >= CONTAINERS_MAX {
            self.uncounted_open += 1;
            return;
        }
        let mut hints = Hints::default();
        let mut name_hash = name.get_hash();
        for attribute in [local_name!("class"), local_name!("id"), local_name!("role")] {
            let Some(value) = element.attribute(&attribute) else { continue };
            let name = self.hint_reader.of_name(value);
            hints = hints.with(name.hints);
            if attribute == local_name!("class") {
                name_hash ^= name.hash;
            }
        }
        let parent = &self.map.containers[self.container as usize];
        let is_body = *name == local_name!("body");
        let mut container = Container {
            at: self.map.containers.len() as u32,
            parent: self.container,
            depth: parent.depth + 1,
            place: parent.place | place_of(element),
            tag: BlockTag::of(name),
            hints,
            hints_around: parent.hints_around.with(hints),
            name_hash,
            signature: mix(parent.name_hash, name_hash),
            ..Container::default()
        };
        if is_body {
            self.map.body_hints = hints;
            (container.hints, container.hints_around) = Default::default();
        }
        self.container = self.map.containers.len() as u32;
        self.map.containers.push(container);
    }

    fn close_container(&mut self, element: ElementRef<'t>) {
        self.end_block();
        if role(&element.name.local) == Role::Verbatim {
            self.verbatim_open -= 1;
        }
        if self.uncounted_open > 0 {
            self.uncounted_open -= 1;
            return;
        }
        let end = self.map.containers.len() as u32;
        self.map.containers[self.container as usize].end = end;
        let closed = self.map.containers[self.container as usize].clone();
        self.container = closed.parent;
        let parent = &mut self.map.containers[closed.parent as usize];
        parent.words += closed.words;
        parent.bytes += closed.bytes;
        parent.link_bytes += closed.link_bytes;
        parent.links += closed.links;
        parent.blocks += closed.blocks;
        parent.prose_words += closed.prose_words;
        parent.headings += closed.headings;
        parent.images += closed.images;
    }

    /// Puts the block that was read into its container.
    fn end_block(&mut self) {
        self.text.block();
        self.line_breaks = 0;
        let written = &self.text.as_str()[self.block_start..];
        let text = written.trim_start_matches('\n');
        let start = self.block_start + written.len() - text.len();
        self.block_start = self.text.len();
        if text.is_empty() || self.map.blocks.len() >= BLOCKS_MAX {
            // An image alone stands before the next block.
            self.block = Block { images_before: self.block.images_before, ..Block::default() };
            return;
        }
        let mut block = std::mem::take(&mut self.block);
        block.words_start = self.map.words.len() as u32;
        block.counts = TextCounts::of(text, &mut self.map.words);
        block.words_end = self.map.words.len() as u32;
        if block.counts.words <= SHORT_WORDS_MAX {
            block.text_hints = hints_of_text(text);
        }
        block.start = start as u32;
        block.end = self.text.len() as u32;
        // What separates the first word from the last block is no part of the link around it.
        block.link_bytes = block.link_bytes.min(block.bytes());
        block.container = self.container;
        let container = &mut self.map.containers[self.container as usize];
        block.tag = container.tag;
        container.words += block.counts.words;
        container.bytes += block.bytes();
        container.link_bytes += block.link_bytes;
        container.links += block.links;
        container.blocks += 1;
        container.prose_words += if block.is_prose() { block.counts.words } else { 0 };
        container.headings += u32::from(block.tag.is_heading());
        self.map.blocks.push(block);
    }

    fn finish(mut self) -> BlockMap {
        self.end_block();
        self.map.containers[0].end = self.map.containers.len() as u32;
        self.map.text = self.text.into_string();
        self.map
    }
}

fn part(element: ElementRef<'_>) -> Part {
    if element.name.ns == ns!(svg) {
        return Part::Skipped;
    }
    match element.name.local {
        local_name!("button") | local_name!("label") | local_name!("noscript") => {
            return Part::Container;
        }
        local_name!("select") | local_name!("datalist") | local_name!("textarea") => {
            return Part::Skipped;
        }
        local_name!("b") | local_name!("strong") | local_name!("em") | local_name!("i") => {
            return Part::Emphasis;
        }
        local_name!("img") | local_name!("video") => return Part::Image,
        _ => {}
    }
    match role(&element.name.local) {
        Role::Block | Role::Verbatim | Role::Article | Role::Cell => Part::Container,
        Role::Anchor => Part::Anchor,
        Role::LineBreak => Part::LineBreak,
        Role::Inline => Part::Inline,
        Role::Hidden | Role::Skipped => Part::Skipped,
    }
}

fn place_of(element: ElementRef<'_>) -> u32 {
    let by_name = match element.name.local {
        local_name!("nav") | local_name!("menu") => place::NAV,
        local_name!("header") => place::HEADER,
        local_name!("footer") => place::FOOTER,
        local_name!("aside") => place::ASIDE,
        local_name!("main") => place::MAIN,
        local_name!("article") => place::ARTICLE,
        local_name!("form") | local_name!("search") => place::FORM,
        local_name!("table") => place::TABLE,
        local_name!("ul") | local_name!("ol") | local_name!("dl") => place::LIST,
        local_name!("figure") => place::FIGURE,
        local_name!("blockquote") => place::QUOTE,
        local_name!("dialog") => place::DIALOG,
        local_name!("section") => place::SECTION,
        local_name!("button") => place::BUTTON,
        local_name!("details") => place::DETAILS,
        local_name!("noscript") => place::NOSCRIPT,
        _ => 0,
    };
    let by_role = match element.attribute(&local_name!("role")).unwrap_or_default() {
        "navigation" | "menu" | "menubar" => place::NAV,
        "banner" => place::HEADER,
        "contentinfo" => place::FOOTER,
        "complementary" => place::ASIDE,
        "main" => place::MAIN,
        "article" => place::ARTICLE,
        "search" | "form" => place::FORM,
        "dialog" | "alertdialog" => place::DIALOG,
        _ => 0,
    };
    by_name | by_role | if is_hidden(element) { place::HIDDEN } else { 0 }
}

fn is_hidden(element: ElementRef<'_>) -> bool {
    let says = |name, value| element.attribute(name).is_some_and(|said| said == value);
    element.attribute(&local_name!("hidden")).is_some()
        || says(&local_name!("aria-hidden"), "true")
        || element.attribute(&local_name!("style")).is_some_and(|style| {
            let behind = style.split_once("display").map(|(_, behind)| behind.trim_ascii_start());
            let value = behind.and_then(|behind| behind.strip_prefix(':'));
            value.is_some_and(|value| value.trim_ascii_start().starts_with("none"))
        })
}

pub(crate) fn mix(one: u64, other: u64) -> u64 {
    (one.rotate_left(23) ^ other).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
