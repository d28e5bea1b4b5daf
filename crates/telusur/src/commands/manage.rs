//! `resume`, `retry`, `recrawl`, `pause`, `stop`, `exclude`, `cancel`, `rm`: what is done to crawls.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;

use serde_json::json;
use telusur_engine::control::{
    ChangeCrawl, CrawlDone, Operation, ReadCrawl, ResumeCrawl, RetryCrawl,
};
use telusur_engine::{CrawlChange, RequestError, SystemClock, has_budget_room};
use telusur_ledger::{CrawlRecord, NewCrawl, Store, StoreError};
use telusur_model::{Crawl, CrawlNo, CrawlState, FinishReason, LeftOut, Reason};

use super::run::{self, RunJob};
use super::{Outcome, Session};
use crate::backend::{self, OpenStore};
use crate::cli::{ResumeArgs, SpaceArgs, WorkArgs, given_texts};
use crate::crawl_request::{CrawlRequest, fail_on};
use crate::json::write_json_line;
use crate::message::{Code, Message, shown};
use crate::settings::{Given, Key, Settings};
use crate::units::{show_count, write_duration_ms};

/// Carries out an order that ends with the crawl it was for.
pub(super) fn order<O: Operation<Reply = CrawlDone>>(
    session: &Session,
    order: &O,
    done: &str,
    output: &mut dyn Write,
) -> Outcome {
    let CrawlDone { crawl } = session.ask(order)?;
    if session.global.json {
        write_json_line(output, &json!({ "crawl": crawl, "done": done }))?;
    } else {
        writeln!(output, "{crawl} {done}")?;
    }
    Ok(0)
}

/// Asks before a crawl is deleted, unless the user said yes already.
pub(super) fn confirm(session: &Session, crawl: &str, yes: bool) -> Result<(), Message> {
    if yes {
        return Ok(());
    }
    let record = record(session, crawl)?;
    let refuse = |what: &str| {
        Message::new(Code::NotConfirmed, what)
            .hint(format!("To delete it without being asked: --yes (crawl {})", shown(crawl)))
    };
    if !io::stdin().is_terminal() {
        return Err(refuse("nobody is there to confirm"));
    }
    let pages = show_count(record.stats.pages);
    eprint!("Delete {} with its {pages} pages? [y/N] ", record.crawl.no);
    let mut line = String::new();
    let _ = io::stdin().lock().read_line(&mut line);
    let is_yes = matches!(line.trim().to_lowercase().as_str(), "y" | "yes" | "ya");
    if is_yes { Ok(()) } else { Err(refuse("nothing was deleted")) }
}

/// A crawl as it is stored.
fn record(session: &Session, crawl: &str) -> Result<CrawlRecord, Message> {
    Ok(session.ask(&ReadCrawl { crawl: crawl.to_owned() })?.record)
}

/// Goes on with a crawl: in the process that holds it, or in this one.
pub(super) fn resume(session: &Session, arguments: &ResumeArgs, output: &mut dyn Write) -> Outcome {
    let settings = session.settings(arguments.given())?.settings;
    let dir = backend::data_dir(&settings);
    if backend::is_served(dir) {
        change_elsewhere(session, arguments, &settings)?;
        let resume = ResumeCrawl { crawl: arguments.crawl.clone() };
        return order(session, &resume, "resumed", output);
    }
    let (open, record) = open_crawl(dir, &arguments.crawl)?;
    let mut crawl = record.crawl.clone();
    change(&mut crawl, arguments, &settings);
    check_can_resume(open.store.as_ref(), &CrawlRecord { crawl: crawl.clone(), ..record })?;
    let refuse = |error: StoreError| backend::store_message(&error);
    open.store.change(&crawl).map_err(refuse)?;
    let job = RunJob { crawl: crawl.no, output: None, fail_on: fail_on(&settings) };
    run::run(session, &settings, open, &job, output)
}

/// Has the process that holds the directory change the crawl as the flags of `resume` say.
fn change_elsewhere(
    session: &Session,
    arguments: &ResumeArgs,
    settings: &Settings,
) -> Result<(), Message> {
    if arguments.given().is_empty() {
        return Ok(());
    }
    // All crawls of a process share the disk, and what it leaves free.
    if arguments.min_free_disk.is_some() {
        let what =
            "--min-free-disk cannot be changed while another process holds the data directory";
        let hint =
            "Start that process with it (telusur serve --min-free-disk SIZE), or end it first";
        return Err(Message::new(Code::WrongState, what).hint(hint));
    }
    let mut crawl = record(session, &arguments.crawl)?.crawl;
    change(&mut crawl, arguments, settings);
    let (limits, politeness) = (Some(crawl.limits), Some(crawl.politeness));
    let change = Box::new(CrawlChange { limits, politeness, ..CrawlChange::default() });
    session.ask(&ChangeCrawl { crawl: arguments.crawl.clone(), change }).map(drop)
}

/// The crawl as the flags of `resume` want it.
fn change(crawl: &mut Crawl, arguments: &ResumeArgs, settings: &Settings) {
    let request = CrawlRequest::new(settings, Vec::new(), None);
    for given in arguments.given() {
        match given.key {
            Key::MaxPages => crawl.limits.pages_max = request.limits.pages_max,
            Key::MaxDuration => crawl.limits.duration_ms_max = request.limits.duration_ms_max,
            Key::MaxBytes => crawl.limits.bytes_max = request.limits.bytes_max,
            Key::MaxPerHost => {
                crawl.limits.urls_per_host_max = request.limits.urls_per_host_max;
                let is_linear = crawl.seeds.linear().is_some();
                crawl.limits.ids_per_host_max =
                    is_linear.then_some(request.limits.urls_per_host_max);
            }
            Key::MaxPerSite => crawl.limits.urls_per_site_max = request.limits.urls_per_site_max,
            Key::Workers => {
                crawl.politeness.workers = request.politeness.workers;
                crawl.politeness.silent_max = request.politeness.silent_max;
            }
            Key::MinFreeDisk => crawl.limits.free_bytes_min = request.limits.free_bytes_min,
            Key::Patience => crawl.limits.patience_ms = request.limits.patience_ms,
            _ => crawl.politeness.delay_ms = request.politeness.delay_ms,
        }
    }
}

/// Asks again for what failed: in the process that holds the crawl, or in this one.
pub(super) fn retry(session: &Session, arguments: &WorkArgs, output: &mut dyn Write) -> Outcome {
    let settings = session.settings(arguments.space.given())?.settings;
    let id = arguments.crawl.as_str();
    let retried = session.ask(&RetryCrawl { crawl: id.to_owned() })?.count;
    let dir = backend::data_dir(&settings);
    let is_elsewhere = backend::is_served(dir);
    if retried == 0 || is_elsewhere {
        let record = record(session, id)?;
        let is_over = matches!(record.state, CrawlState::Finished { .. });
        if retried > 0 && is_over {
            session.ask(&ResumeCrawl { crawl: id.to_owned() })?;
        }
        return say_retried(session, record.crawl.no, retried, output);
    }
    let (open, record) = open_crawl(dir, id)?;
    check_can_resume(open.store.as_ref(), &record)?;
    session.talk.note(&format!("{} asks again for {}", record.crawl.no, failures(retried)));
    let mut crawl = record.crawl;
    if leave_space(&mut crawl, &arguments.space, &settings) {
        open.store.change(&crawl).map_err(|error| backend::store_message(&error))?;
    }
    let job = RunJob { crawl: crawl.no, output: None, fail_on: fail_on(&settings) };
    run::run(session, &settings, open, &job, output)
}

/// The crawl with the space that the flag of this command wants to be left, if it was given.
fn leave_space(crawl: &mut Crawl, space: &SpaceArgs, settings: &Settings) -> bool {
    if space.min_free_disk.is_some() {
        crawl.limits.free_bytes_min = Some(settings.bytes(Key::MinFreeDisk));
    }
    space.min_free_disk.is_some()
}

fn say_retried(session: &Session, crawl: CrawlNo, retried: u64, output: &mut dyn Write) -> Outcome {
    if session.global.json {
        write_json_line(output, &json!({ "crawl": crawl.to_string(), "retried": retried }))?;
    } else if retried == 0 {
        writeln!(output, "nothing of {crawl} failed")?;
    } else {
        writeln!(output, "{crawl} asks again for {}", failures(retried))?;
    }
    Ok(0)
}

fn failures(count: u64) -> String {
    match count {
        1 => "one URL that failed".to_owned(),
        count => format!("{} URLs that failed", show_count(count)),
    }
}

/// Crawls the same again and asks only for what changed since.
pub(super) fn recrawl(session: &Session, arguments: &WorkArgs, output: &mut dyn Write) -> Outcome {
    let settings = session.settings(arguments.space.given())?.settings;
    let (open, record) = open_crawl(backend::data_dir(&settings), &arguments.crawl)?;
    if record.stats.pages == 0 {
        let what = format!("{} has no pages that could have changed", record.crawl.no);
        return Err(Message::new(Code::WrongState, what)
            .hint(format!("Go on with it: telusur resume {}", record.crawl.no))
            .into());
    }
    let base = record.crawl.no;
    let mut crawl = Crawl {
        created_at: telusur_model::Clock::wall(&SystemClock::new()),
        recrawl_of: Some(base),
        ..record.crawl
    };
    leave_space(&mut crawl, &arguments.space, &settings);
    let new = NewCrawl { crawl, random: super::crawl::random()? };
    let refuse = |error: StoreError| backend::store_message(&error);
    let again = open.store.create(new).map_err(refuse)?.crawl.no;
    session.talk.note(&format!("{again} looks at the pages of {base} again"));
    let job = RunJob { crawl: again, output: None, fail_on: fail_on(&settings) };
    run::run(session, &settings, open, &job, output)
}

/// Opens a directory for one of its crawls.
fn open_crawl(dir: &Path, id: &str) -> Result<(OpenStore, CrawlRecord), Message> {
    let open = open_existing(dir)?;
    let found = open.store.find(id).map_err(|error| backend::store_message(&error))?;
    let record = found.ok_or_else(|| RequestError::NoSuchCrawl(id.to_owned()))?;
    Ok((open, record))
}

fn open_existing(dir: &Path) -> Result<OpenStore, Message> {
    if backend::is_there(dir)? {
        return backend::open(dir);
    }
    Err(backend::nothing_yet(dir))
}

/// A crawl that would end at once is refused with the way out.
fn check_can_resume(store: &dyn Store, record: &CrawlRecord) -> Result<(), Message> {
    let no = record.crawl.no;
    let limits = &record.crawl.limits;
    let refuse = |what: String, hint: String| Err(Message::new(Code::WrongState, what).hint(hint));
    if record.crawl.is_import() {
        let is_whole = matches!(record.state, CrawlState::Finished { .. });
        let what = match is_whole {
            true => format!("{no} is an import: there is nothing to fetch"),
            false => format!("{no} is an import that did not come to its end"),
        };
        let hint = "Import again, what is there already is replaced: telusur import FILE";
        return refuse(what, hint.to_owned());
    }
    if limits.pages_max.is_some_and(|max| record.stats.pages >= max) {
        let pages = show_count(record.stats.pages);
        return refuse(
            format!("{no} has reached its limit of {pages} pages"),
            format!("Give it a higher one: telusur resume {no} -n {}", record.stats.pages * 2),
        );
    }
    if let Some(max) = limits.duration_ms_max
        && record.stats.active_ms >= max
    {
        return refuse(
            format!("{no} has used up its time of {}", write_duration_ms(max)),
            format!("Give it more: telusur resume {no} -t {}", write_duration_ms(max * 2)),
        );
    }
    if limits.bytes_max.is_some_and(|max| record.stats.wire_bytes >= max) {
        return refuse(
            format!("{no} has reached its byte limit"),
            format!("Give it a higher one: telusur resume {no} --max-bytes SIZE"),
        );
    }
    let is_done = matches!(
        record.state,
        CrawlState::Finished {
            why: FinishReason::Drained | FinishReason::NoStart | FinishReason::Budget
        }
    );
    let left_out = record.crawl.left_out(record.state, &record.stats);
    if is_done && record.stats.queued == 0 && !left_out.is_empty() {
        return match has_budget_room(store, &record.crawl) {
            Ok(true) => Ok(()),
            Ok(false) => Err(budget_spent(record, &left_out)),
            Err(error) => Err(backend::store_message(&error)),
        };
    }
    if is_done && record.stats.queued == 0 {
        let may_have_failed = record.crawl.seeds.linear().is_some() || record.stats.failed > 0;
        let hint = match may_have_failed {
            true => format!("To ask again for what failed: telusur retry {no}"),
            false => "Start a new crawl: telusur crawl URL".to_owned(),
        };
        return refuse(format!("{no} is complete: nothing is left to fetch"), hint);
    }
    Ok(())
}

/// No budget of a crawl has room for what it left out. `left_out`: the largest first.
fn budget_spent(record: &CrawlRecord, left_out: &[LeftOut]) -> Message {
    let (no, limits) = (record.crawl.no, &record.crawl.limits);
    let has_ids = record.crawl.has_ids_left_out(record.state, &record.stats);
    // A limit that can be raised is a way out; a trap needs the user's word, and a new crawl.
    let raised = left_out.iter().find_map(|row| match row.reason {
        Reason::HostBudget if has_ids => {
            Some((row, limits.ids_per_host_max.unwrap_or(limits.urls_per_host_max)))
        }
        Reason::HostBudget => Some((row, limits.urls_per_host_max)),
        Reason::SiteBudget => Some((row, limits.urls_per_site_max)),
        _ => None,
    });
    let what = match (raised, left_out.first()) {
        (Some((_, max)), _) if has_ids => {
            format!("{no} has asked its hosts for up to {} ids, as many as it may", show_count(max))
        }
        (Some((row, _)), _) | (None, Some(row)) => {
            let urls = show_count(row.urls);
            format!("{no} is complete except for {urls} links that a budget left out")
        }
        (None, None) => format!("{no} is complete"),
    };
    let hint = match raised {
        Some((row, max)) => {
            let max = max.saturating_mul(2);
            format!("Let it ask for more: telusur resume {no} {} {max}", row.flag)
        }
        None => "Start a new crawl that follows them: telusur crawl URL --new --include PATTERN"
            .to_owned(),
    };
    Message::new(Code::WrongState, what).hint(hint)
}

impl ResumeArgs {
    fn given(&self) -> Vec<Given> {
        let texts = [
            (Key::MaxPages, &self.max_pages),
            (Key::MaxDuration, &self.max_duration),
            (Key::MaxBytes, &self.max_bytes),
            (Key::MaxPerHost, &self.max_per_host),
            (Key::MaxPerSite, &self.max_per_site),
            (Key::Workers, &self.workers),
            (Key::Delay, &self.delay),
            (Key::MinFreeDisk, &self.min_free_disk),
            (Key::Patience, &self.patience),
        ];
        given_texts(texts).collect()
    }
}
