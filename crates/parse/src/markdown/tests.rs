//! Small pages in, Markdown out. The pages are all main content: the writer is meant here, not the
//! choice.

use crate::content::Base;
use crate::main_content::MainContent;
use crate::markdown::write_markdown;
use crate::tests::raw_page;
use crate::tokens::{Detail, Syntax, build_tree};
use crate::{ContentLimits, ParseLimits};

fn markdown(html: &str, bytes_max: usize) -> String {
    let page = raw_page("text/html", html.as_bytes());
    let tree = build_tree(html, Syntax::Html, Detail::Everything, &ParseLimits::default()).tree;
    let main = MainContent::all_of(&tree, ContentLimits::default().parse.text_bytes_max);
    let charset = crate::charset::QueryCharset::UTF_8;
    let base = Base { page: &page.url, base: &page.url, charset };
    write_markdown(&tree, &main, base, true, bytes_max).text
}

#[track_caller]
fn check(html: &str, expect: &str) {
    assert_eq!(markdown(html, 10_000), expect, "{html}");
}

#[test]
fn paragraphs_and_headings() {
    check("<h1>A  b</h1><p>c\n d</p><p>e<h3>f</h3>", "# A b\n\nc d\n\ne\n\n### f");
    check("a<br>b<br><br>c", "a  \nb\n\nc");
    check("<div><div>a</div></div><div> </div>b", "a\n\nb");
}

#[test]
fn emphasis_and_inline_code() {
    check("a <b>b </b>c <em>d</em>e", "a **b** c *d*e");
    check("<b></b>a<i> </i>b", "a b");
    check("<b>a<b>b</b></b>", "**ab**");
    check("<p><strong>a<p>b</strong>c", "**a**\n\n**b**c");
    check("use <code>a_*b</code> now", "use `a_*b` now");
}

#[test]
fn links() {
    check("<a href=x>a b</a>", "[a b](http://a.org/dir/x)");
    check("<a href='https://b.org/x(1)'>a</a>", "[a](https://b.org/x%281%29)");
    check("<a href=#top>a</a><a href=javascript:x()> b</a>", "a b");
    check(
        "<a href=x><h2>a</h2><p>b</p></a>",
        "## [a](http://a.org/dir/x)\n\n[b](http://a.org/dir/x)",
    );
    check("<a href=x></a>b", "b");
}

#[test]
fn lists() {
    check("<ul><li>a<li>b</ul>c", "- a\n- b\n\nc");
    check("<ol start=3><li>a<li>b</ol>", "3. a\n4. b");
    check("<ul><li>a<ul><li>b<li>c</ul><li>d</ul>", "- a\n  - b\n  - c\n- d");
    check("<ul><li><p>a</p><p>b</p><li>c</ul>", "- a\n\n  b\n\n- c");
    check("<ul><li></li><li>a</ul>", "- a");
}

#[test]
fn quotes() {
    check("<blockquote>a<p>b</blockquote>c", "> a\n>\n> b\n\nc");
    check("<blockquote><ul><li>a</ul></blockquote>", "> - a");
}

#[test]
fn code_blocks() {
    check(
        "<p>a<pre><code class='hljs language-rust'>fn f() {\n    1\n}\n</code></pre>b",
        "a\n\n```rust\nfn f() {\n    1\n}\n```\n\nb",
    );
    check("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````");
    check("<ul><li><pre>a\nb</pre></ul>", "- ```\n  a\n  b\n  ```");
    check("<pre> \n </pre>a", "a");
}

#[test]
fn tables() {
    check(
        "<table><tr><th>a<th>b<tr><td>c|d<td><p>e<p>f</table>",
        "| a | b |\n| --- | --- |\n| c\\|d | e f |",
    );
    check("<table><tr><td>a<td>b</table>", "|  |  |\n| --- | --- |\n| a | b |");
    check(
        "<table><caption>t</caption><tr><th colspan=2>a<tr><td>b<td>c</table>d",
        "t\n\n| a |  |\n| --- | --- |\n| b | c |\n\nd",
    );
    check("<table><tr><td>a<tr><td>b</table>", "a\nb");
    check("<table><tr><td><h2>a</h2>b<td><ul><li>c</ul></table>", "## a\n\nb\n\n- c");
}

#[test]
fn images() {
    check("a<img src=i.png alt='x  [y]'>b", "a![x \\[y\\]](http://a.org/dir/i.png)b");
    check("a<p><img data-src=i.png src='data:x'><p>b", "a\n\n![](http://a.org/dir/i.png)\n\nb");
    check("a<p><img src=i.png width=1 height=1><p>b", "a\n\nb");
    check("<img src=logo.png><p>a", "a");
}

#[test]
fn what_markdown_would_misread() {
    check("* a _b_ c_d [e] `f` \\", "\\* a \\_b\\_ c_d \\[e\\] \\`f\\` \\\\");
    check("<p># a<p>1. b<p>- c<p>&gt; d<p>2.5 e", "\\# a\n\n\\1. b\n\n\\- c\n\n\\> d\n\n2.5 e");
    check("<p>a &lt;b&gt; c", "a \\<b> c");
}

#[test]
fn the_limit_holds() {
    let long = "<p>word</p>".repeat(1_000);
    assert!(markdown(&long, 100).len() <= 100);
    let table = format!("<table>{}</table>", "<tr><td>word<td>word".repeat(1_000));
    assert!(markdown(&table, 100).len() <= 100);
}
