//! The tree is the one that html5ever makes alone: our tokenizer and our guard change nothing on
//! pages that are crooked but not hostile.

use html5ever::tendril::TendrilSink;
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{ParseOpts, local_name, parse_document};

use crate::charset::QueryCharset;
use crate::charset::decode_html;
use crate::extract::extract;
use crate::tests::raw_page;
use crate::tokens::{Detail, Syntax, build_tree};
use crate::tree::{Arena, ElementRef, NodeRef, Step, Tree};
use crate::{ContentLimits, ParseLimits, parse, read_page};

/// The tree as text: elements with their links, texts as they are.
fn outline(tree: &Tree) -> String {
    let mut out = String::new();
    for step in tree.walk() {
        match step {
            Step::Enter(node) => match tree.node(node) {
                NodeRef::Root => {}
                NodeRef::Text(text) => out.push_str(&format!("{text:?}")),
                NodeRef::Element(element) => {
                    out.push_str(&format!("({} {}", element.name.local, link(element)));
                }
            },
            Step::Leave(node) => {
                if matches!(tree.node(node), NodeRef::Element(_)) {
                    out.push(')');
                }
            }
        }
    }
    out
}

/// Where an element leads. Of elements that lead nowhere, a crawl's tree does not keep the address.
fn link<'t>(element: ElementRef<'t>) -> &'t str {
    let leads = matches!(
        element.name.local,
        local_name!("a") | local_name!("area") | local_name!("base") | local_name!("link")
    );
    element.attribute(&local_name!("href")).filter(|_| leads).unwrap_or_default()
}

fn plain_tree(html: &str) -> Tree {
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let options = ParseOpts { tree_builder, ..ParseOpts::default() };
    parse_document(Arena::new(html), options).one(html)
}

#[track_caller]
fn check(html: &str) {
    let expect = outline(&plain_tree(html));
    for detail in [Detail::Crawl, Detail::Everything] {
        let document = build_tree(html, Syntax::Html, detail, &ParseLimits::default());
        assert_eq!(outline(&document.tree), expect, "{html}");
        assert!(!document.too_deep && !document.too_many_attributes, "{html}");
    }
}

#[test]
fn wrong_nesting() {
    check("<b><p>a</b>b</p>c");
    check("<a href=1>x<a href=2>y</a>z");
    check("<a href=1><div><a href=2>x</a></div></a>");
    check("<p><b><i><p>a</i></b>b");
    check("<b class=a><b class=a><b class=a><b class=a>x<p>y");
    check("<font color=red><p>a</font><font size=2>b");
    check("<code class=language-rust><p>a</code><p>b");
    check("<nobr>a<nobr>b<p>c</nobr>d");
    check("</p></br>a</div><br></p>");
    check("<ul><li>a<li>b<ul><li>c</ul>d</ul><li>e");
    check("<dl><dt>a<dd>b<dt>c</dl>");
    check("<h1>a<h2>b</h1>c");
    check("<button>a<button>b<p>c</button>");
    check("<form><form><input></form></form>a");
    check("<option>a<optgroup><option>b<select><option>c<div>d</select>e");
}

#[test]
fn tables() {
    check("<table><tr><td>a<td>b<tr><td>c</table>");
    check("<table>a<tr>b<td>c</td>d</tr>e</table>f");
    check("<table><a href=1>x</a><tr><td><a href=2>y</table>");
    check("<table><b>a<tr><td>b</table>c</b>");
    check("<table><table><td><table><td>x</table></table>");
    check("<td>a</td><tr><th>b");
    check("<table><caption>a<table><caption>b</table>c</table>");
    check("<table><colgroup><col><td>a</colgroup><input type=hidden><form><td>");
    check("<table><style>a</style><script>b</script><td>c");
}

#[test]
fn heads_and_bodies() {
    check("a<head><title>t</title><body class=x>b<html lang=en><body id=y>c");
    check("<title>a&amp;b<i></title><meta><link href=1><p><title>c</title>");
    check("<body><head><base href=/x></head><a href=y>");
    check("<html><body></html>a</body>b<!-- c -->");
    check("<frameset><frame><noframes>a</noframes></frameset>b");
    check("<noscript><a href=1>x</a></noscript><head><noscript><link href=2></noscript>");
    check("<template><p>a</template>b<template>c");
}

#[test]
fn raw_text() {
    check("<script>a<b></script>c<script><!--<script></script>--></script>d");
    check("<style></styl></style>a<xmp><b></xmp><iframe><p></iframe>");
    check("<textarea>\n\na</textarea><pre>\n\nb</pre><listing>\nc");
    check("<plaintext>a</plaintext>b");
    check("<script>never closed <p>");
}

#[test]
fn other_languages() {
    check("<svg><a href=1><path/>x</a><title>t</title><foreignObject><p>y</svg>z");
    check("<math><mi>a<p>b</math>c");
    check("<svg><p>a<svg><desc><div>b</svg>");
    check("<svg><![CDATA[<a>]]></svg><![CDATA[b]]>");
    check("<math><annotation-xml encoding=text/html><div>a</div></math>");
    check("<svg><font color=red>a</svg><svg><font>b</svg>");
}

#[test]
fn odd_characters() {
    check("a&amp;b&lt;c&copy;d&notit;e&#65;&#x42;&#0;&#128;&bogus;");
    check("<a href='?a=1&copy=2&amp;b'>x</a>");
    check("<p>a\0b</p><svg>\0</svg>");
    check("<a href=1 href=2 HREF=3 / x>y</a><A\tHREF\n=\n\"z\">");
    check("<!doctype html><!-- a --!> b <!> c </ d> <? e>");
}

/// Real pages, as files in a directory: the whole tree, and with it every link, title and text, is
/// the one that html5ever makes alone.
///
///     TELUSUR_PAGES=DIRECTORY cargo test -p telusur-parse real_pages -- --ignored --nocapture
#[test]
#[ignore = "needs a directory of pages"]
fn real_pages() {
    let directory = std::env::var("TELUSUR_PAGES").expect("TELUSUR_PAGES names a directory");
    let limits = ContentLimits::default();
    let (mut pages, mut links, mut text_bytes) = (0, 0, 0);
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let page = raw_page("text/html", &std::fs::read(&path).unwrap());
        let html = decode_html(&page).text;
        let plain = plain_tree(&html);
        let expect = outline(&plain);
        for detail in [Detail::Crawl, Detail::Everything] {
            let document = build_tree(&html, Syntax::Html, detail, &limits.parse);
            assert!(outline(&document.tree) == expect, "{} {detail:?}", path.display());
        }
        let expect = extract(&plain, &page.url, QueryCharset::UTF_8, &limits.parse).page;
        let parsed = parse(&page, &limits.parse);
        let content = read_page(&page, &limits);
        assert_eq!(parsed.title, expect.title, "{}", path.display());
        assert_eq!(parsed.links, expect.links, "{}", path.display());
        assert_eq!(parsed.visible_text, expect.visible_text, "{}", path.display());
        assert_eq!(content.title, expect.title, "{}", path.display());
        assert_eq!(content.links, expect.links, "{}", path.display());
        assert_eq!(content.visible_text, expect.visible_text, "{}", path.display());
        pages += 1;
        links += parsed.links.len();
        text_bytes += parsed.visible_text.len();
    }
    assert!(pages > 0, "there are no pages");
    println!("{pages} pages, {links} links and {text_bytes} bytes of text are the same");
}
