//! Which links are found, and what they are resolved against.

use telusur_model::{LinkKind, PageUrl, ParsedPage, Warning};

use super::{parse_html, raw_page};
use crate::{ContentLimits, ParseLimits, parse, read_page};

fn urls(page: &ParsedPage) -> Vec<&str> {
    page.links.iter().map(|link| link.url.as_str()).collect()
}

#[track_caller]
fn check(html: &str, expect: &[&str]) {
    assert_eq!(urls(&parse_html(html)), expect, "{html}");
}

#[test]
fn elements_that_link() {
    check("<a href=x>", &["http://a.org/dir/x"]);
    check("<map><area href=x></map>", &["http://a.org/dir/x"]);
    check("<iframe src=//b.org/x>", &["http://b.org/x"]);
    check(
        "<link rel=next href=/2><link rel='prev x' href=/0>",
        &["http://a.org/2", "http://a.org/0"],
    );
    check("<link rel=alternate href=/feed>", &["http://a.org/feed"]);
    check("<link rel='alternate stylesheet' href=/css><link rel=icon href=/i>", &[]);
    check("<svg><a xlink:href=/x></a><a href=/y></a></svg>", &["http://a.org/x", "http://a.org/y"]);
    check("<noscript><a href=/x></a></noscript>", &["http://a.org/x"]);
    check("<head><noscript><link rel=next href=/x></noscript>", &["http://a.org/x"]);
    check("<a name=x>no link</a><a>none</a>", &[]);
}

#[test]
fn what_is_not_shown_does_not_link() {
    check("<script>'<a href=x>'</script><!--<a href=y>--><template><a href=z></template>", &[]);
    check("<textarea><a href=x></textarea><style><a href=y></style>", &[]);
}

#[test]
fn written_forms() {
    check("<a href=' /x '>", &["http://a.org/x"]);
    check("<a href='/x\n/y'>", &["http://a.org/x/y"]);
    check("<A HREF='?a=1&amp;b=2'>", &["http://a.org/dir/page?a=1&b=2"]);
    check("<a href='?a=1&copy=2'>", &["http://a.org/dir/page?a=1&copy=2"]);
    check("<a href='http://u:p@b.org/'>", &["http://b.org/"]);
}

/// The links of a page in this charset.
fn links_in(charset: &str, html: &str) -> ParsedPage {
    let encoding = encoding_rs::Encoding::for_label(charset.as_bytes()).unwrap();
    let (body, ..) = encoding.encode(html);
    let content_type = format!("text/html; charset={charset}");
    parse(&raw_page(&content_type, &body), &ParseLimits::default())
}

#[track_caller]
fn check_query(charset: &str, query: &str, expect: &str) {
    let page = links_in(charset, &format!("<a href='/x?q={query}'>x</a>"));
    assert_eq!(urls(&page), [format!("http://a.org/x?q={expect}")], "{query} in {charset}");
}

/// The vectors are those of the URL standard and of the web platform tests.
#[test]
fn queries_are_written_in_the_charset_of_the_page() {
    check_query("windows-1251", "Привет", "%CF%F0%E8%E2%E5%F2");
    check_query("koi8-r", "Привет", "%F0%D2%C9%D7%C5%D4");
    check_query("iso-8859-1", "é", "%E9");
    check_query("shift_jis", "日本", "%93%FA%96{");
    check_query("euc-jp", "日本", "%C6%FC%CB%DC");
    check_query("gbk", "中文", "%D6%D0%CE%C4");
    check_query("big5", "中文", "%A4%A4%A4%E5");
    check_query("euc-kr", "한", "%C7%D1");
    check_query("iso-2022-jp", "日", "%1B$BF|%1B(B");
    check_query("utf-8", "Привет", "%D0%9F%D1%80%D0%B8%D0%B2%D0%B5%D1%82");
}

#[test]
fn what_the_charset_lacks_becomes_a_reference() {
    check_query("windows-1251", "a&#x2713;b", "a%26%2310003%3Bb");
    check_query("windows-1252", "&#x1F4A9;", "%26%23128169%3B");
    check_query("iso-2022-jp", "日&#x2713;日", "%1B$BF|%1B(B%26%2310003%3B%1B$BF|%1B(B");
}

#[test]
fn only_queries_are_in_the_charset_of_the_page() {
    let page = links_in("windows-1251", "<a href='http://пример.рф/путь?q=я#я'>x</a>");
    assert_eq!(urls(&page), ["http://xn--e1afmkfd.xn--p1ai/%D0%BF%D1%83%D1%82%D1%8C?q=%FF"]);
    // What is written in bytes stays as it is.
    check_query("windows-1251", "%D1%8F", "%D1%8F");
}

#[test]
fn links_of_utf_16_pages_are_utf_8() {
    let bytes: Vec<u8> =
        "\u{feff}<a href='?q=é'>x</a>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let page = parse(&raw_page("text/html", &bytes), &ParseLimits::default());
    assert_eq!(
        (page.charset.as_str(), urls(&page)),
        ("UTF-16LE", vec!["http://a.org/dir/page?q=%C3%A9"])
    );
}

#[test]
fn all_kinds_of_links_are_in_the_charset_of_the_page() {
    let html = "<base href='/b/?q=я'><link rel=canonical href='?q=к'>\
        <meta http-equiv=refresh content='0;url=?q=р'><iframe src='?q=ф'></iframe>\
        <form action='?q=о'></form><img src='?q=и'><area href='///a.org/?q=а'>";
    let encoding = encoding_rs::WINDOWS_1251;
    let page = raw_page("text/html; charset=windows-1251", &encoding.encode(html).0);
    let parsed = parse(&page, &ParseLimits::default());
    assert_eq!(parsed.canonical.as_ref().map(PageUrl::as_str), Some("http://a.org/b/?q=%EA"));
    assert_eq!(parsed.refresh.as_ref().map(PageUrl::as_str), Some("http://a.org/b/?q=%F0"));
    let mut found = urls(&parsed);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "http://a.org/?q=%E0",
            "http://a.org/b/?q=%EA",
            "http://a.org/b/?q=%F0",
            "http://a.org/b/?q=%F4",
        ]
    );
    let content = read_page(&page, &ContentLimits::default());
    assert_eq!(
        content.forms[0].action.as_ref().map(PageUrl::as_str),
        Some("http://a.org/b/?q=%EE")
    );
    assert_eq!(content.images[0].url.as_str(), "http://a.org/b/?q=%E8");
}

#[test]
fn each_url_once() {
    check("<a href=/x>1</a><a href=/x>2</a><a href=../x>3</a>", &["http://a.org/x"]);
    check("<a href=/x#a>1</a><a href=/x#b>2</a>", &["http://a.org/x"]);
    check("<a href='#top'>1</a><a href=''>2</a>", &[]);
}

#[test]
fn the_longest_anchor_is_kept() {
    let html = "<a href=/x>one</a><a href=/x#y>longer one</a><a href=../x>two</a>";
    assert_eq!(parse_html(html).links[0].anchor, "longer one");
}

#[test]
fn nofollow_must_be_on_all() {
    let nofollow = |html| parse_html(html).links[0].nofollow;
    assert!(nofollow("<a href=/x rel='noopener NoFollow'>"));
    assert!(!nofollow("<a href=/x rel=noopener>"));
    assert!(!nofollow("<a href=/x rel=nofollow></a><a href=../x>"));
    assert!(!nofollow("<a href=/x rel=nofollow></a><a href=/x>"));
    assert!(nofollow("<a href=/x rel=nofollow></a><a href=../x rel=nofollow>"));
}

#[track_caller]
fn check_anchor(html: &str, expect: &str) {
    assert_eq!(parse_html(html).links[0].anchor, expect, "{html}");
}

#[test]
fn anchors() {
    check_anchor("<a href=x> a <b>b</b>\n c</a>d", "a b c");
    check_anchor("<a href=x><div>a</div><div>b<br>c</div></a>", "a b c");
    check_anchor("<a href=x><img alt=y></a>", "");
    check_anchor("<a href=x>a<script>b</script></a>", "a");
    check_anchor("<table><tr><td><a href=x>a</a><td>b</table>", "a");
    check_anchor("<p><a href=x>a<p>never closed", "never closed");
    check_anchor("<a href=x>a<a href=y>b</a>", "a");
    check_anchor("<a href=x><div>misnested</a></div>", "misnested");
}

#[test]
fn anchors_are_cut() {
    let anchor = |length: usize| {
        let html = format!("<a href=x>{}é</a>", "a".repeat(length));
        parse_html(&html).links[0].anchor.len()
    };
    assert_eq!((anchor(254), anchor(255), anchor(1000)), (256, 255, 256));
}

#[test]
fn base_m14() {
    check("<base href=//b.org/c/><a href=x>", &["http://b.org/c/x"]);
    check("<base href=/c/><base href=/d/><a href=x>", &["http://a.org/c/x"]);
    check("<base href='javascript:x'><base href=/d/><a href=x>", &["http://a.org/d/x"]);
    check("<base target=y><base href=/d/><a href=x>", &["http://a.org/d/x"]);
    check("<link rel=next href=x><base href=/d/>", &["http://a.org/d/x"]);
    check("<base href=/d/><a href='#top'>", &["http://a.org/d/"]);
    check("<base href=http://127.0.0.1/><a href=x>", &["http://127.0.0.1/x"]);
    let page = parse_html("<base href=/d/><link rel=canonical href=c>");
    assert_eq!(page.canonical.unwrap().as_str(), "http://a.org/d/c");
}

#[test]
fn other_schemes_and_bad_urls_are_counted() {
    let page = parse_html(
        "<a href=mailto:a@b.org></a><a href='javascript:void(0)'></a><a href='tel:1'></a>\
         <a href='http://[::1'></a><a href='http://'></a><a href='tel:1'></a><a href=/x></a>",
    );
    assert_eq!((page.links_other_scheme, page.links_bad, page.links.len()), (3, 2, 1));
}

#[test]
fn links_beyond_the_limit_are_counted_m5() {
    let limits = ParseLimits { links_max: 2, ..ParseLimits::default() };
    let html =
        b"<a href=1></a><a href=2></a><a href=./2></a><a href=3></a><a href=4></a><a href=1>";
    let page = parse(&raw_page("text/html", html), &limits);
    assert_eq!(urls(&page), ["http://a.org/dir/1", "http://a.org/dir/2"]);
    // `./2` may be a repeat, but that is not worth resolving any more.
    assert_eq!((page.links_dropped, page.warnings), (3, vec![Warning::TooManyLinks]));
}

#[test]
fn the_first_kind_counts() {
    let page = parse_html("<link rel=canonical href=/x><a href=/x>a</a>");
    assert_eq!((page.links.len(), page.links[0].kind), (1, LinkKind::Relation));
    assert_eq!(page.links[0].anchor, "a");
}

#[test]
fn refresh() {
    let page =
        parse_html("<meta http-equiv=refresh content=5><meta http-equiv=refresh content='0;x'>");
    assert_eq!(page.refresh.unwrap().as_str(), "http://a.org/dir/x");
    assert_eq!(page.links[0].kind, LinkKind::Refresh);
    let page = parse_html("<meta http-equiv=refresh content='0;url=javascript:x'>");
    assert_eq!((page.refresh, page.links_other_scheme), (None, 1));
}
