//! The control socket: the desk, reached from another terminal.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use telusur_parse_pool::through_short_path;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::{Semaphore, mpsc};

use super::{Answer, Ask, Desk};
use crate::loan::{Borrower, line_of};

/// Longest question.
const ASK_BYTES_MAX: u64 = 1 << 20;
/// Terminals served at once; the next one waits.
const CLIENTS_MAX: usize = 16;
/// Lines on their way to a slow reader; the store is read no faster than they are taken.
const LINES_MAX: usize = 256;

/// Listens on a socket until the returned guard is dropped, which also removes the socket. Must be
/// called inside a tokio runtime, by the owner of the directory: a stale socket is replaced.
pub fn serve(path: &Path, desk: Desk) -> io::Result<SocketGuard> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = through_short_path(path, |short| UnixListener::bind(short))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    let task = tokio::spawn(accept(listener, desk));
    Ok(SocketGuard { path: path.to_owned(), task })
}

/// Keeps a control socket alive.
#[derive(Debug)]
pub struct SocketGuard {
    path: PathBuf,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for SocketGuard {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether somebody listens on a control socket.
pub fn is_served(path: &Path) -> bool {
    through_short_path(path, UnixStream::connect).is_ok()
}

/// Asks the owner of a directory and calls `each` with every line of the answer but the last, until
/// it returns false. Gives the last line.
pub fn ask(path: &Path, ask: &Ask, each: &mut dyn FnMut(Answer) -> bool) -> io::Result<Answer> {
    let mut stream = through_short_path(path, UnixStream::connect)?;
    stream.write_all(&line_of(ask)?)?;
    for line in BufReader::new(stream).lines() {
        match serde_json::from_str(&line?)? {
            last @ (Answer::End | Answer::Error { .. }) => return Ok(last),
            answer => {
                if !each(answer) {
                    return Ok(Answer::End);
                }
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the owner ended in the middle of its answer"))
}

async fn accept(listener: UnixListener, desk: Desk) {
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        // A failed accept (no file descriptors) is tried again when somebody has left.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            continue;
        };
        let desk = desk.clone();
        tokio::spawn(async move {
            if let Err(error) = talk(stream, desk).await {
                tracing::debug!(%error, "control connection ended");
            }
            drop(place);
        });
    }
}

async fn talk(mut stream: tokio::net::UnixStream, desk: Desk) -> io::Result<()> {
    let mut line = String::new();
    let (reader, _) = stream.split();
    tokio::io::BufReader::new(reader.take(ASK_BYTES_MAX)).read_line(&mut line).await?;
    let ask = serde_json::from_str(&line);
    if let Ok(Ask::Follow { format }) = ask {
        return lend(stream, format, desk);
    }
    let (lines, mut answers) = mpsc::channel::<Answer>(LINES_MAX);
    tokio::task::spawn_blocking(move || match ask {
        Ok(ask) => desk.answer(&ask, &mut |answer| lines.blocking_send(answer).is_ok()),
        Err(error) => {
            let code = "bad_argument".to_owned();
            let _ = lines.blocking_send(Answer::Error { code, text: error.to_string() });
        }
    });
    let mut writer = tokio::io::BufWriter::new(&mut stream);
    while let Some(answer) = answers.recv().await {
        let line = line_of(&answer)?;
        writer.write_all(&line).await?;
        if answers.is_empty() {
            writer.flush().await?;
        }
    }
    writer.flush().await
}

/// Makes the connection a loan of the index. It is then served elsewhere, and takes no place here.
fn lend(stream: tokio::net::UnixStream, format: u32, desk: Desk) -> io::Result<()> {
    let borrower = Borrower { pid: stream.peer_cred()?.pid(), format };
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    tokio::task::spawn_blocking(move || desk.lend_index(stream, borrower));
    Ok(())
}
