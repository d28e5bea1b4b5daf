//! What a site's robots.txt lets us ask for, after RFC 9309. Bytes in, [`Rules`] out: this module
//! fetches nothing, keeps no cache and knows no clock.
//!
//! Where the RFC is silent we follow Google's published parser, because that is what webmasters
//! test with: misspelt names, a forgotten colon, a name that is followed by a version.
//!
//! Where we differ from it, the RFC decides:
//! - 2.2.2: a path and a rule are brought to one spelling before they are compared. `ツ` equals
//!   `%E3%83%84`, `%7b` equals `%7B` and `%62` equals `b`. Google's parser leaves the URL as it was
//!   handed over and decodes nothing.
//! - 2.2.2: `/robots.txt` itself is always allowed.
//! - 2.2.2: the octets of the rule must match. That `Allow: /a/index.html` allows `/a/` too is an
//!   extension of Google's, and would let us ask for what the file forbids.

mod directives;
mod groups;
mod lines;
mod pattern;

use std::fmt;

use serde::{Deserialize, Serialize};
use telusur_model::PageUrl;

pub use self::directives::directives;
use self::groups::Groups;
use self::pattern::{NormalPath, Pattern};

/// How much of a robots.txt is read: the 500 KiB that RFC 9309, 2.5 asks for. Hand over one byte
/// more where there is one: only that shows that the last line was cut.
pub const BYTES_MAX: usize = 500 * 1024;

/// `Sitemap` lines that are kept. Sites with more of them put them into an index file.
pub const SITEMAPS_MAX: usize = 100;

/// The name by which robots.txt files speak to a crawler with this user agent: its first product,
/// or the one that a `Mozilla/5.0 (compatible; Name/1.0)` says it is.
pub fn product_token(user_agent: &str) -> &str {
    let named = user_agent.split_once("compatible;").map_or(user_agent, |(_, rest)| rest);
    let named = named.trim_start();
    let end = named.find(|c: char| !(c.is_ascii_alphabetic() || c == '-' || c == '_'));
    match &named[..end.unwrap_or(named.len())] {
        "" => "*",
        token => token,
    }
}

/// What one robots.txt says to one crawler. The default has no rules and allows everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// The most specific first and `Allow` before `Disallow`: the first match decides.
    rules: Box<[Rule]>,
    crawl_delay_ms: Option<u64>,
    content_signals: Box<[Box<str>]>,
    sitemaps: Box<[Box<str>]>,
    sitemaps_dropped: u32,
}

/// One `Allow` or `Disallow` line. Shown as `Disallow: /private`, in normalised spelling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    access: Access,
    pattern: Pattern,
    line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Access {
    Allow,
    Disallow,
}

/// Whether a URL may be asked for, and which rule says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict<'rules> {
    /// Whether the URL may be asked for.
    pub allowed: bool,
    /// The rule that decided. Without one, no rule matched.
    pub rule: Option<&'rules Rule>,
}

impl Rules {
    /// Reads the part of a robots.txt that concerns the crawler with this product token, such as
    /// `Telusur`. Any bytes will do: what is not understood is passed over, as the RFC demands.
    pub fn parse(bytes: &[u8], product_token: &str) -> Self {
        let mut groups = Groups::new(product_token);
        let text = lines::readable(bytes);
        for line in lines::records(&text) {
            groups.add(&line);
        }
        groups.into_rules()
    }

    /// Judges a URL of the origin that this robots.txt belongs to.
    pub fn verdict(&self, url: &PageUrl) -> Verdict<'_> {
        // RFC 9309, 2.2.2: the file itself is always allowed.
        if url.path() == "/robots.txt" {
            return Verdict { allowed: true, rule: None };
        }
        let path = NormalPath::new(url.target());
        let rule = self.rules.iter().find(|rule| rule.pattern.matches(&path));
        let allowed = rule.is_none_or(|rule| rule.access == Access::Allow);
        Verdict { allowed, rule }
    }

    /// How long the site asks us to wait between two requests. Not capped: that is for the one who
    /// waits.
    pub fn crawl_delay_ms(&self) -> Option<u64> {
        self.crawl_delay_ms
    }

    /// The values of the `Content-Signal` lines that concern us, such as `search=yes, ai-train=no`.
    pub fn content_signals(&self) -> impl Iterator<Item = &str> {
        self.content_signals.iter().map(|signal| &**signal)
    }

    /// The values of the first [`SITEMAPS_MAX`] different `Sitemap` lines, not yet resolved and not
    /// judged: they may point anywhere.
    pub fn sitemaps(&self) -> impl Iterator<Item = &str> {
        self.sitemaps.iter().map(|sitemap| &**sitemap)
    }

    /// How many `Sitemap` lines were left out: beyond [`SITEMAPS_MAX`], or longer than any URL may be.
    pub fn sitemaps_dropped(&self) -> u32 {
        self.sitemaps_dropped
    }

    /// How many `Allow` and `Disallow` lines concern us.
    pub fn rules_count(&self) -> usize {
        self.rules.len()
    }

    /// The `Allow` and `Disallow` lines that concern us, in the order of the file.
    pub fn in_file_order(&self) -> Vec<&Rule> {
        let mut rules: Vec<&Rule> = self.rules.iter().collect();
        rules.sort_by_key(|rule| rule.line);
        rules
    }
}

impl Rule {
    /// The number of its line in the file, from 1.
    pub fn line(&self) -> u32 {
        self.line
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.access {
            Access::Allow => "Allow",
            Access::Disallow => "Disallow",
        };
        write!(f, "{name}: {}", self.pattern)
    }
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
