//! Names of back ends occur in the crate of that back end and in `telusur/src/backend.rs`, nowhere else. Tests,
//! examples and manifests may name them: a test needs some store to run on, and the manifests are checked against
//! the table of crates.

use super::Violation;
use super::source_tree::SourceTree;

/// The one file of the program that chooses.
const CHOICE: &str = "crates/telusur/src/backend.rs";

/// A back end, the words that name it, and the folder that may say them.
struct BackEnd {
    words: &'static [&'static str],
    home: &'static str,
}

const BACK_ENDS: &[BackEnd] = &[
    BackEnd {
        words: &["fjall", "lsm_tree", "telusur_store_embedded", "store-embedded", "EmbeddedStore"],
        home: "crates/store-embedded/",
    },
    BackEnd { words: &["tantivy"], home: "crates/index/" },
    // None of these exists. A new back end gets a crate of its own.
    BackEnd { words: &["postgres", "postgresql", "sqlite", "rocksdb"], home: "crates/store-sql/" },
    BackEnd { words: &["mongo", "mongodb"], home: "crates/store-mongo/" },
    BackEnd { words: &["nats", "kafka"], home: "crates/queue/" },
    BackEnd { words: &["elasticsearch"], home: "crates/index-remote/" },
];

/// Places that are right as they are: path, word, reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "crates/telusur/src/logging.rs",
        "fjall",
        "what the library itself logs is silenced by its name",
    ),
    ("crates/telusur/src/logging.rs", "lsm_tree", "the same"),
    ("crates/telusur/src/logging.rs", "tantivy", "the same"),
    (
        "crates/testkit/src/sim_disk/mod.rs",
        "telusur_store_embedded",
        "the simulated disk stands in for the disk of that store",
    ),
    ("crates/testkit/src/sim_disk/sim_file.rs", "telusur_store_embedded", "the same"),
    (
        "crates/parse/src/lib.rs",
        "postgresql",
        "says which programs cannot take a NUL in exported text",
    ),
    ("xtask/src/torture_damage.rs", "store-embedded", "runs the tests of that crate"),
];

pub(super) fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree.program_files() {
        if path == CHOICE || path.starts_with("xtask/src/tidy/") {
            continue;
        }
        for (number, line) in text.program_lines() {
            let names = BACK_ENDS.iter().filter(|back_end| !path.starts_with(back_end.home));
            let names = names.flat_map(|back_end| back_end.words);
            for word in names.filter(|word| has_word(&line.text, word)) {
                let is_known = EXCEPTIONS.iter().any(|(at, name, _)| *at == path && name == word);
                if !is_known {
                    let what = format!("names the back end {word}: only {CHOICE} may");
                    violations.push(Violation::new(path, number, what));
                }
            }
        }
    }
    violations
}

/// Whether a word occurs by itself, in any case.
fn has_word(line: &str, word: &str) -> bool {
    let (line, word) = (line.to_lowercase(), word.to_lowercase());
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(&word).any(|(at, _)| {
        !line[..at].ends_with(is_name) && !line[at + word.len()..].starts_with(is_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_file(path: &str, text: &str, expect: &[&str]) {
        let found: Vec<String> =
            check(&SourceTree::of(&[(path, text)])).iter().map(Violation::to_string).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn the_store_is_named_in_the_choice_only() {
        let text = "use telusur_store_embedded::DataDir;\n";
        check_file("crates/telusur/src/backend.rs", text, &[]);
        check_file("crates/store-embedded/src/lib.rs", text, &[]);
        let found = "crates/telusur/src/foreground.rs:1: names the back end telusur_store_embedded: \
                     only crates/telusur/src/backend.rs may";
        check_file("crates/telusur/src/foreground.rs", text, &[found]);
    }

    #[test]
    fn a_comment_counts() {
        let found = "crates/engine/src/lib.rs:2: names the back end tantivy: \
                     only crates/telusur/src/backend.rs may";
        check_file("crates/engine/src/lib.rs", "mod a;\n// What Tantivy does.\n", &[found]);
    }

    #[test]
    fn a_back_end_that_is_not_there_yet_is_known() {
        let found = "crates/engine/src/lib.rs:1: names the back end postgres: \
                     only crates/telusur/src/backend.rs may";
        check_file("crates/engine/src/lib.rs", "const STORE: &str = \"postgres\";\n", &[found]);
    }

    #[test]
    fn tests_may_run_on_a_store() {
        let text = "use telusur_store_embedded::EmbeddedStore;\n";
        check_file("crates/engine/tests/it/main.rs", text, &[]);
        let inline = "fn a() {}\n#[cfg(test)]\nmod tests {\n    use fjall::Database;\n}\n";
        check_file("crates/engine/src/lib.rs", inline, &[]);
    }

    #[test]
    fn part_of_a_word_is_not_the_word() {
        check_file("crates/engine/src/lib.rs", "// donates; mongoose; store-embeddedness\n", &[]);
    }

    #[test]
    fn every_exception_is_needed() {
        let tree = &*crate::tidy::tests::TREE;
        for (path, word, _) in EXCEPTIONS {
            let (_, text) = tree.program_files().find(|(file, _)| file == path).unwrap();
            let is_said = text.program_lines().any(|(_, line)| has_word(&line.text, word));
            assert!(is_said, "{path} does not say {word} any more");
        }
    }
}
