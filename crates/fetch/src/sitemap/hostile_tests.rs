//! Files that were made to be expensive, or to make us fetch something.

use proptest::prelude::*;

use super::{BYTES_MAX, Dropped, ENTRIES_MAX, Format, Trouble, read};

#[track_caller]
fn refused(text: &str) {
    let sitemap = read(text.as_bytes());
    assert_eq!(sitemap.trouble, Some(Trouble::Doctype), "{text}");
    assert_eq!(sitemap.entries, [], "{text}");
    assert_eq!(sitemap.format, None);
}

#[test]
fn any_document_type_is_refused() {
    let list = "<urlset><url><loc>/&a;</loc></url></urlset>";
    for declared in [
        "<!DOCTYPE urlset [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>",
        "<!DOCTYPE urlset SYSTEM \"http://10.0.0.1/x.dtd\">",
        "<!DOCTYPE urlset [<!ENTITY a SYSTEM \"file:///etc/passwd\">]>",
        "<!DOCTYPE urlset [<!ENTITY % p SYSTEM \"http://10.0.0.1/\"> %p;]>",
        "<!doctype rss PUBLIC \"-//Netscape//DTD RSS 0.91//EN\" \"rss-0.91.dtd\">",
        "<!DOCTYPE urlset [<!ENTITY a \"aaaa\"",
    ] {
        refused(&format!("<?xml version='1.0'?>{declared}{list}"));
    }
    refused("<urlset><url><loc>/1</loc></url><!DOCTYPE x><url><loc>/2</loc></url></urlset>");
}

#[test]
fn entities_without_a_declaration_stay_as_they_are() {
    let sitemap = read(b"<urlset><url><loc>/&lol9;&nbsp;</loc></url></urlset>");
    assert_eq!(sitemap.entries[0].loc, "/&lol9;&nbsp;");
}

#[test]
fn entries_beyond_the_limit_are_counted() {
    let url = "<url><loc>/1</loc></url>";
    let sitemap = read(format!("<urlset>{}</urlset>", url.repeat(120_000)).as_bytes());
    assert_eq!(sitemap.entries.len(), ENTRIES_MAX);
    assert_eq!(sitemap.dropped, Dropped { beyond_limit: 70_000, ..Dropped::default() });

    let sitemap = read("http://a.org/\n".repeat(200_000).as_bytes());
    assert_eq!(sitemap.entries.len(), ENTRIES_MAX);
    assert_eq!(sitemap.dropped.beyond_limit, 150_000);
}

#[test]
fn images_do_not_push_out_pages() {
    let page = format!("<url>{}<loc>/1</loc></url>", "<image><loc>/i</loc></image>".repeat(100));
    let sitemap = read(format!("<urlset>{}</urlset>", page.repeat(1000)).as_bytes());
    let pages = sitemap.entries.iter().filter(|entry| entry.kind.word() == "page");
    assert_eq!(pages.count(), 1000);
    assert_eq!(sitemap.entries.len(), 1000 + ENTRIES_MAX);
    assert_eq!(sitemap.dropped.beyond_limit, 50_000);
}

#[test]
fn overlong_locs_are_counted() {
    let long = "x".repeat(10_000);
    let text = format!(
        "<urlset><url><loc>/{long}</loc></url><url><loc>{}/1</loc></url>\
         <url><loc>/2</loc><lastmod>{long}</lastmod></url></urlset>",
        " ".repeat(10_000)
    );
    let sitemap = read(text.as_bytes());
    let locs: Vec<_> = sitemap.entries.iter().map(|entry| entry.loc.as_str()).collect();
    assert_eq!(locs, ["/1", "/2"]);
    assert_eq!(sitemap.entries[1].lastmod, None);
    assert_eq!(sitemap.dropped, Dropped { too_long: 1, ..Dropped::default() });
}

#[test]
fn a_hundred_thousand_levels_need_no_stack() {
    let deep = format!("<urlset>{}<url><loc>/1</loc></url>", "<a>".repeat(100_000));
    let sitemap = read(deep.as_bytes());
    assert_eq!(sitemap.entries.len(), 1);
    assert_eq!(sitemap.trouble, Some(Trouble::Truncated));
    let deep = format!("{{\"x\":{}", "[".repeat(100_000));
    assert_eq!(read(deep.as_bytes()).trouble, Some(Trouble::NotASitemap));
}

#[test]
fn two_hundred_thousand_attributes_are_read_past() {
    let attributes: String = (0..200_000).map(|number| format!(" xmlns:a{number}='x'")).collect();
    let text = format!(
        "<urlset{attributes}><url><link{attributes} rel='alternate' href='/2'/><loc>/1</loc></url></urlset>"
    );
    let sitemap = read(text.as_bytes());
    assert_eq!(sitemap.trouble, None);
    assert_eq!(sitemap.entries.len(), 2);
}

#[test]
fn a_million_ampersands_are_read_past() {
    let text = format!("<urlset><url><loc>/{}</loc></url></urlset>", "&".repeat(1_000_000));
    assert_eq!(read(text.as_bytes()).dropped.too_long, 1);
}

#[test]
fn a_bomb_is_cut_at_the_limit() {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"<urlset><url><loc>/1</loc></url>").unwrap();
    let spaces = vec![b' '; 1024 * 1024];
    for _ in 0..=BYTES_MAX / spaces.len() {
        encoder.write_all(&spaces).unwrap();
    }
    encoder.write_all(b"<url><loc>/2</loc></url></urlset>").unwrap();
    let sitemap = read(&encoder.finish().unwrap());
    assert_eq!(sitemap.format, Some(Format::UrlSet));
    assert_eq!(sitemap.trouble, Some(Trouble::TooLarge));
    assert_eq!(sitemap.entries.len(), 1);
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes);
    }

    #[test]
    fn any_markup_is_read(
        text in "(<urlset>|<rss>|<feed>|\\{\"items\":\\[)(</?(url|loc|item|link|image|urlset)>|<|>|&|;|#|/|!|\\[|\\]|\"|<!--|x|ñ){0,40}",
    ) {
        let sitemap = read(text.as_bytes());
        prop_assert!(sitemap.entries.iter().all(|entry| !entry.loc.is_empty()));
    }

    #[test]
    fn any_date_is_read(text in "[0-9TZ:+. ,ñ-]{0,30}") {
        let _ = super::dates::parse(&text);
    }
}
