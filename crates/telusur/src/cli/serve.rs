//! The arguments of `serve` and `key`.

use clap::{Args, Subcommand};

use super::given::{given_lists, given_texts, of_flag};
use crate::settings::{Given, Key, Raw};

/// The arguments of `serve`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "Examples:\n  \
    telusur serve\n  \
    curl -d '{\"url\":\"https://example.com\",\"max_pages\":10}' http://127.0.0.1:8088/crawl\n  \
    telusur key create --scope admin && telusur serve --listen 0.0.0.0:8088\n\n\
    Crawls go on by themselves when the service starts. Settings of crawls (delay, contact, limits ...) come from\n\
    the environment and telusur.toml, and hold for every crawl that says nothing else.")]
pub struct ServeArgs {
    /// Where to listen [default: 127.0.0.1:8088]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// A name that the service goes by besides localhost and its addresses
    #[arg(long, value_name = "HOST")]
    pub allowed_host: Vec<String>,
    /// Searching needs no key
    #[arg(long)]
    pub public_search: bool,
    /// Nothing may be changed: search and look
    #[arg(long)]
    pub read_only: bool,
    /// No web pages, only the API
    #[arg(long)]
    pub no_ui: bool,

    /// Crawls that run at the same time [default: 8]
    #[arg(long, value_name = "N", help_heading = "Crawls")]
    pub max_running: Option<String>,
    /// Crawls that may wait for their turn [default: 1000]
    #[arg(long, value_name = "N", help_heading = "Crawls")]
    pub max_queued: Option<String>,
    /// Least time between the starts of two requests to one host [default: 1s]
    #[arg(long, value_name = "DURATION", help_heading = "Crawls")]
    pub delay: Option<String>,
    /// Most requests under way at one host [default: 1]
    #[arg(long, value_name = "N", help_heading = "Crawls")]
    pub per_host: Option<String>,
    /// Most requests under way in one crawl
    #[arg(short, long, value_name = "N|auto", help_heading = "Crawls")]
    pub workers: Option<String>,
    /// How Telusur names itself; {version} and {contact} are filled in
    #[arg(short = 'A', long, value_name = "TEXT", help_heading = "Crawls")]
    pub user_agent: Option<String>,
    /// Page or mail address where the owner of a site reaches you; part of the user agent
    #[arg(long, value_name = "URL|MAIL", help_heading = "Crawls")]
    pub contact: Option<String>,
    /// Crawls may ask this address, range or HOST:PORT although it is not public
    #[arg(long, value_name = "CIDR|HOST:PORT", help_heading = "Crawls")]
    pub allow_private: Vec<String>,
    /// Pause crawls when less space is left [default: 2GiB]
    #[arg(long, value_name = "SIZE", help_heading = "Crawls")]
    pub min_free_disk: Option<String>,
    /// While no crawl runs, read what is stored at this pace per second to find damage; 0B = off [default: 0B]
    #[arg(long, value_name = "SIZE")]
    pub scrub_pace: Option<String>,
}

impl ServeArgs {
    /// The settings among them that were given.
    pub fn given(&self) -> Vec<Given> {
        let texts = [
            (Key::Listen, &self.listen),
            (Key::MaxRunning, &self.max_running),
            (Key::MaxQueued, &self.max_queued),
            (Key::Delay, &self.delay),
            (Key::PerHost, &self.per_host),
            (Key::Workers, &self.workers),
            (Key::UserAgent, &self.user_agent),
            (Key::Contact, &self.contact),
            (Key::MinFreeDisk, &self.min_free_disk),
            (Key::ScrubPace, &self.scrub_pace),
        ];
        let lists =
            [(Key::AllowedHosts, &self.allowed_host), (Key::AllowPrivate, &self.allow_private)];
        let mut given: Vec<Given> = given_texts(texts).chain(given_lists(lists)).collect();
        if self.public_search {
            given.push(of_flag(Key::PublicSearch, Raw::Switch(true)));
        }
        given
    }
}

/// The commands of `key`.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Make a key; it is shown this once
    Create {
        /// What it allows: search, read, crawl, metrics, admin
        #[arg(long, value_name = "SCOPE", required = true, value_delimiter = ',')]
        scope: Vec<String>,
        /// What it is for
        #[arg(long, value_name = "TEXT", default_value = "")]
        name: String,
        /// Days until it ends; for ever if it is not said
        #[arg(long, value_name = "DAYS")]
        expires: Option<u32>,
    },
    /// List keys
    Ls,
    /// Revoke a key
    Revoke {
        /// The key's id, as `telusur key ls` shows it
        #[arg(value_name = "ID")]
        id: String,
    },
}
