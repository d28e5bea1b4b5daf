//! Asks the program about a directory, and compares its answers with those about a whole one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// The program, for one data directory.
pub(super) struct Program {
    program: PathBuf,
    dir: PathBuf,
}

/// What a run left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Program {
    pub(super) fn new(program: &Path, dir: &Path) -> Self {
        Self { program: program.to_owned(), dir: dir.to_owned() }
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["--no-config", "--quiet", "--data"]).arg(&self.dir);
        command.args(arguments).stdin(Stdio::null()).env("RUST_BACKTRACE", "0");
        command
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Result<Seen, String> {
        let output = self.command(arguments).output();
        let output = output.map_err(|error| format!("run {arguments:?}: {error}"))?;
        Ok(Seen {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Runs what has to succeed.
    pub(super) fn expect(&self, arguments: &[&str]) -> Result<String, String> {
        let seen = self.run(arguments)?;
        match seen.code {
            Some(0) => Ok(seen.stdout),
            code => {
                Err(format!("{arguments:?}: exit code {code:?}: {}{}", seen.stdout, seen.stderr))
            }
        }
    }
}

/// A question, and what the answer about a whole directory is.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub arguments: Vec<String>,
    pub answer: Seen,
}

/// What came of one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The answer is the right one.
    Same,
    /// The damage is named, with code, file and help.
    Named,
    /// Anything else, and why.
    Wrong(String),
}

impl Question {
    /// Asks about a whole directory.
    pub(super) fn new(program: &Program, arguments: &[&str]) -> Result<Self, String> {
        let answer = normal(program.run(arguments)?);
        if answer.code != Some(0) {
            return Err(format!("{arguments:?} of a whole directory: {answer:?}"));
        }
        Ok(Self { arguments: arguments.iter().map(|word| (*word).to_owned()).collect(), answer })
    }

    pub(super) fn words(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    /// Asks about a directory of which one file is damaged.
    pub(super) fn ask(&self, program: &Program, damaged: &str) -> Result<(Verdict, Seen), String> {
        let seen = normal(program.run(&self.words())?);
        Ok((self.judge(&seen, damaged), seen))
    }

    fn judge(&self, seen: &Seen, damaged: &str) -> Verdict {
        if let Some(why) = crash_of(seen) {
            return Verdict::Wrong(why);
        }
        if (seen.code, &seen.stdout) == (self.answer.code, &self.answer.stdout) {
            return Verdict::Same;
        }
        judge_message(seen, damaged, self.arguments[0] != "verify")
    }
}

/// A panic, or an end by a signal.
pub(super) fn crash_of(seen: &Seen) -> Option<String> {
    let is_crash = seen.stderr.contains("panicked") || seen.code.is_none_or(|code| code > 100);
    is_crash.then(|| format!("crashed: {:?} {}", seen.code, first_lines(&seen.stderr)))
}

/// Whether an answer that is not the right one says what is wrong, and where.
pub(super) fn judge_message(seen: &Seen, damaged: &str, needs_help: bool) -> Verdict {
    if seen.code == Some(0) {
        return Verdict::Wrong(format!(
            "another answer, and no word: {} {}",
            first_lines(&seen.stdout),
            first_lines(&seen.stderr)
        ));
    }
    let told = format!("{}{}", seen.stderr, seen.stdout);
    // A list that was set back names the tables that are gone.
    let parent = damaged.rsplit_once('/').map_or(damaged, |(parent, _)| parent);
    // The index is derived, and rebuilt as a whole.
    let names_index = damaged.starts_with("index/") && told.contains("telusur index rebuild");
    let names_file =
        told.contains(damaged) || (parent.contains('/') && told.contains(parent)) || names_index;
    let has_code = seen.stderr.contains("\"code\":\"E0") || seen.stderr.contains("[E0");
    let has_help = !needs_help
        || ["telusur ", "backup", "delete ", "remove "].iter().any(|word| told.contains(word));
    match (names_file, has_code, has_help) {
        (true, true, true) => Verdict::Named,
        (false, ..) => Verdict::Wrong(format!("names no file: {}", first_lines(&told))),
        (_, false, _) => Verdict::Wrong(format!("has no code: {}", first_lines(&told))),
        (.., false) => Verdict::Wrong(format!("names no help: {}", first_lines(&told))),
    }
}

fn first_lines(text: &str) -> String {
    let line: String = text.lines().take(3).collect::<Vec<_>>().join(" | ");
    line.chars().take(400).collect()
}

/// Without what differs from run to run, and from one order of equal hits to another.
fn normal(seen: Seen) -> Seen {
    let Ok(mut told) = serde_json::from_str::<Value>(&seen.stdout) else { return seen };
    if let Some(hits) = told["hits"].as_array() {
        let mut urls: Vec<String> =
            hits.iter().map(|hit| format!("{}{}", hit["url"], hit["title"])).collect();
        urls.sort();
        told = json!({ "hits": urls });
    }
    Seen { stdout: told.to_string(), ..seen }
}
