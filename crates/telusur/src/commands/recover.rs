//! `telusur recover`: the state of a data directory, rebuilt from what is stored beside its pages.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;
use telusur_engine::SystemClock;
use telusur_ledger::{LostPage, RecoverProgress, Recovered, UnreadableBytes};
use telusur_model::Clock;

use super::{Outcome, Session};
use crate::backend::{self, RecoverInto, RecoveryProgress};
use crate::cli::RecoverArgs;
use crate::foreground::parsers;
use crate::json::write_json_line;
use crate::message::{Code, Message, shown};
use crate::parsing::parser_when_needed;
use crate::progress::ProgressDisplay;
use crate::units::{show_count, show_size};

pub(super) fn recover(
    session: &Session,
    arguments: &RecoverArgs,
    output: &mut dyn Write,
) -> Outcome {
    let settings = session.settings(Vec::new())?.settings;
    let dir = match arguments.dir.as_deref() {
        Some(dir) => dir,
        None => backend::data_dir(&settings)?,
    };
    if !dir.is_dir() {
        let what = format!("there is no directory {}", path_shown(dir));
        return Err(Message::new(Code::BadArgument, what).hint("Name the damaged one").into());
    }
    let beside = beside(dir);
    let (into, target) = match (&arguments.into, arguments.in_place) {
        (_, true) => (RecoverInto::Place, dir),
        (Some(new), false) => (RecoverInto::New(new), new.as_path()),
        (None, false) => (RecoverInto::New(&beside), beside.as_path()),
    };
    let mut display = ProgressDisplay::new(session.terminal, None, session.wants_progress());
    let clock = SystemClock::new();
    let mut written = Ok(());
    let mut progress = |progress| display.update_work(|| words(progress), clock.now());
    let parser = parser_when_needed(parsers(&settings))?;
    let done = backend::recover(dir, into, &parser, &mut progress, &mut |page| {
        if session.global.json {
            let line = json!({ "recovered": page.url.as_str(), "crawl": page.crawl.to_string() });
            written = write_json_line(output, &line);
        }
        session.global.json && written.is_ok()
    });
    display.finish();
    let (recovered, damaged_state) = done?;
    written?;
    report(session, &recovered, target, output)?;
    if let Some(damaged_state) = damaged_state {
        session.talk.note(&format!("the damaged state is kept in {}", path_shown(&damaged_state)));
    }
    if recovered.lost.iter().any(|page| page.is_asked_again) {
        let data = path_shown(target);
        session.talk.note(&format!("to fetch lost pages again: telusur resume ID --data {data}"));
    }
    Ok(0)
}

/// The directory beside a damaged one.
fn beside(dir: &Path) -> PathBuf {
    let named = match dir.file_name() {
        // Without a slash at the end, which would make it a directory inside.
        Some(_) => dir.components().collect::<PathBuf>(),
        // The current directory, or one above it.
        None => dir.canonicalize().unwrap_or_else(|_| dir.to_owned()),
    };
    let mut name = named.into_os_string();
    name.push(".recovered");
    name.into()
}

fn words(progress: RecoveryProgress) -> String {
    match progress {
        RecoveryProgress::Copying { bytes, of } => {
            format!("{} of {} copied", show_size(bytes), show_size(of))
        }
        RecoveryProgress::Rebuilding(RecoverProgress::Reading { crawls, of }) => {
            format!("bodies of {} of {} crawls read", show_count(crawls), show_count(of))
        }
        RecoveryProgress::Rebuilding(RecoverProgress::Folding { steps, of }) => {
            format!("{} of {} steps done again", show_count(steps), show_count(of))
        }
    }
}

fn report(
    session: &Session,
    recovered: &Recovered,
    target: &Path,
    output: &mut dyn Write,
) -> std::io::Result<()> {
    if session.global.json {
        return write_json(recovered, target, output);
    }
    for page in &recovered.lost {
        let how = if page.is_asked_again { "asked again" } else { "lost" };
        let place = format!("{} at byte {}", segment(page), page.place.offset);
        session.talk.warning(&format!("{}: {place} is damaged, {how}", shown(&page.url)));
    }
    for UnreadableBytes { crawl, bytes } in &recovered.unreadable {
        let file = backend::segment_file(*crawl, bytes.segment);
        session
            .talk
            .warning(&format!("{file}: bytes {} to {} cannot be read", bytes.first, bytes.end));
    }
    for crawl in &recovered.without_settings {
        session.talk.warning(&format!("the settings of {crawl} are lost; it has its pages only"));
    }
    for (crawl, pages) in &recovered.unread {
        let pages = show_count(*pages);
        session.talk.note(&format!("{pages} pages of {crawl} were parsed again from their bodies"));
    }
    writeln!(
        output,
        "{}: {} crawls, {} pages recovered from {} steps; {} lost",
        path_shown(target),
        show_count(recovered.crawls),
        show_count(recovered.pages),
        show_count(recovered.steps),
        show_count(recovered.lost.len() as u64)
    )
}

fn write_json(recovered: &Recovered, target: &Path, output: &mut dyn Write) -> std::io::Result<()> {
    for page in &recovered.lost {
        let line = json!({
            "lost": page.url, "crawl": page.crawl.to_string(), "file": segment(page),
            "byte": page.place.offset, "asked_again": page.is_asked_again,
        });
        write_json_line(output, &line)?;
    }
    for UnreadableBytes { crawl, bytes } in &recovered.unreadable {
        let file = backend::segment_file(*crawl, bytes.segment);
        let line = json!({ "unreadable": file, "byte": bytes.first, "end": bytes.end });
        write_json_line(output, &line)?;
    }
    for crawl in &recovered.without_settings {
        write_json_line(output, &json!({ "without_settings": crawl.to_string() }))?;
    }
    let total = json!({
        "directory": target.display().to_string(),
        "crawls": recovered.crawls,
        "pages": recovered.pages,
        "steps": recovered.steps,
        "lost": recovered.lost.len(),
        "unreadable": recovered.unreadable.len(),
        "parsed_again": recovered.unread.values().sum::<u64>(),
    });
    write_json_line(output, &total)
}

fn segment(page: &LostPage) -> String {
    backend::segment_file(page.crawl, page.place.segment)
}

fn path_shown(path: &Path) -> String {
    shown(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_directory_is_beside_the_old_one() {
        let check = |dir: &str, expect: &str| {
            assert_eq!(beside(Path::new(dir)), Path::new(expect), "{dir:?}");
        };
        check("data", "data.recovered");
        check("./data/", "./data.recovered");
        check("/srv/telusur", "/srv/telusur.recovered");
        let here = std::env::current_dir().unwrap();
        check(".", &format!("{}.recovered", here.display()));
    }
}
