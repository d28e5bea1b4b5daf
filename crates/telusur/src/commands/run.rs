//! Runs a crawl to its end and says how it ended: in this process, or in the one that owns the data directory. For
//! all commands that start crawls or go on with them.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use telusur_engine::FREE_BYTES_LEAST;
use telusur_engine::control::{
    Control, CrawlEnd, Operation, ReadCrawl, ResumedCrawl, RetriedCrawl, StartKind, StartedCrawl,
    crawl_end, is_over, stored_progress,
};
use telusur_engine::export::Collection;
use telusur_model::{CrawlNo, CrawlState, FinishReason, PauseReason};

use super::watch::{Watched, watch};
use super::{Outcome, Session, export};
use crate::backend::{self, NoReply, OpenStore, Opened, Owner};
use crate::foreground::{Ended, Foreground, parsers};
use crate::json::write_json_line;
use crate::message::{Code, Message, shown};
use crate::parsing::parser_when_needed;
use crate::progress::ProgressDisplay;
use crate::settings::{FailOn, Key, Settings};
use crate::summary::{Cost, Summary};
use crate::units::{show_count, show_size, write_size};

/// Start URLs that moved and are named; more are rare.
const MOVED_SHOWN_MAX: usize = 5;

/// What is to come of a crawl that runs.
pub(super) struct RunJob<'a> {
    /// Where the pages go at the end.
    pub(super) output: Option<&'a Path>,
    /// When the end is a failure.
    pub(super) fail_on: FailOn,
    /// Whether it is left to the process that owns the directory.
    pub(super) is_detached: bool,
}

/// What an operation that starts a crawl replies.
pub(super) trait Started {
    /// The crawl's number.
    fn no(&self) -> CrawlNo;

    /// What there is to say before it runs.
    fn notes(&self) -> Vec<String>;

    /// Whether there is nothing to wait for.
    fn is_done(&self) -> bool {
        false
    }
}

impl Started for StartedCrawl {
    fn no(&self) -> CrawlNo {
        self.no
    }

    fn notes(&self) -> Vec<String> {
        let no = self.no;
        let first = match self.start {
            StartKind::New => None,
            StartKind::Interrupted => {
                Some(format!("{no} was interrupted and goes on; --new starts over"))
            }
            StartKind::AnotherRun => {
                Some(format!("{no} asked for these ids before; --new starts over"))
            }
            StartKind::Running => Some(format!("{no} is running already; --new starts another")),
        };
        first.into_iter().chain(self.notes.iter().cloned()).collect()
    }
}

impl Started for ResumedCrawl {
    fn no(&self) -> CrawlNo {
        self.no
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Another terminal shows it already.
    fn is_done(&self) -> bool {
        self.was_live
    }
}

impl Started for RetriedCrawl {
    fn no(&self) -> CrawlNo {
        self.no
    }

    fn notes(&self) -> Vec<String> {
        let (no, count) = (self.no, self.count);
        match count {
            0 => Vec::new(),
            1 => vec![format!("{no} asks again for one URL that failed")],
            count => vec![format!("{no} asks again for {} URLs that failed", show_count(count))],
        }
    }

    fn is_done(&self) -> bool {
        self.was_live || self.count == 0
    }
}

/// Runs an operation that starts a crawl, and then the crawl. `done` writes what is said if there is nothing to
/// wait for.
pub(super) fn run<O>(
    session: &Session,
    settings: &Settings,
    operation: &O,
    job: &RunJob<'_>,
    output: &mut dyn Write,
    done: impl FnOnce(&O::Reply, &mut dyn Write) -> std::io::Result<()>,
) -> Outcome
where
    O: Operation,
    O::Reply: Started,
{
    match backend::open_or_owner(&session.target(settings)?)? {
        Opened::Here(open) => {
            let control =
                Control::of_store(open.store.clone(), parser_when_needed(parsers(settings))?);
            let started = control.run(operation, &mut |_| true);
            let started = started.map_err(|error| backend::request_message(&error));
            let started = match started {
                Ok(started) => started,
                Err(message) => {
                    drop(control);
                    close(open)?;
                    return Err(message.into());
                }
            };
            say_notes(session, &started);
            if started.is_done() {
                done(&started, output)?;
                drop(control);
                close(open)?;
                return Ok(0);
            }
            drop(control);
            run_here(session, settings, open, started.no(), job, output)
        }
        Opened::Elsewhere(owner) => {
            let started = owner.reply(operation).map_err(Message::from)?;
            say_notes(session, &started);
            if started.is_done() {
                done(&started, output)?;
                return Ok(0);
            }
            if job.is_detached {
                return tell_detached(session, &owner, started.no(), output);
            }
            run_elsewhere(session, settings, &owner, started.no(), job, output)
        }
    }
}

/// Leaves the store as it was found: after a kill, the next start must not believe that it was closed.
fn close(open: OpenStore) -> Result<(), Message> {
    match open.store.was_closed() {
        true => open.store.close().map_err(|error| backend::store_message(&error)),
        false => Ok(()),
    }
}

fn say_notes(session: &Session, started: &dyn Started) {
    for note in started.notes() {
        session.talk.note(&note);
    }
}

fn say_allowed(session: &Session, allowed: &[String]) {
    if !allowed.is_empty() {
        let allowed = allowed.join(", ");
        session.talk.note(&format!("not only public addresses: {allowed} may be asked"));
    }
}

#[derive(Serialize)]
struct Detached {
    owner: String,
    crawl: String,
}

fn tell_detached(
    session: &Session,
    owner: &Owner,
    crawl: CrawlNo,
    output: &mut dyn Write,
) -> Outcome {
    if session.global.json {
        write_json_line(output, &Detached { owner: owner.to_string(), crawl: crawl.to_string() })?;
    } else {
        writeln!(output, "{crawl} is run by {owner}")?;
        writeln!(output, "watch it: telusur show {crawl}    end it: telusur stop {crawl}")?;
    }
    Ok(0)
}

/// Runs a crawl of an open directory in this process.
pub(super) fn run_here(
    session: &Session,
    settings: &Settings,
    open: OpenStore,
    crawl: CrawlNo,
    job: &RunJob<'_>,
    output: &mut dyn Write,
) -> Outcome {
    let record = open.store.crawl(crawl).map_err(|error| backend::store_message(&error))?;
    let pages_max = record.as_ref().and_then(|record| record.crawl.limits.pages_max);
    if let Some(record) = &record {
        say_allowed(session, &record.crawl.fetch.allow_private);
    }
    let of_crawl = record.as_ref().and_then(|record| record.crawl.limits.free_bytes_min);
    // A flag of this command is in the crawl already.
    let free_bytes_min = of_crawl.unwrap_or_else(|| settings.bytes(Key::MinFreeDisk));
    let parsers = parsers(settings);
    let display = ProgressDisplay::new(session.terminal, pages_max, session.wants_progress());
    let foreground = Foreground { open, crawl, free_bytes_min, parsers, display, pages_max };
    let before = Cost::of_process();
    let Ended { progress, signal_code, open, .. } = foreground.run()?;
    let cost = Cost::of_process().since(&before);
    let control = Control::of_store(open.store.clone(), parser_when_needed(parsers)?);
    let end = crawl_end(&control, progress).map_err(|error| backend::request_message(&error))?;
    drop(control);
    drop(open);
    conclude(session, &end, Some(cost), signal_code, free_bytes_min, job, output)
}

/// Watches a crawl that another process runs. If that process ends before the crawl does, this one goes on with it.
fn run_elsewhere(
    session: &Session,
    settings: &Settings,
    owner: &Owner,
    crawl: CrawlNo,
    job: &RunJob<'_>,
    output: &mut dyn Write,
) -> Outcome {
    let read = ReadCrawl { crawl: crawl.to_string() };
    let view = owner.reply(&read).map_err(Message::from)?;
    say_allowed(session, &view.fetch.allow_private);
    let pages_max = (view.limits.max_pages > 0).then_some(view.limits.max_pages);
    let display = ProgressDisplay::new(session.terminal, pages_max, session.wants_progress());
    let watched = match watch(owner, crawl, display, pages_max) {
        Ok(watched) => watched,
        Err(NoReply::Refused(message)) => return Err(message.into()),
        Err(NoReply::Lost(message)) => {
            return match owner {
                Owner::Process { .. } => {
                    session.talk.note(&format!("{owner} has ended; {crawl} goes on here"));
                    go_on(session, settings, crawl, job, output)
                }
                Owner::Service(_) => {
                    let hint = "The crawl goes on there when the service does";
                    Err(message.hint(hint).into())
                }
            };
        }
    };
    let Watched { end, signal_code } = watched;
    let free_bytes_min = settings.bytes(Key::MinFreeDisk);
    conclude(session, &end, None, signal_code, free_bytes_min, job, output)
}

/// Goes on with a crawl whose process has ended, unless another process has taken the directory.
fn go_on(
    session: &Session,
    settings: &Settings,
    crawl: CrawlNo,
    job: &RunJob<'_>,
    output: &mut dyn Write,
) -> Outcome {
    match backend::open_or_owner(&session.target(settings)?)? {
        Opened::Elsewhere(owner) => run_elsewhere(session, settings, &owner, crawl, job, output),
        Opened::Here(open) => {
            let record = open.store.crawl(crawl).map_err(|error| backend::store_message(&error))?;
            let gone = || Message::new(Code::NoSuchCrawl, format!("{crawl} was removed"));
            let record = record.ok_or_else(gone)?;
            if !is_over(record.state) {
                return run_here(session, settings, open, crawl, job, output);
            }
            let control =
                Control::of_store(open.store.clone(), parser_when_needed(parsers(settings))?);
            let progress = stored_progress(&record);
            let end = crawl_end(&control, progress);
            let end = end.map_err(|error| backend::request_message(&error))?;
            drop(control);
            close(open)?;
            let free_bytes_min = settings.bytes(Key::MinFreeDisk);
            conclude(session, &end, None, None, free_bytes_min, job, output)
        }
    }
}

/// Says how a crawl ended, writes its pages, and gives the exit code.
fn conclude(
    session: &Session,
    end: &CrawlEnd,
    cost: Option<Cost>,
    signal_code: Option<u8>,
    free_bytes_min: u64,
    job: &RunJob<'_>,
    output: &mut dyn Write,
) -> Outcome {
    let summary = Summary { progress: &end.progress, cost, is_http2_only: end.is_http2_only };
    if session.global.json {
        write_json_line(output, &summary.json(&end.crawl))?;
    } else {
        write!(output, "{}", summary.text(session.terminal.is_unicode))?;
    }
    output.flush()?;
    say_moved(session, end);
    if let Some(path) = job.output {
        write_pages(session, end, path)?;
    }
    verdict(end, signal_code, job, free_bytes_min)
}

/// The exit code: what the signal asks for, or whether the crawl is a failure.
fn verdict(
    end: &CrawlEnd,
    signal_code: Option<u8>,
    job: &RunJob<'_>,
    free_bytes_min: u64,
) -> Outcome {
    if let Some(code) = signal_code {
        return Ok(code);
    }
    let crawl = end.progress.crawl;
    match end.progress.state {
        CrawlState::Paused { why: PauseReason::DiskFull } => {
            let free = end.free_bytes.unwrap_or(0);
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
            let why = end.fault.clone().unwrap_or_else(|| "its row cannot be read".to_owned());
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
        CrawlState::Finished { why: FinishReason::NoStart } => return Err(no_start(end).into()),
        _ => {}
    }
    if let Some(why) = fails(end, job.fail_on) {
        return Err(Message::new(Code::FailOn, why)
            .hint(format!("What was crawled is kept. See: telusur show {crawl} --errors"))
            .into());
    }
    Ok(0)
}

fn fails(end: &CrawlEnd, fail_on: FailOn) -> Option<String> {
    let stats = &end.progress.stats;
    let errors = stats.errors();
    match fail_on {
        FailOn::None => None,
        FailOn::AnyError => (errors > 0).then(|| format!("{} URLs failed", show_count(errors))),
        FailOn::Ratio(limit) => {
            #[expect(clippy::cast_precision_loss, reason = "a share of two digits")]
            let share =
                errors as f64 / (stats.pages + stats.failed + stats.ids.holes).max(1) as f64;
            (share > limit).then(|| format!("{:.1} % of the URLs failed", share * 100.0))
        }
        FailOn::Seed => end.failed_seed.as_ref().map(|seed| format!("{}: {}", seed.url, seed.why)),
    }
}

fn no_start(end: &CrawlEnd) -> Message {
    let crawl = end.progress.crawl;
    if end.is_linear {
        let why = end.progress.stats.failures.iter().max_by_key(|(_, count)| **count);
        let why = why.map(|(why, _)| format!(": {why} ({})", why.help())).unwrap_or_default();
        return Message::new(Code::NoStart, format!("no id gave an answer{why}"))
            .hint(format!("Check the template, and see: telusur coverage {crawl}"));
    }
    match &end.failed_seed {
        Some(seed) => {
            let (url, why) = (shown(&seed.url), shown(&seed.why));
            Message::new(Code::NoStart, format!("cannot fetch {url}: {why}"))
        }
        None => Message::new(Code::NoStart, "no start URL gave a page"),
    }
    .hint("Check the address and the connection, or try without internet: telusur demo")
}

/// A start URL that moved away explains a crawl that found little.
fn say_moved(session: &Session, end: &CrawlEnd) {
    for seed in end.crawl.moved_seeds.iter().take(MOVED_SHOWN_MAX) {
        let (url, to) = (shown(&seed.url), shown(&seed.to));
        session.talk.warning(&format!(
            "{url} moved to {to}, which is out of scope; to crawl it: telusur crawl {to}"
        ));
    }
}

fn write_pages(session: &Session, end: &CrawlEnd, path: &Path) -> Result<(), Message> {
    let crawl = end.progress.crawl.to_string();
    let lines = export::write_file(path, Collection::PAGES, &crawl, session)?;
    session.talk.note(&format!("{} lines written to {}", show_count(lines), path.display()));
    Ok(())
}
