//! Kills crawls, deletes their `state/`, and recovers it from the bodies, with recoveries that are cut short as
//! well; and copies the directory of a running crawl. The recovered crawl is finished and compared with
//! an undisturbed crawl.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::{Torture, compare};
use crate::fake_web::FakeWeb;
use crate::random::Dice;
use crate::server::{ServedWeb, serve};

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoverReport {
    /// Directories whose state was deleted and recovered.
    pub recovered: u32,
    /// Recoveries that were killed.
    pub cut: u32,
    /// Copies of a running directory.
    pub copies: u32,
    /// Those of them that `rsync -a` made.
    pub copies_by_rsync: u32,
    /// Those whose files were of different moments: their state was rebuilt when they were opened.
    pub copies_rebuilt: u32,
    /// Pages that had been acknowledged, over all directories whose state was deleted.
    pub acknowledged: usize,
}

/// One run.
struct Run<'a> {
    torture: &'a Torture,
    served: &'a ServedWeb,
    expected: BTreeMap<String, String>,
    dice: Dice,
    report: RecoverReport,
}

impl Torture {
    /// Deletes the state of `kills` directories, and copies as many that are in use. `say` hears what is going
    /// on. The error says what was broken.
    pub async fn run_recovering(&self, mut say: impl FnMut(&str)) -> Result<RecoverReport, String> {
        let web = FakeWeb::new(self.web.clone()).map_err(|error| error.to_string())?;
        let served = serve(&web, None).await.map_err(|error| error.to_string())?;
        let calm = self.scratch.join("calm");
        say("an undisturbed crawl, to compare with");
        self.finish(&served, &calm).await?;
        let mut run = Run {
            torture: self,
            served: &served,
            expected: self.export(&calm)?,
            dice: Dice::new(self.seed),
            report: RecoverReport::default(),
        };
        for round in 1..=self.kills {
            let named = |error| format!("round {round}: {error}");
            run.lose_state(&self.scratch.join(format!("lost-{round}"))).await.map_err(named)?;
            for way in [CopyWay::Rsync, CopyWay::AnyOrder] {
                let live = self.scratch.join(format!("live-{round}"));
                while !run.copy_live(&live, way).await.map_err(named)? {}
            }
            if round.is_multiple_of(5) {
                say(&format!("{round} directories recovered and copied"));
            }
        }
        let report = run.report;
        served.stop().await;
        Ok(report)
    }

    fn output(&self, dir: &Path, arguments: &[&str]) -> Result<Output, String> {
        self.program(dir).args(arguments).output().map_err(|error| error.to_string())
    }
}

impl Run<'_> {
    async fn lose_state(&mut self, dir: &Path) -> Result<(), String> {
        for _life in 0..=self.dice.below(2) {
            self.live_and_die(dir).await?;
        }
        if !dir.join("telusur.version").exists() {
            return Ok(());
        }
        let copy = beside(dir, "copy");
        copy_dir(dir, &copy, &mut self.dice).map_err(|error| error.to_string())?;
        let acknowledged = match self.torture.crawls(&copy)? {
            0 => BTreeMap::new(),
            _ => self.torture.export(&copy)?,
        };
        fs::remove_dir_all(dir.join("state")).map_err(|error| error.to_string())?;
        let recovered = beside(dir, "recovered");
        self.recover(dir).await?;
        self.report.recovered += 1;
        self.report.acknowledged += acknowledged.len();
        self.torture.verify(&recovered).map_err(|error| format!("recovered: {error}"))?;
        if !acknowledged.is_empty() {
            let stored = self.torture.export(&recovered)?;
            let lost = acknowledged.iter().find(|(url, line)| stored.get(*url) != Some(line));
            if let Some((url, line)) = lost {
                return Err(format!("{url} was acknowledged:\n{line}\n{:?}", stored.get(url)));
            }
        }
        self.finish_and_compare(&recovered).await?;
        for done in [dir, &copy, &recovered] {
            fs::remove_dir_all(done).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    async fn live_and_die(&mut self, dir: &Path) -> Result<(), String> {
        let mut child = self.torture.crawl(self.served, dir)?;
        self.wait().await;
        child.kill().map_err(|error| error.to_string())?;
        child.wait().map_err(|error| error.to_string()).map(drop)
    }

    async fn wait(&mut self) {
        let ms = 1 + self.dice.below(self.torture.life_ms_max);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// Recovers a directory into one beside it. The first attempts are killed.
    async fn recover(&mut self, dir: &Path) -> Result<(), String> {
        for _cut in 0..=self.dice.below(3) {
            let mut child = self.torture.program(dir);
            child.arg("recover").stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = child.spawn().map_err(|error| error.to_string())?;
            let ms = self.dice.below(60);
            tokio::time::sleep(Duration::from_millis(ms)).await;
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                let failed = format!("recover: {status}");
                return if status.success() { Ok(()) } else { Err(failed) };
            }
            child.kill().map_err(|error| error.to_string())?;
            child.wait().map_err(|error| error.to_string())?;
            self.report.cut += 1;
            if beside(dir, "recovered").join("telusur.version").exists() {
                // It was done before it died.
                return Ok(());
            }
        }
        let output = self.torture.output(dir, &["recover"])?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("recover: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// Copies the directory of a running crawl, and goes on in the copy. False if the crawl ended too early.
    async fn copy_live(&mut self, dir: &Path, way: CopyWay) -> Result<bool, String> {
        let mut child = self.torture.crawl(self.served, dir)?;
        while !dir.join("telusur.version").exists() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.wait().await;
        let copy = beside(dir, "copy");
        let copied = match way {
            CopyWay::Rsync => rsync(dir, &copy),
            CopyWay::AnyOrder => {
                copy_dir(dir, &copy, &mut self.dice).map_err(|error| error.to_string())
            }
        };
        let ended = child.try_wait().map_err(|error| error.to_string())?;
        child.kill().map_err(|error| error.to_string())?;
        child.wait().map_err(|error| error.to_string())?;
        copied?;
        if ended.is_some() {
            // Closed while it was copied: that is another promise.
            for done in [dir, &copy] {
                fs::remove_dir_all(done).map_err(|error| error.to_string())?;
            }
            return Ok(false);
        }
        self.report.copies += 1;
        self.report.copies_by_rsync += u32::from(way == CopyWay::Rsync);
        // It opens, and nothing in it points at something that is not there.
        let verify = self.torture.output(&copy, &["verify"])?;
        let told = String::from_utf8_lossy(&verify.stderr);
        if !verify.status.success() {
            let found = String::from_utf8_lossy(&verify.stdout);
            return Err(format!("a copy ({way:?}): {told}{found}"));
        }
        self.report.copies_rebuilt += u32::from(told.contains("the state was rebuilt"));
        // Killed before the crawl was accepted, there is nothing to check.
        if self.torture.crawls(&copy)? > 0 {
            self.finish_and_compare(&copy).await?;
        }
        for done in [dir, &copy] {
            fs::remove_dir_all(done).map_err(|error| error.to_string())?;
        }
        Ok(true)
    }

    async fn finish_and_compare(&self, dir: &Path) -> Result<(), String> {
        self.torture.finish(self.served, dir).await?;
        self.torture.verify(dir).map_err(|error| format!("finished: {error}"))?;
        compare(&self.expected, &self.torture.export(dir)?)
    }
}

/// How a directory is copied that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyWay {
    Rsync,
    /// File by file in any order, so that each file is older or newer than the rest at some time.
    AnyOrder,
}

fn rsync(from: &Path, to: &Path) -> Result<(), String> {
    /// Some files vanished meanwhile.
    const VANISHED: i32 = 24;
    let mut contents = from.as_os_str().to_owned();
    contents.push("/");
    let ended =
        Command::new("rsync").arg("-a").arg(contents).arg(to).stderr(Stdio::null()).status();
    match ended.map_err(|error| format!("rsync, which this needs: {error}"))?.code() {
        Some(0 | VANISHED) => Ok(()),
        code => Err(format!("rsync: {code:?}")),
    }
}

/// A directory beside another one.
fn beside(dir: &Path, word: &str) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(".");
    name.push(word);
    name.into()
}

/// Copies a directory file by file, in any order, while others write to it.
fn copy_dir(from: &Path, to: &Path, dice: &mut Dice) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    let mut entries: Vec<_> = fs::read_dir(from)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for last in (1..entries.len()).rev() {
        entries.swap(last, usize::try_from(dice.below(last as u64 + 1)).unwrap_or(0));
    }
    for entry in entries {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let copied = match entry.file_type()? {
            kind if kind.is_dir() => copy_dir(&path, &target, dice),
            kind if kind.is_file() => fs::copy(&path, &target).map(drop),
            // Sockets are not copied.
            _ => Ok(()),
        };
        match copied {
            // It was deleted meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            copied => copied?,
        }
    }
    Ok(())
}
