//! No file has more than 600 lines of logic. Logic is what is left without blank lines, comments, the insides of
//! literals that span lines, and tests. Long lists may be long: they are named.

use super::Violation;
use super::rust_text::RustText;
use super::source_tree::SourceTree;

const LOGIC_LINES_MAX: usize = 600;

/// Files that are lists: path, what they list.
const LISTS: &[(&str, &str)] = &[
    ("crates/parse/src/main_content/weights.rs", "weights of a model, one per line"),
    (
        "crates/ledger/src/conformance.rs",
        "tests that every storage passes, one function each: a library only because other crates call them",
    ),
    ("crates/telusur/src/settings/registry.rs", "all settings, one entry each"),
];

pub(super) fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree.program_files() {
        let lines = logic_lines(text);
        let is_list = LISTS.iter().any(|(list, _)| *list == path);
        if lines > LOGIC_LINES_MAX && !is_list {
            let what = format!("{lines} lines of logic (at most {LOGIC_LINES_MAX}): split it");
            violations.push(Violation::new(path, 0, what));
        }
    }
    violations
}

fn logic_lines(rust: &RustText) -> usize {
    rust.program_lines().filter(|(_, line)| !line.code.trim().is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/engine/src/long.rs";

    #[track_caller]
    fn check_length(path: &str, text: &str, expect: &[&str]) {
        let found: Vec<String> =
            check(&SourceTree::of(&[(path, text)])).iter().map(Violation::to_string).collect();
        assert_eq!(found, expect);
    }

    fn lines(text: &str) -> usize {
        logic_lines(&RustText::new(text))
    }

    #[test]
    fn a_long_file_is_found() {
        check_length(PATH, &"a();\n".repeat(600), &[]);
        let found = "crates/engine/src/long.rs: 601 lines of logic (at most 600): split it";
        check_length(PATH, &"a();\n".repeat(601), &[found]);
    }

    #[test]
    fn comments_and_blank_lines_do_not_count() {
        check_length(PATH, &"/// A.\n// b\n\n/* c\nd */\n".repeat(500), &[]);
        assert_eq!(lines("a(); // b\n/* c */ d();\n"), 2);
    }

    #[test]
    fn tests_do_not_count() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "    a();\n".repeat(700));
        check_length(PATH, &format!("b();\n{tests}"), &[]);
        assert_eq!(lines(&format!("b();\n{tests}c();\n")), 2);
        check_length("crates/engine/tests/it/long.rs", &"a();\n".repeat(700), &[]);
    }

    #[test]
    fn a_sign_in_a_literal_is_no_comment() {
        assert_eq!(lines("a(\"//\");\nb('\"', \"/*\");\nc::<'a>('\\'');\nd(r#\"\"//\"#);\n"), 4);
    }

    #[test]
    fn a_list_may_be_long() {
        check_length(LISTS[0].0, &"1,\n".repeat(2_000), &[]);
    }

    #[test]
    fn every_list_is_long() {
        let tree = &*crate::tidy::tests::TREE;
        for (path, _) in LISTS {
            let (_, text) = tree.program_files().find(|(file, _)| file == path).unwrap();
            let lines = logic_lines(text);
            assert!(lines > LOGIC_LINES_MAX, "{path} needs no exception any more: {lines}");
        }
    }
}
