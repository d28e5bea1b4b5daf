//! Pages that were made to hurt. What counts is that every bound holds; how long it takes is
//! measured by `examples/hostile_cost.rs`.

use proptest::prelude::*;
use telusur_model::{ParsedPage, Warning};

use super::{parse_html, raw_page};
use crate::guard::Spent;
use crate::tokens::{Detail, Syntax, build_piece, build_tree};
use crate::{ContentLimits, ParseLimits, parse, read_page};

/// The page still has a link and text behind the hostile part.
#[track_caller]
fn check_survives(hostile: &str) -> ParsedPage {
    let page = parse_html(&format!("{hostile}<a href=/behind>behind</a> the end"));
    let last = page.links.last().expect("the link behind is found");
    assert_eq!(last.url.as_str(), "http://a.org/behind");
    assert!(
        page.visible_text.ends_with("the end"),
        "{}",
        &page.visible_text[page.visible_text.len().saturating_sub(99)..]
    );
    page
}

#[test]
fn tags_that_close_nothing_in_deep_nesting() {
    let html = format!("{}{}x", "<div>".repeat(500), "</p>".repeat(100_000));
    let page = check_survives(&html);
    assert!(page.warnings.contains(&Warning::TooDeep));
    let document = build_tree(&html, Syntax::Html, Detail::Crawl, &ParseLimits::default());
    // Each of the tags makes an empty paragraph, until enough is enough.
    let nodes = document.tree.node_count();
    assert!((5_000..20_000).contains(&nodes), "{nodes}");
}

/// A feed whose entries nest deeply and close what was never opened.
fn hostile_feed(entries: usize, tags: usize) -> Vec<u8> {
    let markup = format!("{}{}word", "&lt;span&gt;".repeat(500), "&lt;/b&gt;".repeat(tags));
    let entry = format!("<item><link>/behind</link><description>{markup}</description></item>");
    format!("<rss><channel>{}</channel></rss>", entry.repeat(entries)).into_bytes()
}

/// No entry alone uses up what a page may cost, all of them together do.
#[test]
fn the_entries_of_a_feed_share_the_budget_of_one_page() {
    let check = |entries: usize, is_too_much: bool| {
        let page = raw_page("application/rss+xml", &hostile_feed(entries, 4_000));
        let parsed = parse(&page, &ParseLimits::default());
        assert_eq!(parsed.warnings.contains(&Warning::TooDeep), is_too_much, "{entries} entries");
        let words = parsed.visible_text.lines().filter(|line| *line == "word").count();
        assert_eq!((words, parsed.links.len()), (entries, entries), "nothing is lost");
    };
    check(1, false);
    check(3, true);
}

#[test]
fn repairs_of_one_entry_count_for_the_next() {
    let limits = ParseLimits { repairs_max: 100, ..ParseLimits::default() };
    let mut spent = Spent::default();
    let html = format!("<p><b><i><u>{}", "<p>y".repeat(20));
    let mut build = || build_piece(&html, Syntax::Html, Detail::Crawl, &limits, &mut spent);
    let trees = [build(), build(), build()];
    let nodes = trees.each_ref().map(|document| document.tree.node_count());
    assert_eq!(trees.map(|document| document.too_deep), [false, true, true]);
    assert!(nodes[0] > nodes[1] && nodes[1] > nodes[2], "{nodes:?}");
}

#[test]
fn nesting_m1() {
    for element in [
        "<div>",
        "<ul><li>",
        "<table><tr><td>",
        "<svg>",
        "<svg><g>",
        "<math><mi>",
        "<font>",
        "<b>",
        "<span>",
        "<blockquote>",
        "<object>",
        "<form><div>",
        "<b><p>",
        "<x-y>",
    ] {
        let page = check_survives(&element.repeat(5_000));
        assert!(page.warnings.contains(&Warning::TooDeep), "{element}");
    }
}

/// More elements than are told apart: what stands in the last ones is read as well.
#[test]
fn more_containers_than_are_counted() {
    let tail = "<div><pre>one  two</pre><section><p>The end of a long page.</section></div>";
    let html = format!("<div>{}{tail}</div><p>Really.", "<p>word</p>".repeat(70_000));
    let content = read_page(&raw_page("text/html", html.as_bytes()), &ContentLimits::default());
    assert!(content.visible_text.ends_with("word\none  two\nThe end of a long page.\nReally."));
    assert!(!content.text.is_empty());
}

#[test]
fn nested_templates_m1() {
    let page = parse_html(&format!("{}<p>a", "<template>".repeat(5_000)));
    assert_eq!((page.visible_text.as_str(), page.warnings), ("", vec![Warning::TooDeep]));
}

#[test]
fn depth_below_the_limit_is_kept() {
    let html = format!("{}a{}b", "<div>".repeat(500), "</div>".repeat(500));
    let page = parse_html(&html);
    assert_eq!((page.visible_text.as_str(), page.warnings), ("a\nb", vec![]));
}

#[test]
fn what_comes_after_deep_nesting_is_whole() {
    let deep = format!("{}x{}", "<div>".repeat(2_000), "</div>".repeat(2_000));
    let page = parse_html(&format!("<article>{deep}a</article><p>not in the article"));
    assert_eq!(page.visible_text, "x\na");
}

#[test]
fn scripts_in_the_deep_stay_scripts() {
    let deep = "<div>".repeat(2_000);
    let page = check_survives(&format!("{deep}<script>'<p>hidden'</script><style>s</style>"));
    assert!(!page.visible_text.contains("hidden"));
}

#[test]
fn a_script_ends_though_one_like_it_was_left_out() {
    // The SVG script was closed at once, and its end tag never came.
    for depth in 490..520 {
        let deep = "<div>".repeat(depth);
        check_survives(&format!("{deep}<svg><script><p><script>x</script>"));
        check_survives(&format!("{deep}<math><mi><script>x</script>"));
    }
}

#[test]
fn repairs_may_run_out_at_raw_text() {
    let limits = ParseLimits { repairs_max: 2, ..ParseLimits::default() };
    let page = parse(&raw_page("text/html", b"<p><b><i><u><p><xmp><p>a  b</xmp>c  d"), &limits);
    assert_eq!(
        (page.visible_text.as_str(), page.warnings),
        ("<p>a  b\nc d", vec![Warning::TooDeep])
    );
}

#[test]
fn attributes_m2() {
    let many: String = (0..20_000).map(|n| format!(" a{n}='>'")).collect();
    let page = check_survives(&format!("<div{many}>"));
    assert_eq!(page.warnings, [Warning::TooManyAttributes]);
    let page = check_survives(&format!("<a{} href=/late>", " x=1".repeat(20_000)));
    assert_eq!(page.links.len(), 1, "what stands behind the limit is not read");
    let page = check_survives(&format!("<a href=/1{}></a>", " href=/2".repeat(900)));
    assert_eq!((page.links.len(), page.warnings), (2, vec![]));
}

#[test]
fn adoption_agency_m3() {
    let n = 2_000;
    check_survives(&format!("{}{}{}", "<a>".repeat(n), "<i>".repeat(n), "</a>".repeat(n)));
    check_survives(&format!("{}{}", "<b><i><div>".repeat(n), "</b></i>".repeat(n)));
    check_survives(&"<b><div></b>".repeat(n));
    check_survives(&"<a href=/x><div></a>".repeat(n));
    check_survives(&"<table><a href=/x>".repeat(n));
}

#[test]
fn formatting_that_is_never_closed_m3() {
    let formatting: String = (0..200).map(|n| format!("<font color={n}><b id={n}><i>")).collect();
    let page = check_survives(&format!("<p>{formatting}{}", "<p>x".repeat(5_000)));
    assert_eq!(page.warnings, [Warning::TooDeep]);
    assert_eq!(page.visible_text.matches('x').count(), 5_000);
}

#[test]
fn markers_that_are_never_removed() {
    let page = check_survives(&"<div><object><a href=/x></a></div>".repeat(5_000));
    assert_eq!(page.warnings, [Warning::TooDeep]);
}

#[test]
fn long_tokens_m4() {
    let long = "x".repeat(1 << 20);
    check_survives(&format!("<{long}>"));
    check_survives(&format!("<p {long}={long} class='{long}'>"));
    check_survives(&format!("<!--{long}-->"));
    let page = check_survives(&format!("<title>{long}</title>"));
    assert_eq!(page.title.unwrap().len(), 1024);
    let page = check_survives(&format!("<a href='{long}'>a</a>"));
    assert_eq!((page.links.len(), page.links_bad), (1, 1));
    let page = check_survives(&format!("<meta name=description content='{long}'>"));
    assert_eq!(page.description.unwrap().len(), 4096);
}

#[test]
fn unclosed_raw_text_m4() {
    for element in ["script", "style", "title", "textarea", "xmp", "!--", "p class='"] {
        let page = parse_html(&format!("<p>before<a href=/x>a</a><{element}>b<p>c"));
        assert!(page.visible_text.starts_with("beforea"), "{element}");
        assert_eq!(page.links.len(), 1, "{element}");
    }
}

#[test]
fn many_links_m5() {
    let different: String = (0..20_000).map(|n| format!("<a href=/{n}>")).collect();
    let page = parse_html(&different);
    assert_eq!((page.links.len(), page.links_dropped), (10_000, 10_000));
    let page = check_survives(&"<a href=/same>x</a>".repeat(20_000));
    assert_eq!((page.links.len(), page.links_dropped), (2, 0));
}

#[test]
fn many_references_m6() {
    let page = parse_html(&"&lt;&#0;&#xD800;".repeat(10_000));
    assert_eq!(page.visible_text, "<\u{fffd}\u{fffd}".repeat(10_000));
}

#[test]
fn long_words_and_spaces_m7() {
    let page = check_survives(&format!("{}a{}", " ".repeat(1 << 20), "\n".repeat(1 << 20)));
    assert_eq!(page.visible_text, "a behind the end");
    let word = "x".repeat(1 << 20);
    assert_eq!(parse_html(&word).visible_text, word);
}

#[test]
fn many_metas_m12() {
    let page = check_survives(&"<meta name=robots content=noindex>".repeat(5_000));
    assert!(page.robots.unwrap().len() <= 4096);
}

/// Pieces that open, close and cross elements in every way.
fn crooked_page() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "<a href=/x>",
        "</a>",
        "<b>",
        "</b>",
        "<i>",
        "</i>",
        "<font color=x>",
        "</font>",
        "<p>",
        "</p>",
        "<div>",
        "</div>",
        "<table>",
        "</table>",
        "<tr>",
        "<td>",
        "</td>",
        "<caption>",
        "<select>",
        "<option>",
        "</select>",
        "<button>",
        "</button>",
        "<form>",
        "</form>",
        "<ul>",
        "<li>",
        "</ul>",
        "<svg>",
        "</svg>",
        "<foreignObject>",
        "<math>",
        "<mi>",
        "<annotation-xml>",
        "<object>",
        "</object>",
        "<template>",
        "</template>",
        "<article>",
        "</article>",
        "<pre>",
        "</pre>",
        "<title>",
        "</title>",
        "<head>",
        "</head>",
        "<body>",
        "</body>",
        "<html lang=x>",
        "</html>",
        "<frameset>",
        "<frame src=y>",
        "<noscript>",
        "</noscript>",
        "<br>",
        "</br>",
        "<nobr>",
        "<plaintext>",
        "<script>",
        "</script>",
        "<!--",
        "-->",
        "x",
        " ",
        "\n",
        "\0",
        "é",
        "<base href=/b/>",
        "<link rel=next href=z>",
        "<h1>",
        "</h2>",
        "<input type=hidden>",
        "<colgroup>",
        "<col>",
        "<tbody>",
        "<isindex>",
        "<image>",
        "<ruby><rt>",
        "<![CDATA[",
        "]]>",
    ]);
    prop::collection::vec(pieces, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_bytes_give_a_page_and_always_the_same_m20(
        body in prop::collection::vec(any::<u8>(), 0..400),
        content_type in prop::sample::select(vec!["text/html", "text/plain", "text/xml", ""]),
    ) {
        let page = raw_page(content_type, &body);
        let limits = ParseLimits::default();
        prop_assert_eq!(parse(&page, &limits), parse(&page, &limits));
    }

    #[test]
    fn crooked_pages_give_a_page_and_always_the_same_m20(html in crooked_page()) {
        let page = raw_page("text/html; charset=utf-8", html.as_bytes());
        // Limits that are met all the time find what the usual ones hide.
        let tight = ParseLimits {
            depth_max: 8,
            attributes_max: 1,
            repairs_max: 3,
            links_max: 1,
            title_bytes_max: 2,
            anchor_bytes_max: 2,
            meta_bytes_max: 2,
            text_bytes_max: 9,
        };
        let parsed = parse(&page, &tight);
        prop_assert_eq!(&parsed, &parse(&page, &tight));
        prop_assert!(parsed.visible_text.len() <= 9 && parsed.links.len() <= 1);
        let usual = parse(&page, &ParseLimits::default());
        prop_assert!(!usual.visible_text.contains('\0'));
    }
}
