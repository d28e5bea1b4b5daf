//! Collections: what pages have of one kind of content, one line for each piece, keyed by crawl and
//! page. As JSON Lines, as CSV, or tables as one CSV file each.

mod csv;
mod json_lines;
mod rows;
mod tables_dir;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use telusur_engine::control::Reply;
use telusur_model::ContentKind;

pub use self::tables_dir::TablesDir;

/// What is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collected {
    /// The pages themselves.
    Pages,
    /// What they have of one kind.
    Content(ContentKind),
}

/// How it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A JSON object on each line.
    #[default]
    JsonLines,
    /// Comma-separated values, with the names of the columns on the first line.
    Csv,
}

/// A collection that is written line by line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collection {
    /// What is collected.
    pub collected: Collected,
    /// How it is written.
    pub format: Format,
}

impl Collection {
    /// Writes what stands above all lines.
    pub fn begin(self, output: &mut dyn Write) -> io::Result<()> {
        match self.format {
            Format::JsonLines => Ok(()),
            Format::Csv => csv::write_row(output, rows::columns(self.collected)),
        }
    }

    /// Writes the lines of one reply of control. Gives their number.
    pub fn write(self, output: &mut dyn Write, answer: &Reply) -> io::Result<u64> {
        match (self.format, self.collected, answer) {
            (Format::JsonLines, _, Reply::Export(line)) => {
                crate::json::write_json_line(output, line).map(|()| 1)
            }
            (Format::JsonLines, Collected::Content(kind), Reply::Content(found)) => {
                json_lines::write(output, kind, found)
            }
            (Format::Csv, _, Reply::Export(line)) => rows::write_page(output, line).map(|()| 1),
            (Format::Csv, Collected::Content(kind), Reply::Content(found)) => {
                rows::write(output, kind, found)
            }
            _ => Ok(0),
        }
    }
}
