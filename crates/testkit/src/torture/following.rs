//! Kills processes that write or follow a data directory, again and again, while crawls are removed, replaced
//! and read again, and checks that every page is in the search index exactly once.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::Torture;
use crate::fake_web::FakeWeb;
use crate::random::Dice;
use crate::server::{ServedWeb, serve};

/// Kills between two checks of everything.
const CHECK_EVERY: u32 = 20;
/// Crawls beyond this number are removed: what is checked stays small.
const CRAWLS_MAX: usize = 6;
/// Documents of an import, each time with other texts.
const DOCUMENTS: u64 = 40;

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowReport {
    /// Kills of a process that wrote the directory: a crawl, an import, a removal or a reparse.
    pub kills: u32,
    /// Kills of the process that had the index.
    pub indexer_kills: u32,
    /// Removals that were asked for.
    pub removals: u32,
    /// Reparses that were asked for.
    pub reparses: u32,
    /// Imports that were begun.
    pub imports: u32,
    /// Times that every promise was checked.
    pub verified: u32,
    /// Documents in the index at the end.
    pub documents: u64,
}

/// Processes at work on one directory.
struct Processes<'a> {
    torture: &'a Torture,
    dir: &'a Path,
    served: &'a ServedWeb,
    dice: Dice,
    indexer: Option<Child>,
    /// Aliases of crawls that were there at the last check.
    crawls: Vec<String>,
    report: FollowReport,
}

impl Torture {
    /// Runs it. `say` hears what is going on. The error says what was broken.
    pub async fn run_following(&self, mut say: impl FnMut(&str)) -> Result<FollowReport, String> {
        let web = FakeWeb::new(self.web.clone()).map_err(|error| error.to_string())?;
        let served = serve(&web, None).await.map_err(|error| error.to_string())?;
        let dir = self.scratch.join("followed");
        let mut processes = Processes {
            torture: self,
            dir: &dir,
            served: &served,
            dice: Dice::new(self.seed),
            indexer: None,
            crawls: Vec::new(),
            report: FollowReport::default(),
        };
        let ended = processes.torment(&mut say).await;
        // No process is left behind, also after a failure.
        let killed = processes.kill_indexer();
        let report = processes.report;
        served.stop().await;
        ended.and(killed).map(|()| report)
    }
}

impl Processes<'_> {
    async fn torment(&mut self, say: &mut impl FnMut(&str)) -> Result<(), String> {
        let mut checked = 0;
        while self.report.kills < self.torture.kills {
            self.live_and_die().await?;
            let kills = self.report.kills;
            if kills >= checked + CHECK_EVERY {
                checked = kills;
                self.check().map_err(|error| format!("after kill {kills}: {error}"))?;
                say(&format!("{kills} kills, {} of the indexer", self.report.indexer_kills));
            }
        }
        say("to the end, undisturbed");
        self.torture.finish(self.served, self.dir).await?;
        self.check()?;
        self.report.documents = self.torture.indexed(self.dir)?;
        Ok(())
    }

    /// One life of an owner, with an indexer beside it and perhaps an order meanwhile.
    async fn live_and_die(&mut self) -> Result<(), String> {
        self.start_indexer()?;
        let mut owner = match self.dice.below(4) {
            0 => self.import()?,
            _ => self.torture.crawl(self.served, self.dir)?,
        };
        self.wait().await;
        let mut order = self.order()?;
        let indexer_dies = self.dice.chance(0.5);
        if indexer_dies && self.dice.chance(0.5) {
            self.wait().await;
            self.kill_indexer()?;
        }
        self.wait().await;
        self.report.kills += u32::from(kill(&mut owner, Ends::Well)?);
        if let Some(order) = &mut order {
            // A crawl that runs, or is gone, is refused.
            self.report.kills += u32::from(kill(order, Ends::Anyhow)?);
        }
        if indexer_dies {
            self.kill_indexer()?;
        }
        Ok(())
    }

    async fn wait(&mut self) {
        let ms = 1 + self.dice.below(self.torture.life_ms_max);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    fn start_indexer(&mut self) -> Result<(), String> {
        if let Some(indexer) = &mut self.indexer {
            let ended = indexer.try_wait().map_err(|error| error.to_string())?;
            return ended.map_or(Ok(()), |status| Err(format!("the indexer ended: {status}")));
        }
        self.indexer = Some(self.spawn(&["index", "--follow"])?);
        Ok(())
    }

    fn kill_indexer(&mut self) -> Result<(), String> {
        if let Some(mut indexer) = self.indexer.take() {
            self.report.indexer_kills += u32::from(kill(&mut indexer, Ends::Never)?);
        }
        Ok(())
    }

    /// Begins to replace the documents of a collection.
    fn import(&mut self) -> Result<Child, String> {
        self.report.imports += 1;
        let version = self.dice.bits();
        let line = |number: u64| {
            format!(
                "{{\"id\":\"{number}\",\"title\":\"Document {number}\",\"text\":\"Version {version}, number {number}\"}}\n"
            )
        };
        let first = self.dice.below(DOCUMENTS);
        let lines: String = (first..first + DOCUMENTS).map(line).collect();
        let file = self.torture.scratch.join("documents.jsonl");
        std::fs::write(&file, lines).map_err(|error| error.to_string())?;
        let file = file.to_string_lossy().into_owned();
        self.spawn(&["import", "--name", "documents", &file])
    }

    /// Begins to remove a crawl, or to read one again, or nothing.
    fn order(&mut self) -> Result<Option<Child>, String> {
        if self.crawls.is_empty() {
            return Ok(None);
        }
        let crawl = self.crawls[self.dice.index(self.crawls.len())].clone();
        let is_crowded = self.crawls.len() > CRAWLS_MAX;
        match self.dice.below(if is_crowded { 2 } else { 6 }) {
            0 => {
                self.crawls.retain(|other| *other != crawl);
                self.report.removals += 1;
                self.spawn(&["rm", "--yes", &crawl]).map(Some)
            }
            1 => {
                self.report.reparses += 1;
                self.spawn(&["reparse", &crawl]).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Checks every promise, first on the directory as the kill left it, then with an index that has caught
    /// up.
    fn check(&mut self) -> Result<(), String> {
        self.kill_indexer()?;
        if !self.dir.join("telusur.version").exists() {
            return Ok(());
        }
        self.torture.verify(self.dir)?;
        let indexed = self.torture.indexed(self.dir)?;
        self.torture.verify(self.dir)?;
        let crawls = self.torture.json(self.dir, &["ls", "--json"])?;
        let crawls = crawls.as_array().ok_or_else(|| format!("ls: {crawls}"))?;
        let stored: u64 = crawls.iter().filter_map(|crawl| crawl["stats"]["ok"].as_u64()).sum();
        if indexed != stored {
            return Err(format!("the search index has {indexed} pages, the store {stored}"));
        }
        let aliases = crawls.iter().filter_map(|crawl| crawl["alias"].as_str());
        self.crawls = aliases.map(str::to_owned).collect();
        self.report.verified += 2;
        Ok(())
    }

    fn spawn(&self, arguments: &[&str]) -> Result<Child, String> {
        let said = self.torture.scratch.join(format!("said-by-{}.txt", arguments[0]));
        let said = File::options().create(true).append(true).open(said);
        let said = said.map_err(|error| error.to_string())?;
        let mut command = self.torture.program(self.dir);
        let command = command.args(arguments).stdout(Stdio::null()).stderr(said);
        command.spawn().map_err(|error| format!("start {arguments:?}: {error}"))
    }
}

/// How a process may end by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// When its work is done.
    Well,
    /// Also if it is refused.
    Anyhow,
    /// Not at all.
    Never,
}

/// Kills a process that still runs. True if it did.
fn kill(child: &mut Child, may_end: Ends) -> Result<bool, String> {
    if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
        return match may_end {
            Ends::Anyhow => Ok(false),
            Ends::Well if status.success() => Ok(false),
            Ends::Well => Err(format!("a crawl or an import ended: {status}")),
            Ends::Never => Err(format!("the indexer ended: {status}")),
        };
    }
    child.kill().map_err(|error| error.to_string())?;
    child.wait().map_err(|error| error.to_string())?;
    Ok(true)
}
