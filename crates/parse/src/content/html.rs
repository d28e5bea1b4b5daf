//! A piece of the tree as markup again: the elements, their text, and the few attributes that mean
//! something without the rest of the page. Bounded in bytes, never broken inside a character.

use html5ever::{LocalName, local_name};

use crate::guard::is_void;
use crate::text::{ByteSet, cut};
use crate::tree::{ElementRef, NodeId, NodeRef, Tree};

/// Attributes that are written; classes and styles mean nothing outside of their page.
const WRITTEN: [LocalName; 5] = [
    local_name!("href"),
    local_name!("src"),
    local_name!("alt"),
    local_name!("colspan"),
    local_name!("rowspan"),
];

pub(super) struct Markup {
    pub text: String,
    /// Whether some of it lay beyond the limit.
    pub truncated: bool,
}

/// Writes an element and everything below it.
pub(super) fn write_html(tree: &Tree, root: NodeId, bytes_max: usize) -> Markup {
    let mut out = String::new();
    let mut node = root;
    loop {
        if out.len() > bytes_max {
            return Markup { text: cut(&out, bytes_max).to_owned(), truncated: true };
        }
        let is_open = open(tree, node, bytes_max, &mut out);
        if let Some(child) = tree.first_child(node).filter(|_| is_open) {
            node = child;
            continue;
        }
        loop {
            close(tree, node, &mut out);
            if node == root {
                let truncated = out.len() > bytes_max;
                out.truncate(out.floor_char_boundary(bytes_max));
                return Markup { text: out, truncated };
            }
            if let Some(sibling) = tree.next_sibling(node) {
                node = sibling;
                break;
            }
            match tree.parent(node) {
                Some(parent) => node = parent,
                None => return Markup { text: out, truncated: false },
            }
        }
    }
}

/// Returns whether to go on below.
fn open(tree: &Tree, node: NodeId, bytes_max: usize, out: &mut String) -> bool {
    match tree.node(node) {
        NodeRef::Root => true,
        NodeRef::Text(text) => {
            escape(cut(text, bytes_max), out);
            false
        }
        NodeRef::Element(element) if is_left_out(element) => false,
        NodeRef::Element(element) => {
            out.push('<');
            out.push_str(&element.name.local);
            for name in &WRITTEN {
                let Some(value) = element.attribute(name) else { continue };
                out.push(' ');
                out.push_str(name);
                out.push_str("=\"");
                escape(cut(value, bytes_max), out);
                out.push('"');
            }
            out.push('>');
            true
        }
    }
}

fn close(tree: &Tree, node: NodeId, out: &mut String) {
    let NodeRef::Element(element) = tree.node(node) else { return };
    if !is_left_out(element) && !is_void(&element.name.local) {
        out.push_str("</");
        out.push_str(&element.name.local);
        out.push('>');
    }
}

fn is_left_out(element: ElementRef<'_>) -> bool {
    matches!(
        element.name.local,
        local_name!("script")
            | local_name!("style")
            | local_name!("template")
            | local_name!("noscript")
            | local_name!("iframe")
            | local_name!("svg")
    )
}

fn escape(mut text: &str, out: &mut String) {
    static SPECIAL: ByteSet = ByteSet::new(b"&<>\"");
    while let Some(at) = SPECIAL.find(text) {
        out.push_str(&text[..at]);
        out.push_str(match text.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            _ => "&quot;",
        });
        text = &text[at + 1..];
    }
    out.push_str(text);
}
