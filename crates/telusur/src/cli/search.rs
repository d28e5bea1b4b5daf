//! The flags of `telusur search` and its kin.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use telusur_index::{Column, FacetBy, Sort};

use super::SpaceArgs;

/// The arguments of `search`.
#[derive(Args, Clone, Debug, Default)]
#[command(
    after_help = "The query: words, \"phrases\", -word, OR, site:, intitle:, inurl:, lang:, filetype:, before:, after:,\n\
    year:, has:table|form|image|code, crawl:, status:, link:, rights:\n\n\
    Examples:\n  telusur search polite crawler\n  telusur search '\"crawl delay\" site:docs.example -draft'\n  \
    telusur search --in title,url --regex '^release'"
)]
pub struct SearchArgs {
    /// What to search for
    #[arg(value_name = "WORDS")]
    pub words: Vec<String>,
    /// How many hits
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub limit: u32,
    /// Which page of hits
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub page: u32,
    /// Only this site
    #[arg(long, value_name = "HOST")]
    pub site: Option<String>,
    /// Only this language
    #[arg(long, value_name = "CODE")]
    pub lang: Option<String>,
    /// Only this kind: html, text, feed, pdf
    #[arg(long = "type", value_name = "KIND")]
    pub kind: Option<String>,
    /// Only pages of this crawl
    #[arg(long, value_name = "ID")]
    pub crawl: Option<String>,
    /// Only pages since then: 30d ago, or a date such as 2026-05-31
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only pages of this year
    #[arg(long, value_name = "YEAR")]
    pub year: Option<u16>,
    /// The columns that the words must be in: title, description, keywords, text, url
    #[arg(long = "in", value_name = "COLUMNS", value_delimiter = ',',
        value_parser = one_of(Column::WORDS, Column::from_word))]
    pub columns: Vec<Column>,
    /// The words are a regular expression, matched in the stored columns
    #[arg(long)]
    pub regex: bool,
    /// The order of hits
    #[arg(long, value_name = "ORDER", default_value = "relevance",
        value_parser = one_of(Sort::WORDS, Sort::from_word))]
    pub sort: Sort,
    /// Count the matching pages by site, lang, type, year or crawl
    #[arg(long, value_name = "BY", value_delimiter = ',',
        value_parser = one_of(FacetBy::WORDS, FacetBy::from_word))]
    pub facets: Vec<FacetBy>,
    /// Form of the answer
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    pub format: SearchFormat,
    /// Say why each hit stands where it stands
    #[arg(long)]
    pub explain: bool,
    /// Answer {"id","query"} lines of a file (- is standard input) with {"id","hits"} lines
    #[arg(long, value_name = "FILE", conflicts_with = "words")]
    pub batch: Option<PathBuf>,
}

/// The arguments of `rank`.
#[derive(Args, Clone, Debug)]
pub struct RankArgs {
    /// Only pages of this crawl: its id, its alias crawl_N, its name, or last
    #[arg(value_name = "ID")]
    pub crawl: Option<String>,
    /// Sites instead of pages, by the links from other sites
    #[arg(long)]
    pub sites: bool,
    /// How many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub limit: usize,
}

/// Words as they are typed here, besides those that they are everywhere.
const ALIASES: [(&str, &str); 3] = [("body", "text"), ("language", "lang"), ("kind", "type")];

/// Reads one of these words.
fn one_of<T: Clone + Send + Sync + 'static>(
    words: &'static [&'static str],
    from_word: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    let values = words.iter().map(|word| {
        let aliases = ALIASES.iter().filter(|(_, meant)| meant == word);
        PossibleValue::new(*word).aliases(aliases.map(|(alias, _)| *alias))
    });
    PossibleValuesParser::new(values).try_map(move |typed| {
        let alias = ALIASES.iter().find(|(alias, _)| *alias == typed);
        from_word(alias.map_or(typed.as_str(), |(_, meant)| meant)).ok_or("there is no such word")
    })
}

/// The forms of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words say it")]
pub enum SearchFormat {
    #[default]
    Text,
    Json,
    Jsonl,
    Csv,
    Urls,
}

/// The arguments of `index`.
#[derive(Args, Clone, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    after_long_help = "By default a crawl indexes what it stores by itself. With --follow that is done here instead, for\n\
    whichever process owns the directory (crawl, serve), until Ctrl-C: pages are read through the owner,\n\
    and when this process ends, or is killed, the owner goes on from the last commit.\n\n\
    Examples:\n  telusur index --follow --data ./data\n  telusur index rebuild"
)]
pub struct IndexArgs {
    /// Index in this process what the owner of the directory stores, until stopped
    #[arg(long)]
    pub follow: bool,
    /// What else can be done
    #[command(subcommand)]
    pub command: Option<IndexCommand>,
}

/// What can be done with the search index.
#[derive(Clone, Debug, Subcommand)]
pub enum IndexCommand {
    /// Build it anew from the stored pages
    Rebuild {
        /// How much space is left
        #[command(flatten)]
        space: SpaceArgs,
    },
    /// Say how large it is and how far it has come
    Status,
}
