//! `resume`, `retry`, `recrawl`, `pause`, `stop`, `exclude`, `cancel`, `rm`: what is done to crawls.

use std::io::{self, BufRead, IsTerminal, Write};

use serde_json::json;
use telusur_engine::control::{
    CrawlDone, Operation, ReadCrawl, RecrawlCrawl, ResumeCrawl, ResumedCrawl, RetriedCrawl,
    RetryCrawl,
};
use telusur_ledger::CrawlRecord;
use telusur_model::Resume;

use super::run::{self, RunJob, Started};
use super::{Outcome, Session};
use crate::cli::{ResumeArgs, WorkArgs, given_texts};
use crate::crawl_request::{change_request, fail_on};
use crate::json::write_json_line;
use crate::message::{Code, Message, shown};
use crate::settings::{Given, Key, Settings};
use crate::units::show_count;

/// Carries out an order that ends with the crawl it was for.
pub(super) fn order<O: Operation<Reply = CrawlDone>>(
    session: &Session,
    order: &O,
    done: &str,
    output: &mut dyn Write,
) -> Outcome {
    let CrawlDone { crawl } = session.ask(order)?;
    say_done(session, &crawl, done, output)?;
    Ok(0)
}

fn say_done(session: &Session, crawl: &str, done: &str, output: &mut dyn Write) -> io::Result<()> {
    match session.global.json {
        true => write_json_line(output, &json!({ "crawl": crawl, "done": done })),
        false => writeln!(output, "{crawl} {done}"),
    }
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

/// Goes on with a crawl.
pub(super) fn resume(session: &Session, arguments: &ResumeArgs, output: &mut dyn Write) -> Outcome {
    let given = arguments.given();
    let change = |settings: &Settings| change_request(settings, &given);
    let settings = session.settings(given.clone())?.settings;
    let ids = arguments.ids.as_deref().map(read_ids).transpose()?;
    let resume = ResumeCrawl { crawl: arguments.crawl.clone(), change: change(&settings), ids };
    run_existing(session, &settings, &resume, output, |resumed: &ResumedCrawl, output| {
        say_done(session, &resumed.crawl, "resumed", output)
    })
}

fn read_ids(word: &str) -> Result<Resume, Message> {
    Resume::from_word(word).ok_or_else(|| {
        let what = format!("--ids: \"{}\" is not a way to resume", shown(word));
        Message::new(Code::FlagValue, what).hint("Write all, new or holes")
    })
}

/// Asks again for what failed.
pub(super) fn retry(session: &Session, arguments: &WorkArgs, output: &mut dyn Write) -> Outcome {
    let given = arguments.space.given();
    let settings = session.settings(given.clone())?.settings;
    let change = change_request(&settings, &given);
    let retry = RetryCrawl { crawl: arguments.crawl.clone(), change };
    run_existing(session, &settings, &retry, output, |retried: &RetriedCrawl, output| {
        let (crawl, count) = (retried.no, retried.count);
        if session.global.json {
            return write_json_line(
                output,
                &json!({ "crawl": crawl.to_string(), "retried": count }),
            );
        }
        match count {
            0 => writeln!(output, "nothing of {crawl} failed"),
            _ => Ok(()),
        }
    })
}

/// Crawls the same again and asks only for what changed since.
pub(super) fn recrawl(session: &Session, arguments: &WorkArgs, output: &mut dyn Write) -> Outcome {
    let given = arguments.space.given();
    let settings = session.settings(given.clone())?.settings;
    let change = change_request(&settings, &given);
    let recrawl = RecrawlCrawl { crawl: arguments.crawl.clone(), change };
    run_existing(session, &settings, &recrawl, output, |_, _| Ok(()))
}

/// Runs a crawl of a directory that must be there.
fn run_existing<O>(
    session: &Session,
    settings: &Settings,
    operation: &O,
    output: &mut dyn Write,
    done: impl FnOnce(&O::Reply, &mut dyn Write) -> io::Result<()>,
) -> Outcome
where
    O: Operation,
    O::Reply: Started,
{
    session.target(settings)?.expect_data()?;
    let job = RunJob { output: None, fail_on: fail_on(settings), is_detached: false };
    run::run(session, settings, operation, &job, output, done)
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
