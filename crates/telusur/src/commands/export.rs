//! `telusur export`: the pages of a crawl, or what they have of one kind of content.

use std::io::{self, Write};
use std::path::Path;

use telusur_engine::control::{Reply, Request};
use telusur_model::ContentKind;

use super::{Outcome, Session};
use crate::cli::ExportArgs;
use crate::collection::{Collected, Collection, Format, TablesDir};
use crate::json::write_json_line;
use crate::message::{Code, Message, shown};
use crate::new_file::{NewFile, cannot_write, refuse_existing};
use crate::units::show_count;

pub(super) fn export(session: &Session, arguments: &ExportArgs, output: &mut dyn Write) -> Outcome {
    if let Some(directory) = &arguments.tables_dir {
        return export_tables(session, arguments, directory, output);
    }
    let crawl = arguments.crawl.clone();
    let request = match arguments.kind {
        Collected::Pages => Request::Export { crawl },
        Collected::Content(kind) => Request::Content { crawl, kind },
    };
    let collection = Collection { collected: arguments.kind, format: arguments.format };
    let mut lines_of = |each: Each<'_>| session.ask(&request, each);
    if arguments.output == Path::new("-") {
        let mut output = io::BufWriter::new(output);
        let mut written = Written::default();
        let answered = written.write(collection, &mut output, &mut lines_of);
        written.trouble?;
        answered?;
        output.flush()?;
        return written.damage.verdict().map(|()| 0).map_err(Into::into);
    }
    refuse_existing(&arguments.output, arguments.overwrite)?;
    let lines = write_file(&arguments.output, collection, &mut lines_of)?;
    say_written(session, lines, "lines", &arguments.output, output)
}

/// Every table as a file of its own.
fn export_tables(
    session: &Session,
    arguments: &ExportArgs,
    directory: &Path,
    output: &mut dyn Write,
) -> Outcome {
    let request = Request::Content { crawl: arguments.crawl.clone(), kind: ContentKind::Tables };
    let mut tables = TablesDir::create(directory, arguments.overwrite)?;
    let mut written = Ok(());
    let mut damage = Damage::default();
    session.ask(&request, &mut |answer| {
        damage.note(&answer);
        if let Reply::Content(found) = &answer {
            written = tables.write(found);
        }
        written.is_ok()
    })?;
    written?;
    let files = tables.finish()?;
    damage.verdict()?;
    say_written(session, files, "tables", directory, output)
}

fn say_written(
    session: &Session,
    count: u64,
    what: &str,
    path: &Path,
    output: &mut dyn Write,
) -> Outcome {
    if session.global.json {
        write_json_line(output, &serde_json::json!({ what: count, "file": path }))?;
    } else {
        let count = show_count(count);
        session.talk.note(&format!("{count} {what} written to {}", path.display()));
    }
    Ok(0)
}

/// Takes lines of an answer until it returns false.
type Each<'a> = &'a mut dyn FnMut(Reply) -> bool;

/// Asks for the lines of an answer.
type LinesOf<'a> = &'a mut dyn FnMut(Each<'_>) -> Result<(), Message>;

/// The pages of a crawl as JSON lines.
pub(super) const PAGES: Collection =
    Collection { collected: Collected::Pages, format: Format::JsonLines };

/// Writes a collection to a file that appears only when it is whole. Gives the number of lines.
pub(super) fn write_file(
    path: &Path,
    collection: Collection,
    lines_of: LinesOf<'_>,
) -> Result<u64, Message> {
    let mut file = NewFile::create(path)?;
    let mut written = Written::default();
    let answered = written.write(collection, &mut file, lines_of);
    written.trouble.map_err(|error| cannot_write(path, &error))?;
    answered?;
    file.finish()?;
    written.damage.verdict().map(|()| written.lines)
}

/// What became of writing a collection.
struct Written {
    lines: u64,
    damage: Damage,
    /// Whether the output took everything.
    trouble: io::Result<()>,
}

impl Default for Written {
    fn default() -> Self {
        Self { lines: 0, damage: Damage::default(), trouble: Ok(()) }
    }
}

impl Written {
    fn write(
        &mut self,
        collection: Collection,
        output: &mut dyn Write,
        lines_of: LinesOf<'_>,
    ) -> Result<(), Message> {
        self.trouble = collection.begin(output);
        if self.trouble.is_err() {
            return Ok(());
        }
        lines_of(&mut |answer| {
            self.damage.note(&answer);
            match collection.write(output, &answer) {
                Ok(lines) => self.lines += lines,
                Err(error) => self.trouble = Err(error),
            }
            self.trouble.is_ok()
        })
    }
}

/// Pages that could not be read. They are left out, and said so at the end.
#[derive(Default)]
struct Damage {
    pages: u64,
    first: String,
}

impl Damage {
    fn note(&mut self, answer: &Reply) {
        let Reply::Damaged { url, what } = answer else { return };
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
