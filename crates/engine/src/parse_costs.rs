//! What parsing means for the rest of a crawl: hosts pay for the time that their pages take, and
//! whoever ends does not wait for the queue.

use telusur_frontier::{Frontier, PageCost, ParseCharge};
use telusur_ledger::VisitOutcome;
use telusur_model::{CrawlNo, Host, Moment, ParkedHost, Purpose, Reason, Visit};

use crate::crawl_task::CrawlTask;
use crate::parse_stage::ParseWork;

/// Longest that a page of an ending crawl waits for a thread to parse it.
const QUEUED_MS_MAX: u64 = 1_000;
/// Longest that an ending crawl waits for a page that is being parsed: as long as its CPU limit.
const PARSED_MS_MAX: u64 = 2_000;

/// Pages that are being parsed since then are not waited for.
pub(crate) fn stuck_since(now: Moment) -> Moment {
    Moment(now.0.saturating_sub(PARSED_MS_MAX))
}

/// The hosts of a crawl that are parked, at most this many.
const PARKED_SHOWN_MAX: usize = 20;

/// The hosts and sites of a crawl that are not asked because their pages keep stopping the parser.
pub(crate) fn parked_hosts(frontier: &Frontier, crawl: CrawlNo) -> Vec<ParkedHost> {
    let sites = frontier.parked_sites(crawl).map(|(site, parked)| (format!("*.{site}"), parked));
    let hosts = frontier.parked_hosts(crawl).map(|(host, parked)| (host.to_string(), parked));
    sites
        .chain(hosts)
        .take(PARKED_SHOWN_MAX)
        .map(|(host, parked)| ParkedHost {
            host,
            reason: Reason::ParseLimit,
            pages: parked.kills,
            left_s: parked.left_ms.map(|left_ms| left_ms.div_ceil(1000)),
        })
        .collect()
}

/// Why a visit is not carried out, if its host's pages cannot be parsed.
pub(crate) fn unparsable(visit: &Visit, frontier: &Frontier) -> Option<VisitOutcome> {
    if visit.purpose != Purpose::Page {
        return None;
    }
    let parked = frontier.parked(&visit.url.host()).filter(|parked| parked.left_ms.is_none())?;
    let kills = parked.kills;
    let detail = format!("the host is parked: {kills} of its pages in a row stopped the parser");
    Some(VisitOutcome::Failed { reason: Reason::ParseLimit, detail })
}

impl CrawlTask {
    /// Charges a host with what one of its pages has cost.
    pub(crate) fn parsed(&mut self, host: &Host, cost: PageCost) {
        let PageCost { cpu_ms, .. } = cost;
        match self.frontier.parsed(host, cost, self.clock.now()) {
            ParseCharge::None => {}
            ParseCharge::Quiet { ms } => {
                tracing::debug!(%host, cpu_ms, quiet_ms = ms, "a page was costly to parse");
            }
            ParseCharge::Parked { ms, kills } => {
                tracing::warn!(%host, kills, parked_ms = ms, "host parked: its pages stop the parser");
            }
            ParseCharge::GivenUp { kills } => {
                tracing::warn!(%host, kills, "host given up: its pages stop the parser each time");
            }
            ParseCharge::SiteParked { ms: Some(ms), kills } => {
                let site = host.site();
                tracing::warn!(%site, kills, parked_ms = ms, "site parked: pages of many of its hosts stop the parser");
            }
            ParseCharge::SiteParked { ms: None, kills } => {
                let site = host.site();
                tracing::warn!(%site, kills, "site given up: its pages stop the parser each time");
            }
        }
    }

    /// Takes the pages of an ending crawl back that have waited long enough: their visits stay queued.
    pub(crate) fn drop_parse_work(&mut self, crawl: CrawlNo, now: Moment) {
        let Some(long_ago) = now.0.checked_sub(QUEUED_MS_MAX) else { return };
        let dropped = self.parse.remove_older(crawl, Moment(long_ago));
        self.return_visits(dropped);
    }

    /// Takes everything back that a crawl has in the queue.
    pub(crate) fn drop_all_parse_work(&mut self, crawl: CrawlNo) {
        let dropped = self.parse.forget(crawl);
        self.return_visits(dropped);
    }

    fn return_visits(&mut self, dropped: Vec<ParseWork>) {
        for ParseWork { visit, fetched, .. } in dropped {
            self.leave_pipeline(&visit, fetched.body_bytes());
            self.frontier.returned(visit);
        }
    }
}
