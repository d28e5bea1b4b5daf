//! `recover` and `verify --requeue`: what a damaged disk took is named, and the rest comes back.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::run::{Web, small_web};
use crate::{Place, Seen};

const DATA: &str = ".local/share/telusur";
const RECOVERED: &str = ".local/share/telusur.recovered";

/// A place with the demo's two crawls.
fn crawled() -> Place {
    let place = Place::new();
    assert_eq!(place.run(&["demo", "-q"]).code, 0);
    place
}

/// What a directory has, without what is said about the program: crawls, pages, and what is found.
fn told(place: &Place, data: &str) -> [String; 4] {
    let ask = |words: &[&str]| {
        let seen = place.run(&[words, &["--data", data]].concat());
        assert_eq!(seen.code, 0, "{words:?} {seen:?}");
        seen.stdout
    };
    let found: Value = serde_json::from_str(&ask(&["search", "mill", "--json"])).unwrap();
    let hits = found["hits"].as_array().unwrap().iter().map(|hit| hit["url"].to_string());
    [
        ask(&["ls"]),
        ask(&["export", "crawl_1"]),
        ask(&["coverage", "crawl_2", "--json"]),
        hits.collect::<Vec<_>>().join("\n"),
    ]
}

#[track_caller]
fn assert_verified(place: &Place, data: &str) {
    let seen = place.run(&["verify", "--data", data]);
    assert_eq!(seen.code, 0, "{seen:?}");
}

/// The names and contents of all files below a directory.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            // Names the last owner.
            false if path.ends_with("telusur.lock") => {}
            false => found.push((path.clone(), fs::read(path).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn a_lost_state_comes_back_from_the_bodies_and_the_old_directory_is_left_alone() {
    let place = crawled();
    let before = told(&place, DATA);
    fs::remove_dir_all(place.path().join(DATA).join("state")).unwrap();
    let left = files(&place.path().join(DATA));
    let seen = place.run(&["recover", DATA]);
    assert_eq!(seen.code, 0, "{seen:?}");
    assert!(seen.stdout.contains("2 crawls") && seen.stdout.contains("; 0 lost"), "{seen:?}");
    assert_eq!(files(&place.path().join(DATA)), left);
    assert_verified(&place, RECOVERED);
    assert_eq!(told(&place, RECOVERED), before);
    assert_verified(&place, RECOVERED);
    let seen = place.run(&["resume", "crawl_1", "--data", RECOVERED]);
    assert!(seen.stderr.contains("nothing is left to fetch"), "{seen:?}");
}

#[test]
fn in_place_the_damaged_state_is_kept_beside_the_new_one() {
    let place = crawled();
    let before = told(&place, DATA);
    let state = place.path().join(DATA).join("state");
    let journal = state.join("0.jnl");
    let mut bytes = fs::read(&journal).unwrap();
    bytes[200..600].fill(0);
    fs::write(&journal, &bytes).unwrap();
    let seen = place.run(&["ls"]);
    assert!(seen.error(4).contains("state/0.jnl is damaged"), "{seen:?}");
    let seen = place.run(&["recover", "--in-place"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    assert!(seen.stderr.contains("state.damaged"), "{seen:?}");
    assert_eq!(fs::read(place.path().join(DATA).join("state.damaged/0.jnl")).unwrap(), bytes);
    assert_verified(&place, DATA);
    assert_eq!(told(&place, DATA), before);
}

#[test]
fn nothing_is_overwritten() {
    let place = crawled();
    let seen = place.run(&["recover", DATA, "--into", "other"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    let left = files(&place.path().join("other"));
    let seen = place.run(&["recover", DATA, "--into", "other"]);
    assert!(seen.error(4).contains("other is there already"), "{seen:?}");
    assert_eq!(files(&place.path().join("other")), left);
    let seen = place.run(&["recover", "nowhere"]);
    assert!(seen.error(2).contains("no directory nowhere"), "{seen:?}");
    let seen = place.run(&["recover", "other/bodies"]);
    assert!(seen.error(4).contains("has no bodies/"), "{seen:?}");
    let seen = place.run(&["recover", "--in-place", "--into", "x"]);
    assert_eq!(seen.code, 2, "{seen:?}");
}

/// Damages the body of one page that can be found. Gives its URL.
fn damage_a_page(place: &Place) -> String {
    let segment = place.path().join(DATA).join("bodies/crawl_1/00000001.warc.zst");
    let whole = fs::read(&segment).unwrap();
    let lead = [0x50, 0x2a, 0x4d, 0x18, 12, 0, 0, 0];
    let blobs = whole.windows(8).enumerate().filter(|(_, window)| *window == lead);
    for (blob, _) in blobs {
        let mut bytes = whole.clone();
        bytes[blob + 40..blob + 60].fill(0xff);
        fs::write(&segment, bytes).unwrap();
        let seen = place.run(&["verify"]);
        assert_eq!(seen.code, 4, "{seen:?}");
        assert_says(&seen, "telusur verify --requeue");
        let named = seen.stdout.lines().find(|line| line.contains("does not match its checksum"));
        let named = named.unwrap_or_else(|| panic!("{seen:?}")).trim();
        let url = named.split(' ').nth(1).unwrap().trim_end_matches(':').to_owned();
        if is_found(place, &url) {
            return url;
        }
    }
    panic!("no page can be found");
}

/// Whether a search for the last word of its address finds a page.
fn is_found(place: &Place, url: &str) -> bool {
    let word = url.rsplit('/').next().unwrap();
    let seen = place.run(&["search", word, "--json"]);
    let found: Value = serde_json::from_str(&seen.stdout).unwrap_or_default();
    let hits = found["hits"].as_array().map(Vec::as_slice).unwrap_or_default();
    hits.iter().any(|hit| hit["url"] == url)
}

#[track_caller]
fn assert_says(seen: &Seen, words: &str) {
    assert!(seen.stdout.contains(words) || seen.stderr.contains(words), "{words}: {seen:?}");
}

#[test]
fn damaged_pages_are_taken_out_and_queued_again() {
    let place = crawled();
    let url = damage_a_page(&place);
    let seen = place.run(&["verify", "--requeue"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    assert_says(&seen, "1 damaged pages taken out, 1 queued again");
    assert_says(&seen, &url);
    let seen = place.run(&["explain", &url]);
    assert_says(&seen, "body_lost");
    assert!(!is_found(&place, &url));
    assert_verified(&place, DATA);
    // Once more changes nothing.
    let seen = place.run(&["verify", "--requeue"]);
    assert!(seen.code == 0 && !seen.stdout.contains("taken out"), "{seen:?}");
}

#[test]
fn a_recovery_names_pages_whose_bytes_are_damaged() {
    let place = crawled();
    let url = damage_a_page(&place);
    let seen = place.run(&["recover", "--json"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    let lines: Vec<Value> =
        seen.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lost: Vec<&Value> = lines.iter().filter(|line| line["lost"].is_string()).collect();
    assert_eq!((lost.len(), &lost[0]["lost"]), (1, &Value::from(url.as_str())));
    assert_eq!(lost[0]["asked_again"], true);
    let total = lines.last().unwrap();
    assert_eq!(total["lost"], 1);
    let recovered = lines.iter().filter(|line| line["recovered"].is_string()).count();
    assert_eq!(total["pages"], recovered);
    assert_verified(&place, RECOVERED);
    let seen = place.run(&["explain", &url, "--data", RECOVERED]);
    assert_says(&seen, "waiting for attempt 1");
}

/// Without any record of a step, pages are what their bodies say.
#[test]
fn pages_come_back_by_their_bodies_alone() {
    let place = crawled();
    let pages = |data: &str| {
        let seen = place.run(&["ls", "--json", "--data", data]);
        let crawls: Value = serde_json::from_str(&seen.stdout).unwrap();
        let crawls = crawls.as_array().unwrap().iter();
        crawls.map(|crawl| crawl["stats"]["fetched"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let [of_ids, of_links] = pages(DATA)[..] else { panic!("two crawls, the youngest first") };
    let data = place.path().join(DATA);
    fs::remove_dir_all(data.join("state")).unwrap();
    for crawl in ["crawl_1", "crawl_2"] {
        let segment = data.join("bodies").join(crawl).join("00000001.warc.zst");
        let mut bytes = fs::read(&segment).unwrap();
        let head = [0x51, 0x2a, 0x4d, 0x18];
        let places = bytes.windows(4).enumerate().filter(|(_, window)| *window == head);
        for place in places.map(|(place, _)| place).collect::<Vec<_>>() {
            bytes[place + 10] ^= 1;
        }
        fs::write(&segment, bytes).unwrap();
    }
    let seen = place.run(&["recover"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    assert_says(&seen, "pages of crawl_1 were parsed again from their bodies");
    assert_says(&seen, "bodies/crawl_1/00000001.warc.zst: bytes 0 to");
    // Of a PDF and of a table in CSV no body is kept.
    assert_eq!(pages(RECOVERED), [of_ids, of_links - 2]);
    let seen = place.run(&["search", "mill", "--data", RECOVERED]);
    assert!(seen.stdout.contains("/en/"), "{seen:?}");
    assert_verified(&place, RECOVERED);
}

/// Pages that a crawl has stored so far.
fn pages(place: &Place, name: &str) -> u64 {
    place.shown(name)["stats"]["fetched"].as_u64().unwrap_or(0)
}

fn copy_files(from: &Path, to: &Path, is_copied: &dyn Fn(&Path) -> bool) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            copy_files(&path, &to.join(entry.file_name()), is_copied);
        } else if kind.is_file() && is_copied(&path) {
            fs::create_dir_all(to).unwrap();
            // It may be gone by now.
            let _ = fs::copy(&path, to.join(entry.file_name()));
        }
    }
}

/// The witness was once copied later than the journal, which then looked as if it had lost its end.
#[test]
fn a_copy_of_a_running_crawl_opens_and_goes_on() {
    let (place, web) = (Place::new(), Web::new(small_web(2000)));
    let mut crawl = place.start_crawl(&web, &["--name", "copied", "--rate", "200/s"]);
    let (data, copy) = (place.path().join(DATA), place.path().join("copy"));
    let is_reach = |path: &Path| path.ends_with("state/telusur.reach");
    crate::until("a page is stored", || pages(&place, "copied") > 0);
    copy_files(&data, &copy, &|path| !is_reach(path));
    let then = pages(&place, "copied");
    crate::until("more pages are stored", || pages(&place, "copied") > then);
    copy_files(&data, &copy, &is_reach);
    assert!(crawl.try_wait().unwrap().is_none(), "the crawl was over before it was copied");
    crawl.kill().unwrap();
    crawl.wait().unwrap();
    let seen = place.run(&["verify", "--data", "copy"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    assert!(seen.stderr.contains("the state was rebuilt"), "{seen:?}");
    // Once.
    let seen = place.run(&["verify", "--data", "copy"]);
    assert!(seen.code == 0 && !seen.stderr.contains("rebuilt"), "{seen:?}");
    let seen = place.run(&["show", "copied", "--data", "copy", "--json"]);
    let shown: Value = serde_json::from_str(&seen.stdout).unwrap();
    let stored = shown["stats"]["fetched"].as_u64().unwrap();
    let limit = (stored + 20).to_string();
    let seen = place.run(&["resume", "copied", "--data", "copy", "--max-pages", &limit]);
    assert_eq!(seen.code, 0, "{seen:?}");
    assert_verified(&place, "copy");
}
