//! Makes the directories that are damaged: crawls of a synthetic web over loopback by the real program.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use super::DamageTorture;
use super::asking::Program;
use super::files::{Original, copy_tree};
use crate::server::ServedWeb;

/// Ids of the linear crawl, and documents of the import.
const NUMBERED: u64 = 60;
/// Pages of the second crawl.
const SECOND_PAGES_MAX: u64 = 60;
/// Pages that the crawl has at least when it is killed.
const KILLED_AFTER: u64 = 20;

/// A directory that is damaged in copies.
#[derive(Clone, Debug)]
pub(super) struct Base {
    pub name: &'static str,
    pub dir: PathBuf,
    /// The same directory at an earlier time.
    pub older: PathBuf,
    /// Whether its last crawl was killed.
    pub is_killed: bool,
    pub original: Original,
}

impl DamageTorture {
    /// Makes a directory that was closed and one whose owner was killed, and earlier copies of both.
    pub(super) fn make_bases(&self, served: &ServedWeb) -> Result<Vec<Base>, String> {
        let live = self.scratch.join("live");
        let program = Program::new(&self.program, &live);
        self.crawl(&program, served, "first", self.pages)?;
        for scope in ["read", "admin"] {
            program.expect(&["key", "create", "--name", scope, "--scope", scope])?;
        }
        let first = self.copy_of(&live, "older")?;
        self.fill_up(&program, served)?;
        let closed = self.copy_of(&live, "closed")?;
        kill_in_the_middle(&program, served)?;
        let killed = self.copy_of(&live, "killed")?;
        let original = Original::of(&live, self.scratch.join("original"));
        let original = original.map_err(|error| error.to_string())?;
        let base = |name, dir, older, is_killed| {
            let original = original.clone();
            Base { name, dir, older, is_killed, original }
        };
        Ok(vec![base("closed", closed.clone(), first, false), base("killed", killed, closed, true)])
    }

    /// A linear crawl, an import, another crawl, and a key that is revoked.
    fn fill_up(&self, program: &Program, served: &ServedWeb) -> Result<(), String> {
        let host = served.web().host_name(0);
        let template = format!("http://{host}/item/{{id}}");
        let last = NUMBERED.to_string();
        let linear = ["linear", "--name", "numbers", "--min", "0", "--max", &last, "--start", "9"];
        program.expect(&[&linear[..], &FLAGS, &[&template]].concat())?;
        self.import(program)?;
        self.crawl(program, served, "second", self.pages.min(SECOND_PAGES_MAX))?;
        let keys = program.expect(&["key", "ls", "--json"])?;
        let first = keys.lines().next().unwrap_or_default();
        let key: serde_json::Value =
            serde_json::from_str(first).map_err(|error| format!("{error} in {keys}"))?;
        let id = key["id"].as_str().ok_or_else(|| format!("no key in {keys}"))?;
        program.expect(&["key", "revoke", id]).map(drop)
    }

    fn crawl(
        &self,
        program: &Program,
        served: &ServedWeb,
        name: &str,
        pages: u64,
    ) -> Result<(), String> {
        let pages = pages.to_string();
        let start = served.web().seeds()[0].to_string();
        let crawl = ["crawl", "--name", name, "--max-pages", &pages, &start];
        program.expect(&[&crawl[..], &FLAGS].concat()).map(drop)
    }

    fn import(&self, program: &Program) -> Result<(), String> {
        let file = self.scratch.join("documents.jsonl");
        let mut lines = Vec::new();
        for number in 0..NUMBERED {
            let _ = writeln!(
                lines,
                "{{\"id\":\"{number}\",\"title\":\"Document {number}\",\"text\":\"The words of {number}\"}}"
            );
        }
        std::fs::write(&file, lines).map_err(|error| error.to_string())?;
        program.expect(&["import", "--name", "documents", &file.to_string_lossy()]).map(drop)
    }

    fn copy_of(&self, live: &Path, name: &str) -> Result<PathBuf, String> {
        let copy = self.scratch.join(name);
        copy_tree(live, &copy).map_err(|error| format!("copy to {}: {error}", copy.display()))?;
        Ok(copy)
    }
}

/// A crawl that is slow enough to be met in its middle, and is killed there.
fn kill_in_the_middle(program: &Program, served: &ServedWeb) -> Result<(), String> {
    let start = served.web().seeds()[2].to_string();
    let crawl = ["crawl", "--name", "killed", "--max-pages", "2000", "--rate", "60/s", &start];
    let mut command = program.command(&[&crawl[..], &FLAGS].concat());
    let spawned = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = spawned.map_err(|error| format!("start the crawl: {error}"))?;
    let met = wait_for_pages(program, &mut child);
    child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
    met
}

fn wait_for_pages(program: &Program, child: &mut Child) -> Result<(), String> {
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Err(format!("the crawl ended before it was killed: {status}"));
        }
        // Until the crawl has made its row there is none of that name.
        let told = program.run(&["show", "killed", "--json"])?;
        let shown: serde_json::Value = serde_json::from_str(&told.stdout).unwrap_or_default();
        if shown["stats"]["fetched"].as_u64().is_some_and(|pages| pages >= KILLED_AFTER) {
            return Ok(());
        }
    }
}

/// For every command that fetches.
pub(super) const FLAGS: [&str; 16] = [
    "--delay",
    "0s",
    "--per-host",
    "4",
    "--workers",
    "8",
    "--scope",
    "any",
    "--max-per-host",
    "10m",
    "--max-per-site",
    "10m",
    "--min-free-disk",
    "0B",
    "--allow-private",
    "127.0.0.0/8",
];
