//! Every kind of content, from small pages that were written for it.

use telusur_model::{PageContent, Warning};

use crate::tests::raw_page;
use crate::{ContentLimits, read_page};

fn read(html: &str) -> PageContent {
    let page = raw_page("text/html; charset=utf-8", html.as_bytes());
    read_page(&page, &ContentLimits::default())
}

/// One line for each thing of a kind, so that a page and what is in it stand side by side.
#[track_caller]
fn check<T>(
    html: &str,
    kind: impl Fn(PageContent) -> Vec<T>,
    line: impl Fn(&T) -> String,
    expect: &[&str],
) {
    let lines: Vec<String> = kind(read(html)).iter().map(line).collect();
    assert_eq!(lines, expect, "{html}");
}

#[test]
fn facts_about_the_page() {
    let content = read(
        "<html lang=en-GB><title>Rivers</title>\
         <meta name=telusur content='noindex, nofollow'>\
         <meta name=robots content=all>\
         <meta property=og:description content='What  they cost'>\
         <meta property=og:type content=article>\
         <meta property=article:published_time content=2024-05-01T10:00:00Z>\
         <meta name=date content=2023-01-01>\
         <meta name=author content='Ida B.'>\
         <link rel=alternate hreflang=id href=/id/>\
         <link rel=alternate type=application/rss+xml title=News href=/feed>\
         <article>The river is long and wide, and it flows from here to the sea.</article>",
    );
    assert_eq!(content.title.as_deref(), Some("Rivers"));
    assert_eq!(content.description.as_deref(), Some("What they cost"));
    assert_eq!(content.robots.as_deref(), Some("all"));
    assert_eq!(content.robots_own.as_deref(), Some("noindex, nofollow"));
    assert_eq!(content.published.as_deref(), Some("2024-05-01T10:00:00Z"));
    assert_eq!(content.author.as_deref(), Some("Ida B."));
    assert_eq!(content.language_declared.as_deref(), Some("en-GB"));
    assert_eq!(content.language_detected.as_deref(), Some("en"));
    assert_eq!(content.language.as_deref(), Some("en"));
    assert!(content.html5);
    assert_eq!(content.alternates[0].language, "id");
    assert_eq!(content.alternates[0].url.as_str(), "http://a.org/id/");
    assert_eq!(content.feeds[0].url.as_str(), "http://a.org/feed");
    assert_eq!(content.feeds[0].title, "News");
    let names: Vec<_> = content.open_graph.iter().map(|property| &*property.name).collect();
    assert_eq!(names, ["og:description", "og:type", "article:published_time"]);
}

#[test]
fn dates_and_authors_in_the_text() {
    let content =
        read("<p>By <a rel=author href=/ida>Ida</a>, <time datetime=2024-05-02>May</time>");
    assert_eq!(content.author.as_deref(), Some("Ida"));
    assert_eq!(content.published.as_deref(), Some("2024-05-02"));
    let content = read("<time datetime=2020>x</time><time itemprop=datePublished datetime=2021>y");
    assert_eq!(content.published.as_deref(), Some("2021"));
}

#[test]
fn json_ld() {
    let content = read(
        "<script type='application/ld+json'> {\"@type\": \"Article\", \"datePublished\": \"2024\",\
         \"dateModified\": \"2025\", \"author\": {\"name\": \"Ida\"}} </script>\
         <script type=application/ld+json>{broken</script>\
         <meta property=article:published_time content=2001>",
    );
    assert_eq!(content.published.as_deref(), Some("2024"));
    assert_eq!(content.modified.as_deref(), Some("2025"));
    assert_eq!(content.author.as_deref(), Some("Ida"));
    assert_eq!(content.json_ld.iter().map(|piece| piece.valid).collect::<Vec<_>>(), [true, false]);
    assert_eq!(content.json_ld[1].text, "{broken");
    assert!(content.scripts.is_empty());
}

#[test]
fn an_article_that_only_a_script_would_show() {
    let body = "The bridge was closed for a year. ".repeat(9);
    let page = format!(
        "<p>Loading<script type=application/ld+json>{{\"articleBody\":\"{body}\"}}</script>"
    );
    assert_eq!(read(&page).text, body.trim());
    assert_eq!(read(&page).visible_text, "Loading");
}

#[test]
fn headings() {
    check(
        "<h1>a <b>b</b></h1><h2> </h2><h3>c<br>d</h3><div><h6>e</h6></div>",
        |content| content.headings,
        |heading| format!("{} {}", heading.level, heading.text),
        &["1 a b", "3 c d", "6 e"],
    );
}

#[test]
fn links_with_their_rel() {
    check(
        "<base href=/b/><a href=x rel='nofollow  ugc'>a</a><a href=//c.org/>b</a>",
        |content| content.links,
        |link| format!("{} {:?} {} {}", link.url, link.rel, link.nofollow, link.anchor),
        &["http://a.org/b/x \"nofollow  ugc\" true a", "http://c.org/ \"\" false b"],
    );
}

#[test]
fn images() {
    check(
        "<img src=a.png alt=' A  b ' width=320 height=100%>\
         <img src=a.png>\
         <img src='data:image/gif;base64,R0' data-src=late.png>\
         <img srcset='s.png 1x, l.png 2x' src=t.png>\
         <picture><source srcset='w.webp 100w, x.webp 900w'><img src=y.png></picture><img src=z.png>\
         <img alt=nothing><img src=''>",
        |content| content.images,
        |image| format!("{} {:?} {:?} {:?}", image.url, image.alt, image.width, image.height),
        &[
            "http://a.org/dir/a.png \"A b\" Some(320) None",
            "http://a.org/dir/late.png \"\" None None",
            "http://a.org/dir/l.png \"\" None None",
            "http://a.org/dir/x.webp \"\" None None",
            "http://a.org/dir/z.png \"\" None None",
        ],
    );
}

/// A table as lines, with `#` before headers and `=` before what a span repeats.
#[track_caller]
fn check_tables(html: &str, expect: &[&str]) {
    let tables = read(html).tables;
    let mut lines = Vec::new();
    for table in &tables {
        lines.extend(table.caption.iter().map(|caption| format!("[{caption}]")));
        for row in &table.rows {
            let cells = row.iter().map(|cell| {
                let header = if cell.header { "#" } else { "" };
                let spanned = if cell.spanned { "=" } else { "" };
                format!("{header}{spanned}{}", cell.text)
            });
            lines.push(cells.collect::<Vec<_>>().join(" "));
        }
    }
    assert_eq!(lines, expect, "{html}");
}

#[test]
fn tables() {
    check_tables("<table><tr><th>a<th>b<tr><td>c<td>d</table>", &["#a #b", "c d"]);
    check_tables("<table><caption> t </caption><tr><td>a</table>", &["[t]", "a"]);
    check_tables("<table><tr><td colspan=2>a<td>b<tr><td>c</table>", &["a =a b", "c"]);
    check_tables(
        "<table><tr><td rowspan=2>a<td>b<tr><td>c<tr><td>d</table>",
        &["a b", "=a c", "d"],
    );
    check_tables("<table><tr><td>a<td rowspan=9>b<tr><td>c</table>", &["a b", "c =b"]);
    check_tables("<table><tr><td rowspan=3>a</tbody><tbody><tr><td>b</table>", &["a", "b"]);
    check_tables("<table><tr><td>a<table><tr><td>b</table>c<td>d</table>", &["b", "a c d"]);
    check_tables("<table></table><table><tr></table>", &[]);
    check_tables("<table><tr><td colspan=x rowspan=-1>a</table>", &["a"]);
}

#[test]
fn the_markup_of_a_table() {
    let content = read(
        "<table class=t onclick=x()><tr><td colspan=2><a href='/x?a&amp;b' class=y>1 &lt; 2</a>\
         <script>x</script><br></table>",
    );
    assert_eq!(
        content.tables[0].html,
        "<table><tbody><tr><td colspan=\"2\"><a href=\"/x?a&amp;b\">1 &lt; 2</a><br></td></tr>\
         </tbody></table>"
    );
}

#[test]
fn lists() {
    let line = |list: &telusur_model::List| {
        let items = list.items.iter().map(|item| format!("{}:{}", item.level, item.text));
        format!("{} {}", list.ordered, items.collect::<Vec<_>>().join(" "))
    };
    check(
        "<ul><li>a<li>b<ol><li>c</ol><li> </ul><ol><li>d <b>e</b></ol><ul></ul>",
        |content| content.lists,
        line,
        &["false 0:a 0:b 1:c", "true 0:d e"],
    );
}

#[test]
fn forms() {
    let line = |form: &telusur_model::Form| {
        let fields = form.fields.iter().map(|field| {
            let required = if field.required { "!" } else { "" };
            format!("{}:{}{required}={}", field.name, field.kind, field.value)
        });
        let action = form.action.as_ref().map_or("nowhere", |url| url.as_str());
        format!("{} {action} {}", form.method, fields.collect::<Vec<_>>().join(" "))
    };
    check(
        "<form action=/s METHOD=Post><input name=q value=x required><input type=PASSWORD name=p \
         value=secret><select name=s></select><textarea name=t>a b</textarea>\
         <button>Go</button></form><input name=outside><form method=nonsense></form>\
         <form action='javascript:x()'></form>",
        |content| content.forms,
        line,
        &[
            "post http://a.org/s q:text!=x p:password= s:select= t:textarea=a b :submit=Go",
            "get http://a.org/dir/page ",
            "get nowhere ",
        ],
    );
}

#[test]
fn scripts_and_styles() {
    let content = read(
        "<script src=a.js type=module></script><script>let b;</script>\
         <link rel=stylesheet href=c.css media=print><style media=screen>d{}</style>",
    );
    let scripts = content.scripts.iter().map(|script| {
        let url = script.url.as_ref().map_or("", |url| url.as_str());
        format!("{url} {} {} {}", script.kind, script.text, script.bytes)
    });
    assert_eq!(scripts.collect::<Vec<_>>(), ["http://a.org/dir/a.js module  0", "  let b; 6"]);
    let styles = content.styles.iter().map(|style| {
        let url = style.url.as_ref().map_or("", |url| url.as_str());
        format!("{url} {} {} {}", style.media, style.text, style.bytes)
    });
    assert_eq!(styles.collect::<Vec<_>>(), ["http://a.org/dir/c.css print  0", " screen d{} 3"]);
}

#[test]
fn what_lies_beyond_a_limit_is_counted() {
    let limits = ContentLimits {
        headings_max: 1,
        images_max: 1,
        tables_max: 1,
        cells_max: 3,
        lists_max: 1,
        forms_max: 1,
        scripts_max: 1,
        styles_max: 1,
        code_bytes_max: 2,
        table_html_bytes_max: 9,
        ..ContentLimits::default()
    };
    let twice = "<h1>a</h1><img src=i.png><table><tr><td colspan=9>t</table><ul><li>a</ul>\
                 <form></form><script>abc</script><style>x</style>";
    let html = format!("{twice}{}", twice.replace("i.png", "j.png"));
    let content = read_page(&raw_page("text/html", html.as_bytes()), &limits);
    let dropped = content.dropped;
    let counts = [
        dropped.headings,
        dropped.images,
        dropped.lists,
        dropped.forms,
        dropped.scripts,
        dropped.styles,
    ];
    assert_eq!(counts, [1; 6]);
    assert_eq!(content.tables.len(), 1);
    assert_eq!((content.tables[0].rows[0].len(), content.tables[0].truncated), (3, true));
    assert_eq!(content.tables[0].html, "<table><t");
    assert_eq!((content.scripts[0].text.as_str(), content.scripts[0].bytes), ("ab", 3));
}

#[test]
fn feeds() {
    let rss = "<?xml version='1.0'?><rss><channel><title>News &amp; more</title><link>/</link>\
        <language>en</language><item><title>One</title><link>/1</link><pubDate>Mon</pubDate>\
        <description><![CDATA[<p>Text of <b>one</b></p>]]></description></item>\
        <item><title>Two&nbsp;&#33;</title><guid>x</guid></item></channel></rss>";
    let content =
        read_page(&raw_page("application/rss+xml", rss.as_bytes()), &ContentLimits::default());
    assert_eq!(content.title.as_deref(), Some("News & more"));
    assert_eq!(content.language_declared.as_deref(), Some("en"));
    let entries = content.feed_entries.iter().map(|entry| {
        let url = entry.url.as_ref().map_or("", |url| url.as_str());
        format!("{} {url} {:?} {}", entry.title, entry.published, entry.text)
    });
    assert_eq!(
        entries.collect::<Vec<_>>(),
        ["One http://a.org/1 Some(\"Mon\") Text of one", "Two\u{a0}!  None "]
    );
    assert_eq!(content.links.len(), 1);
    assert_eq!(content.text, "One\nText of one\nTwo\u{a0}!\n");

    let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><title>A</title><entry><title>B</title>\
        <link rel=self href='/s'/><link href='/b?x&amp;y'/><published>2024</published>\
        <content type='html'>&lt;p&gt;c</content></entry><entry><title>cut off";
    let content = read_page(&raw_page("text/xml", atom.as_bytes()), &ContentLimits::default());
    assert_eq!(content.feed_entries[0].url.as_ref().unwrap().as_str(), "http://a.org/b?x&y");
    assert_eq!(content.feed_entries[0].text, "c");
    assert_eq!(content.feed_entries.len(), 2);
}

#[test]
fn plain_text_and_the_rest() {
    let content =
        read_page(&raw_page("text/plain", b"Some words.\r\nMore."), &ContentLimits::default());
    assert_eq!(content.text, "Some words.\nMore.");
    assert_eq!(content.visible_text, content.text);
    let content = read_page(&raw_page("application/pdf", b"%PDF-1.4"), &ContentLimits::default());
    assert_eq!((content.charset.as_str(), content.bytes), ("", 8));
    let mut page = raw_page("text/html", b"<p>a");
    page.truncated = true;
    assert_eq!(read_page(&page, &ContentLimits::default()).warnings, [Warning::Truncated]);
}
