//! What a crawl holds, as tables: pages, the queue, hosts, errors, skipped URLs.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::Deserialize;
use telusur_model::{CrawlNo, Reason};

use super::bars::{by_count, status_tone};
use super::crawls::Part;
use super::frame::{Frame, Viewer, address, render};
use super::live::Head;
use super::words::{Words, fill, state_word};
use crate::door::Params;
use crate::json::{CrawlView, ErrorView, HostView, PageView, Paged, QueuedView, SkippedView};
use crate::problem::Problem;
use crate::service::Service;

/// Lines on one page.
const LINES: usize = 100;

#[derive(Template)]
#[template(path = "crawl_list.html")]
struct ListPage {
    frame: Frame,
    head: Head,
    reasons: Vec<ReasonLink>,
    total: Option<String>,
    /// What stands above each column, and whether it holds numbers.
    columns: Vec<(&'static str, bool)>,
    rows: Vec<Vec<Cell>>,
    first: Option<String>,
    next: Option<String>,
}

struct ReasonLink {
    address: String,
    text: String,
    count: String,
    is_current: bool,
}

#[derive(Default)]
struct Cell {
    text: String,
    address: Option<String>,
    class: &'static str,
    is_english: bool,
}

impl Cell {
    fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    fn number(text: impl Into<String>) -> Self {
        Self { class: "number", ..Self::plain(text) }
    }

    /// A word or a moment of ours, which is not broken.
    fn word(text: impl Into<String>) -> Self {
        Self { class: "word", ..Self::plain(text) }
    }

    /// The status of an answer, in its colour.
    fn status(status: &str) -> Self {
        let class = match status_tone(status) {
            "good" => "word good",
            "bad" => "word bad",
            _ => "word",
        };
        Self { class, ..Self::plain(status) }
    }

    fn url(url: &str, address: Option<String>) -> Self {
        Self { text: url.to_owned(), address, class: "url", is_english: false }
    }

    /// A word of ours that is the same in every language.
    fn fixed(text: impl Into<String>) -> Self {
        Self { is_english: true, ..Self::plain(text) }
    }
}

/// What a list is about.
struct About<'a> {
    reader: &'a Viewer,
    service: &'a Service,
    crawl: CrawlView,
    path: &'static str,
    title: &'static str,
}

impl About<'_> {
    fn explain(&self, url: &str) -> Option<String> {
        Some(address("/explain", &[("url", url), ("crawl", &self.crawl.alias)]))
    }

    fn page<T>(
        &self,
        part: &Part,
        found: Paged<T>,
        columns: Vec<(&'static str, bool)>,
        row: impl Fn(T) -> Vec<Cell>,
    ) -> ListPage {
        let words = self.reader.words();
        let head = Head::of(&self.crawl, self.path, words, self.service);
        let here = format!("/crawls/{}{}", head.alias, self.path);
        ListPage {
            frame: self.reader.frame("crawls", format!("{} · {}", self.title, head.name)),
            head,
            reasons: Vec::new(),
            total: found
                .total
                .map(|total| fill(words.list_total, &[("n", &self.reader.lang.count(total))])),
            columns,
            rows: found.items.into_iter().map(row).collect(),
            first: part.is_later().then(|| here.clone()),
            next: found.next_cursor.map(|cursor| address(&here, &[("after", &cursor)])),
        }
    }
}

async fn about<'a>(
    service: &'a Service,
    reader: &'a Viewer,
    no: CrawlNo,
    list: (&'static str, &'static str),
) -> Result<About<'a>, Problem> {
    let crawl = service.crawl(no).await?;
    Ok(About { reader, service, crawl, path: list.0, title: list.1 })
}

/// The pages.
pub(crate) async fn pages(
    State(service): State<Service>,
    Path(id): Path<String>,
    reader: Viewer,
    Params(part): Params<Part>,
) -> Result<Response, Problem> {
    let (no, words, lang) = (service.crawl_no(&id)?, reader.words(), reader.lang);
    let found = service.pages(no, LINES, part.cursor()?).await?;
    let about = about(&service, &reader, no, ("/pages", words.tab_pages)).await?;
    let columns = vec![
        (words.col_status, false),
        (words.col_title, false),
        (words.col_url, false),
        (words.col_depth, true),
        (words.col_size, true),
        (words.col_time, true),
    ];
    let row = |page: PageView| {
        let title = page.title.filter(|title| !title.trim().is_empty());
        vec![
            Cell::status(&page.status.to_string()),
            Cell {
                address: Some(format!("/pages/{}", page.id)),
                ..Cell::plain(title.unwrap_or_else(|| words.page_untitled.to_owned()))
            },
            Cell::url(&page.url, None),
            Cell::number(page.depth.to_string()),
            Cell::number(lang.bytes(page.bytes)),
            Cell::number(format!("{} ms", lang.count(page.took_ms))),
        ]
    };
    render(&about.page(&part, found, columns, row))
}

/// What waits.
pub(crate) async fn queue(
    State(service): State<Service>,
    Path(id): Path<String>,
    reader: Viewer,
    Params(part): Params<Part>,
) -> Result<Response, Problem> {
    let (no, words, lang) = (service.crawl_no(&id)?, reader.words(), reader.lang);
    let found = service.frontier(no, LINES, part.cursor()?).await?;
    let about = about(&service, &reader, no, ("/queue", words.tab_queue)).await?;
    let columns = vec![
        (words.col_url, false),
        (words.col_depth, true),
        (words.col_attempts, true),
        (words.col_when, false),
    ];
    let row = |queued: QueuedView| {
        vec![
            Cell::url(&queued.url, about.explain(&queued.url)),
            Cell::number(queued.depth.to_string()),
            Cell::number(queued.attempt.to_string()),
            Cell::word(queued.due.map(|due| lang.moment(&due)).unwrap_or_default()),
        ]
    };
    render(&about.page(&part, found, columns, row))
}

/// The hosts.
pub(crate) async fn hosts(
    State(service): State<Service>,
    Path(id): Path<String>,
    reader: Viewer,
    Params(part): Params<Part>,
) -> Result<Response, Problem> {
    let (no, words, lang) = (service.crawl_no(&id)?, reader.words(), reader.lang);
    let found = service.hosts(no, LINES, part.cursor()?).await?;
    let about = about(&service, &reader, no, ("/hosts", words.tab_hosts)).await?;
    let columns = vec![
        (words.col_host, false),
        (words.col_state, false),
        (words.col_pages, true),
        (words.col_queued, true),
        (words.col_errors, true),
        (words.col_delay, true),
        (words.col_requests, true),
        (words.col_gap, true),
    ];
    let row = |host: HostView| {
        vec![
            Cell::plain(host.host),
            Cell::word(state_word(words, &host.state)),
            Cell::number(lang.count(host.fetched)),
            Cell::number(lang.count(host.queued)),
            Cell::number(lang.count(host.errors)),
            Cell::number(format!("{} ms", lang.count(host.delay_ms))),
            Cell::number(lang.count(host.requests)),
            Cell::number(
                host.gap_ms_min.map(|gap| format!("{} ms", lang.count(gap))).unwrap_or_default(),
            ),
        ]
    };
    render(&about.page(&part, found, columns, row))
}

/// What answered with an error, or not at all.
pub(crate) async fn errors(
    State(service): State<Service>,
    Path(id): Path<String>,
    reader: Viewer,
    Params(part): Params<Part>,
) -> Result<Response, Problem> {
    let (no, words, lang) = (service.crawl_no(&id)?, reader.words(), reader.lang);
    let found = service.errors(no, LINES, part.cursor()?).await?;
    let about = about(&service, &reader, no, ("/errors", words.tab_errors)).await?;
    let columns = vec![
        (words.col_status, false),
        (words.col_url, false),
        (words.col_reason, false),
        (words.col_from, false),
        (words.col_attempts, true),
        (words.col_when, false),
    ];
    let row = |error: ErrorView| {
        let reason = match (&error.reason, &error.detail) {
            (Some(reason), Some(detail)) => format!("{reason}: {detail}"),
            (reason, _) => reason.clone().unwrap_or_default(),
        };
        vec![
            Cell::status(&error.status.map(|it| it.to_string()).unwrap_or_default()),
            Cell::url(&error.url, about.explain(&error.url)),
            Cell::fixed(reason),
            Cell::url(&error.referrer.unwrap_or_default(), None),
            Cell::number(error.attempts.to_string()),
            Cell::word(lang.moment(&error.at)),
        ]
    };
    render(&about.page(&part, found, columns, row))
}

/// Which skipped URLs.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct OfReason {
    reason: String,
}

/// What was never asked for, and why.
pub(crate) async fn skipped(
    State(service): State<Service>,
    Path(id): Path<String>,
    reader: Viewer,
    Params(part): Params<Part>,
    Params(wanted): Params<OfReason>,
) -> Result<Response, Problem> {
    let (no, words) = (service.crawl_no(&id)?, reader.words());
    let reason = (!wanted.reason.is_empty()).then(|| wanted.reason.clone());
    let found = service.skipped(no, reason, LINES, part.cursor()?).await?;
    let about = about(&service, &reader, no, ("/skipped", words.tab_skipped)).await?;
    let columns = vec![
        (words.col_url, false),
        (words.col_reason, false),
        (words.col_rule, false),
        (words.col_from, false),
    ];
    let row = |skipped: SkippedView| {
        vec![
            Cell::url(&skipped.url, about.explain(&skipped.url)),
            Cell::fixed(format!("{}: {}", skipped.reason, skipped.help)),
            Cell::fixed(skipped.rule),
            Cell::url(&skipped.referrer.unwrap_or_default(), None),
        ]
    };
    let next = found.next_cursor.clone();
    let mut page = about.page(&part, found, columns, row);
    let here = format!("/crawls/{}/skipped", page.head.alias);
    page.next =
        next.map(|cursor| address(&here, &[("reason", &wanted.reason), ("after", &cursor)]));
    page.reasons = reasons(&about, &here, &wanted.reason, words);
    render(&page)
}

fn reasons(about: &About<'_>, here: &str, current: &str, words: &'static Words) -> Vec<ReasonLink> {
    let stats = &about.crawl.stats;
    let link = |word: &str, text: &str, count: u64| ReasonLink {
        address: address(here, &[("reason", word)]),
        text: text.to_owned(),
        count: about.reader.lang.count(count),
        is_current: word == current,
    };
    let mut links = vec![link("", words.reasons_all, stats.skipped)];
    for (word, count) in by_count(&stats.skips) {
        // Only words that can be asked for.
        if Reason::from_word(word).is_some() {
            links.push(link(word, word, count));
        }
    }
    links
}
