//! Damage in `index/`: commands that do not need the index do not notice, the others mend it, and
//! `index rebuild` always works.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Place;

const DATA: &str = ".local/share/telusur";

/// A file, or a directory in the place of a file.
enum Damage {
    Bytes(&'static [u8]),
    Directory,
    Gone,
}

fn damage(path: &Path, how: &Damage) {
    fs::remove_file(path).unwrap();
    match how {
        Damage::Bytes(bytes) => fs::write(path, bytes).unwrap(),
        Damage::Directory => fs::create_dir(path).unwrap(),
        Damage::Gone => {}
    }
}

/// A copy of a directory with everything below it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => copy(&entry.path(), &to),
            kind if kind.is_file() => drop(fs::copy(entry.path(), to).unwrap()),
            _ => {}
        }
    }
}

fn crawled() -> Place {
    let place = Place::new();
    assert_eq!(place.run(&["demo", "-q"]).code, 0);
    place
}

/// A fresh copy of the data of a place.
fn fresh(place: &Place) -> PathBuf {
    let data = place.path().join("copy");
    if data.exists() {
        fs::remove_dir_all(&data).unwrap();
    }
    copy(&place.path().join(DATA), &data);
    data
}

/// Each command on a damaged copy of its own.
#[track_caller]
fn check(place: &Place, what: &str, damage: impl Fn(&Path)) {
    let commands: [&[&str]; 7] = [
        &["ls"],
        &["show", "last"],
        &["search", "crawler"],
        &["index", "rebuild"],
        &["import", "more.jsonl"],
        &["rm", "last", "--yes"],
        &["verify"],
    ];
    for command in commands {
        let data = fresh(place);
        damage(&data.join("index"));
        let data = data.to_str().unwrap();
        let seen = place.run(&[&["--data", data], command].concat());
        assert_eq!(seen.code, 0, "{what}: {command:?}: {seen:?}");
        let seen = place.run(&["--data", data, "search", "crawler"]);
        assert_eq!(seen.code, 0, "{what}: {command:?}, then search: {seen:?}");
        let seen = place.run(&["--data", data, "verify"]);
        assert_eq!(seen.code, 0, "{what}: {command:?}, then verify: {seen:?}");
    }
}

/// A byte that is not UTF-8 once ended every command, the advised one included.
#[test]
fn a_damaged_version_of_the_index_ends_no_command() {
    let place = crawled().with("more.jsonl", r#"{"id":"x","text":"one more"}"#);
    let version =
        |how: Damage| move |index: &Path| damage(&index.join("telusur-index.version"), &how);
    check(&place, "not UTF-8", version(Damage::Bytes(b"\xff4\n")));
    check(&place, "a directory", version(Damage::Directory));
    check(&place, "empty", version(Damage::Bytes(b"")));
}

#[test]
fn an_index_that_is_no_directory_ends_no_command() {
    let place = crawled().with("more.jsonl", r#"{"id":"x","text":"one more"}"#);
    check(&place, "a file", |index| {
        fs::remove_dir_all(index).unwrap();
        fs::write(index, "no directory").unwrap();
    });
}

/// Every file of an index in turn: the index is mended by whoever needs it, and rebuilt on request.
#[test]
fn damage_to_any_file_of_the_index_is_mended() {
    let place = Place::new().with("more.jsonl", r#"{"id":"x","text":"one more"}"#);
    assert_eq!(place.run(&["import", "more.jsonl"]).code, 0);
    let names: Vec<String> = fs::read_dir(place.path().join(DATA).join("index"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.len() > 5, "{names:?}");
    let kinds =
        [Damage::Bytes(b"\xff\xff\xff\xff\xff\xff\xff\xff"), Damage::Directory, Damage::Gone];
    for (name, kind) in names.iter().flat_map(|name| kinds.iter().map(move |kind| (name, kind))) {
        let data = fresh(&place);
        let path = data.join("index").join(name);
        // A directory of words of links has no bytes of its own.
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
            fs::write(&path, "").unwrap();
        }
        damage(&path, kind);
        let data = data.to_str().unwrap();
        let seen = place.run(&["--data", data, "search", "more"]);
        assert_eq!(seen.code, 0, "{name}: {seen:?}");
        if matches!(kind, Damage::Directory) {
            let seen = place.run(&["--data", data, "verify"]);
            assert_eq!(seen.code, 0, "{name}, then verify: {seen:?}");
        }
    }
}
