//! Damage of a data directory: it has no effect or is named, for every kind of file; and every kind of file is
//! described.

use std::path::{Path, PathBuf};

use telusur_testkit::{DamageTorture, DamagedFiles};

use crate::Place;
use crate::serve::Served;

const DATA: &str = ".local/share/telusur";
const DESCRIBED: &str = include_str!("../../../../docs/reference/data-directory.md");
/// A few of each kind of file and of damage. `cargo xtask torture damage` does hundreds.
const COPIES: usize = 60;

#[test]
fn damage_has_no_effect_or_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let torture = DamageTorture {
        program: PathBuf::from(env!("CARGO_BIN_EXE_telusur")),
        scratch: scratch.path().to_owned(),
        copies: COPIES,
        seed: 1,
        // Few pages, and links enough that rows are written out into tables.
        pages: 40,
        links: 350,
        // What the index does with damage is shown by its own tests.
        files: DamagedFiles::WithoutIndex,
        only: None,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let report = runtime.block_on(torture.run(|_| {})).unwrap();
    assert!(report.wrong.is_empty(), "{report}");
    let named: usize = report.cells.values().map(|cell| cell.named).sum();
    assert!(named > COPIES / 4, "{report}");
}

/// They have no answer of a server, and were passed over.
#[test]
fn damaged_documents_of_an_import_are_named() {
    let place = Place::new().with("documents.jsonl", "{\"id\":\"1\",\"text\":\"some words\"}\n");
    assert_eq!(place.run(&["import", "--name", "documents", "documents.jsonl"]).code, 0);
    assert_eq!(place.run(&["verify"]).code, 0);
    let segment = place.path().join(DATA).join("bodies/crawl_1/00000001.warc.zst");
    let mut bytes = std::fs::read(&segment).unwrap();
    let lead = [0x50, 0x2a, 0x4d, 0x18];
    let blob = bytes.windows(4).position(|window| window == lead).unwrap();
    bytes[blob + 40] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let seen = place.run(&["verify"]);
    assert_eq!(seen.code, 4, "{seen:?}");
    let place = format!("bodies/crawl_1/00000001.warc.zst at byte {blob}");
    assert!(seen.stdout.contains(&place), "{seen:?}");
}

/// Names of files in the first column, with `N` for a number and `*` for any name.
fn described() -> Vec<String> {
    let rows = DESCRIBED.lines().filter(|line| line.starts_with("| `"));
    let names = rows.filter_map(|row| row.split('|').nth(1));
    let names = names.flat_map(|names| names.split(','));
    names.map(|name| name.trim().trim_matches('`').to_owned()).collect()
}

/// Whether a path is one that a pattern stands for.
fn is_match(pattern: &[u8], path: &[u8]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => {
            let name = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
            (0..=name).any(|end| is_match(rest, &path[end..]))
        }
        ([b'N', rest @ ..], [first, ..]) if first.is_ascii_digit() => {
            let digits = path.iter().take_while(|byte| byte.is_ascii_digit()).count();
            is_match(rest, &path[digits..])
        }
        ([left, pattern @ ..], [right, path @ ..]) => left == right && is_match(pattern, path),
        ([_, ..], []) | ([], [_, ..]) => false,
    }
}

fn files_below(root: &Path, dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(root, &path));
        } else {
            found.push(path.strip_prefix(root).unwrap().to_string_lossy().into_owned());
        }
    }
    found
}

#[test]
fn every_file_of_a_directory_is_described() {
    let place = Place::new().with("documents.jsonl", "{\"id\":\"1\",\"text\":\"some words\"}\n");
    // A crawl and a linear crawl.
    assert_eq!(place.run(&["demo", "-q"]).code, 0);
    assert_eq!(place.run(&["import", "--name", "documents", "documents.jsonl"]).code, 0);
    assert_eq!(place.run(&["key", "create", "--scope", "read"]).code, 0);
    assert_eq!(place.run(&["search", "words"]).code, 0);
    let data = place.path().join(DATA);
    // While a service runs there are sockets as well.
    let service = Served::start(&place, &[]);
    let mut files = files_below(&data, &data);
    drop(service);
    files.extend(files_below(&data, &data));
    assert!(files.len() > 50, "{files:?}");
    let described = described();
    assert!(described.len() > 20, "{described:?}");
    for file in files {
        let is_described = |pattern: &String| is_match(pattern.as_bytes(), file.as_bytes());
        assert!(described.iter().any(is_described), "{file} has no row in data-directory.md");
    }
}

#[test]
fn patterns_stand_for_files() {
    for (pattern, path, is) in [
        ("state/N.jnl", "state/12.jnl", true),
        ("state/N.jnl", "state/x.jnl", false),
        ("keys.*.new", "keys.0a1b.new", true),
        ("index/*.json", "index/anchors/meta.json", false),
        ("index/anchors-N-N/*", "index/anchors-0-76/.managed.json", true),
        ("telusur.lock", "telusur.lock.old", false),
    ] {
        assert_eq!(is_match(pattern.as_bytes(), path.as_bytes()), is, "{pattern} {path}");
    }
}
