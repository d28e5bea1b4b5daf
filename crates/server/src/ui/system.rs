//! The service itself: what it holds, how it is set up, who has keys.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;

use super::frame::{Frame, Viewer, render};
use super::live::behind_notices;
use super::words::state_word;
use crate::access::Scope;
use crate::json::KeyView;
use crate::problem::Problem;
use crate::service::Service;

#[derive(Template)]
#[template(path = "system.html")]
struct SystemPage {
    frame: Frame,
    /// What is behind, and why.
    behind_notices: Vec<(String, String)>,
    facts: Vec<(&'static str, String)>,
    /// A state, its word, and how many crawls are in it.
    crawls: Vec<(String, String, String)>,
    is_admin: bool,
    /// A key's name, what it allows, when it was made and when it ends.
    keys: Vec<(String, String, String, String)>,
}

/// The system page. Keys are only shown to who may make them.
pub(crate) async fn system(
    State(service): State<Service>,
    headers: HeaderMap,
    reader: Viewer,
) -> Result<Response, Problem> {
    let (words, lang) = (reader.words(), reader.lang);
    let totals = service.totals().await?;
    let settings = service.settings();
    let yes_no = if settings.read_only { words.yes } else { words.no };
    let facts = vec![
        (words.sys_version, totals.version),
        (words.sys_uptime, lang.seconds(totals.uptime_s)),
        (words.sys_pages, lang.count(totals.pages)),
        (words.sys_indexed, lang.count(totals.indexed)),
        (words.sys_queue, lang.count(totals.queued)),
        (words.sys_speed, lang.decimal(totals.pages_per_s, 1)),
        (words.sys_index, lang.bytes(totals.index_bytes)),
        (words.sys_free, totals.free_bytes.map_or_else(|| "–".to_owned(), |it| lang.bytes(it))),
        (
            words.sys_damaged,
            totals.scrub.map_or_else(|| "–".to_owned(), |it| lang.count(it.damaged)),
        ),
        (words.sys_listen, settings.listen.to_string()),
        (words.sys_user_agent, settings.defaults.fetch.user_agent.clone()),
        (words.sys_read_only, yes_no.to_owned()),
    ];
    let crawls = totals.crawls.into_iter().map(|(state, count)| {
        let word = state_word(words, &state).to_owned();
        (state, word, lang.count(count))
    });
    let crawls = crawls.collect();
    let is_admin = service.permit(&headers, Scope::Admin).is_ok();
    let keys = if is_admin { service.keys() } else { Vec::new() };
    let line = |key: KeyView| {
        let ends = key.expires_at.map_or_else(|| "–".to_owned(), |at| lang.day(&at));
        (key.name, key.scopes.join(", "), lang.day(&key.created_at), ends)
    };
    render(&SystemPage {
        frame: reader.frame("system", words.system_title),
        behind_notices: behind_notices(&service, &reader),
        facts,
        crawls,
        is_admin,
        keys: keys.into_iter().map(line).collect(),
    })
}
