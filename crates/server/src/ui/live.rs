//! A crawl while it runs, and after: its counters and charts. The part that moves is a page of its own,
//! which a script asks for again and again; without scripts, loading the page again does the same.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use telusur_engine::FollowerReport;
use telusur_model::{CrawlNo, Reason};

use super::bars::{Bar, bars, by_count, by_number, status_tone};
use super::frame::{Frame, Viewer, render};
use super::search::crawl_name;
use super::words::{Words, fill, state_word};
use crate::json::{CrawlView, StatsView};
use crate::problem::Problem;
use crate::service::Service;

/// Waiting URLs that are shown beside the counters.
const QUEUE_SHOWN: usize = 8;
/// Depths and reasons that are shown.
const BARS_MAX: usize = 12;

/// What stands above every page about one crawl.
pub(crate) struct Head {
    pub(crate) alias: String,
    pub(crate) name: String,
    pub(crate) is_over: bool,
    pub(crate) is_read_only: bool,
    /// The path of an order, and what its button says.
    pub(crate) actions: Vec<(&'static str, &'static str)>,
    pub(crate) tabs: Vec<Tab>,
}

/// One of the pages about a crawl.
pub(crate) struct Tab {
    pub(crate) path: &'static str,
    pub(crate) text: &'static str,
    pub(crate) is_current: bool,
}

impl Head {
    pub(crate) fn of(
        crawl: &CrawlView,
        current: &str,
        words: &'static Words,
        service: &Service,
    ) -> Self {
        let mut actions = Vec::new();
        match crawl.state.as_str() {
            "running" | "queued" => {
                actions.extend([("pause", words.do_pause), ("stop", words.do_stop)]);
            }
            "paused" => actions.extend([("resume", words.do_resume), ("stop", words.do_stop)]),
            "stopped" => actions.push(("resume", words.do_resume)),
            _ => {}
        }
        if crawl.stats.failed > 0 || crawl.links.coverage.is_some() {
            actions.push(("retry", words.do_retry));
        }
        let mut tabs = vec![
            ("", words.tab_overview),
            ("/pages", words.tab_pages),
            ("/queue", words.tab_queue),
            ("/hosts", words.tab_hosts),
            ("/errors", words.tab_errors),
            ("/skipped", words.tab_skipped),
        ];
        if crawl.links.coverage.is_some() {
            tabs.push(("/coverage", words.tab_coverage));
        }
        if !service.settings().read_only {
            tabs.push(("/settings", words.tab_settings));
        }
        let tab = |(path, text)| Tab { path, text, is_current: path == current };
        Self {
            alias: crawl.alias.clone(),
            name: crawl_name(crawl),
            is_over: crawl.ended_at.is_some(),
            is_read_only: service.settings().read_only,
            actions,
            tabs: tabs.into_iter().map(tab).collect(),
        }
    }
}

#[derive(Template)]
#[template(path = "crawl.html")]
struct CrawlPage {
    frame: Frame,
    head: Head,
    moving: MovingPart,
}

#[derive(Template)]
#[template(path = "moving.html")]
struct MovingPart {
    words: &'static Words,
    alias: String,
    state: String,
    state_word: String,
    since: String,
    left: Option<String>,
    reason: Option<(&'static str, String)>,
    suspects_network: bool,
    /// What is behind, and why.
    behind_notices: Vec<(String, String)>,
    notices: Vec<String>,
    is_moving: bool,
    counters: Vec<(&'static str, String)>,
    panels: Vec<Panel>,
    queue: Vec<String>,
}

struct Panel {
    title: &'static str,
    note: Option<String>,
    bars: Vec<Bar>,
}

/// The first page about a crawl.
pub(crate) async fn overview(
    State(service): State<Service>,
    Path(id): Path<String>,
    reader: Viewer,
) -> Result<Response, Problem> {
    let (crawl, moving) = moving(&service, service.crawl_no(&id)?, &reader).await?;
    let head = Head::of(&crawl, "", reader.words(), &service);
    render(&CrawlPage { frame: reader.frame("crawls", head.name.clone()), head, moving })
}

/// Only the part of it that moves.
pub(crate) async fn moving_part(
    State(service): State<Service>,
    Path(id): Path<String>,
    reader: Viewer,
) -> Result<Response, Problem> {
    let (_, moving) = moving(&service, service.crawl_no(&id)?, &reader).await?;
    render(&moving)
}

async fn moving(
    service: &Service,
    no: CrawlNo,
    reader: &Viewer,
) -> Result<(CrawlView, MovingPart), Problem> {
    let crawl = service.crawl(no).await?;
    let queue = service.frontier(no, QUEUE_SHOWN, None).await?;
    let (words, lang, stats) = (reader.words(), reader.lang, &crawl.stats);
    let finished = crawl.finish_reason.clone().map(|word| (words.reason, word));
    let why = crawl.pause_detail.clone().or_else(|| crawl.pause_reason.clone());
    let paused = why.map(|word| (words.pause_reason, word));
    let left = |seconds| fill(words.time_left, &[("time", &lang.seconds(seconds))]);
    let part = MovingPart {
        words,
        alias: crawl.alias.clone(),
        state_word: state_word(words, &crawl.state).to_owned(),
        state: crawl.state.clone(),
        since: fill(words.since, &[("when", &lang.moment(&crawl.state_since))]),
        left: stats.eta_s.map(left),
        reason: finished.or(paused),
        suspects_network: stats.suspects_network,
        behind_notices: behind_notices(service, reader),
        notices: notices(stats, reader),
        is_moving: crawl.ended_at.is_none(),
        counters: vec![
            (words.count_fetched, lang.count(stats.fetched)),
            (words.count_queue, lang.count(stats.queued)),
            (words.count_errors, lang.count(errors(stats))),
            (words.count_skipped, lang.count(stats.skipped)),
            (words.count_bytes, lang.bytes(stats.bytes)),
            (words.count_speed, lang.decimal(stats.pages_per_s, 1)),
        ],
        panels: panels(&crawl, reader),
        queue: queue.items.into_iter().map(|it| it.url).collect(),
    };
    Ok((crawl, part))
}

/// That indexing, or what else is derived from pages, is behind, and why.
pub(crate) fn behind_notices(service: &Service, reader: &Viewer) -> Vec<(String, String)> {
    let (words, lang) = (reader.words(), reader.lang);
    let notice = |report: FollowerReport| {
        let text = if report.is_index() { words.index_behind } else { words.follower_behind };
        let trouble = report.trouble?;
        let (pages, when) = (lang.count(report.lag), lang.moment(&trouble.since.rfc3339()));
        let filled = [("name", report.name.as_str()), ("pages", &pages), ("when", &when)];
        Some((fill(text, &filled), trouble.why))
    };
    service.followers().into_iter().filter_map(notice).collect()
}

/// What is worth a sentence: what the crawl waits for, and what it left out.
fn notices(stats: &StatsView, reader: &Viewer) -> Vec<String> {
    let (words, lang) = (reader.words(), reader.lang);
    let wait = |seconds| fill(words.retry_after, &[("time", &lang.seconds(seconds))]);
    let left_out = stats.left_out.iter().map(|row| {
        let count = lang.count(row.urls);
        let count = if row.at_least { format!("≥ {count}") } else { count };
        let is_raised = row.reason != Reason::TrapSuspected.word();
        let words = if is_raised { words.left_out } else { words.left_out_trap };
        fill(words, &[("n", &*count), ("reason", &*row.reason), ("flag", &*row.flag)])
    });
    stats.retry_after_s.map(wait).into_iter().chain(left_out).collect()
}

/// The URLs that did not answer, those that answered with an error, and the pages that could not be
/// parsed: what the list of errors holds.
pub(crate) fn errors(stats: &StatsView) -> u64 {
    let parse_failed = stats.failures.get(Reason::ParseFailed.word()).copied().unwrap_or(0);
    stats.failed + stats.fetched.saturating_sub(stats.ok) + parse_failed
}

fn panels(crawl: &CrawlView, reader: &Viewer) -> Vec<Panel> {
    let (words, lang, stats) = (reader.words(), reader.lang, &crawl.stats);
    let first = |counts: Vec<(&str, u64)>, tone: fn(&str) -> &'static str| {
        bars(lang, counts.into_iter().take(BARS_MAX), tone)
    };
    let sites = stats.sites.iter().map(|site| (site.site.as_str(), site.fetched)).collect();
    let fairness = lang.decimal(stats.fairness_index, 2);
    let mut panels = vec![
        Panel {
            title: words.statuses,
            note: None,
            bars: first(by_number(&stats.status_codes), status_tone),
        },
        Panel {
            title: words.site_shares,
            note: Some(fill(words.fairness, &[("n", &fairness)])),
            bars: first(sites, |_| "plain"),
        },
        Panel {
            title: words.depths,
            note: None,
            bars: first(by_number(&stats.depths), |_| "plain"),
        },
    ];
    if !stats.failures.is_empty() {
        let bars = first(by_count(&stats.failures), |_| "bad");
        panels.push(Panel { title: words.failures, note: None, bars });
    }
    if !stats.skips.is_empty() {
        let bars = first(by_count(&stats.skips), |_| "plain");
        panels.push(Panel { title: words.count_skipped, note: None, bars });
    }
    panels
}
