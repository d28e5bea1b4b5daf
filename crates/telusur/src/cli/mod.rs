//! The command line: commands and flags, their help, and nothing of what they do.
//!
//! Flags that set a setting hold the text as it was typed; the settings registry reads it, so that a
//! value is written and checked alike on the command line, in the environment and in files.

mod crawl;

use std::path::PathBuf;

use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub use crawl::CrawlArgs;

use crate::settings::{Given, Key, Raw};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "telusur",
    version,
    about = "Crawl the web, search what you crawled. One binary, no services.",
    disable_help_subcommand = true,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 done, 2 usage or configuration, 4 storage.\n\
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
        Self::command().mut_subcommand("crawl", |crawl| crawl.mut_args(take_negative))
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
    /// Crawl from start URLs
    Crawl(Box<CrawlArgs>),
    /// What an error code or a reason means
    Explain(ExplainArgs),
    /// How Telusur reads things, without touching the network
    #[command(subcommand)]
    Inspect(InspectCommand),
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
}

/// The arguments of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// A code such as E0103, or a reason such as timeout_connect
    pub subject: String,
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
