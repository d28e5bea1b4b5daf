//! [`TablesDir`]: every table as a CSV file of its own, in one directory.
//!
//! The files are named by a hash of their page and a number: nothing that a page says becomes part of
//! a path. A list beside them says where each one is from.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use telusur_engine::control::FoundContent;
use telusur_model::{PageUrl, Table, UrlKeyer};

use telusur_engine::export::write_row;

use crate::json::write_json_line;
use crate::message::{Code, Message, shown};
use crate::new_file::{NewFile, cannot_write, refuse_existing};
use crate::process::create_user_dir;

/// The list of what is there.
const LIST_NAME: &str = "tables.jsonl";

/// A directory that is being filled with tables.
pub struct TablesDir {
    path: PathBuf,
    overwrite: bool,
    list: NewFile,
    /// Files written so far.
    pub files: u64,
}

/// Where a table is from.
#[derive(Serialize)]
struct Listed<'a> {
    file: &'a str,
    crawl: &'a str,
    page: &'a str,
    /// The first table on the page is 1.
    index: usize,
    caption: Option<&'a str>,
    rows: usize,
    truncated: bool,
}

impl TablesDir {
    /// Makes the directory, or goes on with one that is there.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self, Message> {
        create_user_dir(path).map_err(|error| cannot_write(path, &error))?;
        let list = path.join(LIST_NAME);
        refuse_existing(&list, overwrite)?;
        Ok(Self { path: path.to_owned(), overwrite, list: NewFile::create(&list)?, files: 0 })
    }

    /// Writes the tables of one page.
    pub fn write(&mut self, found: &FoundContent) -> Result<(), Message> {
        let page = PageUrl::parse(&found.page).map_err(|error| {
            let what = format!("{} is no URL: {error}", shown(&found.page));
            Message::new(Code::DamagedData, what)
        })?;
        let key = UrlKeyer { seed: 0, drop_tracking: false }.key(&page);
        for (index, table) in (1..).zip(&found.content.tables) {
            let name = format!("{key}_{index}.csv");
            self.write_table(&self.path.join(&name), table)?;
            let listed = Listed {
                file: &name,
                crawl: &found.crawl,
                page: &found.page,
                index,
                caption: table.caption.as_deref(),
                rows: table.rows.len(),
                truncated: table.truncated,
            };
            write_json_line(&mut self.list, &listed)
                .map_err(|error| cannot_write(&self.path.join(LIST_NAME), &error))?;
            self.files += 1;
        }
        Ok(())
    }

    /// Makes the list appear. Gives the number of tables.
    pub fn finish(self) -> Result<u64, Message> {
        self.list.finish()?;
        Ok(self.files)
    }

    fn write_table(&self, path: &Path, table: &Table) -> Result<(), Message> {
        refuse_existing(path, self.overwrite)?;
        let mut file = NewFile::create(path)?;
        for row in &table.rows {
            write_row(&mut file, row.iter().map(|cell| cell.text.as_str()))
                .map_err(|error| cannot_write(path, &error))?;
        }
        file.flush().map_err(|error| cannot_write(path, &error))?;
        file.finish()
    }
}

#[cfg(test)]
mod tests;
