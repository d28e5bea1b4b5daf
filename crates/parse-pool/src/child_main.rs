//! The other end of the socket: a process that reads pages until its parent hangs up.
//!
//! It starts no thread, reads no settings and opens nothing: the socket is its standard input. It locks
//! itself in and says hello.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use telusur_model::RawPage;

use crate::child::CHILD_CPU_SECONDS_MAX;
use crate::frames::{self, Batch, Depth, FrameError, Hello, ParseReply};
use crate::jail::{self, JailLimits};
use crate::parser::InProcess;
use crate::socket::{self, ChildStream, Endless};

/// The hidden command of the program that makes it a child.
pub const CHILD_COMMAND: &str = "parse-child";

/// How long answers are held back so that a batch of small pages wakes the parent once. A page that
/// takes longer goes out at once: its parent waits for it.
const HOLD_MAX: Duration = Duration::from_millis(2);

/// Room for answers that is kept from batch to batch: growing it each time costs a copy.
const OUTBOX_BYTES_KEPT: usize = 1 << 20;

/// Runs as a child if the command line of this process asks for it; `None` if it does not. A
/// program calls this before anything else.
pub fn child_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != CHILD_COMMAND {
        return None;
    }
    let parser = InProcess::default();
    Some(child_main(arguments, |page, depth| match depth {
        Depth::Crawl(text) => ParseReply::Parsed(Box::new(parser.parse_page(page, text))),
        Depth::Search(text) => ParseReply::ForSearch(Box::new(parser.search_page(page, text))),
        Depth::Everything => ParseReply::Read(Box::new(parser.read_page(page))),
    }))
}

/// Runs as a child: locks itself in, and reads pages until the parent hangs up. `arguments` are what follows
/// the program's own: the memory limit.
pub fn child_main(
    arguments: impl Iterator<Item = OsString>,
    read: impl FnMut(&RawPage, Depth) -> ParseReply,
) -> ExitCode {
    match run(arguments, read) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The parent reads the last words of a child that is gone.
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(
    mut arguments: impl Iterator<Item = OsString>,
    read: impl FnMut(&RawPage, Depth) -> ParseReply,
) -> Result<(), FrameError> {
    let misused = || {
        let text = "this command is for the program itself: it needs a socket as standard input, \
                    and a memory limit";
        FrameError::Io(io::Error::new(io::ErrorKind::InvalidInput, text))
    };
    let memory_bytes = arguments.next().and_then(|text| text.to_str()?.parse().ok());
    let memory_bytes = memory_bytes.ok_or_else(misused)?;
    jail::prepare()?;
    let stream = socket::of_parent().map_err(|_| misused())?;
    let limits = JailLimits { memory_bytes, cpu_seconds: CHILD_CPU_SECONDS_MAX };
    let jail = jail::lock_in(&stream, limits)?;
    let mut line = ChildStream::new(&stream, Endless);
    frames::send_hello(&mut line, &Hello::new(jail))?;
    serve(&mut line, read)
}

fn serve(
    line: &mut (impl Read + Write),
    mut read: impl FnMut(&RawPage, Depth) -> ParseReply,
) -> Result<(), FrameError> {
    /// The words of the last panic. The default hook would write them to standard error, which
    /// is not read while the child lives.
    static PANIC: Mutex<String> = Mutex::new(String::new());
    std::panic::set_hook(Box::new(|panic| {
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
    let mut outbox = Vec::new();
    loop {
        let mut batch = match Batch::read(line) {
            Ok(batch) => batch,
            Err(FrameError::Ended) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut sent_at = Instant::now();
        while let Some(page) = batch.next_page(line)? {
            let cpu_before = cpu_used();
            // Reading is pure: its unfinished work is dropped with the panic.
            let answer = match catch_unwind(AssertUnwindSafe(|| read(&page, batch.depth()))) {
                Ok(answer) => answer,
                Err(_) => {
                    let mut text = PANIC.lock().unwrap_or_else(PoisonError::into_inner);
                    ParseReply::Panicked(std::mem::take(&mut *text))
                }
            };
            frames::append_answer(&mut outbox, &answer)?;
            // An answer that is held goes out with the next long page: the parent's clock alone would
            // take the time of that page for the time of this one.
            frames::append_took(&mut outbox, cpu_used().saturating_sub(cpu_before))?;
            if sent_at.elapsed() > HOLD_MAX {
                batch.take_off(line)?;
                line.write_all(&outbox)?;
                outbox.clear();
                sent_at = Instant::now();
            }
        }
        line.write_all(&outbox)?;
        outbox.clear();
        // What one huge page needed is not kept for the rest of the child's life.
        outbox.shrink_to(OUTBOX_BYTES_KEPT);
    }
}

/// The CPU time of this thread, the only one here.
fn cpu_used() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(used).unwrap_or_default()
}
