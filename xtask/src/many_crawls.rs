//! `cargo xtask many-crawls`: what a data directory with thousands of crawls costs: an idle service, a start, a
//! list, an opening. Nothing of it may grow with the number of crawls beyond what is printed.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use telusur_testkit::fake_web::PageCounts;
use telusur_testkit::{FakeWeb, FakeWebSpec, ServedWeb, serve};

use crate::build::{Scratch, release_program};
use crate::load_client::Client;
use crate::process::look;
use crate::service::Service;

/// How long the service is watched while nobody asks it for anything.
const IDLE: Duration = Duration::from_secs(30);
/// How long it is left alone before: what was crawled last is indexed and put in order.
const SETTLE: Duration = Duration::from_secs(20);
/// What an idle service may use of one core.
const IDLE_SHARE_MAX: f64 = 0.005;
/// What a start and a list may take.
const TASK_MS_MAX: f64 = 100.0;
/// Each is measured so often; the middle one counts.
const ROUNDS: usize = 9;
/// Pause before a crawl is asked for again that was refused because too many wait.
const FULL_PAUSE: Duration = Duration::from_millis(200);

pub(crate) fn many_crawls(crawls: u64) -> anyhow::Result<()> {
    let program = release_program()?;
    let scratch = Scratch::new("many-crawls")?;
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    runtime.block_on(run(&program, &scratch.path().join("data"), crawls))?;
    scratch.delete()
}

async fn run(program: &Path, data: &Path, crawls: u64) -> anyhow::Result<()> {
    let web = web().await?;
    let began = Instant::now();
    let service = start(program, data)?;
    fill(service.address, &web, crawls).await?;
    println!("{crawls} crawls of one page each in {:.0} s", began.elapsed().as_secs_f64());
    service.end()?;

    let mut found = Figures::default();
    found.put("ls, nobody has the directory", TASK_MS_MAX, || ls(program, data))?;
    let mut opening = Vec::new();
    for _ in 0..3 {
        let began = Instant::now();
        let service = start(program, data)?;
        opening.push(ms(began.elapsed()));
        service.end()?;
    }
    println!("opening, until the service listens: {:.0} ms", middle(opening));

    let service = start(program, data)?;
    tokio::time::sleep(SETTLE).await;
    let before = look(service.pid());
    tokio::time::sleep(IDLE).await;
    let after = look(service.pid());
    let share = (after.cpu_seconds - before.cpu_seconds) / IDLE.as_secs_f64();
    println!("idle service: {:.2} % of a core, {} MB", 100.0 * share, after.memory_mb);

    found.put("ls, of a service that runs", TASK_MS_MAX, || ls(program, data))?;
    let mut client = Client::connect(service.address).await?;
    let mut starts = Vec::new();
    for round in 0..ROUNDS {
        let began = Instant::now();
        let reply = client.post("/api/v1/crawls", &body(&web, crawls + round as u64)).await?;
        ensure!(reply.status == 202, "a crawl was refused: {}", reply.body);
        starts.push(ms(began.elapsed()));
    }
    found.add("start, by the API", TASK_MS_MAX, middle(starts));
    let mut lists = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let reply = client.get("/api/v1/crawls?limit=50").await?;
        ensure!(reply.status == 200, "no list: {}", reply.body);
        lists.push(ms(began.elapsed()));
    }
    found.add("first page of the list, by the API", TASK_MS_MAX, middle(lists));
    let mut totals = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let reply = client.get("/api/v1/stats").await?;
        ensure!(reply.status == 200, "no totals: {}", reply.body);
        totals.push(ms(began.elapsed()));
    }
    println!("totals, by the API: {:.0} ms", middle(totals));
    service.end()?;
    ensure!(share < IDLE_SHARE_MAX, "an idle service is to use less than half a percent");
    found.check()
}

fn start(program: &Path, data: &Path) -> anyhow::Result<Service> {
    let flags = ["--min-free-disk", "0B", "--delay", "0s", "--allow-private", "127.0.0.0/8"];
    Service::start(program, data, &flags)
}

async fn web() -> anyhow::Result<ServedWeb> {
    let spec = FakeWebSpec {
        hosts: 50,
        pages: PageCounts::Even { total: 5_000 },
        page_bytes: 2_000,
        ..FakeWebSpec::default()
    };
    let web = FakeWeb::new(spec).context("make up a web")?;
    serve(&web, None).await.context("serve a web")
}

/// A crawl of one page. Its number decides about the host.
fn body(web: &ServedWeb, number: u64) -> String {
    let seeds = web.web().seeds();
    let seed = &seeds[usize::try_from(number).unwrap_or(0) % seeds.len()];
    format!(r#"{{"name":"crawl number {number}","urls":["{seed}"],"limits":{{"max_pages":1}}}}"#)
}

/// Asks for this number of crawls, and waits until all are over.
async fn fill(address: SocketAddr, web: &ServedWeb, crawls: u64) -> anyhow::Result<()> {
    let mut client = Client::connect(address).await?;
    for number in 0..crawls {
        loop {
            let reply = client.post("/api/v1/crawls", &body(web, number)).await?;
            match reply.status {
                202 => break,
                429 | 503 => tokio::time::sleep(FULL_PAUSE).await,
                _ => anyhow::bail!("a crawl was refused: {}", reply.body),
            }
        }
    }
    loop {
        let totals: serde_json::Value =
            serde_json::from_str(&client.get("/api/v1/stats").await?.body)?;
        let over = totals["crawls"]["completed"].as_u64().unwrap_or(0);
        if over >= crawls {
            return Ok(());
        }
        tokio::time::sleep(FULL_PAUSE).await;
    }
}

/// How long `telusur ls` takes.
fn ls(program: &Path, data: &Path) -> anyhow::Result<f64> {
    let began = Instant::now();
    let listed = Command::new(program)
        .arg("--no-config")
        .arg("--data")
        .arg(data)
        .arg("ls")
        .stdout(Stdio::null())
        .status()
        .context("run telusur ls")?;
    ensure!(listed.success(), "telusur ls failed");
    Ok(ms(began.elapsed()))
}

/// What was measured, beside its limit.
#[derive(Default)]
struct Figures {
    beyond: Vec<String>,
}

impl Figures {
    fn put(
        &mut self,
        what: &str,
        max_ms: f64,
        mut measure: impl FnMut() -> anyhow::Result<f64>,
    ) -> anyhow::Result<()> {
        let taken: Vec<f64> = (0..ROUNDS).map(|_| measure()).collect::<Result<_, _>>()?;
        self.add(what, max_ms, middle(taken));
        Ok(())
    }

    fn add(&mut self, what: &str, max_ms: f64, taken_ms: f64) {
        println!("{what}: {taken_ms:.0} ms (at most {max_ms:.0})");
        if taken_ms >= max_ms {
            self.beyond.push(what.to_owned());
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(self.beyond.is_empty(), "too slow: {}", self.beyond.join("; "));
        Ok(())
    }
}

fn ms(taken: Duration) -> f64 {
    taken.as_secs_f64() * 1000.0
}

fn middle(mut taken: Vec<f64>) -> f64 {
    taken.sort_by(f64::total_cmp);
    taken.get(taken.len() / 2).copied().unwrap_or(0.0)
}
