//! `telusur export`: the pages of a crawl, or what they have of one kind of content.

use std::io::{self, Write};
use std::path::Path;

use telusur_engine::control::{ContentItem, ExportContent};
use telusur_engine::export::{Collection, ExportError, Exported, RunOperations};
use telusur_model::ContentKind;

use super::{Failure, Outcome, Session};
use crate::cli::ExportArgs;
use crate::json::write_json_line;
use crate::message::{Code, Message, shown};
use crate::new_file::{NewFile, cannot_write, refuse_existing};
use crate::tables_dir::TablesDir;
use crate::units::show_count;

pub(super) fn export(session: &Session, arguments: &ExportArgs, output: &mut dyn Write) -> Outcome {
    if let Some(directory) = &arguments.tables_dir {
        return export_tables(session, arguments, directory, output);
    }
    let collection = Collection::new(arguments.kind, arguments.format).map_err(|error| {
        Message::new(Code::FlagValue, error.to_string()).hint(
            "jsonl and csv take every kind, urls takes pages, links, images, scripts and styles",
        )
    })?;
    if arguments.output == Path::new("-") {
        let mut output = io::BufWriter::new(output);
        let exported = collection.export(&arguments.crawl, session, &mut output).map_err(
            |error| match error {
                ExportError::Output(error) => Failure::Output(error),
                ExportError::Source(message) => Failure::Message(message),
            },
        )?;
        output.flush()?;
        return damage(&exported).map(|()| 0).map_err(Into::into);
    }
    refuse_existing(&arguments.output, arguments.overwrite)?;
    let lines = write_file(&arguments.output, collection, &arguments.crawl, session)?;
    say_written(session, lines, "lines", &arguments.output, output)
}

/// Every table as a file of its own.
fn export_tables(
    session: &Session,
    arguments: &ExportArgs,
    directory: &Path,
    output: &mut dyn Write,
) -> Outcome {
    let tables = ExportContent { crawl: arguments.crawl.clone(), kind: ContentKind::Tables };
    let mut directory_of_tables = TablesDir::create(directory, arguments.overwrite)?;
    let mut written = Ok(());
    let mut exported = Exported::default();
    session.each(&tables, &mut |item| {
        match item {
            ContentItem::Found(found) => written = directory_of_tables.write(&found),
            ContentItem::Damaged(page) => {
                exported.damaged += 1;
                exported.first_damaged.get_or_insert(page);
            }
        }
        written.is_ok()
    })?;
    written?;
    let files = directory_of_tables.finish()?;
    damage(&exported)?;
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

/// Writes a collection to a file that appears only when it is whole. Gives the number of lines.
pub(super) fn write_file<R: RunOperations>(
    path: &Path,
    collection: Collection,
    crawl: &str,
    source: &R,
) -> Result<u64, Message>
where
    Message: From<R::Error>,
{
    let mut file = NewFile::create(path)?;
    let exported = collection.export(crawl, source, &mut file).map_err(|error| match error {
        ExportError::Output(error) => cannot_write(path, &error),
        ExportError::Source(error) => error.into(),
    })?;
    file.finish()?;
    damage(&exported).map(|()| exported.lines)
}

/// Says which pages cannot be read and were left out.
fn damage(exported: &Exported) -> Result<(), Message> {
    let Some(first) = &exported.first_damaged else { return Ok(()) };
    let (count, url, what) = (exported.damaged, shown(&first.url), shown(&first.what));
    let what = format!("{count} pages cannot be read and were left out, first {url}: {what}");
    Err(Message::new(Code::DamagedData, what).hint("See all of them: telusur verify"))
}
