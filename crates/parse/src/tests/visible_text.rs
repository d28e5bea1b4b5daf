//! Which text is visible, and how it looks.

use telusur_model::Warning;

use super::{parse_html, raw_page};
use crate::{ParseLimits, parse};

#[track_caller]
fn check(html: &str, expect: &str) {
    assert_eq!(parse_html(html).visible_text, expect, "{html}");
}

#[test]
fn white_space() {
    check("<p>a  b\n\tc</p>", "a b c");
    check("<b>a</b> <i>b</i><i>c</i>", "a bc");
    check("a&nbsp;b", "a\u{a0}b");
    check("<p> </p>\n<p>\n</p>", "");
}

#[test]
fn blocks_break_lines() {
    check("<h1>a</h1><p>b<p>c", "a\nb\nc");
    check("<ul><li>a<li>b</ul>c", "a\nb\nc");
    check("a<div>b</div>c", "a\nb\nc");
    check("<div><div><div>a</div></div></div><div>b</div>", "a\nb");
    check("a<hr>b", "a\nb");
    check("a<span>b</span>c", "abc");
    check("<select><option>a<option>b</select>", "a\nb");
}

#[test]
fn line_breaks() {
    check("a<br>b<br/>c", "a\nb\nc");
    check("a<br><br><br>b", "a\n\nb");
    check("<p>a<br></p><p>b", "a\nb");
}

#[test]
fn tables() {
    check("<table><tr><td>a<td>b<tr><td>c<td>d</table>", "a\tb\nc\td");
    check("<table>lost<tr><td>a</table>", "lost\na");
    check("<table><caption>t</caption><tr><th>a</table>", "t\na");
}

#[test]
fn preformatted() {
    check("<p>a</p><pre>\n  b\n    c\n</pre><p>d", "a\n  b\n    c\nd");
    check("<pre>a <b> b</b></pre>", "a  b");
    check("<textarea>\n a\n b</textarea>", " a\n b");
}

#[test]
fn what_is_never_visible() {
    check("<title>t</title><style>s</style><p>a<script>b</script><style>c</style>", "a");
    check("a<template>b<p>c</template>d", "ad");
    check("a<noscript>switch it on</noscript>b", "ab");
    check("a<iframe>b</iframe><noembed>c</noembed><noframes>d</noframes>e", "ae");
    check("a<!-- b -->c", "ac");
    check("<svg><style>a</style><title>b</title><text>c</text></svg>", "c");
}

#[test]
fn hidden_text_is_text() {
    check("<p hidden>a</p><p aria-hidden=true>b</p><p style='display:none'>c", "a\nb\nc");
}

#[test]
fn articles_come_first() {
    check("<p>x</p><article>a</article><p>y</p>", "a");
    check("<article>a</article>x<article><p>b</p></article>", "a\nb");
    check("<article>a<article>b</article>c</article>x", "a\nb\nc");
    check("<article> </article><p>x", "x");
    check("x<article>never closed", "never closed");
    check("<article><pre>  a</pre></article>", "  a");
}

#[test]
fn text_is_found_outside_the_body_too() {
    check("a</body></html>b", "ab");
    check("<head><p>a</head><p>b", "a\nb");
}

#[test]
fn nul_never_survives_e11() {
    check("a\0b<pre>\0c</pre><title>\0</title>&#0;", "ab\nc\n\u{fffd}");
}

#[test]
fn text_beyond_the_limit_is_told() {
    let limits = ParseLimits { text_bytes_max: 5, ..ParseLimits::default() };
    let page = parse(&raw_page("text/html", b"<p>abc<p>def<p>g"), &limits);
    assert_eq!((page.visible_text.as_str(), page.warnings), ("abc\nd", vec![Warning::TooMuchText]));
    let page = parse(&raw_page("text/plain", b"abcdef"), &limits);
    assert_eq!((page.visible_text.as_str(), page.warnings), ("abcde", vec![Warning::TooMuchText]));
}
