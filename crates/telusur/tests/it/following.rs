//! The indexer as a process of its own, beside real crawls and services, killed in every direction.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::Place;
use crate::run::{Web, code_of, signal, small_web};

const PAGES: u64 = 400;
/// A crawl that lasts long enough to be met in its middle.
const SLOWLY: [&str; 2] = ["--rate", "80/s"];

/// A running `index --follow`.
struct Follower {
    child: Child,
    said: BufReader<ChildStderr>,
}

impl Follower {
    fn start(place: &Place) -> Self {
        let mut command = place.command(&["index", "--follow", "--json"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        Self { child, said }
    }

    /// Whether it says this word, now or later.
    fn hear(&mut self, word: &str) -> bool {
        !self.said(word).is_empty()
    }

    /// The next line that it says with this word; empty if it ends without.
    fn said(&mut self, word: &str) -> String {
        let mut line = String::new();
        while self.said.read_line(&mut line).unwrap() > 0 && !line.contains(word) {
            line.clear();
        }
        line
    }

    /// Stops it, and gives its exit code and the number of pages that it indexed.
    fn stop(self, with: Signal) -> (i32, u64) {
        signal(&self.child, with);
        let output = self.child.wait_with_output().unwrap();
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code().unwrap_or(-1), told["indexed"].as_u64().unwrap())
    }
}

impl Place {
    /// The crawl's pages, all of which are in the index, once each.
    #[track_caller]
    fn assert_indexed(&self) -> u64 {
        self.assert_verified();
        let status: Value =
            serde_json::from_str(self.run(&["index", "status", "--json"]).result()).unwrap();
        let shown = self.shown("last");
        assert_eq!(status["documents"], shown["stats"]["ok"], "{status} {shown}");
        shown["stats"]["fetched"].as_u64().unwrap()
    }

    /// How many pages have been stored so far.
    fn pages(&self) -> u64 {
        self.shown("last")["stats"]["fetched"].as_u64().unwrap_or(0)
    }
}

#[test]
fn an_indexer_follows_a_crawl_and_waits_for_the_next() {
    let (place, web) = (Place::new(), Web::new(small_web(PAGES)));
    let mut follower = Follower::start(&place);
    assert!(follower.hear("waiting for one"));
    let crawl = place.start_crawl(&web, &SLOWLY);
    assert!(follower.hear("following"));
    // While it is paused it cannot end before it was asked.
    assert_eq!(place.run(&["pause", "last"]).code, 0);
    let second = place.run(&["index", "--follow"]);
    assert!(second.error(4).contains("follows this directory already"), "{second:?}");
    assert_eq!(place.run(&["resume", "last"]).code, 0);
    assert_eq!(code_of(crawl), 0);
    assert!(follower.hear("waiting for one"));
    let (code, indexed) = follower.stop(Signal::TERM);
    assert_eq!(code, 143);
    let pages = place.assert_indexed();
    assert!(indexed > 0 && indexed <= pages, "{indexed} of {pages}");
}

/// The owner takes the index back, and nothing is missing or there twice.
#[test]
fn an_indexer_is_killed_in_the_middle() {
    let (place, web) = (Place::new(), Web::new(small_web(PAGES)));
    let crawl = place.start_crawl(&web, &SLOWLY);
    for _ in 0..3 {
        let mut follower = Follower::start(&place);
        assert!(follower.hear("following"));
        let before = place.pages();
        while place.pages() == before && place.shown("last")["state"] == "running" {
            std::thread::yield_now();
        }
        signal(&follower.child, Signal::KILL);
        let _ = follower.child.wait();
    }
    assert_eq!(code_of(crawl), 0);
    place.assert_indexed();
}

/// The indexer says so and waits; whoever owns the directory next finds everything.
#[test]
fn an_owner_is_killed_in_the_middle() {
    let (place, web) = (Place::new(), Web::new(small_web(PAGES)));
    let mut crawl = place.start_crawl(&web, &SLOWLY);
    let mut follower = Follower::start(&place);
    assert!(follower.hear("following"));
    signal(&crawl, Signal::KILL);
    let _ = crawl.wait();
    assert!(follower.hear("is gone"));
    assert!(follower.hear("waiting for one"));
    let resumed = place.run(&["resume", "last"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(follower.stop(Signal::INT).0, 130);
    place.assert_indexed();
}

#[test]
fn an_indexer_without_work_is_stopped_at_once() {
    let place = Place::new();
    let mut follower = Follower::start(&place);
    assert!(follower.hear("waiting for one"));
    assert_eq!(follower.stop(Signal::TERM), (143, 0));
    let nothing = place.run(&["index"]);
    assert_eq!(nothing.code, 2, "{nothing:?}");
    assert!(nothing.stderr.contains("--follow"), "{nothing:?}");
}
