//! [`SingleFetch`]: one page, fetched with the manners of a crawl. Every hop passes the address guard
//! and the robots.txt of its origin; nothing is stored.

use std::collections::HashMap;
use std::sync::Arc;

use telusur_fetch::robots::{self, Rules, product_token};
use telusur_fetch::{Fetch, FetchOrder, FetchProfile};
use telusur_model::{FetchOutcome, PageUrl, RawPage, Reason, RobotsRules};

/// Redirects that are followed from robots.txt (RFC 9309, 2.3.1.2).
const ROBOTS_REDIRECTS_MAX: usize = 5;

/// Fetches single pages.
pub struct SingleFetch<'a> {
    fetcher: &'a dyn Fetch,
    profile: Arc<FetchProfile>,
    robots_profile: Arc<FetchProfile>,
    robots: RobotsRules,
    redirects_max: usize,
    /// What is known of the origins on the way: at most one for each redirect.
    rules: HashMap<String, Arc<Rules>>,
}

/// A page, and the way to it.
#[derive(Debug)]
pub struct Arrived {
    /// The page.
    pub page: RawPage,
    /// The URLs that redirected here, first to last.
    pub redirects: Vec<String>,
    /// How long the last request took.
    pub took_ms: u64,
}

/// Why there is no page.
#[derive(Debug, PartialEq, Eq)]
pub struct NotFetched {
    /// Where it ended.
    pub url: String,
    /// Why.
    pub why: Reason,
    /// What exactly, for people.
    pub detail: String,
}

impl<'a> SingleFetch<'a> {
    /// A fetch that asks like this.
    pub fn new(
        fetcher: &'a dyn Fetch,
        profile: FetchProfile,
        robots: RobotsRules,
        redirects_max: usize,
    ) -> Self {
        // One byte more than is read tells that there is more.
        let robots_profile = profile.with_body_bytes_max(robots::BYTES_MAX as u64 + 1);
        Self {
            fetcher,
            profile: Arc::new(profile),
            robots_profile: Arc::new(robots_profile),
            robots,
            redirects_max,
            rules: HashMap::new(),
        }
    }

    /// Fetches a page and follows where it is sent.
    pub async fn fetch(&mut self, start: PageUrl) -> Result<Arrived, NotFetched> {
        let mut url = start;
        let mut redirects = Vec::new();
        loop {
            self.ask_robots(&url).await?;
            let order = FetchOrder::new(url.clone(), Arc::clone(&self.profile));
            let fetched = self.fetcher.fetch(order).await;
            let to = match fetched.outcome {
                FetchOutcome::Page(page) => {
                    return Ok(Arrived { page, redirects, took_ms: fetched.took_ms });
                }
                FetchOutcome::Redirected { to, .. } => to,
                outcome => return Err(not_fetched(&url, &outcome)),
            };
            redirects.push(url.to_string());
            if redirects.iter().any(|earlier| earlier == to.as_str()) {
                let detail = format!("redirects to {to}");
                return Err(NotFetched { url: url.to_string(), why: Reason::RedirectLoop, detail });
            }
            if redirects.len() > self.redirects_max {
                let detail = format!("more than {} in a row, the next is {to}", self.redirects_max);
                let why = Reason::TooManyRedirects;
                return Err(NotFetched { url: url.to_string(), why, detail });
            }
            url = to;
        }
    }

    /// Whether the origin's robots.txt lets us ask for a URL.
    async fn ask_robots(&mut self, url: &PageUrl) -> Result<(), NotFetched> {
        if self.robots == RobotsRules::Ignore {
            return Ok(());
        }
        let origin = url.origin();
        let rules = match self.rules.get(&origin) {
            Some(rules) => Arc::clone(rules),
            None => {
                let rules = Arc::new(self.read_robots(url).await?);
                self.rules.insert(origin, Arc::clone(&rules));
                rules
            }
        };
        let verdict = rules.verdict(url);
        if verdict.allowed {
            return Ok(());
        }
        let rule = verdict.rule.map(|rule| format!("line {}: {rule}", rule.line()));
        let detail = rule.unwrap_or_default();
        Err(NotFetched { url: url.to_string(), why: Reason::RobotsDisallowed, detail })
    }

    /// Reads the robots.txt of a URL's origin, redirects included.
    async fn read_robots(&self, url: &PageUrl) -> Result<Rules, NotFetched> {
        let Ok(mut file) = url.join("/robots.txt") else { return Ok(Rules::default()) };
        for _ in 0..=ROBOTS_REDIRECTS_MAX {
            let order = FetchOrder::new(file.clone(), Arc::clone(&self.robots_profile));
            match self.fetcher.fetch(order).await.outcome {
                FetchOutcome::Page(page) if (200..300).contains(&page.status) => {
                    return Ok(Rules::parse(&page.body, product_token(self.profile.user_agent())));
                }
                // RFC 9309, 2.3.1.3: a file that the server refuses to show forbids nothing; 429 is
                // no refusal of the file.
                FetchOutcome::Page(page)
                    if (400..500).contains(&page.status) && page.status != 429 =>
                {
                    return Ok(Rules::default());
                }
                FetchOutcome::Redirected { to, .. } => file = to,
                outcome => return self.unreadable(&file, &outcome),
            }
        }
        // RFC 9309, 2.3.1.2: what five redirects do not reach may be taken as not there.
        Ok(Rules::default())
    }

    /// A robots.txt that cannot be read forbids everything, unless the user says otherwise. What
    /// would keep us from the page just the same keeps its own word: it says more.
    fn unreadable(&self, file: &PageUrl, outcome: &FetchOutcome) -> Result<Rules, NotFetched> {
        let failed = not_fetched(file, outcome);
        let is_final =
            matches!(outcome, FetchOutcome::Refused { .. }) || failed.why == Reason::DnsError;
        if is_final {
            return Err(failed);
        }
        if self.robots == RobotsRules::UnreachableAllows {
            return Ok(Rules::default());
        }
        let detail = format!("{}: {}", failed.why, failed.detail);
        Err(NotFetched { why: Reason::RobotsUnreachable, detail, ..failed })
    }
}

fn not_fetched(url: &PageUrl, outcome: &FetchOutcome) -> NotFetched {
    let (why, detail) = match outcome {
        FetchOutcome::Refused { why, detail } | FetchOutcome::Failed { why, detail, .. } => {
            (*why, detail.clone())
        }
        FetchOutcome::Page(page) => (Reason::HttpError, format!("status {}", page.status)),
        FetchOutcome::Redirected { status, .. } => (Reason::HttpError, format!("status {status}")),
        FetchOutcome::NotModified => (Reason::ProtocolError, "status 304, unasked".to_owned()),
    };
    NotFetched { url: url.to_string(), why, detail }
}
