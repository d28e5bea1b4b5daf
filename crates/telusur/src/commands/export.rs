//! `telusur export`: the pages of a crawl as JSON lines.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use telusur_engine::desk::{Answer, Ask};

use super::{Outcome, Session};
use crate::cli::ExportArgs;
use crate::message::{Code, Message, shown};
use crate::units::show_count;

pub(super) fn export(session: &Session, arguments: &ExportArgs, output: &mut dyn Write) -> Outcome {
    let ask = Ask::Export { crawl: arguments.crawl.clone() };
    if arguments.output == Path::new("-") {
        let mut written = Ok(());
        let mut damage = Damage::default();
        session.ask(&ask, &mut |answer| {
            damage.note(&answer);
            written = write_line(output, &answer);
            written.is_ok()
        })?;
        written?;
        output.flush()?;
        return damage.verdict().map(|()| 0).map_err(Into::into);
    }
    refuse_existing(&arguments.output, arguments.overwrite)?;
    let lines = write_file(&arguments.output, &mut |each| session.ask(&ask, each))?;
    if session.global.json {
        writeln!(output, "{}", serde_json::json!({ "lines": lines, "file": arguments.output }))?;
    } else {
        session.talk.note(&format!(
            "{} lines written to {}",
            show_count(lines),
            arguments.output.display()
        ));
    }
    Ok(0)
}

/// Nothing is overwritten unless the user says so.
pub(super) fn refuse_existing(path: &Path, overwrite: bool) -> Result<(), Message> {
    if overwrite || !path.exists() {
        return Ok(());
    }
    let path = shown(&path.to_string_lossy());
    Err(Message::new(Code::FileExists, format!("{path} exists already"))
        .hint("Overwrite it with -O, or name another file"))
}

/// Takes lines of an answer until it returns false.
type Each<'a> = &'a mut dyn FnMut(Answer) -> bool;

/// Writes an export to a file that appears only when it is whole. Gives the number of lines.
pub(super) fn write_file(
    path: &Path,
    lines_of: &mut dyn FnMut(Each<'_>) -> Result<(), Message>,
) -> Result<u64, Message> {
    let refuse = |error: std::io::Error| {
        let path = shown(&path.to_string_lossy());
        Message::new(Code::Output, format!("cannot write {path}: {error}"))
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let mut file = BufWriter::new(File::create(&unfinished).map_err(refuse)?);
    let mut lines = 0;
    let mut written = Ok(());
    let mut damage = Damage::default();
    let answered = lines_of(&mut |answer| {
        damage.note(&answer);
        written = write_line(&mut file, &answer);
        lines += u64::from(matches!(answer, Answer::Export(_)));
        written.is_ok()
    });
    let finished = answered
        .and(written.map_err(refuse))
        .and_then(|()| file.into_inner().map_err(|error| refuse(error.into_error())))
        .and_then(|file| file.sync_all().map_err(refuse))
        .and_then(|()| std::fs::rename(&unfinished, path).map_err(refuse));
    if finished.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    finished.and_then(|()| damage.verdict()).map(|()| lines)
}

/// Pages that could not be read. They are left out, and said so at the end.
#[derive(Default)]
struct Damage {
    pages: u64,
    first: String,
}

impl Damage {
    fn note(&mut self, answer: &Answer) {
        let Answer::Damaged { url, what } = answer else { return };
        if self.pages == 0 {
            self.first = format!("{}: {}", shown(url), shown(what));
        }
        self.pages += 1;
    }

    fn verdict(&self) -> Result<(), Message> {
        if self.pages == 0 {
            return Ok(());
        }
        let what =
            format!("{} pages cannot be read and were left out, first {}", self.pages, self.first);
        Err(Message::new(Code::DamagedData, what).hint("See all of them: telusur verify"))
    }
}

fn write_line(output: &mut dyn Write, answer: &Answer) -> std::io::Result<()> {
    let Answer::Export(line) = answer else { return Ok(()) };
    serde_json::to_writer(&mut *output, line)?;
    output.write_all(b"\n")
}
