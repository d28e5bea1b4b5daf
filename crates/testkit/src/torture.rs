//! The crash harness: kills a crawl of a synthetic web again and again, and checks after every kill
//! and at the end that nothing was lost, doubled or asked for more often than it had to be.

mod damage;
mod following;
mod recovering;
mod removing;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::clock::TokioClock;
use crate::fake_web::{FakeWeb, FakeWebSpec};
use crate::random::Dice;
use crate::request_log::RequestLog;
use crate::server::{ServedWeb, serve};

pub use self::damage::{Damage, DamageReport, DamageTorture, DamagedFiles, FileKind};
pub use self::following::FollowReport;
pub use self::recovering::RecoverReport;
pub use self::removing::RemovalReport;

/// What to torture, and how much.
#[derive(Clone, Debug)]
pub struct Torture {
    /// The program.
    pub program: PathBuf,
    /// The web that it crawls.
    pub web: FakeWebSpec,
    /// How often it is killed.
    pub kills: u32,
    /// Decides the moments of the kills.
    pub seed: u64,
    /// Longest that it lives between two kills.
    pub life_ms_max: u64,
    /// Requests under way at once.
    pub workers: u16,
    /// An empty directory.
    pub scratch: PathBuf,
    /// Along what it crawls.
    pub along: Along,
}

/// Along what a crawl goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// Links, from the first page of every host.
    Links,
    /// The numbered pages of every host, both ways from the middle.
    Numbers,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TortureReport {
    /// Kills that hit a running program.
    pub kills: u32,
    /// Pages in the export of the crawl that was killed.
    pub pages: usize,
    /// Requests beyond the first for each URL, over all kills.
    pub refetches: usize,
    /// Times that every promise about the stored data was checked.
    pub verified: u32,
}

impl Torture {
    /// Runs it. `say` hears what is going on. The error says what was broken.
    pub async fn run(&self, mut say: impl FnMut(&str)) -> Result<TortureReport, String> {
        let web = FakeWeb::new(self.web.clone()).map_err(|error| error.to_string())?;
        let log = Arc::new(RequestLog::new(Arc::new(TokioClock::new())));
        let served =
            serve(&web, Some(Arc::clone(&log))).await.map_err(|error| error.to_string())?;
        let calm = self.scratch.join("calm");
        say("an undisturbed crawl, to compare with");
        self.finish(&served, &calm).await?;
        let expected = self.export(&calm)?;
        let coverage = self.coverage(&calm)?;
        let indexed = self.indexed(&calm)?;
        let asked_calmly = log.counts();
        let tortured = self.scratch.join("tortured");
        let mut report = self.kill_again_and_again(&served, &tortured, &mut say).await?;
        say("to the end, undisturbed");
        self.finish(&served, &tortured).await?;
        self.verify(&tortured)?;
        report.verified += 1;
        let stored = self.export(&tortured)?;
        compare(&expected, &stored)?;
        if self.coverage(&tortured)? != coverage {
            return Err("what is known of the numbers differs".to_owned());
        }
        // That it holds the right pages, once each, is part of verifying.
        // A crawl that was over before the last kill was followed by another of the same pages.
        let (indexed_after, crawls) = (self.indexed(&tortured)?, self.crawls(&tortured)?);
        if indexed_after != indexed * crawls {
            return Err(format!(
                "the search index has {indexed_after} pages, not {indexed} of each of {crawls} crawls"
            ));
        }
        report.pages = stored.len();
        report.refetches = refetches(&asked_calmly, &log.counts());
        served.stop().await;
        Ok(report)
    }

    async fn kill_again_and_again(
        &self,
        served: &ServedWeb,
        dir: &Path,
        say: &mut impl FnMut(&str),
    ) -> Result<TortureReport, String> {
        let mut dice = Dice::new(self.seed);
        let mut report = TortureReport::default();
        while report.kills < self.kills {
            let mut child = self.crawl(served, dir)?;
            tokio::time::sleep(Duration::from_millis(1 + dice.below(self.life_ms_max))).await;
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                say(&format!("it finished ({status}) after {} kills", report.kills));
                return if status.success() {
                    Ok(report)
                } else {
                    Err(format!("it ended: {status}"))
                };
            }
            child.kill().map_err(|error| error.to_string())?;
            child.wait().map_err(|error| error.to_string())?;
            report.kills += 1;
            // Killed before it made its directory, there is nothing to verify yet.
            if dir.join("telusur.version").exists() {
                self.verify(dir)
                    .map_err(|error| format!("after kill {}: {error}", report.kills))?;
                report.verified += 1;
            }
            if report.kills.is_multiple_of(10) {
                say(&format!("{} kills", report.kills));
            }
        }
        Ok(report)
    }

    /// The same command every time: after a kill it goes on by itself.
    fn crawl(&self, served: &ServedWeb, dir: &Path) -> Result<Child, String> {
        let workers = self.workers.to_string();
        let web = served.web();
        let flags = [
            "--delay",
            "0s",
            "--per-host",
            match self.along {
                Along::Links => "4",
                Along::Numbers => "16",
            },
            "--workers",
            &workers,
            "--scope",
            "any",
            "--fairness",
            "weighted",
            "--depth",
            "1000",
            "--max-per-host",
            "10m",
            "--max-per-site",
            "10m",
            "--min-free-disk",
            "0B",
            "--allow-private",
            "127.0.0.0/8",
        ];
        let start: Vec<String> = match self.along {
            Along::Links => web.seeds().into_iter().map(|seed| seed.to_string()).collect(),
            Along::Numbers => {
                let hosts = (0..web.spec().hosts).map(|host| web.host_name(host));
                let pages = web.pages_total() / web.spec().hosts as u64;
                let ids = format!("--start {} --min 0 --max {} --rate desc=2", pages / 2, pages);
                let again = "--attempts 2 --cooldown 100ms";
                let flags = ids.split(' ').chain(again.split(' ')).map(str::to_owned);
                flags.chain(hosts.map(|host| format!("http://{host}/item/{{id}}"))).collect()
            }
        };
        let command = match self.along {
            Along::Links => "crawl",
            Along::Numbers => "linear",
        };
        self.program(dir)
            .arg(command)
            .args(flags)
            .args(start)
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("start {}: {error}", self.program.display()))
    }

    async fn finish(&self, served: &ServedWeb, dir: &Path) -> Result<(), String> {
        let mut child = self.crawl(served, dir)?;
        let ended = tokio::task::spawn_blocking(move || child.wait()).await;
        match ended.map_err(|error| error.to_string())?.map_err(|error| error.to_string())? {
            status if status.success() => Ok(()),
            status => Err(format!("the crawl ended: {status}")),
        }
    }

    fn verify(&self, dir: &Path) -> Result<(), String> {
        let output = self.program(dir).arg("verify").output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let told = String::from_utf8_lossy(&output.stdout);
        Err(format!("verify: {}\n{told}{}", output.status, String::from_utf8_lossy(&output.stderr)))
    }

    /// The export by URL, each line without what differs from run to run.
    fn export(&self, dir: &Path) -> Result<BTreeMap<String, String>, String> {
        let output = self
            .program(dir)
            .args(["export", "last", "-o", "-"])
            .output()
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("export: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let mut lines = BTreeMap::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let mut line: serde_json::Value =
                serde_json::from_str(line).map_err(|error| format!("{error} in {line}"))?;
            let url = line["url"].as_str().unwrap_or_default().to_owned();
            // Which page led here first, and how fast, is a matter of timing.
            for field in ["fetched_at", "took_ms", "referrer", "depth", "attempts"] {
                line[field] = serde_json::Value::Null;
            }
            if lines.insert(url.clone(), line.to_string()).is_some() {
                return Err(format!("{url} was exported twice"));
            }
        }
        Ok(lines)
    }

    /// What is known of the numbers; nothing of a crawl along links.
    fn coverage(&self, dir: &Path) -> Result<String, String> {
        if self.along == Along::Links {
            return Ok(String::new());
        }
        let output = self
            .program(dir)
            .args(["coverage", "last", "--json"])
            .output()
            .map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!("coverage: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// How many pages a search can find.
    fn indexed(&self, dir: &Path) -> Result<u64, String> {
        let status = self.json(dir, &["index", "status", "--json"])?;
        status["documents"].as_u64().ok_or_else(|| format!("index status: {status}"))
    }

    /// How many crawls there are.
    fn crawls(&self, dir: &Path) -> Result<u64, String> {
        let crawls = self.json(dir, &["ls", "--json"])?;
        crawls.as_array().map(|crawls| crawls.len() as u64).ok_or_else(|| format!("ls: {crawls}"))
    }

    fn json(&self, dir: &Path, arguments: &[&str]) -> Result<serde_json::Value, String> {
        let output = self.program(dir).args(arguments).output();
        let output = output.map_err(|error| error.to_string())?;
        serde_json::from_slice(&output.stdout).map_err(|error| format!("{arguments:?}: {error}"))
    }

    fn program(&self, dir: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["--no-config", "--quiet", "--data"]).arg(dir).stdin(Stdio::null());
        command
    }
}

fn compare(
    expected: &BTreeMap<String, String>,
    stored: &BTreeMap<String, String>,
) -> Result<(), String> {
    if let Some(url) = expected.keys().find(|url| !stored.contains_key(*url)) {
        return Err(format!("{url} is lost ({} of {} pages)", stored.len(), expected.len()));
    }
    if let Some(url) = stored.keys().find(|url| !expected.contains_key(*url)) {
        return Err(format!("{url} should not be there"));
    }
    match expected.iter().find(|(url, line)| stored[*url] != **line) {
        Some((url, line)) => Err(format!("{url} differs:\n{line}\n{}", stored[url])),
        None => Ok(()),
    }
}

/// Requests beyond the first of the tortured crawl: everything that was asked, less the calm crawl,
/// less one per URL.
fn refetches(calmly: &HashMap<String, usize>, in_all: &HashMap<String, usize>) -> usize {
    let of_torture = |url: &String, times: usize| times - calmly.get(url).copied().unwrap_or(0);
    in_all.iter().map(|(url, times)| of_torture(url, *times).saturating_sub(1)).sum()
}
