//! The flags of `telusur linear`: its own, and those of `crawl`.

use std::path::PathBuf;

use clap::{Args, Command};

use super::CrawlArgs;
use crate::settings::Given;

/// The arguments of `linear`. The templates are the `urls` of [`CrawlArgs`], and `--rate` is its
/// `rate`: a weight such as `asc=1,desc=2`, or requests as `5/s`.
#[derive(Args, Clone, Debug, Default)]
pub struct LinearArgs {
    /// What it shares with `crawl`
    #[command(flatten)]
    pub crawl: CrawlArgs,

    /// The lowest id, where both ends are known
    #[arg(long, value_name = "N", conflicts_with_all = ["start", "min", "max"], help_heading = "Ids")]
    pub from: Option<String>,
    /// The highest id, where both ends are known
    #[arg(long, value_name = "N", conflicts_with_all = ["start", "min", "max"], help_heading = "Ids")]
    pub to: Option<String>,
    /// Begin with this id, and go both ways in turn
    #[arg(long, value_name = "N", help_heading = "Ids")]
    pub start: Option<String>,
    /// The lowest id to go down to
    #[arg(long, value_name = "N", help_heading = "Ids")]
    pub min: Option<String>,
    /// The highest id to go up to
    #[arg(long, value_name = "N", help_heading = "Ids")]
    pub max: Option<String>,
    /// Only towards higher ids
    #[arg(long, conflicts_with = "descending", help_heading = "Ids")]
    pub ascending: bool,
    /// Only towards lower ids
    #[arg(long, help_heading = "Ids")]
    pub descending: bool,
    /// Only the ids of this file: one or a range 10-20 per line, # for comments
    #[arg(long, value_name = "FILE", help_heading = "Ids")]
    pub list_ids: Option<PathBuf>,
    /// From one id to the next [default: 1]
    #[arg(long, value_name = "N", help_heading = "Ids")]
    pub step: Option<String>,
    /// Stop after N missing ids in a row; 0 = only at the bound [default: 0]
    #[arg(short, long, value_name = "N", help_heading = "Ids")]
    pub margin: Option<String>,
    /// Ask for an id that fails N times in all [default: 1]
    #[arg(long, value_name = "N", help_heading = "Ids")]
    pub attempts: Option<String>,
    /// Least time between two attempts [default: 10m]
    #[arg(long, value_name = "DURATION", help_heading = "Ids")]
    pub cooldown: Option<String>,
    /// What a second run asks: all, new (the rest of the range) or holes (what failed) [default: all]
    #[arg(long, value_name = "WHAT", help_heading = "Ids")]
    pub resume: Option<String>,
    /// Which answers mean "does not exist": statuses, empty, redirect:PLACE, RX:"text" (in the first 64 KiB of
    /// a page's text) [default: 404,410]
    #[arg(long, value_name = "LIST", help_heading = "Ids")]
    pub missing: Option<String>,
    /// Follow the links of the pages as well, as far as this scope [default scope: domain]
    #[arg(long, value_name = "SCOPE", num_args = 0..=1, require_equals = true,
        default_missing_value = "", help_heading = "Ids")]
    pub follow: Option<String>,
}

const EXAMPLES: &str = "Examples:\n  \
    telusur linear 'https://example.org/item/{id}' --from 1 --to 5000\n  \
    telusur linear 'https://example.org/item/{id:08}' --start 38401264 --margin 50 --rate asc=1,desc=2\n  \
    telusur linear 'https://a.org/{id}' 'https://b.org/?p={id}' --from 1 --to 99 --attempts 3\n  \
    telusur linear @name        a [[job]] of the configuration";

/// Gives the arguments that `linear` shares with `crawl` their meaning here.
pub(super) fn shape(command: Command) -> Command {
    command
        .mut_arg("urls", |argument| {
            argument.value_name("TEMPLATE").help(
                "URL with {id} where the number stands, {id:08} with eight digits; or @NAME for a \
                 [[job]] of the configuration",
            )
        })
        .mut_arg("rate", |argument| {
            argument.value_name("RATE").help(
                "How directions and templates take turns: asc=1,desc=2, HOST=2 or N=2 for the Nth \
                 template; or most requests of the whole crawl, as 5/s",
            )
        })
        .mut_arg("new", |argument| argument.help("Start over, and leave an earlier run alone"))
        .mut_arg("input", |argument| argument.hide(true))
        .mut_arg("sitemap", |argument| argument.hide(true))
        .mut_arg("retries", |argument| argument.hide(true))
        .after_help(EXAMPLES)
        .after_long_help(format!(
            "Bounds are inclusive. The same command again goes on where the last run ended, and asks \
             again for what failed; --new starts over.\n\n{EXAMPLES}"
        ))
}

impl LinearArgs {
    /// The settings among them that were given: those of `crawl`, without what is said otherwise here.
    pub fn given(&self) -> Vec<Given> {
        let mut shared = CrawlArgs { urls: Vec::new(), ..self.crawl.clone() };
        if !self.is_request_rate() {
            shared.rate = None;
        }
        shared.given()
    }

    /// Whether `--rate` is about requests and not about turns.
    pub fn is_request_rate(&self) -> bool {
        self.crawl.rate.as_ref().is_some_and(|rate| rate.contains('/'))
    }
}
