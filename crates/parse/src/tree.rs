//! The arena that a page's tree lives in: one vector of nodes that point at each other by number.
//! The tree builder of html5ever fills it through [`TreeSink`]; comments and what is inside
//! `<template>` are never part of it.

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};
use std::num::NonZeroU32;

use html5ever::interface::{Attribute, ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::{LocalName, QualName, local_name};

use crate::guard::is_formatting;

/// The number of a node in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(NonZeroU32);

impl NodeId {
    /// Its place in a list with one entry for every node.
    pub(crate) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The document itself, the parent of `<html>`.
pub(crate) const DOCUMENT: NodeId = NodeId(NonZeroU32::MIN);
/// Where the contents of all `<template>`s go: outside the document, never walked.
const TEMPLATE_CONTENTS: NodeId = NodeId(NonZeroU32::MIN.saturating_add(1));
/// Stands for every comment: it is never linked into the tree.
const COMMENT: NodeId = NodeId(NonZeroU32::MIN.saturating_add(2));

/// Nodes that no tag asks for: the three reserved ones, and elements that every page has.
const NODES_IMPLIED: usize = 16;
/// Nodes at most for which memory is reserved in advance. More than a page of 1 MiB has,
/// unless its tags are shorter than `<p>x`.
const NODES_EXPECTED_MAX: usize = 600_000;

/// A page as a tree.
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// The attributes of all elements, so that an element without any costs nothing.
    attributes: Vec<Attribute>,
}

struct Node {
    parent: Option<NodeId>,
    previous: Option<NodeId>,
    next: Option<NodeId>,
    first_child: Option<NodeId>,
    last_child: Option<NodeId>,
    content: Content,
}

enum Content {
    Root,
    Element(Element),
    Text(StrTendril),
}

struct Element {
    name: QualName,
    attributes_start: u32,
    attributes_end: u32,
}

/// What a walk meets.
pub(crate) enum NodeRef<'t> {
    Root,
    Element(ElementRef<'t>),
    Text(&'t str),
}

/// An element as a walk meets it.
#[derive(Clone, Copy)]
pub(crate) struct ElementRef<'t> {
    pub name: &'t QualName,
    attributes: &'t [Attribute],
}

impl<'t> ElementRef<'t> {
    /// The value of an attribute, in any namespace.
    pub(crate) fn attribute(&self, name: &LocalName) -> Option<&'t str> {
        self.attributes.iter().find(|held| held.name.local == *name).map(|held| &*held.value)
    }
}

/// One step of a [`Walk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Enter(NodeId),
    Leave(NodeId),
}

/// The way through a tree, in the order of the page.
pub(crate) struct Walk<'t> {
    tree: &'t Tree,
    next: Option<Step>,
}

impl Walk<'_> {
    /// After a node was entered: goes on behind it, as if nothing stood below.
    pub(crate) fn pass_by(&mut self, entered: NodeId) {
        self.next = Some(Step::Leave(entered));
    }
}

impl Iterator for Walk<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let step = self.next?;
        self.next = match step {
            Step::Enter(node) => {
                Some(self.tree.first_child(node).map_or(Step::Leave(node), Step::Enter))
            }
            Step::Leave(node) => match self.tree.next_sibling(node) {
                Some(sibling) => Some(Step::Enter(sibling)),
                None => self.tree.parent(node).map(Step::Leave),
            },
        };
        Some(step)
    }
}

impl Tree {
    fn new(text: &str) -> Self {
        // An arena that grows is there twice for a moment. A tag makes an element and the text
        // behind it at most, and room that is not used costs nothing.
        let tags = memchr::memchr_iter(b'<', text.as_bytes()).count();
        let nodes = Vec::with_capacity((2 * tags + NODES_IMPLIED).min(NODES_EXPECTED_MAX));
        let mut tree = Self { nodes, attributes: Vec::new() };
        for reserved in [DOCUMENT, TEMPLATE_CONTENTS, COMMENT] {
            let id = tree.add(Content::Root);
            debug_assert_eq!(id, reserved);
        }
        tree
    }

    pub(crate) fn node(&self, id: NodeId) -> NodeRef<'_> {
        match &self.at(id).content {
            Content::Root => NodeRef::Root,
            Content::Text(text) => NodeRef::Text(text),
            Content::Element(element) => NodeRef::Element(ElementRef {
                name: &element.name,
                attributes: &self.attributes
                    [element.attributes_start as usize..element.attributes_end as usize],
            }),
        }
    }

    pub(crate) fn parent(&self, id: NodeId) -> Option<NodeId> {
        self.at(id).parent
    }

    pub(crate) fn next_sibling(&self, id: NodeId) -> Option<NodeId> {
        self.at(id).next
    }

    pub(crate) fn first_child(&self, id: NodeId) -> Option<NodeId> {
        self.at(id).first_child
    }

    /// How many numbers of nodes there are, those outside the document included.
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// A walk that enters and leaves every node of the document, without recursion: the stack must
    /// not depend on the page.
    pub(crate) fn walk(&self) -> Walk<'_> {
        Walk { tree: self, next: Some(Step::Enter(DOCUMENT)) }
    }

    /// The pieces of text directly below a node.
    pub(crate) fn texts(&self, parent: NodeId) -> impl Iterator<Item = &str> {
        let children = std::iter::successors(self.first_child(parent), |id| self.next_sibling(*id));
        children.filter_map(|id| match self.node(id) {
            NodeRef::Text(text) => Some(text),
            _ => None,
        })
    }

    fn at(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    fn at_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    fn add(&mut self, content: Content) -> NodeId {
        self.nodes.push(Node {
            parent: None,
            previous: None,
            next: None,
            first_child: None,
            last_child: None,
            content,
        });
        let number = u32::try_from(self.nodes.len()).ok().and_then(NonZeroU32::new);
        NodeId(number.expect("a text below 1 GiB has fewer than 2^32 nodes"))
    }

    fn add_element(&mut self, name: QualName, attributes: Vec<Attribute>) -> NodeId {
        let attributes_start = self.attributes.len() as u32;
        self.attributes.extend(attributes);
        let attributes_end = self.attributes.len() as u32;
        self.add(Content::Element(Element { name, attributes_start, attributes_end }))
    }

    /// Gives an element the attributes that it does not have yet.
    fn add_missing_attributes(&mut self, id: NodeId, attributes: Vec<Attribute>) {
        let NodeRef::Element(held) = self.node(id) else { return };
        let mut all = held.attributes.to_vec();
        let missing = |new: &Attribute| held.attribute(&new.name.local).is_none();
        all.extend(attributes.into_iter().filter(missing));
        if all.len() == held.attributes.len() {
            return;
        }
        let attributes_start = self.attributes.len() as u32;
        self.attributes.extend(all);
        let attributes_end = self.attributes.len() as u32;
        if let Content::Element(element) = &mut self.at_mut(id).content {
            element.attributes_start = attributes_start;
            element.attributes_end = attributes_end;
        }
    }

    fn append(&mut self, parent: NodeId, child: NodeId) {
        self.detach(child);
        let previous = self.at_mut(parent).last_child.replace(child);
        match previous {
            Some(previous) => self.at_mut(previous).next = Some(child),
            None => self.at_mut(parent).first_child = Some(child),
        }
        let node = self.at_mut(child);
        node.parent = Some(parent);
        node.previous = previous;
    }

    fn insert_before(&mut self, sibling: NodeId, child: NodeId) {
        self.detach(child);
        let Some(parent) = self.at(sibling).parent else { return };
        let previous = self.at_mut(sibling).previous.replace(child);
        match previous {
            Some(previous) => self.at_mut(previous).next = Some(child),
            None => self.at_mut(parent).first_child = Some(child),
        }
        let node = self.at_mut(child);
        node.parent = Some(parent);
        node.previous = previous;
        node.next = Some(sibling);
    }

    fn detach(&mut self, id: NodeId) {
        let node = self.at_mut(id);
        let Some(parent) = node.parent.take() else { return };
        let previous = node.previous.take();
        let next = node.next.take();
        match previous {
            Some(previous) => self.at_mut(previous).next = next,
            None => self.at_mut(parent).first_child = next,
        }
        match next {
            Some(next) => self.at_mut(next).previous = previous,
            None => self.at_mut(parent).last_child = previous,
        }
    }

    fn move_children(&mut self, from: NodeId, to: NodeId) {
        while let Some(child) = self.at(from).first_child {
            self.append(to, child);
        }
    }

    /// Makes `text` the end of the text node `id`, if it is one.
    fn extend_text(&mut self, id: Option<NodeId>, text: &StrTendril) -> bool {
        let Some(id) = id else { return false };
        let Content::Text(held) = &mut self.at_mut(id).content else { return false };
        // Two neighbouring pieces of the page's buffer are joined without a copy.
        held.push_tendril(text);
        true
    }
}

/// The side of the tree that the tree builder sees.
pub(crate) struct Arena {
    tree: RefCell<Tree>,
    elements: Cell<usize>,
    formatting_elements: Cell<usize>,
}

impl Arena {
    /// An arena with room for this text.
    pub(crate) fn new(text: &str) -> Self {
        Self {
            tree: RefCell::new(Tree::new(text)),
            elements: Cell::new(0),
            formatting_elements: Cell::new(0),
        }
    }

    /// Elements created so far.
    pub(crate) fn elements(&self) -> usize {
        self.elements.get()
    }

    /// Elements like `<b>` created so far, copies included.
    pub(crate) fn formatting_elements(&self) -> usize {
        self.formatting_elements.get()
    }
}

impl TreeSink for Arena {
    type Handle = NodeId;
    type Output = Tree;
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) -> Tree {
        self.tree.into_inner()
    }

    fn get_document(&self) -> NodeId {
        DOCUMENT
    }

    fn elem_name<'a>(&'a self, target: &'a NodeId) -> Ref<'a, QualName> {
        Ref::map(self.tree.borrow(), |tree| match &tree.at(*target).content {
            Content::Element(element) => &element.name,
            _ => unreachable!("the tree builder asks for the names of elements only"),
        })
    }

    fn same_node(&self, x: &NodeId, y: &NodeId) -> bool {
        x == y
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, _: ElementFlags) -> NodeId {
        self.elements.set(self.elements.get() + 1);
        if is_formatting(&name.local) {
            self.formatting_elements.set(self.formatting_elements.get() + 1);
        }
        self.tree.borrow_mut().add_element(name, attrs)
    }

    fn create_comment(&self, _: StrTendril) -> NodeId {
        COMMENT
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> NodeId {
        COMMENT
    }

    fn get_template_contents(&self, _: &NodeId) -> NodeId {
        TEMPLATE_CONTENTS
    }

    fn append(&self, parent: &NodeId, child: NodeOrText<NodeId>) {
        let mut tree = self.tree.borrow_mut();
        match child {
            NodeOrText::AppendNode(COMMENT) => {}
            NodeOrText::AppendNode(child) => tree.append(*parent, child),
            NodeOrText::AppendText(text) => {
                let last = tree.at(*parent).last_child;
                if !tree.extend_text(last, &text) {
                    let child = tree.add(Content::Text(text));
                    tree.append(*parent, child);
                }
            }
        }
    }

    fn append_before_sibling(&self, sibling: &NodeId, child: NodeOrText<NodeId>) {
        let mut tree = self.tree.borrow_mut();
        match child {
            NodeOrText::AppendNode(COMMENT) => {}
            NodeOrText::AppendNode(child) => tree.insert_before(*sibling, child),
            NodeOrText::AppendText(text) => {
                let previous = tree.at(*sibling).previous;
                if !tree.extend_text(previous, &text) {
                    let child = tree.add(Content::Text(text));
                    tree.insert_before(*sibling, child);
                }
            }
        }
    }

    fn append_based_on_parent_node(
        &self,
        element: &NodeId,
        previous: &NodeId,
        child: NodeOrText<NodeId>,
    ) {
        let has_parent = self.tree.borrow().parent(*element).is_some();
        if has_parent {
            self.append_before_sibling(element, child);
        } else {
            self.append(previous, child);
        }
    }

    fn remove_from_parent(&self, target: &NodeId) {
        self.tree.borrow_mut().detach(*target);
    }

    fn reparent_children(&self, node: &NodeId, new_parent: &NodeId) {
        self.tree.borrow_mut().move_children(*node, *new_parent);
    }

    fn add_attrs_if_missing(&self, target: &NodeId, attrs: Vec<Attribute>) {
        self.tree.borrow_mut().add_missing_attributes(*target, attrs);
    }

    fn is_mathml_annotation_xml_integration_point(&self, target: &NodeId) -> bool {
        let tree = self.tree.borrow();
        let NodeRef::Element(element) = tree.node(*target) else { return false };
        element.attribute(&local_name!("encoding")).is_some_and(|encoding| {
            encoding.eq_ignore_ascii_case("text/html")
                || encoding.eq_ignore_ascii_case("application/xhtml+xml")
        })
    }

    // What follows reports things that nothing here needs to know.

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}
}
