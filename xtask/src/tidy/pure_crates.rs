//! The pure crates do no I/O and know no clock, thread, process or random source: their sources do not name those
//! parts of `std`, and their manifests do not pull in a runtime. Addresses and durations are data, and allowed.

use super::Violation;
use super::rust_text::RustText;
use super::source_tree::SourceTree;

const PURE: &[&str] = &["model", "frontier", "parse", "ledger"];

/// Modules of `std` with what is data in them.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("fs", &[]),
    ("net", &["IpAddr", "Ipv4Addr", "Ipv6Addr", "AddrParseError"]),
    ("thread", &[]),
    ("time", &["Duration"]),
    ("process", &[]),
    ("env", &[]),
    ("os", &[]),
];

/// Crates that bring a clock, a thread, a socket or randomness.
const FORBIDDEN_CRATES: &[&str] = &[
    "tokio",
    "rustix",
    "libc",
    "mio",
    "hyper",
    "socket2",
    "rand",
    "getrandom",
    "fastrand",
    "rayon",
    "tempfile",
];

pub(super) fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for name in PURE {
        let sources = format!("crates/{name}/src/");
        for (path, text) in tree.program_files().filter(|(path, _)| path.starts_with(&sources)) {
            violations.extend(check_file(path, text));
        }
        let path = format!("crates/{name}/Cargo.toml");
        if let Some(text) = tree.text(&path) {
            violations.extend(check_manifest(&path, text));
        }
    }
    violations
}

fn check_file(path: &str, text: &RustText) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, named) in named_paths(text) {
        let mut parts = named.split("::");
        let (root, module) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let forbidden = match root {
            "std" | "core" => FORBIDDEN.iter().find(|(name, _)| *name == module),
            "tokio" => Some(&("tokio", &[] as &[&str])),
            _ => None,
        };
        let Some((_, data)) = forbidden else { continue };
        if !parts.next().is_some_and(|item| data.contains(&item)) {
            let what = format!("names {named}: this crate has no I/O, clock, thread or process");
            violations.push(Violation::new(path, number, what));
        }
    }
    violations
}

/// Paths from `std`, `core` and `tokio` on, with the line on which each begins. A group in braces is taken apart:
/// `std::{fs, time::Duration}` names `std::fs` and `std::time::Duration`.
fn named_paths(text: &RustText) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    let lines = text.program_lines();
    let mut words = lines.flat_map(|(number, line)| words(number, &line.code)).peekable();
    while let Some((number, word)) = words.next() {
        if !["std", "core", "tokio"].contains(&word.as_str()) {
            continue;
        }
        // The path before each open brace, and the path that is being read.
        let mut groups: Vec<String> = Vec::new();
        let mut path = word;
        let mut is_read = false;
        while let Some((_, word)) = words.peek() {
            match word.as_str() {
                "::" => path.push_str("::"),
                "{" if path.ends_with("::") => groups.push(path.clone()),
                // `as` and a name: the path before it is what counts.
                "as" if !groups.is_empty() => drop(words.next()),
                "," | "}" if !groups.is_empty() => {
                    if !is_read && !path.ends_with("::") {
                        paths.push((number, path.clone()));
                    }
                    is_read = word == "}";
                    if is_read {
                        groups.pop();
                    }
                    path = groups.last().cloned().unwrap_or_default();
                }
                word if path.ends_with("::") && word.starts_with(is_name_char) => {
                    path.push_str(word);
                    is_read = false;
                }
                _ => break,
            }
            words.next();
        }
        if !is_read && !path.is_empty() {
            paths.push((number, path));
        }
    }
    paths
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '*'
}

/// Names, `::` and single signs.
fn words(number: usize, code: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("::") {
            2
        } else if is_name_char(first) {
            rest.find(|c| !is_name_char(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        words.push((number, rest[..length].to_owned()));
        rest = rest[length..].trim_start();
    }
    words
}

fn check_manifest(path: &str, text: &str) -> Vec<Violation> {
    let manifest: toml::Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![Violation::new(path, 0, error.to_string())],
    };
    let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
    let names = dependencies.into_iter().flatten().map(|(name, _)| name);
    names
        .filter(|name| FORBIDDEN_CRATES.contains(&name.as_str()))
        .map(|name| Violation::new(path, 0, format!("a pure crate depends on {name}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "crates/frontier/src/lib.rs";

    #[track_caller]
    fn check_lib(text: &str, expect: &[&str]) {
        let found = check(&SourceTree::of(&[(LIB, text)]));
        assert_eq!(found.len(), expect.len(), "{found:?}");
        for (violation, expect) in found.iter().zip(expect) {
            assert!(violation.what.starts_with(&format!("names {expect}: ")), "{violation}");
        }
    }

    #[test]
    fn data_of_std_is_allowed() {
        check_lib("use std::net::{IpAddr, Ipv4Addr};\nuse std::time::Duration;\n", &[]);
        check_lib("use std::collections::{BTreeMap, BTreeSet};\nuse std::fmt;\n", &[]);
        check_lib("fn a(at: std::net::IpAddr) -> std::time::Duration { b(at) }\n", &[]);
    }

    #[test]
    fn a_clock_is_found() {
        check_lib("use std::time::Instant;\n", &["std::time::Instant"]);
        check_lib("use std::time::{Duration, SystemTime};\n", &["std::time::SystemTime"]);
        check_lib("use std::time;\n", &["std::time"]);
    }

    #[test]
    fn a_path_in_the_middle_of_a_line_is_found() {
        check_lib("fn a() { std::fs::read(b).is_ok(); }\n", &["std::fs::read"]);
        check_lib("fn a() { let t = std::thread::spawn(b); }\n", &["std::thread::spawn"]);
    }

    #[test]
    fn groups_are_taken_apart() {
        check_lib(
            "use std::{fmt, process::{self, Command}};\n",
            &["std::process::self", "std::process::Command"],
        );
        check_lib(
            "use std::{\n    fs,\n    net::{IpAddr, TcpStream},\n};\n",
            &["std::fs", "std::net::TcpStream"],
        );
    }

    #[test]
    fn a_renamed_item_hides_nothing() {
        check_lib("use std::{fmt as f, fs as g, net};\n", &["std::fs", "std::net"]);
    }

    #[test]
    fn a_runtime_is_found() {
        check_lib("async fn a() { tokio::time::sleep(b).await }\n", &["tokio::time::sleep"]);
    }

    #[test]
    fn tests_comments_and_texts_are_not_looked_at() {
        check_lib("// std::fs::read\nconst A: &str = \"std::fs\";\n", &[]);
        check_lib("#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n", &[]);
        let tests = ("crates/frontier/src/tests.rs", "use std::fs;\n");
        let lib = (LIB, "#[cfg(test)]\nmod tests;\n");
        assert_eq!(check(&SourceTree::of(&[lib, tests])), []);
    }

    #[test]
    fn other_crates_may() {
        let tree = SourceTree::of(&[("crates/fetch/src/lib.rs", "use std::fs;\n")]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn a_dependency_with_a_clock_is_found() {
        let path = "crates/ledger/Cargo.toml";
        let manifest =
            "[dependencies]\nserde = \"1\"\ntokio = \"1\"\n[dev-dependencies]\nrand = \"1\"\n";
        let found = check(&SourceTree::of(&[(path, manifest)]));
        assert_eq!(found, [Violation::new(path, 0, "a pure crate depends on tokio")]);
    }
}
