//! `telusur ls` and `telusur show`: what there is.

use std::collections::BTreeMap;
use std::io::{self, Write};

use telusur_engine::control::{
    ListChanges, ListCrawls, ListErrors, ListSkipped, Operation, ReadCrawl, ReadCrawls,
};
use telusur_engine::json::{CrawlView, ErrorView, FollowerView};
use telusur_model::FinishReason;

use super::{Outcome, Session};
use crate::cli::ShowArgs;
use crate::json::write_json_line;
use crate::message::shown;
use crate::summary::left_out;
use crate::units::{show_count, show_duration_ms, show_size};

pub(super) fn ls(session: &Session, output: &mut dyn Write) -> Outcome {
    if session.global.json {
        let crawls = session.collect(&ReadCrawls::default())?;
        write_json_line(output, &crawls)?;
        return Ok(0);
    }
    let mut crawls = Vec::new();
    let behind = session.each(&ListCrawls {}, &mut |crawl| {
        crawls.push(crawl);
        true
    })?;
    if crawls.is_empty() {
        session.talk.note("no crawls yet; start one: telusur crawl URL, or telusur demo");
        return Ok(0);
    }
    let rows = crawls.iter().map(|crawl| {
        [
            crawl.alias.clone(),
            crawl.name.clone().unwrap_or_default(),
            crawl.state.clone(),
            show_count(crawl.fetched),
            show_count(crawl.queued),
            show_count(crawl.errors),
            crawl.created_at.clone(),
            crawl.seed.clone().unwrap_or_default(),
        ]
    });
    let head = ["crawl", "name", "state", "pages", "queue", "errors", "created", "start"];
    write_table(output, head, rows.collect())?;
    for crawl in &crawls {
        if let Some(why) = &crawl.pause_detail {
            let no = shown(&crawl.alias);
            writeln!(output, "{no} {}; to try it again: telusur resume {no}", shown(why))?;
        }
    }
    for follower in behind.iter().flatten() {
        session.talk.warning(&behind_line(follower));
    }
    Ok(0)
}

pub(super) fn show(session: &Session, arguments: &ShowArgs, output: &mut dyn Write) -> Outcome {
    let crawl = arguments.crawl.clone();
    if arguments.errors {
        let errors = ListErrors { crawl, ..ListErrors::default() };
        return list(session, &errors, output, write_error);
    }
    if arguments.changes {
        return list(
            session,
            &ListChanges { crawl, after: None, limit: None },
            output,
            |page, output| writeln!(output, "{:<20} {}", shown(&page.change), shown(&page.url)),
        );
    }
    if let Some(reason) = &arguments.skipped {
        let reason = (!reason.is_empty()).then(|| reason.clone());
        let skipped = ListSkipped { crawl, reason, ..ListSkipped::default() };
        return list(session, &skipped, output, |url, output| {
            let from = from(url.referrer.as_deref());
            let (word, rule) = (shown(&url.reason), shown(&url.rule));
            writeln!(output, "{word:<20} {}  ({rule}){from}", shown(&url.url))
        });
    }
    let crawl = session.ask(&ReadCrawl { crawl })?;
    if session.global.json {
        write_json_line(output, &crawl)?;
    } else {
        write_crawl(&crawl, output)?;
    }
    Ok(0)
}

/// Writes the items of an operation, one line each.
fn list<O: Operation>(
    session: &Session,
    operation: &O,
    output: &mut dyn Write,
    write: fn(&O::Item, &mut dyn Write) -> io::Result<()>,
) -> Outcome {
    let mut written = Ok(());
    session.each(operation, &mut |item| {
        written = match session.global.json {
            true => write_json_line(output, &item),
            false => write(&item, output),
        };
        written.is_ok()
    })?;
    written?;
    Ok(0)
}

/// A page that answered with an error, a page that could not be parsed, or a URL without an answer.
fn write_error(error: &ErrorView, output: &mut dyn Write) -> io::Result<()> {
    let (url, from) = (shown(&error.url), from(error.referrer.as_deref()));
    let status = error.status.filter(|status| !(200..300).contains(status));
    match (status, &error.reason) {
        (None, Some(reason)) => {
            let detail = shown(error.detail.as_deref().unwrap_or_default());
            writeln!(output, "{:<20} {url}  ({detail}){from}", shown(reason))
        }
        (Some(status), _) => writeln!(output, "{status:<20} {url}{from}"),
        (None, None) => writeln!(output, "{:<20} {url}{from}", ""),
    }
}

fn from(referrer: Option<&str>) -> String {
    referrer.map(|page| format!("  from {}", shown(page))).unwrap_or_default()
}

/// That indexing, or what else is derived from pages, is behind, and why.
fn behind_line(follower: &FollowerView) -> String {
    let since = follower.trouble_since.as_ref().map(|since| format!(" since {}", shown(since)));
    let (since, why) = match &follower.trouble {
        Some(why) => (since.unwrap_or_default(), shown(why)),
        None => (String::new(), "nothing fails".to_owned()),
    };
    let subject = match follower.name.as_str() {
        "index" => "indexing".to_owned(),
        name => shown(name),
    };
    let pages = show_count(follower.lag);
    format!("{subject} is behind by {pages} pages{since} and is tried again by itself: {why}")
}

fn write_crawl(crawl: &CrawlView, output: &mut dyn Write) -> io::Result<()> {
    let stats = &crawl.stats;
    let mut row = |name: &str, value: String| writeln!(output, "{name:<12}{}", shown(&value));
    row("crawl", format!("{} ({})", crawl.alias, crawl.id))?;
    if let Some(name) = &crawl.name {
        row("name", name.clone())?;
    }
    let finished = crawl.finish_reason.as_deref().and_then(FinishReason::from_word);
    let why = finished.map(|why| why.phrase().to_owned()).or_else(|| crawl.pause_detail.clone());
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    row("state", format!("{}{why} since {}", crawl.state, crawl.state_since))?;
    row("created", crawl.created_at.clone())?;
    for seed in &crawl.seeds {
        row("start", seed.clone())?;
    }
    let more = crawl.seeds_total.saturating_sub(crawl.seeds.len() as u64);
    if more > 0 {
        row("", format!("and {} more", show_count(more)))?;
    }
    for seed in &crawl.moved_seeds {
        row("moved", format!("{} -> {} (out of scope)", seed.url, seed.to))?;
    }
    row("ran", show_duration_ms(milliseconds(stats.active_s)))?;
    row("pages", format!("{} ({} ok)", show_count(stats.fetched), show_count(stats.ok)))?;
    if let Some(ids) = &stats.ids {
        let counts = [
            ("content", ids.content),
            ("missing", ids.missing),
            ("holes", ids.holes),
            ("to retry", ids.pending_retry),
        ];
        let counts = counts.map(|(word, count)| format!("{word} {}", show_count(count)));
        row("ids", counts.join(", "))?;
    }
    for follower in &crawl.behind {
        row(&follower.name, behind_line(follower))?;
    }
    row("queue", show_count(stats.queued))?;
    row("sitemaps", show_count(stats.sitemaps))?;
    row("redirected", show_count(stats.redirected))?;
    row("errors", show_count(stats.errors))?;
    row("skipped", show_count(stats.skipped))?;
    row("not web", format!("{} links of other schemes", show_count(stats.not_web)))?;
    row("received", show_size(stats.bytes))?;
    row("status", counts(&stats.status_codes))?;
    row("failures", counts(&stats.failures))?;
    row("skips", counts(&stats.skips))?;
    for parked in &crawl.parked {
        row("parked", parked.text.clone())?;
    }
    for site in &crawl.parse_backlog {
        row("waiting", format!("{site}: its pages wait for the parser"))?;
    }
    for part in left_out(&stats.left_out, stats.uncounted) {
        row("left out", part)?;
    }
    if let Some(base) = &crawl.repeats {
        row("repeats", format!("{base}: {}", counts(&stats.changes)))?;
    }
    let sites = show_count(stats.sites_total);
    row("fairness", format!("{:.2} over {sites} sites", stats.fairness_index))?;
    for site in &stats.sites {
        let (pages, queued) = (show_count(site.fetched), show_count(site.queued));
        row("site", format!("{} {pages} pages, {queued} waiting", site.site))?;
    }
    Ok(())
}

fn milliseconds(seconds: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds with three digits, never negative"
    )]
    let ms = (seconds * 1000.0).round() as u64;
    ms
}

fn counts(table: &BTreeMap<String, u64>) -> String {
    let parts = table.iter().map(|(word, count)| format!("{word} {}", show_count(*count)));
    let text = parts.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "none".to_owned() } else { text }
}

fn write_table<const N: usize>(
    output: &mut dyn Write,
    head: [&str; N],
    rows: Vec<[String; N]>,
) -> io::Result<()> {
    let rows: Vec<[String; N]> = rows.into_iter().map(|row| row.map(|cell| shown(&cell))).collect();
    let mut widths = head.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut write_row = |cells: [&str; N]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        writeln!(output, "{}", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    write_row(head)?;
    rows.iter().try_for_each(|row| write_row(row.each_ref().map(String::as_str)))
}
