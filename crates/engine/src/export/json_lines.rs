//! Pieces of content as JSON Lines: where each was found, and everything that is known of it.

use std::io::{self, Write};

use serde::Serialize;
use telusur_model::ContentKind;

use super::json::write_json_line;
use crate::control::FoundContent;

/// One piece.
#[derive(Serialize)]
struct PieceLine<'a, T> {
    crawl: &'a str,
    page: &'a str,
    /// The first of its kind on the page is 1.
    index: usize,
    #[serde(flatten)]
    piece: &'a T,
}

/// Writes the pieces of one kind in one page, a JSON object on each line. Gives their number.
pub fn write(output: &mut dyn Write, kind: ContentKind, found: &FoundContent) -> io::Result<u64> {
    let content = &found.content;
    match kind {
        ContentKind::Headings => write_pieces(output, found, &content.headings),
        ContentKind::Links => write_pieces(output, found, &content.links),
        ContentKind::Images => write_pieces(output, found, &content.images),
        ContentKind::Tables => write_pieces(output, found, &content.tables),
        ContentKind::Lists => write_pieces(output, found, &content.lists),
        ContentKind::Forms => write_pieces(output, found, &content.forms),
        ContentKind::Scripts => write_pieces(output, found, &content.scripts),
        ContentKind::Styles => write_pieces(output, found, &content.styles),
    }
}

fn write_pieces<T: Serialize>(
    output: &mut dyn Write,
    found: &FoundContent,
    pieces: &[T],
) -> io::Result<u64> {
    for (index, piece) in (1..).zip(pieces) {
        let line = PieceLine { crawl: &found.crawl, page: &found.page, index, piece };
        write_json_line(output, &line)?;
    }
    Ok(pieces.len() as u64)
}
