//! The commands of the terminal.

use crate::site::{GOOD, Site};
use crate::{BREAKING, Place, crawl_of};

const OPEN: [&str; 4] = ["--allow-private", "127.0.0.0/8", "--delay", "0s"];

/// All pages that break the parser are named, with the reason.
#[track_caller]
fn assert_named(text: &str, site: &Site) {
    for path in BREAKING {
        let url = site.url(path);
        let is_named =
            text.lines().any(|line| line.contains(&url) && line.contains("parse_failed"));
        assert!(is_named, "{url}: {text}");
    }
}

pub(crate) fn a_crawl_stores_them() {
    let (site, place) = (Site::start(), Place::new());
    let crawl = crawl_of(&site);
    let seen = place.run(&crawl.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(seen.code, 0, "{seen:?}");
    assert!(seen.stdout.contains("parse_failed 3"), "{seen:?}");
    let seen = place.run(&["search", "lighthouses", "--json"]);
    assert!(seen.stdout.contains("/good"), "{seen:?}");
}

pub(crate) fn fetch_says_so() {
    let (site, place) = (Site::start(), Place::new());
    for path in BREAKING {
        let seen = place.run(&[&["fetch", &site.url(path)][..], &OPEN].concat());
        assert_eq!((seen.code, seen.stdout.as_str()), (2, ""), "{seen:?}");
        assert!(seen.stderr.contains("parse_failed"), "{seen:?}");
    }
    let raw = place.run(&[&["fetch", &site.url("/eat"), "--as", "html"][..], &OPEN].concat());
    assert!(raw.code == 0 && raw.stdout.contains(GOOD), "{raw:?}");
    let good = place.run(&[&["fetch", &site.url("/good")][..], &OPEN].concat());
    assert!(good.code == 0 && good.stdout.contains(GOOD), "{good:?}");
}

/// One process reads one page after the other.
pub(crate) fn inspect_page_says_so() {
    let place = Place::new();
    let file = place.directory.path().join("page.html");
    std::fs::write(&file, format!("<p>{GOOD}")).unwrap();
    let lines: String = ["/loop", "/overflow", "/eat", "/good"]
        .map(|path| {
            format!("{{\"id\":\"{path}\",\"path\":\"page.html\",\"url\":\"http://a.org{path}\"}}\n")
        })
        .concat();
    let asked = place.directory.path().join("asked.jsonl");
    std::fs::write(&asked, lines).unwrap();
    let mut command = place.command(&["inspect", "page", "--jsonl"]);
    command.stdin(std::fs::File::open(asked).unwrap());
    let seen = crate::seen(&mut command);
    let answers: Vec<&str> = seen.stdout.lines().collect();
    assert_eq!((seen.code, answers.len()), (0, 4), "{seen:?}");
    assert!(answers[..3].iter().all(|line| line.contains("parse_failed")), "{seen:?}");
    assert!(answers[3].contains(GOOD), "{seen:?}");
    let seen = place.run(&["inspect", "page", "page.html", "--url", "http://a.org/eat"]);
    assert!(seen.code == 2 && seen.stderr.contains("parse_failed"), "{seen:?}");
}

pub(crate) fn page_says_so() {
    let site = Site::start();
    let place = Place::crawled(&site);
    for path in BREAKING {
        let seen = place.run(&["page", &site.url(path), "--as", "text"]);
        assert!(seen.code == 2 && seen.stderr.contains("parse_failed"), "{seen:?}");
    }
    let seen = place.run(&["page", &site.url("/eat")]);
    assert!(seen.code == 0 && seen.stdout.contains("parse_failed"), "{seen:?}");
    let seen = place.run(&["page", &site.url("/good"), "--as", "text"]);
    assert!(seen.code == 0 && seen.stdout.contains(GOOD), "{seen:?}");
}

/// What can be read is exported; what cannot is named, and the export fails.
pub(crate) fn an_export_names_them() {
    let site = Site::start();
    let place = Place::crawled(&site);
    for kind in ["pages", "headings"] {
        let seen = place.run(&["export", "last", "--kind", kind]);
        assert_ne!(seen.code, 0, "{seen:?}");
        assert!(seen.stdout.contains("/good"), "{seen:?}");
        assert!(seen.stderr.contains("parse_failed"), "{seen:?}");
    }
}

pub(crate) fn reparse_records_them() {
    let site = Site::start();
    let place = Place::crawled(&site);
    let seen = place.run(&["reparse", "last", "--min-free-disk", "0B"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    assert!(seen.stdout.contains("5 pages read again, 3 changed"), "{seen:?}");
    assert_eq!(seen.stdout.matches("parse_failed").count(), 3, "{seen:?}");
}

pub(crate) fn verify_names_them() {
    let site = Site::start();
    let place = Place::crawled(&site);
    let seen = place.run(&["verify"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    assert_named(&seen.stdout, &site);
}

pub(crate) fn a_rebuilt_index_is_without_them() {
    let site = Site::start();
    let place = Place::crawled(&site);
    let seen = place.run(&["index", "rebuild", "--min-free-disk", "0B"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    assert_named(&seen.stderr, &site);
    let found = place.run(&["search", "lighthouses", "--json"]);
    assert!(found.stdout.contains("/good") && !found.stdout.contains("/loop"), "{found:?}");
}
