//! `telusur verify`: checks every promise about the stored data, or reads all of it to find damage.

use std::io::Write;

use serde_json::json;
use telusur_engine::SystemClock;
use telusur_engine::control::{RequeueDamaged, Scrub, Verify};
use telusur_model::Clock;

use super::{Failure, Outcome, Session};
use crate::cli::VerifyArgs;
use crate::json::write_json_line;
use crate::message::{Code, Message, printable, shown};
use crate::progress::{ProgressDisplay, Scrubbed};
use crate::units::{read_size, show_count, show_size};

/// Reads everything from where the last call ended, and names what is damaged.
pub(super) fn scrub(session: &Session, pace: &str, output: &mut dyn Write) -> Outcome {
    let bytes_per_second = read_size(pace).ok_or_else(|| {
        Message::new(Code::FlagValue, format!("--pace {} is not a size", shown(pace)))
            .hint("Write it like 10MiB or 500kB; 0B = as fast as the disk allows")
    })?;
    let clock = SystemClock::new();
    let mut display = ProgressDisplay::new(session.terminal, None, session.wants_progress());
    let mut last = None;
    session.each(&Scrub { bytes_per_second }, &mut |state| {
        display
            .update_scrubbed(Scrubbed { bytes: state.bytes, damaged: state.damaged }, clock.now());
        last = Some(state);
        true
    })?;
    display.finish();
    let nothing = || Message::new(Code::NotVerified, "nothing was read");
    let state = last.ok_or_else(nothing)?;
    if session.global.json {
        let answer = json!({
            "started_at": state.started_at.rfc3339(),
            "ended_at": state.ended_at.map(|at| at.rfc3339()),
            "bytes": state.bytes,
            "pages": state.pages,
            "rows": state.rows,
            "damaged": state.damaged,
            "found": state.found,
        });
        write_json_line(output, &answer)?;
    } else {
        for found in &state.found {
            writeln!(output, "DAMAGED {}", printable(found))?;
        }
        let (pages, rows) = (show_count(state.pages), show_count(state.rows));
        let (size, damaged) = (show_size(state.bytes), show_count(state.damaged));
        writeln!(output, "read: {size}, pages {pages}, rows {rows}, damaged {damaged}")?;
    }
    if state.damaged == 0 {
        return Ok(0);
    }
    let what = format!("{} things that are stored are damaged", show_count(state.damaged));
    Err(Message::new(Code::NotVerified, what)
        .hint("Nothing was changed; keep a copy of the directory before going on")
        .into())
}

pub(super) fn verify(session: &Session, arguments: &VerifyArgs, output: &mut dyn Write) -> Outcome {
    if arguments.requeue {
        requeue(session, output)?;
    }
    let report = session.ask(&Verify {})?;
    if !report.has_checked() {
        return Err(Message::new(Code::NotVerified, "nothing was checked").into());
    }
    let counts = report.counts;
    if session.global.json {
        let answer = json!({
            "holds": report.holds(),
            "checks": report.checks,
            "crawls": counts.crawls,
            "urls": counts.urls,
            "pages": counts.pages,
        });
        write_json_line(output, &answer)?;
    } else {
        for check in &report.checks {
            let word = if check.broken == 0 { "holds " } else { "BROKEN" };
            let looked_at = show_count(check.looked_at);
            let broken = match check.broken {
                0 => String::new(),
                broken => format!(", {} broken", show_count(broken)),
            };
            writeln!(
                output,
                "{} {word} {} ({looked_at} looked at{broken})",
                check.id, check.promise
            )?;
            for note in &check.notes {
                writeln!(output, "          {}", shown(note))?;
            }
        }
        let (crawls, urls) = (show_count(counts.crawls), show_count(counts.urls));
        let pages = show_count(counts.pages);
        writeln!(output, "checked: crawls {crawls}, URLs {urls}, pages {pages}")?;
    }
    if report.holds() {
        return Ok(0);
    }
    let broken: Vec<&str> = report
        .checks
        .iter()
        .filter(|check| check.broken > 0)
        .map(|check| check.id.as_str())
        .collect();
    let what = format!("{} does not hold", broken.join(", "));
    let hint = match broken.as_slice() {
        // The index is derived: nothing that is stored is concerned.
        ["I4"] => "Nothing was changed. Make the search index anew: telusur index rebuild",
        // Bodies that are damaged, or shorter than was committed.
        broken if broken.iter().all(|id| ["I1", "I4", "I8"].contains(id)) => {
            "Nothing was changed. Take the damaged pages out and queue them again: telusur verify --requeue, then telusur resume ID"
        }
        _ => "Nothing was changed; keep a copy of the directory before going on",
    };
    Err(Message::new(Code::NotVerified, what).hint(hint).into())
}

/// Takes damaged pages out, and queues them again.
fn requeue(session: &Session, output: &mut dyn Write) -> Result<(), Failure> {
    let (mut written, mut damaged) = (Ok(()), 0);
    let requeued = session.each(&RequeueDamaged {}, &mut |page| {
        damaged += 1;
        written = if session.global.json {
            write_json_line(output, &json!({ "damaged": page.url, "what": page.what }))
        } else {
            writeln!(output, "{}: {}", shown(&page.url), shown(&page.what))
        };
        written.is_ok()
    })?;
    written?;
    let queued = requeued.map_or(0, |requeued| requeued.count);
    if session.global.json {
        write_json_line(output, &json!({ "damaged": damaged, "queued": queued }))?;
    } else if damaged > 0 {
        let (damaged, queued) = (show_count(damaged), show_count(queued));
        writeln!(output, "{damaged} damaged pages taken out, {queued} queued again")?;
        session.talk.note("to fetch them: telusur resume ID");
    }
    Ok(())
}
