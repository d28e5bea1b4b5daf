//! `cargo xtask serve-load`: what the service is like while many use it at once, and some misuse it: two
//! hundred people search during a crawl; a thousand watch it and a hundred never finish their requests; and
//! somebody asks for ten thousand crawls in ten seconds.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use telusur_testkit::fake_web::{DelayRange, PageCounts};
use telusur_testkit::{Dice, FakeWeb, FakeWebSpec, ServedWeb, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use crate::build::{Scratch, release_program};
use crate::load_client::{Client, open};
use crate::process::look;
use crate::service::Service;

/// People who search, one question after the other.
const SEARCHERS: usize = 200;
/// Readers of events, as open live pages are.
const WATCHERS: usize = 1_000;
/// Clients that send a byte now and then and never finish.
const STALLERS: usize = 100;
/// How often each of them sends one: far below the limit for the head of a request.
const STALL_PAUSE: Duration = Duration::from_secs(1);
/// How much longer the slowest hundredth of searches may take because of both.
const SLOWER_MAX: f64 = 2.0;
/// Crawls that are asked for, within how long, over how many connections.
const POSTS: usize = 10_000;
const FLOOD: Duration = Duration::from_secs(10);
const POSTERS: usize = 200;
/// How much the service may hold after the second flood beyond what it held after the first.
const GROWTH_MB_MAX: u64 = 20;
/// Pages that are found by the searches.
const PAGES: u64 = 3_000;
/// How often the service is looked at.
const LOOK_PAUSE: Duration = Duration::from_millis(200);

#[rustfmt::skip]
const WORDS: [&str; 12] = [
    "river", "harbour", "bridge", "market", "island", "mountain", "forest", "valley", "garden", "village", "road",
    "station",
];

pub(crate) fn serve_load(seconds: u64) -> anyhow::Result<()> {
    let program = release_program()?;
    let scratch = Scratch::new("serve-load")?;
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    runtime.block_on(run(&program, scratch.path(), Duration::from_secs(seconds)))?;
    scratch.delete()
}

async fn run(program: &Path, scratch: &Path, span: Duration) -> anyhow::Result<()> {
    let web = web().await?;
    let service = Served::start(program, &scratch.join("data"))?;
    let seed = web.web().seeds()[0].to_string();
    let body = format!(
        r#"{{"urls":["{seed}"],"scope":{{"kind":"any"}},"limits":{{"max_pages":{PAGES}}}}}"#
    );
    service.start_crawl(&body).await?;
    service.until_searchable(PAGES).await?;
    // Slow enough to run as long as anybody looks, quick enough to be work.
    let endless =
        format!(r#"{{"urls":["{seed}"],"scope":{{"kind":"any"}},"manners":{{"rate_per_s":20}}}}"#);
    service.start_crawl(&endless).await?;
    println!("{PAGES} pages can be found, and a crawl runs; {} MB", service.memory_mb());
    let slower = match span.is_zero() {
        true => 1.0,
        false => searching_and_watching(&service, span).await?,
    };
    for round in 1..=2 {
        service.flood(&seed, round).await?;
    }
    ensure!(slower < SLOWER_MAX, "searches take more than {SLOWER_MAX} times as long");
    Ok(())
}

async fn web() -> anyhow::Result<ServedWeb> {
    let spec = FakeWebSpec {
        hosts: 20,
        pages: PageCounts::Even { total: 1_000_000 },
        links_per_page: 20,
        page_bytes: 5_000,
        other_host_share: 0.3,
        delay_ms: DelayRange { min: 5, max: 20 },
        ..FakeWebSpec::default()
    };
    let web = FakeWeb::new(spec).context("make up a web")?;
    serve(&web, None).await.context("serve a web")
}

/// Searches with and without the others, in turns, so that whatever else the machine does hits both.
/// Says how many times as long the slowest hundredth takes among the others.
async fn searching_and_watching(service: &Served, span: Duration) -> anyhow::Result<f64> {
    let (mut alone, mut among) = (Times::default(), Times::default());
    for _ in 0..2 {
        alone.add(service.searched(span).await?);
        let others = service.watched_and_stalled().await?;
        among.add(service.searched(span).await?);
        let watching = others.watching.load(Ordering::Relaxed);
        ensure!(watching == WATCHERS as u64, "only {watching} of {WATCHERS} readers kept reading");
    }
    println!("{SEARCHERS} searchers during a crawl: {alone}");
    println!(
        "the same beside {WATCHERS} readers of events and {STALLERS} stalled requests: {among}"
    );
    println!("memory {} MB", service.memory_mb());
    let slower = among.at(99) / alone.at(99);
    println!("the slowest hundredth takes {slower:.2} times as long");
    Ok(slower)
}

/// A service of its own.
struct Served(Service);

/// Clients that are there and do nothing good. They go when this is dropped.
struct Others {
    watching: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
}

impl Served {
    fn start(program: &Path, data: &Path) -> anyhow::Result<Self> {
        let flags = ["--min-free-disk", "0B", "--delay", "0s", "--allow-private", "127.0.0.0/8"];
        Service::start(program, data, &flags).map(Self)
    }

    fn memory_mb(&self) -> u64 {
        look(self.0.pid()).memory_mb
    }

    async fn start_crawl(&self, body: &str) -> anyhow::Result<()> {
        let reply = Client::connect(self.0.address).await?.post("/api/v1/crawls", body).await?;
        ensure!(reply.status == 202, "a crawl was refused: {}", reply.body);
        Ok(())
    }

    async fn totals(&self) -> anyhow::Result<serde_json::Value> {
        let reply = Client::connect(self.0.address).await?.get("/api/v1/stats").await?;
        ensure!(reply.status == 200, "no totals: {}", reply.body);
        serde_json::from_str(&reply.body).context("read the totals")
    }

    async fn until_searchable(&self, pages: u64) -> anyhow::Result<()> {
        while self.totals().await?["indexed"].as_u64() < Some(pages * 9 / 10) {
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        Ok(())
    }

    /// How long searches take while everybody searches.
    async fn searched(&self, span: Duration) -> anyhow::Result<Times> {
        let (address, end) = (self.0.address, Instant::now() + span);
        let mut searchers = JoinSet::new();
        for number in 0..SEARCHERS {
            searchers.spawn(search_until(address, number as u64, end));
        }
        let mut times = Times { span, ..Times::default() };
        while let Some(searched) = searchers.join_next().await {
            times.ms.extend(searched.context("a searcher failed")??);
        }
        times.ms.sort_by(f64::total_cmp);
        Ok(times)
    }

    async fn watched_and_stalled(&self) -> anyhow::Result<Others> {
        let watching = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        for _ in 0..WATCHERS {
            tasks.spawn(watch(self.0.address, Arc::clone(&watching)));
        }
        for _ in 0..STALLERS {
            tasks.spawn(stall(self.0.address));
        }
        while watching.load(Ordering::Relaxed) < WATCHERS as u64 {
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        Ok(Others { watching, _tasks: tasks })
    }

    /// Asks for crawls faster than they can be done; waits until those that were accepted are.
    async fn flood(&self, seed: &str, round: u32) -> anyhow::Result<()> {
        let before = self.totals().await?;
        let held_before = self.memory_mb();
        let pid = self.0.pid();
        let peak = Arc::new(AtomicU64::new(0));
        let watched = Arc::clone(&peak);
        let looking = tokio::spawn(async move {
            loop {
                watched.fetch_max(look(pid).memory_mb, Ordering::Relaxed);
                tokio::time::sleep(LOOK_PAUSE).await;
            }
        });
        let begun = Instant::now();
        let mut posters = JoinSet::new();
        for _ in 0..POSTERS {
            posters.spawn(post(self.0.address, format!(r#"{{"url":"{seed}","max_pages":1}}"#)));
        }
        let mut posted = Posted::default();
        while let Some(one) = posters.join_next().await {
            posted.add(one.context("a poster failed")??);
        }
        let took = begun.elapsed();
        let wanted = completed(&before) + posted.accepted;
        while completed(&self.totals().await?) < wanted {
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        looking.abort();
        println!(
            "flood {round}: {POSTS} crawls asked for in {:.1} s, {} accepted and finished after {:.1} s, {} told to \
             come back; accepted {}; refused {}",
            took.as_secs_f64(),
            posted.accepted,
            begun.elapsed().as_secs_f64(),
            posted.refused,
            posted.accepted_times,
            posted.refused_times
        );
        println!(
            "  memory {held_before} MB before, {} MB at most, {} MB after",
            peak.load(Ordering::Relaxed),
            self.memory_mb()
        );
        let is_flat = round == 1 || self.memory_mb() <= held_before + GROWTH_MB_MAX;
        ensure!(is_flat, "memory grows from flood to flood");
        ensure!(took < 2 * FLOOD, "the answers took {:.1} s", took.as_secs_f64());
        Ok(())
    }
}

fn completed(totals: &serde_json::Value) -> u64 {
    totals["crawls"]["completed"].as_u64().unwrap_or(0)
}

async fn search_until(address: SocketAddr, number: u64, end: Instant) -> anyhow::Result<Vec<f64>> {
    let mut client = Client::connect(address).await?;
    let mut dice = Dice::of(&[number]);
    let mut times = Vec::new();
    while Instant::now() < end {
        let words = [dice.index(WORDS.len()), dice.index(WORDS.len())].map(|it| WORDS[it]);
        let begun = Instant::now();
        let target = format!("/api/v1/search?q={}+{}", words[0], words[1]);
        let reply = client.get(&target).await.context("search")?;
        ensure!(reply.status == 200, "a search was refused: {}", reply.body);
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(times)
}

/// Reads the events of the running crawl for ever; counted while it does.
async fn watch(address: SocketAddr, watching: Arc<AtomicU64>) {
    let Ok(mut stream) = open(address).await else { return };
    let request = format!(
        "GET /api/v1/crawls/crawl_2/events?types=stats,state HTTP/1.1\r\nHost: {address}\r\n\r\n"
    );
    let mut buffer = vec![0; 4096];
    let is_served = stream.write_all(request.as_bytes()).await.is_ok()
        && stream.read(&mut buffer).await.is_ok()
        && buffer.starts_with(b"HTTP/1.1 200");
    if !is_served {
        return;
    }
    watching.fetch_add(1, Ordering::Relaxed);
    while matches!(stream.read(&mut buffer).await, Ok(bytes) if bytes > 0) {}
    watching.fetch_sub(1, Ordering::Relaxed);
}

/// Begins requests and never finishes them; comes back when it is cut off.
async fn stall(address: SocketAddr) {
    loop {
        let Ok(mut stream) = open(address).await else { return };
        let _ = stream.write_all(b"GET /api/v1/search?q=river HTTP/1.1\r\nHost: local").await;
        while stream.write_all(b"h").await.is_ok() {
            tokio::time::sleep(STALL_PAUSE).await;
        }
    }
}

async fn post(address: SocketAddr, body: String) -> anyhow::Result<Posted> {
    let mut client = Client::connect(address).await?;
    let mut pace = tokio::time::interval(FLOOD * POSTERS as u32 / POSTS as u32);
    let mut posted = Posted::default();
    for _ in 0..POSTS / POSTERS {
        pace.tick().await;
        let begun = Instant::now();
        let reply = client.post("/crawl", &body).await.context("ask for a crawl")?;
        let ms = begun.elapsed().as_secs_f64() * 1000.0;
        match reply.status {
            200 => {
                posted.accepted += 1;
                posted.accepted_times.ms.push(ms);
            }
            429 if reply.header("retry-after").is_some() => {
                posted.refused += 1;
                posted.refused_times.ms.push(ms);
            }
            status => bail!("{status} {}", reply.body),
        }
    }
    Ok(posted)
}

/// What became of requests for crawls.
#[derive(Default)]
struct Posted {
    accepted: u64,
    refused: u64,
    accepted_times: Times,
    refused_times: Times,
}

impl Posted {
    fn add(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.accepted_times.add(other.accepted_times);
        self.refused_times.add(other.refused_times);
    }
}

/// How long requests took, in milliseconds, the shortest first.
#[derive(Default)]
struct Times {
    ms: Vec<f64>,
    span: Duration,
}

impl Times {
    fn add(&mut self, other: Self) {
        self.ms.extend(other.ms);
        self.ms.sort_by(f64::total_cmp);
        self.span += other.span;
    }

    /// The time that this share of them, in hundredths, stays within.
    fn at(&self, hundredths: usize) -> f64 {
        let place = self.ms.len() * hundredths / 100;
        self.ms.get(place.min(self.ms.len().saturating_sub(1))).copied().unwrap_or(0.0)
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "{} in {:.0} ms at the median, {:.0} ms at p99",
            self.ms.len(),
            self.at(50),
            self.at(99)
        )?;
        match self.span.is_zero() {
            true => Ok(()),
            false => {
                write!(out, ", {:.0} a second", self.ms.len() as f64 / self.span.as_secs_f64())
            }
        }
    }
}
