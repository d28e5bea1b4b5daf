//! The list of crawls.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;

use super::frame::{Frame, Viewer, address, render};
use super::live::errors;
use super::search::crawl_name;
use super::words::state_word;
use crate::door::Params;
use crate::json::CrawlView;
use crate::problem::Problem;
use crate::service::{Cursor, Service};

/// Crawls on one page.
const CRAWLS: usize = 50;

#[derive(Template)]
#[template(path = "crawls.html")]
struct CrawlsPage {
    frame: Frame,
    is_read_only: bool,
    lines: Vec<CrawlListRow>,
    next: Option<String>,
}

struct CrawlListRow {
    alias: String,
    name: String,
    state: String,
    state_word: String,
    pages: String,
    queued: String,
    errors: String,
    speed: String,
    started: String,
}

/// Where a list goes on.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Part {
    after: String,
}

impl Part {
    pub(crate) fn cursor(&self) -> Result<Option<Cursor>, Problem> {
        (!self.after.is_empty()).then(|| Cursor::read(&self.after)).transpose()
    }

    /// Whether this is not the beginning.
    pub(crate) fn is_later(&self) -> bool {
        !self.after.is_empty()
    }
}

/// The crawls, the youngest first.
pub(crate) async fn list(
    State(service): State<Service>,
    reader: Viewer,
    Params(part): Params<Part>,
) -> Result<Response, Problem> {
    let crawls = service.crawls(None, None, CRAWLS, part.cursor()?).await?;
    render(&CrawlsPage {
        frame: reader.frame("crawls", reader.words().crawls_title),
        is_read_only: service.settings().read_only,
        next: crawls.next_cursor.map(|cursor| address("/crawls", &[("after", &cursor)])),
        lines: crawls.items.into_iter().map(|crawl| line_of(crawl, &reader)).collect(),
    })
}

fn line_of(crawl: CrawlView, reader: &Viewer) -> CrawlListRow {
    let lang = reader.lang;
    CrawlListRow {
        name: crawl_name(&crawl),
        alias: crawl.alias,
        state_word: state_word(reader.words(), &crawl.state).to_owned(),
        state: crawl.state,
        pages: lang.count(crawl.stats.fetched),
        queued: lang.count(crawl.stats.queued),
        errors: lang.count(errors(&crawl.stats)),
        speed: lang.decimal(crawl.stats.pages_per_s, 1),
        started: lang.moment(&crawl.created_at),
    }
}
