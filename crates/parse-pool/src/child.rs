//! The parent's side of one child: starts it, talks to it, and ends it when it must.

use std::ffi::OsString;
use std::io::{self, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use telusur_model::RawPage;

use crate::child_main::CHILD_COMMAND;
use crate::frames::{self, Depth, Frame, FrameError, ParseReply};
use crate::jail::JailReport;
use crate::socket::{self, ChildStream, poll};
use crate::watch::{Interrupts, LimitHit, Task, Watch};

/// CPU that a child may use in its whole life. The parent watches every page, and sends a child away
/// at half of this; only a child whose parent hangs is ended by it.
pub(crate) const CHILD_CPU_SECONDS_MAX: u64 = 2 * WEAR_MAX.as_secs();
/// The same as a duration.
const CHILD_CPU_MAX: Duration = Duration::from_secs(CHILD_CPU_SECONDS_MAX);
/// Work after which a child is replaced by a fresh one, which also gives back the memory that large
/// pages have left scattered. A start costs milliseconds.
const WEAR_MAX: Duration = Duration::from_secs(600);
/// How long a child that has hung up may take to be gone, before it is killed and its own reason is
/// lost.
const GOING_MAX: Duration = Duration::from_secs(2);
/// The part of what a child says about its end that is kept.
const LAST_WORDS_MAX: usize = 300;

/// Answers that are taken off the socket at once: those of a dozen usual pages.
const INBOX_BYTES: usize = 64 << 10;

/// What a page may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildLimits {
    /// CPU for one page.
    pub cpu_max: Duration,
    /// Wall-clock time for one page, also if the child waits. Ten times the CPU: a busy machine is not
    /// the page's fault.
    pub wall_max: Duration,
    /// Memory of a child for its data; the code of the program is not counted.
    pub memory_bytes: u64,
}

impl Default for ChildLimits {
    fn default() -> Self {
        Self {
            cpu_max: Duration::from_secs(2),
            wall_max: Duration::from_secs(20),
            memory_bytes: 256 << 20,
        }
    }
}

/// The program that is run as a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildProgram {
    /// The executable.
    pub path: PathBuf,
    /// What makes it a child; the memory limit is put behind.
    pub arguments: Vec<OsString>,
}

impl ChildProgram {
    /// The running program itself, with its hidden command.
    pub fn this_program() -> io::Result<Self> {
        // This link leads to the very file that runs, even after an upgrade has put another one in
        // its place.
        let link = Path::new("/proc/self/exe");
        let path = if link.exists() { link.to_owned() } else { std::env::current_exe()? };
        Ok(Self { path, arguments: vec![CHILD_COMMAND.into()] })
    }
}

/// A living child. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct ParserChild {
    process: Process,
    stream: UnixStream,
    limits: ChildLimits,
    wear: Duration,
}

/// Why a child has to be replaced.
#[derive(Debug)]
pub(crate) enum Death {
    /// It was gone before it got a byte of the page.
    Idle { why: String },
    /// It died of the page, or the page was the last thing it saw. `cpu`: what the page had used.
    OnPage { why: String, cpu: Duration },
}

/// What a child has answered, and the CPU that the page took.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) answer: ParseReply,
    pub(crate) cpu: Duration,
}

impl ParserChild {
    /// Starts a child and waits until it has locked itself in.
    pub(crate) fn start(
        program: &ChildProgram,
        limits: &ChildLimits,
    ) -> Result<(Self, JailReport), String> {
        let (stream, input) = socket::pair().map_err(|error| format!("open a socket: {error}"))?;
        let process = Process::spawn(program, limits, input)
            .map_err(|error| format!("run {}: {error}", program.path.display()))?;
        let mut child = Self { process, stream, limits: *limits, wear: Duration::ZERO };
        let task = Interrupts::default().task();
        match Frame::read(&mut child.line(task)).and_then(Frame::into_hello) {
            Ok(hello) => Ok((child, hello.jail)),
            Err(error) => Err(child.process.exit_reason(&error)),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Whether it has worked enough for one life.
    pub(crate) fn is_worn(&self) -> bool {
        self.wear >= WEAR_MAX
    }

    /// Has a batch of pages read, in order. After a [`Death`] the child is of no more use, and the
    /// pages beyond the answers have none.
    pub(crate) fn read(
        &mut self,
        task: &Task,
        depth: Depth,
        pages: &[&RawPage],
        answers: &mut Vec<Answered>,
    ) -> Result<(), Death> {
        let mut line = self.line(task.clone());
        let sent = match frames::send_batch(&mut line, depth, pages) {
            // Nothing was sent, and the child is as good as before.
            Err(FrameError::TooLarge { .. }) => {
                let too_large = || Answered { answer: ParseReply::TooLarge, cpu: Duration::ZERO };
                answers.extend(pages.iter().map(|_| too_large()));
                return Ok(());
            }
            sent => sent,
        };
        let (began, cpu) = (line.began, line.patience.cpu_used());
        let read = match sent {
            Ok(()) => self.read_answers(task, depth, pages.len(), answers),
            Err(error) => Err(Unanswered { error, cpu }),
        };
        read.map_err(|Unanswered { error, cpu }| {
            let why = self.process.exit_reason(&error);
            if began { Death::OnPage { why, cpu } } else { Death::Idle { why } }
        })
    }

    fn read_answers(
        &mut self,
        task: &Task,
        depth: Depth,
        count: usize,
        answers: &mut Vec<Answered>,
    ) -> Result<(), Unanswered> {
        let watch = || Watch::new(self.process.pid(), self.limits, task.clone());
        // Answers are small and come several at once: they are taken off the socket together.
        let mut line =
            BufReader::with_capacity(INBOX_BYTES, ChildStream::new(&self.stream, watch()));
        let mut shares = Shares::default();
        let mut failed = None;
        for _ in 0..count {
            let answer = read_answer(&mut line, depth);
            // Each page has its own limits.
            let ended = std::mem::replace(&mut line.get_mut().patience, watch());
            self.wear += ended.time_at_most();
            let cpu = ended.cpu_used();
            match answer {
                Ok((answer, told)) => {
                    shares.add(cpu, told);
                    answers.push(Answered { answer, cpu: Duration::ZERO });
                }
                Err(error) => {
                    failed = Some(Unanswered { error, cpu });
                    break;
                }
            }
        }
        if failed.is_none() && !line.buffer().is_empty() {
            let error = FrameError::Malformed("more answers than pages".to_owned());
            failed = Some(Unanswered { error, cpu: Duration::ZERO });
        }
        let answered = answers.len() - shares.told.len();
        for (answered, cpu) in answers[answered..].iter_mut().zip(shares.cpu()) {
            answered.cpu = cpu;
        }
        failed.map_or(Ok(()), Err)
    }

    /// The line to the child for the time of one page: reading and writing fail when the page has
    /// cost too much.
    fn line(&self, task: Task) -> ChildStream<'_, Watch> {
        ChildStream::new(&self.stream, Watch::new(self.process.pid(), self.limits, task))
    }
}

fn read_answer(line: &mut impl Read, depth: Depth) -> Result<(ParseReply, Duration), FrameError> {
    let answer = Frame::read(line)?.into_answer(depth)?;
    Ok((answer, Frame::read(line)?.into_took()?))
}

/// The CPU time of the pages of a batch. Their sum is measured from outside, so that no page can make
/// itself cheap. How it is shared is what the child says: answers come several at once, and the time
/// between two of them is not that of one page.
#[derive(Default)]
struct Shares {
    measured: Duration,
    told: Vec<Duration>,
}

impl Shares {
    fn add(&mut self, measured: Duration, told: Duration) {
        self.measured += measured;
        // Something for everybody: a sum of zero cannot be shared. No more than can be summed up.
        self.told.push(told.clamp(Duration::from_micros(1), CHILD_CPU_MAX));
    }

    fn cpu(&self) -> impl Iterator<Item = Duration> {
        let sum: Duration = self.told.iter().sum();
        self.told.iter().map(move |told| self.measured.mul_f64(told.div_duration_f64(sum)))
    }
}

/// Why a page has no answer, and the CPU that it had used until then.
struct Unanswered {
    error: FrameError,
    cpu: Duration,
}

/// The process of a child. Dropping it kills it and takes it off the process table.
#[derive(Debug)]
struct Process(Child);

impl Process {
    /// `input`: the child's end of the connection. It is closed here, so that the death of the child closes
    /// the connection.
    fn spawn(program: &ChildProgram, limits: &ChildLimits, input: OwnedFd) -> io::Result<Self> {
        let child = Command::new(&program.path)
            .arg0("telusur")
            .args(&program.arguments)
            .arg(limits.memory_bytes.to_string())
            .env_clear()
            // mimalloc reserves 1 GiB of writable memory at its start. No limit that is set later
            // would keep the child from using it.
            .env("MIMALLOC_ARENA_RESERVE", "32MiB")
            .current_dir("/")
            .stdin(input)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self(child))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// How the child ended, in words; if it has not ended yet, it does now.
    fn exit_reason(&mut self, error: &FrameError) -> String {
        match error {
            FrameError::Io(error) if error.get_ref().is_some_and(|why| why.is::<LimitHit>()) => {
                format!("the parser was stopped: {error}")
            }
            FrameError::Ended | FrameError::Io(_) => {
                format!("the parser died: {}", self.last_words())
            }
            FrameError::TooLarge { .. } | FrameError::Malformed(_) => {
                format!("the parser was stopped: it sent {error}")
            }
        }
    }

    /// Its exit status, and what it wrote to standard error.
    fn last_words(&mut self) -> String {
        // Only the child holds the other end: when that is closed, the child is gone or nearly so.
        if let Some(end) = &self.0.stderr {
            let _ = poll(&mut [PollFd::new(end, PollFlags::empty())], Some(GOING_MAX));
        }
        let _ = self.0.kill();
        let status = match self.0.wait() {
            Ok(status) => status_words(status),
            Err(error) => error.to_string(),
        };
        let mut words = Vec::new();
        if let Some(end) = self.0.stderr.take() {
            let _ = end.take(LAST_WORDS_MAX as u64).read_to_end(&mut words);
        }
        match plain(&String::from_utf8_lossy(&words)) {
            words if words.is_empty() => status,
            words => format!("{status}: {words}"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Text from a child, fit for a terminal: the child may be in the hands of a page.
pub(crate) fn plain(text: &str) -> String {
    let text: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LAST_WORDS_MAX).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn status_words(status: ExitStatus) -> String {
    match status.signal() {
        Some(libc::SIGABRT) => "aborted (signal 6)".to_owned(),
        Some(libc::SIGKILL) => "killed (signal 9)".to_owned(),
        Some(libc::SIGSEGV) => "bad memory access (signal 11)".to_owned(),
        Some(libc::SIGXCPU) => "out of CPU (signal 24)".to_owned(),
        Some(signal) => format!("signal {signal}"),
        None => format!("exit code {}", status.code().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_child_cannot_drive_a_terminal() {
        assert_eq!(plain("\x1b[2Jno\r\n\u{9b}more\n"), "[2Jno more");
        assert_eq!(plain(&"x".repeat(1000)).len(), LAST_WORDS_MAX);
    }
}
