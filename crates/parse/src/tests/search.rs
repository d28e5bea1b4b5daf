//! What a search goes by, read together with what a crawl goes by.

use telusur_model::Findings;

use super::raw_page;
use crate::{ContentLimits, ParseLimits, parse, read_for_search, read_page};

const ARTICLE: &str = "<!doctype html><html lang=en><title>Rivers</title>\
    <meta property=og:description content='What they cost'>\
    <meta property=article:published_time content=2024-05-01>\
    <nav><a href=/a>Home</a><a href=mailto:x@a.org>Mail</a></nav>\
    <article><h1>Bridges</h1><p>The river is long and wide, and it flows from here to the sea.</p>\
    <table><tr><td>1</table><img src=/i.png><pre>let x;</pre><form></form></article>";

const FEED: &str = "<?xml version='1.0'?><rss><channel><title>News</title><description>All of it\
    </description><item><title>One</title><link>http://a.org/1</link><description>Some &lt;b&gt;text\
    </description></item></channel></rss>";

/// A crawl goes by the same, whether its pages are searched or not.
#[track_caller]
fn check(content_type: &str, body: &str) -> Findings {
    let mut page = raw_page(content_type, body.as_bytes());
    for truncated in [false, true] {
        page.truncated = truncated;
        let read = read_for_search(&page, &ContentLimits::for_search());
        assert_eq!(read.parsed, parse(&page, &ParseLimits::default()), "{body}");
    }
    let findings = read_for_search(&page, &ContentLimits::for_search()).findings;
    let whole = read_page(&page, &ContentLimits::default());
    assert_eq!(findings.text, whole.text);
    assert_eq!(findings.language, whole.language);
    assert_eq!(findings.description, whole.description);
    assert_eq!(findings.published, whole.published);
    assert_eq!(findings.has_table, !whole.tables.is_empty());
    assert_eq!(findings.has_image, !whole.images.is_empty());
    assert_eq!(findings.has_form, !whole.forms.is_empty());
    let headings = whole.headings.into_iter().map(|heading| heading.text);
    assert_eq!(findings.headings, headings.collect::<Vec<_>>());
    findings
}

#[test]
fn a_crawl_goes_by_the_same_whether_its_pages_are_searched_or_not() {
    let findings = check("text/html", ARTICLE);
    assert_eq!(findings.headings, ["Bridges"]);
    assert!(findings.has_code && findings.has_table && findings.has_image && findings.has_form);
    assert_eq!(findings.description.as_deref(), Some("What they cost"));
    check("application/rss+xml", FEED);
    check("text/plain", "The river is long, and it is wide, and it flows to the sea.");
    check("image/png", "\u{89}PNG");
}

#[test]
fn without_main_content_a_page_is_found_by_what_it_shows() {
    let page = raw_page("text/html", b"<nav>One</nav>");
    let read = read_for_search(&page, &ContentLimits::for_search());
    assert_eq!(read.findings.text, "One");
    assert!(!read.findings.has_code);
}

#[test]
fn only_preformatted_text_is_code() {
    for (html, expect) in [("<pre>x", true), ("<PRE class=a>x", true), ("<present>x", false)] {
        let page = raw_page("text/html", html.as_bytes());
        let read = read_for_search(&page, &ContentLimits::for_search());
        assert_eq!(read.findings.has_code, expect, "{html}");
    }
}
