//! The flags about how servers are asked, which whatever asks them has in common.

use std::path::PathBuf;

use clap::Args;

use super::given::{given_lists, given_texts, of_flag};
use crate::settings::{Given, Key, Raw};

/// How servers are asked.
#[derive(Args, Clone, Debug, Default)]
pub struct WireArgs {
    /// Do not read robots.txt. Only for sites that are yours
    #[arg(long, help_heading = "Manners")]
    pub ignore_robots: bool,
    /// What a robots.txt that cannot be read means: wait or allow [default: wait]
    #[arg(long, value_name = "WHAT", help_heading = "Manners")]
    pub robots_unreachable: Option<String>,

    /// How Telusur names itself; {version} and {contact} are filled in
    #[arg(short = 'A', long, value_name = "TEXT", help_heading = "HTTP")]
    pub user_agent: Option<String>,
    /// Page or mail address where the owner of a site reaches you; part of the user agent
    #[arg(long, value_name = "URL|MAIL", help_heading = "HTTP")]
    pub contact: Option<String>,
    /// Extra header 'Name: value', sent to the origins of the URLs that you name only; 'https://host=Name: value' to
    /// that origin only
    #[arg(short = 'H', long, value_name = "HEADER", help_heading = "HTTP")]
    pub header: Vec<String>,
    /// Longest that one visit may take [default: 30s]
    #[arg(long, value_name = "DURATION", help_heading = "HTTP")]
    pub timeout: Option<String>,
    /// Redirects followed one after the other [default: 10]
    #[arg(long, value_name = "N", help_heading = "HTTP")]
    pub max_redirects: Option<String>,
    /// Version of HTTP: auto, 1 or 2 [default: auto]
    #[arg(long, value_name = "VERSION", help_heading = "HTTP")]
    pub http: Option<String>,
    /// Ask through this proxy: http://host:3128 or socks5://host:1080
    #[arg(short = 'x', long, value_name = "URL", help_heading = "HTTP")]
    pub proxy: Option<String>,
    /// Log in: HOST=USER:env:VARIABLE, with the password in that variable; HOST may be an origin, https://host
    #[arg(long, value_name = "LOGIN", help_heading = "HTTP")]
    pub basic_auth: Vec<String>,
    /// Begin with the cookies of this cookies.txt file
    #[arg(long, value_name = "FILE", help_heading = "HTTP")]
    pub cookies: Option<PathBuf>,
    /// Do not verify the TLS certificates of this one host
    #[arg(long, value_name = "HOST", help_heading = "HTTP")]
    pub insecure_host: Vec<String>,
    /// Ask this address, range or HOST:PORT although it is not public
    #[arg(long, value_name = "CIDR|HOST:PORT", help_heading = "HTTP")]
    pub allow_private: Vec<String>,
}

impl WireArgs {
    /// The settings among them that were given.
    pub(super) fn given(&self) -> Vec<Given> {
        let texts = [
            (Key::RobotsUnreachable, &self.robots_unreachable),
            (Key::UserAgent, &self.user_agent),
            (Key::Contact, &self.contact),
            (Key::Timeout, &self.timeout),
            (Key::MaxRedirects, &self.max_redirects),
            (Key::Http, &self.http),
            (Key::Proxy, &self.proxy),
        ];
        let lists = [
            (Key::Headers, &self.header),
            (Key::BasicAuth, &self.basic_auth),
            (Key::InsecureHosts, &self.insecure_host),
            (Key::AllowPrivate, &self.allow_private),
        ];
        let mut given: Vec<Given> = given_texts(texts).chain(given_lists(lists)).collect();
        if let Some(path) = &self.cookies {
            given.push(of_flag(Key::CookiesFile, Raw::Path(path.clone())));
        }
        if self.ignore_robots {
            let raw = Raw::Switch(false);
            given.push(Given { key: Key::Robots, flag: "--ignore-robots", raw });
        }
        given
    }
}
