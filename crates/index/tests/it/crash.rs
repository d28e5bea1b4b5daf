//! The indexer is killed without warning, again and again: afterwards every page is there once, and
//! the checkpoint tells the truth.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use telusur_index::{IndexDoc, IndexLimits, Query, SearchIndex};

use crate::web::page;

const DIR_VARIABLE: &str = "TELUSUR_INDEX_CRASH_DIR";
/// The store that the indexer follows has this many pages.
const PAGES: u64 = 240;
const BATCH: u64 = 2;

/// The page that the store holds at a place. Every fifth is an older page stored again.
fn stored(seq: u64) -> IndexDoc {
    let number = if seq % 5 == 4 { seq / 2 } else { seq };
    page(
        &format!("https://a.example/{number}"),
        &format!("page {number}"),
        &format!("common text n{number} s{seq}"),
    )
}

fn open(dir: &Path) -> SearchIndex {
    SearchIndex::open(dir, IndexLimits::default()).unwrap()
}

/// Follows the store from the checkpoint on, and says so after every commit.
fn follow(dir: &Path) {
    let index = open(dir);
    loop {
        let from = index.applied_upto();
        if from == PAGES {
            return;
        }
        let upto = (from + BATCH).min(PAGES);
        let docs: Vec<IndexDoc> = (from..upto).map(stored).collect();
        index.apply(&docs, &[], upto).unwrap();
        println!("applied {upto}");
    }
}

/// Not a test of its own: the process that [`killed_at_any_moment`] kills.
#[test]
fn indexer_to_be_killed() {
    if let Ok(dir) = std::env::var(DIR_VARIABLE) {
        follow(Path::new(&dir));
    }
}

#[test]
fn killed_at_any_moment() {
    kill_and_check(25);
}

#[test]
#[ignore = "takes a minute"]
fn killed_a_hundred_times() {
    kill_and_check(100);
}

fn kill_and_check(kills: u64) {
    let dir = tempfile::tempdir().unwrap();
    for kill in 0..kills {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::indexer_to_be_killed", "--nocapture"])
            .env(DIR_VARIABLE, dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The kill falls at a different point of the work each time: some right after a commit was
        // announced, some in the middle of the next.
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let commits = usize::try_from(kill % 3).unwrap();
        let _ = lines.map_while(Result::ok).filter(|line| line.contains("applied")).nth(commits);
        spin(kill);
        let _ = child.kill();
        child.wait().unwrap();
        check(&open(dir.path()));
    }
    follow(dir.path());
    let index = open(dir.path());
    assert_eq!(index.applied_upto(), PAGES);
    check(&index);
}

/// Lets a little time pass that differs from kill to kill, without sleeping.
fn spin(kill: u64) {
    let mut sum = 0_u64;
    for step in 0..kill * 40_000 {
        sum = std::hint::black_box(sum.wrapping_add(step));
    }
}

/// The index holds exactly what the store held at its checkpoint, once each.
#[track_caller]
fn check(index: &SearchIndex) {
    let upto = index.applied_upto();
    let last_of = |url: &str| (0..upto).rev().find(|&seq| stored(seq).url == url);
    let mut expected = 0;
    for seq in 0..upto {
        let doc = stored(seq);
        if last_of(&doc.url) != Some(seq) {
            continue;
        }
        expected += 1;
        let mut query = Query::batch(&format!("+s{seq}"), 10);
        query.limit = 10;
        let hits = index.search(&query).unwrap().hits;
        assert_eq!(hits.iter().map(|hit| hit.url.as_str()).collect::<Vec<_>>(), [doc.url]);
    }
    assert_eq!(index.doc_count(), expected);
}
