//! The main content as Markdown: headings, lists, quotes, tables, code, links, images, emphasis.
//!
//! Walks the same tree as everything else and writes only what is main content. What Markdown has no
//! word for (definition lists, forms, colours) becomes plain paragraphs.

mod code_language;
mod layout;
mod table;
mod writer;

#[cfg(test)]
mod tests;

use html5ever::{LocalName, local_name, ns};

pub(crate) use self::code_language::language_in;

use self::layout::LayoutTables;
use self::writer::{Inline, Writer};
use crate::content::{Base, heading_level, image_address};
use crate::main_content::MainContent;
use crate::roles::{Role, role};
use crate::text::one_line;
use crate::tree::{ElementRef, NodeId, NodeRef, Step, Tree};

/// Images that are not larger than this, in pixels, are there to count visitors or to keep a
/// distance.
const PIXELS_MAX: u32 = 4;

/// Bytes of what an image shows.
const ALT_BYTES_MAX: usize = 256;

/// Markdown, and whether all of it fitted.
pub(crate) struct Markdown {
    pub text: String,
    pub truncated: bool,
}

/// Writes the main content of a page.
pub(crate) fn write_markdown(
    tree: &Tree,
    main: &MainContent,
    base: Base<'_>,
    has_tables: bool,
    bytes_max: usize,
) -> Markdown {
    let layout = if has_tables { LayoutTables::of(tree) } else { LayoutTables::default() };
    let mut scribe =
        Scribe { tree, main, base, layout, writer: Writer::new(bytes_max), last_block: None };
    let mut walk = tree.walk();
    while let Some(step) = walk.next() {
        match step {
            Step::Enter(node) => {
                if !scribe.enter(node) {
                    walk.pass_by(node);
                }
            }
            Step::Leave(node) => scribe.leave(node),
        }
    }
    scribe.writer.finish()
}

struct Scribe<'t> {
    tree: &'t Tree,
    main: &'t MainContent,
    base: Base<'t>,
    layout: LayoutTables,
    writer: Writer<'t>,
    /// The block of the last text that was met, written or not.
    last_block: Option<usize>,
}

impl<'t> Scribe<'t> {
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
        if element.name.ns == ns!(svg) || self.writer.is_full() {
            return false;
        }
        let name = &element.name.local;
        if let Some(level) = heading_level(name) {
            self.writer.open_heading(level);
            return true;
        }
        match *name {
            local_name!("script") | local_name!("style") | local_name!("template") => return false,
            local_name!("ul") | local_name!("menu") => self.writer.open_list(None),
            local_name!("ol") => {
                let start = element.attribute(&local_name!("start"));
                let start = start.and_then(|start| start.trim().parse().ok()).unwrap_or(1);
                self.writer.open_list(Some(start));
            }
            local_name!("li") => self.writer.open_item(),
            local_name!("blockquote") => self.writer.open_quote(),
            local_name!("pre") => self.writer.open_code(code_language::of_pre(self.tree, node)),
            local_name!("br") => self.writer.break_line(),
            local_name!("img") => self.image(element),
            local_name!("table") if !self.layout.holds(node) => self.writer.open_table(),
            local_name!("tr") => self.writer.open_row(),
            local_name!("td") | local_name!("th") => {
                let columns = element.attribute(&local_name!("colspan"));
                let columns = columns.and_then(|columns| columns.trim().parse().ok()).unwrap_or(1);
                self.writer.open_cell(*name == local_name!("th"), columns);
            }
            _ => match inline(element, self.base) {
                Some(inline) => self.writer.open_inline(inline),
                None if is_block(name) => self.writer.end_block(),
                None => {}
            },
        }
        true
    }

    fn leave(&mut self, node: NodeId) {
        let NodeRef::Element(element) = self.tree.node(node) else { return };
        let name = &element.name.local;
        if heading_level(name).is_some() {
            return self.writer.close_heading();
        }
        match *name {
            local_name!("ul") | local_name!("ol") | local_name!("menu") => self.writer.close_list(),
            local_name!("li") => self.writer.close_item(),
            local_name!("blockquote") => self.writer.close_quote(),
            local_name!("pre") => self.writer.close_code(),
            local_name!("table") if !self.layout.holds(node) => self.writer.close_table(),
            local_name!("tr") => self.writer.close_row(),
            local_name!("td") | local_name!("th") => self.writer.close_cell(),
            _ if inline(element, self.base).is_some() => self.writer.close_inline(),
            _ if is_block(name) => self.writer.end_block(),
            _ => {}
        }
    }

    fn write(&mut self, node: NodeId, text: &'t str) {
        match self.main.block_of(node) {
            Some((block, is_main)) => {
                self.last_block = Some(block);
                if is_main {
                    self.writer.text(text);
                }
            }
            // White space between words is part of no block, but it separates them.
            None => self.writer.space(),
        }
    }

    fn image(&mut self, element: ElementRef<'t>) {
        if !self.last_block.is_some_and(|block| self.main.surrounds(block)) {
            return;
        }
        let pixels = |name: &LocalName| {
            element.attribute(name).and_then(|size: &str| size.trim().parse().ok())
        };
        let is_pixel = |size: Option<u32>| size.is_some_and(|size| size <= PIXELS_MAX);
        if is_pixel(pixels(&local_name!("width"))) || is_pixel(pixels(&local_name!("height"))) {
            return;
        }
        let Some(url) = image_address(element, None).and_then(|src| self.base.join(src)) else {
            return;
        };
        let alt = element.attribute(&local_name!("alt"));
        let alt = alt.and_then(|alt| one_line([alt].into_iter(), ALT_BYTES_MAX));
        self.writer.image(alt.as_deref().unwrap_or_default(), url.as_str());
    }
}

/// What an inline element is in Markdown.
fn inline<'t>(element: ElementRef<'t>, base: Base<'t>) -> Option<Inline<'t>> {
    match element.name.local {
        local_name!("strong") | local_name!("b") => Some(Inline::Strong),
        local_name!("em") | local_name!("i") | local_name!("cite") => Some(Inline::Emphasis),
        local_name!("code") | local_name!("kbd") | local_name!("samp") | local_name!("tt") => {
            Some(Inline::Code)
        }
        local_name!("a") => {
            let href = element.attribute(&local_name!("href"))?.trim_ascii();
            Some(Inline::Link { href, base })
        }
        _ => None,
    }
}

fn is_block(name: &LocalName) -> bool {
    matches!(role(name), Role::Block | Role::Verbatim | Role::Article | Role::Cell)
        || matches!(*name, local_name!("button") | local_name!("label"))
}
