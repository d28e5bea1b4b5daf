//! How long pages take that were made to hurt, read as a whole: milliseconds for 1 MiB each, the
//! slowest last.
//!
//! `cargo run --release -p telusur-parse --example hostile_cost`. The goal is less than a second
//! and 128 MB for every one of them. With the name of a page behind, only that one is read. With
//! `--write DIRECTORY` the pages are written to files and their names to standard output, so that
//! `/usr/bin/time -v inspect_page FILE URL` tells the memory of each.

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use telusur_model::{PageContent, PageUrl, RawPage};
use telusur_parse::{ContentLimits, ParseLimits, parse, read_page};

const PAGE_BYTES: usize = 1 << 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [option, directory] = &arguments[..]
        && option == "--write"
    {
        return write_pages(Path::new(directory));
    }
    let only = arguments.first();
    let is_wanted = |page: &HostilePage| only.is_none_or(|name| *name == page.name);
    let pages = hostile_pages().into_iter().filter(is_wanted);
    let mut costs: Vec<_> = pages.map(measure).collect();
    costs.sort_by_key(|cost| cost.whole);
    for Cost { name, crawl, whole, content } in costs {
        println!(
            "{:8.1} ms  {:8.1} ms for a crawl  {name:40}  {} links, {} bytes of text, {:?}",
            whole.as_secs_f64() * 1e3,
            crawl.as_secs_f64() * 1e3,
            content.links.len(),
            content.visible_text.len(),
            content.warnings
        );
    }
}

fn write_pages(directory: &Path) {
    for (number, page) in hostile_pages().into_iter().enumerate() {
        let path = directory.join(format!("{number}.html"));
        std::fs::write(&path, page.html).expect("the directory can be written to");
        println!("{}\t{}", path.display(), page.name);
    }
}

struct Cost {
    name: String,
    crawl: Duration,
    whole: Duration,
    content: PageContent,
}

struct HostilePage {
    name: String,
    html: String,
}

fn measure(page: HostilePage) -> Cost {
    let wire_bytes = page.html.len() as u64;
    let raw = RawPage {
        url: PageUrl::parse("http://a.org/").expect("a plain URL"),
        status: 200,
        headers: vec![("content-type".to_owned(), "text/html".to_owned())],
        body: Bytes::from(page.html),
        truncated: false,
        wire_bytes,
    };
    let started = Instant::now();
    parse(&raw, &ParseLimits::default());
    let crawl = started.elapsed();
    let started = Instant::now();
    let content = read_page(&raw, &ContentLimits::default());
    Cost { name: page.name, crawl, whole: started.elapsed(), content }
}

fn hostile_pages() -> Vec<HostilePage> {
    // What is repeated until the page is full.
    let repeated = [
        "<div>",
        "<p>",
        "<ul><li>",
        "<table>",
        "<table><tr><td>",
        "<table><a href=x>",
        "<table>x",
        "<svg>",
        "<svg><g>",
        "<math><mi>",
        "<svg><foreignObject>",
        "<template>",
        "<select><option>",
        "<form><input>",
        "<button>",
        "<b>",
        "<b><i><u><s>",
        "<b><p>",
        "<a href=x><b>",
        "<a href=x><div>",
        "<a><div></a>",
        "<b><div></b>",
        "<b><i><div></b></i>",
        "<b></i>",
        "<nobr>",
        "<object>",
        "<object></div>",
        "<div><object></div>",
        "<div><object><a></a></div>",
        "<ruby><rt>",
        "<dd>",
        "<h1>",
        "</p>",
        "</br>",
        "</b>",
        "</x>",
        "<x>",
        "<br>",
        "<a href=x>",
        "<img src=x>",
        "<!---->",
        "<!",
        "<",
        "&",
        "&lt;",
        "&lt",
        "&notin",
        "&NotEqualTilde;",
        "\0",
        "\r",
        " ",
        "x ",
        "<html a=b>",
        "<body a=b>",
        "<frameset>",
        "<title>x</title>",
        "<script></script>",
        "<script><!--<script>",
        "<meta name=robots content=x>",
        "<base href=x>",
        "<article>x",
        "<p>x",
        "<div class=comment>x",
        "<table><tr><td colspan=1000 rowspan=65534>x",
        "<tr><td rowspan=65534 colspan=1000>x",
        "<ol><li>x",
        "<blockquote>x",
        "<pre>`",
        "<code class=language-rust>x",
        "<h1>x</h1>",
        "<a href=x><p>x",
        "<select><option>x",
        "<noscript>x",
        "<img src=x srcset='a 1x, b 2x'>",
        "<form><input name=x><textarea>x</textarea></form>",
        "<script type=application/ld+json>[{}]</script>",
        "<time datetime=2024>",
        "<br>x",
        "*",
        "\u{4e00}\u{4e01}\u{3002}",
    ];
    let full = |piece: &str| piece.repeat(PAGE_BYTES / piece.len());
    let mut pages: Vec<_> = repeated
        .iter()
        .map(|piece| HostilePage { name: piece.escape_debug().to_string(), html: full(piece) })
        .collect();

    // What makes every repetition behind it expensive.
    let deep = "<div>".repeat(600);
    let formatting = "<p>".to_owned()
        + &(0..300).map(|n| format!("<font color={n}><b><i><u><s><em><tt>")).collect::<String>();
    let objects = full("<div><object></div>").split_off(PAGE_BYTES / 2);
    for (start, piece) in [
        (&deep, "<p>"),
        (&deep, "<p>x</p>"),
        (&deep, "<a href=x></a>"),
        (&deep, "<b></i>"),
        (&deep, "</p>"),
        (&deep, "</div><div>"),
        (&deep, "</x>"),
        (&deep, "<br>"),
        (&deep, "<select></select>"),
        (&formatting, "<p>x"),
        (&formatting, "<p></b>"),
        (&formatting, "<table><td>x</table>"),
        (&objects, "<b></b>"),
        (&objects, "<a></a>"),
    ] {
        let name = format!("{}…, {piece}", &start[..10]);
        pages.push(HostilePage { name, html: start.clone() + &full(piece) });
    }

    let numbered = |piece: &str| {
        let many = (0..PAGE_BYTES / (piece.len() + 4)).map(|n| piece.replace('N', &n.to_string()));
        many.collect::<String>()
    };
    for (name, html) in [
        ("different attributes", format!("<p {}>", numbered("aN='>' "))),
        ("the same attribute", format!("<p {}>", full("a=1 "))),
        ("different links", numbered("<a href=/N>")),
        ("different elements", numbered("<xN>")),
        ("different elements, closed", numbered("<xN></xN>")),
        ("one long name", format!("<{}>", full("x"))),
        ("one long value", format!("<a href='{}'>", full("x&amp;"))),
        ("unclosed comment", full("<!-- --")),
        ("different classes", numbered("<div class='a-N b'>x")),
        ("different classes, closed", numbered("<div class='a-N b'>x</div>")),
        ("different texts", numbered("<p>word N</p>")),
        (
            "rows of spanning cells",
            format!("<table>{}", full("<tr><td colspan=1000 rowspan=65534>x")),
        ),
        ("one srcset", format!("<img srcset='{}'>", full("a 1x,"))),
        (
            "one piece of brackets",
            format!("<script type=application/ld+json>{}</script>", full("[")),
        ),
        ("one long text", full("word ")),
        ("deep quotes of text", "<blockquote>".repeat(400) + &full("<p>x")),
        ("deep lists of text", "<ul><li>".repeat(200) + &full("<p>x")),
    ] {
        pages.push(HostilePage { name: name.to_owned(), html });
    }
    pages
}
