//! Runs the real program and looks at what a user would see: exit code, standard output, standard
//! error.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod both_ways;
mod config;
mod crawl;
mod damage;
mod damaged_index;
mod directory;
mod explain;
mod following;
mod full_disk;
mod guard;
mod inspect;
mod linear;
mod operations;
mod pages;
mod recover;
mod run;
mod scrub;
mod serve;
mod streams;
mod vocabulary;
mod wrong_values;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A directory of its own, with nothing from the machine's environment.
struct Place {
    directory: TempDir,
}

/// What a run left behind.
#[derive(Debug)]
struct Seen {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Place {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The same place with a file in it.
    fn with(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.path().join(name), text).unwrap();
        self
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_telusur"));
        command.args(arguments).current_dir(self.path()).env_clear().env("HOME", self.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Seen {
        self.run_with(arguments, &[], "")
    }

    fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)], stdin: &str) -> Seen {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        finish(command, stdin)
    }
}

/// Asks again and again until something is so. Far longer than it ever takes: what never comes is a failure,
/// and not a test that hangs.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);
    let since = std::time::Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::yield_now();
    }
}

fn finish(mut command: Command, stdin: &str) -> Seen {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that does not read its input closes the pipe; that is its right.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    Seen {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Seen {
    /// The run failed with this code and said exactly one line.
    #[track_caller]
    fn error(&self, code: i32) -> &str {
        assert_eq!(self.code, code, "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        assert!(self.stderr.starts_with("error: "), "{self:?}");
        self.stderr.trim_end()
    }

    /// The run succeeded and said nothing on the side.
    #[track_caller]
    fn result(&self) -> &str {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{self:?}");
        &self.stdout
    }
}

const DRY_RUN: [&str; 3] = ["crawl", "--dry-run", "http://a.org/"];
