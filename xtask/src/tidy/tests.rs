//! This workspace keeps the rules. What breaks each of them is shown beside the rule.

use std::sync::LazyLock;

use super::*;

/// Read once: the tests of a process only look at it.
pub(super) static TREE: LazyLock<SourceTree> = LazyLock::new(|| SourceTree::read(root()).unwrap());

#[track_caller]
fn check(name: &str) {
    let (_, rule) = RULES.iter().find(|(rule, _)| *rule == name).unwrap();
    let violations = rule(&TREE);
    let shown: Vec<String> = violations.iter().map(Violation::to_string).collect();
    assert!(shown.is_empty(), "{name}:\n{}", shown.join("\n"));
}

#[test]
fn the_table_of_crates_is_that_of_the_manifests() {
    check("crates and their table");
}

#[test]
fn back_ends_are_named_in_one_place() {
    check("names of back ends");
}

#[test]
fn pure_crates_are_pure() {
    check("pure crates");
}

#[test]
fn modules_are_declared_in_reading_order() {
    check("module lists");
}

#[test]
fn links_lead_somewhere() {
    check("links");
}

#[test]
fn no_file_is_long() {
    check("file length");
}

#[test]
fn invariants_name_what_holds_them() {
    check("invariants");
}

#[test]
fn clean_crates_stay_clean() {
    check("words");
}

#[test]
fn every_rule_has_a_test() {
    let tests = include_str!("tests.rs");
    for (name, _) in RULES {
        assert!(tests.contains(&format!("check(\"{name}\");")), "{name}");
    }
}

#[test]
fn the_tree_is_the_workspace() {
    assert!(TREE.crates().contains("model"));
    assert!(TREE.program_files().any(|(path, _)| path == "crates/model/src/lib.rs"));
    assert!(TREE.program_files().all(|(path, _)| !path.contains("/tests/")));
}
