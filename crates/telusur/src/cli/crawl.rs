//! The flags of `telusur crawl`.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::WireArgs;
use super::given::{given_lists, given_texts, of_flag};
use crate::settings::{Given, Key, Raw};

/// The arguments of `crawl`.
#[derive(Args, Clone, Debug, Default)]
#[command(
    after_help = "Examples:\n  \
        telusur crawl https://docs.example -n 5000 --name docs\n  \
        telusur crawl -i urls.txt --scope host --delay 2s\n  \
        telusur crawl http://localhost:8080 --allow-private localhost:8080 --dry-run",
    after_long_help = "Durations are written 500ms, 2s, 10m, 1h30m; sizes 10kB, 1MiB; counts 1000, \
        1_000, 10k, 1m.\nFlags win over the environment (TELUSUR_MANNERS__DELAY=2s, or \
        CRAWL_DELAY_MS, CRAWLER_MAX_THREADS, CRAWLER_DURATION_SECONDS, CRAWLER_START_URLS), the \
        environment over .env, .env over configuration files. A list that is set replaces the one \
        below it.\n\nThe same command again goes on with a crawl that was interrupted; --new starts over.\n\nExamples:\n  \
        telusur crawl https://docs.example -n 5000 --name docs\n  \
        telusur crawl -i urls.txt --scope host --delay 2s\n  \
        telusur crawl http://localhost:8080 --allow-private localhost:8080 --dry-run"
)]
pub struct CrawlArgs {
    /// Where to start
    #[arg(value_name = "URL", help_heading = "Start")]
    pub urls: Vec<String>,
    /// Start URLs from a file, one per line, # for comments; - is standard input
    #[arg(short, long, value_name = "FILE", help_heading = "Start")]
    pub input: Option<PathBuf>,
    /// Start also from this sitemap, feed or list of URLs; may be given several times
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true,
        default_missing_value = "", help_heading = "Start")]
    pub sitemap: Vec<String>,
    /// Read no sitemaps but those named by --sitemap=URL
    #[arg(long, help_heading = "Start")]
    pub no_sitemap: bool,
    /// A name for the crawl
    #[arg(long, value_name = "NAME", help_heading = "Start")]
    pub name: Option<String>,
    /// Start over, also if an earlier crawl of the same start URLs was interrupted
    #[arg(long, help_heading = "Start")]
    pub new: bool,
    /// Show what would be crawled, and how, without asking anybody
    #[arg(long, help_heading = "Start")]
    pub dry_run: bool,
    /// Crawl in the background; watch it with `telusur show last`
    #[arg(long, conflicts_with = "dry_run", help_heading = "Start")]
    pub detach: bool,

    /// Stop after N pages; 0 = no limit [default: 0]
    #[arg(short = 'n', long, alias = "limit", value_name = "N", help_heading = "Limits")]
    pub max_pages: Option<String>,
    /// Follow links at most N away from a start URL; 0 = the built-in 20 [default: 0]
    #[arg(short, long, value_name = "N", help_heading = "Limits")]
    pub depth: Option<String>,
    /// Stop after this time; 0s = no limit [default: 0s]
    #[arg(short = 't', long, value_name = "DURATION", help_heading = "Limits")]
    pub max_duration: Option<String>,
    /// Stop after receiving this much; 0B = no limit [default: 0B]
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub max_bytes: Option<String>,
    /// Take in at most N URLs of one host [default: 10k]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub max_per_host: Option<String>,
    /// Take in at most N URLs of one registrable domain [default: 50k]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub max_per_site: Option<String>,
    /// Wait at most this long when every host left says Retry-After; 0s = no limit [default: 10m]
    #[arg(long, value_name = "DURATION", help_heading = "Limits")]
    pub patience: Option<String>,
    /// Pause when less space than this is left on the disk [default: 2GiB]
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub min_free_disk: Option<String>,
    /// Parse pages in N jailed processes; 0 = in this one [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub parsers: Option<String>,
    /// Read at most this much of one page [default: 1MiB]
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub max_body: Option<String>,

    /// How far links are followed: page, prefix, host, domain or any [default: domain]
    #[arg(short, long, value_name = "SCOPE", help_heading = "Scope")]
    pub scope: Option<String>,
    /// Follow only URLs that match one of these regular expressions
    #[arg(long, value_name = "REGEX", help_heading = "Scope")]
    pub include: Vec<String>,
    /// Follow no page whose URL matches one of these regular expressions
    #[arg(long, value_name = "REGEX", help_heading = "Scope")]
    pub exclude: Vec<String>,
    /// Follow links N further beyond the scope [default: 0]
    #[arg(long, value_name = "N", help_heading = "Scope")]
    pub extra_hops: Option<String>,
    /// A host in scope besides those of the start URLs
    #[arg(long, value_name = "HOST", help_heading = "Scope")]
    pub allow_host: Vec<String>,
    /// The part of a link after ?: keep, drop or drop=name,name [default: keep]
    #[arg(long, value_name = "WHAT", help_heading = "Scope")]
    pub query_params: Option<String>,
    /// Treat URLs that differ in utm_source and its kin as different pages
    #[arg(long, help_heading = "Scope")]
    pub keep_tracking: bool,
    /// Links with one of these words in text or address go first within their host
    #[arg(long, value_name = "WORDS", help_heading = "Scope")]
    pub topic: Option<String>,

    /// Least time between the starts of two requests to one host [default: 1s]
    #[arg(long, value_name = "DURATION", help_heading = "Manners")]
    pub delay: Option<String>,
    /// Most requests under way at one host [default: 1]
    #[arg(long, value_name = "N", help_heading = "Manners")]
    pub per_host: Option<String>,
    /// Most requests that the whole crawl starts, as 5/s or 30/m
    #[arg(long, value_name = "N/s", help_heading = "Manners")]
    pub rate: Option<String>,
    /// Most requests under way in the whole crawl [default: auto = 32]
    #[arg(short, long, value_name = "N|auto", help_heading = "Manners")]
    pub workers: Option<String>,
    /// Ask a host less often while it answers 429 or 503 (the default)
    #[arg(long, help_heading = "Manners")]
    pub adaptive: bool,
    /// Keep the delay whatever a host answers
    #[arg(long, conflicts_with = "adaptive", help_heading = "Manners")]
    pub no_adaptive: bool,
    /// How sites share the crawl: equal, weighted or none [default: equal]
    #[arg(long, value_name = "HOW", help_heading = "Manners")]
    pub fairness: Option<String>,
    /// Most that robots.txt or 429 answers can slow us down [default: 60s]
    #[arg(long, value_name = "DURATION", help_heading = "Manners")]
    pub crawl_delay_max: Option<String>,
    /// Leave links marked rel=nofollow alone
    #[arg(long, help_heading = "Manners")]
    pub nofollow: bool,

    /// Further attempts after a failure that may pass [default: 3]
    #[arg(long, value_name = "N", help_heading = "HTTP")]
    pub retries: Option<String>,
    /// How servers are asked
    #[command(flatten)]
    pub wire: WireArgs,
    /// Send no cookies
    #[arg(long, conflicts_with = "cookies", help_heading = "HTTP")]
    pub no_cookies: bool,

    /// What is kept of a page: none, text, html or raw [default: html]
    #[arg(long, value_name = "WHAT", help_heading = "Keep")]
    pub keep: Option<String>,

    /// Also write the pages to this file as JSON lines
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Overwrite the output file if it exists
    #[arg(short = 'O', requires = "output", action = ArgAction::SetTrue, help_heading = "Output")]
    pub overwrite: bool,

    /// When to end with exit code 6: none, any-error, seed or ratio=0.2 [default: none]
    #[arg(long, value_name = "WHEN", help_heading = "End")]
    pub fail_on: Option<String>,
    /// Stop after N failed URLs; 0 = no limit [default: 0]
    #[arg(long, value_name = "N", help_heading = "End")]
    pub max_errors: Option<String>,
}

impl CrawlArgs {
    /// The settings among them that were given.
    pub fn given(&self) -> Vec<Given> {
        let mut given = self.wire.given();
        given.extend(given_texts(self.texts()));
        given.extend(given_lists(self.lists()));
        let sitemaps: Vec<String> =
            self.sitemap.iter().filter(|url| !url.is_empty()).cloned().collect();
        if !sitemaps.is_empty() {
            given.push(of_flag(Key::Sitemaps, Raw::List(sitemaps)));
        }
        for (key, flag, is_given, raises) in self.switches() {
            if is_given {
                given.push(Given { key, flag, raw: Raw::Switch(raises) });
            }
        }
        given
    }

    /// Flags without a value: what each sets, whether it is there, and to what it sets it.
    fn switches(&self) -> [(Key, &'static str, bool, bool); 6] {
        [
            (Key::KeepTracking, "--keep-tracking", self.keep_tracking, true),
            (Key::Adaptive, "--adaptive", self.adaptive, true),
            (Key::Adaptive, "--no-adaptive", self.no_adaptive, false),
            (Key::ReadSitemaps, "--no-sitemap", self.no_sitemap, false),
            (Key::Nofollow, "--nofollow", self.nofollow, true),
            (Key::Cookies, "--no-cookies", self.no_cookies, false),
        ]
    }

    fn texts(&self) -> [(Key, &Option<String>); 24] {
        [
            (Key::MaxPages, &self.max_pages),
            (Key::MaxDepth, &self.depth),
            (Key::MaxDuration, &self.max_duration),
            (Key::MaxBytes, &self.max_bytes),
            (Key::MaxPerHost, &self.max_per_host),
            (Key::MaxPerSite, &self.max_per_site),
            (Key::Patience, &self.patience),
            (Key::MaxBody, &self.max_body),
            (Key::Scope, &self.scope),
            (Key::ExtraHops, &self.extra_hops),
            (Key::QueryParams, &self.query_params),
            (Key::Topic, &self.topic),
            (Key::Delay, &self.delay),
            (Key::PerHost, &self.per_host),
            (Key::Rate, &self.rate),
            (Key::Workers, &self.workers),
            (Key::Fairness, &self.fairness),
            (Key::CrawlDelayMax, &self.crawl_delay_max),
            (Key::Retries, &self.retries),
            (Key::Keep, &self.keep),
            (Key::FailOn, &self.fail_on),
            (Key::MaxErrors, &self.max_errors),
            (Key::MinFreeDisk, &self.min_free_disk),
            (Key::Parsers, &self.parsers),
        ]
    }

    fn lists(&self) -> [(Key, &Vec<String>); 4] {
        [
            (Key::StartUrls, &self.urls),
            (Key::Include, &self.include),
            (Key::Exclude, &self.exclude),
            (Key::AllowHosts, &self.allow_host),
        ]
    }
}
