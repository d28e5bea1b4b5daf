//! Everything that a crawl stored, as a stream of pieces: written no faster than they are taken.

use std::io::{self, Write};

use telusur_engine::Part;
use telusur_engine::export::{Collection, ExportError};
use telusur_model::CrawlNo;
use tokio::sync::mpsc;

use super::Service;
use crate::problem::{Code, Problem};

/// Pieces on their way to a slow reader.
const PIECES_MAX: usize = 16;
/// Size at which a piece is sent.
const PIECE_BYTES: usize = 32 << 10;

/// The pieces of an export. An error is the last one: the client must not take what came for all of it.
pub struct ExportPieces {
    pieces: mpsc::Receiver<io::Result<Vec<u8>>>,
}

impl ExportPieces {
    /// The next piece; `None` after the last.
    pub async fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        self.pieces.recv().await
    }
}

impl Service {
    /// Writes out a crawl. What is stored while it is written may or may not be in it.
    pub async fn export(
        &self,
        no: CrawlNo,
        collection: Collection,
    ) -> Result<ExportPieces, Problem> {
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
            let mut output = PieceWriter { out, piece: Vec::new() };
            let control = &service.inner().control;
            let failed = match collection.export(&no.to_string(), control, &mut output) {
                Ok(exported) => exported.first_damaged.map(|page| {
                    let count = exported.damaged;
                    format!("{count} pages cannot be read, first {}: {}", page.url, page.what)
                }),
                Err(ExportError::Source(error)) => Some(error.to_string()),
                // The reader has left: whoever stops reading is cut off by the connection.
                Err(ExportError::Output(_)) => return,
            };
            if output.flush().is_ok()
                && let Some(why) = failed
            {
                tracing::error!(crawl = %no, why, "an export is not complete: its connection is cut");
                let _ = output.out.blocking_send(Err(io::Error::other(why)));
            }
            drop(place);
        });
        Ok(ExportPieces { pieces })
    }
}

/// Sends what is written in pieces.
struct PieceWriter {
    out: mpsc::Sender<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let sent = self.out.blocking_send(Ok(std::mem::take(&mut self.piece)));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
