//! What was asked of a host, and by which rules: something to show its webmaster.

use serde::{Deserialize, Serialize};
use telusur_fetch::robots::{Rules, product_token};
use telusur_ledger::{Store, StoreError, UrlState};
use telusur_model::{Crawl, Host, OriginRow, RequestHistory, RobotsAnswer, RobotsRules, Timestamp};

use super::handle::Control;
use super::operation::{Each, NoItem, Operation, OperationKind};
use crate::error::RequestError;
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
    type Reply = PolitenessReport;

    fn run(
        &self,
        control: &Control,
        _: Each<'_, NoItem>,
    ) -> Result<PolitenessReport, RequestError> {
        Ok(politeness(control.store.as_ref(), &Host::new(&self.host))?)
    }
}

/// Everything about one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolitenessReport {
    /// The host.
    pub host: String,
    /// Its robots.txt files, as they were read.
    pub origins: Vec<RobotsReport>,
    /// The crawls that asked it.
    pub crawls: Vec<CrawlManners>,
}

/// One robots.txt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsReport {
    /// Whose it is.
    pub origin: String,
    /// When it was asked for.
    pub asked_at: Timestamp,
    /// The URLs that redirected to it.
    pub redirects: Vec<String>,
    /// What came of it, in words.
    pub said: String,
    /// The lines that concern us.
    pub rules: Vec<String>,
    /// The delay that it asks for.
    pub crawl_delay_ms: Option<u64>,
    /// Its `Content-Signal` lines.
    pub content_signals: Vec<String>,
    /// Its `Sitemap` lines.
    pub sitemaps: Vec<String>,
}

/// How one crawl treated the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlManners {
    /// The crawl's id.
    pub crawl: String,
    /// Its alias.
    pub alias: String,
    /// How it named itself.
    pub user_agent: String,
    /// Whether it obeyed robots.txt.
    pub robots: RobotsRules,
    /// The least time between two requests that it was told to keep.
    pub delay_ms: u64,
    /// The longer one that the host taught it or asks for.
    pub learned_delay_ms: Option<u64>,
    /// Requests and the gaps between them.
    pub requests: RequestHistory,
    /// When the last one was sent.
    pub last_at: Option<Timestamp>,
    /// Pages stored.
    pub pages: u64,
    /// Failures and error pages.
    pub errors: u64,
    /// The latest requests for pages, the youngest first.
    pub recent: Vec<RecentRequest>,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentRequest {
    /// When it was sent.
    pub at: Timestamp,
    /// What was asked for.
    pub url: String,
    /// What came of it: a status or a reason.
    pub outcome: String,
}

fn politeness(store: &dyn Store, host: &Host) -> Result<PolitenessReport, StoreError> {
    let crawls = store.crawls()?;
    let agent = crawls.last().map(|record| record.crawl.fetch.user_agent.clone());
    let agent = agent.unwrap_or_else(|| telusur_model::FetchRules::default().user_agent);
    let origins = store.origins_of(host)?;
    let mut manners = Vec::new();
    for record in &crawls {
        manners.extend(crawl_manners(store, &record.crawl, host)?);
    }
    Ok(PolitenessReport {
        host: host.to_string(),
        origins: origins.iter().map(|row| robots_report(row, product_token(&agent))).collect(),
        crawls: manners,
    })
}

fn robots_report(row: &OriginRow, token: &str) -> RobotsReport {
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
    RobotsReport {
        origin: row.origin.clone(),
        asked_at: row.asked_at,
        redirects: row.redirects.clone(),
        said,
        rules: rules.in_file_order().iter().map(line).collect(),
        crawl_delay_ms: rules.crawl_delay_ms(),
        content_signals: rules.content_signals().map(str::to_owned).collect(),
        sitemaps: rules.sitemaps().map(str::to_owned).collect(),
    }
}

fn crawl_manners(
    store: &dyn Store,
    crawl: &Crawl,
    host: &Host,
) -> Result<Option<CrawlManners>, StoreError> {
    let Some(row) = store.hosts(crawl.no)?.into_iter().find(|row| row.host == *host) else {
        return Ok(None);
    };
    Ok(Some(CrawlManners {
        crawl: crawl.id.to_string(),
        alias: crawl.no.to_string(),
        user_agent: crawl.fetch.user_agent.clone(),
        robots: crawl.politeness.robots,
        delay_ms: crawl.politeness.delay_ms,
        learned_delay_ms: row.delay_ms,
        last_at: row.last_request_at,
        pages: row.pages,
        errors: row.errors,
        requests: row.requests,
        recent: recent(store, crawl, host)?,
    }))
}

fn recent(store: &dyn Store, crawl: &Crawl, host: &Host) -> Result<Vec<RecentRequest>, StoreError> {
    let mut recent = Vec::new();
    let mut add = |request: RecentRequest| {
        recent.push(request);
        if recent.len() >= 2 * RECENT_MAX {
            keep_youngest(&mut recent);
        }
    };
    each_page(store, crawl.no, |page| {
        if let Some(at) = page.requested_at.filter(|_| page.url.host() == *host) {
            let outcome = format!("status {}", page.status);
            add(RecentRequest { at, url: page.url.to_string(), outcome });
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
        let url = telusur_model::PageUrl::parse(&known.url);
        if url.is_ok_and(|url| url.host() == *host) {
            add(RecentRequest { at, url: known.url, outcome });
        }
        true
    })?;
    keep_youngest(&mut recent);
    Ok(recent)
}

fn keep_youngest(requests: &mut Vec<RecentRequest>) {
    requests.sort_by_key(|request| std::cmp::Reverse(request.at));
    requests.truncate(RECENT_MAX);
}
