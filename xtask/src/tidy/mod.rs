//! `cargo xtask tidy`: rules of the project that are checked on its own sources. Each rule is a pure function
//! of a [`SourceTree`]; its tests plant violations in small trees. Nothing here changes a file.

mod rust_text;
mod source_tree;

mod back_ends;
mod crate_table;
mod file_length;
mod invariants;
mod links;
mod module_lists;
mod pure_crates;
mod words;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;

use anyhow::{Context, bail};

use source_tree::SourceTree;

/// A broken rule, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Violation {
    path: String,
    /// From 1; 0 for a file as a whole.
    line: usize,
    what: String,
}

impl Violation {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

type Rule = fn(&SourceTree) -> Vec<Violation>;

/// All rules, by name.
const RULES: &[(&str, Rule)] = &[
    ("crates and their table", crate_table::check),
    ("names of back ends", back_ends::check),
    ("pure crates", pure_crates::check),
    ("module lists", module_lists::check),
    ("links", links::check),
    ("file length", file_length::check),
    ("invariants", invariants::check),
    ("words", words::check),
];

/// Checks the sources of this workspace and prints what breaks a rule.
pub(crate) fn tidy() -> anyhow::Result<()> {
    let tree = SourceTree::read(root()).context("read the sources")?;
    let mut broken = 0;
    for (name, rule) in RULES {
        let violations = rule(&tree);
        println!("{name}: {}", if violations.is_empty() { "ok" } else { "broken" });
        for violation in &violations {
            println!("  {violation}");
        }
        broken += violations.len();
    }
    if broken > 0 {
        bail!("{broken} places break a rule");
    }
    Ok(())
}

/// The root of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}
