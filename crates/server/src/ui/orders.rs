//! What a reader can do to a crawl: pause, resume, stop, retry, change, delete. Each is a plain form.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use telusur_engine::request::{ChangeRequest, LimitsRequest, PolitenessRequest, Rights};
use telusur_model::{CrawlNo, Limits, PageUrl, Scope, ScopeRules};

use super::forms::{FormBody, number, text};
use super::frame::{Frame, Viewer, go_to, render, render_as};
use super::live::Head;
use super::search::crawl_name;
use super::words::fill;
use crate::json::QueuedView;
use crate::json::ResumeRequest;
use crate::problem::{Code, Problem};
use crate::service::{Order, Service};

/// Waiting URLs that an exclusion is tried on before it is made.
const TRIED_MAX: usize = 1000;
/// Those of them that are shown.
const MATCHES_SHOWN: usize = 20;

/// Pauses, resumes, stops or retries.
pub(crate) async fn order(
    State(service): State<Service>,
    Path((id, order)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let no = service.crawl_no(&id)?;
    let order = match order.as_str() {
        "pause" => Order::Pause,
        "stop" => Order::Stop,
        "resume" => {
            service.resume(no, ResumeRequest::default(), Rights::User).await?;
            return Ok(go_to(&format!("/crawls/{no}")));
        }
        "retry" => {
            service.retry(no).await?;
            return Ok(go_to(&format!("/crawls/{no}")));
        }
        _ => return Err(Problem::new(Code::NotFound, "there is nothing at this address")),
    };
    service.order(no, order).await?;
    Ok(go_to(&format!("/crawls/{no}")))
}

#[derive(Template)]
#[template(path = "sure.html")]
struct SurePage {
    frame: Frame,
    alias: String,
    name: String,
    text: String,
    is_over: bool,
}

/// Asks once more before pages are thrown away.
pub(crate) async fn are_you_sure(
    State(service): State<Service>,
    Path(id): Path<String>,
    reader: Viewer,
) -> Result<Response, Problem> {
    let crawl = service.crawl(service.crawl_no(&id)?).await?;
    let words = reader.words();
    let count = reader.lang.count(crawl.stats.fetched);
    render(&SurePage {
        frame: reader.frame("crawls", words.sure_title),
        name: crawl_name(&crawl),
        text: fill(words.sure_text, &[("n", &count)]),
        is_over: crawl.ended_at.is_some(),
        alias: crawl.alias,
    })
}

/// Throws a crawl away, running or not.
pub(crate) async fn delete(
    State(service): State<Service>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let no = service.crawl_no(&id)?;
    if service.crawl(no).await?.ended_at.is_some() {
        service.delete(no).await?;
    } else {
        service.cancel(no).await?;
    }
    Ok(go_to("/crawls"))
}

/// What becomes other about a crawl.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Change {
    exclude: String,
    delay_ms: String,
    workers: String,
    max_pages: String,
    then: String,
}

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    frame: Frame,
    head: Head,
    problem: Option<String>,
    excluded: Vec<String>,
    pattern: String,
    matches: Option<Matches>,
    delay_ms: u64,
    workers: u64,
    max_pages: u64,
    facts: Vec<(&'static str, String)>,
}

struct Matches {
    text: String,
    urls: Vec<String>,
}

/// The settings of a crawl.
pub(crate) async fn settings(
    State(service): State<Service>,
    Path(id): Path<String>,
    reader: Viewer,
) -> Result<Response, Problem> {
    let no = service.crawl_no(&id)?;
    shown(&service, no, &reader, None, Change::default()).await
}

/// Changes them, or shows what an exclusion would match.
pub(crate) async fn change(
    State(service): State<Service>,
    Path(id): Path<String>,
    reader: Viewer,
    FormBody(change): FormBody<Change>,
) -> Result<Response, Problem> {
    let no = service.crawl_no(&id)?;
    if change.then == "preview" {
        return shown(&service, no, &reader, None, change).await;
    }
    let body = body_of(&change);
    let done = match body {
        Ok(body) => service.change(no, body, None, Rights::User).await.map(drop),
        Err(problem) => Err(problem),
    };
    match done {
        Ok(()) => Ok(go_to(&format!("/crawls/{no}/settings"))),
        Err(problem) => shown(&service, no, &reader, Some(problem), change).await,
    }
}

fn body_of(change: &Change) -> Result<ChangeRequest, Problem> {
    Ok(ChangeRequest {
        limits: LimitsRequest {
            max_pages: number("max_pages", &change.max_pages)?,
            ..LimitsRequest::default()
        },
        politeness: PolitenessRequest {
            delay_ms: number("delay_ms", &change.delay_ms)?,
            workers: number("workers", &change.workers)?,
            ..PolitenessRequest::default()
        },
        exclude: text(&change.exclude).into_iter().collect(),
    })
}

async fn shown(
    service: &Service,
    no: CrawlNo,
    reader: &Viewer,
    problem: Option<Problem>,
    change: Change,
) -> Result<Response, Problem> {
    let crawl = service.crawl(no).await?;
    let words = reader.words();
    let (matches, wrong) = match matches(service, no, reader, &change).await {
        Ok(matches) => (matches, None),
        Err(problem) => (None, Some(problem)),
    };
    let problem = problem.or(wrong);
    let status = problem.as_ref().map_or(StatusCode::OK, |problem| problem.code().status());
    let facts = vec![
        (words.form_kind, crawl.seeds.join("\n")),
        (words.form_scope, crawl.scope.kind.clone()),
        (words.form_depth, crawl.limits.max_depth.to_string()),
        (words.form_keep, crawl.keep.clone()),
        (words.preview_robots, crawl.manners.robots.clone()),
        ("ID", crawl.id.clone()),
    ];
    let head = Head::of(&crawl, "/settings", words, service);
    let page = SettingsPage {
        frame: reader.frame("crawls", format!("{} · {}", words.tab_settings, head.name)),
        head,
        problem: problem.map(|problem| problem.detail().to_owned()),
        excluded: crawl.scope.exclude.clone(),
        pattern: change.exclude,
        matches,
        delay_ms: crawl.manners.delay_ms,
        workers: crawl.manners.workers,
        max_pages: crawl.limits.max_pages,
        facts,
    };
    render_as(status, &page)
}

/// The URLs that a scope excludes, and how many were tried.
fn excluded_among(scope: &Scope, waiting: Vec<QueuedView>) -> (Vec<String>, u64) {
    let (mut bytes_left, mut tried) = (scope.match_bytes_max(), 0);
    let mut excluded = Vec::new();
    for QueuedView { url, .. } in waiting {
        let Some(left) = bytes_left.checked_sub(url.len()) else { break };
        (bytes_left, tried) = (left, tried + 1);
        if PageUrl::parse(&url).is_ok_and(|url| scope.exclusion(&url).is_some()) {
            excluded.push(url);
        }
    }
    (excluded, tried)
}

/// The waiting URLs that an exclusion would take away.
async fn matches(
    service: &Service,
    no: CrawlNo,
    reader: &Viewer,
    change: &Change,
) -> Result<Option<Matches>, Problem> {
    let Some(pattern) = text(&change.exclude).filter(|_| change.then == "preview") else {
        return Ok(None);
    };
    let unusable = |why: String| Problem::field("/exclude", format!("not a usable pattern: {why}"));
    let waiting = service.frontier(no, TRIED_MAX, None).await?.items;
    let tried = service.check(move |_| {
        // As the crawl would take it, with its bounds.
        let rules = ScopeRules { exclude: vec![pattern], ..ScopeRules::default() };
        let scope = Scope::new(&rules, &[], &Limits::default());
        Ok(excluded_among(&scope.map_err(|error| unusable(error.why))?, waiting))
    });
    let (mut urls, tried) = tried.await?;
    let of = reader.lang.count(tried);
    let n = reader.lang.count(urls.len() as u64);
    urls.truncate(MATCHES_SHOWN);
    let text = fill(reader.words().exclude_matches, &[("n", &n), ("of", &of)]);
    Ok(Some(Matches { text, urls }))
}
