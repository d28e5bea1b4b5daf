//! The control socket: control, reached from another terminal.
//!
//! A client that is silent or slow costs nobody else an answer: a question that does not come is given
//! up, it takes no place until it is there, and a reader that has fallen asleep loses its place as soon
//! as somebody else needs it.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use telusur_parse_pool::{private_listener, through_short_path};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

use super::handle::Control;
use super::operation::{
    Each, ErrorCode, ErrorReply, Length, NoItem, Operation, ReplyLine, RequestLine,
};
use crate::index_lease::{LeaseHolder, line_of};
use crate::supervision::{Part, SupervisedTask};

/// Longest request: a batch of documents, or the ids of a linear crawl.
const REQUEST_BYTES_MAX: u64 = 64 << 20;
/// Connections whose question has not come yet, or waits for a place.
const ASKING_MAX: usize = 256;
/// Orders and short answers at once; the next one waits.
const ORDERS_MAX: usize = 16;
/// Long answers at once. They have places of their own: an order must not wait for an export.
const STREAMS_MAX: usize = 16;
/// Clients that watch something at once; each has a thread.
const WATCHERS_MAX: usize = 128;
/// Longest that a question may take to come: it is one line, written at once.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
/// Longest that a reader may take for one piece of its answer before it counts as asleep.
const PIECE_TIME_MAX: Duration = Duration::from_secs(60);
/// A piece of an answer. With the limit above, a reader that keeps its place takes a kilobyte a second.
const PIECE_BYTES: usize = 64 << 10;
/// Connections that the system holds until they are accepted.
const BACKLOG: i32 = 1024;
/// Lines on their way to a slow reader; the store is read no faster than they are taken.
const LINES_MAX: usize = 256;

const CONTROL: Part = Part::Service("control");

/// Listens on a socket until the returned guard is dropped, which also removes the socket. Must be
/// called inside a tokio runtime, by the owner of the directory: a stale socket is replaced.
pub fn serve(path: &Path, control: Control) -> io::Result<SocketGuard> {
    let listener = UnixListener::from_std(private_listener(path, BACKLOG)?)?;
    let task = control.supervisor().task(CONTROL, accept(listener, control));
    Ok(SocketGuard { path: path.to_owned(), task })
}

/// Keeps a control socket alive.
#[derive(Debug)]
pub struct SocketGuard {
    path: PathBuf,
    task: SupervisedTask<()>,
}

impl Drop for SocketGuard {
    fn drop(&mut self) {
        self.task.end();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether somebody listens on a control socket.
pub fn is_served(path: &Path) -> bool {
    through_short_path(path, UnixStream::connect).is_ok()
}

/// Runs an operation in the process that owns a directory, and calls `each` with every item until it returns
/// false. Gives the reply, which nobody waits for after that.
pub fn ask<O: Operation>(
    path: &Path,
    operation: &O,
    each: Each<'_, O::Item>,
) -> io::Result<Result<Option<O::Reply>, ErrorReply>> {
    let request = line_of(&RequestLine::Run { operation: O::KIND, request: operation })?;
    if request.len() as u64 > REQUEST_BYTES_MAX {
        let what = format!("the request is larger than {} MiB", REQUEST_BYTES_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let mut stream = through_short_path(path, UnixStream::connect)?;
    stream.write_all(&request)?;
    for line in BufReader::new(stream).lines() {
        match serde_json::from_str::<ReplyLine<O::Item, O::Reply>>(&line?)? {
            ReplyLine::Reply(reply) => return Ok(Ok(Some(reply))),
            ReplyLine::Error(error) => return Ok(Err(error)),
            ReplyLine::Item(item) => {
                if !each(item) {
                    return Ok(Ok(None));
                }
            }
        }
    }
    Err(io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "it ended in the middle of its reply, or did not want to wait for this side any longer",
    ))
}

/// The places of clients.
#[derive(Clone)]
struct Places {
    asking: Arc<Semaphore>,
    orders: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    watchers: Arc<Semaphore>,
}

impl Places {
    fn new() -> Self {
        Self {
            asking: Arc::new(Semaphore::new(ASKING_MAX)),
            orders: Arc::new(Semaphore::new(ORDERS_MAX)),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            watchers: Arc::new(Semaphore::new(WATCHERS_MAX)),
        }
    }

    /// The places for operations of this length.
    fn of(&self, length: Length) -> &Arc<Semaphore> {
        match length {
            Length::Short => &self.orders,
            Length::Long => &self.streams,
            Length::Watch => &self.watchers,
        }
    }
}

async fn accept(listener: UnixListener, control: Control) {
    let places = Places::new();
    loop {
        let Ok(asking) = Arc::clone(&places.asking).acquire_owned().await else { return };
        // A failed accept (no file descriptors) is tried again when somebody has left.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (control, places) = (control.clone(), places.clone());
        // A panic closes the connection: the client is told that the answer is not complete.
        tokio::spawn(async move {
            if let Err(error) = talk(stream, control, &places, asking).await {
                tracing::debug!(%error, "control connection ended");
            }
        });
    }
}

async fn talk(
    mut stream: tokio::net::UnixStream,
    control: Control,
    places: &Places,
    asking: OwnedSemaphorePermit,
) -> io::Result<()> {
    let (operation, request) = match read_request(&mut stream).await? {
        Ok(RequestLine::Run { operation, request }) => (operation, request),
        Ok(RequestLine::LeaseIndex { format }) => return lease(stream, format, control),
        Err(error) => {
            let error = ErrorReply {
                code: ErrorCode::BadArgument,
                text: error.to_string(),
                pointer: None,
                hint: None,
            };
            let refused = line_of(&ReplyLine::<NoItem, NoItem>::Error(error))?;
            return send_piece(&mut stream, &refused, &places.orders).await;
        }
    };
    let places = places.of(operation.length());
    let Ok(_place) = Arc::clone(places).acquire_owned().await else { return Ok(()) };
    drop(asking);
    let (lines, replies) = mpsc::channel::<Vec<u8>>(LINES_MAX);
    tokio::task::spawn_blocking(move || {
        operation.serve(&control, request, &mut |line| lines.blocking_send(line).is_ok());
    });
    send_lines(&mut stream, replies, places).await
}

/// Reads the question, which must come soon.
async fn read_request(
    stream: &mut tokio::net::UnixStream,
) -> io::Result<serde_json::Result<RequestLine<serde_json::Value>>> {
    let mut line = String::new();
    let (reader, _) = stream.split();
    let mut reader = tokio::io::BufReader::new(reader.take(REQUEST_BYTES_MAX));
    timeout(REQUEST_TIME_MAX, reader.read_line(&mut line)).await??;
    Ok(serde_json::from_str(&line))
}

/// Writes the lines of a reply, in pieces.
async fn send_lines(
    stream: &mut tokio::net::UnixStream,
    mut lines: mpsc::Receiver<Vec<u8>>,
    places: &Semaphore,
) -> io::Result<()> {
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    while let Some(line) = lines.recv().await {
        piece.extend_from_slice(&line);
        // A watcher sees each line as soon as there is nothing more to write at once.
        if piece.len() >= PIECE_BYTES || lines.is_empty() {
            for part in piece.chunks(PIECE_BYTES) {
                send_piece(stream, part, places).await?;
            }
            piece.clear();
        }
    }
    Ok(())
}

/// Writes a piece. A reader that does not take it in time keeps its place only as long as there are
/// others: somebody may read an export page by page.
async fn send_piece(
    stream: &mut tokio::net::UnixStream,
    piece: &[u8],
    places: &Semaphore,
) -> io::Result<()> {
    let mut rest = piece;
    while !rest.is_empty() {
        let written = timeout(PIECE_TIME_MAX, async {
            while !rest.is_empty() {
                let taken = stream.write(rest).await?;
                rest = &rest[taken..];
            }
            io::Result::Ok(())
        });
        match written.await {
            Ok(written) => written?,
            Err(_) if places.available_permits() > 0 => {}
            Err(asleep) => return Err(asleep.into()),
        }
    }
    Ok(())
}

/// Makes the connection a lease of the index. It is then served elsewhere, and takes no place here.
fn lease(stream: tokio::net::UnixStream, format: u32, control: Control) -> io::Result<()> {
    let holder = LeaseHolder { pid: stream.peer_cred()?.pid(), format };
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    let supervisor = control.supervisor();
    supervisor.blocking_work(CONTROL, move || control.lease_index(stream, holder));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer without end.
    fn endless() -> mpsc::Receiver<Vec<u8>> {
        let (lines, replies) = mpsc::channel(LINES_MAX);
        tokio::spawn(
            async move { while lines.send("x".repeat(1000).into_bytes()).await.is_ok() {} },
        );
        replies
    }

    /// An export that was read at one byte a minute once held its place for ever.
    #[tokio::test(start_paused = true)]
    async fn a_sleeping_reader_loses_its_place_when_it_is_needed() {
        let (mut ours, theirs) = tokio::net::UnixStream::pair().unwrap();
        let places = Semaphore::new(1);
        let _place = places.acquire().await.unwrap();
        let drip = tokio::spawn(async move {
            let (mut theirs, mut byte) = (theirs, [0]);
            while theirs.read_exact(&mut byte).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
        });
        let sent = timeout(Duration::from_secs(600), send_lines(&mut ours, endless(), &places));
        let error = sent.await.expect("it has its place for ever").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(ours);
        drip.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleeping_reader_goes_on_where_nobody_waits() {
        let (mut ours, mut theirs) = tokio::net::UnixStream::pair().unwrap();
        let sent = tokio::spawn(async move {
            let places = Semaphore::new(2);
            let _place = places.acquire().await.unwrap();
            send_lines(&mut ours, endless(), &places).await.unwrap_err().kind()
        });
        tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
        let mut bytes = vec![0; 4 << 20];
        theirs.read_exact(&mut bytes).await.unwrap();
        drop(theirs);
        assert_eq!(sent.await.unwrap(), io::ErrorKind::BrokenPipe);
    }
}
