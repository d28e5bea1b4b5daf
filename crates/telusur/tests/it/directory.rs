//! The data directory as a user meets it: what is wrong with it is said, and nobody else may read it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::{Place, Seen, finish};

const DATA: &str = ".local/share/telusur";
const PROGRAM: &str = env!("CARGO_BIN_EXE_telusur");

/// Runs what only a shell can set up.
fn in_shell(place: &Place, script: &str) -> Seen {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script]).current_dir(place.path()).env_clear().env("HOME", place.path());
    finish(shell, "")
}

/// A place with the demo's two crawls.
fn crawled() -> Place {
    let place = Place::new();
    assert_eq!(place.run(&["demo", "-q"]).code, 0);
    place
}

/// `verify` once said nothing, with success, about a directory that was not there.
#[test]
fn a_check_of_nothing_is_an_error() {
    let place = Place::new().with("file", "");
    for command in ["verify", "ls"] {
        let code = if command == "verify" { 4 } else { 2 };
        let seen = place.run(&[command, "--data", "none"]);
        assert!(seen.error(code).contains("nothing in none"), "{seen:?}");
        assert!(!place.path().join("none").exists());
        // Nobody can enter a file, not even an administrator.
        let seen = place.run(&[command, "--data", "file/below"]);
        assert!(seen.error(4).contains("file/below"), "{seen:?}");
    }
}

#[test]
fn a_directory_without_its_version_file_is_refused_and_kept() {
    let place = crawled();
    let version = place.path().join(DATA).join("telusur.version");
    let copy = std::fs::read(&version).unwrap();
    std::fs::remove_file(&version).unwrap();
    for command in
        [&["verify"][..], &["ls"], &["demo", "-q"], &["key", "create", "--scope", "read"]]
    {
        let seen = place.run(command);
        let is_named = seen.stderr.contains("telusur.version is damaged: it is gone");
        assert!(seen.code == 4 && is_named, "{seen:?}");
    }
    std::fs::write(&version, copy).unwrap();
    let seen = place.run(&["verify"]);
    assert_eq!(seen.code, 0, "{seen:?}");
}

/// A key once left a lock behind that `verify` took for a stranger, for ever.
#[test]
fn verify_says_what_it_checked_and_knows_keys() {
    let place = crawled();
    assert_eq!(place.run(&["key", "create", "--scope", "read"]).code, 0);
    let seen = place.run(&["verify"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    let last = seen.stdout.lines().last().unwrap();
    assert!(last.starts_with("checked: crawls 2, URLs ") && !last.ends_with("pages 0"), "{last}");
    let seen = place.run(&["verify", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&seen.stdout).unwrap();
    assert_eq!(told["crawls"], 2);
    assert!(told["pages"].as_u64().unwrap() > 10, "{told}");
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// Everything below a directory that others may read.
fn open_to_others(path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    if mode(path) & 0o077 != 0 {
        found.push(format!("{} {:o}", path.display(), mode(path)));
    }
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            found.extend(open_to_others(&entry.unwrap().path()));
        }
    }
    found
}

#[test]
fn what_is_stored_is_private_and_what_is_exported_is_not() {
    let place = Place::new();
    let run = |command: &str| {
        let seen = in_shell(&place, &format!("umask 002; exec {PROGRAM} {command}"));
        assert_eq!(seen.code, 0, "{seen:?}");
    };
    run("demo -q");
    run("key create --scope read");
    let data = place.path().join(DATA);
    assert_eq!(open_to_others(&data), [""; 0]);
    run("export demo -o pages.jsonl");
    assert_eq!(mode(&place.path().join("pages.jsonl")), 0o664, "an export is the user's");
    run("export demo --tables-dir a/tables");
    assert_eq!(mode(&place.path().join("a/tables")), 0o775);
    run("config init telusur.toml");
    assert_eq!(mode(&place.path().join("telusur.toml")), 0o664);
}

/// The kernel once ended the program without a word.
#[test]
fn a_limit_on_file_sizes_is_told() {
    let place = Place::new();
    // In blocks of 512 bytes.
    let seen = in_shell(&place, &format!("ulimit -f 16; exec {PROGRAM} demo -q"));
    assert_eq!(seen.code, 4, "{seen:?}");
    assert!(seen.stderr.contains("os error 27") && seen.stderr.contains("ulimit -f"), "{seen:?}");
}
