//! `cargo xtask search-load`: imports many documents into a service, and lets clients search it at the
//! same time, as browsers and programs do.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use telusur_testkit::Dice;
use tokio::task::JoinSet;

use crate::build::{Scratch, release_program};
use crate::load_client::Client;
use crate::service::Service;

/// Sentences of a document: about 4 KB of main text, as in a page of 20 KB.
const SENTENCES: u64 = 28;
/// Searches in all.
const SEARCHES: usize = 4_000;
/// Sites that the documents are spread over.
const SITES: u64 = 300;

pub(crate) struct SearchLoad<'a> {
    pub(crate) documents: u64,
    pub(crate) clients: usize,
    /// Files of JSON Lines, of which the `text` is cut into sentences to make documents of.
    pub(crate) texts: &'a [&'a str],
    /// Where the index stays for the next time. If there is one already, it is searched as it is.
    pub(crate) keep_in: Option<&'a str>,
}

impl SearchLoad<'_> {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let program = release_program()?;
        let scratch = Scratch::new("search-load")?;
        let sentences = self.sentences()?;
        let data = match self.keep_in {
            Some(directory) => PathBuf::from(directory),
            None => scratch.path().join("data"),
        };
        if !data.exists() {
            let documents = scratch.path().join("documents.jsonl");
            let text_bytes = self.write_documents(&documents, &sentences)?;
            // Under another name, so that half of it is never taken for all.
            let part = data.with_extension("part");
            import(&program, &part, &documents, text_bytes)?;
            fs::rename(&part, &data).context("keep the index")?;
        }
        println!("{} documents", index_status(&program, &data)?["documents"]);
        let service = Service::start(&program, &data, &[])?;
        let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
        let mut took = runtime.block_on(self.search(&service, &sentences))?;
        drop(service);
        took.sort_unstable();
        let at = |percent: usize| took[(took.len() - 1) * percent / 100].as_secs_f64() * 1e3;
        println!(
            "{} searches by {} clients: half within {:.1} ms, 95 % within {:.1} ms, all within {:.1} ms",
            took.len(),
            self.clients,
            at(50),
            at(95),
            at(100)
        );
        scratch.delete()
    }

    /// The sentences of each file: those of a document come from one, so that it is in one language.
    fn sentences(&self) -> anyhow::Result<Vec<Vec<String>>> {
        let mut all = Vec::new();
        for file in self.texts {
            let mut sentences = Vec::new();
            let file = File::open(file).with_context(|| format!("open {file}"))?;
            for line in BufReader::new(file).lines() {
                let line: Value = serde_json::from_str(&line?).context("read a text")?;
                let text = line["text"].as_str().unwrap_or_default();
                let of_use = text.split_inclusive(". ").filter(|sentence| sentence.len() > 20);
                sentences.extend(of_use.map(str::to_owned));
            }
            ensure!(!sentences.is_empty(), "there is no sentence in one of the texts");
            all.push(sentences);
        }
        Ok(all)
    }

    /// Writes the documents and gives the bytes of their texts.
    fn write_documents(&self, path: &Path, sentences: &[Vec<String>]) -> anyhow::Result<u64> {
        let mut file = BufWriter::new(File::create(path).context("write the documents")?);
        let mut dice = Dice::new(7);
        let mut bytes = 0;
        for number in 0..self.documents {
            let mut text = String::new();
            let sentences = pick(sentences, &mut dice);
            for _ in 0..SENTENCES / 2 + dice.below(SENTENCES) {
                text.push_str(pick::<String>(sentences, &mut dice));
            }
            let title: String = pick(sentences, &mut dice).chars().take(60).collect();
            bytes += (text.len() + title.len()) as u64;
            let url = format!("https://www.site{}.example/page-{number}", dice.below(SITES));
            writeln!(file, "{}", json!({ "url": url, "title": title, "text": text }))?;
        }
        file.flush()?;
        Ok(bytes)
    }

    /// How long each search took.
    async fn search(
        &self,
        service: &Service,
        sentences: &[Vec<String>],
    ) -> anyhow::Result<Vec<Duration>> {
        let mut dice = Dice::new(11);
        let targets = (0..SEARCHES).map(|_| question(sentences, &mut dice));
        let targets = Arc::new(Mutex::new(targets.collect::<Vec<_>>()));
        let mut clients = JoinSet::new();
        for _ in 0..self.clients {
            clients.spawn(search_all(service.address, Arc::clone(&targets)));
        }
        let mut took = Vec::new();
        while let Some(times) = clients.join_next().await {
            took.extend(times.context("a client failed")??);
        }
        Ok(took)
    }
}

/// Imports documents with so many bytes of text, and says what that took.
fn import(program: &Path, data: &Path, documents: &Path, text_bytes: u64) -> anyhow::Result<()> {
    let start = Instant::now();
    telusur(program, data, &["import", path_text(documents)?, "--name", "load"])?;
    println!("{} MB of text, imported in {:.0} s", text_bytes >> 20, start.elapsed().as_secs_f64());
    let index = index_status(program, data)?;
    let size = |name: &str| index[name].as_u64().unwrap_or(0);
    let (all, stored) = (size("bytes"), size("stored_bytes"));
    println!(
        "index {} MB, of which stored texts {} MB: {:.0} % of the text without them",
        all >> 20,
        stored >> 20,
        (all - stored) as f64 * 100.0 / text_bytes as f64
    );
    Ok(())
}

fn index_status(program: &Path, data: &Path) -> anyhow::Result<Value> {
    let status = telusur(program, data, &["--json", "index", "status"])?;
    serde_json::from_slice(&status).context("read the size of the index")
}

/// Searches until nothing is left to search for.
async fn search_all(
    address: SocketAddr,
    targets: Arc<Mutex<Vec<String>>>,
) -> anyhow::Result<Vec<Duration>> {
    let mut client = Client::connect(address).await?;
    let mut took = Vec::new();
    let next = || targets.lock().unwrap_or_else(PoisonError::into_inner).pop();
    while let Some(target) = next() {
        let start = Instant::now();
        let reply = client.get(&target).await?;
        took.push(start.elapsed());
        ensure!(reply.status == 200, "{target} was answered with {} {}", reply.status, reply.body);
    }
    Ok(took)
}

fn pick<'a, T>(these: &'a [T], dice: &mut Dice) -> &'a T {
    &these[dice.index(these.len())]
}

/// One to six words that stand together, sometimes as a phrase, with a site, with facets, or a whole
/// sentence: as the target of a request.
fn question(sentences: &[Vec<String>], dice: &mut Dice) -> String {
    let sentences = pick(sentences, dice);
    let sentence: Vec<&str> = pick(sentences, dice).split_whitespace().collect();
    let count = (1 + dice.index(6)).min(sentence.len());
    let from = dice.index(sentence.len() - count + 1);
    let words = sentence[from..from + count].join(" ").replace(['"', ':'], " ");
    let (query, rest) = match dice.below(10) {
        0 => (format!("\"{words}\""), ""),
        1 => (format!("{words} site:site{}.example", dice.below(SITES)), ""),
        2 => (words, "&facets=site,lang,year"),
        3 => (pick(sentences, dice).to_owned(), ""),
        _ => (words, ""),
    };
    format!("/api/v1/search?q={}{rest}", escaped(&query))
}

fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// Runs a command to its end and gives what it said.
fn telusur(program: &Path, data: &Path, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
    let mut command = quiet_command(program, data)?;
    command.args(arguments);
    let output = command.stderr(Stdio::inherit()).output().context("run the program")?;
    ensure!(output.status.success(), "{arguments:?} ended with {}", output.status);
    Ok(output.stdout)
}

fn quiet_command(program: &Path, data: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new(program);
    command.args(["--no-config", "--quiet", "--data", path_text(data)?]);
    Ok(command)
}

fn path_text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("the scratch directory has a name that is no text")
}
