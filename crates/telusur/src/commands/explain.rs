//! `telusur explain`: why a URL was crawled or not; what a code or a reason means.

use std::io::{self, Write};

use serde_json::json;
use telusur_engine::control::{ExplainUrl, Explanation, IdExplained};
use telusur_ledger::{UrlRecord, UrlState};
use telusur_model::{IdState, PageUrl, Reason, Via};

use super::{Outcome, Session};
use crate::cli::ExplainArgs;
use crate::json::write_json_line;
use crate::message::{Code, Message, shown};

pub(super) fn explain(
    session: &Session,
    arguments: &ExplainArgs,
    output: &mut dyn Write,
) -> Outcome {
    let subject = &arguments.subject;
    let (word, title, text) = if let Some(code) = Code::from_word(subject) {
        (code.word(), code.title(), code.explanation())
    } else if let Some(reason) = Reason::from_word(subject) {
        (reason.word(), reason.help(), "A reason why a URL was not fetched.".to_owned())
    } else if PageUrl::parse(subject).is_ok() {
        return explain_url(session, arguments, output);
    } else {
        let what = format!("\"{}\" is no URL, no code and no reason", shown(subject));
        let hint = "URLs begin with http:// or https://, codes look like E0103, reasons like timeout_connect";
        return Err(Message::new(Code::UnknownCode, what).hint(hint).into());
    };
    if session.global.json {
        write_json_line(output, &json!({ "code": word, "title": title, "explanation": text }))?;
    } else {
        writeln!(output, "{word}: {title}\n\n{text}")?;
    }
    Ok(0)
}

fn explain_url(session: &Session, arguments: &ExplainArgs, output: &mut dyn Write) -> Outcome {
    let operation = ExplainUrl { url: arguments.subject.clone(), crawl: arguments.crawl.clone() };
    let explanations = session.collect(&operation)?;
    if session.global.json {
        write_json_line(output, &explanations)?;
        return Ok(0);
    }
    // Crawls that have nothing to do with the URL are of no interest, unless there is no other.
    let knows =
        |explanation: &Explanation| explanation.known.is_some() || explanation.sitemap.is_some();
    let some_know = explanations.iter().any(knows);
    for explanation in explanations.iter().filter(|explanation| !some_know || knows(explanation)) {
        write_explanation(explanation, output)?;
    }
    Ok(0)
}

fn write_explanation(explanation: &Explanation, output: &mut dyn Write) -> io::Result<()> {
    let name = explanation.name.as_ref().map(|name| format!(" {:?}", shown(name)));
    writeln!(output, "{}{}", explanation.alias, name.unwrap_or_default())?;
    let mut row = |name: &str, value: String| writeln!(output, "  {name:<10}{}", shown(&value));
    row("url", explanation.url.clone())?;
    if explanation.normal_form != explanation.url {
        row("same as", explanation.normal_form.clone())?;
    }
    let judged = &explanation.judged;
    row(
        "rules",
        match judged.reason {
            None => format!("admitted by {}", judged.rule),
            Some(reason) => format!("{reason} by {}", judged.rule),
        },
    )?;
    if let Some(said) = &explanation.robots {
        let word = if said.allowed { "allowed" } else { "forbidden" };
        let rule = said.rule.as_ref().map(|rule| format!(" by {rule}")).unwrap_or_default();
        row("robots", format!("{word}{rule}, read {}", said.asked_at))?;
    }
    if let Some(sitemap) = &explanation.sitemap {
        row("sitemap", format!("{}; {}", found(sitemap), state(explanation, sitemap)))?;
    }
    if let Some(id) = &explanation.id {
        row("id", format!("{} of {}, {}", id.id, id.template, id_state(id)))?;
    }
    let Some(known) = &explanation.known else {
        if explanation.id.is_none() {
            row("state", "not known: no page of this crawl leads there".to_owned())?;
        }
        return Ok(());
    };
    row("found", found(known))?;
    for hop in &known.redirects {
        row("through", hop.clone())?;
    }
    row("state", state(explanation, known))?;
    if let Some(page) = &explanation.page {
        row(
            "fetched",
            format!("{} in {} ms, attempt {}", page.fetched_at, page.took_ms, page.attempts),
        )?;
        let kind = page.content_type.clone().unwrap_or_else(|| "unknown type".to_owned());
        let cut = if page.truncated { ", cut at the limit" } else { "" };
        row("content", format!("{kind}, {} bytes{cut}, {} links", page.bytes, page.link_count))?;
        if !page.directives.said.is_empty() {
            row("asks", page.directives.said.clone())?;
        }
        if let Some(lastmod) = page.lastmod {
            row("changed", format!("{lastmod}, as a sitemap says"))?;
        }
        if page.soft_404 {
            let note = "looks like the host's page for what does not exist, or like many pages that \
                        lead to each other: not in the index";
            row("note", note.to_owned())?;
        }
        if let Some(why) = &page.parse_failed {
            row("note", format!("{}: {why}", Reason::ParseFailed.word()))?;
        }
        if let Some(title) = &page.title {
            row("title", title.clone())?;
        }
    }
    if let Some(parked) = &explanation.parked {
        row("parked", parked.clone())?;
    }
    if let Some(host) = &explanation.host {
        let last = host.last_request_at.map(|at| format!(", last asked {at}")).unwrap_or_default();
        let delay = host.delay_ms.map(|ms| format!(", delay {ms} ms")).unwrap_or_default();
        row(
            "host",
            format!(
                "{}: {} pages, {} errors, {} waiting{last}{delay}",
                host.host, host.pages, host.errors, host.queued
            ),
        )?;
    }
    Ok(())
}

fn id_state(id: &IdExplained) -> String {
    let why = id.why.map(|why| format!(": {why} ({})", why.help())).unwrap_or_default();
    match id.state {
        Some(IdState::Content) => "exists and is stored".to_owned(),
        Some(IdState::Missing) => "does not exist".to_owned(),
        Some(IdState::Hole) => format!("failed, with no attempt left{why}"),
        Some(IdState::Waiting { attempts }) => {
            format!("failed {attempts} times and is asked again{why}")
        }
        None if id.is_within => "not asked yet".to_owned(),
        None => "beyond the bounds of the crawl".to_owned(),
    }
}

fn found(known: &UrlRecord) -> String {
    let how = match (known.via, &known.referrer) {
        (Via::Seed, _) => "named as a start URL".to_owned(),
        (Via::Link, Some(page)) => format!("linked from {page}"),
        (Via::Link, None) => "linked".to_owned(),
        (Via::Redirect, _) => "by a redirect".to_owned(),
        (Via::Sitemap, Some(file)) => format!("listed in {file}"),
        (Via::Sitemap, None) => "in a sitemap".to_owned(),
        (Via::Linear, _) => "as an id of the template".to_owned(),
    };
    format!("{how}, {} links from the start, at {}", known.depth, known.found_at)
}

fn state(explanation: &Explanation, known: &UrlRecord) -> String {
    match &known.state {
        UrlState::Queued { attempt, last_failure, .. } => {
            let failed = last_failure.map(|why| format!(", the last one failed: {why}"));
            format!("waiting for attempt {attempt}{}", failed.unwrap_or_default())
        }
        UrlState::Page { .. } => match &explanation.page {
            Some(page) => format!("stored, status {}", page.status),
            None => "stored".to_owned(),
        },
        UrlState::Sitemap { entries, dropped, trouble, at } => {
            let left_out = match dropped {
                0 => String::new(),
                dropped => format!(", {dropped} left out"),
            };
            let trouble = trouble.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("a sitemap with {entries} entries{left_out}{trouble}, at {at}")
        }
        UrlState::Redirected { status, to, at } => format!("{status} to {to}, at {at}"),
        UrlState::Failed { reason, detail, attempts, at } => {
            format!("failed: {reason} ({detail}) after {attempts} attempts, at {at}")
        }
        UrlState::Skipped { reason, rule } => {
            format!("never asked for: {reason} ({}), by {rule}", reason.help())
        }
    }
}
