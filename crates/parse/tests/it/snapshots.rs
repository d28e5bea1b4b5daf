//! Pages of every kind, written by hand, and everything that is read out of them, as people would
//! want to see it. Each page `pages/NAME.html` has its `pages/NAME.txt`.
//!
//! After a change that is meant, `TELUSUR_SNAPSHOTS=write cargo test -p telusur-parse snapshots`
//! writes them again; review the changes before the commit.

use std::fmt::Write;
use std::path::Path;

use bytes::Bytes;
use telusur_model::{PageContent, PageUrl, RawPage};
use telusur_parse::{ContentLimits, read_page};

#[track_caller]
fn check(name: &str) {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/pages");
    let html = std::fs::read(pages.join(name).with_extension("html")).unwrap();
    let page = RawPage {
        url: PageUrl::parse(&format!("https://site.example/{name}")).unwrap(),
        status: 200,
        headers: vec![("content-type".to_owned(), "text/html".to_owned())],
        wire_bytes: html.len() as u64,
        body: Bytes::from(html),
        truncated: false,
    };
    let found = report(&read_page(&page, &ContentLimits::default()));
    let snapshot = pages.join(name).with_extension("txt");
    if std::env::var("TELUSUR_SNAPSHOTS").is_ok_and(|what| what == "write") {
        std::fs::write(snapshot, found).unwrap();
        return;
    }
    let expect = std::fs::read_to_string(snapshot).unwrap().replace("\r\n", "\n");
    assert_eq!(found, expect, "{name} is read in another way than before");
}

fn report(content: &PageContent) -> String {
    let mut out = String::new();
    let facts = [
        ("title", &content.title),
        ("description", &content.description),
        ("author", &content.author),
        ("published", &content.published),
        ("language", &content.language),
    ];
    for (name, value) in facts {
        if let Some(value) = value {
            writeln!(out, "{name}: {value}").unwrap();
        }
    }
    for link in &content.links {
        writeln!(out, "link: {} ({})", link.url, link.anchor).unwrap();
    }
    for image in &content.images {
        writeln!(out, "image: {} ({})", image.url, image.alt).unwrap();
    }
    for form in &content.forms {
        let fields: Vec<&str> = form.fields.iter().map(|field| field.name.as_str()).collect();
        let action = form.action.as_ref().map(PageUrl::as_str).unwrap_or_default();
        writeln!(out, "form: {} {action} {fields:?}", form.method).unwrap();
    }
    for heading in &content.headings {
        writeln!(out, "heading {}: {}", heading.level, heading.text).unwrap();
    }
    for table in &content.tables {
        for row in &table.rows {
            let cells: Vec<&str> = row.iter().map(|cell| cell.text.as_str()).collect();
            writeln!(out, "row: {cells:?}").unwrap();
        }
    }
    for list in &content.lists {
        writeln!(out, "list: {:?}", list.items).unwrap();
    }
    writeln!(out, "\n== text ==\n{}", content.text).unwrap();
    writeln!(out, "\n== markdown ==\n{}", content.markdown).unwrap();
    out
}

#[test]
fn article() {
    check("article");
}

#[test]
fn blog() {
    check("blog");
}

#[test]
fn forum() {
    check("forum");
}

#[test]
fn product() {
    check("product");
}

#[test]
fn documentation() {
    check("documentation");
}

#[test]
fn listing() {
    check("listing");
}

#[test]
fn collection() {
    check("collection");
}

#[test]
fn service() {
    check("service");
}
