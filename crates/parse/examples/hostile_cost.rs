//! How long pages take that were made to hurt: milliseconds for 1 MiB each, the slowest last.
//!
//! `cargo run --release -p telusur-parse --example hostile_cost`. The goal is less than a second
//! for every one of them.

use std::time::{Duration, Instant};

use bytes::Bytes;
use telusur_model::{PageUrl, ParsedPage, RawPage};
use telusur_parse::{ParseLimits, parse};

const PAGE_BYTES: usize = 1 << 20;

fn main() {
    let mut costs: Vec<_> = hostile_pages().into_iter().map(measure).collect();
    costs.sort_by_key(|cost| cost.took);
    for Cost { name, took, parsed } in costs {
        println!(
            "{:8.1} ms  {name:40}  {} links, {} bytes of text, {:?}",
            took.as_secs_f64() * 1e3,
            parsed.links.len(),
            parsed.visible_text.len(),
            parsed.warnings
        );
    }
}

struct Cost {
    name: String,
    took: Duration,
    parsed: ParsedPage,
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
    let parsed = parse(&raw, &ParseLimits::default());
    Cost { name: page.name, took: started.elapsed(), parsed }
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
    ] {
        pages.push(HostilePage { name: name.to_owned(), html });
    }
    pages
}
