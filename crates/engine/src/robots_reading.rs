//! Reads the answer to a request for robots.txt: what it means for the visits that wait for it.

use std::sync::Arc;

use telusur_fetch::robots::Rules;
use telusur_frontier::Disposition;
use telusur_model::{
    FetchOutcome, Fetched, NotFoundLook, OriginRow, PageUrl, Reason, RobotsAnswer, Timestamp, Visit,
};

/// Redirects that are followed from robots.txt (RFC 9309, 2.3.1.2).
const REDIRECTS_MAX: usize = 5;

/// What came of a prerequisite.
pub(crate) enum PrerequisiteEnd {
    Robots(RobotsEnd),
    /// How the origin answers for a page that does not exist; `None`: nobody knows.
    Probe(Option<NotFoundLook>),
}

/// What came of asking for robots.txt.
pub(crate) enum RobotsEnd {
    /// It is known what the origin allows.
    Known { row: OriginRow, rules: Arc<Rules> },
    /// It is elsewhere.
    Redirected { to: PageUrl },
    /// It cannot be read now, and is asked for again.
    Later { after_ms: u64, counted: bool, why: Reason, detail: String },
    /// It cannot be read.
    Unreachable { row: OriginRow, why: Reason, detail: String },
}

/// What the end of a prerequisite for robots.txt means.
pub(crate) fn robots_end(
    visit: &Visit,
    fetched: Fetched,
    disposition: Disposition,
    product_token: &str,
    at: Timestamp,
) -> RobotsEnd {
    let origin = Origin { visit, at };
    if let Disposition::Retry { after_ms, counted } = disposition {
        let (why, detail) = trouble(&fetched.outcome);
        return RobotsEnd::Later { after_ms, counted, why, detail };
    }
    match fetched.outcome {
        FetchOutcome::Page(page) if (200..300).contains(&page.status) => {
            let rules = Arc::new(Rules::parse(&page.body, product_token));
            let text = page.body[..page.body.len().min(telusur_fetch::robots::BYTES_MAX)].to_vec();
            RobotsEnd::Known { row: origin.row(RobotsAnswer::Text { text }), rules }
        }
        // RFC 9309, 2.3.1.3: a file that the server refuses to show forbids nothing, even when the
        // refusal is 401 or 403. 429 is no refusal of the file: we were too fast.
        FetchOutcome::Page(page) if (400..500).contains(&page.status) && page.status != 429 => {
            origin.missing(format!("status {}", page.status))
        }
        FetchOutcome::Redirected { to, .. } if origin.may_follow(&to) => {
            RobotsEnd::Redirected { to }
        }
        // RFC 9309, 2.3.1.2: what five redirects do not reach may be taken as not there.
        FetchOutcome::Redirected { .. } => {
            origin.missing(format!("more than {REDIRECTS_MAX} redirects"))
        }
        outcome => {
            let (why, detail) = trouble(&outcome);
            let answer = RobotsAnswer::Unreachable { why, detail: detail.clone() };
            RobotsEnd::Unreachable { row: origin.row(answer), why, detail }
        }
    }
}

/// The origin that a prerequisite is about.
struct Origin<'a> {
    visit: &'a Visit,
    at: Timestamp,
}

impl Origin<'_> {
    fn row(&self, robots: RobotsAnswer) -> OriginRow {
        OriginRow {
            origin: self.visit.first_url().origin(),
            asked_at: self.at,
            redirects: self.visit.redirects.clone(),
            robots,
            not_found: None,
        }
    }

    fn missing(&self, why: String) -> RobotsEnd {
        RobotsEnd::Known {
            row: self.row(RobotsAnswer::Missing { why }),
            rules: Arc::new(Rules::default()),
        }
    }

    /// A circle ends like any other chain that is too long.
    fn may_follow(&self, to: &PageUrl) -> bool {
        let is_circle = to == &self.visit.url
            || self.visit.redirects.iter().any(|earlier| earlier == to.as_str());
        self.visit.redirects.len() < REDIRECTS_MAX && !is_circle
    }
}

/// Why robots.txt could not be read. What would hold for every page of the origin just the same (no
/// such name, an address that is never asked) keeps its own word: it says more.
fn trouble(outcome: &FetchOutcome) -> (Reason, String) {
    match outcome {
        FetchOutcome::Refused { why, detail } => (*why, detail.clone()),
        FetchOutcome::Failed { why: why @ Reason::DnsError, detail, .. } => (*why, detail.clone()),
        FetchOutcome::Failed { why, detail, .. } => {
            (Reason::RobotsUnreachable, format!("robots.txt: {why}: {detail}"))
        }
        FetchOutcome::Page(page) => {
            (Reason::RobotsUnreachable, format!("robots.txt: status {}", page.status))
        }
        FetchOutcome::Redirected { status, .. } => {
            (Reason::RobotsUnreachable, format!("robots.txt: status {status}"))
        }
        FetchOutcome::NotModified => {
            (Reason::RobotsUnreachable, "robots.txt: status 304".to_owned())
        }
    }
}
