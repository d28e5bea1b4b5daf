//! Quaint words do not occur in comments, messages and documents: a reader looks for the field's own term. Crates
//! join [`CLEAN`] when they are free of them.

use super::Violation;
use super::source_tree::SourceTree;

/// Folders and files that are free of them.
const CLEAN: &[&str] = &[
    "crates/model/",
    "crates/frontier/",
    "crates/fetch/",
    "crates/parse/",
    "crates/parse-pool/",
    "crates/index/",
    "crates/testkit/",
    "xtask/src/tidy/",
];

/// Endings of files that we wrote. Pages of tests and of the demo site are other people's prose.
const OURS: &[&str] = &[".rs", ".md", ".toml"];

const QUAINT: &[&str] = &[
    "anew",
    "whoever",
    "whatever",
    "what became of",
    "so many",
    "so long as",
    "lies in",
    "lies on",
    "lie in",
    "lie on",
    "hears that",
    "is told of",
    "makes good",
    "made good",
    "in the meantime",
    "nobody",
    "somebody",
];

/// Places that are right as they are: path, word, reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("crates/parse/src/tests/main_content.rs", "nobody", "a page that the test reads"),
    ("crates/testkit/src/demo_site/mod.rs", "nobody", "a page of the demo site"),
    ("crates/testkit/src/demo_site/oddities.rs", "whoever", "the same"),
    ("crates/testkit/src/demo_site/oddities.rs", "somebody", "the same"),
    ("xtask/src/tidy/words.rs", "", "names them all"),
];

pub(super) fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| is_checked(path)) {
        for (line, word) in quaint(text) {
            let is_known = |(at, known, _): &(&str, &str, &str)| {
                *at == path && (*known == word || known.is_empty())
            };
            if !EXCEPTIONS.iter().any(is_known) {
                violations.push(Violation::new(path, line, format!("{word:?} is a quaint word")));
            }
        }
    }
    violations
}

fn is_checked(path: &str) -> bool {
    let is_clean = CLEAN.iter().any(|clean| path.starts_with(clean));
    is_clean && OURS.iter().any(|ending| path.ends_with(ending))
}

/// Quaint words with the line where each begins. A phrase may go on behind a line break and its comment sign.
fn quaint(text: &str) -> Vec<(usize, &'static str)> {
    let words: Vec<(usize, String)> = (1..)
        .zip(text.lines())
        .flat_map(|(number, line)| {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.filter(|word| !word.is_empty()).map(move |word| (number, word.to_lowercase()))
        })
        .collect();
    let begins_at = |at: usize, phrase: &str| {
        let mut rest = words[at..].iter().map(|(_, word)| word.as_str());
        phrase.split(' ').all(|part| rest.next() == Some(part))
    };
    let found = |at: usize| {
        let phrase = QUAINT.iter().find(|phrase| begins_at(at, phrase))?;
        Some((words[at].0, *phrase))
    };
    (0..words.len()).filter_map(found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_text(text: &str, expect: &[(usize, &str)]) {
        assert_eq!(quaint(text), expect);
    }

    #[test]
    fn a_quaint_word_is_found() {
        check_text(
            "//! Read anew.\nfn a() {}\n/// Whoever asks.\n",
            &[(1, "anew"), (3, "whoever")],
        );
        check_text("Message::new(\"nobody answers\")\n", &[(1, "nobody")]);
        check_text("// It is nobody's fault.\n", &[(1, "nobody")]);
    }

    #[test]
    fn a_phrase_over_two_lines_is_found() {
        check_text("/// What became\n    /// of it.\n", &[(1, "what became of")]);
    }

    #[test]
    fn part_of_a_name_is_not_a_word() {
        check_text("create_anew(); // renewed, whoevers\n", &[]);
    }

    #[test]
    fn only_clean_folders_are_checked() {
        let planted = "// Read anew.\n";
        let tree =
            SourceTree::of(&[("xtask/src/tidy/a.rs", planted), ("crates/server/a.rs", planted)]);
        let found = check(&tree);
        assert_eq!(found, [Violation::new("xtask/src/tidy/a.rs", 1, "\"anew\" is a quaint word")]);
    }
}
