//! Pools of test children, pages for them, and what the kernel says about a process.

use std::time::Duration;

use bytes::Bytes;
use rustix::process::{Pid, Signal};
use telusur_model::{PageUrl, ParsedPage, RawPage};
use telusur_parse_pool::{ChildLimits, Parser, ParserPool, PoolError, PoolSettings, Reading};

/// A pool of test children.
pub(crate) struct TestPool {
    pub(crate) pool: ParserPool,
}

/// What the children of a pool are, and how many.
pub(crate) struct Plan<'a> {
    pub(crate) behaviour: &'a [&'a str],
    pub(crate) children: usize,
    pub(crate) limits: ChildLimits,
}

impl Default for Plan<'_> {
    fn default() -> Self {
        Self { behaviour: &["jailed"], children: 1, limits: ChildLimits::default() }
    }
}

impl Plan<'_> {
    pub(crate) fn start(self) -> TestPool {
        self.try_start().unwrap()
    }

    pub(crate) fn try_start(self) -> Result<TestPool, PoolError> {
        ParserPool::start(self.settings()).map(|pool| TestPool { pool })
    }

    pub(crate) fn settings(self) -> PoolSettings {
        let mut settings = PoolSettings::new(self.children).unwrap();
        settings.program.arguments = vec![crate::children::COMMAND.into()];
        settings.program.arguments.extend(self.behaviour.iter().map(Into::into));
        settings.limits = self.limits;
        settings.pause_first = Duration::ZERO;
        settings
    }
}

/// One jailed child with the usual limits.
pub(crate) fn one_child() -> TestPool {
    Plan::default().start()
}

impl TestPool {
    #[track_caller]
    pub(crate) fn parsed(&self, path: &str) -> ParsedPage {
        match self.pool.parse(&page(path)).unwrap() {
            Reading::Read(parsed) => *parsed,
            Reading::Failed { why } => panic!("{path} failed: {why}"),
        }
    }

    /// Why a page could not be parsed.
    #[track_caller]
    pub(crate) fn failed(&self, path: &str) -> String {
        match self.pool.parse(&page(path)).unwrap() {
            Reading::Read(parsed) => panic!("{path} was parsed: {parsed:?}"),
            Reading::Failed { why } => why,
        }
    }

    /// The one child, which has no page at the moment.
    #[track_caller]
    pub(crate) fn child_pid(&self) -> u32 {
        let pids = self.pool.resting_pids();
        assert_eq!(pids.len(), 1);
        pids[0]
    }
}

/// A page whose path says what a test child does with it.
pub(crate) fn page(path: &str) -> RawPage {
    html(path, "<!doctype html><title>A title</title><p>Some <a href=/next>text</a>")
}

pub(crate) fn html(path: &str, html: &str) -> RawPage {
    RawPage {
        url: PageUrl::parse("http://a.org/").unwrap().join(path).unwrap(),
        status: 200,
        headers: vec![("content-type".to_owned(), "text/html".to_owned())],
        body: Bytes::copy_from_slice(html.as_bytes()),
        truncated: false,
        wire_bytes: html.len() as u64,
    }
}

pub(crate) fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
}

/// Waits until the process has used CPU since this was called.
pub(crate) fn wait_until_busy(pid: u32) {
    let before = stat_field(pid, 11);
    wait_until(|| stat_field(pid, 11) > before);
}

/// Waits until the process is gone, or waits only to be taken off the process table.
pub(crate) fn wait_until_gone(pid: u32) {
    wait_until(|| stat(pid).is_none_or(|fields| fields[0] == "Z"));
}

fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        std::thread::yield_now();
    }
}

fn stat_field(pid: u32, field: usize) -> u64 {
    stat(pid).map_or(0, |fields| fields[field].parse().unwrap())
}

/// The fields of `/proc/PID/stat` behind the program's name.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = text.rsplit_once(") ")?;
    Some(after_name.split(' ').map(str::to_owned).collect())
}
