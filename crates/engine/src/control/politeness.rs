//! What was asked of a host, and by which rules: something to show its webmaster.

use serde::{Deserialize, Serialize};
use telusur_fetch::robots::{Rules, product_token};
use telusur_ledger::{Store, StoreError, UrlState};
use telusur_model::{Crawl, Host, OriginRow, PageUrl, RequestHistory, RobotsAnswer, Timestamp};

use super::handle::Control;
use super::operation::{Each, NoItem, Operation, OperationKind};
use crate::error::RequestError;
use crate::json::{GapView, HostHistoryView, PolitenessView, RecentRequestView, RobotsFileView};
use crate::stored_page::each_page;

/// Requests that are listed one by one.
const RECENT_MAX: usize = 20;

/// What was asked of a host, and by which rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportPoliteness {
    /// The host's name.
    pub host: String,
}

impl Operation for ReportPoliteness {
    const KIND: OperationKind = OperationKind::ReportPoliteness;
    type Item = NoItem;
    type Reply = PolitenessView;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<PolitenessView, RequestError> {
        Ok(politeness(control.store.as_ref(), &Host::new(&self.host))?)
    }
}

fn politeness(store: &dyn Store, host: &Host) -> Result<PolitenessView, StoreError> {
    let crawls = store.crawls()?;
    let agent = crawls.last().map(|record| record.crawl.fetch.user_agent.clone());
    let agent = agent.unwrap_or_else(|| telusur_model::FetchRules::default().user_agent);
    let origins = store.origins_of(host)?;
    let mut histories = Vec::new();
    for record in &crawls {
        histories.extend(history(store, &record.crawl, host)?);
    }
    Ok(PolitenessView {
        host: host.to_string(),
        origins: origins.iter().map(|row| robots_file(row, product_token(&agent))).collect(),
        crawls: histories,
    })
}

fn robots_file(row: &OriginRow, token: &str) -> RobotsFileView {
    let (said, rules) = match &row.robots {
        RobotsAnswer::Text { text } => {
            let rules = Rules::parse(text, token);
            let lines = rules.rules_count();
            (format!("{} bytes, {lines} rules for {token}", text.len()), rules)
        }
        RobotsAnswer::Missing { why } => {
            (format!("none ({why}): nothing is forbidden"), Rules::default())
        }
        RobotsAnswer::Unreachable { why, detail } => {
            (format!("cannot be read ({why}: {detail}): nothing is asked"), Rules::default())
        }
    };
    let line = |rule: &&telusur_fetch::robots::Rule| format!("line {}: {rule}", rule.line());
    RobotsFileView {
        origin: row.origin.clone(),
        asked_at: row.asked_at.rfc3339(),
        redirects: row.redirects.clone(),
        said,
        rules: rules.in_file_order().iter().map(line).collect(),
        crawl_delay_ms: rules.crawl_delay_ms(),
        content_signals: rules.content_signals().map(str::to_owned).collect(),
        sitemaps: rules.sitemaps().map(str::to_owned).collect(),
    }
}

fn history(
    store: &dyn Store,
    crawl: &Crawl,
    host: &Host,
) -> Result<Option<HostHistoryView>, StoreError> {
    let Some(row) = store.hosts(crawl.no)?.into_iter().find(|row| row.host == *host) else {
        return Ok(None);
    };
    Ok(Some(HostHistoryView {
        crawl: crawl.id.to_string(),
        alias: crawl.no.to_string(),
        user_agent: crawl.fetch.user_agent.clone(),
        robots: crawl.politeness.robots.word().to_owned(),
        delay_ms: crawl.politeness.delay_ms,
        learned_delay_ms: row.delay_ms,
        requests: row.requests.sent,
        first_request_at: row.requests.first_at.map(Timestamp::rfc3339),
        last_request_at: row.last_request_at.map(Timestamp::rfc3339),
        gap_ms_min: row.requests.gap_ms_min,
        gaps: gaps(&row.requests),
        fetched: row.pages,
        errors: row.errors,
        recent: recent(store, crawl, host)?,
    }))
}

fn gaps(requests: &RequestHistory) -> Vec<GapView> {
    let ends = RequestHistory::GAPS_MS.into_iter().map(Some).chain([None]);
    ends.zip(requests.gaps).map(|(below_ms, count)| GapView { below_ms, count }).collect()
}

/// A request, and when it was sent.
type Sent = (Timestamp, RecentRequestView);

fn recent(
    store: &dyn Store,
    crawl: &Crawl,
    host: &Host,
) -> Result<Vec<RecentRequestView>, StoreError> {
    let mut recent: Vec<Sent> = Vec::new();
    let mut add = |at: Timestamp, url: String, outcome: String| {
        recent.push((at, RecentRequestView { at: at.rfc3339(), url, outcome }));
        if recent.len() >= 2 * RECENT_MAX {
            keep_youngest(&mut recent);
        }
    };
    each_page(store, crawl.no, |page| {
        if let Some(at) = page.requested_at.filter(|_| page.url.host() == *host) {
            let outcome = format!("status {}", page.status);
            add(at, page.url.to_string(), outcome);
        }
        Ok(true)
    })?;
    store.settled_urls(crawl.no, &mut |known| {
        let (at, outcome) = match &known.state {
            UrlState::Redirected { status, at, .. } => (*at, format!("status {status}")),
            UrlState::Failed { reason, at, .. } => (*at, reason.to_string()),
            UrlState::Sitemap { at, .. } => (*at, "sitemap".to_owned()),
            UrlState::Queued { .. } | UrlState::Page { .. } | UrlState::Skipped { .. } => {
                return true;
            }
        };
        if PageUrl::parse(&known.url).is_ok_and(|url| url.host() == *host) {
            add(at, known.url, outcome);
        }
        true
    })?;
    keep_youngest(&mut recent);
    Ok(recent.into_iter().map(|(_, request)| request).collect())
}

fn keep_youngest(requests: &mut Vec<Sent>) {
    requests.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    requests.truncate(RECENT_MAX);
}
