//! The arguments of the commands that look at pages: `fetch`, `page`, `inspect page` and `export`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args};
use telusur_model::ContentKind;

use super::{WireArgs, given_texts};
use crate::page_view::PageForm;
use crate::settings::{Given, Key};
use telusur_engine::export::{Collected, Format};

/// The arguments of `fetch`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
        telusur fetch https://example.com/article > article.md\n  \
        telusur fetch https://example.com --as links\n  \
        telusur fetch http://localhost:8080/ --allow-private localhost:8080 --as json")]
pub struct FetchArgs {
    /// The page
    #[arg(value_name = "URL")]
    pub url: String,
    /// What is printed: markdown, text, html, headers, json, overview, or one kind of content
    #[arg(long = "as", value_name = "FORM", default_value = "markdown",
        value_parser = page_forms(), hide_possible_values = true)]
    pub form: PageForm,

    /// How servers are asked
    #[command(flatten)]
    pub wire: WireArgs,
    /// Least time between two requests to one host: for robots.txt, the page and its redirects [default: 1s]
    #[arg(long, value_name = "DURATION")]
    pub delay: Option<String>,
    /// Read at most this much of the page [default: 1MiB]
    #[arg(long, value_name = "SIZE", help_heading = "HTTP")]
    pub max_body: Option<String>,
}

impl FetchArgs {
    /// The settings among them that were given.
    pub fn given(&self) -> Vec<Given> {
        let mut given = self.wire.given();
        given.extend(given_texts([(Key::Delay, &self.delay), (Key::MaxBody, &self.max_body)]));
        given
    }
}

/// The arguments of `page`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
        telusur page https://example.com/article\n  \
        telusur page https://example.com/prices --as tables\n  \
        telusur page https://example.com/ --crawl crawl_3 --as html > page.html")]
pub struct PageArgs {
    /// The page, or a URL that redirects to it
    #[arg(value_name = "URL")]
    pub url: String,
    /// As this crawl stored it; without it, as the youngest crawl did that has it
    #[arg(long, value_name = "ID")]
    pub crawl: Option<String>,
    /// What is printed: overview, markdown, text, html, headers, json, or one kind of content
    /// (headings, links, images, tables, lists, forms, scripts, styles)
    #[arg(long = "as", value_name = "FORM", default_value = "overview",
        value_parser = page_forms(), hide_possible_values = true)]
    pub form: PageForm,
}

/// The arguments of `inspect page`.
#[derive(Args, Debug)]
pub struct InspectPageArgs {
    /// The file; - is standard input, and a name that ends in .gz is unpacked
    #[arg(value_name = "FILE", required_unless_present = "jsonl")]
    pub file: Option<PathBuf>,
    /// Where the page is from: its links are resolved against it [default: http://localhost/]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// What is printed: overview, markdown, text, html, json, or one kind of content
    #[arg(long = "as", value_name = "FORM", default_value = "overview",
        value_parser = page_forms(), hide_possible_values = true)]
    pub form: PageForm,
    /// Read {"id", "path", "url"} lines from standard input and answer each with {"id", "title",
    /// "text", "visible_text", "markdown", "language" and everything else}
    #[arg(long, conflicts_with_all = ["file", "url", "form"])]
    pub jsonl: bool,
}

/// The arguments of `export`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
        telusur export docs -o docs.jsonl\n  \
        telusur export docs --kind links --format csv -o links.csv\n  \
        telusur export docs --tables-dir tables/")]
pub struct ExportArgs {
    /// The crawl: its id, its alias crawl_N, its name, or last
    #[arg(value_name = "ID", default_value = "last")]
    pub crawl: String,
    /// What is written: pages, headings, links, images, tables, lists, forms, scripts or styles
    #[arg(long, value_name = "KIND", default_value = "pages",
        value_parser = collected(), hide_possible_values = true)]
    pub kind: Collected,
    /// jsonl: a JSON object per line; csv: rows for a spreadsheet, with formulas made harmless
    #[arg(long, value_name = "FORMAT", default_value = "jsonl",
        value_parser = formats(), hide_possible_values = true)]
    pub format: Format,
    /// The file; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Write every table to a CSV file of its own in this directory, and a list of them
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kind", "format", "output"])]
    pub tables_dir: Option<PathBuf>,
    /// Overwrite files that exist
    #[arg(short = 'O', action = ArgAction::SetTrue)]
    pub overwrite: bool,
}

fn page_forms() -> impl TypedValueParser<Value = PageForm> {
    let words = PageForm::SIMPLE.map(PageForm::word).into_iter();
    let words: Vec<&str> = words.chain(ContentKind::ALL.map(ContentKind::word)).collect();
    PossibleValuesParser::new(words)
        .map(|word| PageForm::from_word(&word).expect("only these words are taken"))
}

fn collected() -> impl TypedValueParser<Value = Collected> {
    let words: Vec<&str> =
        ["pages"].into_iter().chain(ContentKind::ALL.map(ContentKind::word)).collect();
    PossibleValuesParser::new(words).map(|word| match ContentKind::from_word(&word) {
        Some(kind) => Collected::Content(kind),
        None => Collected::Pages,
    })
}

fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::word))
        .map(|word| Format::from_word(&word).unwrap_or_default())
}
