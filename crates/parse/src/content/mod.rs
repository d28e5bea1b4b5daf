//! Everything that is in a page, besides its text: headings, images, tables, lists, forms, scripts,
//! styles and what the page says about itself. One walk over the tree; each kind has a module.
//!
//! Nothing here follows a link or runs a script.

mod head;
mod headings;

mod lists;
mod tables;

mod forms;
mod images;

mod code;

mod feed;
mod json_ld;

mod html;

use html5ever::{LocalName, local_name, ns};
use telusur_model::{PageContent, PageUrl};

pub(crate) use self::feed::{ReadFeed, read_feed};
pub(crate) use self::images::image_address;

use self::code::CodeCollector;
use self::forms::FormCollector;
use self::head::Head;
use self::headings::HeadingCollector;
use self::images::ImageCollector;
use self::lists::ListCollector;
use self::tables::TableCollector;
use crate::ContentLimits;
use crate::charset::QueryCharset;
use crate::main_content::PageSigns;
use crate::text::one_line;
use crate::tree::{ElementRef, NodeId, NodeRef, Step, Tree};

/// Bytes of a name or other short value that is kept.
const NAME_BYTES_MAX: usize = 256;

/// What links are resolved against.
#[derive(Clone, Copy)]
pub(crate) struct Base<'t> {
    pub page: &'t PageUrl,
    /// The page's `<base>`, else the page.
    pub base: &'t PageUrl,
    /// The charset of the queries of links.
    pub charset: QueryCharset,
}

impl Base<'_> {
    pub(crate) fn join(&self, href: &str) -> Option<PageUrl> {
        self.charset.join(self.base, href.trim_ascii()).ok()
    }
}

/// Walks the tree once, puts all kinds of content into `content` and what the page says about its
/// kind into `signs`. Returns the text of the article if structured data holds one.
pub(crate) fn collect<'t>(
    tree: &'t Tree,
    base: Base<'t>,
    limits: &'t ContentLimits,
    signs: &mut PageSigns<'_>,
    content: &mut PageContent,
) -> Option<String> {
    let mut collector = Collector::new(tree, base, limits);
    let mut walk = tree.walk();
    while let Some(step) = walk.next() {
        match step {
            Step::Enter(node) => {
                if !collector.enter(node, signs) {
                    walk.pass_by(node);
                }
            }
            Step::Leave(node) => collector.leave(node),
        }
    }
    collector.finish(content)
}

struct Collector<'t> {
    tree: &'t Tree,
    head: Head<'t>,
    headings: HeadingCollector<'t>,
    images: ImageCollector<'t>,
    tables: TableCollector<'t>,
    lists: ListCollector<'t>,
    forms: FormCollector<'t>,
    code: CodeCollector<'t>,
}

impl<'t> Collector<'t> {
    fn new(tree: &'t Tree, base: Base<'t>, limits: &'t ContentLimits) -> Self {
        Self {
            tree,
            head: Head::new(base, limits),
            headings: HeadingCollector::new(limits),
            images: ImageCollector::new(base, limits),
            tables: TableCollector::new(tree, limits),
            lists: ListCollector::new(limits),
            forms: FormCollector::new(base, limits),
            code: CodeCollector::new(base, limits),
        }
    }

    /// Returns whether to go on below.
    fn enter(&mut self, node: NodeId, signs: &mut PageSigns<'_>) -> bool {
        let element = match self.tree.node(node) {
            NodeRef::Root => return true,
            NodeRef::Text(text) => {
                self.write(text);
                return false;
            }
            NodeRef::Element(element) => element,
        };
        if element.name.ns != ns!(html) {
            // Drawings and formulas hold none of these kinds.
            return element.name.ns != ns!(svg);
        }
        self.head.take_microdata(element, node, self.tree, signs);
        match element.name.local {
            local_name!("meta") => self.head.take_meta(element, signs),
            local_name!("link") => {
                self.head.take_link(element);
                self.code.take_link(element);
            }
            local_name!("script") => {
                let text = self.tree.texts(node);
                match element.attribute(&local_name!("type")) {
                    Some(kind) if is_json_ld(kind) => self.head.take_json_ld(text, signs),
                    kind => self.code.take_script(element, kind, text),
                }
                return false;
            }
            local_name!("style") => {
                self.code.take_style(element, self.tree.texts(node));
                return false;
            }
            local_name!("time") => self.head.take_time(element),
            local_name!("img") => self.images.take_image(element),
            local_name!("source") => self.images.take_source(element),
            local_name!("template")
            | local_name!("iframe")
            | local_name!("noembed")
            | local_name!("noframes")
            | local_name!("title") => return false,
            _ => self.open(node, element),
        }
        true
    }

    fn open(&mut self, node: NodeId, element: ElementRef<'t>) {
        let name = &element.name.local;
        if let Some(level) = heading_level(name) {
            self.headings.open(level);
        }
        self.tables.open(node, element);
        self.lists.open(element);
        self.forms.open(element);
        if breaks_words(name) {
            self.write(" ");
        }
    }

    fn leave(&mut self, node: NodeId) {
        let NodeRef::Element(element) = self.tree.node(node) else { return };
        if element.name.ns != ns!(html) {
            return;
        }
        let name = &element.name.local;
        if heading_level(name).is_some() {
            self.headings.close();
        }
        self.tables.close(element);
        self.lists.close(element);
        self.forms.close(element);
        if *name == local_name!("picture") {
            self.images.end_picture();
        }
        if breaks_words(name) {
            self.write(" ");
        }
    }

    fn write(&mut self, text: &str) {
        self.headings.text(text);
        self.tables.text(text);
        self.lists.text(text);
        self.forms.text(text);
    }

    fn finish(self, content: &mut PageContent) -> Option<String> {
        let article_body = self.head.finish(content);
        self.headings.finish(content);
        self.images.finish(content);
        self.tables.finish(content);
        self.lists.finish(content);
        self.forms.finish(content);
        self.code.finish(content);
        article_body
    }
}

/// Adds to a kind of content, or counts what lies beyond its limit.
fn push_bounded<T>(items: &mut Vec<T>, item: T, max: usize, dropped: &mut u32) {
    if items.len() < max {
        items.push(item);
    } else {
        *dropped += 1;
    }
}

/// A short value: one line, cut.
fn short(value: Option<&str>) -> String {
    value.and_then(|value| one_line([value].into_iter(), NAME_BYTES_MAX)).unwrap_or_default()
}

fn is_json_ld(kind: &str) -> bool {
    let essence = kind.split(';').next().unwrap_or_default().trim_ascii();
    essence.eq_ignore_ascii_case("application/ld+json")
}

pub(crate) fn heading_level(name: &LocalName) -> Option<u8> {
    match *name {
        local_name!("h1") => Some(1),
        local_name!("h2") => Some(2),
        local_name!("h3") => Some(3),
        local_name!("h4") => Some(4),
        local_name!("h5") => Some(5),
        local_name!("h6") => Some(6),
        _ => None,
    }
}

/// Whether words before and behind this element's edges are separate words.
fn breaks_words(name: &LocalName) -> bool {
    use crate::roles::{Role, role};
    matches!(
        role(name),
        Role::Block | Role::Verbatim | Role::Article | Role::Cell | Role::LineBreak
    )
}
