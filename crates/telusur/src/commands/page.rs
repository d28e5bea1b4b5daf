//! `telusur page`: a stored page with everything that is in it.

use std::io::Write;

use telusur_engine::control::ReadPage;
use telusur_engine::json::StoredPageView;
use telusur_model::Reason;

use super::{Outcome, Session};
use crate::cli::PageArgs;
use crate::json::write_json_line;
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
fn check_kept(page: &StoredPageView, form: PageForm) -> Result<(), Message> {
    let refuse = |what: &str| {
        let what = format!("{} of {} was not kept", what, shown(&page.page.url));
        Err(Message::new(Code::NoSuchPage, what)
            .hint("What is kept of a page is set by --keep when it is crawled: html or raw"))
    };
    let is_extract = !page.has_body && page.content.is_some();
    match form {
        PageForm::Overview | PageForm::Json => Ok(()),
        PageForm::Html | PageForm::Headers if !page.has_body => refuse("the body"),
        _ if page.content.is_none() && page.page.parse_failed.is_some() => {
            let why = page.page.parse_failed.as_deref().unwrap_or_default();
            Err(not_parsed(&page.page.url, why))
        }
        _ if page.content.is_none() => refuse("the content"),
        PageForm::Text | PageForm::Markdown if is_extract => refuse("the body"),
        _ => Ok(()),
    }
}

fn show(
    session: &Session,
    page: &StoredPageView,
    form: PageForm,
    output: &mut dyn Write,
) -> std::io::Result<()> {
    let is_kind = matches!(form, PageForm::Kind(_));
    if form == PageForm::Json || session.global.json && !is_kind {
        return write_json_line(output, page);
    }
    let record = &page.page;
    let kind = record.content_type.clone().unwrap_or_else(|| "not said".to_owned());
    let mut rows = vec![
        ("crawl", page.alias.clone()),
        ("fetched", format!("{} in {} ms", record.fetched_at, record.took_ms)),
        ("status", record.status.to_string()),
        ("type", kind),
    ];
    rows.extend(page.redirects.iter().map(|url| ("redirected", format!("from {url}"))));
    rows.extend(record.referrer.iter().map(|url| ("found on", url.clone())));
    rows.push(("depth", record.depth.to_string()));
    if page.content.is_none() {
        rows.extend(record.title.iter().map(|title| ("title", title.clone())));
        rows.push(match &record.parse_failed {
            Some(why) => ("content", format!("{}: {why}", Reason::ParseFailed)),
            None => ("kept", "nothing of its content".to_owned()),
        });
    }
    let content = page.content.as_deref().cloned().unwrap_or_default();
    let view = PageView {
        url: &record.url,
        crawl: &page.crawl,
        rows,
        about: page,
        headers: &page.headers,
        body: &page.body_bytes().unwrap_or_default(),
        content: &content,
    };
    if let Some(why) = view.silence(form) {
        session.talk.warning(why);
    }
    view.write(form, session.global.json, output)
}
