//! [`Guard`]: stands between the tokenizer and html5ever's tree builder and keeps hostile nesting
//! away from it. Never changes what an honest page means.
//!
//! The tree builder is quadratic in three ways: many tags make it walk the whole stack of open
//! elements (16,000 `<ul><li>` took five seconds), every `<p>` may re-open every formatting
//! element that was never closed, and its list of formatting elements is searched from the start.
//! So the stack, the copies and the list each have a bound here, and so has the work of walking the
//! stack for tag after tag that closes nothing.

use html5ever::interface::{Tracer, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{Doctype, Tag, TagKind, Token, TokenSink, TokenSinkResult};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5ever::{LocalName, local_name};

use crate::ParseLimits;
use crate::tokens::{Next, Sink};
use crate::tree::{Arena, NodeId, Tree};

/// `<object>` and its like put a marker on the list of formatting elements, which stays there if
/// they are not closed by their own end tag. No real page nests films this deep.
const MARKERS_MAX: usize = 64;

/// How far back an end tag is compared with the tags that were left out. Beyond that, the page is
/// so deep and so crooked that one lost end tag does not matter.
const FLATTENED_LOOKBACK: usize = 64;

/// Formatting elements of one name that the list can hold. The standard allows three with the same
/// attributes; attributes are dropped by the tokenizer, but for three of `<font>`, present or not, and
/// one of sixty languages of `<code>`.
const SAME_FORMATTING_MAX: usize = 3 * 61;

/// Tags times open elements that the builder may have to walk, after which nesting means nothing any
/// more. Of 993 real pages, the worst needs a fourteenth of it.
const STEPS_MAX: usize = 4 << 20;
/// Tags after which the open elements are counted for that sum: often enough that hundreds of elements cannot be opened
/// and closed in between, and too seldom to cost anything.
const STEPS_INTERVAL: usize = 64;

/// The elements that the standard re-opens after wrong nesting, but for `<a>`, of which there can
/// be only one.
const FORMATTING: [LocalName; 13] = [
    local_name!("b"),
    local_name!("big"),
    local_name!("code"),
    local_name!("em"),
    local_name!("font"),
    local_name!("i"),
    local_name!("nobr"),
    local_name!("s"),
    local_name!("small"),
    local_name!("strike"),
    local_name!("strong"),
    local_name!("tt"),
    local_name!("u"),
];

/// The work that the tree builder has done for one page. A page may hold many pieces of markup, as a
/// feed does in its entries: they share one budget, or a page of thirty small trees would cost thirty
/// times what a page may.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    /// Tags seen, and the steps that they may have cost.
    tags: usize,
    steps: usize,
    /// Elements that the builder has added by repairing wrong nesting, in the trees that are finished.
    repairs: usize,
}

/// The tree builder with its limits.
pub(crate) struct Guard<'l> {
    builder: TreeBuilder<NodeId, Arena>,
    limits: &'l ParseLimits,
    spent: &'l mut Spent,
    /// Open elements when they were last counted, and the elements created until then.
    open_counted: usize,
    created_counted: usize,
    /// Whether the stack was full when last counted and nothing could have shrunk it since.
    full: bool,
    /// The tags left out since the stack became full, waiting for their end tags.
    flattened: Vec<LocalName>,
    formatting_forwarded: usize,
    formatting_stopped: bool,
    markers: usize,
    /// Whether a `<script>` or its like is open. The builder takes nothing but its text and its end
    /// tag then, and panics at anything else.
    in_raw_text: bool,
    too_deep: bool,
}

impl<'l> Guard<'l> {
    /// A guard for this text, which is all of a page or a piece of it.
    pub(crate) fn new(text: &str, limits: &'l ParseLimits, spent: &'l mut Spent) -> Self {
        // Without scripting, `<noscript>` is markup, and its links are found.
        let options = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
        Self {
            builder: TreeBuilder::new(Arena::new(text), options),
            limits,
            open_counted: 0,
            created_counted: 0,
            full: false,
            flattened: Vec::new(),
            formatting_forwarded: 0,
            // Nothing is open yet that would have to be closed.
            formatting_stopped: spent.repairs > limits.repairs_max,
            markers: 0,
            in_raw_text: false,
            too_deep: false,
            spent,
        }
    }

    /// The finished tree, and whether anything was left out of it.
    pub(crate) fn finish(mut self) -> (Tree, bool) {
        self.forward(Token::EOFToken);
        self.spent.repairs += self.repairs();
        self.builder.end();
        (self.builder.sink.finish(), self.too_deep)
    }

    /// Whether the stack of open elements has reached its limit.
    ///
    /// Counting costs a walk of the stack, so it is done only when the elements created since the
    /// last count could have filled it.
    fn is_full(&mut self) -> bool {
        let created = self.builder.sink.elements();
        if self.open_counted + created - self.created_counted < self.limits.depth_max {
            return false;
        }
        if !self.full {
            self.open_counted = self.count_open();
            self.created_counted = created;
            self.full = self.open_counted >= self.limits.depth_max;
            if !self.full {
                // The element that held the flattened ones was closed, and they with it.
                self.flattened.clear();
            }
        }
        self.full
    }

    /// Adds up what tags may cost, and returns whether it has become too much.
    fn is_exhausted(&mut self) -> bool {
        self.spent.tags += 1;
        if self.spent.tags.is_multiple_of(STEPS_INTERVAL) && self.spent.steps <= STEPS_MAX {
            self.spent.steps += STEPS_INTERVAL * self.count_open();
        }
        let is_exhausted = self.spent.steps > STEPS_MAX;
        self.too_deep |= is_exhausted;
        is_exhausted
    }

    /// Open elements, and with them the few on the list of formatting elements.
    fn count_open(&self) -> usize {
        let counter = Counter::default();
        self.builder.trace_handles(&counter);
        counter.0.get()
    }

    /// Keeps what a tag means for links and for the text behind it, but leaves no element open.
    fn flatten(&mut self, mut tag: Tag) -> Next {
        self.too_deep = true;
        let name = tag.name.clone();
        if self.in_foreign_content() {
            // In SVG any element may close itself. HTML that stands in the midst of it ignores the
            // slash, but it ends the SVG or opens one element at most.
            tag.self_closing = true;
        } else if is_void(&name) || is_raw_text(&name) {
            // Void elements do not stay open; raw text is always closed before the next tag.
            return self.forward_start(tag);
        } else if name != local_name!("a") {
            self.flattened.push(name);
            return Next::Markup;
        }
        let next = self.forward_start(tag);
        if self.in_raw_text {
            return next;
        }
        if name == local_name!("a") && !self.in_foreign_content() {
            self.forward_end(name.clone());
        }
        self.flattened.push(name);
        next
    }

    /// Whether an end tag belongs to a tag that was left out, and so is left out itself.
    fn ends_flattened(&mut self, name: &LocalName) -> bool {
        let recent = self.flattened.len().saturating_sub(FLATTENED_LOOKBACK);
        let found = self.flattened[recent..].iter().rposition(|open| open == name);
        if let Some(found) = found {
            self.flattened.truncate(recent + found);
        }
        found.is_some()
    }

    /// Elements that the builder has added to this tree by repairing it.
    fn repairs(&self) -> usize {
        self.builder.sink.formatting_elements().saturating_sub(self.formatting_forwarded)
    }

    /// Ends all formatting for the rest of the page once the builder has re-opened too much of it.
    fn stop_endless_repairs(&mut self) {
        let repairs = self.spent.repairs + self.repairs();
        if self.formatting_stopped || repairs <= self.limits.repairs_max {
            return;
        }
        self.formatting_stopped = true;
        self.too_deep = true;
        for name in FORMATTING {
            for _ in 0..SAME_FORMATTING_MAX {
                self.forward_end(name.clone());
            }
        }
    }

    fn forward_start(&mut self, tag: Tag) -> Next {
        self.full = false;
        let next = self.forward(Token::TagToken(tag));
        self.in_raw_text = matches!(next, Next::Raw(_));
        if !self.in_raw_text {
            self.stop_endless_repairs();
        }
        next
    }

    fn forward_end(&mut self, name: LocalName) {
        self.full = false;
        self.forward(Token::TagToken(Tag {
            kind: TagKind::EndTag,
            name,
            self_closing: false,
            attrs: Vec::new(),
            had_duplicate_attributes: false,
        }));
    }

    fn forward(&mut self, token: Token) -> Next {
        // Line numbers are for error messages, which are not used here.
        match self.builder.process_token(token, 1) {
            TokenSinkResult::RawData(kind) => Next::Raw(kind),
            TokenSinkResult::Plaintext => Next::Plaintext,
            // Scripts are not run, and the encoding is settled.
            TokenSinkResult::Continue
            | TokenSinkResult::Script(_)
            | TokenSinkResult::EncodingIndicator(_) => Next::Markup,
        }
    }
}

impl Sink for Guard<'_> {
    fn text(&mut self, text: StrTendril) {
        self.forward(Token::CharacterTokens(text));
    }

    fn nul(&mut self) {
        self.forward(Token::NullCharacterToken);
    }

    /// The builder needs to know where comments are, not what is in them.
    fn comment(&mut self) {
        self.forward(Token::CommentToken(StrTendril::new()));
    }

    fn doctype(&mut self, doctype: Doctype) {
        self.forward(Token::DoctypeToken(doctype));
    }

    fn start_tag(&mut self, tag: Tag) -> Next {
        if is_formatting(&tag.name) && self.formatting_stopped {
            self.too_deep = true;
            return Next::Markup;
        }
        if sets_marker(&tag.name) && self.markers >= MARKERS_MAX {
            self.too_deep = true;
            return Next::Markup;
        }
        if self.is_exhausted() || self.is_full() {
            return self.flatten(tag);
        }
        if is_formatting(&tag.name) {
            self.formatting_forwarded += 1;
        } else if sets_marker(&tag.name) {
            self.markers += 1;
        }
        self.forward_start(tag)
    }

    fn end_tag(&mut self, name: LocalName) {
        let ends_raw_text = std::mem::take(&mut self.in_raw_text);
        if !ends_raw_text && (self.is_exhausted() || self.ends_flattened(&name)) {
            return;
        }
        if sets_marker(&name) {
            self.markers = self.markers.saturating_sub(1);
        }
        self.forward_end(name);
        self.stop_endless_repairs();
    }

    /// Whether the current element is SVG or MathML, where CDATA exists.
    fn in_foreign_content(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

#[derive(Default)]
struct Counter(std::cell::Cell<usize>);

impl Tracer for Counter {
    type Handle = NodeId;

    fn trace_handle(&self, _: &NodeId) {
        self.0.set(self.0.get() + 1);
    }
}

/// Whether an element is one of those that the standard re-opens after wrong nesting.
pub(crate) fn is_formatting(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("b")
            | local_name!("big")
            | local_name!("code")
            | local_name!("em")
            | local_name!("font")
            | local_name!("i")
            | local_name!("nobr")
            | local_name!("s")
            | local_name!("small")
            | local_name!("strike")
            | local_name!("strong")
            | local_name!("tt")
            | local_name!("u")
    )
}

fn sets_marker(name: &LocalName) -> bool {
    matches!(*name, local_name!("applet") | local_name!("marquee") | local_name!("object"))
}

/// Whether an element has no content and no end tag.
pub(crate) fn is_void(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("area")
            | local_name!("base")
            | local_name!("br")
            | local_name!("col")
            | local_name!("embed")
            | local_name!("frame")
            | local_name!("hr")
            | local_name!("img")
            | local_name!("input")
            | local_name!("link")
            | local_name!("meta")
            | local_name!("param")
            | local_name!("source")
            | local_name!("track")
            | local_name!("wbr")
    )
}

fn is_raw_text(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("iframe")
            | local_name!("noembed")
            | local_name!("noframes")
            | local_name!("plaintext")
            | local_name!("script")
            | local_name!("style")
            | local_name!("textarea")
            | local_name!("title")
            | local_name!("xmp")
    )
}
