//! Each invariant of `ARCHITECTURE.md` names what holds it, or says that nothing does: a sentence that begins
//! with "Held by" and names lints or tests in backticks, as `path` or `path::name`, or one that begins with
//! "Not checked". What is named exists.

use super::Violation;
use super::rust_text::RustText;
use super::source_tree::SourceTree;

const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Invariants";

pub(super) fn check(tree: &SourceTree) -> Vec<Violation> {
    let text = tree.text(PAGE).unwrap_or_default();
    let invariants = invariants(text);
    if invariants.is_empty() {
        return vec![Violation::new(PAGE, 0, format!("no list of invariants below {HEADING:?}"))];
    }
    invariants.iter().flat_map(|invariant| check_one(tree, invariant)).collect()
}

struct Invariant {
    line: usize,
    text: String,
}

/// The numbered items of the section.
fn invariants(page: &str) -> Vec<Invariant> {
    let mut invariants: Vec<Invariant> = Vec::new();
    let section = (1..).zip(page.lines()).skip_while(|(_, line)| *line != HEADING).skip(1);
    for (line, text) in section.take_while(|(_, line)| !line.starts_with("## ")) {
        let is_item =
            text.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        match invariants.last_mut() {
            _ if is_item => invariants.push(Invariant { line, text: text.to_owned() }),
            // The lines of an item are indented.
            Some(item) if text.starts_with(' ') => {
                item.text.push(' ');
                item.text.push_str(text.trim());
            }
            _ => {}
        }
    }
    invariants
}

fn check_one(tree: &SourceTree, invariant: &Invariant) -> Vec<Violation> {
    let says = |what: String| Violation::new(PAGE, invariant.line, what);
    let Some((_, holders)) = invariant.text.split_once("Held by ") else {
        if invariant.text.contains("Not checked") {
            return Vec::new();
        }
        return vec![says(
            "says neither what holds it (Held by `path::name`) nor \"Not checked\"".into(),
        )];
    };
    let holders = holders.split("Not checked").next().unwrap_or_default();
    let named: Vec<&str> = holders.split('`').skip(1).step_by(2).collect();
    if named.is_empty() {
        return vec![says("\"Held by\" names nothing in backticks".into())];
    }
    named.into_iter().filter_map(|holder| missing(tree, holder)).map(says).collect()
}

/// What is wrong with `path` or `path::name`.
fn missing(tree: &SourceTree, holder: &str) -> Option<String> {
    let (path, name) = match holder.split_once("::") {
        Some((path, name)) => (path, Some(name)),
        None => (holder, None),
    };
    let Some(text) = tree.text(path) else {
        return Some(format!("is held by {path}, which does not exist"));
    };
    let name = name?;
    let is_there = if path.ends_with(".rs") {
        has_test(text, name)
    } else {
        text.lines().any(|line| line.trim_start().starts_with(name))
    };
    (!is_there).then(|| format!("is held by {holder}, but {path} has no test or lint of that name"))
}

/// Whether a file defines a test: a function behind an attribute that ends in `test`, inside of `proptest!`, or a
/// public one of a conformance suite that other tests call.
fn has_test(text: &str, name: &str) -> bool {
    let rust = RustText::new(text);
    let starts = [format!("fn {name}("), format!("fn {name}<")];
    let mut attributes: Vec<&str> = Vec::new();
    for line in &rust.lines {
        let code = line.code.trim();
        if starts.iter().any(|start| code.trim_start_matches("async ").starts_with(start)) {
            let is_test = |it: &str| it.contains("test]") || it.contains("test(");
            return attributes.iter().any(|it| is_test(it));
        }
        if starts
            .iter()
            .any(|start| code.strip_prefix("pub ").is_some_and(|it| it.starts_with(start)))
        {
            return true;
        }
        if code.starts_with("#[") {
            attributes.push(code);
        } else if !code.is_empty() {
            attributes.clear();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_item(item: &str, expect: &[&str]) {
        let page = format!("# A\n\n## Invariants\n\n{item}\n\n## B\n\n1. No invariant.\n");
        let tree = SourceTree::of(&[
            (PAGE, &page),
            ("clippy.toml", "disallowed-methods = [\n]\n"),
            ("crates/a/src/tests.rs", "#[test]\nfn it_holds() {}\n\nfn helper() {}\n"),
            ("crates/a/src/suite.rs", "/// A.\npub fn check_rows() {}\n"),
        ]);
        let found: Vec<String> = check(&tree).iter().map(|it| it.what.clone()).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn what_is_held_passes() {
        check_item(
            "1. A. Held by `crates/a/src/tests.rs::it_holds`\n   and `clippy.toml::disallowed-methods`.",
            &[],
        );
        check_item("1. A. Held by `crates/a/src/suite.rs::check_rows`.", &[]);
        check_item("1. A. Held by `clippy.toml`. Not checked: `that`.", &[]);
        check_item("1. A.\n   Not checked.", &[]);
    }

    #[test]
    fn an_invariant_that_nothing_holds_is_found() {
        let found = "says neither what holds it (Held by `path::name`) nor \"Not checked\"";
        check_item("1. A.", &[found]);
        check_item("1. A. Held by `clippy.toml`.\n2. B.", &[found]);
        check_item("1. A. Held by good will.", &["\"Held by\" names nothing in backticks"]);
    }

    #[test]
    fn a_test_that_is_gone_is_found() {
        check_item(
            "1. A. Held by `crates/a/src/tests.rs::it_held`.",
            &[
                "is held by crates/a/src/tests.rs::it_held, but crates/a/src/tests.rs has no test or lint of that name",
            ],
        );
        check_item(
            "1. A. Held by `crates/b/src/tests.rs::it_holds`.",
            &["is held by crates/b/src/tests.rs, which does not exist"],
        );
    }

    #[test]
    fn a_function_that_is_no_test_holds_nothing() {
        check_item(
            "1. A. Held by `crates/a/src/tests.rs::helper`.",
            &[
                "is held by crates/a/src/tests.rs::helper, but crates/a/src/tests.rs has no test or lint of that name",
            ],
        );
    }

    #[test]
    fn a_page_without_invariants_is_found() {
        let found = check(&SourceTree::of(&[(PAGE, "# A\n")]));
        assert_eq!(found.len(), 1);
    }
}
