//! Links lead somewhere: relative links in Markdown name files that exist, a mention of `docs/decisions/NNNN`
//! names a decision that exists, and every decision is linked from another file.

use std::collections::BTreeMap;

use super::Violation;
use super::source_tree::SourceTree;

const DECISIONS: &str = "docs/decisions/";

pub(super) fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut violations = Vec::new();
    // The file of each decision by its number, and whether another file mentions it.
    let files = tree.files().filter_map(|(path, _)| Some((number(path, DECISIONS)?, path)));
    let mut decisions: BTreeMap<&str, (&str, bool)> =
        files.map(|(number, path)| (number, (path, false))).collect();
    for (path, text) in tree.files() {
        for (line, text) in (1..).zip(text.lines()) {
            for number in numbers_behind(text, DECISIONS) {
                match decisions.get_mut(number) {
                    Some((own, is_linked)) => *is_linked |= *own != path,
                    None => {
                        let what = format!("there is no decision {number}");
                        violations.push(Violation::new(path, line, what));
                    }
                }
            }
            if !path.ends_with(".md") {
                continue;
            }
            for target in targets(text) {
                let target = resolve(path, target);
                if !tree.exists(&target) {
                    violations.push(Violation::new(path, line, format!("{target} does not exist")));
                }
                let decision = number(&target, DECISIONS).and_then(|it| decisions.get_mut(it));
                if let Some((own, is_linked)) = decision {
                    *is_linked |= *own != path;
                }
            }
        }
    }
    let orphans = decisions.values().filter(|(_, is_linked)| !is_linked);
    violations.extend(orphans.map(|(path, _)| Violation::new(path, 0, "is linked from nowhere")));
    violations
}

/// The four digits that follow a prefix.
fn number<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let number = text.strip_prefix(prefix)?.get(..4)?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(number)
}

fn numbers_behind<'a>(line: &'a str, prefix: &str) -> Vec<&'a str> {
    line.match_indices(prefix).filter_map(|(at, _)| number(&line[at..], prefix)).collect()
}

/// Relative targets of `[text](target)` on a line.
fn targets(line: &str) -> Vec<&str> {
    let links = line.match_indices("](").filter_map(|(at, _)| line[at + 2..].split(')').next());
    let paths = links.map(|link| link.split(['#', ' ']).next().unwrap_or_default());
    paths.filter(|path| !path.is_empty() && !path.contains(':')).collect()
}

/// A target as a path from the root.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => from.split('/').rev().skip(1).collect::<Vec<_>>().into_iter().rev().collect(),
    };
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_files(files: &[(&str, &str)], expect: &[&str]) {
        let found: Vec<String> =
            check(&SourceTree::of(files)).iter().map(Violation::to_string).collect();
        assert_eq!(found, expect);
    }

    const DECISION: (&str, &str) = ("docs/decisions/0001-store.md", "# One store\n");

    #[test]
    fn a_decision_that_is_mentioned_passes() {
        check_files(&[DECISION, ("crates/a/src/lib.rs", "// See docs/decisions/0001.\n")], &[]);
        check_files(&[DECISION, ("README.md", "[why](docs/decisions/0001-store.md)\n")], &[]);
        check_files(&[DECISION, ("docs/a.md", "[why](decisions/0001-store.md#end)\n")], &[]);
    }

    #[test]
    fn a_decision_that_nothing_links_is_found() {
        check_files(&[DECISION], &["docs/decisions/0001-store.md: is linked from nowhere"]);
        let own = ("docs/decisions/0001-store.md", "docs/decisions/0001\n");
        check_files(&[own], &["docs/decisions/0001-store.md: is linked from nowhere"]);
    }

    #[test]
    fn a_decision_that_is_missing_is_found() {
        // Put together, so that this file names no missing decision itself.
        let text = format!("//! A.\n// {DECISIONS}0042\n");
        check_files(
            &[("crates/a/src/lib.rs", &text)],
            &["crates/a/src/lib.rs:2: there is no decision 0042"],
        );
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        check_files(
            &[("docs/a.md", "[b](b.md) [c](../docs/a.md) [d](https://example.org/) [e](#here)\n")],
            &["docs/a.md:1: docs/b.md does not exist"],
        );
    }

    #[test]
    fn a_link_to_a_folder_is_a_link() {
        check_files(&[("docs/a.md", "[all](..) [docs](../docs/)\n")], &[]);
    }
}
