//! `telusur page`: a stored page with everything that is in it.

use std::io::Write;

use serde::Serialize;
use telusur_engine::control::{ReadPage, StoredPage};
use telusur_model::{PageRecord, Reason};

use super::{Outcome, Session};
use crate::cli::PageArgs;
use crate::message::{Code, Message, shown};
use crate::page_view::{PageForm, PageView};
use crate::parsing::not_parsed;

pub(super) fn page(session: &Session, arguments: &PageArgs, output: &mut dyn Write) -> Outcome {
    let operation = ReadPage {
        url: arguments.url.clone(),
        crawl: arguments.crawl.clone(),
        with_body: arguments.form.needs_body(),
    };
    let Some(page) = session.ask(&operation)? else {
        let url = shown(&arguments.url);
        return Err(Message::new(Code::NoSuchPage, format!("no crawl has stored {url}"))
            .hint(format!("See what became of it: telusur explain {url}"))
            .into());
    };
    check_kept(&page, arguments.form)?;
    show(session, &page, arguments.form, output)?;
    Ok(0)
}

/// An empty answer would look like an empty page.
fn check_kept(page: &StoredPage, form: PageForm) -> Result<(), Message> {
    let refuse = |what: &str| {
        let what = format!("{} of {} was not kept", what, shown(page.record.url.as_str()));
        Err(Message::new(Code::NoSuchPage, what)
            .hint("What is kept of a page is set by --keep when it is crawled: html or raw"))
    };
    let is_extract = page.record.body.is_none() && page.content.is_some();
    match form {
        PageForm::Overview | PageForm::Json => Ok(()),
        PageForm::Html | PageForm::Headers if page.record.body.is_none() => refuse("the body"),
        _ if page.content.is_none() && page.record.parse_failed.is_some() => {
            let why = page.record.parse_failed.as_deref().unwrap_or_default();
            Err(not_parsed(page.record.url.as_str(), why))
        }
        _ if page.content.is_none() => refuse("the content"),
        PageForm::Text | PageForm::Markdown if is_extract => refuse("the body"),
        _ => Ok(()),
    }
}

/// What the JSON form says besides the content.
#[derive(Serialize)]
struct About<'a> {
    url: &'a str,
    crawl: &'a str,
    /// Everything that was recorded when the page came.
    stored: &'a PageRecord,
    headers: &'a [(String, String)],
}

fn show(
    session: &Session,
    page: &StoredPage,
    form: PageForm,
    output: &mut dyn Write,
) -> std::io::Result<()> {
    let record = &page.record;
    let kind = record.content_type.clone().unwrap_or_else(|| "not said".to_owned());
    let mut rows = vec![
        ("crawl", page.alias.clone()),
        ("fetched", format!("{} in {} ms", record.fetched_at, record.took_ms)),
        ("status", record.status.to_string()),
        ("type", kind),
    ];
    rows.extend(record.redirects.iter().map(|url| ("redirected", format!("from {url}"))));
    rows.extend(record.referrer.iter().map(|url| ("found on", url.clone())));
    rows.push(("depth", record.depth.to_string()));
    if page.content.is_none() {
        rows.extend(record.title.iter().map(|title| ("title", title.clone())));
        rows.push(match &record.parse_failed {
            Some(why) => ("content", format!("{}: {why}", Reason::ParseFailed)),
            None => ("kept", "nothing of its content".to_owned()),
        });
    }
    let content = page.content.clone().unwrap_or_default();
    let url = record.url.as_str();
    let about = About { url, crawl: &page.crawl, stored: record, headers: &page.headers };
    let view = PageView {
        url,
        crawl: &page.crawl,
        rows,
        about,
        headers: &page.headers,
        body: &page.body_bytes().unwrap_or_default(),
        content: &content,
    };
    if let Some(why) = view.silence(form) {
        session.talk.warning(why);
    }
    view.write(form, session.global.json, output)
}
