//! Cuts removals of crawls short, at any moment and in any process, and checks after the next
//! command that a crawl is all there or gone: from lists, searches, rows and bodies.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Torture;
use crate::fake_web::FakeWeb;
use crate::random::Dice;
use crate::server::serve;

/// Documents of the large collection. Its removal takes several commits.
const DOCUMENTS: u64 = 4_000;
/// Documents of the collection that stays.
const KEPT_DOCUMENTS: u64 = 20;
/// How often a process that should come up is looked for.
const LOOK_PAUSE: Duration = Duration::from_millis(5);
/// Commands that may come next. All of them only look.
const NEXT: [&[&str]; 5] =
    [&["ls"], &["search", "durian"], &["verify"], &["show", "crawl_3"], &["index", "status"]];

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovalReport {
    /// Removals that were cut short.
    pub cuts: u32,
    /// Removals that were over before they could be cut.
    pub whole: u32,
    /// Commands after a cut that were cut short as well.
    pub second_cuts: u32,
    /// Crawls that were gone afterwards.
    pub gone: u32,
    /// Crawls that were all there afterwards.
    pub kept: u32,
}

/// A crawl of the directory that removals are cut in.
struct Stored {
    alias: &'static str,
    /// A query that finds its pages and no other crawl's.
    query: &'static str,
    documents: u64,
}

/// Who removes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Remover {
    /// `telusur rm`, which owns the directory.
    Command,
    /// A service, told by `telusur rm`.
    Service,
}

struct Removing<'a> {
    torture: &'a Torture,
    /// The directory as it is before a removal.
    whole: PathBuf,
    /// The copy that is worked on.
    dir: PathBuf,
    crawls: Vec<Stored>,
    /// How long an undisturbed removal takes.
    removal_ms: u64,
    dice: Dice,
    report: RemovalReport,
}

impl Torture {
    /// Runs it: `kills` removals are cut. `say` hears what is going on. The error says what was broken.
    pub async fn run_removing(&self, mut say: impl FnMut(&str)) -> Result<RemovalReport, String> {
        let web = FakeWeb::new(self.web.clone()).map_err(|error| error.to_string())?;
        let served = serve(&web, None).await.map_err(|error| error.to_string())?;
        let whole = self.scratch.join("whole");
        self.finish(&served, &whole).await?;
        served.stop().await;
        self.import(&whole, "rambutan", DOCUMENTS)?;
        self.import(&whole, "durian", KEPT_DOCUMENTS)?;
        let total = self.indexed(&whole)?;
        let crawled = total - DOCUMENTS - KEPT_DOCUMENTS;
        let mut removing = Removing {
            torture: self,
            whole,
            dir: self.scratch.join("cut"),
            crawls: vec![
                Stored { alias: "crawl_1", query: "crawl:crawl_1", documents: crawled },
                Stored { alias: "crawl_2", query: "rambutan", documents: DOCUMENTS },
                Stored { alias: "crawl_3", query: "durian", documents: KEPT_DOCUMENTS },
            ],
            removal_ms: 0,
            dice: Dice::new(self.seed),
            report: RemovalReport::default(),
        };
        removing.measure()?;
        say(&format!("a removal takes {} ms", removing.removal_ms));
        while removing.report.cuts < self.kills {
            removing.cut().await.map_err(|broken| {
                format!("cut {} of seed {}: {broken}", removing.report.cuts, self.seed)
            })?;
            if removing.report.cuts.is_multiple_of(10) {
                say(&format!("{:?}", removing.report));
            }
        }
        Ok(removing.report)
    }

    /// A collection with a word that no other has.
    fn import(&self, dir: &Path, word: &str, documents: u64) -> Result<(), String> {
        let line = |number| {
            format!(
                "{{\"id\":\"{word}-{number}\",\"title\":\"Number {number}\",\"text\":\"{word} {number}\"}}\n"
            )
        };
        let file = self.scratch.join(format!("{word}.jsonl"));
        let lines: String = (0..documents).map(line).collect();
        std::fs::write(&file, lines).map_err(|error| error.to_string())?;
        let mut import = self.program(dir);
        ended_well(import.args(["import", "--name", word]).arg(file))
    }
}

impl Removing<'_> {
    /// Removes the large collection once, undisturbed.
    fn measure(&mut self) -> Result<(), String> {
        self.copy()?;
        let since = Instant::now();
        ended_well(self.program().args(["rm", "--yes", "crawl_2"]))?;
        self.removal_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.check(&["crawl_2"])
    }

    /// Cuts one removal, or two that run at once, and looks what is left.
    async fn cut(&mut self) -> Result<(), String> {
        self.copy()?;
        if self.dice.chance(0.1) {
            // A missing index is rebuilt from the store, also after a removal that was cut short.
            std::fs::remove_dir_all(self.dir.join("index")).map_err(|error| error.to_string())?;
        }
        let remover = match self.dice.chance(0.25) {
            true => Remover::Service,
            false => Remover::Command,
        };
        let removed: &[&str] = match self.dice.below(4) {
            0 => &["crawl_1"],
            1 if remover == Remover::Service => &["crawl_1", "crawl_2"],
            _ => &["crawl_2"],
        };
        let mut service = match remover {
            Remover::Command => None,
            Remover::Service => Some(self.start_service().await?),
        };
        let orders: Result<Vec<Child>, String> = removed
            .iter()
            .map(|crawl| spawn(self.program().args(["rm", "--yes", crawl])))
            .collect();
        let mut orders = orders?;
        let ms = self.dice.below(self.removal_ms * 5 / 4 + 1);
        tokio::time::sleep(Duration::from_millis(ms)).await;
        let mut was_cut = false;
        for child in service.iter_mut().chain(&mut orders) {
            was_cut |= self.end(child)?;
        }
        match was_cut {
            true => self.report.cuts += 1,
            false => self.report.whole += 1,
        }
        self.next().await?;
        self.check(removed)
    }

    /// Any command comes next, and may be cut short as well.
    async fn next(&mut self) -> Result<(), String> {
        if self.dice.chance(0.3) {
            let next = NEXT[self.dice.index(NEXT.len())];
            let mut child = spawn(self.program().args(next))?;
            let ms = self.dice.below(self.removal_ms + 1);
            tokio::time::sleep(Duration::from_millis(ms)).await;
            self.report.second_cuts += u32::from(self.end(&mut child)?);
        }
        let next = NEXT[self.dice.index(NEXT.len())];
        ended_well(self.program().args(next))
    }

    /// What is listed is all there; of the rest there is nothing.
    fn check(&mut self, removed: &[&str]) -> Result<(), String> {
        let listed = self.torture.json(&self.dir, &["ls", "--json"])?;
        let listed = listed.as_array().ok_or_else(|| format!("ls: {listed}"))?;
        let pages = |alias: &str| {
            let crawl = listed.iter().find(|crawl| crawl["alias"] == alias)?;
            crawl["stats"]["ok"].as_u64()
        };
        let mut documents = 0;
        for Stored { alias, query, documents: expected } in &self.crawls {
            let found = self.found(query)?;
            match pages(alias) {
                Some(pages) if pages == *expected && found == *expected => documents += expected,
                None if removed.contains(alias) && found == 0 => {}
                pages => {
                    return Err(format!(
                        "{alias} has {pages:?} pages, {found} of {expected} found"
                    ));
                }
            }
            let is_there = pages(alias).is_some();
            let bodies = self.dir.join("bodies").join(alias);
            if bodies.exists() != is_there || bodies.with_extension("removed").exists() {
                return Err(format!("bodies of {alias}, and it is listed: {is_there}"));
            }
            if removed.contains(alias) {
                self.report.gone += u32::from(!is_there);
                self.report.kept += u32::from(is_there);
            }
        }
        let indexed = self.torture.indexed(&self.dir)?;
        if indexed != documents {
            return Err(format!("the index has {indexed} documents instead of {documents}"));
        }
        self.torture.verify(&self.dir)?;
        let verified = self.torture.json(&self.dir, &["verify", "--json"])?.to_string();
        match verified.contains("is being removed") {
            true => Err(format!("a removal is not over: {verified}")),
            false => Ok(()),
        }
    }

    /// How many pages a search finds.
    fn found(&self, text: &str) -> Result<u64, String> {
        let found = self.torture.json(&self.dir, &["search", text, "--limit", "1", "--json"])?;
        found["estimated_total"].as_u64().ok_or_else(|| format!("search {text}: {found}"))
    }

    /// Kills a process, or interrupts it and waits for its end. True if it still ran.
    fn end(&mut self, child: &mut Child) -> Result<bool, String> {
        if child.try_wait().map_err(|error| error.to_string())?.is_some() {
            return Ok(false);
        }
        match self.dice.chance(0.5) {
            true => child.kill().map_err(|error| error.to_string())?,
            false => {
                let pid = child.id().to_string();
                ended_well(Command::new("kill").args(["-s", "INT", &pid]))?;
            }
        }
        child.wait().map_err(|error| error.to_string())?;
        Ok(true)
    }

    /// A service that answers other terminals.
    async fn start_service(&self) -> Result<Child, String> {
        let mut service = self.program();
        let flags = ["serve", "--listen", "127.0.0.1:0", "--min-free-disk", "0B"];
        let mut service = spawn(service.args(flags))?;
        while std::os::unix::net::UnixStream::connect(self.dir.join("control.sock")).is_err() {
            if let Some(status) = service.try_wait().map_err(|error| error.to_string())? {
                return Err(format!("the service ended: {status}"));
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        Ok(service)
    }

    fn copy(&self) -> Result<(), String> {
        let copied = remove_if_there(&self.dir).and_then(|()| copy_dir(&self.whole, &self.dir));
        copied.map_err(|error| format!("copy the directory: {error}"))
    }

    fn program(&self) -> Command {
        self.torture.program(&self.dir)
    }
}

fn spawn(command: &mut Command) -> Result<Child, String> {
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(|error| format!("start {command:?}: {error}"))
}

fn ended_well(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("start {command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{command:?}: {}: {said}", output.status))
        }
    }
}

fn remove_if_there(dir: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn copy_dir(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_dir(&entry.path(), &to)?;
        } else if kind.is_file() {
            std::fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
