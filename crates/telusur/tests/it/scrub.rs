//! `verify --scrub`: everything is read, at a pace, from where the last call ended.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::Place;
use crate::run::{Web, small_web};

const DATA: &str = ".local/share/telusur";

fn crawled(pages: u64) -> Place {
    let place = Place::new();
    let seen = place.crawl(&Web::new(small_web(pages)), &[]);
    assert_eq!(seen.code, 0, "{seen:?}");
    place
}

fn scrubbed(place: &Place) -> Value {
    let seen = place.run(&["verify", "--scrub", "--json"]);
    serde_json::from_str(&seen.stdout).unwrap_or_else(|_| panic!("{seen:?}"))
}

fn segment(place: &Place) -> PathBuf {
    place.path().join(DATA).join("bodies/crawl_1/00000001.warc.zst")
}

#[test]
fn everything_is_read_and_damage_is_named_as_verify_names_it() {
    let place = crawled(30);
    let told = scrubbed(&place);
    assert_eq!((told["damaged"].as_u64(), told["found"][0].as_str()), (Some(0), None), "{told}");
    let stored = fs::metadata(segment(&place)).unwrap().len();
    assert!(told["bytes"].as_u64().unwrap() >= stored, "{told}: {stored} bytes of bodies");
    assert!(told["pages"].as_u64().unwrap() >= 30 && told["rows"].as_u64().unwrap() > 60, "{told}");
    assert!(told["ended_at"].is_string(), "{told}");

    let file = OpenOptions::new().write(true).open(segment(&place)).unwrap();
    file.write_all_at(b"\x00\x00\x00\x00", stored / 2).unwrap();
    let seen = place.run(&["verify", "--scrub"]);
    assert_eq!(seen.code, 4, "{seen:?}");
    assert!(seen.stderr.contains("1 things that are stored are damaged"), "{seen:?}");
    let named = seen.stdout.lines().find(|line| line.starts_with("DAMAGED ")).unwrap();
    assert!(
        named.contains("http://") && named.contains("bodies/crawl_1/00000001.warc.zst at byte")
    );
    let verified = place.run(&["verify"]);
    let note = named.trim_start_matches("DAMAGED ");
    assert!(verified.stdout.contains(note), "{note}: {verified:?}");
}

/// A byte in a second: the process is killed long before it has read everything.
#[test]
fn a_kill_costs_nothing_that_was_read() {
    let place = crawled(30);
    let mut command = place.command(&["verify", "--scrub", "--pace", "4kB"]);
    let mut slow = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let journal = place.path().join(DATA).join("state/0.jnl");
    let grown = || fs::read(&journal).is_ok_and(|bytes| bytes.windows(5).any(|it| it == b"scrub"));
    while !grown() {
        std::thread::yield_now();
    }
    assert!(slow.try_wait().unwrap().is_none(), "it reads slowly");
    kill_process(Pid::from_child(&slow), Signal::KILL).unwrap();
    slow.wait().unwrap();
    let first = scrubbed(&place);
    let second = scrubbed(&place);
    assert_eq!(first["pages"], second["pages"]);
    assert_eq!(first["ended_at"].is_string(), second["ended_at"].is_string());
}

#[test]
fn a_pace_is_a_size() {
    let place = crawled(3);
    let seen = place.run(&["verify", "--scrub", "--pace", "quickly"]);
    assert!(seen.error(2).contains("--pace quickly is not a size"), "{seen:?}");
    let seen = place.run(&["verify", "--pace", "1MiB"]);
    assert_eq!(seen.code, 2, "{seen:?}");
}
