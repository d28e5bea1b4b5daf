//! `telusur ls` and `telusur show`: what there is.

use std::io::{self, Write};

use serde_json::{Value, json};
use telusur_engine::FollowerReport;
use telusur_engine::control::{
    ChangedPage, CrawlReply, ErrorItem, ListChanges, ListCrawls, ListErrors, ListSkipped,
    Operation, ReadCrawl, ReadCrawls,
};
use telusur_ledger::{UrlRecord, UrlState};
use telusur_model::{CrawlState, EngineFault, PageRecord, PauseReason, Reason, jain_index};

use super::{Outcome, Session};
use crate::cli::ShowArgs;
use crate::json::write_json_line;
use crate::message::shown;
use crate::summary::left_out;
use crate::units::{show_count, show_duration_ms, show_size};

/// Sites and start URLs that are named; the others are counted.
const NAMED_MAX: usize = 10;

pub(super) fn ls(session: &Session, output: &mut dyn Write) -> Outcome {
    if session.global.json {
        return ls_json(session, output);
    }
    let crawls = session.collect(&ListCrawls {})?;
    if crawls.is_empty() {
        session.talk.note("no crawls yet; start one: telusur crawl URL, or telusur demo");
        return Ok(0);
    }
    let rows = crawls.iter().map(|crawl| {
        [
            crawl.no.to_string(),
            crawl.name.clone().unwrap_or_default(),
            state_word(crawl.state, crawl.is_live).to_owned(),
            show_count(crawl.pages),
            show_count(crawl.queued),
            show_count(crawl.errors),
            crawl.created_at.rfc3339(),
            crawl.start.clone().unwrap_or_default(),
        ]
    });
    let head = ["crawl", "name", "state", "pages", "queue", "errors", "created", "start"];
    write_table(output, head, rows.collect())?;
    for crawl in &crawls {
        if let Some(why) = set_aside(crawl.state, crawl.fault.as_ref()) {
            let no = crawl.no;
            writeln!(output, "{no} {}; to try it again: telusur resume {no}", shown(&why))?;
        }
    }
    // They are the same for all crawls of the owner.
    for report in
        crawls.iter().map(|crawl| &crawl.behind).find(|it| !it.is_empty()).into_iter().flatten()
    {
        session.talk.warning(&behind_line(report));
    }
    Ok(0)
}

fn ls_json(session: &Session, output: &mut dyn Write) -> Outcome {
    let mut list: Vec<Value> = Vec::new();
    session.each(&ReadCrawls {}, &mut |crawl| {
        list.push(crawl_json(&crawl));
        true
    })?;
    write_json_line(output, &list)?;
    Ok(0)
}

/// Why a crawl is not started any more, if it is not.
fn set_aside(state: CrawlState, fault: Option<&EngineFault>) -> Option<String> {
    let is_aside = CrawlState::Paused { why: PauseReason::EngineStopped };
    fault.filter(|_| state == is_aside).map(EngineFault::text)
}

pub(super) fn show(session: &Session, arguments: &ShowArgs, output: &mut dyn Write) -> Outcome {
    let crawl = arguments.crawl.clone();
    if arguments.errors {
        return list(session, &ListErrors { crawl }, output, |item, output, is_json| {
            match (item, is_json) {
                (ErrorItem::Page(page), true) => write_json_line(output, page),
                (ErrorItem::Url(url), true) => write_json_line(output, url),
                (ErrorItem::Page(page), false) => write_error_page(output, page),
                (ErrorItem::Url(url), false) => write_url(output, url),
            }
        });
    }
    if arguments.changes {
        return list(session, &ListChanges { crawl }, output, |page, output, is_json| {
            let ChangedPage { url, what } = page;
            match is_json {
                true => write_json_line(output, &json!({ "url": url, "change": what })),
                false => writeln!(output, "{what:<20} {}", shown(url)),
            }
        });
    }
    if let Some(reason) = &arguments.skipped {
        let reason = (!reason.is_empty()).then(|| reason.clone());
        return list(session, &ListSkipped { crawl, reason }, output, |url, output, is_json| {
            match is_json {
                true => write_json_line(output, url),
                false => write_url(output, url),
            }
        });
    }
    let crawl = session.ask(&ReadCrawl { crawl })?;
    if session.global.json {
        writeln!(output, "{}", crawl_json(&crawl))?;
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
    write: fn(&O::Item, &mut dyn Write, bool) -> io::Result<()>,
) -> Outcome {
    let mut written = Ok(());
    session.each(operation, &mut |item| {
        written = write(&item, output, session.global.json);
        written.is_ok()
    })?;
    written?;
    Ok(0)
}

fn write_error_page(output: &mut dyn Write, page: &PageRecord) -> io::Result<()> {
    let (url, from) = (shown(page.url.as_str()), from(page.referrer.as_deref()));
    match &page.parse_failed {
        Some(why) if page.is_ok() => {
            let word = Reason::ParseFailed.word();
            writeln!(output, "{word:<20} {url}  ({}){from}", shown(why))
        }
        Some(_) | None => writeln!(output, "{:<20} {url}{from}", page.status),
    }
}

fn write_url(output: &mut dyn Write, url: &UrlRecord) -> io::Result<()> {
    let (word, detail) = match &url.state {
        UrlState::Failed { reason, detail, .. } => (reason.word(), detail),
        UrlState::Skipped { reason, rule } => (reason.word(), rule),
        _ => return Ok(()),
    };
    let from = from(url.referrer.as_deref());
    writeln!(output, "{word:<20} {}  ({}){from}", shown(&url.url), shown(detail))
}

fn from(referrer: Option<&str>) -> String {
    referrer.map(|page| format!("  from {}", shown(page))).unwrap_or_default()
}

/// The state in one word; a crawl that says it runs while nobody runs it was interrupted.
fn state_word(state: CrawlState, is_live: bool) -> &'static str {
    match state {
        CrawlState::Running if !is_live => "interrupted",
        state => state.word(),
    }
}

/// That indexing, or what else is derived from pages, is behind, and why.
fn behind_line(report: &FollowerReport) -> String {
    let (why, since) = match &report.trouble {
        Some(trouble) => (shown(&trouble.why), format!(" since {}", trouble.since)),
        None => ("nothing fails".to_owned(), String::new()),
    };
    let pages = show_count(report.lag);
    let subject = report.subject();
    format!("{subject} is behind by {pages} pages{since} and is tried again by itself: {why}")
}

fn crawl_json(crawl: &CrawlReply) -> Value {
    let record = &crawl.record;
    let finish_reason = match record.state {
        CrawlState::Finished { why } => Some(why),
        _ => None,
    };
    let stats = crawl.progress.as_ref().map_or(&record.stats, |progress| &progress.stats);
    let mut settings = json!(record.crawl);
    settings["fetch"] = json!(record.crawl.fetch.without_secrets());
    // Of headers even the masked values say nothing.
    settings["fetch"]["headers"] =
        json!(record.crawl.fetch.headers.iter().map(|(name, _)| name).collect::<Vec<_>>());
    let pause_reason = match record.state {
        CrawlState::Paused { why } => Some(why),
        _ => None,
    };
    json!({
        "id": record.crawl.id,
        "alias": record.crawl.no.to_string(),
        "name": record.crawl.name,
        "state": state_word(record.state, crawl.is_live),
        "finish_reason": finish_reason,
        "pause_reason": pause_reason,
        "pause_detail": set_aside(record.state, record.fault.as_ref()),
        "is_live": crawl.is_live,
        "created_at": record.crawl.created_at.rfc3339(),
        "state_since": record.state_since.rfc3339(),
        "errors": stats.errors(),
        "stats": stats,
        "left_out": record.crawl.left_out(record.state, stats),
        "pages_per_second": crawl.progress.as_ref().map(|progress| progress.pages_per_second),
        "sites": crawl.sites,
        "fairness_index": jain_index(crawl.sites.iter().map(|site| site.pages)),
        "moved_seeds": crawl.moved_seeds,
        "indexing": crawl.behind.iter().find(|report| report.is_index()),
        "behind": crawl.behind,
        "parked": crawl.progress.as_ref().map(|progress| &progress.parked),
        "parse_backlog": crawl.progress.as_ref().map(|progress| &progress.parse_backlog),
        "settings": settings,
    })
}

fn write_crawl(crawl: &CrawlReply, output: &mut dyn Write) -> io::Result<()> {
    let record = &crawl.record;
    let stats = crawl.progress.as_ref().map_or(&record.stats, |progress| &progress.stats);
    let mut row = |name: &str, value: String| writeln!(output, "{name:<12}{}", shown(&value));
    row("crawl", format!("{} ({})", record.crawl.no, record.crawl.id))?;
    if let Some(name) = &record.crawl.name {
        row("name", name.clone())?;
    }
    let why = match record.state {
        CrawlState::Finished { why } => format!(" ({})", why.phrase()),
        _ => set_aside(record.state, record.fault.as_ref())
            .map(|why| format!(" ({why})"))
            .unwrap_or_default(),
    };
    row(
        "state",
        format!("{}{why} since {}", state_word(record.state, crawl.is_live), record.state_since),
    )?;
    row("created", record.crawl.created_at.rfc3339())?;
    let seeds = record.crawl.seeds.texts();
    for seed in seeds.iter().take(NAMED_MAX) {
        row("start", seed.clone())?;
    }
    if seeds.len() > NAMED_MAX {
        row("", format!("and {} more", show_count((seeds.len() - NAMED_MAX) as u64)))?;
    }
    for (from, to) in &crawl.moved_seeds {
        row("moved", format!("{from} -> {to} (out of scope)"))?;
    }
    row("ran", show_duration_ms(stats.active_ms))?;
    row("pages", format!("{} ({} ok)", show_count(stats.pages), show_count(stats.ok)))?;
    if record.crawl.seeds.linear().is_some() {
        let ids = &stats.ids;
        let counts = [
            ("content", ids.content),
            ("missing", ids.missing),
            ("holes", ids.holes),
            ("to retry", ids.waiting),
        ];
        let counts = counts.map(|(word, count)| format!("{word} {}", show_count(count)));
        row("ids", counts.join(", "))?;
    }
    for report in &crawl.behind {
        row(&report.name, behind_line(report))?;
    }
    row("queue", show_count(stats.queued))?;
    row("sitemaps", show_count(stats.sitemaps))?;
    row("redirected", show_count(stats.redirected))?;
    row("errors", show_count(stats.errors()))?;
    row("skipped", show_count(stats.skipped))?;
    row("not web", format!("{} links of other schemes", show_count(stats.other_schemes)))?;
    row("received", show_size(stats.wire_bytes))?;
    row("status", counts(&stats.statuses))?;
    row("failures", counts(&stats.failures))?;
    row("skips", counts(&stats.skips))?;
    for parked in crawl.progress.iter().flat_map(|progress| &progress.parked) {
        row("parked", parked.text())?;
    }
    for site in crawl.progress.iter().flat_map(|progress| &progress.parse_backlog) {
        row("waiting", format!("{site}: its pages wait for the parser"))?;
    }
    for part in left_out(&record.crawl.left_out(record.state, stats), stats.uncounted) {
        row("left out", part)?;
    }
    if let Some(base) = record.crawl.recrawl_of {
        row("repeats", format!("{base}: {}", counts(&stats.changes)))?;
    }
    let fairness = jain_index(crawl.sites.iter().map(|site| site.pages));
    row("fairness", format!("{fairness:.2} over {} sites", show_count(crawl.sites.len() as u64)))?;
    for site in crawl.sites.iter().take(NAMED_MAX) {
        let (pages, queued) = (show_count(site.pages), show_count(site.queued));
        row("site", format!("{} {pages} pages, {queued} waiting", site.site))?;
    }
    Ok(())
}

fn counts<K: ToString>(table: &std::collections::BTreeMap<K, u64>) -> String {
    let parts =
        table.iter().map(|(key, count)| format!("{} {}", key.to_string(), show_count(*count)));
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
