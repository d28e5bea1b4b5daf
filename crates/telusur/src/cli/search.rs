//! The flags of `telusur search` and its kin.

use std::path::PathBuf;

use super::SpaceArgs;
use clap::{Args, Subcommand, ValueEnum};

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
    pub limit: usize,
    /// Which page of hits
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub page: usize,
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
    /// The columns that the words must be in: title, description, keywords, text, url
    #[arg(long = "in", value_name = "COLUMNS", value_delimiter = ',')]
    pub columns: Vec<SearchColumn>,
    /// The words are a regular expression, matched in the stored columns
    #[arg(long)]
    pub regex: bool,
    /// The order of hits
    #[arg(long, value_enum, value_name = "ORDER", default_value = "relevance")]
    pub sort: SearchOrder,
    /// Count the matching pages by site, language, kind, year or crawl
    #[arg(long, value_name = "BY", value_delimiter = ',')]
    pub facets: Vec<SearchFacet>,
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

/// A column that words can be looked for in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words say it")]
pub enum SearchColumn {
    Title,
    Description,
    Keywords,
    #[value(alias = "body")]
    Text,
    Url,
}

/// An order of hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words say it")]
pub enum SearchOrder {
    #[default]
    Relevance,
    Newest,
    Url,
}

/// What matching pages are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words say it")]
pub enum SearchFacet {
    Site,
    #[value(alias = "lang")]
    Language,
    #[value(alias = "type")]
    Kind,
    Year,
    Crawl,
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
