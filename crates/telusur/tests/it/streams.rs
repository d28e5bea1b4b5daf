//! Standard output and standard error as pipes, closed pipes and full disks.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::Stdio;

use crate::{DRY_RUN, Place};

#[test]
fn a_closed_pipe_is_no_error() {
    // Far more than a pipe holds, so that the reader is gone while we write.
    let questions = "{\"id\":1,\"url\":\"http://a.org/\"}\n".repeat(50_000);
    let mut command = Place::new().command(&["inspect", "url", "--jsonl"]);
    command.current_dir("/");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let _ = child.stdin.take().unwrap().write_all(questions.as_bytes());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
}

#[test]
fn a_full_disk_is_an_error_of_storage() {
    let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else { return };
    let place = Place::new();
    let output = place.command(&["version"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(output.stderr.starts_with(b"error: cannot write the output: "), "{output:?}");
}

#[test]
fn a_pipe_has_no_colours_unless_asked_for() {
    let place = Place::new();
    let wrong = ["explain", "E9999"];
    assert!(!place.run(&wrong).stderr.contains('\u{1b}'));
    let colored = place.run(&[&wrong[..], &["--color", "always"]].concat());
    assert!(colored.stderr.starts_with("\u{1b}[1;31merror:\u{1b}[0m "), "{colored:?}");
    let forced = place.run_with(&wrong, &[("FORCE_COLOR", "1")], "");
    assert!(forced.stderr.contains('\u{1b}'));
    let variables = [("FORCE_COLOR", "1"), ("NO_COLOR", "1")];
    assert!(!place.run_with(&wrong, &variables, "").stderr.contains('\u{1b}'));
}

#[test]
fn odd_terminals_are_survived() {
    let place = Place::new();
    for variables in [
        [("TERM", "dumb"), ("COLUMNS", "0")],
        [("TERM", ""), ("COLUMNS", "1")],
        [("LANG", "C"), ("COLUMNS", "-5")],
    ] {
        assert_eq!(place.run_with(&DRY_RUN, &variables, "").code, 0);
    }
}

#[test]
fn the_log_goes_where_it_is_sent() {
    let place = Place::new().with("telusur.toml", "");
    let quiet = place.run(&DRY_RUN);
    assert_eq!(quiet.stderr, "");
    let loud = place.run(&[&DRY_RUN[..], &["-vv"]].concat());
    assert!(loud.stderr.contains("configuration file read"), "{loud:?}");
    let filed = [&DRY_RUN[..], &["-vv", "--log-format", "json", "--log-file", "log"]].concat();
    place.run(&filed).result();
    let log = std::fs::read_to_string(place.path().join("log")).unwrap();
    let line: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(line["fields"]["message"], "configuration file read");
    let nowhere = place.run(&[&DRY_RUN[..], &["--log-file", "no/such/dir/log"]].concat());
    assert!(nowhere.error(2).contains("cannot open the log file no/such/dir/log"));
}
