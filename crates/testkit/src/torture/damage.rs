//! The damage harness: copies a data directory again and again, damages one file of each copy, and checks
//! that the damage has no effect or is named, that nothing wrong is told, and nothing whole is destroyed.

mod asking;
mod files;
mod making;
mod wound;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

pub use self::files::FileKind;
pub use self::wound::Damage;

use self::asking::{Program, Question, Seen, Verdict, crash_of, judge_message};
use self::files::{begins_with, copy_file, files_below, newest_journal};
use self::making::{Base, FLAGS};
use self::wound::{PLACES, Wound, damage_file};
use crate::fake_web::{FakeWeb, FakeWebSpec, PageCounts};
use crate::random::Dice;
use crate::server::{ServedWeb, serve};

/// What to damage, and how often.
#[derive(Clone, Debug)]
pub struct DamageTorture {
    /// The program.
    pub program: PathBuf,
    /// An empty directory.
    pub scratch: PathBuf,
    /// How many copies are damaged.
    pub copies: usize,
    /// Decides which.
    pub seed: u64,
    /// Pages of each of the two crawls.
    pub pages: u64,
    /// Links on each page. With many of them the journals of the state are rotated.
    pub links: usize,
    /// Which files are damaged.
    pub files: DamagedFiles,
    /// Only the copy of this number.
    pub only: Option<usize>,
}

/// Which files are damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamagedFiles {
    /// Every kind.
    All,
    /// Every kind but those of the search index.
    WithoutIndex,
    /// Those of the state database. Of a large directory, about which only short questions are asked.
    OfState,
}

impl DamagedFiles {
    fn include(self, kind: FileKind) -> bool {
        match self {
            Self::All => true,
            Self::WithoutIndex => !kind.is_of_index(),
            Self::OfState => kind.is_of_state(),
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct DamageReport {
    /// Outcomes by kind of file and kind of damage.
    pub cells: BTreeMap<(FileKind, Damage), Counts>,
    /// Each copy that broke a promise.
    pub wrong: Vec<String>,
    /// Directories that the advised command mended, of those where it was run.
    pub mended: usize,
    /// Damages of which this program does not know how to follow the advice.
    pub not_mended: Vec<String>,
}

/// Outcomes of one kind of damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Every answer was the right one.
    pub without_effect: usize,
    /// The damage was named.
    pub named: usize,
    /// A promise was broken.
    pub wrong: usize,
}

/// One copy: which file, and what is done to it.
#[derive(Clone, Debug)]
struct Plan {
    base: usize,
    file: String,
    kind: FileKind,
    damage: Damage,
    place: u64,
}

/// A base with the answers about it.
struct Known {
    base: Base,
    files: Vec<String>,
    questions: Vec<Question>,
    /// What writes into the directory.
    order: Vec<String>,
    /// Where the bodies of pages are.
    bodies: Vec<BodyPlace>,
}

/// Where the body of a page begins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BodyPlace {
    /// The segment, as a path in the directory.
    file: String,
    byte: u64,
    url: String,
}

impl DamageTorture {
    /// Runs it. `say` hears what is going on. The error says why it could not be run.
    pub async fn run(&self, mut say: impl FnMut(&str)) -> Result<DamageReport, String> {
        let web = FakeWeb::new(self.web()).map_err(|error| error.to_string())?;
        let served = serve(&web, None).await.map_err(|error| error.to_string())?;
        // The web is served by this runtime meanwhile.
        let report = tokio::task::block_in_place(|| self.damage_all(&served, &mut say));
        served.stop().await;
        report
    }

    fn web(&self) -> FakeWebSpec {
        FakeWebSpec {
            seed: self.seed,
            hosts: 3,
            pages: PageCounts::Even { total: 1_000_000 },
            links_per_page: self.links,
            page_bytes: 1_500,
            ..FakeWebSpec::default()
        }
    }

    fn damage_all(
        &self,
        served: &ServedWeb,
        say: &mut impl FnMut(&str),
    ) -> Result<DamageReport, String> {
        say("making the directories");
        let mut known = Vec::new();
        for base in self.make_bases(served)? {
            known.push(self.ask_base(base, served)?);
        }
        let is_rotated = |known: &Known| newest_journal(&known.files) != "state/0.jnl";
        if self.files == DamagedFiles::OfState && !known.iter().all(is_rotated) {
            return Err("the journals were not rotated: more pages or links are needed".to_owned());
        }
        let plans = self.plans(&known);
        say(&format!("{} copies", plans.len()));
        let mut report = DamageReport::default();
        for (number, plan) in plans.iter().enumerate() {
            if self.only.is_some_and(|only| only != number) {
                continue;
            }
            let known_wrong = report.wrong.len();
            self.damage_one(&known[plan.base], plan, number, &mut report)?;
            report.wrong[known_wrong..].iter().for_each(|wrong| say(wrong));
            if (number + 1).is_multiple_of(50) {
                say(&format!("{} copies, {} wrong", number + 1, report.wrong.len()));
            }
        }
        Ok(report)
    }

    /// What is answered about the whole directory. Asked twice: what differs then says nothing.
    fn ask_base(&self, base: Base, served: &ServedWeb) -> Result<Known, String> {
        let dir = self.scratch.join("whole");
        let page = served.web().seeds()[0].to_string();
        let mut asked: Vec<&[&str]> = vec![
            &["ls", "--json"],
            &["show", "first", "--json"],
            &["show", "last", "--json"],
            &["coverage", "numbers", "--json"],
            &["search", "words", "-n", "50", "--json"],
            &["export", "first", "-o", "-", "--json"],
            &["export", "documents", "-o", "-", "--json"],
            &["key", "ls", "--json"],
            &["verify", "--json"],
        ];
        let of_page = ["page", &page, "--crawl", "first", "--json"];
        asked.insert(5, &of_page);
        if self.files == DamagedFiles::OfState {
            let is_long =
                |words: &[&str]| words[0] == "verify" || words[..2] == ["export", "first"];
            asked.retain(|words| !is_long(words));
        }
        let mut questions: Vec<Question> = Vec::new();
        for _again in 0..2 {
            base.original.copy_tree(&base.dir, &dir).map_err(|error| error.to_string())?;
            let program = Program::new(&self.program, &dir);
            let answers = asked.iter().map(|words| Question::new(&program, words));
            let answers = answers.collect::<Result<Vec<_>, _>>()?;
            if let Some(differs) = questions
                .iter()
                .zip(&answers)
                .find(|(first, second)| first.answer.stdout != second.answer.stdout)
            {
                return Err(format!("two answers to {:?}", differs.0.arguments));
            }
            questions = answers;
            fs::remove_dir_all(&dir).map_err(|error| error.to_string())?;
        }
        let files = files_below(&base.dir).map_err(|error| error.to_string())?;
        let order = order_of(&base, served);
        let bodies = match self.files {
            DamagedFiles::OfState => Vec::new(),
            DamagedFiles::All | DamagedFiles::WithoutIndex => self.find_bodies(&base, &dir)?,
        };
        Ok(Known { base, files, questions, order, bodies })
    }

    /// Where the bodies of all pages are: with empty segments every page is named as damaged.
    fn find_bodies(&self, base: &Base, dir: &Path) -> Result<Vec<BodyPlace>, String> {
        let io = |error: std::io::Error| error.to_string();
        base.original.copy_tree(&base.dir, dir).map_err(io)?;
        for file in files_below(dir).map_err(io)?.iter().filter(|file| is_segment(file)) {
            fs::write(dir.join(file), []).map_err(io)?;
        }
        let told = Program::new(&self.program, dir).expect(&REQUEUE)?;
        fs::remove_dir_all(dir).map_err(io)?;
        let mut bodies = damaged_bodies(&told)?;
        bodies.sort();
        Ok(bodies)
    }

    /// All damages in an order in which the first ones have every kind of file and of damage.
    fn plans(&self, known: &[Known]) -> Vec<Plan> {
        let mut dice = Dice::new(self.seed);
        let mut plans = Vec::new();
        for place in 0..PLACES {
            let mut round = Vec::new();
            for (base, known) in known.iter().enumerate() {
                let kinds = known.kinds(self.files);
                for (kind, files) in &kinds {
                    for damage in Damage::ALL {
                        let file = files[dice.index(files.len())].clone();
                        // Where the place does not matter another file is taken each time.
                        if damage.has_place() || (place as usize) < files.len() {
                            round.push(Plan { base, file, kind: *kind, damage, place });
                        }
                    }
                }
            }
            shuffle(&mut round, &mut dice);
            plans.extend(round);
        }
        plans.truncate(self.copies);
        plans
    }

    fn damage_one(
        &self,
        known: &Known,
        plan: &Plan,
        number: usize,
        report: &mut DamageReport,
    ) -> Result<(), String> {
        let dir = self.scratch.join(format!("copy-{number}"));
        let io = |error: std::io::Error| format!("copy {number}: {error}");
        known.base.original.copy_tree(&known.base.dir, &dir).map_err(io)?;
        let path = dir.join(&plan.file);
        let older = known.base.older.join(&plan.file);
        let wound = damage_file(&path, &older, plan.damage, plan.place).map_err(io)?;
        let counts = report.cells.entry((plan.kind, plan.damage)).or_default();
        if let Some(wound) = wound {
            let wounded = self.scratch.join("wounded");
            match path.exists() {
                true => copy_file(&path, &wounded).map_err(io)?,
                false => drop(fs::remove_file(&wounded)),
            }
            let copy = Copy { torture: self, known, plan, dir: &dir, wounded: &wounded };
            match copy.examine()? {
                Outcome::WithoutEffect => counts.without_effect += 1,
                Outcome::Named(help) => {
                    counts.named += 1;
                    match copy.follow(&help, wound)? {
                        Followed::Mended => report.mended += 1,
                        Followed::NotThere(why) => {
                            report.not_mended.push(plan.told(number, known, wound, &why));
                        }
                        Followed::Wrong(why) => {
                            counts.wrong += 1;
                            report.wrong.push(plan.told(number, known, wound, &why));
                        }
                    }
                }
                Outcome::Wrong(why) => {
                    counts.wrong += 1;
                    report.wrong.push(plan.told(number, known, wound, &why));
                }
            }
        } else {
            counts.without_effect += 1;
        }
        if self.only.is_some() {
            return Ok(());
        }
        fs::remove_dir_all(&dir).map_err(io)
    }
}

/// Fetches, and writes: goes on with the crawl that was killed, or begins another.
fn order_of(base: &Base, served: &ServedWeb) -> Vec<String> {
    let seed = served.web().seeds()[1].to_string();
    let words: Vec<&str> = if base.is_killed {
        vec!["resume", "killed", "--max-pages", "60", "--json"]
    } else {
        let crawl = ["crawl", "--name", "after", "--max-pages", "3", "--json", &seed];
        [&crawl[..], &FLAGS].concat()
    };
    words.into_iter().map(str::to_owned).collect()
}

fn shuffle<T>(items: &mut [T], dice: &mut Dice) {
    for index in (1..items.len()).rev() {
        items.swap(index, dice.index(index + 1));
    }
}

impl Known {
    /// The files of each kind.
    fn kinds(&self, damaged: DamagedFiles) -> BTreeMap<FileKind, Vec<String>> {
        let newest = newest_journal(&self.files);
        let mut kinds: BTreeMap<FileKind, Vec<String>> = BTreeMap::new();
        for file in &self.files {
            let kind = FileKind::of(file, &newest);
            if damaged.include(kind) {
                kinds.entry(kind).or_default().push(file.clone());
            }
        }
        kinds
    }
}

impl Plan {
    fn told(&self, number: usize, known: &Known, wound: Wound, why: &str) -> String {
        let Self { file, damage, .. } = self;
        let Wound { from, to } = wound;
        format!(
            "copy {number} ({}): {file}, {}, bytes {from}..{to}: {why}",
            known.base.name,
            damage.name()
        )
    }
}

/// Takes damaged pages out, and names each with its place.
const REQUEUE: [&str; 3] = ["verify", "--requeue", "--json"];

enum Outcome {
    WithoutEffect,
    /// With everything that was told.
    Named(String),
    Wrong(String),
}

/// What came of the command that was advised.
enum Followed {
    Mended,
    /// What was advised instead of a command that is known here.
    NotThere(String),
    Wrong(String),
}

/// A damaged copy.
struct Copy<'a> {
    torture: &'a DamageTorture,
    known: &'a Known,
    plan: &'a Plan,
    dir: &'a Path,
    /// The damaged file as it was before the first command; missing if it is gone.
    wounded: &'a Path,
}

impl Copy<'_> {
    fn program(&self) -> Program {
        Program::new(&self.torture.program, self.dir)
    }

    /// Asks everything, and then writes.
    fn examine(&self) -> Result<Outcome, String> {
        let (program, file) = (self.program(), &self.plan.file);
        let mut told = String::new();
        for question in &self.known.questions {
            let (verdict, seen) = question.ask(&program, file)?;
            match verdict {
                Verdict::Same => {}
                Verdict::Named => told += &format!("{}{}", seen.stderr, seen.stdout),
                Verdict::Wrong(why) => {
                    return Ok(Outcome::Wrong(format!("{}: {why}", question.words().join(" "))));
                }
            }
        }
        if let Some(lost) = self.destroyed(!told.is_empty()).map_err(|error| error.to_string())? {
            return Ok(Outcome::Wrong(format!("looking changed {lost}")));
        }
        let order: Vec<&str> = self.known.order.iter().map(String::as_str).collect();
        let seen = program.run(&order)?;
        if let Some(why) = self.judge_order(&seen) {
            return Ok(Outcome::Wrong(format!("{}: {why}", order[0])));
        }
        if let Some(lost) = self.destroyed(false).map_err(|error| error.to_string())? {
            return Ok(Outcome::Wrong(format!("{} destroyed {lost}", order[0])));
        }
        if seen.code != Some(0) {
            told += &seen.stderr;
        }
        Ok(if told.is_empty() { Outcome::WithoutEffect } else { Outcome::Named(told) })
    }

    fn judge_order(&self, seen: &Seen) -> Option<String> {
        if let Some(why) = crash_of(seen) {
            return Some(why);
        }
        match seen.code {
            Some(0) => None,
            _ => match judge_message(seen, &self.plan.file, true) {
                Verdict::Wrong(why) => Some(why),
                Verdict::Same | Verdict::Named => None,
            },
        }
    }

    /// A file whose bytes are not there any more. `is_refused`: nothing may have changed at all.
    fn destroyed(&self, is_refused: bool) -> std::io::Result<Option<String>> {
        let is_strict = is_refused && self.is_refused();
        for file in &self.known.files {
            let is_damaged = *file == self.plan.file;
            let before =
                if is_damaged { self.wounded.to_owned() } else { self.known.base.dir.join(file) };
            // Settings are replaced when a crawl goes on.
            let is_stored = file.starts_with("bodies/") && !file.ends_with("/crawl.json");
            let is_kept = is_stored || (is_strict && file != "telusur.lock");
            if !is_kept || !before.exists() {
                continue;
            }
            let now = self.dir.join(file);
            if !now.exists() || !begins_with(&now, &before, is_strict)? {
                return Ok(Some(file.clone()));
            }
        }
        if is_strict && files_below(self.dir)?.len() > self.known.files.len() {
            return Ok(Some("the list of files".to_owned()));
        }
        Ok(None)
    }

    /// Whether every look is refused: damage of the state, or of what says whose directory it is.
    fn is_refused(&self) -> bool {
        let seen = self.program().run(&["ls", "--json"]);
        seen.is_ok_and(|seen| seen.stderr.contains("E0409") || seen.stderr.contains("E0404"))
    }

    /// Types what was advised, and looks at what is there then.
    fn follow(&self, told: &str, wound: Wound) -> Result<Followed, String> {
        if told.contains("telusur recover") {
            return self.recover(wound);
        }
        if told.contains("telusur verify --requeue") {
            return self.requeue(wound);
        }
        if told.contains("telusur key create") {
            return self.make_keys();
        }
        if told.contains("telusur index rebuild") {
            let seen = self.program().run(&["index", "rebuild"])?;
            if seen.code != Some(0) {
                return Ok(Followed::Wrong(format!("index rebuild: {}", seen.stderr)));
            }
            return self.is_searched();
        }
        Ok(Followed::NotThere(told.chars().take(300).collect()))
    }

    /// Takes the damaged pages out: those whose bytes are damaged, and no other.
    fn requeue(&self, wound: Wound) -> Result<Followed, String> {
        let program = self.program();
        let seen = program.run(&REQUEUE)?;
        if seen.code != Some(0) {
            let why = format!("verify --requeue: {}{}", seen.stdout, seen.stderr);
            return Ok(Followed::Wrong(why));
        }
        let verified = program.run(&["verify", "--json"])?;
        if verified.code != Some(0) {
            return Ok(Followed::Wrong(format!("verify after --requeue: {}", verified.stdout)));
        }
        let damaged = self.damaged_pages(wound);
        for body in damaged_bodies(&seen.stdout)? {
            if !damaged.contains(body.url.as_str()) {
                return Ok(Followed::Wrong(format!("verify --requeue took {} out", body.url)));
            }
        }
        self.lacks_only(&program, &damaged, "verify --requeue")
    }

    /// Deletes the keys, as the message says, and makes another one.
    fn make_keys(&self) -> Result<Followed, String> {
        let program = self.program();
        match fs::remove_file(self.dir.join("keys.json")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error.to_string());
            }
            Err(_) | Ok(()) => {}
        }
        for words in [&["key", "create", "--scope", "admin"][..], &["key", "ls", "--json"]] {
            let seen = program.run(words)?;
            if seen.code != Some(0) {
                return Ok(Followed::Wrong(format!("{words:?}: {}", seen.stderr)));
            }
        }
        Ok(Followed::Mended)
    }

    /// The pages whose bodies have bytes in a wound of a segment.
    fn damaged_pages(&self, wound: Wound) -> HashSet<&str> {
        let bodies: Vec<&BodyPlace> =
            self.known.bodies.iter().filter(|body| body.file == self.plan.file).collect();
        let ends = bodies.iter().skip(1).map(|next| next.byte).chain([u64::MAX]);
        let with_ends = bodies.iter().zip(ends);
        let hit = with_ends.filter(|(body, end)| body.byte < wound.to && wound.from < *end);
        hit.map(|(body, _)| body.url.as_str()).collect()
    }

    /// Whether all pages are there but those that are damaged.
    fn lacks_only(
        &self,
        program: &Program,
        damaged: &HashSet<&str>,
        after: &str,
    ) -> Result<Followed, String> {
        let lost = self.lost_in(program)?;
        Ok(match lost.iter().find(|url| !damaged.contains(url.as_str())) {
            Some(url) => Followed::Wrong(format!("{after} lost {url}, which was not damaged")),
            None => Followed::Mended,
        })
    }

    fn is_searched(&self) -> Result<Followed, String> {
        let program = self.program();
        for question in &self.known.questions {
            if ["search", "verify"].contains(&question.words()[0])
                && program.run(&question.words())?.code != Some(0)
            {
                let why = format!("{} after the rebuild", question.words()[0]);
                return Ok(Followed::Wrong(why));
            }
        }
        Ok(Followed::Mended)
    }

    /// Rebuilds the state into a new directory, which verifies and has every page whose bytes are whole.
    fn recover(&self, wound: Wound) -> Result<Followed, String> {
        let program = self.program();
        let new = self.dir.with_extension("recovered");
        let (dir, into) = (self.dir.to_string_lossy(), new.to_string_lossy());
        let seen = program.run(&["recover", &dir, "--into", &into])?;
        if seen.code != Some(0) {
            return Ok(Followed::Wrong(format!("recover: {:?} {}", seen.code, seen.stderr)));
        }
        let recovered = Program::new(&self.torture.program, &new);
        let verified = recovered.run(&["verify", "--json"])?;
        if verified.code != Some(0) {
            return Ok(Followed::Wrong(format!("verify after recover: {}", verified.stdout)));
        }
        let lacks = self.lacks_only(&recovered, &self.damaged_pages(wound), "recover");
        fs::remove_dir_all(&new).map_err(|error| error.to_string())?;
        lacks
    }

    /// The addresses of pages of the whole directory that this one does not have, or not as they were.
    fn lost_in(&self, program: &Program) -> Result<Vec<String>, String> {
        let mut lost = Vec::new();
        for question in &self.known.questions {
            if question.words()[0] != "export" {
                continue;
            }
            let stored = pages_of(&program.expect(&question.words())?);
            let pages = pages_of(&question.answer.stdout).into_iter();
            lost.extend(pages.filter(|page| !stored.contains(page)).map(|(url, _)| url));
        }
        Ok(lost)
    }
}

/// Address and content of every exported page.
fn pages_of(export: &str) -> HashSet<(String, String)> {
    let lines = export.lines().map(|line| {
        let page: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        let url = page["url"].as_str().unwrap_or_default().to_owned();
        (url, format!("{} {}", page["digest"], page["title"]))
    });
    lines.collect()
}

fn is_segment(file: &str) -> bool {
    FileKind::of(file, "") == FileKind::Segment
}

/// The pages that `verify --requeue --json` took out, each with its place.
fn damaged_bodies(told: &str) -> Result<Vec<BodyPlace>, String> {
    let mut bodies = Vec::new();
    for line in told.lines() {
        let line: serde_json::Value =
            serde_json::from_str(line).map_err(|error| format!("{error} in {line}"))?;
        let Some(url) = line["damaged"].as_str() else { continue };
        let what = line["what"].as_str().unwrap_or_default();
        let place = what.split_once(" at byte ").and_then(|(file, rest)| {
            let byte = rest.split(':').next()?.parse().ok()?;
            Some(BodyPlace { file: file.to_owned(), byte, url: url.to_owned() })
        });
        bodies.push(place.ok_or_else(|| format!("{url} has no place: {what}"))?);
    }
    Ok(bodies)
}

impl fmt::Display for DamageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<30} {:<13} {:>9} {:>6} {:>6}",
            "file", "damage", "no effect", "named", "wrong"
        )?;
        for ((kind, damage), counts) in &self.cells {
            let Counts { without_effect, named, wrong } = counts;
            let (kind, damage) = (kind.name(), damage.name());
            writeln!(f, "{kind:<30} {damage:<13} {without_effect:>9} {named:>6} {wrong:>6}")?;
        }
        for advised in &self.not_mended {
            writeln!(f, "advised: {advised}")?;
        }
        for wrong in &self.wrong {
            writeln!(f, "WRONG {wrong}")?;
        }
        let all: usize =
            self.cells.values().map(|it| it.without_effect + it.named + it.wrong).sum();
        write!(
            f,
            "{all} copies, {} wrong; the advised command mended {}, and is not known for {}",
            self.wrong.len(),
            self.mended,
            self.not_mended.len()
        )
    }
}
