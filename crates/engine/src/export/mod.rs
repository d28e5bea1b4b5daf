//! Exports: the pages of a crawl, or one kind of content in them, written in a format. The registry of formats
//! that the terminal and the API offer: what one can write, the other can.

mod csv;
mod json;
mod json_lines;
mod rows;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use telusur_model::ContentKind;

pub use self::csv::write_row;
pub use self::json::write_json_line;
pub use self::json_lines::write as write_pieces;
use crate::control::{
    ContentItem, DamagedPage, Each, ExportContent, ExportItem, ExportLine, ExportPages,
    FoundContent, Operation,
};

/// What is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collected {
    /// The pages themselves.
    Pages,
    /// What they have of one kind.
    Content(ContentKind),
}

impl Collected {
    /// Every word for it: `pages`, or the name of a kind of content.
    pub fn words() -> impl Iterator<Item = &'static str> {
        std::iter::once("pages").chain(ContentKind::ALL.iter().map(|kind| kind.word()))
    }

    /// Reads the word for it.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "pages" => Some(Self::Pages),
            word => ContentKind::from_word(word).map(Self::Content),
        }
    }
}

/// How it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A JSON object on each line, with everything.
    #[default]
    JsonLines,
    /// Comma-separated values, with the names of the columns on the first line.
    Csv,
    /// Addresses, one per line.
    Urls,
    /// The main content of all pages, one after the other.
    Markdown,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::JsonLines, Self::Csv, Self::Urls, Self::Markdown];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::JsonLines => "jsonl",
            Self::Csv => "csv",
            Self::Urls => "urls",
            Self::Markdown => "md",
        }
    }

    /// Reads the word for it.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.word() == word)
    }

    /// Its media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::JsonLines => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Urls => "text/plain; charset=utf-8",
            Self::Markdown => "text/markdown; charset=utf-8",
        }
    }

    /// The ending of a file name.
    pub fn extension(self) -> &'static str {
        match self {
            Self::JsonLines => "jsonl",
            Self::Csv => "csv",
            Self::Urls => "txt",
            Self::Markdown => "md",
        }
    }

    /// Whether it can write this.
    fn takes(self, collected: Collected) -> bool {
        match self {
            Self::JsonLines | Self::Csv => true,
            Self::Markdown => collected == Collected::Pages,
            Self::Urls => match collected {
                Collected::Pages => true,
                Collected::Content(kind) => match kind {
                    ContentKind::Links
                    | ContentKind::Images
                    | ContentKind::Scripts
                    | ContentKind::Styles => true,
                    ContentKind::Headings
                    | ContentKind::Tables
                    | ContentKind::Lists
                    | ContentKind::Forms => false,
                },
            },
        }
    }
}

/// What is exported, in a format that can write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collection {
    collected: Collected,
    format: Format,
}

/// A format that cannot write what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot be written as {}", .0, .1.word())]
pub struct Unwritable(&'static str, Format);

/// What was exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Lines written, without the names of columns.
    pub lines: u64,
    /// Pages that cannot be read and are left out.
    pub damaged: u64,
    /// The first of them.
    pub first_damaged: Option<DamagedPage>,
}

/// Why an export ended before its end.
#[derive(Debug)]
pub enum ExportError<E> {
    /// The output takes no more.
    Output(io::Error),
    /// The crawl cannot be read.
    Source(E),
}

/// What runs the operations that exports are made of: the control of this process, or that of the owner.
pub trait RunOperations {
    /// Why it could not.
    type Error;

    /// Runs an operation, and calls `each` with every item until it returns false.
    fn each<O: Operation>(
        &self,
        operation: &O,
        each: Each<'_, O::Item>,
    ) -> Result<Option<O::Reply>, Self::Error>;
}

impl RunOperations for crate::control::Control {
    type Error = crate::RequestError;

    fn each<O: Operation>(
        &self,
        operation: &O,
        each: Each<'_, O::Item>,
    ) -> Result<Option<O::Reply>, Self::Error> {
        self.run(operation, each).map(Some)
    }
}

impl Collection {
    /// The pages as JSON lines.
    pub const PAGES: Self = Self { collected: Collected::Pages, format: Format::JsonLines };

    /// A collection, if the format can write it.
    pub fn new(collected: Collected, format: Format) -> Result<Self, Unwritable> {
        match format.takes(collected) {
            true => Ok(Self { collected, format }),
            false => Err(Unwritable(word_of(collected), format)),
        }
    }

    /// Writes everything that a crawl has of it. A page that cannot be read is left out and counted: the caller
    /// says so at the end.
    pub fn export<R: RunOperations>(
        self,
        crawl: &str,
        source: &R,
        output: &mut dyn Write,
    ) -> Result<Exported, ExportError<R::Error>> {
        let mut writing = Writing { collection: self, output, exported: Exported::default() };
        let mut wrote = writing.begin();
        let crawl = crawl.to_owned();
        if wrote.is_ok() {
            match self.collected {
                Collected::Pages => source.each(&ExportPages { crawl }, &mut |item| {
                    wrote = writing.page(item);
                    wrote.is_ok()
                }),
                Collected::Content(kind) => {
                    source.each(&ExportContent { crawl, kind }, &mut |item| {
                        wrote = writing.content(item);
                        wrote.is_ok()
                    })
                }
            }
            .map_err(ExportError::Source)?;
        }
        wrote.map_err(ExportError::Output)?;
        Ok(writing.exported)
    }

    /// Writes what comes before all lines.
    fn begin(self, output: &mut dyn Write) -> io::Result<()> {
        match self.format {
            Format::JsonLines | Format::Urls | Format::Markdown => Ok(()),
            Format::Csv => csv::write_row(output, rows::columns(self.collected)),
        }
    }

    /// Writes a page. Gives the number of lines.
    fn write_page(self, output: &mut dyn Write, line: &ExportLine) -> io::Result<u64> {
        match self.format {
            Format::JsonLines => write_json_line(output, line)?,
            Format::Csv => rows::write_page(output, line)?,
            Format::Urls => writeln!(output, "{}", line.url)?,
            Format::Markdown => {
                let markdown = line.markdown.as_deref().filter(|text| !text.is_empty());
                let Some(markdown) = markdown else { return Ok(0) };
                write!(output, "<!-- {} -->\n\n{markdown}\n\n", line.url)?;
            }
        }
        Ok(1)
    }

    /// Writes the content of one page. Gives the number of lines.
    fn write_content(self, output: &mut dyn Write, found: &FoundContent) -> io::Result<u64> {
        let Collected::Content(kind) = self.collected else { return Ok(0) };
        match self.format {
            Format::JsonLines => json_lines::write(output, kind, found),
            Format::Csv => rows::write(output, kind, found),
            Format::Urls => write_urls(output, kind, found),
            // No collection of content has this format.
            Format::Markdown => Ok(0),
        }
    }
}

/// A collection on its way to an output.
struct Writing<'a> {
    collection: Collection,
    output: &'a mut dyn Write,
    exported: Exported,
}

impl Writing<'_> {
    fn begin(&mut self) -> io::Result<()> {
        self.collection.begin(self.output)
    }

    fn page(&mut self, item: ExportItem) -> io::Result<()> {
        match item {
            ExportItem::Page(line) => {
                self.exported.lines += self.collection.write_page(self.output, &line)?;
            }
            ExportItem::Damaged(page) => self.damaged(page),
        }
        Ok(())
    }

    fn content(&mut self, item: ContentItem) -> io::Result<()> {
        match item {
            ContentItem::Found(found) => {
                self.exported.lines += self.collection.write_content(self.output, &found)?;
            }
            ContentItem::Damaged(page) => self.damaged(page),
        }
        Ok(())
    }

    fn damaged(&mut self, page: DamagedPage) {
        self.exported.damaged += 1;
        self.exported.first_damaged.get_or_insert(page);
    }
}

fn write_urls(output: &mut dyn Write, kind: ContentKind, found: &FoundContent) -> io::Result<u64> {
    let content = &found.content;
    let urls: Vec<String> = match kind {
        ContentKind::Links => content.links.iter().map(|link| link.url.to_string()).collect(),
        ContentKind::Images => content.images.iter().map(|image| image.url.to_string()).collect(),
        ContentKind::Scripts => content
            .scripts
            .iter()
            .filter_map(|it| it.url.as_ref())
            .map(ToString::to_string)
            .collect(),
        ContentKind::Styles => content
            .styles
            .iter()
            .filter_map(|it| it.url.as_ref())
            .map(ToString::to_string)
            .collect(),
        ContentKind::Headings | ContentKind::Tables | ContentKind::Lists | ContentKind::Forms => {
            Vec::new()
        }
    };
    urls.iter().try_for_each(|url| writeln!(output, "{url}"))?;
    Ok(urls.len() as u64)
}

fn word_of(collected: Collected) -> &'static str {
    match collected {
        Collected::Pages => "pages",
        Collected::Content(kind) => kind.word(),
    }
}
