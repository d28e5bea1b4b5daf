//! `telusur explain`: why a URL was crawled or not; what a code or a reason means.

use std::io::{self, Write};

use serde_json::json;
use telusur_engine::control::ExplainUrl;
use telusur_engine::json::{ExplanationView, IdView, KnownUrlView};
use telusur_model::{PageUrl, Reason, Via};

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
    let knows = |explanation: &ExplanationView| {
        explanation.known.is_some() || explanation.sitemap.is_some()
    };
    let some_know = explanations.iter().any(knows);
    for explanation in explanations.iter().filter(|explanation| !some_know || knows(explanation)) {
        write_explanation(explanation, output)?;
    }
    Ok(0)
}

fn write_explanation(explanation: &ExplanationView, output: &mut dyn Write) -> io::Result<()> {
    let name = explanation.name.as_ref().map(|name| format!(" {:?}", shown(name)));
    writeln!(output, "{}{}", explanation.alias, name.unwrap_or_default())?;
    let mut row = |name: &str, value: String| writeln!(output, "  {name:<10}{}", shown(&value));
    row("url", explanation.url.clone())?;
    if explanation.normal_form != explanation.url {
        row("same as", explanation.normal_form.clone())?;
    }
    row(
        "rules",
        match &explanation.reason {
            None => format!("admitted by {}", explanation.rule),
            Some(reason) => format!("{reason} by {}", explanation.rule),
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
        if let Some(asks) = &page.asks {
            row("asks", asks.clone())?;
        }
        if let Some(lastmod) = &page.lastmod {
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
        let last = host.last_request_at.as_ref().map(|at| format!(", last asked {at}"));
        let (last, delay_ms) = (last.unwrap_or_default(), host.delay_ms);
        row(
            "host",
            format!(
                "{}: {} pages, {} errors, {} waiting{last}, delay {delay_ms} ms",
                host.host, host.fetched, host.errors, host.queued
            ),
        )?;
    }
    Ok(())
}

fn id_state(id: &IdView) -> String {
    let why = id.reason.as_deref().map(with_help).unwrap_or_default();
    match id.state.as_deref() {
        Some("content") => "exists and is stored".to_owned(),
        Some("missing") => "does not exist".to_owned(),
        Some("hole") => format!("failed, with no attempt left{why}"),
        Some("waiting") => {
            let attempts = id.attempts.unwrap_or_default();
            format!("failed {attempts} times and is asked again{why}")
        }
        Some(state) => format!("{state}{why}"),
        None if id.is_within => "not asked yet".to_owned(),
        None => "beyond the bounds of the crawl".to_owned(),
    }
}

/// A reason with what it means.
fn with_help(reason: &str) -> String {
    match Reason::from_word(reason) {
        Some(reason) => format!(": {reason} ({})", reason.help()),
        None => format!(": {reason}"),
    }
}

fn found(known: &KnownUrlView) -> String {
    let how = match (Via::from_word(&known.via), &known.referrer) {
        (Some(Via::Seed), _) => "named as a start URL".to_owned(),
        (Some(Via::Link), Some(page)) => format!("linked from {page}"),
        (Some(Via::Link), None) => "linked".to_owned(),
        (Some(Via::Redirect), _) => "by a redirect".to_owned(),
        (Some(Via::Sitemap), Some(file)) => format!("listed in {file}"),
        (Some(Via::Sitemap), None) => "in a sitemap".to_owned(),
        (Some(Via::Linear), _) => "as an id of the template".to_owned(),
        (None, _) => known.via.clone(),
    };
    format!("{how}, {} links from the start, at {}", known.depth, known.found_at)
}

fn state(explanation: &ExplanationView, known: &KnownUrlView) -> String {
    let reason = known.reason.as_deref().unwrap_or_default();
    let at = known.at.as_deref().unwrap_or_default();
    let attempts = known.attempts.unwrap_or_default();
    match known.state.as_str() {
        "queued" => {
            let failed = known.reason.as_ref().map(|why| format!(", the last one failed: {why}"));
            format!("waiting for attempt {attempts}{}", failed.unwrap_or_default())
        }
        "page" => match &explanation.page {
            Some(page) => format!("stored, status {}", page.status),
            None => "stored".to_owned(),
        },
        "sitemap" => {
            let left_out = match known.dropped.unwrap_or_default() {
                0 => String::new(),
                dropped => format!(", {dropped} left out"),
            };
            let trouble = known.detail.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            let entries = known.entries.unwrap_or_default();
            format!("a sitemap with {entries} entries{left_out}{trouble}, at {at}")
        }
        "redirected" => {
            let to = known.to.as_deref().unwrap_or_default();
            format!("{} to {to}, at {at}", known.status.unwrap_or_default())
        }
        "failed" => {
            let detail = known.detail.as_deref().unwrap_or_default();
            format!("failed: {reason} ({detail}) after {attempts} attempts, at {at}")
        }
        "skipped" => {
            let help = Reason::from_word(reason).map(Reason::help).unwrap_or_default();
            let rule = known.rule.as_deref().unwrap_or_default();
            format!("never asked for: {reason} ({help}), by {rule}")
        }
        other => other.to_owned(),
    }
}
