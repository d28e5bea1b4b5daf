//! A disk without a byte of free space: looking, searching and deleting work, everything else says what it
//! needs, and goes on when there is room.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::run::{Web, small_web};
use crate::{Place, Seen};

/// What the test calls itself when it runs on the small disk.
const INSIDE: &str = "full_disk::on_a_small_disk";
/// Where that is.
const DISK: &str = "TELUSUR_SMALL_DISK";
/// What nobody is to read.
const NOT_OURS: [&str; 5] =
    ["FATAL", "hardware", "writer was killed", "Fjall", "No space left on device"];

/// The disk is one of memory, in a namespace where this process may mount it.
#[test]
fn a_full_disk_is_no_dead_end() {
    let disk = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=64m tmpfs {disk} && exec {program} {INSIDE} --exact --ignored --nocapture",
        disk = disk.path().display(),
        program = program.display(),
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    command.env(DISK, disk.path());
    let seen = crate::finish(command, "");
    let needs = "the test needs `unshare` (util-linux) and user namespaces";
    assert_eq!(seen.code, 0, "{needs}\n{}{}", seen.stdout, seen.stderr);
    assert!(seen.stdout.contains("1 passed"), "{}", seen.stdout);
}

/// A file that takes up the space that is left.
struct Ballast {
    path: PathBuf,
}

impl Ballast {
    fn new(disk: &Path) -> Self {
        Self { path: disk.join("ballast") }
    }

    /// Leaves nothing.
    fn fill(&self) {
        self.grow(u64::MAX);
        assert_eq!(self.free(), 0);
    }

    fn grow(&self, bytes: u64) {
        let mut file = File::options().create(true).append(true).open(&self.path).unwrap();
        let block = vec![0xaa; 64 << 10];
        let mut written = 0;
        while written < bytes {
            match file.write(&block) {
                Ok(0) | Err(_) => break,
                Ok(more) => written += more as u64,
            }
        }
    }

    /// Leaves this much.
    fn leave(&self, bytes: u64) {
        fs::write(&self.path, "").unwrap();
        self.grow(self.free() - bytes);
    }

    fn remove(&self) {
        fs::remove_file(&self.path).unwrap();
    }

    fn free(&self) -> u64 {
        let stat = rustix::fs::statvfs(self.path.parent().unwrap()).unwrap();
        stat.f_bavail * stat.f_frsize
    }
}

#[track_caller]
fn assert_ours(seen: &Seen) {
    for text in NOT_OURS {
        assert!(!seen.stderr.contains(text) && !seen.stdout.contains(text), "{text}: {seen:?}");
    }
}

#[test]
#[ignore = "runs on a small disk, called by the test above"]
fn on_a_small_disk() {
    let disk = PathBuf::from(std::env::var_os(DISK).unwrap());
    let (place, web, ballast) = (Place::new(), Web::new(small_web(60)), Ballast::new(&disk));
    let data = disk.join("data");
    let data = data.to_str().unwrap();
    let run =
        |arguments: &[&str]| place.run(&[&["--data", data, "--no-progress"], arguments].concat());
    let seen = place.crawl(&web, &["--data", data, "--name", "first"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    let seen = place.crawl(&web, &["--data", data, "--name", "second", "--new"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    let reads: [&[&str]; 7] = [
        &["ls"],
        &["show", "last"],
        &["search", "the"],
        &["export", "last"],
        &["verify"],
        &["explain", "E0403"],
        &["show", "first", "--errors"],
    ];
    for read in reads {
        ballast.fill();
        let seen = run(read);
        assert!(seen.code == 0 || read[0] == "search" && seen.code == 1, "{read:?}: {seen:?}");
        assert_ours(&seen);
    }
    writes_are_refused(&ballast, &place, data);
    a_crawl_waits_for_space(&ballast, &place, &web, data);
    a_service_goes_on_by_itself(&ballast, &place, &web, data);

    // The way out, without a byte to spare.
    for name in ["first", "second"] {
        ballast.fill();
        let seen = run(&["rm", name, "--yes"]);
        assert_eq!(seen.code, 0, "{seen:?}");
        assert_ours(&seen);
        assert!(ballast.free() > 0);
    }
    ballast.remove();
    let seen = run(&["verify"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    let seen = run(&["show", "first"]);
    assert_eq!(seen.code, 2, "{seen:?}");
    let seen = run(&["search", "the", "--crawl", "second"]);
    assert_eq!(seen.code, 2, "{seen:?}");
}

fn writes_are_refused(ballast: &Ballast, place: &Place, data: &str) {
    fs::write(place.path().join("more.jsonl"), r#"{"id":"x","text":"one more"}"#).unwrap();
    let writes: [&[&str]; 4] = [
        &["import", "more.jsonl", "--min-free-disk", "1MiB"],
        &["reparse", "first", "--min-free-disk", "60MiB"],
        &["index", "rebuild", "--min-free-disk", "60MiB"],
        &["import", "more.jsonl"],
    ];
    for write in writes {
        ballast.fill();
        let seen = place.run(&[&["--data", data, "--no-progress"], write].concat());
        let is_refused = seen.code == 4 && seen.stderr.contains(" free");
        // One megabyte is free: that of the reserve.
        assert!(is_refused || write.last() == Some(&"1MiB"), "{write:?}: {seen:?}");
        assert_ours(&seen);
    }
}

fn a_crawl_waits_for_space(ballast: &Ballast, place: &Place, web: &Web, data: &str) {
    ballast.leave(10 << 20);
    let seen = place.crawl(web, &["--data", data, "--name", "third", "--new"]);
    assert_eq!(seen.code, 4, "{seen:?}");
    assert!(seen.stderr.contains("paused: only ") && seen.stderr.contains("at least"), "{seen:?}");
    assert!(seen.stderr.contains("telusur resume crawl_"), "{seen:?}");
    assert_ours(&seen);
    ballast.remove();
    let seen = place.run(&["--data", data, "resume", "third"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    let seen = place.run(&["--data", data, "verify"]);
    assert_eq!(seen.code, 0, "{seen:?}");
}

fn a_service_goes_on_by_itself(ballast: &Ballast, place: &Place, web: &Web, data: &str) {
    ballast.leave(10 << 20);
    let seen = place.crawl(web, &["--data", data, "--name", "fourth", "--new"]);
    assert_eq!(seen.code, 4, "{seen:?}");
    ballast.fill();
    let flags = ["serve", "--listen", "127.0.0.1:0", "--min-free-disk", "0B"];
    let more = ["--allow-private", "127.0.0.0/8", "--delay", "0s"];
    let mut command = place.command(&[&["--data", data][..], &flags, &more].concat());
    let log = tempfile::tempfile().unwrap();
    let mut kept_log = log.try_clone().unwrap();
    let mut service = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let mut lines = BufReader::new(service.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("listening on "));
    let state = || {
        let seen = place.run(&["--data", data, "show", "fourth", "--json"]);
        let shown: serde_json::Value = serde_json::from_str(&seen.stdout).unwrap_or_default();
        shown["state"].as_str().unwrap_or_default().to_owned()
    };
    assert_ne!(state(), "completed");
    ballast.remove();
    crate::until("the crawl goes on", || state() == "completed");
    kill_process(Pid::from_child(&service), Signal::TERM).unwrap();
    service.wait().unwrap();
    let mut text = String::new();
    kept_log.seek(SeekFrom::Start(0)).unwrap();
    kept_log.read_to_string(&mut text).unwrap();
    for not_ours in NOT_OURS {
        assert!(!text.contains(not_ours), "{text}");
    }
}
