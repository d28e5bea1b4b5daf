//! What the tables of a hand-written page look like as files.

use telusur_engine::control::FoundContent;
use telusur_model::{PageUrl, RawPage};
use telusur_parse::{ContentLimits, read_page};

use super::*;

const PAGE: &str = "<!doctype html><title>t</title><h1>=Top</h1>\
    <p><a href=/x rel=nofollow>an \"x\"</a> <img src=i.png alt='a, b' width=3></p>\
    <table><caption>c</caption><tr><th>k<th>v<tr><td>=1+1<td>\u{9b}2</table>\
    <ol><li>one<ul><li>two</ul></ol>\
    <form action=/go method=post><input name=q value=@x required></form><form></form>\
    <script>a(1,2)</script><style media=print>p{}</style>";

fn found() -> FoundContent {
    let raw = RawPage {
        url: PageUrl::parse("http://a.org/p").unwrap(),
        status: 200,
        headers: vec![("content-type".to_owned(), "text/html; charset=utf-8".to_owned())],
        body: PAGE.into(),
        truncated: false,
        wire_bytes: 0,
    };
    let content = read_page(&raw, &ContentLimits::default());
    FoundContent { crawl: "c_1".to_owned(), page: "http://a.org/p".to_owned(), content }
}

#[test]
fn tables_as_files() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tables");
    let mut tables = TablesDir::create(&path, false).unwrap();
    tables.write(&found()).unwrap();
    assert_eq!(tables.finish().unwrap(), 1);
    let list = std::fs::read_to_string(path.join("tables.jsonl")).unwrap();
    let listed: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!((&listed["page"], &listed["rows"]), (&"http://a.org/p".into(), &2.into()));
    let file = std::fs::read_to_string(path.join(listed["file"].as_str().unwrap())).unwrap();
    assert_eq!(file, "k,v\n\"'=1+1\",\u{fffd}2\n");
    assert!(TablesDir::create(&path, false).is_err(), "nothing is overwritten unasked");
    let mut again = TablesDir::create(&path, true).unwrap();
    again.write(&found()).unwrap();
    assert_eq!(again.finish().unwrap(), 1);
}

#[test]
fn a_link_in_the_directory_is_not_followed() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tables");
    let mut tables = TablesDir::create(&path, true).unwrap();
    tables.write(&found()).unwrap();
    tables.finish().unwrap();
    let file = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let file = file.into_iter().find(|path| path.extension().unwrap() == "csv").unwrap();
    let target = place.path().join("precious");
    std::fs::write(&target, "precious").unwrap();
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&target, &file).unwrap();
    let mut tables = TablesDir::create(&path, true).unwrap();
    tables.write(&found()).unwrap();
    tables.finish().unwrap();
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
}
