//! `telusur import`: documents from a file, made searchable like crawled pages.

use std::io::{BufRead, Write};
use std::path::Path;

use serde_json::json;
use telusur_engine::control::{IMPORT_BATCH_BYTES, IMPORT_BATCH_MAX, ImportDocuments};
use telusur_engine::{ImportLine, SystemClock};
use telusur_model::Clock;

use super::index::bring_up_to_date;
use super::search::{bad_line, open_lines, unreadable};
use super::{Outcome, Session};
use crate::backend::{self, DirectoryControl};
use crate::cli::SpaceArgs;
use crate::json::write_json_line;
use crate::message::Message;
use crate::progress::{Imported, ProgressDisplay};
use crate::settings::Key;
use crate::units::show_count;

/// Stores the documents of a file, and makes them searchable.
pub(super) fn import(
    session: &Session,
    path: &Path,
    name: Option<&str>,
    space: &SpaceArgs,
    output: &mut dyn Write,
) -> Outcome {
    let settings = session.settings(space.given())?.settings;
    let lines = open_lines(path)?;
    let name = name.map_or_else(|| format!("import {}", path.display()), str::to_owned);
    let min_free_disk = settings.bytes(Key::MinFreeDisk);
    let mut display = ProgressDisplay::new(session.terminal, None, session.wants_progress());
    let clock = SystemClock::new();
    let target = session.target(&settings)?;
    let (crawl, count) = backend::in_directory(&target, |control| {
        let mut batches = Batches { control, name, min_free_disk, documents: Vec::new(), bytes: 0 };
        let mut count = 0_u64;
        for (number, line) in (1_u64..).zip(lines.lines()) {
            let read = line.map_err(|error| unreadable(path, &error)).and_then(|line| {
                let document = (!line.trim().is_empty()).then(|| read_line(number, &line));
                Ok((line.len(), document.transpose()?))
            });
            let (bytes, document) = match read {
                Ok(read) => read,
                Err(message) => {
                    // What came before it stays, and the import counts as not complete.
                    batches.hand_over(false)?;
                    return Err(message);
                }
            };
            let Some(document) = document else { continue };
            batches.add(document, bytes)?;
            count += 1;
            display.update_imported(Imported(count), clock.now());
        }
        let crawl = batches.hand_over(true)?;
        bring_up_to_date(control, &mut display)?;
        Ok::<_, Message>((crawl, count))
    })?;
    display.finish();
    if session.global.json {
        write_json_line(output, &json!({ "crawl": crawl, "documents": count }))?;
    } else {
        writeln!(output, "{} documents imported as {crawl}", show_count(count))?;
    }
    Ok(0)
}

fn read_line(number: u64, line: &str) -> Result<ImportLine, Message> {
    let document: ImportLine =
        serde_json::from_str(line).map_err(|error| bad_line(number, &error.to_string()))?;
    document.address().map_err(|why| bad_line(number, &why))?;
    Ok(document)
}

/// Documents on their way to the store.
struct Batches<'a> {
    control: &'a DirectoryControl,
    name: String,
    min_free_disk: u64,
    documents: Vec<ImportLine>,
    bytes: usize,
}

impl Batches<'_> {
    fn add(&mut self, document: ImportLine, bytes: usize) -> Result<(), Message> {
        self.documents.push(document);
        self.bytes += bytes;
        if self.documents.len() >= IMPORT_BATCH_MAX || self.bytes >= IMPORT_BATCH_BYTES {
            self.hand_over(false)?;
        }
        Ok(())
    }

    /// Stores what was added. Gives the number of the crawl.
    fn hand_over(&mut self, is_last: bool) -> Result<String, Message> {
        self.bytes = 0;
        let batch = ImportDocuments {
            name: self.name.clone(),
            documents: std::mem::take(&mut self.documents),
            is_last,
            min_free_disk: self.min_free_disk,
        };
        Ok(self.control.reply(&batch)?.no.to_string())
    }
}
