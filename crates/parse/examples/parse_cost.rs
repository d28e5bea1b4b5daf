//! What parsing costs, held against html5ever alone.
//!
//! `cargo run --release -p telusur-parse --example parse_cost` measures a page of 20 KB with 50
//! links, in microseconds. With a directory behind, it measures every file in it, and names the
//! slowest. Instructions are counted by valgrind, which sees only what one run does:
//!
//!     valgrind --tool=callgrind parse_cost --only crawl|search|whole|bare DIRECTORY
//!
//! The goal is that `whole` costs at most 1.5 times what `bare` does (subtract `--only nothing`). For
//! every page by itself:
//!
//!     valgrind --tool=callgrind --callgrind-out-file=counts --toggle-collect='*cost_of_*' \
//!         --dump-after=parse_cost::cost_of_bare --dump-after=parse_cost::cost_of_whole \
//!         parse_cost --each DIRECTORY
//!
//! writes the pages' names to standard output, and for each of them two files, `counts.1` and so on,
//! whose `summary:` lines are the instructions of `bare` and of `whole`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use html5ever::interface::{Attribute, ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::{ExpandedName, QualName, parse_document};
use telusur_model::{PageUrl, RawPage};
use telusur_parse::{ContentLimits, ParseLimits, parse, read_for_search, read_page};

/// Runs of the one page; the fastest counts, since nothing but noise makes a run slower.
const RUNS: usize = 2_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => measure_typical_page(),
        [directory] => measure_directory(Path::new(directory)),
        ["--each", directory] => run_each(Path::new(directory)),
        ["--only", part, directory] => run_only(part, Path::new(directory)),
        _ => eprintln!(
            "usage: parse_cost [[--each | --only crawl|search|whole|bare|nothing] DIRECTORY]"
        ),
    }
}

fn measure_typical_page() {
    let page = raw_page(typical_page().into_bytes());
    let limits = ParseLimits::default();
    let ours = fastest(|| drop(black_box(parse(&page, &limits))));
    let search_limits = ContentLimits::for_search();
    let search = fastest(|| drop(black_box(read_for_search(&page, &search_limits))));
    let whole = fastest(|| drop(black_box(read_page(&page, &ContentLimits::default()))));
    let text = String::from_utf8_lossy(&page.body);
    let bare = fastest(|| bare_parse(&text));
    let parsed = parse(&page, &limits);
    println!(
        "{} bytes, {} links, {} bytes of text",
        page.body.len(),
        parsed.links.len(),
        parsed.visible_text.len()
    );
    print_costs(Costs { ours, search, whole, bare, bytes: page.body.len() });
}

fn measure_directory(directory: &Path) {
    let limits = ParseLimits::default();
    let content_limits = ContentLimits::default();
    let search_limits = ContentLimits::for_search();
    let mut costs = Costs::default();
    let mut slowest = (Duration::ZERO, String::new());
    for (name, page) in pages(directory) {
        costs.ours += once(|| drop(black_box(parse(&page, &limits))));
        costs.search += once(|| drop(black_box(read_for_search(&page, &search_limits))));
        let took = once(|| drop(black_box(read_page(&page, &content_limits))));
        let text = String::from_utf8_lossy(&page.body);
        costs.bare += once(|| bare_parse(&text));
        costs.whole += took;
        costs.bytes += page.body.len();
        if took > slowest.0 {
            slowest = (took, name);
        }
    }
    print_costs(costs);
    println!("slowest: {:.1} ms, {}", slowest.0.as_secs_f64() * 1e3, slowest.1);
}

fn run_only(part: &str, directory: &Path) {
    for (_, page) in pages(directory) {
        let text = String::from_utf8_lossy(&page.body);
        match part {
            "crawl" => drop(black_box(parse(&page, &ParseLimits::default()))),
            "search" => drop(black_box(read_for_search(&page, &ContentLimits::for_search()))),
            "whole" => drop(black_box(read_page(&page, &ContentLimits::default()))),
            "bare" => bare_parse(&text),
            _ => {}
        }
    }
}

fn run_each(directory: &Path) {
    // What is made once and for all is no part of any page's cost.
    read_page(&raw_page(typical_page().into_bytes()), &ContentLimits::default());
    for (name, page) in pages(directory) {
        println!("{name}");
        cost_of_bare(&String::from_utf8_lossy(&page.body));
        cost_of_whole(&page);
    }
}

/// Valgrind knows by this name when to begin and when to end counting. It misses the end of a
/// function that ends in a call, hence the number.
#[inline(never)]
fn cost_of_bare(text: &str) -> u32 {
    bare_parse(text);
    black_box(0)
}

#[inline(never)]
fn cost_of_whole(page: &RawPage) -> u32 {
    drop(black_box(read_page(page, &ContentLimits::default())));
    black_box(0)
}

fn pages(directory: &Path) -> impl Iterator<Item = (String, RawPage)> {
    let entries = std::fs::read_dir(directory).expect("the directory can be read");
    entries.map(|entry| {
        let path = entry.expect("the directory can be read").path();
        let body = std::fs::read(&path).expect("the file can be read");
        (path.display().to_string(), raw_page(body))
    })
}

#[derive(Default)]
struct Costs {
    ours: Duration,
    search: Duration,
    whole: Duration,
    bare: Duration,
    bytes: usize,
}

fn print_costs(costs: Costs) {
    let micros = |took: Duration| took.as_secs_f64() * 1e6;
    let per_20_kb = 20_000.0 / costs.bytes as f64;
    let parts = [
        ("parse:", costs.ours),
        ("read_for_search:", costs.search),
        ("read_page:", costs.whole),
        ("html5ever alone:", costs.bare),
    ];
    for (name, took) in parts {
        let ratio = micros(took) / micros(costs.bare);
        let each = micros(took) * per_20_kb;
        println!("{name:17}{:10.1} µs ({each:.1} per 20 KB), ratio {ratio:.2}", micros(took));
    }
}

fn fastest(mut run: impl FnMut()) -> Duration {
    (0..RUNS).map(|_| once(&mut run)).min().unwrap_or_default()
}

fn once(mut run: impl FnMut()) -> Duration {
    let started = Instant::now();
    run();
    started.elapsed()
}

fn raw_page(body: Vec<u8>) -> RawPage {
    let wire_bytes = body.len() as u64;
    RawPage {
        url: PageUrl::parse("https://news.example.org/2024/05/page.html").expect("a plain URL"),
        status: 200,
        headers: vec![("content-type".to_owned(), "text/html; charset=utf-8".to_owned())],
        body: Bytes::from(body),
        truncated: false,
        wire_bytes,
    }
}

/// A page as a news site makes them: a head, navigation, an article, a list of more articles.
fn typical_page() -> String {
    let mut page = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>A page about rivers &amp; bridges</title>\n\
         <meta name=\"description\" content=\"Twelve bridges and what they cost.\">\n\
         <link rel=\"canonical\" href=\"https://news.example.org/2024/05/page.html\">\n\
         <link rel=\"stylesheet\" href=\"/assets/site.css?v=31\">\n<script>\n",
    );
    for n in 0..20 {
        page += &format!("  window.settings[{n}] = {{ id: 'slot-{n}', lazy: {n} < 10 }};\n");
    }
    page += "</script>\n</head>\n<body class=\"page page--article\">\n<nav class=\"menu\">\n<ul>\n";
    for n in 0..20 {
        page += &format!(
            "  <li class=\"menu__item\" data-track-id=\"nav-{n}\"><a class=\"menu__link\" \
             href=\"/section/{n}/\">Section {n}</a></li>\n"
        );
    }
    page += "</ul>\n</nav>\n<main>\n<article>\n<h1>Rivers &amp; bridges</h1>\n";
    for n in 0..22 {
        page += &format!(
            "<p>The {n}th bridge was built in <b>19{n:02}</b>, and for a long time it was the only \
             way across. People came from both sides to see it &mdash; some stayed for the day, \
             others for good. <a href=\"../bridges/{n}.html#history\">Its history</a> is longer \
             than the bridge itself, and what it cost was paid for in <em>thirty years</em>.</p>\n"
        );
    }
    page += "</article>\n<aside>\n";
    for n in 0..8 {
        page += &format!(
            "<div class=\"card card--wide\" id=\"card-{n}\" style=\"--row: {n}\">\n\
             <img src=\"https://img.example.org/{n}/320x180.webp\" alt=\"\" loading=\"lazy\" \
             width=\"320\" height=\"180\">\n<a href=\"https://news.example.org/2024/04/more-{n}\" \
             rel=\"nofollow\"><span class=\"card__title\">More about bridges, part {n}</span></a>\n\
             <time datetime=\"2024-04-0{n}T10:00:00Z\">{n} days ago</time>\n</div>\n"
        );
    }
    page += "</aside>\n</main>\n<footer><p>&copy; 2024</p></footer>\n";
    page += "<script>\n";
    while page.len() < 20_000 {
        page +=
            "  document.querySelectorAll('.card').forEach(function (card) { observe(card); });\n";
    }
    page + "</script>\n</body>\n</html>\n"
}

/// html5ever with a sink that keeps nothing but the names that the tree builder asks for.
fn bare_parse(text: &str) {
    let names = RefCell::new(vec![None]);
    let sink = NamesOnly { names };
    black_box(parse_document(sink, Default::default()).one(text));
}

struct NamesOnly {
    /// The builder wants names by reference while it adds others, so each one is shared.
    names: RefCell<Vec<Option<std::rc::Rc<QualName>>>>,
}

#[derive(Debug)]
struct Name(std::rc::Rc<QualName>);

impl html5ever::interface::ElemName for Name {
    fn ns(&self) -> &html5ever::Namespace {
        &self.0.ns
    }

    fn local_name(&self) -> &html5ever::LocalName {
        &self.0.local
    }

    fn expanded(&self) -> ExpandedName<'_> {
        self.0.expanded()
    }
}

impl TreeSink for NamesOnly {
    type Handle = usize;
    type Output = usize;
    type ElemName<'a> = Name;

    fn finish(self) -> usize {
        self.names.into_inner().len()
    }
    fn parse_error(&self, _: Cow<'static, str>) {}
    fn get_document(&self) -> usize {
        0
    }
    fn elem_name<'a>(&'a self, target: &'a usize) -> Name {
        Name(self.names.borrow()[*target].clone().expect("only elements are asked for"))
    }
    fn create_element(&self, name: QualName, _: Vec<Attribute>, _: ElementFlags) -> usize {
        let mut names = self.names.borrow_mut();
        names.push(Some(std::rc::Rc::new(name)));
        names.len() - 1
    }
    fn create_comment(&self, _: StrTendril) -> usize {
        0
    }
    fn create_pi(&self, _: StrTendril, _: StrTendril) -> usize {
        0
    }
    fn append(&self, _: &usize, _: NodeOrText<usize>) {}
    fn append_based_on_parent_node(&self, _: &usize, _: &usize, _: NodeOrText<usize>) {}
    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}
    fn get_template_contents(&self, target: &usize) -> usize {
        *target
    }
    fn same_node(&self, x: &usize, y: &usize) -> bool {
        x == y
    }
    fn set_quirks_mode(&self, _: QuirksMode) {}
    fn append_before_sibling(&self, _: &usize, _: NodeOrText<usize>) {}
    fn add_attrs_if_missing(&self, _: &usize, _: Vec<Attribute>) {}
    fn remove_from_parent(&self, _: &usize) {}
    fn reparent_children(&self, _: &usize, _: &usize) {}
}
