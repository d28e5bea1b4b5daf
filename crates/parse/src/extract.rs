//! One walk over the tree that takes everything: title, meta, links, visible text.
//!
//! Visible text is what stands in `<article>`, of all articles that are not inside another one, or
//! in `<body>` if there is no article with text. Not visible are scripts, styles, templates, the
//! head, `<noscript>` (it mostly asks to switch on scripts; its links count, though) and what
//! replaces frames and embedded media. `hidden` and `aria-hidden` do *not* hide text: pages use
//! them for tabs and menus that the reader opens, and the text is worth finding.

use html5ever::{local_name, ns};
use telusur_model::{LinkKind, PageUrl, ParsedPage, Warning};

use crate::ParseLimits;
use crate::charset::QueryCharset;
use crate::links::{LinkCollector, LinkId};
use crate::meta::{has_rel, refresh_target};
use crate::roles::{Role, role};
use crate::text::{TextWriter, one_line};
use crate::tree::{DOCUMENT, ElementRef, NodeId, NodeRef, Tree};

/// Longest language tag; RFC 5646 asks for 35 bytes at least.
const LANGUAGE_BYTES_MAX: usize = 64;

/// The name that robots rules for this crawler alone are addressed to.
const OWN_NAME: &str = "telusur";

/// Takes everything out of a tree. `charset`: that of the queries of its links.
pub(crate) fn extract(
    tree: &Tree,
    page: &PageUrl,
    charset: QueryCharset,
    limits: &ParseLimits,
) -> Extract {
    let mut extraction = Extraction::new(tree, page, charset, limits);
    extraction.walk();
    extraction.finish()
}

/// What a walk found.
pub(crate) struct Extract {
    pub page: ParsedPage,
    /// The `<base>` of the page, if it has one.
    pub base: Option<PageUrl>,
    /// Whether there is an `<article>`, with text or without.
    pub has_article: bool,
}

struct Extraction<'t> {
    tree: &'t Tree,
    page: &'t PageUrl,
    charset: QueryCharset,
    limits: &'t ParseLimits,
    parsed: ParsedPage,
    base: Option<PageUrl>,
    canonical: Option<&'t str>,
    refresh: Option<&'t str>,
    links: LinkCollector<'t>,
    /// The link that is being read, and its text so far.
    anchor_of: Option<LinkId>,
    anchor: TextWriter,
    text: TextWriter,
    /// Where the articles stand in `text`.
    articles: Vec<std::ops::Range<usize>>,
    articles_open: usize,
    hidden_open: usize,
    verbatim_open: usize,
}

impl<'t> Extraction<'t> {
    fn new(
        tree: &'t Tree,
        page: &'t PageUrl,
        charset: QueryCharset,
        limits: &'t ParseLimits,
    ) -> Self {
        Self {
            tree,
            page,
            charset,
            limits,
            parsed: ParsedPage::default(),
            base: None,
            canonical: None,
            refresh: None,
            links: LinkCollector::default(),
            anchor_of: None,
            anchor: TextWriter::new(limits.anchor_bytes_max),
            text: TextWriter::new(limits.text_bytes_max),
            articles: Vec::new(),
            articles_open: 0,
            hidden_open: 0,
            verbatim_open: 0,
        }
    }

    /// Enters and leaves every node, without recursion: the stack must not depend on the page.
    fn walk(&mut self) {
        let mut node = DOCUMENT;
        loop {
            let child = if self.enter(node) { self.tree.first_child(node) } else { None };
            if let Some(child) = child {
                node = child;
                continue;
            }
            loop {
                self.leave(node);
                if let Some(sibling) = self.tree.next_sibling(node) {
                    node = sibling;
                    break;
                }
                match self.tree.parent(node) {
                    Some(parent) => node = parent,
                    None => return,
                }
            }
        }
    }

    /// Returns whether to go on below.
    fn enter(&mut self, node: NodeId) -> bool {
        match self.tree.node(node) {
            NodeRef::Root => true,
            NodeRef::Text(text) => {
                self.write(text);
                false
            }
            NodeRef::Element(element) => {
                self.take_facts(node, element);
                self.open(element)
            }
        }
    }

    fn write(&mut self, text: &str) {
        if self.hidden_open > 0 {
            return;
        }
        if self.verbatim_open > 0 {
            self.text.verbatim(text);
        } else {
            self.text.flowing(text);
        }
        if self.anchor_of.is_some() {
            self.anchor.flowing(text);
        }
    }

    fn open(&mut self, element: ElementRef<'t>) -> bool {
        match role(&element.name.local) {
            Role::Inline => {}
            Role::Block => self.block(),
            Role::Verbatim => {
                self.block();
                self.verbatim_open += 1;
            }
            Role::Article => {
                self.block();
                self.articles_open += 1;
                if self.articles_open == 1 {
                    self.articles.push(self.text.len()..self.text.len());
                }
            }
            Role::Cell => {
                self.text.cell();
                self.anchor.flowing(" ");
            }
            Role::LineBreak => {
                self.text.line();
                self.anchor.flowing(" ");
            }
            Role::Anchor => self.open_anchor(element),
            Role::Hidden => self.hidden_open += 1,
            Role::Skipped => return false,
        }
        true
    }

    fn leave(&mut self, node: NodeId) {
        let NodeRef::Element(element) = self.tree.node(node) else { return };
        match role(&element.name.local) {
            Role::Inline | Role::LineBreak | Role::Skipped => {}
            Role::Block => self.block(),
            Role::Verbatim => {
                self.verbatim_open -= 1;
                self.block();
            }
            Role::Article => {
                self.articles_open -= 1;
                if let (0, Some(article)) = (self.articles_open, self.articles.last_mut()) {
                    article.end = self.text.len();
                }
                self.block();
            }
            Role::Cell => self.text.cell(),
            Role::Anchor => self.close_anchor(),
            Role::Hidden => self.hidden_open -= 1,
        }
    }

    fn block(&mut self) {
        self.text.block();
        if self.anchor_of.is_some() {
            self.anchor.flowing(" ");
        }
    }

    fn open_anchor(&mut self, element: ElementRef<'t>) {
        // An anchor inside an anchor ends the outer one. HTML has none, SVG may.
        self.close_anchor();
        if let Some(href) = element.attribute(&local_name!("href")) {
            let rel = element.attribute(&local_name!("rel"));
            self.anchor_of = Some(self.links.add(href, LinkKind::Anchor, rel));
        }
    }

    fn close_anchor(&mut self) {
        if let Some(link) = self.anchor_of.take() {
            self.links.set_anchor(link, self.anchor.as_str());
        }
        self.anchor.clear();
    }

    /// What an element says about the page, apart from its text.
    fn take_facts(&mut self, node: NodeId, element: ElementRef<'t>) {
        if element.name.ns != ns!(html) {
            return;
        }
        match element.name.local {
            local_name!("html") => self.take_language(element),
            local_name!("title") if self.parsed.title.is_none() => {
                self.parsed.title = one_line(self.tree.texts(node), self.limits.title_bytes_max);
            }
            local_name!("base") if self.base.is_none() => {
                let href = element.attribute(&local_name!("href"));
                self.base = href.and_then(|href| self.charset.join(self.page, href).ok());
            }
            local_name!("meta") => self.take_meta(element),
            local_name!("link") => self.take_link(element),
            local_name!("area") => {
                if let Some(href) = element.attribute(&local_name!("href")) {
                    let rel = element.attribute(&local_name!("rel"));
                    self.links.add(href, LinkKind::Anchor, rel);
                }
            }
            local_name!("frame") | local_name!("iframe") => {
                if let Some(src) = element.attribute(&local_name!("src")) {
                    self.links.add(src, LinkKind::Frame, None);
                }
            }
            _ => {}
        }
    }

    fn take_language(&mut self, element: ElementRef<'t>) {
        let declared = element.attribute(&local_name!("lang"));
        let declared = declared.or_else(|| element.attribute(&local_name!("xml:lang")));
        self.parsed.language = declared
            .map(str::trim_ascii)
            .filter(|tag| !tag.is_empty() && tag.len() <= LANGUAGE_BYTES_MAX)
            .map(str::to_owned);
    }

    fn take_meta(&mut self, element: ElementRef<'t>) {
        let Some(content) = element.attribute(&local_name!("content")) else { return };
        if let Some(pragma) = element.attribute(&local_name!("http-equiv")) {
            if pragma.trim_ascii().eq_ignore_ascii_case("refresh") && self.refresh.is_none() {
                self.take_refresh(content);
            }
            return;
        }
        let name = element.attribute(&local_name!("name")).unwrap_or_default().trim_ascii();
        let value = || one_line([content].into_iter(), self.limits.meta_bytes_max);
        if name.eq_ignore_ascii_case("description") {
            self.parsed.description = self.parsed.description.take().or_else(value);
        } else if name.eq_ignore_ascii_case("keywords") {
            self.parsed.keywords = self.parsed.keywords.take().or_else(value);
        } else if name.eq_ignore_ascii_case("robots") {
            add_rules(&mut self.parsed.robots, content, self.limits);
        } else if name.eq_ignore_ascii_case(OWN_NAME) {
            add_rules(&mut self.parsed.robots_own, content, self.limits);
        }
    }

    fn take_refresh(&mut self, content: &'t str) {
        if let Some(target) = refresh_target(content) {
            self.refresh = Some(target);
            self.links.add(target, LinkKind::Refresh, None);
        }
    }

    fn take_link(&mut self, element: ElementRef<'t>) {
        let (Some(rel), Some(href)) =
            (element.attribute(&local_name!("rel")), element.attribute(&local_name!("href")))
        else {
            return;
        };
        if has_rel(rel, &["canonical"]) && self.canonical.is_none() {
            self.canonical = Some(href);
        }
        let leads_to_page = has_rel(rel, &["next", "prev", "alternate", "canonical"]);
        if leads_to_page && !has_rel(rel, &["stylesheet"]) {
            self.links.add(href, LinkKind::Relation, Some(rel));
        }
    }

    fn finish(self) -> Extract {
        let mut parsed = self.parsed;
        let base = self.base.as_ref().unwrap_or(self.page);
        let join = |href| self.charset.join(base, href).ok();
        parsed.canonical = self.canonical.and_then(join);
        parsed.refresh = self.refresh.and_then(join);

        let base = self.base.as_ref();
        let found = self.links.resolve(self.page, base, self.charset, self.limits.links_max);
        if found.dropped > 0 {
            parsed.warnings.push(Warning::TooManyLinks);
        }
        parsed.links = found.links;
        parsed.links_dropped = found.dropped;
        parsed.links_other_scheme = found.other_scheme;
        parsed.links_bad = found.bad;

        if self.text.is_full() {
            parsed.warnings.push(Warning::TooMuchText);
        }
        let articles = text_of_articles(self.text.as_str(), &self.articles);
        parsed.visible_text = articles.unwrap_or_else(|| self.text.into_string());
        Extract { page: parsed, base: self.base, has_article: !self.articles.is_empty() }
    }
}

/// Several robots metas for the same crawler all count, so they are put behind each other.
fn add_rules(rules: &mut Option<String>, content: &str, limits: &ParseLimits) {
    let said = rules.take();
    let separator = said.is_some().then_some(", ");
    let pieces = said.as_deref().into_iter().chain(separator).chain([content]);
    *rules = one_line(pieces, limits.meta_bytes_max);
}

/// The text of all articles, one below the other; `None` if there is none.
fn text_of_articles(text: &str, articles: &[std::ops::Range<usize>]) -> Option<String> {
    let mut together = String::new();
    for article in articles {
        let words = text[article.clone()].trim_matches('\n');
        if !words.is_empty() && !together.is_empty() {
            together.push('\n');
        }
        together.push_str(words);
    }
    Some(together).filter(|together| !together.is_empty())
}
