//! [`LayoutTables`]: the tables that only put things side by side. Their cells hold whole blocks,
//! which no row of a Markdown table could.

use std::collections::HashSet;

use html5ever::local_name;

use crate::content::heading_level;
use crate::tree::{NodeId, NodeRef, Step, Tree};

/// The layout tables of a page.
#[derive(Default)]
pub(super) struct LayoutTables(HashSet<usize>);

impl LayoutTables {
    /// Finds them in one walk: a table is one if it holds another table, a heading, a list, a
    /// quote or a piece of code.
    pub(super) fn of(tree: &Tree) -> Self {
        let mut found = HashSet::new();
        let mut open: Vec<NodeId> = Vec::new();
        for step in tree.walk() {
            let (Step::Enter(node) | Step::Leave(node)) = step;
            let NodeRef::Element(element) = tree.node(node) else { continue };
            let name = &element.name.local;
            if *name == local_name!("table") {
                match step {
                    Step::Enter(_) => {
                        found.extend(open.last().map(|table| table.index()));
                        open.push(node);
                    }
                    Step::Leave(_) => drop(open.pop()),
                }
            } else if let Some(table) = open.last() {
                let is_block = matches!(
                    *name,
                    local_name!("ul")
                        | local_name!("ol")
                        | local_name!("blockquote")
                        | local_name!("pre")
                        | local_name!("article")
                        | local_name!("section")
                );
                if is_block || heading_level(name).is_some() {
                    found.insert(table.index());
                }
            }
        }
        Self(found)
    }

    pub(super) fn holds(&self, table: NodeId) -> bool {
        self.0.contains(&table.index())
    }
}
