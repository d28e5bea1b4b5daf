//! The command line: commands and flags, their help, and nothing of what they do.
//!
//! Flags that set a setting hold the text as it was typed; the settings registry reads it, so that a
//! value is written and checked alike on the command line, in the environment and in files.

mod crawl;
mod linear;
mod wire;

mod pages;
mod search;
mod serve;

mod given;
mod space;

use std::path::PathBuf;

use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub use crawl::CrawlArgs;
pub(crate) use given::given_texts;
pub use linear::LinearArgs;
pub use pages::{ExportArgs, FetchArgs, InspectPageArgs, PageArgs};
pub use search::{IndexArgs, IndexCommand, RankArgs, SearchArgs, SearchFormat};
pub use serve::{KeyCommand, ServeArgs};
pub use space::{SpaceArgs, WorkArgs};
pub use wire::WireArgs;

use crate::settings::{Given, Key, Raw};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "telusur",
    version,
    about = "Crawl the web, search what you crawled. One binary, no services.",
    disable_help_subcommand = true,
    arg_required_else_help = true,
    after_help = "Wherever a command takes a crawl, ID is its id, its alias crawl_N, its name, or last.\n\
                  Exit codes: 0 done, 2 usage or configuration, 3 no start URL could be fetched, 4 storage,\n\
                  6 more failed than --fail-on bears, 130 and 143 interrupted after saving.\n\
                  `telusur COMMAND --help` tells everything about a command."
)]
pub struct Cli {
    /// Options that every command takes.
    #[command(flatten)]
    pub global: GlobalOptions,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// The command line as clap sees it. A negative number is taken as a value, so that it is
    /// refused as one and not as an unknown flag.
    pub fn parser() -> clap::Command {
        let take_negative = |argument: clap::Arg| {
            let takes_values = argument.get_action().takes_values();
            if takes_values { argument.allow_negative_numbers(true) } else { argument }
        };
        Self::command()
            .mut_subcommand("crawl", |crawl| crawl.mut_args(take_negative))
            .mut_subcommand("linear", |linear| linear::shape(linear.mut_args(take_negative)))
    }
}

/// Options that every command takes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub struct GlobalOptions {
    /// Directory where everything is kept [env: TELUSUR_DATA] [default: ~/.local/share/telusur]
    #[arg(short = 'D', long, value_name = "DIR", global = true)]
    pub data: Option<PathBuf>,
    /// Configuration file, instead of the usual ones; a later one wins [env: TELUSUR_CONFIG]
    #[arg(short, long, value_name = "FILE", global = true)]
    pub config: Vec<PathBuf>,
    /// Read no configuration file and no .env
    #[arg(long, global = true, conflicts_with = "config")]
    pub no_config: bool,
    /// Use the service at this address instead of a data directory [env: TELUSUR_SERVER]
    #[arg(long, value_name = "URL", global = true, conflicts_with = "data")]
    pub server: Option<String>,
    /// The key for the service; safer in the environment, where other users do not see it [env: TELUSUR_KEY]
    #[arg(long, value_name = "KEY", global = true, requires = "server")]
    pub key: Option<String>,
    /// Say nothing but errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Log more: -v info, -vv debug, -vvv trace
    #[arg(short, long, action = ArgAction::Count, global = true, conflicts_with = "quiet")]
    pub verbose: u8,
    /// Form of the log: text or json
    #[arg(long, value_name = "FORM", global = true)]
    pub log_format: Option<String>,
    /// Write the log to a file instead of standard error
    #[arg(long, value_name = "FILE", global = true)]
    pub log_file: Option<PathBuf>,
    /// Colours in messages
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto", global = true)]
    pub color: ColorChoice,
    /// Show no progress [env: TELUSUR_NO_PROGRESS]
    #[arg(long, global = true)]
    pub no_progress: bool,
    /// Results and errors as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

impl GlobalOptions {
    /// The settings among them that were given.
    pub fn given(&self) -> Vec<Given> {
        let level = match (self.quiet, self.verbose) {
            (true, _) => Some(("--quiet", "error")),
            (_, 0) => None,
            (_, 1) => Some(("--verbose", "info")),
            (_, 2) => Some(("--verbose", "debug")),
            (..) => Some(("--verbose", "trace")),
        };
        let mut given = Vec::new();
        if let Some((flag, word)) = level {
            given.push(Given { key: Key::LogLevel, flag, raw: Raw::Untyped(word.to_owned()) });
        }
        if let Some(form) = &self.log_format {
            let raw = Raw::Untyped(form.clone());
            given.push(Given { key: Key::LogFormat, flag: "--log-format", raw });
        }
        for (key, flag, path) in
            [(Key::DataDir, "--data", &self.data), (Key::LogFile, "--log-file", &self.log_file)]
        {
            given.extend(path.clone().map(|path| Given { key, flag, raw: Raw::Path(path) }));
        }
        given
    }
}

/// When messages have colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Also into a pipe
    Always,
    /// Not at all
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Crawl a small site that is built into this program; needs no internet
    Demo(SpaceArgs),
    /// Crawl from start URLs
    Crawl(Box<CrawlArgs>),
    /// Search everything crawled so far
    Search(Box<SearchArgs>),
    /// Ways to go on typing a search
    Suggest {
        /// What was typed so far
        #[arg(value_name = "TEXT")]
        typed: String,
    },
    /// List the best linked pages and sites; 1.0 is the average
    Rank(RankArgs),
    /// Serve the HTTP API and the web pages on http://127.0.0.1:8088
    Serve(Box<ServeArgs>),
    /// Make, list and revoke the keys of the API
    #[command(subcommand)]
    Key(KeyCommand),
    /// Crawl numbered pages from a template with {id}
    Linear(Box<LinearArgs>),
    /// List crawls
    Ls,
    /// Show one crawl: its counters, its errors, what it skipped
    Show(ShowArgs),
    /// Show which ids of a linear crawl exist, failed, or are left
    Coverage(CoverageArgs),
    /// Go on with a crawl that was paused, stopped, killed, or reached a limit
    Resume(ResumeArgs),
    /// Ask again for what failed: URLs without an answer, holes of a linear crawl
    Retry(WorkArgs),
    /// Crawl the same again, and fetch only what changed since
    Recrawl(WorkArgs),
    /// Let a running crawl wait, from another terminal
    Pause(CrawlId),
    /// End a running crawl and keep what it has
    Stop(CrawlId),
    /// End a crawl and throw away what it has
    Cancel(RemoveArgs),
    /// Add an exclusion to a crawl, also while it runs
    Exclude {
        /// The crawl
        #[arg(value_name = "ID")]
        crawl: String,
        /// URLs that match this regular expression are not fetched any more
        #[arg(value_name = "REGEX")]
        pattern: String,
    },
    /// Delete a crawl and everything it stored
    Rm(RemoveArgs),
    /// Write the pages of a crawl, or one kind of what is in them, as JSON lines or CSV
    Export(ExportArgs),
    /// Fetch one page and print it, as Markdown if nothing else is asked for
    Fetch(Box<FetchArgs>),
    /// Show a stored page and everything that is in it
    Page(PageArgs),
    /// Read the stored pages of a crawl again with this version, and say what changed; fetches nothing
    Reparse(WorkArgs),
    /// Why a URL was crawled or not; also what an error code or a reason means
    Explain(ExplainArgs),
    /// What was asked of a host, when, at what gaps, by which rules: something to show a webmaster
    Politeness {
        /// The host, or a URL of it
        host: String,
    },
    /// Take in JSON lines with id or url, title and text, and make them searchable
    Import {
        /// The file; - is standard input
        file: PathBuf,
        /// A name for the collection; importing under the same name again replaces documents
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// How much space is left
        #[command(flatten)]
        space: SpaceArgs,
    },
    /// Look after the search index, or index as a process of its own
    Index(IndexArgs),
    /// Check every promise about the stored data, or read all of it slowly to find damage
    Verify(VerifyArgs),
    /// Rebuild a damaged or lost state/ from the stored pages
    Recover(RecoverArgs),
    /// How Telusur reads things, without touching the network
    #[command(subcommand)]
    Inspect(InspectCommand),
    /// Measure a crawl of a synthetic web on this machine
    Bench(BenchArgs),
    /// Write, check and show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a script that completes commands in a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the version
    Version,
    /// Serve a synthetic web until standard input ends (for `bench` and tests)
    #[command(hide = true)]
    FakeWeb {
        /// What it looks like: seed=1,hosts=10,pages=20000
        spec: String,
        /// A directory of saved pages to serve
        bodies: Option<PathBuf>,
    },
}

/// A crawl.
#[derive(Args, Debug)]
pub struct CrawlId {
    /// The crawl: its id, its alias crawl_N, its name, or last
    #[arg(value_name = "ID")]
    pub crawl: String,
}

/// The arguments of `show`.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// The crawl: its id, its alias crawl_N, its name, or last
    #[arg(value_name = "ID", default_value = "last")]
    pub crawl: String,
    /// List the URLs that failed or answered with an error
    #[arg(long, conflicts_with = "skipped")]
    pub errors: bool,
    /// List the URLs that were never asked for, all or those with one reason
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "")]
    pub skipped: Option<String>,
    /// List what a recrawl found to be new, changed or gone
    #[arg(long, conflicts_with_all = ["errors", "skipped"])]
    pub changes: bool,
}

/// The arguments of `coverage`.
#[derive(Args, Debug)]
pub struct CoverageArgs {
    /// The crawl: its id, its alias crawl_N, its name, or last
    #[arg(value_name = "ID", default_value = "last")]
    pub crawl: String,
    /// List the ids that failed, one run per line
    #[arg(long)]
    pub holes: bool,
}

/// The arguments of `resume`.
#[derive(Args, Debug)]
pub struct ResumeArgs {
    /// The crawl: its id, its alias crawl_N, its name, or last
    #[arg(value_name = "ID", default_value = "last")]
    pub crawl: String,
    /// A new page limit for the whole crawl; 0 = no limit
    #[arg(short = 'n', long, value_name = "N")]
    pub max_pages: Option<String>,
    /// A new time limit for the whole crawl; 0s = no limit
    #[arg(short = 't', long, value_name = "DURATION")]
    pub max_duration: Option<String>,
    /// A new byte limit for the whole crawl; 0B = no limit
    #[arg(long, value_name = "SIZE")]
    pub max_bytes: Option<String>,
    /// A new limit of URLs of one host; of a linear crawl, of ids
    #[arg(long, value_name = "N")]
    pub max_per_host: Option<String>,
    /// A new limit of URLs of one registrable domain
    #[arg(long, value_name = "N")]
    pub max_per_site: Option<String>,
    /// Most requests under way in the whole crawl
    #[arg(short, long, value_name = "N|auto")]
    pub workers: Option<String>,
    /// Least time between the starts of two requests to one host
    #[arg(long, value_name = "DURATION")]
    pub delay: Option<String>,
    /// Pause when less space than this is left on the disk [default: as the crawl was started with]
    #[arg(long, value_name = "SIZE")]
    pub min_free_disk: Option<String>,
    /// Wait at most this long when every host left says Retry-After; 0s = no limit
    #[arg(long, value_name = "DURATION")]
    pub patience: Option<String>,
    /// Of a linear crawl, which ids are asked: all, new (the rest of the range) or holes (what failed)
    #[arg(long, value_name = "WHAT")]
    pub ids: Option<String>,
}

/// The arguments of `recover`.
#[derive(Args, Debug)]
#[command(
    after_long_help = "Everything that a crawl did is also written down beside its pages in bodies/: settings,\n\
    pages, links, redirects, failures, ids. From that the whole state is made again. Pages whose\n\
    bytes are damaged are named, and asked again by `telusur resume`. The old directory is left as\n\
    it is, unless --in-place says otherwise. A recovery that is interrupted changes nothing: start\n\
    it again.\n\n\
    Examples:\n  telusur recover ./data                    makes ./data.recovered\n  \
    telusur recover ./data --into /mnt/new\n  telusur recover ./data --in-place         keeps the old state as state.damaged"
)]
pub struct RecoverArgs {
    /// The damaged data directory; by default that of --data
    pub dir: Option<PathBuf>,
    /// The new directory; by default the old name with .recovered behind it
    #[arg(long, value_name = "NEW", conflicts_with = "in_place")]
    pub into: Option<PathBuf>,
    /// Put the rebuilt state in the place of the damaged one, which is kept beside it
    #[arg(long)]
    pub in_place: bool,
}

/// The arguments of `rm` and `cancel`.
#[derive(Args, Debug)]
pub struct RemoveArgs {
    /// The crawl: its id, its alias crawl_N, its name, or last
    #[arg(value_name = "ID")]
    pub crawl: String,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

/// The arguments of `verify`.
#[derive(Args, Clone, Debug, Default)]
#[command(
    after_long_help = "Without --scrub every promise is checked at once, on the rows of one moment. With --scrub everything is\n\
    read in order: each stored body with its checksum, each row of state/, and the files of the search index. How\n\
    far it came is remembered: interrupted or killed, the next call goes on there; after the end it starts over.\n\
    A service does the same while it is idle with: telusur serve --scrub-pace SIZE\n\n\
    Examples:\n  telusur verify\n  telusur verify --scrub --pace 10MiB"
)]
pub struct VerifyArgs {
    /// Read everything that is stored and name what is damaged, from where the last call ended
    #[arg(long)]
    pub scrub: bool,
    /// Read no more than this in a second; 0B = as fast as the disk allows
    #[arg(long, value_name = "SIZE", requires = "scrub", default_value = "0B")]
    pub pace: String,
    /// First take out the pages whose stored bytes are damaged, and queue them again: resume their crawls
    /// afterwards
    #[arg(long, conflicts_with = "scrub")]
    pub requeue: bool,
}

/// The arguments of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// A URL, a code such as E0103, or a reason such as timeout_connect
    #[arg(value_name = "URL|CODE")]
    pub subject: String,
    /// Ask this crawl only
    #[arg(long, value_name = "ID")]
    pub crawl: Option<String>,
}

/// The arguments of `bench`.
#[derive(Args, Clone, Debug)]
pub struct BenchArgs {
    /// Pages of the synthetic web [default: 20k, or as many as --from has]
    #[arg(long, value_name = "N")]
    pub pages: Option<String>,
    /// Crawl the files of this directory instead, each served as a page; their links are not followed
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
    /// Hosts that they lie on
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub hosts: usize,
    /// Links on every page
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub links: usize,
    /// About how long a page is
    #[arg(long, value_name = "SIZE", default_value = "20kB")]
    pub page_bytes: String,
    /// Most requests under way
    #[arg(short, long, value_name = "N", default_value_t = 64)]
    pub workers: u16,
    /// Another web of the same kind
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// What is kept of a page: none, text, html or raw
    #[arg(long, value_name = "WHAT", default_value = "html")]
    pub keep: String,
    /// Parse in N jailed processes, or auto; 0 shows what the jail costs
    #[arg(long, value_name = "N", default_value = "auto")]
    pub parsers: String,
    /// Do not read robots.txt, to see what reading it costs
    #[arg(long)]
    pub ignore_robots: bool,
    /// Make the pages searchable as well, and measure how soon they are found
    #[arg(long)]
    pub search: bool,
}

/// The commands of `inspect`.
#[derive(Debug, Subcommand)]
pub enum InspectCommand {
    /// How a URL is read: its normal form, host, site, slot and key
    #[command(
        after_help = "Examples:\n  telusur inspect url 'HTTP://Example.COM:80/a/../b?z=1&a=2'\n  \
        telusur inspect url ../x --base https://example.com/a/b/\n  \
        echo '{\"id\":1,\"url\":\"http://a.org/\"}' | telusur inspect url --jsonl"
    )]
    Url(InspectUrlArgs),
    /// What a robots.txt allows, and by which line
    #[command(
        after_help = "Examples:\n  telusur inspect robots --file robots.txt https://example.org/private/x\n  \
        telusur inspect robots --jsonl < questions.jsonl"
    )]
    Robots(InspectRobotsArgs),
    /// Everything that is in a page: text, Markdown, links, tables and all other kinds of content
    #[command(
        after_help = "Examples:\n  telusur inspect page page.html --url https://example.org/page --json\n  \
        telusur inspect page page.html.gz --as markdown\n  \
        telusur inspect page --jsonl < pages.jsonl"
    )]
    Page(InspectPageArgs),
    /// What a sitemap or feed lists, as JSON lines
    Sitemap {
        /// The file: XML, text, RSS, Atom or JSON feed, also compressed with gzip
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// The arguments of `inspect robots`.
#[derive(Args, Debug)]
pub struct InspectRobotsArgs {
    /// The robots.txt
    #[arg(long, value_name = "FILE", required_unless_present = "jsonl")]
    pub file: Option<PathBuf>,
    /// The product token of the crawler
    #[arg(long, value_name = "TOKEN", default_value = "Telusur")]
    pub agent: String,
    /// The URLs to judge
    #[arg(value_name = "URL", required_unless_present = "jsonl")]
    pub urls: Vec<String>,
    /// Read {"id", "robots", "agent", "url"} lines from standard input and answer each with {"id",
    /// "allowed", "line"}
    #[arg(long, conflicts_with_all = ["file", "urls"])]
    pub jsonl: bool,
}

/// The arguments of `inspect url`.
#[derive(Args, Debug)]
pub struct InspectUrlArgs {
    /// The URL, or a link if --base is given
    #[arg(value_name = "TEXT", required_unless_present = "jsonl")]
    pub text: Option<String>,
    /// The page on which the link stands
    #[arg(long, value_name = "URL", conflicts_with = "jsonl")]
    pub base: Option<String>,
    /// Read {"id", "url", "base"?} lines from standard input and answer each with {"id", "url",
    /// "href"}: the normal form and the form of the URL standard, or null
    #[arg(long, conflicts_with = "text")]
    pub jsonl: bool,
    /// Keep utm_source and its kin in the normal form
    #[arg(long)]
    pub keep_tracking: bool,
}

/// The commands of `config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Write a configuration file with every key and its default
    Init {
        /// The file; - is standard output
        #[arg(default_value = "telusur.toml", value_name = "FILE")]
        file: PathBuf,
        /// Overwrite the file if it exists
        #[arg(short = 'O')]
        overwrite: bool,
    },
    /// Report every mistake in the configuration files
    Check {
        /// The files; those that would be read if none is named
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Print every setting
    Show {
        /// Also where each value was set
        #[arg(long)]
        origin: bool,
    },
    /// Print which configuration files are looked for, and which exist
    Path,
}
