//! Everything that a crawl stored, as a stream of lines: written no faster than they are taken.

use telusur_engine::Part;
use telusur_engine::control::{ExportLine, Reply, Request};
use telusur_model::CrawlNo;
use tokio::sync::mpsc;

use super::Service;
use crate::problem::{Code, Problem};

/// Pieces on their way to a slow reader.
const PIECES_MAX: usize = 16;
/// Size at which a piece is sent.
const PIECE_BYTES: usize = 32 << 10;

/// How an export is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// A JSON object on each line, with everything.
    JsonLines,
    /// A table of the most important columns.
    Csv,
    /// The addresses of all pages, one per line: a sitemap in text form.
    Urls,
    /// The main content of all pages, one after the other.
    Markdown,
}

impl ExportFormat {
    /// Reads the word for it.
    pub fn read(word: &str) -> Result<Self, Problem> {
        match word {
            "jsonl" => Ok(Self::JsonLines),
            "csv" => Ok(Self::Csv),
            "urls" => Ok(Self::Urls),
            "md" => Ok(Self::Markdown),
            _ => Err(Problem::new(Code::InvalidField, "write jsonl, csv, urls or md").at("format")),
        }
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

    fn head(self) -> &'static str {
        match self {
            Self::Csv => {
                "url,final_url,status,title,depth,fetched_at,content_type,bytes,language\r\n"
            }
            _ => "",
        }
    }

    fn write(self, line: &ExportLine, out: &mut Vec<u8>) {
        match self {
            Self::JsonLines => {
                if serde_json::to_writer(&mut *out, line).is_ok() {
                    out.push(b'\n');
                }
            }
            Self::Csv => write_csv(line, out),
            Self::Urls => out.extend(format!("{}\n", line.url).bytes()),
            Self::Markdown => {
                if let Some(markdown) = line.markdown.as_deref().filter(|text| !text.is_empty()) {
                    out.extend(format!("<!-- {} -->\n\n{markdown}\n\n", line.url).bytes());
                }
            }
        }
    }
}

fn write_csv(line: &ExportLine, out: &mut Vec<u8>) {
    let numbers = [line.status.to_string(), line.depth.to_string(), line.bytes.to_string()];
    let cells = [
        line.url.as_str(),
        &line.final_url,
        &numbers[0],
        line.title.as_deref().unwrap_or_default(),
        &numbers[1],
        &line.fetched_at,
        line.content_type.as_deref().unwrap_or_default(),
        &numbers[2],
        line.language.as_deref().unwrap_or_default(),
    ];
    let row: Vec<String> = cells.iter().map(|cell| csv_cell(cell)).collect();
    out.extend(row.join(",").bytes());
    out.extend(b"\r\n");
}

/// A cell in quotes. What a spreadsheet would take for a formula gets an apostrophe in front.
fn csv_cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let guard = if is_formula { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

/// The pieces of an export.
pub struct ExportLines {
    pieces: mpsc::Receiver<Vec<u8>>,
}

impl ExportLines {
    /// The next piece; `None` after the last.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        self.pieces.recv().await
    }
}

impl Service {
    /// Writes out a crawl. What is stored while it is written may or may not be in it.
    pub async fn export(&self, no: CrawlNo, format: ExportFormat) -> Result<ExportLines, Problem> {
        let place = std::sync::Arc::clone(&self.inner().exports).try_acquire_owned();
        let place = place.map_err(|_| {
            Problem::new(Code::TooManyRequests, "too many exports are being written")
                .retry_after_s(10)
        })?;
        self.read(move |service| service.record(no).map(drop)).await?;
        let (out, pieces) = mpsc::channel(PIECES_MAX);
        let service = self.clone();
        // A panic must not pass for the end of the export.
        let supervisor = self.inner().engine.supervisor();
        supervisor.blocking_work(Part::Service("export"), move || {
            let mut piece = format.head().as_bytes().to_vec();
            // A reader that has left ends it: whoever stops reading is cut off by the connection.
            service.inner().control.handle(
                &Request::Export { crawl: no.to_string() },
                &mut |line| {
                    if let Reply::Export(line) = line {
                        format.write(&line, &mut piece);
                    }
                    if piece.len() < PIECE_BYTES {
                        return true;
                    }
                    out.blocking_send(std::mem::take(&mut piece)).is_ok()
                },
            );
            if !piece.is_empty() {
                let _ = out.blocking_send(piece);
            }
            drop(place);
        });
        Ok(ExportLines { pieces })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_no_formulas() {
        assert_eq!(csv_cell("=1+1"), "\"'=1+1\"");
        assert_eq!(csv_cell("a \"b\"\n"), "\"a \"\"b\"\"\n\"");
        assert_eq!(csv_cell("plain"), "\"plain\"");
    }
}
