//! `cargo xtask abuse`: attacks the real program the way strangers and faults do, and prints what it
//! cost everybody else. Each attack is a row of the table: what was measured, and the limit that it
//! must keep.

mod costs;
mod drips;
mod fairness;
mod hang_ups;
mod outage;
mod secrets;
mod table;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::build::{Scratch, release_program};
use crate::load_client::{Client, Reply};
use crate::service::Service;
use table::Table;

/// How often a service is asked how far it is.
const LOOK_PAUSE: Duration = Duration::from_millis(200);
/// How long a service may take to finish what it was given.
const IDLE_WAIT_MAX: Duration = Duration::from_secs(60);

/// A port that nobody listens on.
const PORT_CLOSED: u16 = 9_999;

/// The attacks, in the order in which they run.
pub(crate) const ATTACKS: [&str; 6] =
    ["fairness", "outage", "drips", "costs", "hang-ups", "secrets"];

/// Runs the attacks with these names; all of them if none is named.
pub(crate) fn abuse(names: &[&str]) -> anyhow::Result<()> {
    if let Some(unknown) = names.iter().find(|name| !ATTACKS.contains(name)) {
        bail!("there is no attack {unknown:?}: {}", ATTACKS.join(", "));
    }
    let program = release_program()?;
    let scratch = Scratch::new("abuse")?;
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let mut table = Table::default();
    for attack in ATTACKS {
        if !names.is_empty() && !names.contains(&attack) {
            continue;
        }
        eprintln!("{attack} ...");
        let dir = scratch.path().join(attack);
        std::fs::create_dir(&dir).context("make a directory for the attack")?;
        let field = Field { program: program.clone(), dir };
        runtime.block_on(run(attack, &field, &mut table)).context(attack)?;
    }
    println!("{table}");
    ensure!(table.is_kept(), "not every limit was kept; the data is in {:?}", scratch.path());
    scratch.delete()
}

async fn run(attack: &str, field: &Field, table: &mut Table) -> anyhow::Result<()> {
    match attack {
        "fairness" => fairness::attack(field, table).await,
        "outage" => outage::attack(field, table).await,
        "drips" => drips::attack(field, table).await,
        "costs" => costs::attack(field, table).await,
        "hang-ups" => hang_ups::attack(field, table).await,
        "secrets" => secrets::attack(field, table).await,
        other => bail!("there is no attack {other:?}"),
    }
}

/// The start of a crawl whose host refuses every connection, each number on an address of its own.
fn dead_url(number: usize) -> String {
    format!("http://127.2.0.{}:{PORT_CLOSED}/", number + 1)
}

/// Where an attack takes place: the program, and a directory of its own.
struct Field {
    program: PathBuf,
    dir: PathBuf,
}

impl Field {
    /// A service on a fresh data directory, with these flags beside those that loopback needs.
    fn service(&self, name: &str, flags: &[&str]) -> anyhow::Result<Target> {
        let data = self.dir.join(name);
        let mut all = vec!["--min-free-disk", "0B", "--allow-private", "127.0.0.0/8"];
        all.extend(flags);
        let service = Service::start(&self.program, &data, &all)?;
        Ok(Target { service, data })
    }

    /// What a command prints about a data directory that nobody serves, as JSON.
    fn ask(&self, data: &Path, words: &[&str]) -> anyhow::Result<Value> {
        let output = std::process::Command::new(&self.program)
            .args(["--no-config", "--json", "--data"])
            .arg(data)
            .args(words)
            .output()
            .context("run the program")?;
        ensure!(
            output.status.success(),
            "{words:?} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).with_context(|| format!("read what {words:?} says"))
    }
}

/// A service under attack.
struct Target {
    service: Service,
    data: PathBuf,
}

impl Target {
    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let reply = Client::connect(self.service.address).await?.get(path).await?;
        read(&reply, path)
    }

    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let mut client = Client::connect(self.service.address).await?;
        let reply = client.post(path, &body.to_string()).await?;
        read(&reply, path)
    }

    /// All crawls of its list.
    async fn crawls(&self) -> anyhow::Result<Vec<Value>> {
        let mut crawls = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = self.get(&format!("/api/v1/crawls?limit=1000{cursor}")).await?;
            crawls.extend(page["items"].as_array().cloned().unwrap_or_default());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(crawls),
            }
        }
    }
}

fn read(reply: &Reply, path: &str) -> anyhow::Result<Value> {
    ensure!(reply.status < 300, "{path}: {} {}", reply.status, reply.body);
    serde_json::from_str(&reply.body).with_context(|| format!("read the answer of {path}"))
}

/// Waits until no crawl runs, nor waits for its turn. Crawls that never end are not waited for: they
/// show in what is measured.
async fn until_idle(target: &Target) -> anyhow::Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < IDLE_WAIT_MAX {
        let stats = target.get("/api/v1/stats").await?;
        let busy = |state: &str| stats["crawls"][state].as_u64().unwrap_or(0);
        if busy("queued") + busy("running") == 0 {
            return Ok(());
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
    Ok(())
}
