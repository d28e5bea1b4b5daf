//! [`GuardProof`]: every command and every path that fetches, let loose on a web of lures, with the
//! settings that a user gets. Not one connection may go to an address that is not public.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use super::lures::Lures;
use super::set_up;
use super::shore::Shore;

/// Words under which a lure may end.
const REFUSALS: [&str; 2] = ["blocked_address", "blocked_port"];
/// Requests after which a crawl is killed, to be resumed.
const REQUESTS_BEFORE_KILL: usize = 60;
/// A proxy at a public address. No server need answer there: it must not be asked for anything inside.
const PROXY: &str = "http://proxy.test:8000";
/// Of the internal start URLs, the share that is tried in a hurry.
const SEEDS_STEP: usize = 12;
/// How long the shore may take to see the last of a program that has ended.
const LOOKS_MAX: usize = 500;
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// What to prove. To be run on an island (see [`on_island`](super::on_island)).
#[derive(Clone, Debug)]
pub struct GuardProof {
    /// The program.
    pub program: PathBuf,
    /// An empty directory.
    pub scratch: PathBuf,
    /// Whether it takes the time that a user's crawl takes. Else there is no delay between requests,
    /// so that no name lives long enough to be looked up twice by one process, and not every address
    /// is tried as a start URL.
    pub is_thorough: bool,
}

/// What came of it. There is no report if anything was reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuardReport {
    /// Lures that were refused with a reason.
    pub refused: usize,
    /// Runs of the program.
    pub runs: usize,
    /// Requests that public addresses saw.
    pub requests: usize,
}

impl GuardProof {
    /// Runs it. `say` hears what is going on. The error says what was reached or not refused.
    pub async fn run(&self, say: impl FnMut(&str)) -> Result<GuardReport, String> {
        set_up(&self.scratch)?;
        let lures = Arc::new(Lures::new());
        let shore = Shore::watch(Arc::clone(&lures)).await.map_err(|error| error.to_string())?;
        let mut attack = Attack { proof: self, lures, shore, report: GuardReport::default(), say };
        attack.crawls().await?;
        attack.kill_and_resume().await?;
        attack.is_unharmed("in the end").await?;
        attack.control().await?;
        attack.report.requests = attack.shore.log.len();
        Ok(attack.report)
    }
}

struct Attack<'a, Say> {
    proof: &'a GuardProof,
    lures: Arc<Lures>,
    shore: Shore,
    report: GuardReport,
    say: Say,
}

impl<Say: FnMut(&str)> Attack<'_, Say> {
    async fn crawls(&mut self) -> Result<(), String> {
        let (seeds, marks) = (self.lures.seeds(), self.lures.marks());
        self.crawl("narrow", &[], &seeds).await?;

        self.crawl("wide", &["--scope", "any"], &seeds).await?;
        self.refused("wide", &marks).await?;
        self.run("wide", &["recrawl", "last"]).await?;
        self.refused("wide", &marks).await?;
        for command in [
            &["explain", "http://127.0.0.1/lure/link/0"] as &[&str],
            &["politeness", "127.0.0.1"],
            &["export", "last"],
            &["show", "last"],
            &["verify"],
        ] {
            self.run("wide", command).await?;
        }

        self.crawl("lawless", &["--scope", "any", "--ignore-robots"], &seeds).await?;
        let lawless: Vec<String> =
            marks.into_iter().filter(|mark| !mark.contains("/robots-") && !of_map(mark)).collect();
        self.refused("lawless", &lawless).await?;

        let step = if self.proof.is_thorough { 1 } else { SEEDS_STEP };
        for seed in self.lures.inner_seeds().into_iter().step_by(step) {
            self.not_started("inner", &["--ignore-robots", &seed]).await?;
            let map = format!("--sitemap={seed}");
            self.not_started("inner", &["--ignore-robots", &map]).await?;
            let served = self.shore.served();
            self.not_started("inner", &["--ignore-robots", "--proxy", PROXY, &seed]).await?;
            if self.shore.served() != served {
                return Err(format!("a proxy was asked for {seed}"));
            }
        }
        Ok(())
    }

    /// A crawl that would have to start inside does not start, and says so.
    async fn not_started(&mut self, dir: &str, arguments: &[&str]) -> Result<(), String> {
        let arguments = [&["crawl", "--min-free-disk", "0B", "--retries", "0"], arguments].concat();
        let output = output(self.command(dir, &arguments)).await?;
        self.report.runs += 1;
        if !matches!(output.status.code(), Some(2 | 3)) {
            let told = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{arguments:?}: {}: {told}", output.status));
        }
        self.report.refused += 1;
        self.is_unharmed(&arguments.join(" ")).await
    }

    /// A crawl that was killed while it was lured goes on no less careful.
    async fn kill_and_resume(&mut self) -> Result<(), String> {
        (self.say)("a crawl that is killed and resumed");
        let seeds = self.lures.seeds();
        let mut arguments = vec!["crawl", "--scope", "any", "--min-free-disk", "0B"];
        // Slow enough that there is something left to do.
        arguments.extend(["--delay", if self.proof.is_thorough { "1s" } else { "100ms" }]);
        arguments.extend(seeds.iter().map(String::as_str));
        let before = self.shore.log.len();
        let mut child = self.command("killed", &arguments).spawn().map_err(|e| e.to_string())?;
        while self.shore.log.len() < before + REQUESTS_BEFORE_KILL {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                return Err(format!("it ended before it was killed: {status}"));
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        child.kill().map_err(|error| error.to_string())?;
        child.wait().map_err(|error| error.to_string())?;
        self.report.runs += 1;
        let delay = if self.proof.is_thorough { "1s" } else { "0s" };
        self.run("killed", &["resume", "last", "--delay", delay]).await?;
        self.refused("killed", &self.lures.marks()).await
    }

    /// What the operator names is reached: else nothing at all would be seen here.
    async fn control(&mut self) -> Result<(), String> {
        (self.say)("the control: an address that the operator names");
        let allowed = ["--allow-private", "10.0.0.5", "--ignore-robots", "--retries", "0"];
        self.crawl("control", &allowed, &["http://10.0.0.5:8080/".to_owned()]).await?;
        let seen: Vec<String> = self.shore.intruders().keys().map(ToString::to_string).collect();
        if seen == ["10.0.0.5:8080"] {
            return Ok(());
        }
        Err(format!("the control should have reached 10.0.0.5:8080, and reached {seen:?}"))
    }

    async fn crawl(&mut self, dir: &str, flags: &[&str], urls: &[String]) -> Result<(), String> {
        let mut arguments = vec!["crawl", "--min-free-disk", "0B"];
        if !self.proof.is_thorough {
            arguments.extend(["--delay", "0s"]);
        }
        arguments.extend(flags);
        arguments.extend(urls.iter().map(String::as_str));
        self.run(dir, &arguments).await
    }

    /// Runs the program to its end, and looks whether it strayed.
    async fn run(&mut self, dir: &str, arguments: &[&str]) -> Result<(), String> {
        let shown: Vec<&str> = arguments.iter().copied().take(6).collect();
        (self.say)(&format!("{dir}: {}", shown.join(" ")));
        let output = output(self.command(dir, arguments)).await?;
        self.report.runs += 1;
        // Start URLs that answer nothing are an exit code of their own: here that is the point.
        if !matches!(output.status.code(), Some(0 | 3)) {
            let told = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {}: {told}", shown.join(" "), output.status));
        }
        if dir == "control" { Ok(()) } else { self.is_unharmed(dir).await }
    }

    /// Every one of these lures was taken up, and refused.
    async fn refused(&mut self, dir: &str, marks: &[String]) -> Result<(), String> {
        let output = output(self.command(dir, &["show", "last", "--errors", "--json"])).await?;
        let told = String::from_utf8_lossy(&output.stdout);
        let mut refused = HashSet::new();
        for line in told.lines() {
            let line: serde_json::Value =
                serde_json::from_str(line).map_err(|error| format!("{error} in {line}"))?;
            let text = line.to_string();
            if REFUSALS.iter().any(|word| text.contains(word)) {
                refused.extend(marks.iter().filter(|mark| names(&line, mark)));
            }
        }
        match marks.iter().find(|mark| !refused.contains(mark)) {
            Some(mark) => Err(format!("{dir}: no message says that {mark} was refused:\n{told}")),
            None => {
                self.report.refused += marks.len();
                Ok(())
            }
        }
    }

    async fn is_unharmed(&self, when: &str) -> Result<(), String> {
        let mut elsewhere = 0;
        for _ in 0..LOOKS_MAX {
            let intruders = self.shore.intruders();
            if !intruders.is_empty() {
                return Err(format!("{when}: connections to {intruders:?}"));
            }
            elsewhere = self.shore.tried_elsewhere()?;
            if elsewhere == 0 {
                return Ok(());
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        Err(format!("{when}: {elsewhere} connections to ports without a listener"))
    }

    fn command(&self, dir: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.proof.program);
        command.args(["--no-config", "--no-progress", "--quiet", "--data"]);
        command.arg(Path::new(&self.proof.scratch).join(dir)).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

async fn output(mut command: Command) -> Result<std::process::Output, String> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = tokio::task::spawn_blocking(move || command.output()).await;
    ended.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// Whether a line is about the URL with this mark, and not about one that begins like it.
fn names(line: &serde_json::Value, mark: &str) -> bool {
    let url = line["url"].as_str().unwrap_or_default();
    match url.find(mark) {
        Some(at) => !url[at + mark.len()..].starts_with(|next: char| next.is_ascii_digit()),
        None => false,
    }
}

/// Whether a lure is found in sitemaps only, which are not looked for where rules are not read.
fn of_map(mark: &str) -> bool {
    mark.contains("/entry/") || mark.contains("/feed/")
}
