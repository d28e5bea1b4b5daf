//! Runs a crawl in the foreground and says how it ended: for `crawl`, `resume` and `demo`.

use std::io::Write;
use std::path::Path;

use telusur_engine::FREE_BYTES_LEAST;
use telusur_engine::control::{Control, ReadCrawl};
use telusur_engine::export::Collection;
use telusur_ledger::{Store, UrlState};
use telusur_model::{CrawlNo, CrawlState, FinishReason, HttpVersion, PauseReason};

use super::{Outcome, Session, export};
use crate::backend::{self, OpenStore};
use crate::foreground::{Ended, Foreground, parsers};
use crate::message::{Code, Message, shown};
use crate::parsing::parser_when_needed;
use crate::progress::ProgressDisplay;
use crate::settings::{FailOn, Key, Settings};
use crate::summary::{Cost, Summary};
use crate::units::{show_count, show_size, write_size};

/// Start URLs that moved and are named; more are rare.
const MOVED_SHOWN_MAX: usize = 5;

/// What to run, and what is to come of it.
pub(super) struct RunJob<'a> {
    pub(super) crawl: CrawlNo,
    /// Where the pages go at the end.
    pub(super) output: Option<&'a Path>,
    /// When the end is a failure.
    pub(super) fail_on: FailOn,
}

pub(super) fn run(
    session: &Session,
    settings: &Settings,
    open: OpenStore,
    job: &RunJob<'_>,
    output: &mut dyn Write,
) -> Outcome {
    let record = open.store.crawl(job.crawl).map_err(|error| backend::store_message(&error))?;
    let pages_max = record.as_ref().and_then(|record| record.crawl.limits.pages_max);
    if let Some(record) = &record {
        let allowed = &record.crawl.fetch.allow_private;
        if !allowed.is_empty() {
            session
                .talk
                .note(&format!("not only public addresses: {} may be asked", allowed.join(", ")));
        }
    }
    let is_http2_only =
        record.as_ref().is_some_and(|record| record.crawl.fetch.http == HttpVersion::Two);
    let of_crawl = record.as_ref().and_then(|record| record.crawl.limits.free_bytes_min);
    // A flag of this command is in the crawl already.
    let free_bytes_min = of_crawl.unwrap_or_else(|| settings.bytes(Key::MinFreeDisk));
    let parsers = parsers(settings);
    let display = ProgressDisplay::new(session.terminal, pages_max, session.wants_progress());
    let crawl = job.crawl;
    let foreground = Foreground { open, crawl, free_bytes_min, parsers, display, pages_max };
    let before = Cost::of_process();
    let ended = foreground.run()?;
    let cost = Cost::of_process().since(&before);
    let summary = Summary { progress: &ended.progress, cost, is_http2_only };
    if session.global.json {
        writeln!(output, "{}", summary.json())?;
    } else {
        write!(output, "{}", summary.text(session.terminal.is_unicode))?;
    }
    output.flush()?;
    let control = Control::of_store(ended.open.store.clone(), parser_when_needed(settings)?);
    say_moved(session, &ended, &control);
    if let Some(path) = job.output {
        write_pages(session, &ended, &control, path)?;
    }
    verdict(&ended, job, free_bytes_min)
}

/// The exit code: what the signal asks for, or whether the crawl is a failure.
fn verdict(ended: &Ended, job: &RunJob<'_>, free_bytes_min: u64) -> Outcome {
    let crawl = job.crawl;
    if let Some(code) = ended.signal_code {
        return Ok(code);
    }
    match ended.progress.state {
        CrawlState::Paused { why: PauseReason::DiskFull } => {
            let free = ended.open.store.free_bytes().ok().flatten().unwrap_or(0);
            let what = match free_bytes_min < FREE_BYTES_LEAST {
                true => {
                    let (free, least) = (show_size(free), write_size(FREE_BYTES_LEAST));
                    format!(
                        "paused: only {free} free (at least {least} are needed to store anything)"
                    )
                }
                false => format!("paused: {}", backend::no_space(free, free_bytes_min).what),
            };
            let hint = format!("Nothing is lost. Free space, then: telusur resume {crawl}");
            return Err(Message::new(Code::DiskFull, what).hint(hint).into());
        }
        CrawlState::Paused { why: PauseReason::EngineStopped } => {
            let record = ended.open.store.crawl(crawl).ok().flatten();
            let why = record.and_then(|record| record.fault).map(|fault| fault.why);
            let why = why.unwrap_or_else(|| "its row cannot be read".to_owned());
            return Err(Message::new(Code::DamagedData, format!("paused: {}", shown(&why)))
                .hint(format!(
                    "See what is damaged: telusur verify; try again: telusur resume {crawl}"
                ))
                .into());
        }
        CrawlState::Paused { why: PauseReason::NoNetwork } => {
            let hint =
                format!("Nothing is lost. Check the connection, then: telusur resume {crawl}");
            return Err(Message::new(Code::NoNetwork, "paused: nobody answers, on any host")
                .hint(hint)
                .into());
        }
        CrawlState::Paused { why: PauseReason::Refused } => {
            let what = "paused: robots.txt forbids id after id, or cannot be read";
            let hint = format!("See why: telusur coverage {crawl}; go on: telusur resume {crawl}");
            return Err(Message::new(Code::NoStart, what).hint(hint).into());
        }
        CrawlState::Finished { why: FinishReason::RetryAfter } => {
            let what = "ended: every host that is left asks us to wait (Retry-After)";
            let hint = format!(
                "What was crawled is kept. Later: telusur resume {crawl}; to wait longer, add --patience DURATION"
            );
            return Err(Message::new(Code::AskedToWait, what).hint(hint).into());
        }
        CrawlState::Finished { why: FinishReason::NoStart } => {
            return Err(no_start(ended, crawl).into());
        }
        _ => {}
    }
    if let Some(why) = fails(ended, job)? {
        return Err(Message::new(Code::FailOn, why)
            .hint(format!("What was crawled is kept. See: telusur show {crawl} --errors"))
            .into());
    }
    Ok(0)
}

fn fails(ended: &Ended, job: &RunJob<'_>) -> Result<Option<String>, Message> {
    let stats = &ended.progress.stats;
    let errors = stats.errors();
    Ok(match job.fail_on {
        FailOn::None => None,
        FailOn::AnyError => (errors > 0).then(|| format!("{} URLs failed", show_count(errors))),
        FailOn::Ratio(limit) => {
            #[expect(clippy::cast_precision_loss, reason = "a share of two digits")]
            let share =
                errors as f64 / (stats.pages + stats.failed + stats.ids.holes).max(1) as f64;
            (share > limit).then(|| format!("{:.1} % of the URLs failed", share * 100.0))
        }
        FailOn::Seed => failed_seed(ended, job.crawl)?.map(|(url, why)| format!("{url}: {why}")),
    })
}

fn no_start(ended: &Ended, crawl: CrawlNo) -> Message {
    if !ended.progress.walks.is_empty() {
        let why = ended.progress.stats.failures.iter().max_by_key(|(_, count)| **count);
        let why = why.map(|(why, _)| format!(": {why} ({})", why.help())).unwrap_or_default();
        return Message::new(Code::NoStart, format!("no id gave an answer{why}"))
            .hint(format!("Check the template, and see: telusur coverage {crawl}"));
    }
    match failed_seed(ended, crawl) {
        Ok(Some((url, why))) => {
            Message::new(Code::NoStart, format!("cannot fetch {}: {}", shown(&url), shown(&why)))
        }
        _ => Message::new(Code::NoStart, "no start URL gave a page"),
    }
    .hint("Check the address and the connection, or try without internet: telusur demo")
}

/// The first start URL that gave no page, and why.
fn failed_seed(ended: &Ended, crawl: CrawlNo) -> Result<Option<(String, String)>, Message> {
    let store = ended.open.store.as_ref();
    let refuse = |error| backend::store_message(&error);
    let Some(record) = store.crawl(crawl).map_err(refuse)? else { return Ok(None) };
    for seed in record.crawl.seeds.urls() {
        let Some(known) = store.url(crawl, seed).map_err(refuse)? else { continue };
        let why = match known.state {
            UrlState::Failed { reason, detail, .. } => Some(format!("{reason} ({detail})")),
            UrlState::Page { seq } => error_status(store, crawl, seq)?,
            _ => None,
        };
        if let Some(why) = why {
            return Ok(Some((seed.to_string(), why)));
        }
    }
    Ok(None)
}

fn error_status(store: &dyn Store, crawl: CrawlNo, seq: u64) -> Result<Option<String>, Message> {
    let page = store.page(crawl, seq).map_err(|error| backend::store_message(&error))?;
    let page = page.filter(|page| !page.is_ok());
    Ok(page.map(|page| format!("the server answered {}", page.status)))
}

/// A start URL that moved away explains a crawl that found little.
fn say_moved(session: &Session, ended: &Ended, control: &Control) {
    let crawl = ReadCrawl { crawl: ended.progress.crawl.to_string() };
    // What cannot be read is told by whoever needs it.
    let Ok(crawl) = control.run(&crawl, &mut |_| true) else { return };
    for (from, to) in crawl.moved_seeds.iter().take(MOVED_SHOWN_MAX) {
        session.talk.warning(&format!(
            "{} moved to {}, which is out of scope; to crawl it: telusur crawl {}",
            shown(from),
            shown(to),
            shown(to)
        ));
    }
}

fn write_pages(
    session: &Session,
    ended: &Ended,
    control: &Control,
    path: &Path,
) -> Result<(), Message> {
    let crawl = ended.progress.crawl.to_string();
    let lines = export::write_file(path, Collection::PAGES, &crawl, control)?;
    session.talk.note(&format!("{} lines written to {}", show_count(lines), path.display()));
    Ok(())
}
