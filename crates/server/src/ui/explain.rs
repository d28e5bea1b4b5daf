//! Why a URL was crawled or not.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;

use super::frame::{Frame, Viewer, render_as};
use super::words::Words;
use crate::door::Params;
use crate::json::ExplanationView;
use crate::problem::Problem;
use crate::service::Service;

/// Which URL.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    url: String,
    crawl: String,
}

#[derive(Template)]
#[template(path = "explain.html")]
struct ExplainPage {
    frame: Frame,
    url: String,
    problem: Option<String>,
    known: Vec<Known>,
}

/// What one crawl knows.
struct Known {
    alias: String,
    name: String,
    state: String,
    facts: Vec<(&'static str, String)>,
    page: Option<String>,
    details: Option<String>,
}

/// The question, and the answer of every crawl.
pub(crate) async fn explain(
    State(service): State<Service>,
    reader: Viewer,
    Params(asked): Params<Asked>,
) -> Result<Response, Problem> {
    let words = reader.words();
    let (mut status, mut problem, mut known) = (StatusCode::OK, None, Vec::new());
    if !asked.url.trim().is_empty() {
        let crawl = match asked.crawl.as_str() {
            "" => None,
            id => Some(service.crawl_no(id)?),
        };
        match service.explain(asked.url.trim().to_owned(), crawl).await {
            Ok(found) => known = found.into_iter().map(|it| known_of(it, words)).collect(),
            Err(refused) => {
                status = refused.code().status();
                problem = Some(refused.detail().to_owned());
            }
        }
    }
    let page = ExplainPage {
        frame: reader.frame("explain", words.explain_title),
        url: asked.url,
        problem,
        known,
    };
    render_as(status, &page)
}

fn known_of(it: ExplanationView, words: &'static Words) -> Known {
    let yes_no = |is: bool| if is { words.yes } else { words.no };
    let admitted = match &it.reason {
        Some(reason) => format!("{} ({reason})", yes_no(it.admitted)),
        None => yes_no(it.admitted).to_owned(),
    };
    let mut facts = vec![
        (words.explain_normal, it.normal_form),
        (words.explain_admitted, admitted),
        (words.col_rule, it.rule),
    ];
    if let Some(said) = it.robots {
        let verdict = if said.allowed { words.allowed } else { words.forbidden };
        let rule = said.rule.map(|rule| format!(": {rule}")).unwrap_or_default();
        facts.push((words.explain_robots, format!("{verdict}{rule}")));
    }
    if let Some(parked) = it.parked {
        facts.push((words.col_host, parked));
    }
    if let Some(state) = it.id.and_then(|id| id.state) {
        facts.push((words.explain_id, state));
    }
    Known {
        name: it.name.unwrap_or_else(|| it.alias.clone()),
        alias: it.alias,
        state: it.state,
        facts,
        page: it.page.map(|page| page.id),
        details: it.known.and_then(|known| serde_json::to_string_pretty(&known).ok()),
    }
}
