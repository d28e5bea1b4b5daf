//! What a page says about itself.

use telusur_model::{Link, LinkKind, PageUrl, ParsedPage, Warning};

use super::{parse_html, raw_page};
use crate::{ContentLimits, ParseLimits, parse, read_for_search, read_page};

#[test]
fn everything_in_one_page() {
    let html = "<!doctype html><html lang=' id '><head><meta charset=utf-8>\
        <title> Rivers\n &amp; bridges </title>\
        <meta name=Description content=' What  they cost '>\
        <meta name=keywords content='river, bridge'>\
        <meta name=ROBOTS content=NoIndex>\
        <link rel=canonical href=/canonical>\
        <meta http-equiv=Refresh content='5; url=next'></head>\
        <body><nav><a href=/>Home</a></nav><article><h1>Bridges</h1><p>One.</p></article></body>";
    let url = |text: &str| PageUrl::parse(text).unwrap();
    let link = |text, anchor: &str, kind, rel: &str| Link {
        url: url(text),
        anchor: anchor.to_owned(),
        kind,
        nofollow: false,
        rel: rel.to_owned(),
    };
    let expect = ParsedPage {
        charset: "UTF-8".to_owned(),
        title: Some("Rivers & bridges".to_owned()),
        description: Some("What they cost".to_owned()),
        keywords: Some("river, bridge".to_owned()),
        language: Some("id".to_owned()),
        canonical: Some(url("http://a.org/canonical")),
        robots: Some("NoIndex".to_owned()),
        refresh: Some(url("http://a.org/dir/next")),
        links: vec![
            link("http://a.org/canonical", "", LinkKind::Relation, "canonical"),
            link("http://a.org/dir/next", "", LinkKind::Refresh, ""),
            link("http://a.org/", "Home", LinkKind::Anchor, ""),
        ],
        visible_text: "Bridges\nOne.".to_owned(),
        ..ParsedPage::default()
    };
    assert_eq!(parse_html(html), expect);
}

#[track_caller]
fn check_title(html: &str, expect: Option<&str>) {
    assert_eq!(parse_html(html).title.as_deref(), expect, "{html}");
}

#[test]
fn titles() {
    check_title("<title>a</title><title>b</title>", Some("a"));
    check_title("<title> </title><title>b</title>", Some("b"));
    check_title("<p>x<title>late</title>", Some("late"));
    check_title("<title>a<b>c</title>", Some("a<b>c"));
    check_title("<title>&lt;script&gt;</title>", Some("<script>"));
    check_title("<svg><title>icon</title></svg><p>x", None);
    check_title("<title>never closed", Some("never closed"));
    check_title("no title", None);
}

#[track_caller]
fn check_language(html: &str, expect: Option<&str>) {
    assert_eq!(parse_html(html).language.as_deref(), expect, "{html}");
}

#[test]
fn languages() {
    check_language("<html lang=en-GB>", Some("en-GB"));
    check_language("<html xml:lang=fr>", Some("fr"));
    check_language("<p>x<html lang=de>", Some("de"));
    check_language("<html lang=de><html lang=fr>", Some("de"));
    check_language("<html lang=''>", None);
    check_language("<p lang=de>", None);
    check_language(&format!("<html lang={}>", "x".repeat(65)), None);
}

#[test]
fn of_several_descriptions_the_first_with_text_counts() {
    let page = parse_html(
        "<meta name=description content=' '><meta name=description content=a>\
         <meta name=description content=b><meta name=keywords><meta name=keywords content=k>",
    );
    assert_eq!(page.description.as_deref(), Some("a"));
    assert_eq!(page.keywords.as_deref(), Some("k"));
}

#[test]
fn all_robots_rules_count_m15() {
    let page =
        parse_html("<meta name=robots content=noindex><meta name=Robots content=' NOFOLLOW '>");
    assert_eq!(page.robots.as_deref(), Some("noindex, NOFOLLOW"));
}

#[test]
fn robots_rules_for_this_crawler_are_kept_apart() {
    let page = parse_html(
        "<meta name=robots content=all><meta name=Telusur content=noindex>\
         <meta name=googlebot content=nosnippet><meta name=telusur content=nofollow>",
    );
    assert_eq!(page.robots.as_deref(), Some("all"));
    assert_eq!(page.robots_own.as_deref(), Some("noindex, nofollow"));
}

/// All that is known of a page that is stored as it came.
fn not_read() -> ParsedPage {
    ParsedPage { warnings: vec![Warning::UnsupportedType], ..ParsedPage::default() }
}

/// Bytes without meaning, the same each time.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn bytes_without_meaning_are_no_page_whatever_their_label() {
    for label in ["text/html", "text/html; charset=utf-8", "text/html; charset=windows-1251"] {
        for bytes in [200, 4_000, 300_000] {
            let raw = raw_page(label, &noise(bytes));
            assert_eq!(parse(&raw, &ParseLimits::default()), not_read(), "{bytes} as {label}");
            let content = read_page(&raw, &ContentLimits::default());
            assert_eq!((content.charset.as_str(), content.text.as_str()), ("", ""));
            assert_eq!(read_for_search(&raw, &ContentLimits::for_search()).parsed, not_read());
        }
    }
}

#[test]
fn sloppy_text_is_text() {
    let padded = [&b"<p>word"[..], &[0; 500]].concat();
    let (japanese, ..) = encoding_rs::SHIFT_JIS.encode("<p>日本語の文書<a href=/x>x</a>");
    for (label, body) in [
        ("text/html", &padded[..]),
        ("text/html", b"<p>word\x01\x02\x0b\x1f"),
        ("text/html; charset=utf-8", &japanese),
    ] {
        let page = parse(&raw_page(label, body), &ParseLimits::default());
        assert!(!page.visible_text.is_empty() && !page.charset.is_empty(), "{body:?}");
    }
}

#[test]
fn what_is_not_html_is_empty() {
    let page = parse(&raw_page("application/json", b"{\"a\": \"<p>b\"}"), &ParseLimits::default());
    assert_eq!(page, not_read());
    let page = parse(&raw_page("text/html", b"%PDF-1.7 <p>b"), &ParseLimits::default());
    assert_eq!(page, not_read());
    let html = b"<!doctype html><title>t</title><p>words";
    let page = parse(&raw_page("application/octet-stream", html), &ParseLimits::default());
    assert_eq!(page, not_read());
}

#[test]
fn plain_text_has_only_text() {
    let raw = raw_page("text/plain", b"<a href=x>a</a>\r\n  b\0c\n");
    let page = parse(&raw, &ParseLimits::default());
    assert_eq!(page, not_read(), "a NUL in plain text means that it is binary");

    let raw = raw_page("text/plain", b"<a href=x>a</a>\r\n  b\n");
    let page = parse(&raw, &ParseLimits::default());
    assert_eq!(page.visible_text, "<a href=x>a</a>\n  b\n");
    assert_eq!((page.charset.as_str(), page.links.len()), ("UTF-8", 0));
}

#[test]
fn a_cut_body_is_told_m18() {
    let mut raw = raw_page("text/html", b"<title>a</title><p>b</p");
    raw.truncated = true;
    let page = parse(&raw, &ParseLimits::default());
    assert_eq!((page.visible_text.as_str(), page.warnings), ("b", vec![Warning::Truncated]));
}

#[test]
fn bad_bytes_are_told() {
    let page = parse(&raw_page("text/html; charset=utf-8", b"<p>a\xff"), &ParseLimits::default());
    assert_eq!((page.visible_text.as_str(), page.warnings), ("a\u{fffd}", vec![Warning::BadBytes]));
}

#[test]
fn xhtml_m21() {
    let body = b"<?xml version='1.0' encoding='utf-8'?><!DOCTYPE html>\
        <html xmlns='http://www.w3.org/1999/xhtml' xml:lang='en'><head><title>t</title>\
        <script src='x.js'/></head><body><p>a</p><a href='/b'/><p>c</p></body></html>";
    for content_type in ["application/xhtml+xml", "text/xml", "application/xml"] {
        let page = parse(&raw_page(content_type, body), &ParseLimits::default());
        assert_eq!((page.title.as_deref(), page.visible_text.as_str()), (Some("t"), "a\nc"));
        assert_eq!((page.links.len(), page.language.as_deref()), (1, Some("en")));
    }
}

#[test]
fn odd_pages_are_pages_m21() {
    assert_eq!(parse_html(""), parse_html("\u{feff}"));
    assert_eq!(parse_html("<body></body>").visible_text, "");
    assert_eq!(parse_html("a<plaintext><b>c").visible_text, "a\n<b>c");
    let frames =
        parse_html("<frameset><frame src=a><frame src=b><noframes>old</noframes></frameset>");
    let kinds: Vec<_> = frames.links.iter().map(|link| (link.url.path(), link.kind)).collect();
    assert_eq!(kinds, [("/dir/a", LinkKind::Frame), ("/dir/b", LinkKind::Frame)]);
}

/// A page that is stored and not read says so, however it is looked at.
#[test]
fn what_is_not_read_says_so() {
    let page = raw_page("image/svg+xml", b"<svg/>");
    assert_eq!(parse(&page, &ParseLimits::default()).warnings, [Warning::UnsupportedType]);
    let limits = ContentLimits::default();
    assert_eq!(read_page(&page, &limits).warnings, [Warning::UnsupportedType]);
    assert_eq!(read_for_search(&page, &limits).parsed.warnings, [Warning::UnsupportedType]);
}

#[test]
fn careless_labels_are_read_as_browsers_read_them() {
    for label in ["text/html, text/html", "html", " text / html ", "text/plain, text/html"] {
        let page =
            parse(&raw_page(label, b"<!doctype html><a href=/x>x</a>"), &ParseLimits::default());
        assert_eq!((page.links.len(), page.warnings), (1, vec![]), "{label}");
    }
    let label = "text/html; charset=windows-1251, text/html";
    assert_eq!(parse(&raw_page(label, b"\xcf"), &ParseLimits::default()).visible_text, "П");
}

#[test]
fn a_coding_that_does_not_exist_is_told() {
    let mut page = raw_page("text/html", b"<p>a");
    page.headers.push(("content-encoding".to_owned(), "gzip, UTF-8".to_owned()));
    let page = parse(&page, &ParseLimits::default());
    assert_eq!((page.visible_text.as_str(), page.warnings), ("a", vec![Warning::UnknownCoding]));
}
