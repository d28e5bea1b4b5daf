//! Which lines of a robots.txt concern us: groups, their names, and how they merge (RFC 9309, 2.2.1).

use telusur_model::URL_BYTES_MAX;

use super::lines::{Record, RobotsLine};
use super::pattern::Pattern;
use super::{Access, Rule, Rules, SITEMAPS_MAX};

/// `Content-Signal` lines that are kept, and how long each may be. The signals in use are three
/// short words; the bounds keep a hostile file from filling the cache of rules.
const CONTENT_SIGNALS_MAX: usize = 16;
const CONTENT_SIGNAL_BYTES_MAX: usize = 256;

/// Collects the lines for one crawler, and those for everybody in case no group names it.
pub(super) struct Groups {
    token: Vec<u8>,
    /// All groups that name us as closely as any does.
    own: Group,
    /// How many bytes of our token they name; 0 while no group names us.
    own_token_bytes: usize,
    everyone: Group,
    /// Whom the next rule is for.
    current: Audience,
    /// Content signals above all groups: said to everybody, also to those with a group of their own.
    common_signals: Vec<Box<str>>,
    sitemaps: Vec<Box<str>>,
    sitemaps_dropped: u32,
}

#[derive(Default)]
struct Group {
    rules: Vec<Rule>,
    crawl_delay_ms: Option<u64>,
    content_signals: Vec<Box<str>>,
}

#[derive(Default)]
struct Audience {
    own: bool,
    everyone: bool,
    /// A rule was seen, so the next user-agent line begins a new group.
    is_closed: bool,
    /// A user-agent line was seen: without one there is no group at all.
    is_group: bool,
}

impl Groups {
    pub(super) fn new(product_token: &str) -> Self {
        Self {
            token: token_of(product_token.as_bytes()).to_vec(),
            own: Group::default(),
            own_token_bytes: 0,
            everyone: Group::default(),
            current: Audience::default(),
            common_signals: Vec::new(),
            sitemaps: Vec::new(),
            sitemaps_dropped: 0,
        }
    }

    pub(super) fn add(&mut self, line: &RobotsLine<'_>) {
        match line.record {
            Record::UserAgent(name) => self.add_name(name),
            Record::Allow(path) => self.add_rule(Access::Allow, path, line.number),
            Record::Disallow(path) => self.add_rule(Access::Disallow, path, line.number),
            // RFC 9309, 2.2.4: what follows does not end a group, nor the list of its names.
            Record::CrawlDelay(text) => self.add_crawl_delay(text),
            Record::ContentSignal(text) => self.add_content_signal(text),
            Record::Sitemap(text) => self.add_sitemap(text),
        }
    }

    pub(super) fn into_rules(self) -> Rules {
        // A group that names us replaces the one for everybody, even if it is empty.
        let mut group = if self.own_token_bytes > 0 { self.own } else { self.everyone };
        group.rules.sort_by_key(|rule| (std::cmp::Reverse(rule.pattern.octets()), rule.access));
        let mut content_signals = self.common_signals;
        content_signals.append(&mut group.content_signals);
        Rules {
            rules: group.rules.into(),
            crawl_delay_ms: group.crawl_delay_ms,
            content_signals: content_signals.into(),
            sitemaps: self.sitemaps.into(),
            sitemaps_dropped: self.sitemaps_dropped,
        }
    }

    fn add_name(&mut self, name: &[u8]) {
        if self.current.is_closed {
            self.current = Audience::default();
        }
        self.current.is_group = true;
        if is_everyone(name) {
            self.current.everyone = true;
            return;
        }
        let named_bytes = named_bytes(&self.token, token_of(name));
        if named_bytes > self.own_token_bytes {
            // The groups so far name a whole family of crawlers; this one means us more closely.
            self.own = Group::default();
            self.own_token_bytes = named_bytes;
        }
        if named_bytes > 0 && named_bytes == self.own_token_bytes {
            self.current.own = true;
        }
    }

    fn add_rule(&mut self, access: Access, path: &[u8], line: u32) {
        self.current.is_closed = true;
        // "Disallow:" without a path forbids nothing, and "Allow:" allows nothing.
        let Some(pattern) = Pattern::parse(path) else { return };
        let rule = Rule { access, pattern, line };
        self.for_each_group(|group| group.rules.push(rule.clone()));
    }

    fn add_crawl_delay(&mut self, text: &[u8]) {
        let Some(delay_ms) = milliseconds(text) else { return };
        // Of several delays the longest one is polite to all of them.
        self.for_each_group(|group| {
            group.crawl_delay_ms = group.crawl_delay_ms.max(Some(delay_ms));
        });
    }

    fn add_content_signal(&mut self, text: &[u8]) {
        let Some(signal) = short_text(text, CONTENT_SIGNAL_BYTES_MAX) else { return };
        let push = |signals: &mut Vec<Box<str>>| {
            if signals.len() < CONTENT_SIGNALS_MAX {
                signals.push(signal.into());
            }
        };
        if self.current.is_group {
            self.for_each_group(|group| push(&mut group.content_signals));
        } else {
            push(&mut self.common_signals);
        }
    }

    fn add_sitemap(&mut self, text: &[u8]) {
        let Some(sitemap) = short_text(text, URL_BYTES_MAX) else {
            self.sitemaps_dropped += 1;
            return;
        };
        if self.sitemaps.iter().any(|known| **known == *sitemap) {
            return;
        }
        if self.sitemaps.len() == SITEMAPS_MAX {
            self.sitemaps_dropped += 1;
            return;
        }
        self.sitemaps.push(sitemap.into());
    }

    fn for_each_group(&mut self, mut change: impl FnMut(&mut Group)) {
        if self.current.own {
            change(&mut self.own);
        }
        if self.current.everyone {
            change(&mut self.everyone);
        }
    }
}

/// `*`, perhaps with words behind it.
fn is_everyone(name: &[u8]) -> bool {
    matches!(name, [b'*'] | [b'*', b' ' | b'\t', ..])
}

/// The product token at the beginning of a name: `Telusur` of `Telusur/1.0 (+https://…)`. The RFC
/// has letters, `_` and `-` only; digits are in the names of too many crawlers to leave them out.
fn token_of(name: &[u8]) -> &[u8] {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let end = name.iter().position(|byte| !is_token(byte)).unwrap_or(name.len());
    &name[..end]
}

/// How many bytes of our token a group's token names: all of them, or the beginning up to a `-`, `_`
/// or digit (`Telusur` names `Telusur-Images` too, as long as no group does so more closely), or
/// none.
fn named_bytes(ours: &[u8], theirs: &[u8]) -> usize {
    let Some((beginning, rest)) = ours.split_at_checked(theirs.len()) else { return 0 };
    let is_word_end = rest.first().is_none_or(|byte| !byte.is_ascii_alphabetic());
    if is_word_end && beginning.eq_ignore_ascii_case(theirs) { theirs.len() } else { 0 }
}

/// Seconds with or without a fraction; text behind them is ignored: `2`, `0.5`, `10 seconds`.
fn milliseconds(text: &[u8]) -> Option<u64> {
    let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let end = text.iter().position(|byte| !is_number(byte)).unwrap_or(text.len());
    let seconds: f64 = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
    // A float that is too large becomes the largest integer: the one who waits has a cap.
    Some((seconds * 1000.0).ceil() as u64)
}

fn short_text(bytes: &[u8], bytes_max: usize) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    if text.is_empty() || text.len() > bytes_max { None } else { Some(text) }
}
